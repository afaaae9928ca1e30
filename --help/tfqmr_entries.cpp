// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// u = shadow = r, v = d = 0, tau = |r|, rho = |r|^2, rho_old = 1, theta2 = eta = 0
template <class T>
struct tfqmr_start {
  mat<const T> r_;
  mat<T> u_;
  mat<T> v_;
  mat<T> d_;
  mat<T> shadow_;
  T* rho_;
  T* rho_old_;
  T* eta_;
  real_t<T>* tau_;
  real_t<T>* theta2_;
  real_t<T>* count_;
  real_t<T>* scale_;
  status_of<T> status;
  using sum = real_t<T>;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T r_i = r_(i, c);
    u_(i, c) = r_i;
    shadow_(i, c) = r_i;
    v_(i, c) = T(real_t<T>(0.0));
    d_(i, c) = T(real_t<T>(0.0));
    return square(r_i);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const T new_rho = T(total);
    const T new_rho_old = T(real_t<T>(1.0));
    const T new_eta = T(real_t<T>(0.0));
    const real_t<T> new_tau = square_root(total);
    const real_t<T> new_scale = square_root(total);
    const real_t<T> new_theta2 = real_t<T>(0.0);
    const real_t<T> new_count = real_t<T>(0.0);
    rho_[c] = new_rho;
    rho_old_[c] = new_rho_old;
    eta_[c] = new_eta;
    tau_[c] = new_tau;
    scale_[c] = new_scale;
    theta2_[c] = new_theta2;
    count_[c] = new_count;
  }
};

// v += q, alpha = rho / <shadow, v>; where that is 0 or not finite it breaks down
template <class T>
struct tfqmr_length {
  mat<const T> q_;
  mat<T> v_;
  mat<const T> shadow_;
  const T* rho_;
  T* alpha_;
  status_of<T> status;
  using sum = T;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T v_i = v_(i, c);
    const T q_i = q_(i, c);
    const T new_v = (v_i + q_i);
    const T shadow_i = shadow_(i, c);
    v_(i, c) = new_v;
    return (conj(shadow_i) * new_v);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const T e0 = (rho_[c] / total);
    const T new_alpha = e0;
    alpha_[c] = new_alpha;
    if (!(finite(rho_[c]) && finite(total)))
      status.halt(c, NOT_FINITE);
    else if ((total == real_t<T>(0.0)) || !finite(e0))
      status.halt(c, BREAKDOWN);
  }
};

// r -= alpha q, d = y + (theta2 eta / alpha) d, u -= alpha v; rotates tau, theta2, eta
template <class T>
struct tfqmr_half {
  mat<T> r_;
  mat<const T> y_;
  mat<const T> q_;
  mat<T> u_;
  mat<const T> v_;
  mat<T> d_;
  const T* alpha_;
  T* eta_;
  real_t<T>* tau_;
  real_t<T>* theta2_;
  real_t<T>* count_;
  status_of<T> status;
  using sum = real_t<T>;
  struct column_state {
    bool active;
    T alpha_;
    T v1;
  };

  WL_DEVICE column_state column(i64 c) const {
    if (!status.is_running(c))
      return {false, T(0), T(0)};
    return {true, alpha_[c], ((theta2_[c] / alpha_[c]) * eta_[c])};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T r_i = r_(i, c);
    const T q_i = q_(i, c);
    const T new_r = (r_i - (s.alpha_ * q_i));
    const T y_i = y_(i, c);
    const T d_i = d_(i, c);
    const T new_d = (y_i + (s.v1 * d_i));
    const T u_i = u_(i, c);
    const T v_i = v_(i, c);
    const T new_u = (u_i - (s.alpha_ * v_i));
    r_(i, c) = new_r;
    d_(i, c) = new_d;
    u_(i, c) = new_u;
    return square(new_r);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const real_t<T> e0 = ((total / tau_[c]) / tau_[c]);
    const real_t<T> new_theta2 = ((tau_[c] > real_t<T>(0.0)) ? real_t<T>(e0) : real_t<T>(real_t<T>(0.0)));
    const real_t<T> e2 = (real_t<T>(1.0) / (real_t<T>(1.0) + e0));
    const T new_eta = ((tau_[c] > real_t<T>(0.0)) ? T((e2 * alpha_[c])) : T(real_t<T>(0.0)));
    const real_t<T> new_tau = ((tau_[c] > real_t<T>(0.0)) ? real_t<T>(square_root((total * e2))) : real_t<T>(real_t<T>(0.0)));
    const real_t<T> new_count = (count_[c] + real_t<T>(1.0));
    theta2_[c] = new_theta2;
    eta_[c] = new_eta;
    tau_[c] = new_tau;
    count_[c] = new_count;
    if (!finite(total))
      status.halt(c, NOT_FINITE);
  }
};

