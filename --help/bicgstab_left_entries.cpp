// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// shadow = s, p = v = 0, rho = |s|^2, rho_old = alpha = omega = 1, scale = |s|
template <class T>
struct bicgstab_left_start_left {
  mat<const T> s_;
  mat<T> p_;
  mat<T> v_;
  mat<T> shadow_;
  T* rho_;
  T* rho_old_;
  T* alpha_;
  T* omega_;
  real_t<T>* scale_;
  status_of<T> status;
  using sum = real_t<T>;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T s_i = s_(i, c);
    shadow_(i, c) = s_i;
    p_(i, c) = T(real_t<T>(0.0));
    v_(i, c) = T(real_t<T>(0.0));
    return square(s_i);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const T new_rho = T(total);
    const T new_rho_old = T(real_t<T>(1.0));
    const real_t<T> new_scale = square_root(total);
    const T new_alpha = T(real_t<T>(1.0));
    const T new_omega = T(real_t<T>(1.0));
    rho_[c] = new_rho;
    rho_old_[c] = new_rho_old;
    scale_[c] = new_scale;
    alpha_[c] = new_alpha;
    omega_[c] = new_omega;
  }
};

// p = s + beta (p - omega v) with beta = (rho / rho_old) (alpha / omega)
template <class T>
struct bicgstab_left_direction_left {
  mat<const T> s_;
  mat<T> p_;
  mat<const T> v_;
  const T* rho_;
  const T* rho_old_;
  const T* alpha_;
  const T* omega_;
  status_of<T> status;
  using sum = none;
  struct column_state {
    bool active;
    T v0;
    T omega_;
  };

