// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// p = t, v = z, w = v / |v|, and the scalars of the first iteration
template <class T>
struct lsqr_start {
  mat<T> p_;
  mat<const T> t_;
  mat<T> v_;
  mat<const T> z_;
  mat<T> w_;
  real_t<T>* scale_;
  real_t<T>* nu_;
  real_t<T>* nv_;
  real_t<T>* alpha_;
  real_t<T>* beta_;
  real_t<T>* rhobar_;
  real_t<T>* phibar_;
  real_t<T>* square_w_;
  real_t<T>* dd_;
  real_t<T>* z__;
  real_t<T>* cs2_;
  real_t<T>* sn2_;
  real_t<T>* xx_;
  const real_t<T>* true_r2_;
  const real_t<T>* true_normal2_;
  real_t<T>* norm_a2_;
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
    const T new_w = (z_i / s.v0);
    p_(i, c) = t_i;
    v_(i, c) = z_i;
    w_(i, c) = new_w;
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
    const real_t<T> new_rhobar = e4;
    const real_t<T> new_phibar = e0;
    const real_t<T> new_square_w = real_t<T>(1.0);
    const real_t<T> new_norm_a2 = real_t<T>(0.0);
    const real_t<T> new_dd = real_t<T>(0.0);
    const real_t<T> new_z_ = real_t<T>(0.0);
    const real_t<T> new_xx = real_t<T>(0.0);
    const real_t<T> new_cs2 = real_t<T>(-1.0);
    const real_t<T> new_sn2 = real_t<T>(0.0);
    const real_t<T> new_longest2 = real_t<T>(0.0);
    nu_[c] = new_nu;
    nv_[c] = new_nv;
    alpha_[c] = new_alpha;
    beta_[c] = new_beta;
    scale_[c] = new_scale;
    rhobar_[c] = new_rhobar;
    phibar_[c] = new_phibar;
    square_w_[c] = new_square_w;
    norm_a2_[c] = new_norm_a2;
    dd_[c] = new_dd;
    z__[c] = new_z_;
    xx_[c] = new_xx;
    cs2_[c] = new_cs2;
    sn2_[c] = new_sn2;
    longest2_[c] = new_longest2;
  }
};

