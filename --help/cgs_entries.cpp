// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// shadow = r, p = q = 0, rho = |r|^2, rho_old = 1, scale = |r|
template <class T>
struct cgs_start {
  mat<const T> r_;
  mat<T> shadow_;
  mat<T> p_;
  mat<T> q_;
  T* rho_;
  T* rho_old_;
  real_t<T>* scale_;
  status_of<T> status;
  using sum = real_t<T>;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T r_i = r_(i, c);
    shadow_(i, c) = r_i;
    p_(i, c) = T(real_t<T>(0.0));
    q_(i, c) = T(real_t<T>(0.0));
    return square(r_i);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const T new_rho = T(total);
    const T new_rho_old = T(real_t<T>(1.0));
    const real_t<T> new_scale = square_root(total);
    rho_[c] = new_rho;
    rho_old_[c] = new_rho_old;
    scale_[c] = new_scale;
  }
};

// u = r + beta q, p = u + beta (q + beta p) with beta = rho / rho_old
template <class T>
struct cgs_direction {
  mat<const T> r_;
  mat<T> p_;
  mat<const T> q_;
  mat<T> u_;
  const T* rho_;
  const T* rho_old_;
  status_of<T> status;
  using sum = none;
  struct column_state {
    bool active;
    T v0;
  };

