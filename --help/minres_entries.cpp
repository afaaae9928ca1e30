// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// phi = sqrt(<r, z>), the residual norm that M defines; halt where it is undefined
template <class T>
struct minres_measure {
  mat<const T> r_;
  mat<const T> z_;
  real_t<T>* phi_;
  status_of<T> status;
  using sum = T;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T r_i = r_(i, c);
    const T z_i = z_(i, c);
    return (conj(r_i) * z_i);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const real_t<T> e0 = real(total);
    const real_t<T> new_phi = square_root(e0);
    phi_[c] = new_phi;
    if (!finite(e0))
      status.halt(c, NOT_FINITE);
    else if (!(e0 > real_t<T>(0.0)))
      status.halt(c, INDEFINITE);
  }
};

// u = r / phi, u_old = d = d_old = 0, and the scalars of the recurrences
template <class T>
struct minres_start {
  mat<const T> r_;
  mat<T> u_;
  mat<T> u_old_;
  mat<T> d_;
  mat<T> d_old_;
  real_t<T>* beta_;
  real_t<T>* sigma_;
  real_t<T>* sigma_old_;
  real_t<T>* cosine_;
  real_t<T>* sine_;
  real_t<T>* gamma_;
  real_t<T>* gamma_old_;
  real_t<T>* dbar_;
  real_t<T>* epsln_;
  const real_t<T>* phi_;
  real_t<T>* mark_;
  real_t<T>* since_;
  status_of<T> status;
  using sum = real_t<T>;
  struct column_state {
    bool active;
    real_t<T> phi_;
  };

  WL_DEVICE column_state column(i64 c) const {
    const bool active = status.is_running(c);
    return {active, active ? phi_[c] : real_t<T>(0)};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T r_i = r_(i, c);
    const T new_u = (r_i / s.phi_);
    u_(i, c) = new_u;
    u_old_(i, c) = T(real_t<T>(0.0));
    d_(i, c) = T(real_t<T>(0.0));
    d_old_(i, c) = T(real_t<T>(0.0));
    return real_t<T>(0);
  }
  WL_DEVICE void finish(i64 c, sum) const {
    const real_t<T> new_beta = real_t<T>(0.0);
    const real_t<T> new_sigma = real_t<T>(1.0);
    const real_t<T> new_sigma_old = real_t<T>(1.0);
    const real_t<T> new_cosine = real_t<T>(-1.0);
    const real_t<T> new_sine = real_t<T>(0.0);
    const real_t<T> new_gamma = real_t<T>(1.0);
    const real_t<T> new_gamma_old = real_t<T>(1.0);
    const real_t<T> new_dbar = real_t<T>(0.0);
    const real_t<T> new_epsln = real_t<T>(0.0);
    const real_t<T> new_mark = phi_[c];
    const real_t<T> new_since = real_t<T>(0.0);
    beta_[c] = new_beta;
    sigma_[c] = new_sigma;
    sigma_old_[c] = new_sigma_old;
    cosine_[c] = new_cosine;
    sine_[c] = new_sine;
    gamma_[c] = new_gamma;
    gamma_old_[c] = new_gamma_old;
    dbar_[c] = new_dbar;
    epsln_[c] = new_epsln;
    mark_[c] = new_mark;
    since_[c] = new_since;
  }
};