// p = A^H u / beta - (beta / alpha) p, alpha = |p|, and the rotation of an iteration
template <class T>
struct lsqr_right_and_rotate {
  mat<T> p_;
  mat<const T> t_;
  const real_t<T>* scale_;
  const real_t<T>* nu_;
  real_t<T>* nv_;
  real_t<T>* alpha_;
  const real_t<T>* beta_;
  real_t<T>* rho_;
  real_t<T>* rhobar_;
  real_t<T>* phibar_;
  real_t<T>* step_x_;
  real_t<T>* step_w_;
  real_t<T>* z__;
  real_t<T>* cs2_;
  real_t<T>* sn2_;
  real_t<T>* xx_;
  real_t<T>* norm_a2_;
  real_t<T>* norm_a_;
  real_t<T>* norm_r_;
  real_t<T>* norm_normal_;
  real_t<T>* norm_y_;
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
    const real_t<T> e0 = ((alpha_[c] * alpha_[c]) + (beta_[c] * beta_[c]));
    const real_t<T> new_longest2 = ((longest2_[c] > e0) ? real_t<T>(longest2_[c]) : real_t<T>(e0));
    const real_t<T> e2 = (norm_a2_[c] + ((alpha_[c] * alpha_[c]) + (beta_[c] * beta_[c])));
    const real_t<T> new_norm_a2 = e2;
    const real_t<T> e4 = square_root(((rhobar_[c] * rhobar_[c]) + (beta_[c] * beta_[c])));
    const real_t<T> e5 = ((e4 > real_t<T>(0.0)) ? real_t<T>(e4) : real_t<T>(real_t<T>(1.0)));
    const real_t<T> e6 = ((e4 > real_t<T>(0.0)) ? real_t<T>((rhobar_[c] / e5)) : real_t<T>(real_t<T>(1.0)));
    const real_t<T> e7 = (e6 * phibar_[c]);
    const real_t<T> new_step_x = (e7 / e4);
    const real_t<T> e9 = (beta_[c] / e5);
    const real_t<T> e10 = square_root(total);
    const real_t<T> e11 = (e10 / scale_[c]);
    const real_t<T> e12 = (e9 * e11);
    const real_t<T> new_step_w = (e12 / e4);
    const real_t<T> e14 = (e7 - ((sn2_[c] * e4) * z__[c]));
    const real_t<T> e15 = (-(cs2_[c] * e4));
    const real_t<T> e16 = (e14 / e15);
    const real_t<T> new_norm_y = square_root((xx_[c] + (e16 * e16)));
    const real_t<T> e18 = square_root(((e15 * e15) + (e12 * e12)));
    const real_t<T> e19 = ((e18 > real_t<T>(0.0)) ? real_t<T>(e18) : real_t<T>(real_t<T>(1.0)));
    const real_t<T> new_cs2 = ((e18 > real_t<T>(0.0)) ? real_t<T>((e15 / e19)) : real_t<T>(real_t<T>(1.0)));
    const real_t<T> new_sn2 = (e12 / e19);
    const real_t<T> e22 = (e14 / e18);
    const real_t<T> new_z_ = e22;
    const real_t<T> new_xx = (xx_[c] + (e22 * e22));
    const real_t<T> new_norm_a = square_root(e2);
    const real_t<T> e26 = (e9 * phibar_[c]);
    const real_t<T> new_norm_r = e26;
    const real_t<T> new_norm_normal = (e11 * magnitude((e9 * e7)));
    const real_t<T> new_nv = e10;
    const real_t<T> new_alpha = e11;
    const real_t<T> new_rho = e4;
    const real_t<T> new_rhobar = (-(e6 * e11));
    const real_t<T> new_phibar = e26;
    longest2_[c] = new_longest2;
    norm_a2_[c] = new_norm_a2;
    step_x_[c] = new_step_x;
    step_w_[c] = new_step_w;
    norm_y_[c] = new_norm_y;
    cs2_[c] = new_cs2;
    sn2_[c] = new_sn2;
    z__[c] = new_z_;
    xx_[c] = new_xx;
    norm_a_[c] = new_norm_a;
    norm_r_[c] = new_norm_r;
    norm_normal_[c] = new_norm_normal;
    nv_[c] = new_nv;
    alpha_[c] = new_alpha;
    rho_[c] = new_rho;
    rhobar_[c] = new_rhobar;
    phibar_[c] = new_phibar;
  }
};

