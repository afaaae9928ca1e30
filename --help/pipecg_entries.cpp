// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// p = s = q = z = 0, gamma = <r, u>, delta = <w, u>, gamma_old = alpha = 0
template <class T>
struct pipecg_start {
  mat<const T> r_;
  mat<const T> u_;
  mat<const T> w_;
  mat<T> p_;
  mat<T> s_;
  mat<T> q_;
  mat<T> z_;
  T* gamma_;
  T* gamma_old_;
  T* delta_;
  T* alpha_;
  status_of<T> status;
  struct sum {
    T v0;
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
    const T r_i = r_(i, c);
    const T u_i = u_(i, c);
    const T w_i = w_(i, c);
    p_(i, c) = T(real_t<T>(0.0));
    s_(i, c) = T(real_t<T>(0.0));
    q_(i, c) = T(real_t<T>(0.0));
    z_(i, c) = T(real_t<T>(0.0));
    return {(conj(r_i) * u_i), (conj(w_i) * u_i)};
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const T new_gamma = total.v0;
    const T new_delta = total.v1;
    const T new_gamma_old = T(real_t<T>(0.0));
    const T new_alpha = T(real_t<T>(0.0));
    gamma_[c] = new_gamma;
    delta_[c] = new_delta;
    gamma_old_[c] = new_gamma_old;
    alpha_[c] = new_alpha;
    if (!finite(total.v0))
      status.halt(c, NOT_FINITE);
    else if (!(real(total.v0) > real_t<T>(0.0)))
      status.halt(c, INDEFINITE);
    else if (!finite(total.v1))
      status.halt(c, NOT_FINITE);
    else if (!(real(total.v1) > real_t<T>(0.0)))
      status.halt(c, INDEFINITE);
  }
};

// p, s, z, then x += alpha p, r -= alpha s, w -= alpha z, gamma, delta; observes |r|
template <class T>
struct pipecg_advance {
  mat<T> x_;
  mat<T> r_;
  mat<T> w_;
  mat<const T> t_;
  mat<T> p_;
  mat<T> s_;
  mat<T> z_;
  T* gamma_;
  T* gamma_old_;
  T* delta_;
  T* alpha_;
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
    T v0;
    T v1;
  };

  WL_DEVICE column_state column(i64 c) const {
    if (!status.is_running(c))
      return {false, T(0), T(0)};
    const bool e0 = (real(gamma_old_[c]) == real_t<T>(0.0));
    const T e1 = (e0 ? T(real_t<T>(0.0)) : T((gamma_[c] / gamma_old_[c])));
    return {true, e1, (gamma_[c] / (delta_[c] - (e0 ? T(real_t<T>(0.0)) : T(((e1 * gamma_[c]) / alpha_[c])))))};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T r_i = r_(i, c);
    const T p_i = p_(i, c);
    const T new_p = (r_i + (s.v0 * p_i));
    const T w_i = w_(i, c);
    const T s_i = s_(i, c);
    const T new_s = (w_i + (s.v0 * s_i));
    const T t_i = t_(i, c);
    const T z_i = z_(i, c);
    const T new_z = (t_i + (s.v0 * z_i));
    const T x_i = x_(i, c);
    const T new_x = (x_i + (s.v1 * new_p));
    const T new_r = (r_i - (s.v1 * new_s));
    const T new_w = (w_i - (s.v1 * new_z));
    p_(i, c) = new_p;
    s_(i, c) = new_s;
    z_(i, c) = new_z;
    x_(i, c) = new_x;
    r_(i, c) = new_r;
    w_(i, c) = new_w;
    return {square(new_r), (conj(new_w) * new_r)};
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const T new_gamma_old = gamma_[c];
    const bool e1 = (real(gamma_old_[c]) == real_t<T>(0.0));
    const T e2 = (gamma_[c] / (delta_[c] - (e1 ? T(real_t<T>(0.0)) : T((((e1 ? T(real_t<T>(0.0)) : T((gamma_[c] / gamma_old_[c]))) * gamma_[c]) / alpha_[c])))));
    const T new_alpha = e2;
    const T new_gamma = T(total.v0);
    const T new_delta = total.v1;
    gamma_old_[c] = new_gamma_old;
    alpha_[c] = new_alpha;
    gamma_[c] = new_gamma;
    delta_[c] = new_delta;
    status.observe(c, square_root(total.v0));
    if (status.is_running(c)) {
      if (!finite(e2))
        status.halt(c, NOT_FINITE);
      else if (!(real(e2) > real_t<T>(0.0)))
        status.halt(c, INDEFINITE);
    }
  }
};

