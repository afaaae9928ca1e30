// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/precision.hpp"

namespace wl {

namespace {

// y = x / scale_c, rounded to L; y = x where scale_c is 0 or not finite
struct precision_lower_entry {
  static constexpr const char* operation = "precision.lower";
  static constexpr const char* symbol = "precision_lower";
  static constexpr const char* names[] = {
      "x",
      "scale",
      "y",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x.ld == ld && f.y.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x.ld = f.y.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const precision_lower<T> body{
          call.block<const T>(0, n, k),
          call.contiguous<const real_t<T>>(1, k),
          call.block<lower_t<T>>(2, n, k),
      };
      call.submit(n * k, Map<precision_lower<T>, precision_lower_entry>(body, n, k));
    });
    return none_object();
  }
};

// y = alpha scale_c x + beta y; beta = 0 does not read y; scale_c is 1 where it is 0 or not finite
struct precision_raised_entry {
  static constexpr const char* operation = "precision.raised";
  static constexpr const char* symbol = "precision_raised";
  static constexpr const char* names[] = {
      "x",
      "scale",
      "y",
      "alpha",
      "beta",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x.ld == ld && f.y.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x.ld = f.y.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[2], call.array(2), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const precision_raised<T> body{
          call.block<const lower_t<T>>(0, n, k),
          call.contiguous<const real_t<T>>(1, k),
          call.block<T>(2, n, k),
          call.scalar<T>(3),
          call.scalar<T>(4),
      };
      call.submit(n * k, Map<precision_raised<T>, precision_raised_entry>(body, n, k));
    });
    return none_object();
  }
};

} // namespace

void add_precision_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<precision_lower_entry>("precision_lower", nullptr),
      method<precision_raised_entry>("precision_raised", nullptr),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
