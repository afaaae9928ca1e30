// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// v = r, v_s = conj(r), p = p_s = d = s = 0, and the scalars of the recurrences
template <class T>
struct qmr_start {
  mat<const T> r_;
  mat<T> v_;
  mat<T> v_s_;
  mat<T> p_;
  mat<T> p_s_;
  mat<T> d_;
  mat<T> s_;
  T* delta_;
  T* epsilon__;
  T* beta_;
  T* eta_;
  real_t<T>* rho2_;
  real_t<T>* rho_;
  real_t<T>* xi2_;
  real_t<T>* gamma_;
  real_t<T>* theta_;
  status_of<T> status;
  using sum = real_t<T>;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T r_i = r_(i, c);
    const T new_v_s = conj(r_i);
    v_(i, c) = r_i;
    v_s_(i, c) = new_v_s;
    p_(i, c) = T(real_t<T>(0.0));
    p_s_(i, c) = T(real_t<T>(0.0));
    d_(i, c) = T(real_t<T>(0.0));
    s_(i, c) = T(real_t<T>(0.0));
    return square(r_i);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const real_t<T> new_rho2 = total;
    const real_t<T> new_xi2 = total;
    const T new_delta = T(total);
    const T new_epsilon_ = T(real_t<T>(0.0));
    const T new_beta = T(real_t<T>(0.0));
    const T new_eta = T(real_t<T>(-1.0));
    const real_t<T> new_gamma = real_t<T>(1.0);
    const real_t<T> new_theta = real_t<T>(0.0);
    const real_t<T> new_rho = real_t<T>(0.0);
    rho2_[c] = new_rho2;
    xi2_[c] = new_xi2;
    delta_[c] = new_delta;
    epsilon__[c] = new_epsilon_;
    beta_[c] = new_beta;
    eta_[c] = new_eta;
    gamma_[c] = new_gamma;
    theta_[c] = new_theta;
    rho_[c] = new_rho;
  }
};

// xi2 = |y_s|^2, delta = sum y_s v
template <class T>
struct qmr_weigh {
  mat<const T> v_;
  mat<const T> y_s_;
  T* delta_;
  real_t<T>* xi2_;
  status_of<T> status;
  struct sum {
    real_t<T> v0;
    T v1;
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
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T y_s_i = y_s_(i, c);
    const T v_i = v_(i, c);
    return {square(y_s_i), (y_s_i * v_i)};
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const real_t<T> new_xi2 = total.v0;
    const T new_delta = total.v1;
    xi2_[c] = new_xi2;
    delta_[c] = new_delta;
  }
};

// Normalize v and v_s, and set p = t / rho, p_s = y_s / xi; halts where delta is 0
template <class T>
struct qmr_begin {
  mat<T> v_;
  mat<T> v_s_;
  mat<const T> t_;
  mat<const T> y_s_;
  mat<T> p_;
  mat<T> p_s_;
  T* delta_;
  const real_t<T>* rho2_;
  real_t<T>* rho_;
  const real_t<T>* xi2_;
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
    return {true, square_root(rho2_[c]), square_root(xi2_[c])};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T t_i = t_(i, c);
    const T new_p = (t_i / s.v0);
    const T y_s_i = y_s_(i, c);
    const T new_p_s = (y_s_i / s.v1);
    const T v_i = v_(i, c);
    const T new_v = (v_i / s.v0);
    const T v_s_i = v_s_(i, c);
    const T new_v_s = (v_s_i / s.v1);
    p_(i, c) = new_p;
    p_s_(i, c) = new_p_s;
    v_(i, c) = new_v;
    v_s_(i, c) = new_v_s;
    return real_t<T>(0);
  }
  WL_DEVICE void finish(i64 c, sum) const {
    const real_t<T> e0 = square_root(rho2_[c]);
    const real_t<T> new_rho = e0;
    const T e2 = (delta_[c] / (e0 * square_root(xi2_[c])));
    const T new_delta = e2;
    rho_[c] = new_rho;
    delta_[c] = new_delta;
    if (!finite(e2))
      status.halt(c, NOT_FINITE);
    else if (e2 == real_t<T>(0.0))
      status.halt(c, BREAKDOWN);
  }
};