// Do the same with q = m + beta q, u -= alpha q; gamma = <r, u>, delta = <w, u>
template <class T>
struct pipecg_advance_with_preconditioner {
  mat<T> x_;
  mat<T> r_;
  mat<T> u_;
  mat<T> w_;
  mat<const T> m_;
  mat<const T> t_;
  mat<T> p_;
  mat<T> s_;
  mat<T> q_;
  mat<T> z_;
  T* gamma_;
  T* gamma_old_;
  T* delta_;
  T* alpha_;
  status_of<T> status;
  struct sum {
    T v0;
    T v1;
    real_t<T> v2;
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
    T v0;
    T v1;
  };

  WL_DEVICE column_state column(i64 c) const {
    if (!status.is_running(c))
      return {false, T(0), T(0)};
    const bool e0 = (real(gamma_old_[c]) == real_t<T>(0.0));
    const T e1 = (e0 ? T(real_t<T>(0.0)) : T((gamma_[c] / gamma_old_[c])));
    return {true, e1, (gamma_[c] / (delta_[c] - (e0 ? T(real_t<T>(0.0)) : T(((e1 * gamma_[c]) / alpha_[c])))))};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T u_i = u_(i, c);
    const T p_i = p_(i, c);
    const T new_p = (u_i + (s.v0 * p_i));
    const T w_i = w_(i, c);
    const T s_i = s_(i, c);
    const T new_s = (w_i + (s.v0 * s_i));
    const T m_i = m_(i, c);
    const T q_i = q_(i, c);
    const T new_q = (m_i + (s.v0 * q_i));
    const T t_i = t_(i, c);
    const T z_i = z_(i, c);
    const T new_z = (t_i + (s.v0 * z_i));
    const T x_i = x_(i, c);
    const T new_x = (x_i + (s.v1 * new_p));
    const T r_i = r_(i, c);
    const T new_r = (r_i - (s.v1 * new_s));
    const T new_u = (u_i - (s.v1 * new_q));
    const T new_w = (w_i - (s.v1 * new_z));
    p_(i, c) = new_p;
    s_(i, c) = new_s;
    q_(i, c) = new_q;
    z_(i, c) = new_z;
    x_(i, c) = new_x;
    r_(i, c) = new_r;
    u_(i, c) = new_u;
    w_(i, c) = new_w;
    return {(conj(new_r) * new_u), (conj(new_w) * new_u), square(new_r)};
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const T new_gamma_old = gamma_[c];
    const bool e1 = (real(gamma_old_[c]) == real_t<T>(0.0));
    const T e2 = (gamma_[c] / (delta_[c] - (e1 ? T(real_t<T>(0.0)) : T((((e1 ? T(real_t<T>(0.0)) : T((gamma_[c] / gamma_old_[c]))) * gamma_[c]) / alpha_[c])))));
    const T new_alpha = e2;
    const T new_gamma = total.v0;
    const T new_delta = total.v1;
    gamma_old_[c] = new_gamma_old;
    alpha_[c] = new_alpha;
    gamma_[c] = new_gamma;
    delta_[c] = new_delta;
    status.observe(c, square_root(total.v2));
    if (status.is_running(c)) {
      if (!finite(e2))
        status.halt(c, NOT_FINITE);
      else if (!(real(e2) > real_t<T>(0.0)))
        status.halt(c, INDEFINITE);
      else if (!finite(total.v0))
        status.halt(c, NOT_FINITE);
      else if (!(real(total.v0) > real_t<T>(0.0)))
        status.halt(c, INDEFINITE);
    }
  }
};