// alpha = sqrt(<p, v>) with v = M p, and the rotation; halts if M is indefinite
template <class T>
struct lsqr_weigh_and_rotate {
  mat<const T> p_;
  mat<const T> v_;
  const real_t<T>* scale_;
  real_t<T>* nv_;
  real_t<T>* alpha_;
  const real_t<T>* beta_;
  real_t<T>* rho_;
  real_t<T>* rhobar_;
  real_t<T>* phibar_;
  real_t<T>* step_x_;
  real_t<T>* step_w_;
  real_t<T>* z__;
  real_t<T>* cs2_;
  real_t<T>* sn2_;
  real_t<T>* xx_;
  real_t<T>* norm_a2_;
  real_t<T>* norm_a_;
  real_t<T>* norm_r_;
  real_t<T>* norm_normal_;
  real_t<T>* norm_y_;
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
    const real_t<T> e0 = ((alpha_[c] * alpha_[c]) + (beta_[c] * beta_[c]));
    const real_t<T> new_longest2 = ((longest2_[c] > e0) ? real_t<T>(longest2_[c]) : real_t<T>(e0));
    const real_t<T> e2 = (norm_a2_[c] + ((alpha_[c] * alpha_[c]) + (beta_[c] * beta_[c])));
    const real_t<T> new_norm_a2 = e2;
    const real_t<T> e4 = square_root(((rhobar_[c] * rhobar_[c]) + (beta_[c] * beta_[c])));
    const real_t<T> e5 = ((e4 > real_t<T>(0.0)) ? real_t<T>(e4) : real_t<T>(real_t<T>(1.0)));
    const real_t<T> e6 = ((e4 > real_t<T>(0.0)) ? real_t<T>((rhobar_[c] / e5)) : real_t<T>(real_t<T>(1.0)));
    const real_t<T> e7 = (e6 * phibar_[c]);
    const real_t<T> new_step_x = (e7 / e4);
    const real_t<T> e9 = (beta_[c] / e5);
    const real_t<T> e10 = real(total);
    const real_t<T> e11 = square_root(e10);
    const real_t<T> e12 = (e11 / scale_[c]);
    const real_t<T> e13 = (e9 * e12);
    const real_t<T> new_step_w = (e13 / e4);
    const real_t<T> e15 = (e7 - ((sn2_[c] * e4) * z__[c]));
    const real_t<T> e16 = (-(cs2_[c] * e4));
    const real_t<T> e17 = (e15 / e16);
    const real_t<T> new_norm_y = square_root((xx_[c] + (e17 * e17)));
    const real_t<T> e19 = square_root(((e16 * e16) + (e13 * e13)));
    const real_t<T> e20 = ((e19 > real_t<T>(0.0)) ? real_t<T>(e19) : real_t<T>(real_t<T>(1.0)));
    const real_t<T> new_cs2 = ((e19 > real_t<T>(0.0)) ? real_t<T>((e16 / e20)) : real_t<T>(real_t<T>(1.0)));
    const real_t<T> new_sn2 = (e13 / e20);
    const real_t<T> e23 = (e15 / e19);
    const real_t<T> new_z_ = e23;
    const real_t<T> new_xx = (xx_[c] + (e23 * e23));
    const real_t<T> new_norm_a = square_root(e2);
    const real_t<T> e27 = (e9 * phibar_[c]);
    const real_t<T> new_norm_r = e27;
    const real_t<T> new_norm_normal = (e12 * magnitude((e9 * e7)));
    const real_t<T> new_nv = e11;
    const real_t<T> new_alpha = e12;
    const real_t<T> new_rho = e4;
    const real_t<T> new_rhobar = (-(e6 * e12));
    const real_t<T> new_phibar = e27;
    longest2_[c] = new_longest2;
    norm_a2_[c] = new_norm_a2;
    step_x_[c] = new_step_x;
    step_w_[c] = new_step_w;
    norm_y_[c] = new_norm_y;
    cs2_[c] = new_cs2;
    sn2_[c] = new_sn2;
    z__[c] = new_z_;
    xx_[c] = new_xx;
    norm_a_[c] = new_norm_a;
    norm_r_[c] = new_norm_r;
    norm_normal_[c] = new_norm_normal;
    nv_[c] = new_nv;
    alpha_[c] = new_alpha;
    rho_[c] = new_rho;
    rhobar_[c] = new_rhobar;
    phibar_[c] = new_phibar;
    if (finite(e10) && (e10 < real_t<T>(0.0)))
      status.halt(c, INDEFINITE);
  }
};

// variance += |w|^2 / rho^2 for each element
template <class T>
struct lsqr_vary {
  mat<const T> w_;
  mat<T> variance_;
  const real_t<T>* rho_;
  status_of<T> status;
  using sum = none;
  struct column_state {
    bool active;
    real_t<T> rho_;
  };