// alpha = <z, q> / sigma^2, scale = max(|alpha|, beta), and rotate the new column
template <class T>
struct minres_project {
  mat<const T> z_;
  mat<const T> q_;
  real_t<T>* alpha_;
  const real_t<T>* beta_;
  const real_t<T>* sigma_;
  real_t<T>* scale_;
  real_t<T>* size_;
  const real_t<T>* cosine_;
  const real_t<T>* sine_;
  real_t<T>* delta_;
  real_t<T>* gbar_;
  const real_t<T>* dbar_;
  status_of<T> status;
  using sum = T;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T z_i = z_(i, c);
    const T q_i = q_(i, c);
    return (conj(z_i) * q_i);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const real_t<T> e0 = ((real(total) / sigma_[c]) / sigma_[c]);
    const real_t<T> new_alpha = e0;
    const real_t<T> e2 = magnitude(e0);
    const real_t<T> e3 = ((e2 > beta_[c]) ? real_t<T>(e2) : real_t<T>(beta_[c]));
    const real_t<T> new_scale = ((e3 > real_t<T>(0.0)) ? real_t<T>(e3) : real_t<T>(real_t<T>(1.0)));
    const real_t<T> new_size = ((size_[c] > e3) ? real_t<T>(size_[c]) : real_t<T>(e3));
    const real_t<T> new_delta = ((cosine_[c] * dbar_[c]) + (sine_[c] * e0));
    const real_t<T> new_gbar = ((sine_[c] * dbar_[c]) - (cosine_[c] * e0));
    alpha_[c] = new_alpha;
    scale_[c] = new_scale;
    size_[c] = new_size;
    delta_[c] = new_delta;
    gbar_[c] = new_gbar;
    if (!finite(e0))
      status.halt(c, NOT_FINITE);
  }
};

// u to the next Lanczos vector over scale, d to the next direction; sigma2 = |u|^2
template <class T>
struct minres_extend {
  mat<T> u_;
  mat<T> u_old_;
  mat<const T> z_;
  mat<const T> q_;
  mat<T> d_;
  mat<T> d_old_;
  const real_t<T>* alpha_;
  const real_t<T>* beta_;
  real_t<T>* sigma2_;
  const real_t<T>* sigma_;
  real_t<T>* sigma_old_;
  const real_t<T>* scale_;
  const real_t<T>* delta_;
  const real_t<T>* gamma_;
  real_t<T>* gamma_old_;
  const real_t<T>* epsln_;
  status_of<T> status;
  using sum = real_t<T>;
  struct column_state {
    bool active;
    real_t<T> v0;
    real_t<T> v1;
    real_t<T> v2;
    real_t<T> v3;
    real_t<T> alpha_;
    real_t<T> v5;
  };

  WL_DEVICE column_state column(i64 c) const {
    if (!status.is_running(c))
      return {false, real_t<T>(0), real_t<T>(0), real_t<T>(0), real_t<T>(0), real_t<T>(0), real_t<T>(0)};
    return {true, (real_t<T>(1.0) / sigma_[c]), (delta_[c] / gamma_[c]), (epsln_[c] / gamma_old_[c]), ((real_t<T>(1.0) / sigma_[c]) / scale_[c]), alpha_[c], ((beta_[c] / sigma_old_[c]) / scale_[c])};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T z_i = z_(i, c);
    const T d_i = d_(i, c);
    const T d_old_i = d_old_(i, c);
    const T new_d = (((s.v0 * z_i) - (s.v1 * d_i)) - (s.v2 * d_old_i));
    const T q_i = q_(i, c);
    const T u_i = u_(i, c);
    const T u_old_i = u_old_(i, c);
    const T new_u = ((s.v3 * (q_i - (s.alpha_ * u_i))) - (s.v5 * u_old_i));
    d_(i, c) = new_d;
    d_old_(i, c) = d_i;
    u_(i, c) = new_u;
    u_old_(i, c) = u_i;
    return square(new_u);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const real_t<T> new_gamma_old = gamma_[c];
    const real_t<T> new_sigma_old = sigma_[c];
    const real_t<T> new_sigma2 = total;
    gamma_old_[c] = new_gamma_old;
    sigma_old_[c] = new_sigma_old;
    sigma2_[c] = new_sigma2;
  }
};

// sigma2 = <u, z>; a column where it is negative halts as indefinite
template <class T>
struct minres_weigh {
  mat<const T> u_;
  mat<const T> z_;
  real_t<T>* sigma2_;
  status_of<T> status;
  using sum = T;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T u_i = u_(i, c);
    const T z_i = z_(i, c);
    return (conj(u_i) * z_i);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const real_t<T> e0 = real(total);
    const real_t<T> new_sigma2 = e0;
    sigma2_[c] = new_sigma2;
    if (!finite(e0))
      status.halt(c, NOT_FINITE);
    else if (e0 < real_t<T>(0.0))
      status.halt(c, INDEFINITE);
  }
};