// x += eta d, r -= alpha q, d = y + (theta2 eta / alpha) d, rho = <shadow, r>; rotates
template <class T>
struct tfqmr_whole {
  mat<T> x_;
  mat<T> r_;
  mat<const T> y_;
  mat<const T> q_;
  mat<T> d_;
  mat<const T> shadow_;
  T* rho_;
  T* rho_old_;
  const T* alpha_;
  T* eta_;
  real_t<T>* tau_;
  real_t<T>* theta2_;
  real_t<T>* count_;
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
  struct column_state {
    bool active;
    T eta_;
    T alpha_;
    T v2;
  };

  WL_DEVICE column_state column(i64 c) const {
    if (!status.is_running(c))
      return {false, T(0), T(0), T(0)};
    return {true, eta_[c], alpha_[c], ((theta2_[c] / alpha_[c]) * eta_[c])};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T x_i = x_(i, c);
    const T d_i = d_(i, c);
    const T new_x = (x_i + (s.eta_ * d_i));
    const T r_i = r_(i, c);
    const T q_i = q_(i, c);
    const T new_r = (r_i - (s.alpha_ * q_i));
    const T y_i = y_(i, c);
    const T new_d = (y_i + (s.v2 * d_i));
    const T shadow_i = shadow_(i, c);
    x_(i, c) = new_x;
    r_(i, c) = new_r;
    d_(i, c) = new_d;
    return {square(new_r), (conj(shadow_i) * new_r)};
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const real_t<T> e0 = ((total.v0 / tau_[c]) / tau_[c]);
    const real_t<T> new_theta2 = ((tau_[c] > real_t<T>(0.0)) ? real_t<T>(e0) : real_t<T>(real_t<T>(0.0)));
    const real_t<T> e2 = (real_t<T>(1.0) / (real_t<T>(1.0) + e0));
    const T new_eta = ((tau_[c] > real_t<T>(0.0)) ? T((e2 * alpha_[c])) : T(real_t<T>(0.0)));
    const real_t<T> new_tau = ((tau_[c] > real_t<T>(0.0)) ? real_t<T>(square_root((total.v0 * e2))) : real_t<T>(real_t<T>(0.0)));
    const real_t<T> new_count = (count_[c] + real_t<T>(1.0));
    const T new_rho_old = rho_[c];
    const T new_rho = total.v1;
    theta2_[c] = new_theta2;
    eta_[c] = new_eta;
    tau_[c] = new_tau;
    count_[c] = new_count;
    rho_old_[c] = new_rho_old;
    rho_[c] = new_rho;
    if (!finite(total.v0))
      status.halt(c, NOT_FINITE);
  }
};

// x += eta d, u = r + beta u, v = beta (q + beta v) with beta = rho / rho_old
template <class T>
struct tfqmr_update {
  mat<T> x_;
  mat<const T> r_;
  mat<const T> q_;
  mat<T> u_;
  mat<T> v_;
  mat<const T> d_;
  const T* rho_;
  const T* rho_old_;
  const T* eta_;
  const real_t<T>* tau_;
  const real_t<T>* count_;
  const real_t<T>* scale_;
  status_of<T> status;
  using sum = real_t<T>;
  struct column_state {
    bool active;
    T eta_;
    T v1;
  };