// epsilon = sum p_s q, beta = epsilon / delta; where one is 0 the column breaks down
template <class T>
struct qmr_length {
  mat<const T> p_s_;
  mat<const T> q_;
  const T* delta_;
  T* epsilon__;
  T* beta_;
  status_of<T> status;
  using sum = T;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T p_s_i = p_s_(i, c);
    const T q_i = q_(i, c);
    return (p_s_i * q_i);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const T new_epsilon_ = total;
    const T e1 = (total / delta_[c]);
    const T new_beta = e1;
    epsilon__[c] = new_epsilon_;
    beta_[c] = new_beta;
    if (!(finite(total) && finite(delta_[c])))
      status.halt(c, NOT_FINITE);
    else if ((delta_[c] == real_t<T>(0.0)) || !finite(e1))
      status.halt(c, BREAKDOWN);
    else if (total == real_t<T>(0.0))
      status.halt(c, BREAKDOWN);
  }
};

// v = q - beta v, v_s = q_s - beta v_s; rho2 = |v|^2, xi2 = |v_s|^2, delta = sum v_s v
template <class T>
struct qmr_extend {
  mat<T> v_;
  mat<T> v_s_;
  mat<const T> q_;
  mat<const T> q_s_;
  T* delta_;
  const T* beta_;
  real_t<T>* rho2_;
  real_t<T>* xi2_;
  status_of<T> status;
  struct sum {
    real_t<T> v0;
    real_t<T> v1;
    T v2;
    WL_DEVICE sum& operator+=(sum o) {
      v0 += o.v0;
      v1 += o.v1;
      v2 += o.v2;
      return *this;
    }
    template <class V>
    WL_DEVICE void each(const V& visit) {
      each_number(v0, visit);
      each_number(v1, visit);
      each_number(v2, visit);
    }
  };
  struct column_state {
    bool active;
    T beta_;
  };

  WL_DEVICE column_state column(i64 c) const {
    const bool active = status.is_running(c);
    return {active, active ? beta_[c] : T(0)};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T q_i = q_(i, c);
    const T v_i = v_(i, c);
    const T new_v = (q_i - (s.beta_ * v_i));
    const T q_s_i = q_s_(i, c);
    const T v_s_i = v_s_(i, c);
    const T new_v_s = (q_s_i - (s.beta_ * v_s_i));
    v_(i, c) = new_v;
    v_s_(i, c) = new_v_s;
    return {square(new_v), square(new_v_s), (new_v_s * new_v)};
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const real_t<T> new_rho2 = total.v0;
    const real_t<T> new_xi2 = total.v1;
    const T new_delta = total.v2;
    rho2_[c] = new_rho2;
    xi2_[c] = new_xi2;
    delta_[c] = new_delta;
  }
};

// d, s, then x += d, r -= s, and p, p_s, v, v_s of the next iteration; observes |r|
template <class T>
struct qmr_update {
  mat<T> x_;
  mat<T> r_;
  mat<T> v_;
  mat<T> v_s_;
  mat<const T> t_;
  mat<const T> y_s_;
  mat<T> p_;
  mat<T> p_s_;
  mat<const T> q_;
  mat<T> d_;
  mat<T> s_;
  T* delta_;
  const T* epsilon__;
  const T* beta_;
  T* eta_;
  const real_t<T>* rho2_;
  real_t<T>* rho_;
  const real_t<T>* xi2_;
  real_t<T>* gamma_;
  real_t<T>* theta_;
  status_of<T> status;
  using sum = real_t<T>;
  struct column_state {
    bool active;
    T v0;
    real_t<T> v1;
    bool v2;
    real_t<T> v3;
    T v4;
    real_t<T> v5;
    T v6;
  };