// x += (cosine phi / gamma) d, phi *= sine; observes phi
template <class T>
struct minres_advance {
  mat<T> x_;
  mat<const T> d_;
  real_t<T>* beta_;
  const real_t<T>* sigma2_;
  real_t<T>* sigma_;
  const real_t<T>* scale_;
  const real_t<T>* size_;
  real_t<T>* cosine_;
  real_t<T>* sine_;
  real_t<T>* gamma_;
  const real_t<T>* gbar_;
  real_t<T>* dbar_;
  real_t<T>* epsln_;
  real_t<T>* phi_;
  real_t<T>* mark_;
  real_t<T>* since_;
  status_of<T> status;
  using sum = real_t<T>;
  struct column_state {
    bool active;
    real_t<T> v0;
  };

  WL_DEVICE column_state column(i64 c) const {
    if (!status.is_running(c))
      return {false, real_t<T>(0)};
    const real_t<T> e0 = (scale_[c] * square_root((((gbar_[c] / scale_[c]) * (gbar_[c] / scale_[c])) + ((cosine_[c] * cosine_[c]) * sigma2_[c]))));
    const real_t<T> e1 = square_root(epsilon<T>);
    const real_t<T> e2 = (scale_[c] * square_root((((gbar_[c] / scale_[c]) * (gbar_[c] / scale_[c])) + sigma2_[c])));
    const real_t<T> e3 = ((e2 > real_t<T>(0.0)) ? real_t<T>((gbar_[c] / e2)) : real_t<T>(real_t<T>(0.0)));
    return {true, ((((((e0 <= ((e1 * square_root(e1)) * size_[c])) || (((magnitude(e3) * e0) <= ((real_t<T>(0.25) * epsilon<T>) * size_[c])) && (e0 <= ((real_t<T>(0.03125) * e1) * size_[c])))) || (((magnitude(e3) <= (real_t<T>(4.0) * e1)) && (magnitude(cosine_[c]) <= (real_t<T>(30.0) * e1))) && (e0 <= ((real_t<T>(2.0) * e1) * size_[c])))) || ((e0 <= (e1 * size_[c])) && ((((((e2 > real_t<T>(0.0)) ? real_t<T>(((scale_[c] * square_root(sigma2_[c])) / e2)) : real_t<T>(real_t<T>(1.0))) * phi_[c]) < (real_t<T>(0.99) * mark_[c])) ? real_t<T>(real_t<T>(0.0)) : real_t<T>((since_[c] + real_t<T>(1.0)))) > real_t<T>(20.0)))) || !(e2 > real_t<T>(0.0))) ? real_t<T>(real_t<T>(0.0)) : real_t<T>(((e3 * phi_[c]) / e2)))};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T x_i = x_(i, c);
    const T d_i = d_(i, c);
    const T new_x = (x_i + (s.v0 * d_i));
    x_(i, c) = new_x;
    return real_t<T>(0);
  }
  WL_DEVICE void finish(i64 c, sum) const {
    const real_t<T> e0 = square_root(sigma2_[c]);
    const real_t<T> e1 = (scale_[c] * e0);
    const real_t<T> new_epsln = (sine_[c] * e1);
    const real_t<T> new_dbar = ((-cosine_[c]) * e1);
    const real_t<T> new_beta = e1;
    const real_t<T> new_sigma = e0;
    const real_t<T> e6 = (scale_[c] * square_root((((gbar_[c] / scale_[c]) * (gbar_[c] / scale_[c])) + sigma2_[c])));
    const real_t<T> new_gamma = e6;
    const real_t<T> e8 = ((e6 > real_t<T>(0.0)) ? real_t<T>((gbar_[c] / e6)) : real_t<T>(real_t<T>(0.0)));
    const real_t<T> new_cosine = e8;
    const real_t<T> e10 = ((e6 > real_t<T>(0.0)) ? real_t<T>((e1 / e6)) : real_t<T>(real_t<T>(1.0)));
    const real_t<T> new_sine = e10;
    const real_t<T> e12 = (e10 * phi_[c]);
    const real_t<T> new_phi = e12;
    const bool e14 = (e12 < (real_t<T>(0.99) * mark_[c]));
    const real_t<T> e15 = (e14 ? real_t<T>(real_t<T>(0.0)) : real_t<T>((since_[c] + real_t<T>(1.0))));
    const real_t<T> new_since = e15;
    const real_t<T> new_mark = (e14 ? real_t<T>(e12) : real_t<T>(mark_[c]));
    const real_t<T> e18 = (scale_[c] * square_root((((gbar_[c] / scale_[c]) * (gbar_[c] / scale_[c])) + ((cosine_[c] * cosine_[c]) * sigma2_[c]))));
    const real_t<T> e19 = square_root(epsilon<T>);
    epsln_[c] = new_epsln;
    dbar_[c] = new_dbar;
    beta_[c] = new_beta;
    sigma_[c] = new_sigma;
    gamma_[c] = new_gamma;
    cosine_[c] = new_cosine;
    sine_[c] = new_sine;
    phi_[c] = new_phi;
    since_[c] = new_since;
    mark_[c] = new_mark;
    if (((((e18 <= ((e19 * square_root(e19)) * size_[c])) || (((magnitude(e8) * e18) <= ((real_t<T>(0.25) * epsilon<T>) * size_[c])) && (e18 <= ((real_t<T>(0.03125) * e19) * size_[c])))) || (((magnitude(e8) <= (real_t<T>(4.0) * e19)) && (magnitude(cosine_[c]) <= (real_t<T>(30.0) * e19))) && (e18 <= ((real_t<T>(2.0) * e19) * size_[c])))) || ((e18 <= (e19 * size_[c])) && (e15 > real_t<T>(20.0)))) || !(e6 > real_t<T>(0.0)))
      status.halt(c, BREAKDOWN);
    status.observe(c, e12);
  }
};