  WL_DEVICE column_state column(i64 c) const {
    if (!status.is_running(c))
      return {false, T(0), T(0)};
    return {true, eta_[c], (rho_[c] / rho_old_[c])};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T x_i = x_(i, c);
    const T d_i = d_(i, c);
    const T new_x = (x_i + (s.eta_ * d_i));
    const T r_i = r_(i, c);
    const T u_i = u_(i, c);
    const T new_u = (r_i + (s.v1 * u_i));
    const T q_i = q_(i, c);
    const T v_i = v_(i, c);
    const T new_v = (s.v1 * (q_i + (s.v1 * v_i)));
    x_(i, c) = new_x;
    u_(i, c) = new_u;
    v_(i, c) = new_v;
    return real_t<T>(0);
  }
  WL_DEVICE void finish(i64 c, sum) const {
    const real_t<T> e0 = (tau_[c] * square_root((count_[c] + real_t<T>(1.0))));
    status.observe(c, e0);
    if (status.is_running(c)) {
      if (!finite(rho_[c]))
        status.halt(c, NOT_FINITE);
      else if (magnitude(rho_[c]) <= (((epsilon<T> * epsilon<T>) * scale_[c]) * e0))
        status.halt(c, BREAKDOWN);
    }
  }
};

namespace {

// u = shadow = r, v = d = 0, tau = |r|, rho = |r|^2, rho_old = 1, theta2 = eta = 0
struct tfqmr_start_entry {
  static constexpr const char* operation = "tfqmr.start";
  static constexpr const char* symbol = "tfqmr_start";
  static constexpr const char* names[] = {
      "r",
      "u",
      "v",
      "d",
      "shadow",
      "rho",
      "rho_old",
      "eta",
      "tau",
      "theta2",
      "count",
      "scale",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.r_.ld == ld && f.u_.ld == ld && f.v_.ld == ld && f.d_.ld == ld && f.shadow_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.r_.ld = f.u_.ld = f.v_.ld = f.d_.ld = f.shadow_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const tfqmr_start<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<T>(2, n, k),
          call.block<T>(3, n, k),
          call.block<T>(4, n, k),
          call.contiguous<T>(5, k),
          call.contiguous<T>(6, k),
          call.contiguous<T>(7, k),
          call.contiguous<real_t<T>>(8, k),
          call.contiguous<real_t<T>>(9, k),
          call.contiguous<real_t<T>>(10, k),
          call.contiguous<real_t<T>>(11, k),
          call.status<T>(12, k),
      };
      call.submit(n * k, Map<tfqmr_start<T>, tfqmr_start_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// v += q, alpha = rho / <shadow, v>; where that is 0 or not finite it breaks down
struct tfqmr_length_entry {
  static constexpr const char* operation = "tfqmr.length";
  static constexpr const char* symbol = "tfqmr_length";
  static constexpr const char* names[] = {
      "q",
      "v",
      "shadow",
      "rho",
      "alpha",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.q_.ld == ld && f.v_.ld == ld && f.shadow_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.q_.ld = f.v_.ld = f.shadow_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const tfqmr_length<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.contiguous<const T>(3, k),
          call.contiguous<T>(4, k),
          call.status<T>(5, k),
      };
      call.submit(n * k, Map<tfqmr_length<T>, tfqmr_length_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// r -= alpha q, d = y + (theta2 eta / alpha) d, u -= alpha v; rotates tau, theta2, eta
struct tfqmr_half_entry {
  static constexpr const char* operation = "tfqmr.half";
  static constexpr const char* symbol = "tfqmr_half";
  static constexpr const char* names[] = {
      "r",
      "y",
      "q",
      "u",
      "v",
      "d",
      "alpha",
      "eta",
      "tau",
      "theta2",
      "count",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.r_.ld == ld && f.y_.ld == ld && f.q_.ld == ld && f.u_.ld == ld && f.v_.ld == ld && f.d_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.r_.ld = f.y_.ld = f.q_.ld = f.u_.ld = f.v_.ld = f.d_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const tfqmr_half<T> body{
          call.block<T>(0, n, k),
          call.block<const T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<T>(3, n, k),
          call.block<const T>(4, n, k),
          call.block<T>(5, n, k),
          call.contiguous<const T>(6, k),
          call.contiguous<T>(7, k),
          call.contiguous<real_t<T>>(8, k),
          call.contiguous<real_t<T>>(9, k),
          call.contiguous<real_t<T>>(10, k),
          call.status<T>(11, k),
      };
      call.submit(n * k, Map<tfqmr_half<T>, tfqmr_half_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// x += eta d, r -= alpha q, d = y + (theta2 eta / alpha) d, rho = <shadow, r>; rotates
struct tfqmr_whole_entry {
  static constexpr const char* operation = "tfqmr.whole";
  static constexpr const char* symbol = "tfqmr_whole";
  static constexpr const char* names[] = {
      "x",
      "r",
      "y",
      "q",
      "d",
      "shadow",
      "rho",
      "rho_old",
      "alpha",
      "eta",
      "tau",
      "theta2",
      "count",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x_.ld == ld && f.r_.ld == ld && f.y_.ld == ld && f.q_.ld == ld && f.d_.ld == ld && f.shadow_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x_.ld = f.r_.ld = f.y_.ld = f.q_.ld = f.d_.ld = f.shadow_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const tfqmr_whole<T> body{
          call.block<T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<const T>(3, n, k),
          call.block<T>(4, n, k),
          call.block<const T>(5, n, k),
          call.contiguous<T>(6, k),
          call.contiguous<T>(7, k),
          call.contiguous<const T>(8, k),
          call.contiguous<T>(9, k),
          call.contiguous<real_t<T>>(10, k),
          call.contiguous<real_t<T>>(11, k),
          call.contiguous<real_t<T>>(12, k),
          call.status<T>(13, k),
      };
      call.submit(n * k, Map<tfqmr_whole<T>, tfqmr_whole_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// x += eta d, u = r + beta u, v = beta (q + beta v) with beta = rho / rho_old
struct tfqmr_update_entry {
  static constexpr const char* operation = "tfqmr.update";
  static constexpr const char* symbol = "tfqmr_update";
  static constexpr const char* names[] = {
      "x",
      "r",
      "q",
      "u",
      "v",
      "d",
      "rho",
      "rho_old",
      "eta",
      "tau",
      "count",
      "scale",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x_.ld == ld && f.r_.ld == ld && f.q_.ld == ld && f.u_.ld == ld && f.v_.ld == ld && f.d_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x_.ld = f.r_.ld = f.q_.ld = f.u_.ld = f.v_.ld = f.d_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const tfqmr_update<T> body{
          call.block<T>(0, n, k),
          call.block<const T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<T>(3, n, k),
          call.block<T>(4, n, k),
          call.block<const T>(5, n, k),
          call.contiguous<const T>(6, k),
          call.contiguous<const T>(7, k),
          call.contiguous<const T>(8, k),
          call.contiguous<const real_t<T>>(9, k),
          call.contiguous<const real_t<T>>(10, k),
          call.contiguous<const real_t<T>>(11, k),
          call.status<T>(12, k),
      };
      call.submit(n * k, Map<tfqmr_update<T>, tfqmr_update_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

} // namespace

void add_tfqmr_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<tfqmr_start_entry>("tfqmr_start", "62318f5cf6f71553"),
      method<tfqmr_start_entry, Half::VISITING>("tfqmr_start_visiting", "62318f5cf6f71553"),
      method<tfqmr_start_entry, Half::FINISHING>("tfqmr_start_finishing", "62318f5cf6f71553"),
      method<tfqmr_length_entry>("tfqmr_length", "f076a152f66b47b0"),
      method<tfqmr_length_entry, Half::VISITING>("tfqmr_length_visiting", "f076a152f66b47b0"),
      method<tfqmr_length_entry, Half::FINISHING>("tfqmr_length_finishing", "f076a152f66b47b0"),
      method<tfqmr_half_entry>("tfqmr_half", "d6cd762cc41af057"),
      method<tfqmr_half_entry, Half::VISITING>("tfqmr_half_visiting", "d6cd762cc41af057"),
      method<tfqmr_half_entry, Half::FINISHING>("tfqmr_half_finishing", "d6cd762cc41af057"),
      method<tfqmr_whole_entry>("tfqmr_whole", "87a15fb3a2eab7e3"),
      method<tfqmr_whole_entry, Half::VISITING>("tfqmr_whole_visiting", "87a15fb3a2eab7e3"),
      method<tfqmr_whole_entry, Half::FINISHING>("tfqmr_whole_finishing", "87a15fb3a2eab7e3"),
      method<tfqmr_update_entry>("tfqmr_update", "9de04a51d70639a5"),
      method<tfqmr_update_entry, Half::VISITING>("tfqmr_update_visiting", "9de04a51d70639a5"),
      method<tfqmr_update_entry, Half::FINISHING>("tfqmr_update_finishing", "9de04a51d70639a5"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
