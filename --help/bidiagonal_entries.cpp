// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// u = A v / alpha - (alpha / beta) u with q = A v, in the stored norms
template <class T>
struct bidiagonal_left {
  mat<T> u_;
  mat<const T> q_;
  const real_t<T>* scale_;
  real_t<T>* nu_;
  const real_t<T>* nv_;
  const real_t<T>* alpha_;
  real_t<T>* beta_;
  status_of<T> status;
  using sum = real_t<T>;
  struct column_state {
    bool active;
    real_t<T> v0;
    real_t<T> v1;
  };

  WL_DEVICE column_state column(i64 c) const {
    if (!status.is_running(c))
      return {false, real_t<T>(0), real_t<T>(0)};
    return {true, (scale_[c] / nv_[c]), ((scale_[c] * alpha_[c]) / nu_[c])};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T q_i = q_(i, c);
    const T u_i = u_(i, c);
    const T new_u = ((s.v0 * q_i) - (s.v1 * u_i));
    u_(i, c) = new_u;
    return square(new_u);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const real_t<T> e0 = square_root(total);
    const real_t<T> new_nu = e0;
    const real_t<T> new_beta = (e0 / scale_[c]);
    nu_[c] = new_nu;
    beta_[c] = new_beta;
  }
};

// p = A^H u / beta - (beta / alpha) p with t = A^H u; M is applied next
template <class T>
struct bidiagonal_right {
  mat<T> p_;
  mat<const T> t_;
  const real_t<T>* scale_;
  const real_t<T>* nu_;
  const real_t<T>* nv_;
  const real_t<T>* beta_;
  status_of<T> status;
  using sum = none;
  struct column_state {
    bool active;
    real_t<T> v0;
    real_t<T> v1;
  };

  WL_DEVICE column_state column(i64 c) const {
    if (!status.is_running(c))
      return {false, real_t<T>(0), real_t<T>(0)};
    return {true, ((nu_[c] > real_t<T>(0.0)) ? real_t<T>((scale_[c] / nu_[c])) : real_t<T>(real_t<T>(0.0))), ((scale_[c] * beta_[c]) / nv_[c])};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T t_i = t_(i, c);
    const T p_i = p_(i, c);
    const T new_p = ((s.v0 * t_i) - (s.v1 * p_i));
    p_(i, c) = new_p;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

namespace {

// u = A v / alpha - (alpha / beta) u with q = A v, in the stored norms
struct bidiagonal_left_entry {
  static constexpr const char* operation = "bidiagonal.left";
  static constexpr const char* symbol = "bidiagonal_left";
  static constexpr const char* names[] = {
      "u",
      "q",
      "scale",
      "nu",
      "nv",
      "alpha",
      "beta",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.u_.ld == ld && f.q_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.u_.ld = f.q_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const bidiagonal_left<T> body{
          call.block<T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<const real_t<T>>(2, k),
          call.contiguous<real_t<T>>(3, k),
          call.contiguous<const real_t<T>>(4, k),
          call.contiguous<const real_t<T>>(5, k),
          call.contiguous<real_t<T>>(6, k),
          call.status<T>(7, k),
      };
      call.submit(n * k, Map<bidiagonal_left<T>, bidiagonal_left_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// p = A^H u / beta - (beta / alpha) p with t = A^H u; M is applied next
struct bidiagonal_right_entry {
  static constexpr const char* operation = "bidiagonal.right";
  static constexpr const char* symbol = "bidiagonal_right";
  static constexpr const char* names[] = {
      "p",
      "t",
      "scale",
      "nu",
      "nv",
      "beta",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.p_.ld == ld && f.t_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.p_.ld = f.t_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const bidiagonal_right<T> body{
          call.block<T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<const real_t<T>>(2, k),
          call.contiguous<const real_t<T>>(3, k),
          call.contiguous<const real_t<T>>(4, k),
          call.contiguous<const real_t<T>>(5, k),
          call.status<T>(6, k),
      };
      call.submit(n * k, Map<bidiagonal_right<T>, bidiagonal_right_entry>(body, n, k));
    });
    return none_object();
  }
};

} // namespace

void add_bidiagonal_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<bidiagonal_left_entry>("bidiagonal_left", "bf9289a35e8e3ff5"),
      method<bidiagonal_left_entry, Half::VISITING>("bidiagonal_left_visiting", "bf9289a35e8e3ff5"),
      method<bidiagonal_left_entry, Half::FINISHING>("bidiagonal_left_finishing", "bf9289a35e8e3ff5"),
      method<bidiagonal_right_entry>("bidiagonal_right", "4dc787ee18859a2b"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
