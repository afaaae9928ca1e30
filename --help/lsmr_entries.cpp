// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// p = t, v = z, h = v / |v|, hbar = 0, and the scalars of the first iteration
template <class T>
struct lsmr_start {
  mat<T> p_;
  mat<const T> t_;
  mat<T> v_;
  mat<const T> z_;
  mat<T> h_;
  mat<T> hbar_;
  real_t<T>* scale_;
  real_t<T>* nu_;
  real_t<T>* nv_;
  real_t<T>* alpha_;
  real_t<T>* beta_;
  real_t<T>* zeta_;
  real_t<T>* zetabar_;
  real_t<T>* alphabar_;
  real_t<T>* rho_;
  real_t<T>* rhobar_;
  real_t<T>* cbar_;
  real_t<T>* sbar_;
  real_t<T>* betad_;
  real_t<T>* betadd_;
  real_t<T>* rhodold_;
  real_t<T>* tautildeold_;
  real_t<T>* thetatilde_;
  real_t<T>* norm_a2_;
  real_t<T>* max_rbar_;
  real_t<T>* min_rbar_;
  real_t<T>* count_;
  const real_t<T>* true_r2_;
  const real_t<T>* true_normal2_;
  real_t<T>* longest2_;
  status_of<T> status;
  using sum = real_t<T>;
  struct column_state {
    bool active;
    real_t<T> v0;
  };

  WL_DEVICE column_state column(i64 c) const {
    const bool active = status.is_running(c);
    return {active, active ? square_root(true_normal2_[c]) : real_t<T>(0)};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T t_i = t_(i, c);
    const T z_i = z_(i, c);
    const T new_h = (z_i / s.v0);
    p_(i, c) = t_i;
    v_(i, c) = z_i;
    h_(i, c) = new_h;
    hbar_(i, c) = T(real_t<T>(0.0));
    return real_t<T>(0);
  }
  WL_DEVICE void finish(i64 c, sum) const {
    const real_t<T> e0 = square_root(true_r2_[c]);
    const real_t<T> new_nu = e0;
    const real_t<T> e2 = square_root(true_normal2_[c]);
    const real_t<T> new_nv = e2;
    const real_t<T> e4 = (e2 / e0);
    const real_t<T> new_alpha = e4;
    const real_t<T> new_beta = e0;
    const real_t<T> new_scale = (real_t<T>(1.0) / e4);
    const real_t<T> new_zeta = real_t<T>(0.0);
    const real_t<T> new_zetabar = e2;
    const real_t<T> new_alphabar = e4;
    const real_t<T> new_rho = real_t<T>(1.0);
    const real_t<T> new_rhobar = real_t<T>(1.0);
    const real_t<T> new_cbar = real_t<T>(1.0);
    const real_t<T> new_sbar = real_t<T>(0.0);
    const real_t<T> new_betad = real_t<T>(0.0);
    const real_t<T> new_betadd = e0;
    const real_t<T> new_rhodold = real_t<T>(1.0);
    const real_t<T> new_tautildeold = real_t<T>(0.0);
    const real_t<T> new_thetatilde = real_t<T>(0.0);
    const real_t<T> new_longest2 = real_t<T>(0.0);
    const real_t<T> new_norm_a2 = (e4 * e4);
    const real_t<T> new_max_rbar = real_t<T>(0.0);
    const real_t<T> new_min_rbar = real_t<T>(0.0);
    const real_t<T> new_count = real_t<T>(0.0);
    nu_[c] = new_nu;
    nv_[c] = new_nv;
    alpha_[c] = new_alpha;
    beta_[c] = new_beta;
    scale_[c] = new_scale;
    zeta_[c] = new_zeta;
    zetabar_[c] = new_zetabar;
    alphabar_[c] = new_alphabar;
    rho_[c] = new_rho;
    rhobar_[c] = new_rhobar;
    cbar_[c] = new_cbar;
    sbar_[c] = new_sbar;
    betad_[c] = new_betad;
    betadd_[c] = new_betadd;
    rhodold_[c] = new_rhodold;
    tautildeold_[c] = new_tautildeold;
    thetatilde_[c] = new_thetatilde;
    longest2_[c] = new_longest2;
    norm_a2_[c] = new_norm_a2;
    max_rbar_[c] = new_max_rbar;
    min_rbar_[c] = new_min_rbar;
    count_[c] = new_count;
  }
};

