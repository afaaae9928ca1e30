// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// shadow = r, p = v = 0, rho = |r|^2, rho_old = alpha = omega = 1, scale = |r|
template <class T>
struct bicgstab_start {
  mat<const T> r_;
  mat<T> shadow_;
  mat<T> p_;
  mat<T> v_;
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
    const T r_i = r_(i, c);
    shadow_(i, c) = r_i;
    p_(i, c) = T(real_t<T>(0.0));
    v_(i, c) = T(real_t<T>(0.0));
    return square(r_i);
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

// p = r + beta (p - omega v) with beta = (rho / rho_old) (alpha / omega)
template <class T>
struct bicgstab_direction {
  mat<const T> r_;
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
    const T r_i = r_(i, c);
    const T p_i = p_(i, c);
    const T v_i = v_(i, c);
    const T new_p = (r_i + (s.v0 * (p_i - (s.omega_ * v_i))));
    p_(i, c) = new_p;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

// alpha = rho / <shadow, v>; a column where that is 0 or not finite breaks down
template <class T>
struct bicgstab_length {
  mat<const T> shadow_;
  mat<const T> v_;
  const T* rho_;
  T* alpha_;
  status_of<T> status;
  using sum = T;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T shadow_i = shadow_(i, c);
    const T v_i = v_(i, c);
    return (conj(shadow_i) * v_i);
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

// r -= alpha v; halfway = whether |r| is at its threshold already
template <class T>
struct bicgstab_half {
  mat<T> r_;
  mat<const T> v_;
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
    const T r_i = r_(i, c);
    const T v_i = v_(i, c);
    const T new_r = (r_i - (s.alpha_ * v_i));
    r_(i, c) = new_r;
    return square(new_r);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const u8 new_halfway = (square_root(total) <= status.threshold[c]);
    halfway_[c] = new_halfway;
  }
};

// omega = <t, r> / <t, t>; where that is 0 or not finite the column breaks down
template <class T>
struct bicgstab_stabilize {
  mat<const T> r_;
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
    const T r_i = r_(i, c);
    return {(conj(t_i) * r_i), square(t_i)};
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

// x += alpha y + omega z, r -= omega t; rho_old = rho, rho = <shadow, r>; observes |r|
template <class T>
struct bicgstab_update {
  mat<T> x_;
  mat<T> r_;
  mat<const T> y_;
  mat<const T> z_;
  mat<const T> shadow_;
  mat<const T> t_;
  T* rho_;
  T* rho_old_;
  const T* alpha_;
  const T* omega_;
  const real_t<T>* scale_;
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
    const T y_i = y_(i, c);
    const T z_i = z_(i, c);
    const T new_x = (x_i + ((s.alpha_ * y_i) + (s.omega_ * z_i)));
    const T r_i = r_(i, c);
    const T t_i = t_(i, c);
    const T new_r = (r_i - (s.omega_ * t_i));
    const T shadow_i = shadow_(i, c);
    x_(i, c) = new_x;
    r_(i, c) = new_r;
    return {(conj(shadow_i) * new_r), square(new_r)};
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const T new_rho_old = rho_[c];
    const T new_rho = total.v0;
    const real_t<T> e2 = square_root(total.v1);
    rho_old_[c] = new_rho_old;
    rho_[c] = new_rho;
    status.observe(c, e2);
    if (status.is_running(c)) {
      if (!finite(total.v0))
        status.halt(c, NOT_FINITE);
      else if (magnitude(total.v0) <= (((epsilon<T> * epsilon<T>) * scale_[c]) * e2))
        status.halt(c, BREAKDOWN);
    }
  }
};

namespace {

// shadow = r, p = v = 0, rho = |r|^2, rho_old = alpha = omega = 1, scale = |r|
struct bicgstab_start_entry {
  static constexpr const char* operation = "bicgstab.start";
  static constexpr const char* symbol = "bicgstab_start";
  static constexpr const char* names[] = {
      "r",
      "shadow",
      "p",
      "v",
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
    return f.r_.ld == ld && f.shadow_.ld == ld && f.p_.ld == ld && f.v_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.r_.ld = f.shadow_.ld = f.p_.ld = f.v_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const bicgstab_start<T> body{
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
      call.submit(n * k, Map<bicgstab_start<T>, bicgstab_start_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// p = r + beta (p - omega v) with beta = (rho / rho_old) (alpha / omega)
struct bicgstab_direction_entry {
  static constexpr const char* operation = "bicgstab.direction";
  static constexpr const char* symbol = "bicgstab_direction";
  static constexpr const char* names[] = {
      "r",
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
    return f.r_.ld == ld && f.p_.ld == ld && f.v_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.r_.ld = f.p_.ld = f.v_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const bicgstab_direction<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.contiguous<const T>(3, k),
          call.contiguous<const T>(4, k),
          call.contiguous<const T>(5, k),
          call.contiguous<const T>(6, k),
          call.status<T>(7, k),
      };
      call.submit(n * k, Map<bicgstab_direction<T>, bicgstab_direction_entry>(body, n, k));
    });
    return none_object();
  }
};

// alpha = rho / <shadow, v>; a column where that is 0 or not finite breaks down
struct bicgstab_length_entry {
  static constexpr const char* operation = "bicgstab.length";
  static constexpr const char* symbol = "bicgstab_length";
  static constexpr const char* names[] = {
      "shadow",
      "v",
      "rho",
      "alpha",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.shadow_.ld == ld && f.v_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.shadow_.ld = f.v_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const bicgstab_length<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<const T>(2, k),
          call.contiguous<T>(3, k),
          call.status<T>(4, k),
      };
      call.submit(n * k, Map<bicgstab_length<T>, bicgstab_length_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// r -= alpha v; halfway = whether |r| is at its threshold already
struct bicgstab_half_entry {
  static constexpr const char* operation = "bicgstab.half";
  static constexpr const char* symbol = "bicgstab_half";
  static constexpr const char* names[] = {
      "r",
      "v",
      "alpha",
      "halfway",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.r_.ld == ld && f.v_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.r_.ld = f.v_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const bicgstab_half<T> body{
          call.block<T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<const T>(2, k),
          call.contiguous<u8>(3, k),
          call.status<T>(4, k),
      };
      call.submit(n * k, Map<bicgstab_half<T>, bicgstab_half_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// omega = <t, r> / <t, t>; where that is 0 or not finite the column breaks down
struct bicgstab_stabilize_entry {
  static constexpr const char* operation = "bicgstab.stabilize";
  static constexpr const char* symbol = "bicgstab_stabilize";
  static constexpr const char* names[] = {
      "r",
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
    return f.r_.ld == ld && f.t_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.r_.ld = f.t_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const bicgstab_stabilize<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<T>(2, k),
          call.contiguous<const u8>(3, k),
          call.status<T>(4, k),
      };
      call.submit(n * k, Map<bicgstab_stabilize<T>, bicgstab_stabilize_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// x += alpha y + omega z, r -= omega t; rho_old = rho, rho = <shadow, r>; observes |r|
struct bicgstab_update_entry {
  static constexpr const char* operation = "bicgstab.update";
  static constexpr const char* symbol = "bicgstab_update";
  static constexpr const char* names[] = {
      "x",
      "r",
      "y",
      "z",
      "shadow",
      "t",
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
    return f.x_.ld == ld && f.r_.ld == ld && f.y_.ld == ld && f.z_.ld == ld && f.shadow_.ld == ld && f.t_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x_.ld = f.r_.ld = f.y_.ld = f.z_.ld = f.shadow_.ld = f.t_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const bicgstab_update<T> body{
          call.block<T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<const T>(3, n, k),
          call.block<const T>(4, n, k),
          call.block<const T>(5, n, k),
          call.contiguous<T>(6, k),
          call.contiguous<T>(7, k),
          call.contiguous<const T>(8, k),
          call.contiguous<const T>(9, k),
          call.contiguous<const real_t<T>>(10, k),
          call.status<T>(11, k),
      };
      call.submit(n * k, Map<bicgstab_update<T>, bicgstab_update_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

} // namespace

void add_bicgstab_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<bicgstab_start_entry>("bicgstab_start", "c31db9d92f4160a0"),
      method<bicgstab_start_entry, Half::VISITING>("bicgstab_start_visiting", "c31db9d92f4160a0"),
      method<bicgstab_start_entry, Half::FINISHING>("bicgstab_start_finishing", "c31db9d92f4160a0"),
      method<bicgstab_direction_entry>("bicgstab_direction", "526a4bdccc8b326d"),
      method<bicgstab_length_entry>("bicgstab_length", "ee99a1f13013bfd6"),
      method<bicgstab_length_entry, Half::VISITING>("bicgstab_length_visiting", "ee99a1f13013bfd6"),
      method<bicgstab_length_entry, Half::FINISHING>("bicgstab_length_finishing", "ee99a1f13013bfd6"),
      method<bicgstab_half_entry>("bicgstab_half", "653b5b1f435474e7"),
      method<bicgstab_half_entry, Half::VISITING>("bicgstab_half_visiting", "653b5b1f435474e7"),
      method<bicgstab_half_entry, Half::FINISHING>("bicgstab_half_finishing", "653b5b1f435474e7"),
      method<bicgstab_stabilize_entry>("bicgstab_stabilize", "ca87c47af3d31a19"),
      method<bicgstab_stabilize_entry, Half::VISITING>("bicgstab_stabilize_visiting", "ca87c47af3d31a19"),
      method<bicgstab_stabilize_entry, Half::FINISHING>("bicgstab_stabilize_finishing", "ca87c47af3d31a19"),
      method<bicgstab_update_entry>("bicgstab_update", "55539131e87b94eb"),
      method<bicgstab_update_entry, Half::VISITING>("bicgstab_update_visiting", "55539131e87b94eb"),
      method<bicgstab_update_entry, Half::FINISHING>("bicgstab_update_finishing", "55539131e87b94eb"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