  WL_DEVICE column_state column(i64 c) const {
    const bool active = status.is_running(c);
    return {active, active ? (rho_[c] / rho_old_[c]) : T(0)};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T r_i = r_(i, c);
    const T q_i = q_(i, c);
    const T new_u = (r_i + (s.v0 * q_i));
    const T p_i = p_(i, c);
    const T new_p = (new_u + (s.v0 * (q_i + (s.v0 * p_i))));
    u_(i, c) = new_u;
    p_(i, c) = new_p;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

// alpha = rho / <shadow, v>; a column where that is 0 or not finite breaks down
template <class T>
struct cgs_length {
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

// q = u - alpha v, u += q
template <class T>
struct cgs_half {
  mat<T> q_;
  mat<T> u_;
  mat<const T> v_;
  const T* alpha_;
  status_of<T> status;
  using sum = none;
  struct column_state {
    bool active;
    T alpha_;
  };

  WL_DEVICE column_state column(i64 c) const {
    const bool active = status.is_running(c);
    return {active, active ? alpha_[c] : T(0)};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T u_i = u_(i, c);
    const T v_i = v_(i, c);
    const T new_q = (u_i - (s.alpha_ * v_i));
    const T new_u = (u_i + new_q);
    q_(i, c) = new_q;
    u_(i, c) = new_u;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

// x += alpha w, r -= alpha v; rho_old = rho, rho = <shadow, r>; observes |r|
template <class T>
struct cgs_update {
  mat<T> x_;
  mat<T> r_;
  mat<const T> w_;
  mat<const T> shadow_;
  mat<const T> v_;
  T* rho_;
  T* rho_old_;
  const T* alpha_;
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
  };

  WL_DEVICE column_state column(i64 c) const {
    const bool active = status.is_running(c);
    return {active, active ? alpha_[c] : T(0)};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T x_i = x_(i, c);
    const T w_i = w_(i, c);
    const T new_x = (x_i + (s.alpha_ * w_i));
    const T r_i = r_(i, c);
    const T v_i = v_(i, c);
    const T new_r = (r_i - (s.alpha_ * v_i));
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

// shadow = r, p = q = 0, rho = |r|^2, rho_old = 1, scale = |r|
struct cgs_start_entry {
  static constexpr const char* operation = "cgs.start";
  static constexpr const char* symbol = "cgs_start";
  static constexpr const char* names[] = {
      "r",
      "shadow",
      "p",
      "q",
      "rho",
      "rho_old",
      "scale",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.r_.ld == ld && f.shadow_.ld == ld && f.p_.ld == ld && f.q_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.r_.ld = f.shadow_.ld = f.p_.ld = f.q_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const cgs_start<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<T>(2, n, k),
          call.block<T>(3, n, k),
          call.contiguous<T>(4, k),
          call.contiguous<T>(5, k),
          call.contiguous<real_t<T>>(6, k),
          call.status<T>(7, k),
      };
      call.submit(n * k, Map<cgs_start<T>, cgs_start_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// u = r + beta q, p = u + beta (q + beta p) with beta = rho / rho_old
struct cgs_direction_entry {
  static constexpr const char* operation = "cgs.direction";
  static constexpr const char* symbol = "cgs_direction";
  static constexpr const char* names[] = {
      "r",
      "p",
      "q",
      "u",
      "rho",
      "rho_old",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.r_.ld == ld && f.p_.ld == ld && f.q_.ld == ld && f.u_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.r_.ld = f.p_.ld = f.q_.ld = f.u_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const cgs_direction<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<T>(3, n, k),
          call.contiguous<const T>(4, k),
          call.contiguous<const T>(5, k),
          call.status<T>(6, k),
      };
      call.submit(n * k, Map<cgs_direction<T>, cgs_direction_entry>(body, n, k));
    });
    return none_object();
  }
};

// alpha = rho / <shadow, v>; a column where that is 0 or not finite breaks down
struct cgs_length_entry {
  static constexpr const char* operation = "cgs.length";
  static constexpr const char* symbol = "cgs_length";
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
      const cgs_length<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<const T>(2, k),
          call.contiguous<T>(3, k),
          call.status<T>(4, k),
      };
      call.submit(n * k, Map<cgs_length<T>, cgs_length_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// q = u - alpha v, u += q
struct cgs_half_entry {
  static constexpr const char* operation = "cgs.half";
  static constexpr const char* symbol = "cgs_half";
  static constexpr const char* names[] = {
      "q",
      "u",
      "v",
      "alpha",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.q_.ld == ld && f.u_.ld == ld && f.v_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.q_.ld = f.u_.ld = f.v_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const cgs_half<T> body{
          call.block<T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.contiguous<const T>(3, k),
          call.status<T>(4, k),
      };
      call.submit(n * k, Map<cgs_half<T>, cgs_half_entry>(body, n, k));
    });
    return none_object();
  }
};

// x += alpha w, r -= alpha v; rho_old = rho, rho = <shadow, r>; observes |r|
struct cgs_update_entry {
  static constexpr const char* operation = "cgs.update";
  static constexpr const char* symbol = "cgs_update";
  static constexpr const char* names[] = {
      "x",
      "r",
      "w",
      "shadow",
      "v",
      "rho",
      "rho_old",
      "alpha",
      "scale",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x_.ld == ld && f.r_.ld == ld && f.w_.ld == ld && f.shadow_.ld == ld && f.v_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x_.ld = f.r_.ld = f.w_.ld = f.shadow_.ld = f.v_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const cgs_update<T> body{
          call.block<T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<const T>(3, n, k),
          call.block<const T>(4, n, k),
          call.contiguous<T>(5, k),
          call.contiguous<T>(6, k),
          call.contiguous<const T>(7, k),
          call.contiguous<const real_t<T>>(8, k),
          call.status<T>(9, k),
      };
      call.submit(n * k, Map<cgs_update<T>, cgs_update_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

} // namespace

void add_cgs_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<cgs_start_entry>("cgs_start", "12a620bbc0c43b98"),
      method<cgs_start_entry, Half::VISITING>("cgs_start_visiting", "12a620bbc0c43b98"),
      method<cgs_start_entry, Half::FINISHING>("cgs_start_finishing", "12a620bbc0c43b98"),
      method<cgs_direction_entry>("cgs_direction", "1163d0b8ec94c17a"),
      method<cgs_length_entry>("cgs_length", "0ccbb399b9a0049d"),
      method<cgs_length_entry, Half::VISITING>("cgs_length_visiting", "0ccbb399b9a0049d"),
      method<cgs_length_entry, Half::FINISHING>("cgs_length_finishing", "0ccbb399b9a0049d"),
      method<cgs_half_entry>("cgs_half", "096342d228757f79"),
      method<cgs_update_entry>("cgs_update", "68c895672df12fcf"),
      method<cgs_update_entry, Half::VISITING>("cgs_update_visiting", "68c895672df12fcf"),
      method<cgs_update_entry, Half::FINISHING>("cgs_update_finishing", "68c895672df12fcf"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