  WL_DEVICE column_state column(i64 c) const {
    const bool active = status.is_running(c);
    return {active, active ? rho_[c] : real_t<T>(0)};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T variance_i = variance_(i, c);
    const T w_i = w_(i, c);
    const real_t<T> e2 = (magnitude(w_i) / s.rho_);
    const T new_variance = (variance_i + (e2 * e2));
    variance_(i, c) = new_variance;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

// x += (phi / rho) w, w = v / |v| - (theta / rho) w; observe |A^H r|, test the rules
template <class T>
struct lsqr_update {
  mat<T> x_;
  mat<const T> v_;
  mat<T> w_;
  const real_t<T>* nv_;
  const real_t<T>* rho_;
  real_t<T>* square_w_;
  const real_t<T>* step_x_;
  const real_t<T>* step_w_;
  real_t<T>* dd_;
  const real_t<T>* norm_a_;
  const real_t<T>* norm_r_;
  const real_t<T>* norm_normal_;
  const real_t<T>* norm_y_;
  const real_t<T>* norm_b_;
  real_t<T>* condition_;
  real_t<T>* istop_;
  const real_t<T>* atol_;
  const real_t<T>* btol_;
  const real_t<T>* ctol_;
  const u8* preconditioned_;
  status_of<T> status;
  using sum = real_t<T>;
  struct column_state {
    bool active;
    real_t<T> step_x_;
    real_t<T> v1;
    real_t<T> step_w_;
  };

  WL_DEVICE column_state column(i64 c) const {
    if (!status.is_running(c))
      return {false, real_t<T>(0), real_t<T>(0), real_t<T>(0)};
    return {true, step_x_[c], ((nv_[c] > real_t<T>(0.0)) ? real_t<T>((real_t<T>(1.0) / nv_[c])) : real_t<T>(real_t<T>(0.0))), step_w_[c]};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T x_i = x_(i, c);
    const T w_i = w_(i, c);
    const T new_x = (x_i + (s.step_x_ * w_i));
    const T v_i = v_(i, c);
    const T new_w = ((s.v1 * v_i) - (s.step_w_ * w_i));
    x_(i, c) = new_x;
    w_(i, c) = new_w;
    return square(w_i);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const real_t<T> e0 = (dd_[c] + (((preconditioned_[c] != 0) ? real_t<T>(square_w_[c]) : real_t<T>(total)) / (rho_[c] * rho_[c])));
    const real_t<T> new_dd = e0;
    const real_t<T> new_square_w = (real_t<T>(1.0) + ((step_w_[c] * step_w_[c]) * square_w_[c]));
    const real_t<T> e3 = (norm_a_[c] * square_root(e0));
    const real_t<T> new_condition = e3;
    const real_t<T> e5 = (norm_r_[c] / norm_b_[c]);
    const real_t<T> e6 = (((preconditioned_[c] != 0) ? real_t<T>(norm_b_[c]) : real_t<T>((norm_a_[c] * norm_y_[c]))) / norm_b_[c]);
    const real_t<T> e7 = (norm_normal_[c] / ((norm_a_[c] * norm_r_[c]) + epsilon<T>));
    const real_t<T> e8 = (real_t<T>(1.0) / (e3 + epsilon<T>));
    const real_t<T> e9 = (real_t<T>(0.5) * epsilon<T>);
    const real_t<T> e10 = ((e5 <= (btol_[c] + (atol_[c] * e6))) ? real_t<T>(real_t<T>(1.0)) : real_t<T>(((e7 <= atol_[c]) ? real_t<T>(real_t<T>(2.0)) : real_t<T>(((e8 <= ctol_[c]) ? real_t<T>(real_t<T>(3.0)) : real_t<T>((((e5 / (real_t<T>(1.0) + e6)) <= e9) ? real_t<T>(real_t<T>(4.0)) : real_t<T>(((e7 <= e9) ? real_t<T>(real_t<T>(5.0)) : real_t<T>(((e8 <= e9) ? real_t<T>(real_t<T>(6.0)) : real_t<T>(real_t<T>(0.0)))))))))))));
    const real_t<T> new_istop = e10;
    dd_[c] = new_dd;
    square_w_[c] = new_square_w;
    condition_[c] = new_condition;
    istop_[c] = new_istop;
    status.observe(c, norm_normal_[c]);
    if (status.is_running(c)) {
      if (e10 > real_t<T>(0.0))
        status.halt(c, CONVERGED);
    }
  }
};

namespace {

// p = t, v = z, w = v / |v|, and the scalars of the first iteration
struct lsqr_start_entry {
  static constexpr const char* operation = "lsqr.start";
  static constexpr const char* symbol = "lsqr_start";
  static constexpr const char* names[] = {
      "p",
      "t",
      "v",
      "z",
      "w",
      "scale",
      "nu",
      "nv",
      "alpha",
      "beta",
      "rhobar",
      "phibar",
      "square_w",
      "dd",
      "z_",
      "cs2",
      "sn2",
      "xx",
      "true_r2",
      "true_normal2",
      "norm_a2",
      "longest2",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.p_.ld == ld && f.t_.ld == ld && f.v_.ld == ld && f.z_.ld == ld && f.w_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.p_.ld = f.t_.ld = f.v_.ld = f.z_.ld = f.w_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const lsqr_start<T> body{
          call.block<T>(0, n, k),
          call.block<const T>(1, n, k),
          call.block<T>(2, n, k),
          call.block<const T>(3, n, k),
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
          call.contiguous<real_t<T>>(14, k),
          call.contiguous<real_t<T>>(15, k),
          call.contiguous<real_t<T>>(16, k),
          call.contiguous<real_t<T>>(17, k),
          call.contiguous<const real_t<T>>(18, k),
          call.contiguous<const real_t<T>>(19, k),
          call.contiguous<real_t<T>>(20, k),
          call.contiguous<real_t<T>>(21, k),
          call.status<T>(22, k),
      };
      call.submit(n * k, Map<lsqr_start<T>, lsqr_start_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// p = A^H u / beta - (beta / alpha) p, alpha = |p|, and the rotation of an iteration
struct lsqr_right_and_rotate_entry {
  static constexpr const char* operation = "lsqr.right_and_rotate";
  static constexpr const char* symbol = "lsqr_right_and_rotate";
  static constexpr const char* names[] = {
      "p",
      "t",
      "scale",
      "nu",
      "nv",
      "alpha",
      "beta",
      "rho",
      "rhobar",
      "phibar",
      "step_x",
      "step_w",
      "z_",
      "cs2",
      "sn2",
      "xx",
      "norm_a2",
      "norm_a",
      "norm_r",
      "norm_normal",
      "norm_y",
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
      const lsqr_right_and_rotate<T> body{
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
          call.status<T>(22, k),
      };
      call.submit(n * k, Map<lsqr_right_and_rotate<T>, lsqr_right_and_rotate_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// alpha = sqrt(<p, v>) with v = M p, and the rotation; halts if M is indefinite
struct lsqr_weigh_and_rotate_entry {
  static constexpr const char* operation = "lsqr.weigh_and_rotate";
  static constexpr const char* symbol = "lsqr_weigh_and_rotate";
  static constexpr const char* names[] = {
      "p",
      "v",
      "scale",
      "nv",
      "alpha",
      "beta",
      "rho",
      "rhobar",
      "phibar",
      "step_x",
      "step_w",
      "z_",
      "cs2",
      "sn2",
      "xx",
      "norm_a2",
      "norm_a",
      "norm_r",
      "norm_normal",
      "norm_y",
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
      const lsqr_weigh_and_rotate<T> body{
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
          call.status<T>(21, k),
      };
      call.submit(n * k, Map<lsqr_weigh_and_rotate<T>, lsqr_weigh_and_rotate_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// variance += |w|^2 / rho^2 for each element
struct lsqr_vary_entry {
  static constexpr const char* operation = "lsqr.vary";
  static constexpr const char* symbol = "lsqr_vary";
  static constexpr const char* names[] = {
      "w",
      "variance",
      "rho",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.w_.ld == ld && f.variance_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.w_.ld = f.variance_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const lsqr_vary<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.contiguous<const real_t<T>>(2, k),
          call.status<T>(3, k),
      };
      call.submit(n * k, Map<lsqr_vary<T>, lsqr_vary_entry>(body, n, k));
    });
    return none_object();
  }
};

// x += (phi / rho) w, w = v / |v| - (theta / rho) w; observe |A^H r|, test the rules
struct lsqr_update_entry {
  static constexpr const char* operation = "lsqr.update";
  static constexpr const char* symbol = "lsqr_update";
  static constexpr const char* names[] = {
      "x",
      "v",
      "w",
      "nv",
      "rho",
      "square_w",
      "step_x",
      "step_w",
      "dd",
      "norm_a",
      "norm_r",
      "norm_normal",
      "norm_y",
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
    return f.x_.ld == ld && f.v_.ld == ld && f.w_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x_.ld = f.v_.ld = f.w_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const lsqr_update<T> body{
          call.block<T>(0, n, k),
          call.block<const T>(1, n, k),
          call.block<T>(2, n, k),
          call.contiguous<const real_t<T>>(3, k),
          call.contiguous<const real_t<T>>(4, k),
          call.contiguous<real_t<T>>(5, k),
          call.contiguous<const real_t<T>>(6, k),
          call.contiguous<const real_t<T>>(7, k),
          call.contiguous<real_t<T>>(8, k),
          call.contiguous<const real_t<T>>(9, k),
          call.contiguous<const real_t<T>>(10, k),
          call.contiguous<const real_t<T>>(11, k),
          call.contiguous<const real_t<T>>(12, k),
          call.contiguous<const real_t<T>>(13, k),
          call.contiguous<real_t<T>>(14, k),
          call.contiguous<real_t<T>>(15, k),
          call.contiguous<const real_t<T>>(16, k),
          call.contiguous<const real_t<T>>(17, k),
          call.contiguous<const real_t<T>>(18, k),
          call.contiguous<const u8>(19, k),
          call.status<T>(20, k),
      };
      call.submit(n * k, Map<lsqr_update<T>, lsqr_update_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

} // namespace

void add_lsqr_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<lsqr_start_entry>("lsqr_start", "3941eee96764d003"),
      method<lsqr_start_entry, Half::VISITING>("lsqr_start_visiting", "3941eee96764d003"),
      method<lsqr_start_entry, Half::FINISHING>("lsqr_start_finishing", "3941eee96764d003"),
      method<lsqr_right_and_rotate_entry>("lsqr_right_and_rotate", "6fa91c598c62bba2"),
      method<lsqr_right_and_rotate_entry, Half::VISITING>("lsqr_right_and_rotate_visiting", "6fa91c598c62bba2"),
      method<lsqr_right_and_rotate_entry, Half::FINISHING>("lsqr_right_and_rotate_finishing", "6fa91c598c62bba2"),
      method<lsqr_weigh_and_rotate_entry>("lsqr_weigh_and_rotate", "ca98cf64ded05997"),
      method<lsqr_weigh_and_rotate_entry, Half::VISITING>("lsqr_weigh_and_rotate_visiting", "ca98cf64ded05997"),
      method<lsqr_weigh_and_rotate_entry, Half::FINISHING>("lsqr_weigh_and_rotate_finishing", "ca98cf64ded05997"),
      method<lsqr_vary_entry>("lsqr_vary", "1a4922362ba2439f"),
      method<lsqr_update_entry>("lsqr_update", "b7229960e63ae514"),
      method<lsqr_update_entry, Half::VISITING>("lsqr_update_visiting", "b7229960e63ae514"),
      method<lsqr_update_entry, Half::FINISHING>("lsqr_update_finishing", "b7229960e63ae514"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