// p = A^H u / beta - (beta / alpha) p, alpha = |p|, and the rotations of an iteration
template <class T>
struct lsmr_right_and_rotate {
  mat<T> p_;
  mat<const T> t_;
  const real_t<T>* scale_;
  const real_t<T>* nu_;
  real_t<T>* nv_;
  real_t<T>* alpha_;
  const real_t<T>* beta_;
  real_t<T>* zeta_;
  real_t<T>* zetabar_;
  real_t<T>* alphabar_;
  real_t<T>* rho_;
  real_t<T>* rhobar_;
  real_t<T>* cbar_;
  real_t<T>* sbar_;
  real_t<T>* betad_;
  real_t<T>* betadd_;
  real_t<T>* rhodold_;
  real_t<T>* tautildeold_;
  real_t<T>* thetatilde_;
  real_t<T>* norm_a2_;
  real_t<T>* max_rbar_;
  real_t<T>* min_rbar_;
  real_t<T>* count_;
  real_t<T>* step_hbar_;
  real_t<T>* step_x_;
  real_t<T>* step_h_;
  real_t<T>* norm_a_;
  real_t<T>* norm_r_;
  real_t<T>* norm_normal_;
  real_t<T>* condition_;
  real_t<T>* longest2_;
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
    return {true, ((nu_[c] > real_t<T>(0.0)) ? real_t<T>((scale_[c] / nu_[c])) : real_t<T>(real_t<T>(0.0))), ((scale_[c] * beta_[c]) / nv_[c])};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T t_i = t_(i, c);
    const T p_i = p_(i, c);
    const T new_p = ((s.v0 * t_i) - (s.v1 * p_i));
    p_(i, c) = new_p;
    return square(new_p);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const real_t<T> e0 = square_root(((alphabar_[c] * alphabar_[c]) + (beta_[c] * beta_[c])));
    const real_t<T> e1 = (sbar_[c] * e0);
    const real_t<T> new_step_hbar = ((e1 * e0) / (rho_[c] * rhobar_[c]));
    const real_t<T> e3 = (cbar_[c] * e0);
    const real_t<T> e4 = ((e0 > real_t<T>(0.0)) ? real_t<T>(e0) : real_t<T>(real_t<T>(1.0)));
    const real_t<T> e5 = (beta_[c] / e4);
    const real_t<T> e6 = square_root(total);
    const real_t<T> e7 = (e6 / scale_[c]);
    const real_t<T> e8 = (e5 * e7);
    const real_t<T> e9 = square_root(((e3 * e3) + (e8 * e8)));
    const real_t<T> e10 = ((e9 > real_t<T>(0.0)) ? real_t<T>(e9) : real_t<T>(real_t<T>(1.0)));
    const real_t<T> e11 = ((e9 > real_t<T>(0.0)) ? real_t<T>((e3 / e10)) : real_t<T>(real_t<T>(1.0)));
    const real_t<T> e12 = (e11 * zetabar_[c]);
    const real_t<T> new_step_x = (((e0 * e9) > real_t<T>(0.0)) ? real_t<T>((e12 / (e0 * e9))) : real_t<T>(real_t<T>(0.0)));
    const real_t<T> new_step_h = ((e0 > real_t<T>(0.0)) ? real_t<T>((e8 / e0)) : real_t<T>(real_t<T>(0.0)));
    const real_t<T> e15 = square_root(((rhodold_[c] * rhodold_[c]) + (e1 * e1)));
    const real_t<T> e16 = ((e15 > real_t<T>(0.0)) ? real_t<T>(e15) : real_t<T>(real_t<T>(1.0)));
    const real_t<T> e17 = ((e15 > real_t<T>(0.0)) ? real_t<T>((rhodold_[c] / e16)) : real_t<T>(real_t<T>(1.0)));
    const real_t<T> e18 = ((e0 > real_t<T>(0.0)) ? real_t<T>((alphabar_[c] / e4)) : real_t<T>(real_t<T>(1.0)));
    const real_t<T> e19 = (e1 / e16);
    const real_t<T> e20 = ((e17 * (e18 * betadd_[c])) - (e19 * betad_[c]));
    const real_t<T> e21 = (e17 * e9);
    const real_t<T> e22 = (e19 * e9);
    const real_t<T> e23 = ((zeta_[c] - (thetatilde_[c] * tautildeold_[c])) / e15);
    const real_t<T> e24 = ((e21 > real_t<T>(0.0)) ? real_t<T>(((e12 - (e22 * e23)) / e21)) : real_t<T>(real_t<T>(0.0)));
    const real_t<T> e25 = (-(e5 * betadd_[c]));
    const real_t<T> new_norm_r = square_root((((e20 - e24) * (e20 - e24)) + (e25 * e25)));
    const real_t<T> e27 = (e8 / e10);
    const real_t<T> e28 = (-(e27 * zetabar_[c]));
    const real_t<T> new_norm_normal = magnitude(e28);
    const real_t<T> e30 = ((alpha_[c] * alpha_[c]) + (beta_[c] * beta_[c]));
    const real_t<T> new_longest2 = ((longest2_[c] > e30) ? real_t<T>(longest2_[c]) : real_t<T>(e30));
    const real_t<T> e32 = (norm_a2_[c] + (beta_[c] * beta_[c]));
    const real_t<T> new_norm_a = square_root(e32);
    const real_t<T> new_norm_a2 = (e32 + (e7 * e7));
    const real_t<T> e35 = ((count_[c] > real_t<T>(0.0)) ? real_t<T>(((max_rbar_[c] > rhobar_[c]) ? real_t<T>(max_rbar_[c]) : real_t<T>(rhobar_[c]))) : real_t<T>(real_t<T>(0.0)));
    const real_t<T> e36 = ((count_[c] > real_t<T>(1.0)) ? real_t<T>(((min_rbar_[c] < rhobar_[c]) ? real_t<T>(min_rbar_[c]) : real_t<T>(rhobar_[c]))) : real_t<T>(rhobar_[c]));
    const real_t<T> new_condition = (((e35 > e3) ? real_t<T>(e35) : real_t<T>(e3)) / ((count_[c] > real_t<T>(0.0)) ? real_t<T>(((e36 < e3) ? real_t<T>(e36) : real_t<T>(e3))) : real_t<T>(e3)));
    const real_t<T> new_max_rbar = e35;
    const real_t<T> new_min_rbar = e36;
    const real_t<T> new_count = (count_[c] + real_t<T>(1.0));
    const real_t<T> new_nv = e6;
    const real_t<T> new_alpha = e7;
    const real_t<T> new_alphabar = (e18 * e7);
    const real_t<T> new_rho = e0;
    const real_t<T> new_rhobar = e9;
    const real_t<T> new_cbar = e11;
    const real_t<T> new_sbar = e27;
    const real_t<T> new_zeta = e12;
    const real_t<T> new_zetabar = e28;
    const real_t<T> new_betad = e20;
    const real_t<T> new_betadd = e25;
    const real_t<T> new_rhodold = e21;
    const real_t<T> new_tautildeold = e23;
    const real_t<T> new_thetatilde = e22;
    step_hbar_[c] = new_step_hbar;
    step_x_[c] = new_step_x;
    step_h_[c] = new_step_h;
    norm_r_[c] = new_norm_r;
    norm_normal_[c] = new_norm_normal;
    longest2_[c] = new_longest2;
    norm_a_[c] = new_norm_a;
    norm_a2_[c] = new_norm_a2;
    condition_[c] = new_condition;
    max_rbar_[c] = new_max_rbar;
    min_rbar_[c] = new_min_rbar;
    count_[c] = new_count;
    nv_[c] = new_nv;
    alpha_[c] = new_alpha;
    alphabar_[c] = new_alphabar;
    rho_[c] = new_rho;
    rhobar_[c] = new_rhobar;
    cbar_[c] = new_cbar;
    sbar_[c] = new_sbar;
    zeta_[c] = new_zeta;
    zetabar_[c] = new_zetabar;
    betad_[c] = new_betad;
    betadd_[c] = new_betadd;
    rhodold_[c] = new_rhodold;
    tautildeold_[c] = new_tautildeold;
    thetatilde_[c] = new_thetatilde;
  }
};

