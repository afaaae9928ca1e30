// The steps of conjugate gradients squared. See wollemi.core.operations.cgs.
#pragma once
#include "bicgstab.hpp"

namespace wl {

template <class T>
struct cgs_start {
  mat<const T> r;
  mat<T> shadow, p, q;
  T *rho, *rho_old;
  real_t<T>* scale;
  status_of<T> status;
  using sum = real_t<T>;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T ri = r(i, c);
    shadow(i, c) = ri;
    p(i, c) = q(i, c) = T(0);
    return square(ri);
  }
  WL_DEVICE void finish(i64 c, sum s) const {
    rho[c] = T(s);
    rho_old[c] = T(1);
    scale[c] = square_root(s);
  }
};

template <class T>
struct cgs_direction {
  mat<T> u, p;
  mat<const T> q, r;
  const T *rho, *rho_old;
  status_of<T> status;
  using sum = none;
  struct column_state {
    bool active;
    T beta;
  };

  WL_DEVICE column_state column(i64 c) const {
    const bool active = status.is_running(c);
    return {active, active ? rho[c] / rho_old[c] : T(0)};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T qi = q(i, c), ui = r(i, c) + s.beta * qi;
    const T pi = ui + s.beta * (qi + s.beta * p(i, c));
    u(i, c) = ui;
    p(i, c) = pi;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

template <class T>
struct cgs_half {
  mat<T> u, q;
  mat<const T> v;
  const T* alpha;
  status_of<T> status;
  using sum = none;
  struct column_state {
    bool active;
    T alpha;
  };

  WL_DEVICE column_state column(i64 c) const {
    const bool active = status.is_running(c);
    return {active, active ? alpha[c] : T(0)};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T ui = u(i, c), qi = ui - s.alpha * v(i, c);
    q(i, c) = qi;
    u(i, c) = ui + qi;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

template <class T>
struct cgs_update {
  mat<T> x, r;
  mat<const T> w, t, shadow;
  const T* alpha;
  T *rho, *rho_old;
  const real_t<T>* scale;
  status_of<T> status;
  using sum = shadow_and_norm<T>;
  struct column_state {
    bool active;
    T alpha;
  };

  WL_DEVICE column_state column(i64 c) const {
    const bool active = status.is_running(c);
    return {active, active ? alpha[c] : T(0)};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    // All loads before the first store, which waits for its value and would hold them up.
    const T xi = x(i, c) + s.alpha * w(i, c);
    const T ri = r(i, c) - s.alpha * t(i, c), shadow_i = shadow(i, c);
    x(i, c) = xi;
    r(i, c) = ri;
    return {conj(shadow_i) * ri, square(ri)};
  }
  WL_DEVICE void finish(i64 c, sum s) const {
    rho_old[c] = rho[c];
    rho[c] = s.shadow;
    close_iteration(status, c, s.shadow, s.norm, scale[c]);
  }
};

} // namespace wl
