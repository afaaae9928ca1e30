// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/mask.hpp"

namespace wl {

namespace {

// y_i = alpha sum_j x_j + beta y_i for first_i <= j < last_i; beta = 0 does not read y
struct mask_sums_entry {
  static constexpr const char* operation = "mask.sums";
  static constexpr const char* symbol = "mask_sums";
  static constexpr const char* names[] = {
      "first",
      "last",
      "x",
      "y",
      "alpha",
      "beta",
  };
  static constexpr bool by_row = true;
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
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent m, n, k;
        const mask_sums<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.block<const T>(2, n, k),
            call.block<T>(3, m, k),
            call.scalar<T>(4),
            call.scalar<T>(5),
        };
        call.submit(m * k, Map<mask_sums<T, I>, mask_sums_entry>(body, m, k));
      });
    });
    return none_object();
  }
};

} // namespace

void add_mask_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<mask_sums_entry>("mask_sums", nullptr),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
