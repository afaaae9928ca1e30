// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// x += ratio w
template <class T>
struct gmres_end_correct {
  mat<T> x_;
  mat<const T> w_;
  const real_t<T>* ratio_;
  using sum = none;
  struct column_state {
    bool active;
    real_t<T> ratio_;
  };

  WL_DEVICE column_state column(i64 c) const {
    return {true, ratio_[c]};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T x_i = x_(i, c);
    const T w_i = w_(i, c);
    const T new_x = (x_i + (s.ratio_ * w_i));
    x_(i, c) = new_x;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

namespace {

// x += ratio w
struct gmres_end_correct_entry {
  static constexpr const char* operation = "gmres_end.correct";
  static constexpr const char* symbol = "gmres_end_correct";
  static constexpr const char* names[] = {
      "x",
      "w",
      "ratio",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x_.ld == ld && f.w_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x_.ld = f.w_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const gmres_end_correct<T> body{
          call.block<T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<const real_t<T>>(2, k),
      };
      call.submit(n * k, Map<gmres_end_correct<T>, gmres_end_correct_entry>(body, n, k));
    });
    return none_object();
  }
};

} // namespace

void add_gmres_end_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<gmres_end_correct_entry>("gmres_end_correct", "919b5b29809c6c32"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
