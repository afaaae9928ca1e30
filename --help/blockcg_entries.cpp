// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// x += dx; observe |r|; halt where the curvature is negative or NaN
template <class T>
struct blockcg_advance {
  mat<T> x_;
  mat<const T> dx_;
  mat<const T> r_;
  const real_t<T>* curvature_;
  status_of<T> status;
  using sum = real_t<T>;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T x_i = x_(i, c);
    const T dx_i = dx_(i, c);
    const T new_x = (x_i + dx_i);
    const T r_i = r_(i, c);
    x_(i, c) = new_x;
    return square(r_i);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    status.observe(c, square_root(total));
    if (status.is_running(c)) {
      if (!finite(curvature_[c]))
        status.halt(c, NOT_FINITE);
      else if (curvature_[c] < real_t<T>(0.0))
        status.halt(c, INDEFINITE);
    }
  }
};

namespace {

// x += dx; observe |r|; halt where the curvature is negative or NaN
struct blockcg_advance_entry {
  static constexpr const char* operation = "blockcg.advance";
  static constexpr const char* symbol = "blockcg_advance";
  static constexpr const char* names[] = {
      "x",
      "dx",
      "r",
      "curvature",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x_.ld == ld && f.dx_.ld == ld && f.r_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x_.ld = f.dx_.ld = f.r_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const blockcg_advance<T> body{
          call.block<T>(0, n, k),
          call.block<const T>(1, n, k),
          call.block<const T>(2, n, k),
          call.contiguous<const real_t<T>>(3, k),
          call.status<T>(4, k),
      };
      call.submit(n * k, Map<blockcg_advance<T>, blockcg_advance_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

} // namespace

void add_blockcg_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<blockcg_advance_entry>("blockcg_advance", "4fbcf9ab10eebabb"),
      method<blockcg_advance_entry, Half::VISITING>("blockcg_advance_visiting", "4fbcf9ab10eebabb"),
      method<blockcg_advance_entry, Half::FINISHING>("blockcg_advance_finishing", "4fbcf9ab10eebabb"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