// x += (cosine phi / gamma) d, r = sine^2 r - (cosine phi' / sigma) u; observes |r|
template <class T>
struct minres_advance_with_residual {
  mat<T> x_;
  mat<T> r_;
  mat<const T> u_;
  mat<const T> d_;
  real_t<T>* beta_;
  const real_t<T>* sigma2_;
  real_t<T>* sigma_;
  const real_t<T>* scale_;
  const real_t<T>* size_;
  real_t<T>* cosine_;
  real_t<T>* sine_;
  real_t<T>* gamma_;
  const real_t<T>* gbar_;
  real_t<T>* dbar_;
  real_t<T>* epsln_;
  real_t<T>* phi_;
  real_t<T>* mark_;
  real_t<T>* since_;
  status_of<T> status;
  using sum = real_t<T>;
  struct column_state {
    bool active;
    real_t<T> v0;
    real_t<T> v1;
    real_t<T> v2;
  };

  WL_DEVICE column_state column(i64 c) const {
    if (!status.is_running(c))
      return {false, real_t<T>(0), real_t<T>(0), real_t<T>(0)};
    const real_t<T> e0 = (scale_[c] * square_root((((gbar_[c] / scale_[c]) * (gbar_[c] / scale_[c])) + ((cosine_[c] * cosine_[c]) * sigma2_[c]))));
    const real_t<T> e1 = square_root(epsilon<T>);
    const real_t<T> e2 = (scale_[c] * square_root((((gbar_[c] / scale_[c]) * (gbar_[c] / scale_[c])) + sigma2_[c])));
    const real_t<T> e3 = ((e2 > real_t<T>(0.0)) ? real_t<T>((gbar_[c] / e2)) : real_t<T>(real_t<T>(0.0)));
    const real_t<T> e4 = square_root(sigma2_[c]);
    const real_t<T> e5 = ((e2 > real_t<T>(0.0)) ? real_t<T>(((scale_[c] * e4) / e2)) : real_t<T>(real_t<T>(1.0)));
    const real_t<T> e6 = (e5 * phi_[c]);
    return {true, ((((((e0 <= ((e1 * square_root(e1)) * size_[c])) || (((magnitude(e3) * e0) <= ((real_t<T>(0.25) * epsilon<T>) * size_[c])) && (e0 <= ((real_t<T>(0.03125) * e1) * size_[c])))) || (((magnitude(e3) <= (real_t<T>(4.0) * e1)) && (magnitude(cosine_[c]) <= (real_t<T>(30.0) * e1))) && (e0 <= ((real_t<T>(2.0) * e1) * size_[c])))) || ((e0 <= (e1 * size_[c])) && (((e6 < (real_t<T>(0.99) * mark_[c])) ? real_t<T>(real_t<T>(0.0)) : real_t<T>((since_[c] + real_t<T>(1.0)))) > real_t<T>(20.0)))) || !(e2 > real_t<T>(0.0))) ? real_t<T>(real_t<T>(0.0)) : real_t<T>(((e3 * phi_[c]) / e2))), (e5 * e5), ((e4 > real_t<T>(0.0)) ? real_t<T>(((e3 * e6) / e4)) : real_t<T>(real_t<T>(0.0)))};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T x_i = x_(i, c);
    const T d_i = d_(i, c);
    const T new_x = (x_i + (s.v0 * d_i));
    const T r_i = r_(i, c);
    const T u_i = u_(i, c);
    const T new_r = ((s.v1 * r_i) - (s.v2 * u_i));
    x_(i, c) = new_x;
    r_(i, c) = new_r;
    return square(new_r);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const real_t<T> e0 = square_root(sigma2_[c]);
    const real_t<T> e1 = (scale_[c] * e0);
    const real_t<T> new_epsln = (sine_[c] * e1);
    const real_t<T> new_dbar = ((-cosine_[c]) * e1);
    const real_t<T> new_beta = e1;
    const real_t<T> new_sigma = e0;
    const real_t<T> e6 = (scale_[c] * square_root((((gbar_[c] / scale_[c]) * (gbar_[c] / scale_[c])) + sigma2_[c])));
    const real_t<T> new_gamma = e6;
    const real_t<T> e8 = ((e6 > real_t<T>(0.0)) ? real_t<T>((gbar_[c] / e6)) : real_t<T>(real_t<T>(0.0)));
    const real_t<T> new_cosine = e8;
    const real_t<T> e10 = ((e6 > real_t<T>(0.0)) ? real_t<T>((e1 / e6)) : real_t<T>(real_t<T>(1.0)));
    const real_t<T> new_sine = e10;
    const real_t<T> e12 = (e10 * phi_[c]);
    const real_t<T> new_phi = e12;
    const bool e14 = (e12 < (real_t<T>(0.99) * mark_[c]));
    const real_t<T> e15 = (e14 ? real_t<T>(real_t<T>(0.0)) : real_t<T>((since_[c] + real_t<T>(1.0))));
    const real_t<T> new_since = e15;
    const real_t<T> new_mark = (e14 ? real_t<T>(e12) : real_t<T>(mark_[c]));
    const real_t<T> e18 = (scale_[c] * square_root((((gbar_[c] / scale_[c]) * (gbar_[c] / scale_[c])) + ((cosine_[c] * cosine_[c]) * sigma2_[c]))));
    const real_t<T> e19 = square_root(epsilon<T>);
    epsln_[c] = new_epsln;
    dbar_[c] = new_dbar;
    beta_[c] = new_beta;
    sigma_[c] = new_sigma;
    gamma_[c] = new_gamma;
    cosine_[c] = new_cosine;
    sine_[c] = new_sine;
    phi_[c] = new_phi;
    since_[c] = new_since;
    mark_[c] = new_mark;
    if (((((e18 <= ((e19 * square_root(e19)) * size_[c])) || (((magnitude(e8) * e18) <= ((real_t<T>(0.25) * epsilon<T>) * size_[c])) && (e18 <= ((real_t<T>(0.03125) * e19) * size_[c])))) || (((magnitude(e8) <= (real_t<T>(4.0) * e19)) && (magnitude(cosine_[c]) <= (real_t<T>(30.0) * e19))) && (e18 <= ((real_t<T>(2.0) * e19) * size_[c])))) || ((e18 <= (e19 * size_[c])) && (e15 > real_t<T>(20.0)))) || !(e6 > real_t<T>(0.0)))
      status.halt(c, BREAKDOWN);
    status.observe(c, square_root(total));
  }
};