  WL_DEVICE column_state column(i64 c) const {
    if (!status.is_running(c))
      return {false, T(0), T(0)};
    return {true, ((rho_[c] / rho_old_[c]) * (alpha_[c] / omega_[c])), omega_[c]};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T s_i = s_(i, c);
    const T p_i = p_(i, c);
    const T v_i = v_(i, c);
    const T new_p = (s_i + (s.v0 * (p_i - (s.omega_ * v_i))));
    p_(i, c) = new_p;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

// s -= alpha v, r -= alpha q; halfway = whether |r| is at its threshold already
template <class T>
struct bicgstab_left_half_left {
  mat<T> r_;
  mat<T> s_;
  mat<const T> v_;
  mat<const T> q_;
  const T* alpha_;
  u8* halfway_;
  status_of<T> status;
  using sum = real_t<T>;
  struct column_state {
    bool active;
    T alpha_;
  };

  WL_DEVICE column_state column(i64 c) const {
    const bool active = status.is_running(c);
    return {active, active ? alpha_[c] : T(0)};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T s_i = s_(i, c);
    const T v_i = v_(i, c);
    const T new_s = (s_i - (s.alpha_ * v_i));
    const T r_i = r_(i, c);
    const T q_i = q_(i, c);
    const T new_r = (r_i - (s.alpha_ * q_i));
    s_(i, c) = new_s;
    r_(i, c) = new_r;
    return square(new_r);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const u8 new_halfway = (square_root(total) <= status.threshold[c]);
    halfway_[c] = new_halfway;
  }
};

// omega = <t, s> / <t, t>; where that is 0 or not finite the column breaks down
template <class T>
struct bicgstab_left_stabilize_left {
  mat<const T> s_;
  mat<const T> t_;
  T* omega_;
  const u8* halfway_;
  status_of<T> status;
  struct sum {
    T v0;
    real_t<T> v1;
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
    const T t_i = t_(i, c);
    const T s_i = s_(i, c);
    return {(conj(t_i) * s_i), square(t_i)};
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const T e0 = (total.v0 / total.v1);
    const T new_omega = ((halfway_[c] != 0) ? T(real_t<T>(0.0)) : T(e0));
    const bool e2 = !(halfway_[c] != 0);
    omega_[c] = new_omega;
    if (e2 && !(finite(total.v0) && finite(total.v1)))
      status.halt(c, NOT_FINITE);
    else if (e2 && ((total.v1 == real_t<T>(0.0)) || !finite(e0)))
      status.halt(c, BREAKDOWN);
    else if (!(halfway_[c] != 0) && (e0 == real_t<T>(0.0)))
      status.halt(c, BREAKDOWN);
  }
};

// x += alpha p + omega s, s -= omega t, r -= omega u; observes |r|
template <class T>
struct bicgstab_left_update_left {
  mat<T> x_;
  mat<T> r_;
  mat<T> s_;
  mat<const T> p_;
  mat<const T> t_;
  mat<const T> u_;
  mat<const T> shadow_;
  T* rho_;
  T* rho_old_;
  const T* alpha_;
  const T* omega_;
  const real_t<T>* scale_;
  status_of<T> status;
  struct sum {
    T v0;
    real_t<T> v1;
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
    T alpha_;
    T omega_;
  };

  WL_DEVICE column_state column(i64 c) const {
    if (!status.is_running(c))
      return {false, T(0), T(0)};
    return {true, alpha_[c], omega_[c]};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T x_i = x_(i, c);
    const T p_i = p_(i, c);
    const T s_i = s_(i, c);
    const T new_x = (x_i + ((s.alpha_ * p_i) + (s.omega_ * s_i)));
    const T t_i = t_(i, c);
    const T new_s = (s_i - (s.omega_ * t_i));
    const T r_i = r_(i, c);
    const T u_i = u_(i, c);
    const T new_r = (r_i - (s.omega_ * u_i));
    const T shadow_i = shadow_(i, c);
    x_(i, c) = new_x;
    s_(i, c) = new_s;
    r_(i, c) = new_r;
    return {(conj(shadow_i) * new_s), square(new_r), square(new_s)};
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const T new_rho_old = rho_[c];
    const T new_rho = total.v0;
    rho_old_[c] = new_rho_old;
    rho_[c] = new_rho;
    status.observe(c, square_root(total.v1));
    if (status.is_running(c)) {
      if (!finite(total.v0))
        status.halt(c, NOT_FINITE);
      else if (magnitude(total.v0) <= (((epsilon<T> * epsilon<T>) * scale_[c]) * square_root(total.v2)))
        status.halt(c, BREAKDOWN);
    }
  }
};

namespace {

// shadow = s, p = v = 0, rho = |s|^2, rho_old = alpha = omega = 1, scale = |s|
struct bicgstab_left_start_left_entry {
  static constexpr const char* operation = "bicgstab_left.start_left";
  static constexpr const char* symbol = "bicgstab_left_start_left";
  static constexpr const char* names[] = {
      "s",
      "p",
      "v",
      "shadow",
      "rho",
      "rho_old",
      "alpha",
      "omega",
      "scale",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.s_.ld == ld && f.p_.ld == ld && f.v_.ld == ld && f.shadow_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.s_.ld = f.p_.ld = f.v_.ld = f.shadow_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const bicgstab_left_start_left<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<T>(2, n, k),
          call.block<T>(3, n, k),
          call.contiguous<T>(4, k),
          call.contiguous<T>(5, k),
          call.contiguous<T>(6, k),
          call.contiguous<T>(7, k),
          call.contiguous<real_t<T>>(8, k),
          call.status<T>(9, k),
      };
      call.submit(n * k, Map<bicgstab_left_start_left<T>, bicgstab_left_start_left_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// p = s + beta (p - omega v) with beta = (rho / rho_old) (alpha / omega)
struct bicgstab_left_direction_left_entry {
  static constexpr const char* operation = "bicgstab_left.direction_left";
  static constexpr const char* symbol = "bicgstab_left_direction_left";
  static constexpr const char* names[] = {
      "s",
      "p",
      "v",
      "rho",
      "rho_old",
      "alpha",
      "omega",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.s_.ld == ld && f.p_.ld == ld && f.v_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.s_.ld = f.p_.ld = f.v_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const bicgstab_left_direction_left<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.contiguous<const T>(3, k),
          call.contiguous<const T>(4, k),
          call.contiguous<const T>(5, k),
          call.contiguous<const T>(6, k),
          call.status<T>(7, k),
      };
      call.submit(n * k, Map<bicgstab_left_direction_left<T>, bicgstab_left_direction_left_entry>(body, n, k));
    });
    return none_object();
  }
};

// s -= alpha v, r -= alpha q; halfway = whether |r| is at its threshold already
struct bicgstab_left_half_left_entry {
  static constexpr const char* operation = "bicgstab_left.half_left";
  static constexpr const char* symbol = "bicgstab_left_half_left";
  static constexpr const char* names[] = {
      "r",
      "s",
      "v",
      "q",
      "alpha",
      "halfway",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.r_.ld == ld && f.s_.ld == ld && f.v_.ld == ld && f.q_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.r_.ld = f.s_.ld = f.v_.ld = f.q_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const bicgstab_left_half_left<T> body{
          call.block<T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<const T>(3, n, k),
          call.contiguous<const T>(4, k),
          call.contiguous<u8>(5, k),
          call.status<T>(6, k),
      };
      call.submit(n * k, Map<bicgstab_left_half_left<T>, bicgstab_left_half_left_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// omega = <t, s> / <t, t>; where that is 0 or not finite the column breaks down
struct bicgstab_left_stabilize_left_entry {
  static constexpr const char* operation = "bicgstab_left.stabilize_left";
  static constexpr const char* symbol = "bicgstab_left_stabilize_left";
  static constexpr const char* names[] = {
      "s",
      "t",
      "omega",
      "halfway",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.s_.ld == ld && f.t_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.s_.ld = f.t_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const bicgstab_left_stabilize_left<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<T>(2, k),
          call.contiguous<const u8>(3, k),
          call.status<T>(4, k),
      };
      call.submit(n * k, Map<bicgstab_left_stabilize_left<T>, bicgstab_left_stabilize_left_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// x += alpha p + omega s, s -= omega t, r -= omega u; observes |r|
struct bicgstab_left_update_left_entry {
  static constexpr const char* operation = "bicgstab_left.update_left";
  static constexpr const char* symbol = "bicgstab_left_update_left";
  static constexpr const char* names[] = {
      "x",
      "r",
      "s",
      "p",
      "t",
      "u",
      "shadow",
      "rho",
      "rho_old",
      "alpha",
      "omega",
      "scale",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x_.ld == ld && f.r_.ld == ld && f.s_.ld == ld && f.p_.ld == ld && f.t_.ld == ld && f.u_.ld == ld && f.shadow_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x_.ld = f.r_.ld = f.s_.ld = f.p_.ld = f.t_.ld = f.u_.ld = f.shadow_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const bicgstab_left_update_left<T> body{
          call.block<T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<T>(2, n, k),
          call.block<const T>(3, n, k),
          call.block<const T>(4, n, k),
          call.block<const T>(5, n, k),
          call.block<const T>(6, n, k),
          call.contiguous<T>(7, k),
          call.contiguous<T>(8, k),
          call.contiguous<const T>(9, k),
          call.contiguous<const T>(10, k),
          call.contiguous<const real_t<T>>(11, k),
          call.status<T>(12, k),
      };
      call.submit(n * k, Map<bicgstab_left_update_left<T>, bicgstab_left_update_left_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

} // namespace

void add_bicgstab_left_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<bicgstab_left_start_left_entry>("bicgstab_left_start_left", "4af1eddabfa0bf08"),
      method<bicgstab_left_start_left_entry, Half::VISITING>("bicgstab_left_start_left_visiting", "4af1eddabfa0bf08"),
      method<bicgstab_left_start_left_entry, Half::FINISHING>("bicgstab_left_start_left_finishing", "4af1eddabfa0bf08"),
      method<bicgstab_left_direction_left_entry>("bicgstab_left_direction_left", "7168b39a4806d78a"),
      method<bicgstab_left_half_left_entry>("bicgstab_left_half_left", "2db3badcbd3f47dc"),
      method<bicgstab_left_half_left_entry, Half::VISITING>("bicgstab_left_half_left_visiting", "2db3badcbd3f47dc"),
      method<bicgstab_left_half_left_entry, Half::FINISHING>("bicgstab_left_half_left_finishing", "2db3badcbd3f47dc"),
      method<bicgstab_left_stabilize_left_entry>("bicgstab_left_stabilize_left", "eda6894a5dd584dd"),
      method<bicgstab_left_stabilize_left_entry, Half::VISITING>("bicgstab_left_stabilize_left_visiting", "eda6894a5dd584dd"),
      method<bicgstab_left_stabilize_left_entry, Half::FINISHING>("bicgstab_left_stabilize_left_finishing", "eda6894a5dd584dd"),
      method<bicgstab_left_update_left_entry>("bicgstab_left_update_left", "6ca806a7f55bb9fa"),
      method<bicgstab_left_update_left_entry, Half::VISITING>("bicgstab_left_update_left_visiting", "6ca806a7f55bb9fa"),
      method<bicgstab_left_update_left_entry, Half::FINISHING>("bicgstab_left_update_left_finishing", "6ca806a7f55bb9fa"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