  WL_DEVICE column_state column(i64 c) const {
    if (!status.is_running(c))
      return {false, T(0), real_t<T>(0), bool(0), real_t<T>(0), T(0), real_t<T>(0), T(0)};
    const real_t<T> e0 = square_root(rho2_[c]);
    const real_t<T> e1 = (e0 / (gamma_[c] * magnitude(beta_[c])));
    const real_t<T> e2 = (real_t<T>(1.0) / square_root((real_t<T>(1.0) + (e1 * e1))));
    const real_t<T> e3 = (e2 / gamma_[c]);
    const real_t<T> e4 = square_root(xi2_[c]);
    const bool e5 = ((e0 > real_t<T>(0.0)) && (e4 > real_t<T>(0.0)));
    const T e6 = (e5 ? T(((e5 ? T((delta_[c] / (e0 * e4))) : T(real_t<T>(0.0))) / epsilon__[c])) : T(real_t<T>(0.0)));
    return {true, ((((-eta_[c]) * rho_[c]) / beta_[c]) * (e3 * e3)), ((theta_[c] * e2) * (theta_[c] * e2)), e5, e0, (e4 * e6), e4, (e0 * e6)};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T p_i = p_(i, c);
    const T d_i = d_(i, c);
    const T new_d = ((s.v0 * p_i) + (s.v1 * d_i));
    const T q_i = q_(i, c);
    const T s_i = s_(i, c);
    const T new_s = ((s.v0 * q_i) + (s.v1 * s_i));
    const T x_i = x_(i, c);
    const T new_x = (x_i + new_d);
    const T r_i = r_(i, c);
    const T new_r = (r_i - new_s);
    const T t_i = t_(i, c);
    const T new_p = ((s.v2 ? T((t_i / s.v3)) : T(real_t<T>(0.0))) - (s.v4 * p_i));
    const T y_s_i = y_s_(i, c);
    const T p_s_i = p_s_(i, c);
    const T new_p_s = ((s.v2 ? T((y_s_i / s.v5)) : T(real_t<T>(0.0))) - (s.v6 * p_s_i));
    const T v_i = v_(i, c);
    const T new_v = (s.v2 ? T((v_i / s.v3)) : T(real_t<T>(0.0)));
    const T v_s_i = v_s_(i, c);
    const T new_v_s = (s.v2 ? T((v_s_i / s.v5)) : T(real_t<T>(0.0)));
    d_(i, c) = new_d;
    s_(i, c) = new_s;
    x_(i, c) = new_x;
    r_(i, c) = new_r;
    p_(i, c) = new_p;
    p_s_(i, c) = new_p_s;
    v_(i, c) = new_v;
    v_s_(i, c) = new_v_s;
    return square(new_r);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const real_t<T> e0 = square_root(rho2_[c]);
    const real_t<T> e1 = (e0 / (gamma_[c] * magnitude(beta_[c])));
    const real_t<T> new_theta = e1;
    const real_t<T> e3 = (real_t<T>(1.0) / square_root((real_t<T>(1.0) + (e1 * e1))));
    const real_t<T> new_gamma = e3;
    const real_t<T> e5 = (e3 / gamma_[c]);
    const T e6 = ((((-eta_[c]) * rho_[c]) / beta_[c]) * (e5 * e5));
    const T new_eta = e6;
    const real_t<T> new_rho = e0;
    const real_t<T> e9 = square_root(xi2_[c]);
    const T e10 = (((e0 > real_t<T>(0.0)) && (e9 > real_t<T>(0.0))) ? T((delta_[c] / (e0 * e9))) : T(real_t<T>(0.0)));
    const T new_delta = e10;
    theta_[c] = new_theta;
    gamma_[c] = new_gamma;
    eta_[c] = new_eta;
    rho_[c] = new_rho;
    delta_[c] = new_delta;
    status.observe(c, square_root(total));
    if (status.is_running(c)) {
      if (!(finite(e10) && finite(real(e6))))
        status.halt(c, NOT_FINITE);
      else if (e10 == real_t<T>(0.0))
        status.halt(c, BREAKDOWN);
    }
  }
};

