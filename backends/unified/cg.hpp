// The steps of conjugate gradients. See wollemi.core.operations.cg.
#pragma once
#include "status.hpp"

namespace wl {

// <r, M r> and <p, A p> of a positive definite operator are positive; 0 or less, or NaN, says that
// it is not.
template <class T>
WL_DEVICE void require_positive(const status_of<T>& status, i64 c, T value) {
  if (!finite(value))
    status.halt(c, NOT_FINITE);
  else if (!(real(value) > real_t<T>(0)))
    status.halt(c, INDEFINITE);
}

template <class T>
struct cg_start {
  mat<const T> r, z;
  mat<T> p;
  T* rho;
  status_of<T> status;
  using sum = T;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T zi = z(i, c);
    p(i, c) = zi;
    return conj(r(i, c)) * zi;
  }
  WL_DEVICE void finish(i64 c, sum s) const {
    rho[c] = s;
    require_positive(status, c, s);
  }
};

template <class T>
struct cg_curvature {
  mat<const T> p, q;
  T* pq;
  status_of<T> status;
  using sum = T;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    return conj(p(i, c)) * q(i, c);
  }
  WL_DEVICE void finish(i64 c, sum s) const {
    pq[c] = s;
    require_positive(status, c, s);
  }
};

template <class T>
struct cg_update {
  mat<T> x, r;
  mat<const T> p, q;
  T *rho, *rho_old;
  const T* pq;
  status_of<T> status;
  using sum = real_t<T>;
  struct column_state {
    bool active;
    T alpha;
  };

  WL_DEVICE column_state column(i64 c) const {
    const bool active = status.is_running(c);
    return {active, active ? rho[c] / pq[c] : T(0)};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    // All loads before the first store, which waits for its value and would hold them up.
    const T xi = x(i, c) + s.alpha * p(i, c);
    const T ri = r(i, c) - s.alpha * q(i, c);
    x(i, c) = xi;
    r(i, c) = ri;
    return square(ri);
  }
  WL_DEVICE void finish(i64 c, sum s) const {
    rho_old[c] = rho[c];
    rho[c] = T(s);
    status.observe(c, square_root(s));
  }
};

template <class T>
struct cg_weigh {
  mat<const T> r, z;
  T* rho;
  status_of<T> status;
  using sum = T;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    return conj(r(i, c)) * z(i, c);
  }
  WL_DEVICE void finish(i64 c, sum s) const {
    rho[c] = s;
    require_positive(status, c, s);
  }
};

template <class T>
struct cg_direction {
  mat<T> p;
  mat<const T> z;
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
    p(i, c) = z(i, c) + s.beta * p(i, c);
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

} // namespace wl
