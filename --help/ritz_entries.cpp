// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// r = A x - value B x, r2 = |r|^2, b2 = |B x|^2
template <class T>
struct ritz_residual {
  mat<const T> ax_;
  mat<const T> bx_;
  mat<T> r_;
  const real_t<T>* value_;
  real_t<T>* r2_;
  real_t<T>* b2_;
  struct sum {
    real_t<T> v0;
    real_t<T> v1;
    WL_DEVICE sum& operator+=(sum o) {
      v0 += o.v0;
      v1 += o.v1;
      return *this;
    }
    template <class V>
    WL_DEVICE void each(const V& visit) {
      each_number(v0, visit);
      each_number(v1, visit);
    }
  };
  struct column_state {
    bool active;
    real_t<T> value_;
  };

  WL_DEVICE column_state column(i64 c) const {
    return {true, value_[c]};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T ax_i = ax_(i, c);
    const T bx_i = bx_(i, c);
    const T new_r = (ax_i - (s.value_ * bx_i));
    r_(i, c) = new_r;
    return {square(new_r), square(bx_i)};
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const real_t<T> new_r2 = total.v0;
    const real_t<T> new_b2 = total.v1;
    r2_[c] = new_r2;
    b2_[c] = new_b2;
  }
};

namespace {

// r = A x - value B x, r2 = |r|^2, b2 = |B x|^2
struct ritz_residual_entry {
  static constexpr const char* operation = "ritz.residual";
  static constexpr const char* symbol = "ritz_residual";
  static constexpr const char* names[] = {
      "ax",
      "bx",
      "r",
      "value",
      "r2",
      "b2",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.ax_.ld == ld && f.bx_.ld == ld && f.r_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.ax_.ld = f.bx_.ld = f.r_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const ritz_residual<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.block<T>(2, n, k),
          call.contiguous<const real_t<T>>(3, k),
          call.contiguous<real_t<T>>(4, k),
          call.contiguous<real_t<T>>(5, k),
      };
      call.submit(n * k, Map<ritz_residual<T>, ritz_residual_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

} // namespace

void add_ritz_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<ritz_residual_entry>("ritz_residual", "1ab6595ec98142b9"),
      method<ritz_residual_entry, Half::VISITING>("ritz_residual_visiting", "1ab6595ec98142b9"),
      method<ritz_residual_entry, Half::FINISHING>("ritz_residual_finishing", "1ab6595ec98142b9"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