namespace {

// v = r, v_s = conj(r), p = p_s = d = s = 0, and the scalars of the recurrences
struct qmr_start_entry {
  static constexpr const char* operation = "qmr.start";
  static constexpr const char* symbol = "qmr_start";
  static constexpr const char* names[] = {
      "r",
      "v",
      "v_s",
      "p",
      "p_s",
      "d",
      "s",
      "delta",
      "epsilon_",
      "beta",
      "eta",
      "rho2",
      "rho",
      "xi2",
      "gamma",
      "theta",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.r_.ld == ld && f.v_.ld == ld && f.v_s_.ld == ld && f.p_.ld == ld && f.p_s_.ld == ld && f.d_.ld == ld && f.s_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.r_.ld = f.v_.ld = f.v_s_.ld = f.p_.ld = f.p_s_.ld = f.d_.ld = f.s_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const qmr_start<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<T>(2, n, k),
          call.block<T>(3, n, k),
          call.block<T>(4, n, k),
          call.block<T>(5, n, k),
          call.block<T>(6, n, k),
          call.contiguous<T>(7, k),
          call.contiguous<T>(8, k),
          call.contiguous<T>(9, k),
          call.contiguous<T>(10, k),
          call.contiguous<real_t<T>>(11, k),
          call.contiguous<real_t<T>>(12, k),
          call.contiguous<real_t<T>>(13, k),
          call.contiguous<real_t<T>>(14, k),
          call.contiguous<real_t<T>>(15, k),
          call.status<T>(16, k),
      };
      call.submit(n * k, Map<qmr_start<T>, qmr_start_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// xi2 = |y_s|^2, delta = sum y_s v
struct qmr_weigh_entry {
  static constexpr const char* operation = "qmr.weigh";
  static constexpr const char* symbol = "qmr_weigh";
  static constexpr const char* names[] = {
      "v",
      "y_s",
      "delta",
      "xi2",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.v_.ld == ld && f.y_s_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.v_.ld = f.y_s_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const qmr_weigh<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<T>(2, k),
          call.contiguous<real_t<T>>(3, k),
          call.status<T>(4, k),
      };
      call.submit(n * k, Map<qmr_weigh<T>, qmr_weigh_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// Normalize v and v_s, and set p = t / rho, p_s = y_s / xi; halts where delta is 0
struct qmr_begin_entry {
  static constexpr const char* operation = "qmr.begin";
  static constexpr const char* symbol = "qmr_begin";
  static constexpr const char* names[] = {
      "v",
      "v_s",
      "t",
      "y_s",
      "p",
      "p_s",
      "delta",
      "rho2",
      "rho",
      "xi2",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.v_.ld == ld && f.v_s_.ld == ld && f.t_.ld == ld && f.y_s_.ld == ld && f.p_.ld == ld && f.p_s_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.v_.ld = f.v_s_.ld = f.t_.ld = f.y_s_.ld = f.p_.ld = f.p_s_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const qmr_begin<T> body{
          call.block<T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<const T>(3, n, k),
          call.block<T>(4, n, k),
          call.block<T>(5, n, k),
          call.contiguous<T>(6, k),
          call.contiguous<const real_t<T>>(7, k),
          call.contiguous<real_t<T>>(8, k),
          call.contiguous<const real_t<T>>(9, k),
          call.status<T>(10, k),
      };
      call.submit(n * k, Map<qmr_begin<T>, qmr_begin_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// epsilon = sum p_s q, beta = epsilon / delta; where one is 0 the column breaks down
struct qmr_length_entry {
  static constexpr const char* operation = "qmr.length";
  static constexpr const char* symbol = "qmr_length";
  static constexpr const char* names[] = {
      "p_s",
      "q",
      "delta",
      "epsilon_",
      "beta",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.p_s_.ld == ld && f.q_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.p_s_.ld = f.q_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const qmr_length<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<const T>(2, k),
          call.contiguous<T>(3, k),
          call.contiguous<T>(4, k),
          call.status<T>(5, k),
      };
      call.submit(n * k, Map<qmr_length<T>, qmr_length_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// v = q - beta v, v_s = q_s - beta v_s; rho2 = |v|^2, xi2 = |v_s|^2, delta = sum v_s v
struct qmr_extend_entry {
  static constexpr const char* operation = "qmr.extend";
  static constexpr const char* symbol = "qmr_extend";
  static constexpr const char* names[] = {
      "v",
      "v_s",
      "q",
      "q_s",
      "delta",
      "beta",
      "rho2",
      "xi2",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.v_.ld == ld && f.v_s_.ld == ld && f.q_.ld == ld && f.q_s_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.v_.ld = f.v_s_.ld = f.q_.ld = f.q_s_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const qmr_extend<T> body{
          call.block<T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<const T>(3, n, k),
          call.contiguous<T>(4, k),
          call.contiguous<const T>(5, k),
          call.contiguous<real_t<T>>(6, k),
          call.contiguous<real_t<T>>(7, k),
          call.status<T>(8, k),
      };
      call.submit(n * k, Map<qmr_extend<T>, qmr_extend_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// d, s, then x += d, r -= s, and p, p_s, v, v_s of the next iteration; observes |r|
struct qmr_update_entry {
  static constexpr const char* operation = "qmr.update";
  static constexpr const char* symbol = "qmr_update";
  static constexpr const char* names[] = {
      "x",
      "r",
      "v",
      "v_s",
      "t",
      "y_s",
      "p",
      "p_s",
      "q",
      "d",
      "s",
      "delta",
      "epsilon_",
      "beta",
      "eta",
      "rho2",
      "rho",
      "xi2",
      "gamma",
      "theta",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x_.ld == ld && f.r_.ld == ld && f.v_.ld == ld && f.v_s_.ld == ld && f.t_.ld == ld && f.y_s_.ld == ld && f.p_.ld == ld && f.p_s_.ld == ld && f.q_.ld == ld && f.d_.ld == ld && f.s_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x_.ld = f.r_.ld = f.v_.ld = f.v_s_.ld = f.t_.ld = f.y_s_.ld = f.p_.ld = f.p_s_.ld = f.q_.ld = f.d_.ld = f.s_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const qmr_update<T> body{
          call.block<T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<T>(2, n, k),
          call.block<T>(3, n, k),
          call.block<const T>(4, n, k),
          call.block<const T>(5, n, k),
          call.block<T>(6, n, k),
          call.block<T>(7, n, k),
          call.block<const T>(8, n, k),
          call.block<T>(9, n, k),
          call.block<T>(10, n, k),
          call.contiguous<T>(11, k),
          call.contiguous<const T>(12, k),
          call.contiguous<const T>(13, k),
          call.contiguous<T>(14, k),
          call.contiguous<const real_t<T>>(15, k),
          call.contiguous<real_t<T>>(16, k),
          call.contiguous<const real_t<T>>(17, k),
          call.contiguous<real_t<T>>(18, k),
          call.contiguous<real_t<T>>(19, k),
          call.status<T>(20, k),
      };
      call.submit(n * k, Map<qmr_update<T>, qmr_update_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

} // namespace

void add_qmr_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<qmr_start_entry>("qmr_start", "3ea71c654650c284"),
      method<qmr_start_entry, Half::VISITING>("qmr_start_visiting", "3ea71c654650c284"),
      method<qmr_start_entry, Half::FINISHING>("qmr_start_finishing", "3ea71c654650c284"),
      method<qmr_weigh_entry>("qmr_weigh", "2d259d773dd76f5c"),
      method<qmr_weigh_entry, Half::VISITING>("qmr_weigh_visiting", "2d259d773dd76f5c"),
      method<qmr_weigh_entry, Half::FINISHING>("qmr_weigh_finishing", "2d259d773dd76f5c"),
      method<qmr_begin_entry>("qmr_begin", "bf888f1d5439945a"),
      method<qmr_begin_entry, Half::VISITING>("qmr_begin_visiting", "bf888f1d5439945a"),
      method<qmr_begin_entry, Half::FINISHING>("qmr_begin_finishing", "bf888f1d5439945a"),
      method<qmr_length_entry>("qmr_length", "19680bd8ffd008b0"),
      method<qmr_length_entry, Half::VISITING>("qmr_length_visiting", "19680bd8ffd008b0"),
      method<qmr_length_entry, Half::FINISHING>("qmr_length_finishing", "19680bd8ffd008b0"),
      method<qmr_extend_entry>("qmr_extend", "cb0fa3ae4d626ba4"),
      method<qmr_extend_entry, Half::VISITING>("qmr_extend_visiting", "cb0fa3ae4d626ba4"),
      method<qmr_extend_entry, Half::FINISHING>("qmr_extend_finishing", "cb0fa3ae4d626ba4"),
      method<qmr_update_entry>("qmr_update", "f98caf901ae165a1"),
      method<qmr_update_entry, Half::VISITING>("qmr_update_visiting", "f98caf901ae165a1"),
      method<qmr_update_entry, Half::FINISHING>("qmr_update_finishing", "f98caf901ae165a1"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
