// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// p = z, rho = <r, z>, and the scalars of the factor to 0
template <class T>
struct estimating_start {
  mat<const T> r_;
  mat<const T> z_;
  mat<T> p_;
  T* rho_;
  real_t<T>* inverse_;
  real_t<T>* last_;
  real_t<T>* cross_;
  real_t<T>* gamma_old_;
  status_of<T> status;
  using sum = T;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T z_i = z_(i, c);
    const T r_i = r_(i, c);
    p_(i, c) = z_i;
    return (conj(r_i) * z_i);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const T new_rho = total;
    const real_t<T> new_inverse = real_t<T>(0.0);
    const real_t<T> new_last = real_t<T>(0.0);
    const real_t<T> new_cross = real_t<T>(0.0);
    const real_t<T> new_gamma_old = real_t<T>(0.0);
    rho_[c] = new_rho;
    inverse_[c] = new_inverse;
    last_[c] = new_last;
    cross_[c] = new_cross;
    gamma_old_[c] = new_gamma_old;
    if (!finite(total))
      status.halt(c, NOT_FINITE);
    else if (!(real(total) > real_t<T>(0.0)))
      status.halt(c, INDEFINITE);
  }
};

// pq = <p, q>, and extend the factor by a row; update ``inverse`` and ``last``
template <class T>
struct estimating_curvature {
  mat<const T> p_;
  mat<const T> q_;
  const T* rho_;
  const T* rho_old_;
  T* pq_;
  real_t<T>* inverse_;
  real_t<T>* last_;
  real_t<T>* cross_;
  real_t<T>* top_;
  real_t<T>* most_;
  real_t<T>* gamma_old_;
  status_of<T> status;
  using sum = T;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T p_i = p_(i, c);
    const T q_i = q_(i, c);
    return (conj(p_i) * q_i);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const T new_pq = total;
    const real_t<T> e1 = (!(gamma_old_[c] > real_t<T>(0.0)) ? real_t<T>(real_t<T>(0.0)) : real_t<T>(((real(rho_[c]) / real(rho_old_[c])) / gamma_old_[c])));
    const real_t<T> e2 = (real(rho_[c]) / real(total));
    const real_t<T> e3 = (((e1 * last_[c]) + real_t<T>(1.0)) * e2);
    const real_t<T> e4 = ((inverse_[c] - e3) / real_t<T>(2.0));
    const real_t<T> e5 = ((-square_root((e1 * e2))) * cross_[c]);
    const real_t<T> e6 = square_root(((e4 * e4) + (e5 * e5)));
    const real_t<T> e7 = ((e4 > real_t<T>(0.0)) ? real_t<T>((e4 + e6)) : real_t<T>(e5));
    const real_t<T> e8 = ((e4 > real_t<T>(0.0)) ? real_t<T>(e5) : real_t<T>((e6 - e4)));
    const real_t<T> e9 = square_root(((e7 * e7) + (e8 * e8)));
    const bool e10 = (e9 > real_t<T>(0.0));
    const real_t<T> new_cross = (((e10 ? real_t<T>((e7 / e9)) : real_t<T>(real_t<T>(0.0))) * e5) + ((e10 ? real_t<T>((e8 / e9)) : real_t<T>(real_t<T>(1.0))) * e3));
    const real_t<T> e12 = (((inverse_[c] + e3) / real_t<T>(2.0)) + e6);
    const real_t<T> new_inverse = e12;
    const real_t<T> new_last = e3;
    const real_t<T> new_most = ((e12 > most_[c]) ? real_t<T>(e12) : real_t<T>(most_[c]));
    const real_t<T> e16 = ((real_t<T>(1.0) / e2) + e1);
    const real_t<T> new_top = ((e16 > top_[c]) ? real_t<T>(e16) : real_t<T>(top_[c]));
    const real_t<T> new_gamma_old = e2;
    pq_[c] = new_pq;
    cross_[c] = new_cross;
    inverse_[c] = new_inverse;
    last_[c] = new_last;
    most_[c] = new_most;
    top_[c] = new_top;
    gamma_old_[c] = new_gamma_old;
    if (!finite(total))
      status.halt(c, NOT_FINITE);
    else if (!(real(total) > real_t<T>(0.0)))
      status.halt(c, INDEFINITE);
  }
};

namespace {

// p = z, rho = <r, z>, and the scalars of the factor to 0
struct estimating_start_entry {
  static constexpr const char* operation = "estimating.start";
  static constexpr const char* symbol = "estimating_start";
  static constexpr const char* names[] = {
      "r",
      "z",
      "p",
      "rho",
      "inverse",
      "last",
      "cross",
      "gamma_old",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.r_.ld == ld && f.z_.ld == ld && f.p_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.r_.ld = f.z_.ld = f.p_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const estimating_start<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.block<T>(2, n, k),
          call.contiguous<T>(3, k),
          call.contiguous<real_t<T>>(4, k),
          call.contiguous<real_t<T>>(5, k),
          call.contiguous<real_t<T>>(6, k),
          call.contiguous<real_t<T>>(7, k),
          call.status<T>(8, k),
      };
      call.submit(n * k, Map<estimating_start<T>, estimating_start_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// pq = <p, q>, and extend the factor by a row; update ``inverse`` and ``last``
struct estimating_curvature_entry {
  static constexpr const char* operation = "estimating.curvature";
  static constexpr const char* symbol = "estimating_curvature";
  static constexpr const char* names[] = {
      "p",
      "q",
      "rho",
      "rho_old",
      "pq",
      "inverse",
      "last",
      "cross",
      "top",
      "most",
      "gamma_old",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.p_.ld == ld && f.q_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.p_.ld = f.q_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const estimating_curvature<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<const T>(2, k),
          call.contiguous<const T>(3, k),
          call.contiguous<T>(4, k),
          call.contiguous<real_t<T>>(5, k),
          call.contiguous<real_t<T>>(6, k),
          call.contiguous<real_t<T>>(7, k),
          call.contiguous<real_t<T>>(8, k),
          call.contiguous<real_t<T>>(9, k),
          call.contiguous<real_t<T>>(10, k),
          call.status<T>(11, k),
      };
      call.submit(n * k, Map<estimating_curvature<T>, estimating_curvature_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

} // namespace

void add_estimating_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<estimating_start_entry>("estimating_start", "334c74e9826c6d3b"),
      method<estimating_start_entry, Half::VISITING>("estimating_start_visiting", "334c74e9826c6d3b"),
      method<estimating_start_entry, Half::FINISHING>("estimating_start_finishing", "334c74e9826c6d3b"),
      method<estimating_curvature_entry>("estimating_curvature", "a397b4154c62f0b1"),
      method<estimating_curvature_entry, Half::VISITING>("estimating_curvature_visiting", "a397b4154c62f0b1"),
      method<estimating_curvature_entry, Half::FINISHING>("estimating_curvature_finishing", "a397b4154c62f0b1"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