namespace {

// phi = sqrt(<r, z>), the residual norm that M defines; halt where it is undefined
struct minres_measure_entry {
  static constexpr const char* operation = "minres.measure";
  static constexpr const char* symbol = "minres_measure";
  static constexpr const char* names[] = {
      "r",
      "z",
      "phi",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.r_.ld == ld && f.z_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.r_.ld = f.z_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const minres_measure<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<real_t<T>>(2, k),
          call.status<T>(3, k),
      };
      call.submit(n * k, Map<minres_measure<T>, minres_measure_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// u = r / phi, u_old = d = d_old = 0, and the scalars of the recurrences
struct minres_start_entry {
  static constexpr const char* operation = "minres.start";
  static constexpr const char* symbol = "minres_start";
  static constexpr const char* names[] = {
      "r",
      "u",
      "u_old",
      "d",
      "d_old",
      "beta",
      "sigma",
      "sigma_old",
      "cosine",
      "sine",
      "gamma",
      "gamma_old",
      "dbar",
      "epsln",
      "phi",
      "mark",
      "since",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.r_.ld == ld && f.u_.ld == ld && f.u_old_.ld == ld && f.d_.ld == ld && f.d_old_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.r_.ld = f.u_.ld = f.u_old_.ld = f.d_.ld = f.d_old_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const minres_start<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<T>(2, n, k),
          call.block<T>(3, n, k),
          call.block<T>(4, n, k),
          call.contiguous<real_t<T>>(5, k),
          call.contiguous<real_t<T>>(6, k),
          call.contiguous<real_t<T>>(7, k),
          call.contiguous<real_t<T>>(8, k),
          call.contiguous<real_t<T>>(9, k),
          call.contiguous<real_t<T>>(10, k),
          call.contiguous<real_t<T>>(11, k),
          call.contiguous<real_t<T>>(12, k),
          call.contiguous<real_t<T>>(13, k),
          call.contiguous<const real_t<T>>(14, k),
          call.contiguous<real_t<T>>(15, k),
          call.contiguous<real_t<T>>(16, k),
          call.status<T>(17, k),
      };
      call.submit(n * k, Map<minres_start<T>, minres_start_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// alpha = <z, q> / sigma^2, scale = max(|alpha|, beta), and rotate the new column
struct minres_project_entry {
  static constexpr const char* operation = "minres.project";
  static constexpr const char* symbol = "minres_project";
  static constexpr const char* names[] = {
      "z",
      "q",
      "alpha",
      "beta",
      "sigma",
      "scale",
      "size",
      "cosine",
      "sine",
      "delta",
      "gbar",
      "dbar",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.z_.ld == ld && f.q_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.z_.ld = f.q_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const minres_project<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<real_t<T>>(2, k),
          call.contiguous<const real_t<T>>(3, k),
          call.contiguous<const real_t<T>>(4, k),
          call.contiguous<real_t<T>>(5, k),
          call.contiguous<real_t<T>>(6, k),
          call.contiguous<const real_t<T>>(7, k),
          call.contiguous<const real_t<T>>(8, k),
          call.contiguous<real_t<T>>(9, k),
          call.contiguous<real_t<T>>(10, k),
          call.contiguous<const real_t<T>>(11, k),
          call.status<T>(12, k),
      };
      call.submit(n * k, Map<minres_project<T>, minres_project_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// u to the next Lanczos vector over scale, d to the next direction; sigma2 = |u|^2
struct minres_extend_entry {
  static constexpr const char* operation = "minres.extend";
  static constexpr const char* symbol = "minres_extend";
  static constexpr const char* names[] = {
      "u",
      "u_old",
      "z",
      "q",
      "d",
      "d_old",
      "alpha",
      "beta",
      "sigma2",
      "sigma",
      "sigma_old",
      "scale",
      "delta",
      "gamma",
      "gamma_old",
      "epsln",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.u_.ld == ld && f.u_old_.ld == ld && f.z_.ld == ld && f.q_.ld == ld && f.d_.ld == ld && f.d_old_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.u_.ld = f.u_old_.ld = f.z_.ld = f.q_.ld = f.d_.ld = f.d_old_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const minres_extend<T> body{
          call.block<T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<const T>(3, n, k),
          call.block<T>(4, n, k),
          call.block<T>(5, n, k),
          call.contiguous<const real_t<T>>(6, k),
          call.contiguous<const real_t<T>>(7, k),
          call.contiguous<real_t<T>>(8, k),
          call.contiguous<const real_t<T>>(9, k),
          call.contiguous<real_t<T>>(10, k),
          call.contiguous<const real_t<T>>(11, k),
          call.contiguous<const real_t<T>>(12, k),
          call.contiguous<const real_t<T>>(13, k),
          call.contiguous<real_t<T>>(14, k),
          call.contiguous<const real_t<T>>(15, k),
          call.status<T>(16, k),
      };
      call.submit(n * k, Map<minres_extend<T>, minres_extend_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// sigma2 = <u, z>; a column where it is negative halts as indefinite
struct minres_weigh_entry {
  static constexpr const char* operation = "minres.weigh";
  static constexpr const char* symbol = "minres_weigh";
  static constexpr const char* names[] = {
      "u",
      "z",
      "sigma2",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.u_.ld == ld && f.z_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.u_.ld = f.z_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const minres_weigh<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<real_t<T>>(2, k),
          call.status<T>(3, k),
      };
      call.submit(n * k, Map<minres_weigh<T>, minres_weigh_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// x += (cosine phi / gamma) d, phi *= sine; observes phi
struct minres_advance_entry {
  static constexpr const char* operation = "minres.advance";
  static constexpr const char* symbol = "minres_advance";
  static constexpr const char* names[] = {
      "x",
      "d",
      "beta",
      "sigma2",
      "sigma",
      "scale",
      "size",
      "cosine",
      "sine",
      "gamma",
      "gbar",
      "dbar",
      "epsln",
      "phi",
      "mark",
      "since",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x_.ld == ld && f.d_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x_.ld = f.d_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const minres_advance<T> body{
          call.block<T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<real_t<T>>(2, k),
          call.contiguous<const real_t<T>>(3, k),
          call.contiguous<real_t<T>>(4, k),
          call.contiguous<const real_t<T>>(5, k),
          call.contiguous<const real_t<T>>(6, k),
          call.contiguous<real_t<T>>(7, k),
          call.contiguous<real_t<T>>(8, k),
          call.contiguous<real_t<T>>(9, k),
          call.contiguous<const real_t<T>>(10, k),
          call.contiguous<real_t<T>>(11, k),
          call.contiguous<real_t<T>>(12, k),
          call.contiguous<real_t<T>>(13, k),
          call.contiguous<real_t<T>>(14, k),
          call.contiguous<real_t<T>>(15, k),
          call.status<T>(16, k),
      };
      call.submit(n * k, Map<minres_advance<T>, minres_advance_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// x += (cosine phi / gamma) d, r = sine^2 r - (cosine phi' / sigma) u; observes |r|
struct minres_advance_with_residual_entry {
  static constexpr const char* operation = "minres.advance_with_residual";
  static constexpr const char* symbol = "minres_advance_with_residual";
  static constexpr const char* names[] = {
      "x",
      "r",
      "u",
      "d",
      "beta",
      "sigma2",
      "sigma",
      "scale",
      "size",
      "cosine",
      "sine",
      "gamma",
      "gbar",
      "dbar",
      "epsln",
      "phi",
      "mark",
      "since",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x_.ld == ld && f.r_.ld == ld && f.u_.ld == ld && f.d_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x_.ld = f.r_.ld = f.u_.ld = f.d_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const minres_advance_with_residual<T> body{
          call.block<T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<const T>(3, n, k),
          call.contiguous<real_t<T>>(4, k),
          call.contiguous<const real_t<T>>(5, k),
          call.contiguous<real_t<T>>(6, k),
          call.contiguous<const real_t<T>>(7, k),
          call.contiguous<const real_t<T>>(8, k),
          call.contiguous<real_t<T>>(9, k),
          call.contiguous<real_t<T>>(10, k),
          call.contiguous<real_t<T>>(11, k),
          call.contiguous<const real_t<T>>(12, k),
          call.contiguous<real_t<T>>(13, k),
          call.contiguous<real_t<T>>(14, k),
          call.contiguous<real_t<T>>(15, k),
          call.contiguous<real_t<T>>(16, k),
          call.contiguous<real_t<T>>(17, k),
          call.status<T>(18, k),
      };
      call.submit(n * k, Map<minres_advance_with_residual<T>, minres_advance_with_residual_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

} // namespace

void add_minres_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<minres_measure_entry>("minres_measure", "ba95b32512a1e677"),
      method<minres_measure_entry, Half::VISITING>("minres_measure_visiting", "ba95b32512a1e677"),
      method<minres_measure_entry, Half::FINISHING>("minres_measure_finishing", "ba95b32512a1e677"),
      method<minres_start_entry>("minres_start", "9208343aa0edcff0"),
      method<minres_start_entry, Half::VISITING>("minres_start_visiting", "9208343aa0edcff0"),
      method<minres_start_entry, Half::FINISHING>("minres_start_finishing", "9208343aa0edcff0"),
      method<minres_project_entry>("minres_project", "17dcb95eb43ecc32"),
      method<minres_project_entry, Half::VISITING>("minres_project_visiting", "17dcb95eb43ecc32"),
      method<minres_project_entry, Half::FINISHING>("minres_project_finishing", "17dcb95eb43ecc32"),
      method<minres_extend_entry>("minres_extend", "4b47e186ae82c02d"),
      method<minres_extend_entry, Half::VISITING>("minres_extend_visiting", "4b47e186ae82c02d"),
      method<minres_extend_entry, Half::FINISHING>("minres_extend_finishing", "4b47e186ae82c02d"),
      method<minres_weigh_entry>("minres_weigh", "6fe51f6bd4f95826"),
      method<minres_weigh_entry, Half::VISITING>("minres_weigh_visiting", "6fe51f6bd4f95826"),
      method<minres_weigh_entry, Half::FINISHING>("minres_weigh_finishing", "6fe51f6bd4f95826"),
      method<minres_advance_entry>("minres_advance", "bb0fc503ed93f6e5"),
      method<minres_advance_entry, Half::VISITING>("minres_advance_visiting", "bb0fc503ed93f6e5"),
      method<minres_advance_entry, Half::FINISHING>("minres_advance_finishing", "bb0fc503ed93f6e5"),
      method<minres_advance_with_residual_entry>("minres_advance_with_residual", "687ccbe841ab9275"),
      method<minres_advance_with_residual_entry, Half::VISITING>("minres_advance_with_residual_visiting", "687ccbe841ab9275"),
      method<minres_advance_with_residual_entry, Half::FINISHING>("minres_advance_with_residual_finishing", "687ccbe841ab9275"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