// alpha = sqrt(<p, v>) with v = M p, and the rotations; halts if M is indefinite
template <class T>
struct lsmr_weigh_and_rotate {
  mat<const T> p_;
  mat<const T> v_;
  const real_t<T>* scale_;
  real_t<T>* nv_;
  real_t<T>* alpha_;
  const real_t<T>* beta_;
  real_t<T>* zeta_;
  real_t<T>* zetabar_;
  real_t<T>* alphabar_;
  real_t<T>* rho_;
  real_t<T>* rhobar_;
  real_t<T>* cbar_;
  real_t<T>* sbar_;
  real_t<T>* betad_;
  real_t<T>* betadd_;
  real_t<T>* rhodold_;
  real_t<T>* tautildeold_;
  real_t<T>* thetatilde_;
  real_t<T>* norm_a2_;
  real_t<T>* max_rbar_;
  real_t<T>* min_rbar_;
  real_t<T>* count_;
  real_t<T>* step_hbar_;
  real_t<T>* step_x_;
  real_t<T>* step_h_;
  real_t<T>* norm_a_;
  real_t<T>* norm_r_;
  real_t<T>* norm_normal_;
  real_t<T>* condition_;
  real_t<T>* longest2_;
  status_of<T> status;
  using sum = T;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T p_i = p_(i, c);
    const T v_i = v_(i, c);
    return (conj(p_i) * v_i);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const real_t<T> e0 = square_root(((alphabar_[c] * alphabar_[c]) + (beta_[c] * beta_[c])));
    const real_t<T> e1 = (sbar_[c] * e0);
    const real_t<T> new_step_hbar = ((e1 * e0) / (rho_[c] * rhobar_[c]));
    const real_t<T> e3 = (cbar_[c] * e0);
    const real_t<T> e4 = ((e0 > real_t<T>(0.0)) ? real_t<T>(e0) : real_t<T>(real_t<T>(1.0)));
    const real_t<T> e5 = (beta_[c] / e4);
    const real_t<T> e6 = real(total);
    const real_t<T> e7 = square_root(e6);
    const real_t<T> e8 = (e7 / scale_[c]);
    const real_t<T> e9 = (e5 * e8);
    const real_t<T> e10 = square_root(((e3 * e3) + (e9 * e9)));
    const real_t<T> e11 = ((e10 > real_t<T>(0.0)) ? real_t<T>(e10) : real_t<T>(real_t<T>(1.0)));
    const real_t<T> e12 = ((e10 > real_t<T>(0.0)) ? real_t<T>((e3 / e11)) : real_t<T>(real_t<T>(1.0)));
    const real_t<T> e13 = (e12 * zetabar_[c]);
    const real_t<T> new_step_x = (((e0 * e10) > real_t<T>(0.0)) ? real_t<T>((e13 / (e0 * e10))) : real_t<T>(real_t<T>(0.0)));
    const real_t<T> new_step_h = ((e0 > real_t<T>(0.0)) ? real_t<T>((e9 / e0)) : real_t<T>(real_t<T>(0.0)));
    const real_t<T> e16 = square_root(((rhodold_[c] * rhodold_[c]) + (e1 * e1)));
    const real_t<T> e17 = ((e16 > real_t<T>(0.0)) ? real_t<T>(e16) : real_t<T>(real_t<T>(1.0)));
    const real_t<T> e18 = ((e16 > real_t<T>(0.0)) ? real_t<T>((rhodold_[c] / e17)) : real_t<T>(real_t<T>(1.0)));
    const real_t<T> e19 = ((e0 > real_t<T>(0.0)) ? real_t<T>((alphabar_[c] / e4)) : real_t<T>(real_t<T>(1.0)));
    const real_t<T> e20 = (e1 / e17);
    const real_t<T> e21 = ((e18 * (e19 * betadd_[c])) - (e20 * betad_[c]));
    const real_t<T> e22 = (e18 * e10);
    const real_t<T> e23 = (e20 * e10);
    const real_t<T> e24 = ((zeta_[c] - (thetatilde_[c] * tautildeold_[c])) / e16);
    const real_t<T> e25 = ((e22 > real_t<T>(0.0)) ? real_t<T>(((e13 - (e23 * e24)) / e22)) : real_t<T>(real_t<T>(0.0)));
    const real_t<T> e26 = (-(e5 * betadd_[c]));
    const real_t<T> new_norm_r = square_root((((e21 - e25) * (e21 - e25)) + (e26 * e26)));
    const real_t<T> e28 = (e9 / e11);
    const real_t<T> e29 = (-(e28 * zetabar_[c]));
    const real_t<T> new_norm_normal = magnitude(e29);
    const real_t<T> e31 = ((alpha_[c] * alpha_[c]) + (beta_[c] * beta_[c]));
    const real_t<T> new_longest2 = ((longest2_[c] > e31) ? real_t<T>(longest2_[c]) : real_t<T>(e31));
    const real_t<T> e33 = (norm_a2_[c] + (beta_[c] * beta_[c]));
    const real_t<T> new_norm_a = square_root(e33);
    const real_t<T> new_norm_a2 = (e33 + (e8 * e8));
    const real_t<T> e36 = ((count_[c] > real_t<T>(0.0)) ? real_t<T>(((max_rbar_[c] > rhobar_[c]) ? real_t<T>(max_rbar_[c]) : real_t<T>(rhobar_[c]))) : real_t<T>(real_t<T>(0.0)));
    const real_t<T> e37 = ((count_[c] > real_t<T>(1.0)) ? real_t<T>(((min_rbar_[c] < rhobar_[c]) ? real_t<T>(min_rbar_[c]) : real_t<T>(rhobar_[c]))) : real_t<T>(rhobar_[c]));
    const real_t<T> new_condition = (((e36 > e3) ? real_t<T>(e36) : real_t<T>(e3)) / ((count_[c] > real_t<T>(0.0)) ? real_t<T>(((e37 < e3) ? real_t<T>(e37) : real_t<T>(e3))) : real_t<T>(e3)));
    const real_t<T> new_max_rbar = e36;
    const real_t<T> new_min_rbar = e37;
    const real_t<T> new_count = (count_[c] + real_t<T>(1.0));
    const real_t<T> new_nv = e7;
    const real_t<T> new_alpha = e8;
    const real_t<T> new_alphabar = (e19 * e8);
    const real_t<T> new_rho = e0;
    const real_t<T> new_rhobar = e10;
    const real_t<T> new_cbar = e12;
    const real_t<T> new_sbar = e28;
    const real_t<T> new_zeta = e13;
    const real_t<T> new_zetabar = e29;
    const real_t<T> new_betad = e21;
    const real_t<T> new_betadd = e26;
    const real_t<T> new_rhodold = e22;
    const real_t<T> new_tautildeold = e24;
    const real_t<T> new_thetatilde = e23;
    step_hbar_[c] = new_step_hbar;
    step_x_[c] = new_step_x;
    step_h_[c] = new_step_h;
    norm_r_[c] = new_norm_r;
    norm_normal_[c] = new_norm_normal;
    longest2_[c] = new_longest2;
    norm_a_[c] = new_norm_a;
    norm_a2_[c] = new_norm_a2;
    condition_[c] = new_condition;
    max_rbar_[c] = new_max_rbar;
    min_rbar_[c] = new_min_rbar;
    count_[c] = new_count;
    nv_[c] = new_nv;
    alpha_[c] = new_alpha;
    alphabar_[c] = new_alphabar;
    rho_[c] = new_rho;
    rhobar_[c] = new_rhobar;
    cbar_[c] = new_cbar;
    sbar_[c] = new_sbar;
    zeta_[c] = new_zeta;
    zetabar_[c] = new_zetabar;
    betad_[c] = new_betad;
    betadd_[c] = new_betadd;
    rhodold_[c] = new_rhodold;
    tautildeold_[c] = new_tautildeold;
    thetatilde_[c] = new_thetatilde;
    if (finite(e6) && (e6 < real_t<T>(0.0)))
      status.halt(c, INDEFINITE);
  }
};

