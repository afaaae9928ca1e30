// The steps of stabilized bi-conjugate gradients. See wollemi.core.operations.bicgstab.
#pragma once
#include "status.hpp"

namespace wl {

// <shadow, r> so small that the next direction is rounding error alone.
template <class T>
WL_DEVICE bool is_lost(T rho, real_t<T> shadow_norm, real_t<T> residual_norm) {
  return magnitude(rho) <= epsilon<T> * epsilon<T> * shadow_norm * residual_norm;
}

// The last act of an iteration of a method with a shadow residual.
template <class T>
WL_DEVICE void close_iteration(const status_of<T>& status, i64 c, T rho, real_t<T> squared_norm,
                               real_t<T> shadow_norm) {
  const real_t<T> residual_norm = square_root(squared_norm);
  status.observe(c, residual_norm);
  if (!status.is_running(c))
    return;
  if (!finite(rho))
    status.halt(c, NOT_FINITE);
  else if (is_lost(rho, shadow_norm, residual_norm))
    status.halt(c, BREAKDOWN);
}

// alpha = rho / <shadow, v>, or the end of the column.
template <class T>
WL_DEVICE void divide_or_halt(const status_of<T>& status, i64 c, T above, T below, T* quotient) {
  const T q = above / below;
  quotient[c] = q;
  if (!finite(above) || !finite(below))
    status.halt(c, NOT_FINITE);
  else if (below == T(0) || !finite(q))
    status.halt(c, BREAKDOWN);
}

// <shadow, r> and |r|^2 of the new residual, in one pass.
template <class T>
struct shadow_and_norm {
  T shadow;
  real_t<T> norm;
  WL_DEVICE shadow_and_norm& operator+=(shadow_and_norm o) {
    shadow += o.shadow;
    norm += o.norm;
    return *this;
  }
};

template <class T>
struct bicgstab_start {
  mat<const T> r;
  mat<T> shadow, p, v;
  T *rho, *rho_old, *alpha, *omega;
  real_t<T>* scale;
  status_of<T> status;
  using sum = real_t<T>;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T ri = r(i, c);
    shadow(i, c) = ri;
    p(i, c) = v(i, c) = T(0);
    return square(ri);
  }
  WL_DEVICE void finish(i64 c, sum s) const {
    rho[c] = T(s);
    rho_old[c] = alpha[c] = omega[c] = T(1);
    scale[c] = square_root(s);
  }
};

template <class T>
struct bicgstab_direction {
  mat<T> p;
  mat<const T> r, v;
  const T *rho, *rho_old, *alpha, *omega;
  status_of<T> status;
  using sum = none;
  struct column_state {
    bool active;
    T beta, omega;
  };

  WL_DEVICE column_state column(i64 c) const {
    if (!status.is_running(c))
      return {false, T(0), T(0)};
    return {true, (rho[c] / rho_old[c]) * (alpha[c] / omega[c]), omega[c]};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    p(i, c) = r(i, c) + s.beta * (p(i, c) - s.omega * v(i, c));
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

template <class T>
struct bicgstab_length {
  mat<const T> shadow, v;
  const T* rho;
  T* alpha;
  status_of<T> status;
  using sum = T;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    return conj(shadow(i, c)) * v(i, c);
  }
  WL_DEVICE void finish(i64 c, sum s) const { divide_or_halt(status, c, rho[c], s, alpha); }
};

template <class T>
struct bicgstab_half {
  mat<T> r;
  mat<const T> v;
  const T* alpha;
  u8* halfway;
  status_of<T> status;
  using sum = real_t<T>;
  struct column_state {
    bool active;
    T alpha;
  };

  WL_DEVICE column_state column(i64 c) const {
    const bool active = status.is_running(c);
    return {active, active ? alpha[c] : T(0)};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T ri = r(i, c) - s.alpha * v(i, c);
    r(i, c) = ri;
    return square(ri);
  }
  WL_DEVICE void finish(i64 c, sum s) const { halfway[c] = square_root(s) <= status.threshold[c]; }
};

// <t, r> and |t|^2.
template <class T>
struct projection {
  T along;
  real_t<T> norm;
  WL_DEVICE projection& operator+=(projection o) {
    along += o.along;
    norm += o.norm;
    return *this;
  }
};

template <class T>
struct bicgstab_stabilize {
  mat<const T> t, r;
  T* omega;
  const u8* halfway;
  status_of<T> status;
  using sum = projection<T>;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T ti = t(i, c);
    return {conj(ti) * r(i, c), square(ti)};
  }
  WL_DEVICE void finish(i64 c, sum s) const {
    if (halfway[c]) {
      omega[c] = T(0); // x moves by alpha y alone, and the residual is at its threshold
      return;
    }
    divide_or_halt(status, c, s.along, T(s.norm), omega);
    if (status.is_running(c) && omega[c] == T(0))
      status.halt(c, BREAKDOWN);
  }
};

template <class T>
struct bicgstab_update {
  mat<T> x, r;
  mat<const T> y, z, t, shadow;
  const T *alpha, *omega;
  T *rho, *rho_old;
  const real_t<T>* scale;
  status_of<T> status;
  using sum = shadow_and_norm<T>;
  struct column_state {
    bool active;
    T alpha, omega;
  };

  WL_DEVICE column_state column(i64 c) const {
    if (!status.is_running(c))
      return {false, T(0), T(0)};
    return {true, alpha[c], omega[c]};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    // All loads before the first store, which waits for its value and would hold them up.
    const T xi = x(i, c) + (s.alpha * y(i, c) + s.omega * z(i, c));
    const T ri = r(i, c) - s.omega * t(i, c), shadow_i = shadow(i, c);
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