namespace {

// p = s = q = z = 0, gamma = <r, u>, delta = <w, u>, gamma_old = alpha = 0
struct pipecg_start_entry {
  static constexpr const char* operation = "pipecg.start";
  static constexpr const char* symbol = "pipecg_start";
  static constexpr const char* names[] = {
      "r",
      "u",
      "w",
      "p",
      "s",
      "q",
      "z",
      "gamma",
      "gamma_old",
      "delta",
      "alpha",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.r_.ld == ld && f.u_.ld == ld && f.w_.ld == ld && f.p_.ld == ld && f.s_.ld == ld && f.q_.ld == ld && f.z_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.r_.ld = f.u_.ld = f.w_.ld = f.p_.ld = f.s_.ld = f.q_.ld = f.z_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const pipecg_start<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<T>(3, n, k),
          call.block<T>(4, n, k),
          call.block<T>(5, n, k),
          call.block<T>(6, n, k),
          call.contiguous<T>(7, k),
          call.contiguous<T>(8, k),
          call.contiguous<T>(9, k),
          call.contiguous<T>(10, k),
          call.status<T>(11, k),
      };
      call.submit(n * k, Map<pipecg_start<T>, pipecg_start_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// p, s, z, then x += alpha p, r -= alpha s, w -= alpha z, gamma, delta; observes |r|
struct pipecg_advance_entry {
  static constexpr const char* operation = "pipecg.advance";
  static constexpr const char* symbol = "pipecg_advance";
  static constexpr const char* names[] = {
      "x",
      "r",
      "w",
      "t",
      "p",
      "s",
      "z",
      "gamma",
      "gamma_old",
      "delta",
      "alpha",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x_.ld == ld && f.r_.ld == ld && f.w_.ld == ld && f.t_.ld == ld && f.p_.ld == ld && f.s_.ld == ld && f.z_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x_.ld = f.r_.ld = f.w_.ld = f.t_.ld = f.p_.ld = f.s_.ld = f.z_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const pipecg_advance<T> body{
          call.block<T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<T>(2, n, k),
          call.block<const T>(3, n, k),
          call.block<T>(4, n, k),
          call.block<T>(5, n, k),
          call.block<T>(6, n, k),
          call.contiguous<T>(7, k),
          call.contiguous<T>(8, k),
          call.contiguous<T>(9, k),
          call.contiguous<T>(10, k),
          call.status<T>(11, k),
      };
      call.submit(n * k, Map<pipecg_advance<T>, pipecg_advance_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// Do the same with q = m + beta q, u -= alpha q; gamma = <r, u>, delta = <w, u>
struct pipecg_advance_with_preconditioner_entry {
  static constexpr const char* operation = "pipecg.advance_with_preconditioner";
  static constexpr const char* symbol = "pipecg_advance_with_preconditioner";
  static constexpr const char* names[] = {
      "x",
      "r",
      "u",
      "w",
      "m",
      "t",
      "p",
      "s",
      "q",
      "z",
      "gamma",
      "gamma_old",
      "delta",
      "alpha",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x_.ld == ld && f.r_.ld == ld && f.u_.ld == ld && f.w_.ld == ld && f.m_.ld == ld && f.t_.ld == ld && f.p_.ld == ld && f.s_.ld == ld && f.q_.ld == ld && f.z_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x_.ld = f.r_.ld = f.u_.ld = f.w_.ld = f.m_.ld = f.t_.ld = f.p_.ld = f.s_.ld = f.q_.ld = f.z_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const pipecg_advance_with_preconditioner<T> body{
          call.block<T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<T>(2, n, k),
          call.block<T>(3, n, k),
          call.block<const T>(4, n, k),
          call.block<const T>(5, n, k),
          call.block<T>(6, n, k),
          call.block<T>(7, n, k),
          call.block<T>(8, n, k),
          call.block<T>(9, n, k),
          call.contiguous<T>(10, k),
          call.contiguous<T>(11, k),
          call.contiguous<T>(12, k),
          call.contiguous<T>(13, k),
          call.status<T>(14, k),
      };
      call.submit(n * k, Map<pipecg_advance_with_preconditioner<T>, pipecg_advance_with_preconditioner_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

} // namespace

void add_pipecg_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<pipecg_start_entry>("pipecg_start", "c85756c20ebfafc0"),
      method<pipecg_start_entry, Half::VISITING>("pipecg_start_visiting", "c85756c20ebfafc0"),
      method<pipecg_start_entry, Half::FINISHING>("pipecg_start_finishing", "c85756c20ebfafc0"),
      method<pipecg_advance_entry>("pipecg_advance", "8dbc668fd4088edc"),
      method<pipecg_advance_entry, Half::VISITING>("pipecg_advance_visiting", "8dbc668fd4088edc"),
      method<pipecg_advance_entry, Half::FINISHING>("pipecg_advance_finishing", "8dbc668fd4088edc"),
      method<pipecg_advance_with_preconditioner_entry>("pipecg_advance_with_preconditioner", "ece043b81bb8aea6"),
      method<pipecg_advance_with_preconditioner_entry, Half::VISITING>("pipecg_advance_with_preconditioner_visiting", "ece043b81bb8aea6"),
      method<pipecg_advance_with_preconditioner_entry, Half::FINISHING>("pipecg_advance_with_preconditioner_finishing", "ece043b81bb8aea6"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