// hbar = h - c hbar, x += c hbar, h = v / |v| - c h; observe |A^H r|, test the rules
template <class T>
struct lsmr_update {
  mat<T> x_;
  mat<const T> v_;
  mat<T> h_;
  mat<T> hbar_;
  const real_t<T>* nv_;
  const real_t<T>* step_hbar_;
  const real_t<T>* step_x_;
  const real_t<T>* step_h_;
  const real_t<T>* norm_a_;
  const real_t<T>* norm_r_;
  const real_t<T>* norm_normal_;
  const real_t<T>* norm_b_;
  const real_t<T>* condition_;
  real_t<T>* istop_;
  const real_t<T>* atol_;
  const real_t<T>* btol_;
  const real_t<T>* ctol_;
  const u8* preconditioned_;
  status_of<T> status;
  using sum = real_t<T>;
  struct column_state {
    bool active;
    real_t<T> step_hbar_;
    real_t<T> step_x_;
    real_t<T> v2;
    real_t<T> step_h_;
  };

  WL_DEVICE column_state column(i64 c) const {
    if (!status.is_running(c))
      return {false, real_t<T>(0), real_t<T>(0), real_t<T>(0), real_t<T>(0)};
    return {true, step_hbar_[c], step_x_[c], ((nv_[c] > real_t<T>(0.0)) ? real_t<T>((real_t<T>(1.0) / nv_[c])) : real_t<T>(real_t<T>(0.0))), step_h_[c]};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T h_i = h_(i, c);
    const T hbar_i = hbar_(i, c);
    const T new_hbar = (h_i - (s.step_hbar_ * hbar_i));
    const T x_i = x_(i, c);
    const T new_x = (x_i + (s.step_x_ * new_hbar));
    const T v_i = v_(i, c);
    const T new_h = ((s.v2 * v_i) - (s.step_h_ * h_i));
    hbar_(i, c) = new_hbar;
    x_(i, c) = new_x;
    h_(i, c) = new_h;
    return square(new_x);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const real_t<T> e0 = (norm_r_[c] / norm_b_[c]);
    const real_t<T> e1 = (((preconditioned_[c] != 0) ? real_t<T>(norm_b_[c]) : real_t<T>((norm_a_[c] * square_root(total)))) / norm_b_[c]);
    const real_t<T> e2 = (norm_a_[c] * norm_r_[c]);
    const real_t<T> e3 = ((e2 > real_t<T>(0.0)) ? real_t<T>((norm_normal_[c] / e2)) : real_t<T>(real_t<T>(1e+30)));
    const real_t<T> e4 = (real_t<T>(1.0) / condition_[c]);
    const real_t<T> e5 = (real_t<T>(0.5) * epsilon<T>);
    const real_t<T> e6 = ((e0 <= (btol_[c] + (atol_[c] * e1))) ? real_t<T>(real_t<T>(1.0)) : real_t<T>(((e3 <= atol_[c]) ? real_t<T>(real_t<T>(2.0)) : real_t<T>(((e4 <= ctol_[c]) ? real_t<T>(real_t<T>(3.0)) : real_t<T>((((e0 / (real_t<T>(1.0) + e1)) <= e5) ? real_t<T>(real_t<T>(4.0)) : real_t<T>(((e3 <= e5) ? real_t<T>(real_t<T>(5.0)) : real_t<T>(((e4 <= e5) ? real_t<T>(real_t<T>(6.0)) : real_t<T>(real_t<T>(0.0)))))))))))));
    const real_t<T> new_istop = e6;
    istop_[c] = new_istop;
    status.observe(c, norm_normal_[c]);
    if (status.is_running(c)) {
      if (e6 > real_t<T>(0.0))
        status.halt(c, CONVERGED);
    }
  }
};

namespace {

// p = t, v = z, h = v / |v|, hbar = 0, and the scalars of the first iteration
struct lsmr_start_entry {
  static constexpr const char* operation = "lsmr.start";
  static constexpr const char* symbol = "lsmr_start";
  static constexpr const char* names[] = {
      "p",
      "t",
      "v",
      "z",
      "h",
      "hbar",
      "scale",
      "nu",
      "nv",
      "alpha",
      "beta",
      "zeta",
      "zetabar",
      "alphabar",
      "rho",
      "rhobar",
      "cbar",
      "sbar",
      "betad",
      "betadd",
      "rhodold",
      "tautildeold",
      "thetatilde",
      "norm_a2",
      "max_rbar",
      "min_rbar",
      "count",
      "true_r2",
      "true_normal2",
      "longest2",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.p_.ld == ld && f.t_.ld == ld && f.v_.ld == ld && f.z_.ld == ld && f.h_.ld == ld && f.hbar_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.p_.ld = f.t_.ld = f.v_.ld = f.z_.ld = f.h_.ld = f.hbar_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const lsmr_start<T> body{
          call.block<T>(0, n, k),
          call.block<const T>(1, n, k),
          call.block<T>(2, n, k),
          call.block<const T>(3, n, k),
          call.block<T>(4, n, k),
          call.block<T>(5, n, k),
          call.contiguous<real_t<T>>(6, k),
          call.contiguous<real_t<T>>(7, k),
          call.contiguous<real_t<T>>(8, k),
          call.contiguous<real_t<T>>(9, k),
          call.contiguous<real_t<T>>(10, k),
          call.contiguous<real_t<T>>(11, k),
          call.contiguous<real_t<T>>(12, k),
          call.contiguous<real_t<T>>(13, k),
          call.contiguous<real_t<T>>(14, k),
          call.contiguous<real_t<T>>(15, k),
          call.contiguous<real_t<T>>(16, k),
          call.contiguous<real_t<T>>(17, k),
          call.contiguous<real_t<T>>(18, k),
          call.contiguous<real_t<T>>(19, k),
          call.contiguous<real_t<T>>(20, k),
          call.contiguous<real_t<T>>(21, k),
          call.contiguous<real_t<T>>(22, k),
          call.contiguous<real_t<T>>(23, k),
          call.contiguous<real_t<T>>(24, k),
          call.contiguous<real_t<T>>(25, k),
          call.contiguous<real_t<T>>(26, k),
          call.contiguous<const real_t<T>>(27, k),
          call.contiguous<const real_t<T>>(28, k),
          call.contiguous<real_t<T>>(29, k),
          call.status<T>(30, k),
      };
      call.submit(n * k, Map<lsmr_start<T>, lsmr_start_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// p = A^H u / beta - (beta / alpha) p, alpha = |p|, and the rotations of an iteration
struct lsmr_right_and_rotate_entry {
  static constexpr const char* operation = "lsmr.right_and_rotate";
  static constexpr const char* symbol = "lsmr_right_and_rotate";
  static constexpr const char* names[] = {
      "p",
      "t",
      "scale",
      "nu",
      "nv",
      "alpha",
      "beta",
      "zeta",
      "zetabar",
      "alphabar",
      "rho",
      "rhobar",
      "cbar",
      "sbar",
      "betad",
      "betadd",
      "rhodold",
      "tautildeold",
      "thetatilde",
      "norm_a2",
      "max_rbar",
      "min_rbar",
      "count",
      "step_hbar",
      "step_x",
      "step_h",
      "norm_a",
      "norm_r",
      "norm_normal",
      "condition",
      "longest2",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
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
      const lsmr_right_and_rotate<T> body{
          call.block<T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<const real_t<T>>(2, k),
          call.contiguous<const real_t<T>>(3, k),
          call.contiguous<real_t<T>>(4, k),
          call.contiguous<real_t<T>>(5, k),
          call.contiguous<const real_t<T>>(6, k),
          call.contiguous<real_t<T>>(7, k),
          call.contiguous<real_t<T>>(8, k),
          call.contiguous<real_t<T>>(9, k),
          call.contiguous<real_t<T>>(10, k),
          call.contiguous<real_t<T>>(11, k),
          call.contiguous<real_t<T>>(12, k),
          call.contiguous<real_t<T>>(13, k),
          call.contiguous<real_t<T>>(14, k),
          call.contiguous<real_t<T>>(15, k),
          call.contiguous<real_t<T>>(16, k),
          call.contiguous<real_t<T>>(17, k),
          call.contiguous<real_t<T>>(18, k),
          call.contiguous<real_t<T>>(19, k),
          call.contiguous<real_t<T>>(20, k),
          call.contiguous<real_t<T>>(21, k),
          call.contiguous<real_t<T>>(22, k),
          call.contiguous<real_t<T>>(23, k),
          call.contiguous<real_t<T>>(24, k),
          call.contiguous<real_t<T>>(25, k),
          call.contiguous<real_t<T>>(26, k),
          call.contiguous<real_t<T>>(27, k),
          call.contiguous<real_t<T>>(28, k),
          call.contiguous<real_t<T>>(29, k),
          call.contiguous<real_t<T>>(30, k),
          call.status<T>(31, k),
      };
      call.submit(n * k, Map<lsmr_right_and_rotate<T>, lsmr_right_and_rotate_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// alpha = sqrt(<p, v>) with v = M p, and the rotations; halts if M is indefinite
struct lsmr_weigh_and_rotate_entry {
  static constexpr const char* operation = "lsmr.weigh_and_rotate";
  static constexpr const char* symbol = "lsmr_weigh_and_rotate";
  static constexpr const char* names[] = {
      "p",
      "v",
      "scale",
      "nv",
      "alpha",
      "beta",
      "zeta",
      "zetabar",
      "alphabar",
      "rho",
      "rhobar",
      "cbar",
      "sbar",
      "betad",
      "betadd",
      "rhodold",
      "tautildeold",
      "thetatilde",
      "norm_a2",
      "max_rbar",
      "min_rbar",
      "count",
      "step_hbar",
      "step_x",
      "step_h",
      "norm_a",
      "norm_r",
      "norm_normal",
      "condition",
      "longest2",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.p_.ld == ld && f.v_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.p_.ld = f.v_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const lsmr_weigh_and_rotate<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<const real_t<T>>(2, k),
          call.contiguous<real_t<T>>(3, k),
          call.contiguous<real_t<T>>(4, k),
          call.contiguous<const real_t<T>>(5, k),
          call.contiguous<real_t<T>>(6, k),
          call.contiguous<real_t<T>>(7, k),
          call.contiguous<real_t<T>>(8, k),
          call.contiguous<real_t<T>>(9, k),
          call.contiguous<real_t<T>>(10, k),
          call.contiguous<real_t<T>>(11, k),
          call.contiguous<real_t<T>>(12, k),
          call.contiguous<real_t<T>>(13, k),
          call.contiguous<real_t<T>>(14, k),
          call.contiguous<real_t<T>>(15, k),
          call.contiguous<real_t<T>>(16, k),
          call.contiguous<real_t<T>>(17, k),
          call.contiguous<real_t<T>>(18, k),
          call.contiguous<real_t<T>>(19, k),
          call.contiguous<real_t<T>>(20, k),
          call.contiguous<real_t<T>>(21, k),
          call.contiguous<real_t<T>>(22, k),
          call.contiguous<real_t<T>>(23, k),
          call.contiguous<real_t<T>>(24, k),
          call.contiguous<real_t<T>>(25, k),
          call.contiguous<real_t<T>>(26, k),
          call.contiguous<real_t<T>>(27, k),
          call.contiguous<real_t<T>>(28, k),
          call.contiguous<real_t<T>>(29, k),
          call.status<T>(30, k),
      };
      call.submit(n * k, Map<lsmr_weigh_and_rotate<T>, lsmr_weigh_and_rotate_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// hbar = h - c hbar, x += c hbar, h = v / |v| - c h; observe |A^H r|, test the rules
struct lsmr_update_entry {
  static constexpr const char* operation = "lsmr.update";
  static constexpr const char* symbol = "lsmr_update";
  static constexpr const char* names[] = {
      "x",
      "v",
      "h",
      "hbar",
      "nv",
      "step_hbar",
      "step_x",
      "step_h",
      "norm_a",
      "norm_r",
      "norm_normal",
      "norm_b",
      "condition",
      "istop",
      "atol",
      "btol",
      "ctol",
      "preconditioned",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x_.ld == ld && f.v_.ld == ld && f.h_.ld == ld && f.hbar_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x_.ld = f.v_.ld = f.h_.ld = f.hbar_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const lsmr_update<T> body{
          call.block<T>(0, n, k),
          call.block<const T>(1, n, k),
          call.block<T>(2, n, k),
          call.block<T>(3, n, k),
          call.contiguous<const real_t<T>>(4, k),
          call.contiguous<const real_t<T>>(5, k),
          call.contiguous<const real_t<T>>(6, k),
          call.contiguous<const real_t<T>>(7, k),
          call.contiguous<const real_t<T>>(8, k),
          call.contiguous<const real_t<T>>(9, k),
          call.contiguous<const real_t<T>>(10, k),
          call.contiguous<const real_t<T>>(11, k),
          call.contiguous<const real_t<T>>(12, k),
          call.contiguous<real_t<T>>(13, k),
          call.contiguous<const real_t<T>>(14, k),
          call.contiguous<const real_t<T>>(15, k),
          call.contiguous<const real_t<T>>(16, k),
          call.contiguous<const u8>(17, k),
          call.status<T>(18, k),
      };
      call.submit(n * k, Map<lsmr_update<T>, lsmr_update_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

} // namespace

void add_lsmr_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<lsmr_start_entry>("lsmr_start", "1000ef5c5c951cf9"),
      method<lsmr_start_entry, Half::VISITING>("lsmr_start_visiting", "1000ef5c5c951cf9"),
      method<lsmr_start_entry, Half::FINISHING>("lsmr_start_finishing", "1000ef5c5c951cf9"),
      method<lsmr_right_and_rotate_entry>("lsmr_right_and_rotate", "1c67488f8d36e478"),
      method<lsmr_right_and_rotate_entry, Half::VISITING>("lsmr_right_and_rotate_visiting", "1c67488f8d36e478"),
      method<lsmr_right_and_rotate_entry, Half::FINISHING>("lsmr_right_and_rotate_finishing", "1c67488f8d36e478"),
      method<lsmr_weigh_and_rotate_entry>("lsmr_weigh_and_rotate", "c1a69b2b48c12f98"),
      method<lsmr_weigh_and_rotate_entry, Half::VISITING>("lsmr_weigh_and_rotate_visiting", "c1a69b2b48c12f98"),
      method<lsmr_weigh_and_rotate_entry, Half::FINISHING>("lsmr_weigh_and_rotate_finishing", "c1a69b2b48c12f98"),
      method<lsmr_update_entry>("lsmr_update", "ea7b31c16bdac4b2"),
      method<lsmr_update_entry, Half::VISITING>("lsmr_update_visiting", "ea7b31c16bdac4b2"),
      method<lsmr_update_entry, Half::FINISHING>("lsmr_update_finishing", "ea7b31c16bdac4b2"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
