// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// r_s = conj(r)
template <class T>
struct bicg_shadow {
  mat<const T> r_;
  mat<T> r_s_;
  status_of<T> status;
  using sum = none;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T r_i = r_(i, c);
    const T new_r_s = conj(r_i);
    r_s_(i, c) = new_r_s;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

// p = z, p_s = z_s, rho = sum r_s z; a column with rho = 0 breaks down
template <class T>
struct bicg_start {
  mat<const T> r_s_;
  mat<const T> z_;
  mat<const T> z_s_;
  mat<T> p_;
  mat<T> p_s_;
  T* rho_;
  status_of<T> status;
  using sum = T;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T z_i = z_(i, c);
    const T z_s_i = z_s_(i, c);
    const T r_s_i = r_s_(i, c);
    p_(i, c) = z_i;
    p_s_(i, c) = z_s_i;
    return (r_s_i * z_i);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const T new_rho = total;
    rho_[c] = new_rho;
    if (!finite(total))
      status.halt(c, NOT_FINITE);
    else if (total == real_t<T>(0.0))
      status.halt(c, BREAKDOWN);
  }
};

// alpha = rho / sum p_s q; a column where that is 0 or not finite breaks down
template <class T>
struct bicg_length {
  mat<const T> p_s_;
  mat<const T> q_;
  const T* rho_;
  T* alpha_;
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
    const T e0 = (rho_[c] / total);
    const T new_alpha = e0;
    alpha_[c] = new_alpha;
    if (!(finite(rho_[c]) && finite(total)))
      status.halt(c, NOT_FINITE);
    else if ((total == real_t<T>(0.0)) || !finite(e0))
      status.halt(c, BREAKDOWN);
  }
};

// x += alpha p, r -= alpha q, r_s -= alpha q_s; rho = sum r_s r; observes |r|
template <class T>
struct bicg_update {
  mat<T> x_;
  mat<T> r_;
  mat<T> r_s_;
  mat<const T> p_;
  mat<const T> q_;
  mat<const T> q_s_;
  T* rho_;
  T* rho_old_;
  const T* alpha_;
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
  };

  WL_DEVICE column_state column(i64 c) const {
    const bool active = status.is_running(c);
    return {active, active ? alpha_[c] : T(0)};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T x_i = x_(i, c);
    const T p_i = p_(i, c);
    const T new_x = (x_i + (s.alpha_ * p_i));
    const T r_i = r_(i, c);
    const T q_i = q_(i, c);
    const T new_r = (r_i - (s.alpha_ * q_i));
    const T r_s_i = r_s_(i, c);
    const T q_s_i = q_s_(i, c);
    const T new_r_s = (r_s_i - (s.alpha_ * q_s_i));
    x_(i, c) = new_x;
    r_(i, c) = new_r;
    r_s_(i, c) = new_r_s;
    return {(new_r_s * new_r), square(new_r), square(new_r_s)};
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
      else if (magnitude(total.v0) <= (((epsilon<T> * epsilon<T>) * e2) * square_root(total.v2)))
        status.halt(c, BREAKDOWN);
    }
  }
};

// rho = sum r_s z; a column with rho = 0 breaks down
template <class T>
struct bicg_weigh {
  mat<const T> r_s_;
  mat<const T> z_;
  T* rho_;
  status_of<T> status;
  using sum = T;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T r_s_i = r_s_(i, c);
    const T z_i = z_(i, c);
    return (r_s_i * z_i);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const T new_rho = total;
    rho_[c] = new_rho;
    if (!finite(total))
      status.halt(c, NOT_FINITE);
    else if (total == real_t<T>(0.0))
      status.halt(c, BREAKDOWN);
  }
};

// p = z + beta p, p_s = z_s + beta p_s with beta = rho / rho_old
template <class T>
struct bicg_direction {
  mat<const T> z_;
  mat<const T> z_s_;
  mat<T> p_;
  mat<T> p_s_;
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
    const T z_i = z_(i, c);
    const T p_i = p_(i, c);
    const T new_p = (z_i + (s.v0 * p_i));
    const T z_s_i = z_s_(i, c);
    const T p_s_i = p_s_(i, c);
    const T new_p_s = (z_s_i + (s.v0 * p_s_i));
    p_(i, c) = new_p;
    p_s_(i, c) = new_p_s;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

namespace {

// r_s = conj(r)
struct bicg_shadow_entry {
  static constexpr const char* operation = "bicg.shadow";
  static constexpr const char* symbol = "bicg_shadow";
  static constexpr const char* names[] = {
      "r",
      "r_s",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.r_.ld == ld && f.r_s_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.r_.ld = f.r_s_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const bicg_shadow<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.status<T>(2, k),
      };
      call.submit(n * k, Map<bicg_shadow<T>, bicg_shadow_entry>(body, n, k));
    });
    return none_object();
  }
};

// p = z, p_s = z_s, rho = sum r_s z; a column with rho = 0 breaks down
struct bicg_start_entry {
  static constexpr const char* operation = "bicg.start";
  static constexpr const char* symbol = "bicg_start";
  static constexpr const char* names[] = {
      "r_s",
      "z",
      "z_s",
      "p",
      "p_s",
      "rho",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.r_s_.ld == ld && f.z_.ld == ld && f.z_s_.ld == ld && f.p_.ld == ld && f.p_s_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.r_s_.ld = f.z_.ld = f.z_s_.ld = f.p_.ld = f.p_s_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const bicg_start<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<T>(3, n, k),
          call.block<T>(4, n, k),
          call.contiguous<T>(5, k),
          call.status<T>(6, k),
      };
      call.submit(n * k, Map<bicg_start<T>, bicg_start_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// alpha = rho / sum p_s q; a column where that is 0 or not finite breaks down
struct bicg_length_entry {
  static constexpr const char* operation = "bicg.length";
  static constexpr const char* symbol = "bicg_length";
  static constexpr const char* names[] = {
      "p_s",
      "q",
      "rho",
      "alpha",
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
      const bicg_length<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<const T>(2, k),
          call.contiguous<T>(3, k),
          call.status<T>(4, k),
      };
      call.submit(n * k, Map<bicg_length<T>, bicg_length_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// x += alpha p, r -= alpha q, r_s -= alpha q_s; rho = sum r_s r; observes |r|
struct bicg_update_entry {
  static constexpr const char* operation = "bicg.update";
  static constexpr const char* symbol = "bicg_update";
  static constexpr const char* names[] = {
      "x",
      "r",
      "r_s",
      "p",
      "q",
      "q_s",
      "rho",
      "rho_old",
      "alpha",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x_.ld == ld && f.r_.ld == ld && f.r_s_.ld == ld && f.p_.ld == ld && f.q_.ld == ld && f.q_s_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x_.ld = f.r_.ld = f.r_s_.ld = f.p_.ld = f.q_.ld = f.q_s_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const bicg_update<T> body{
          call.block<T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<T>(2, n, k),
          call.block<const T>(3, n, k),
          call.block<const T>(4, n, k),
          call.block<const T>(5, n, k),
          call.contiguous<T>(6, k),
          call.contiguous<T>(7, k),
          call.contiguous<const T>(8, k),
          call.status<T>(9, k),
      };
      call.submit(n * k, Map<bicg_update<T>, bicg_update_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// rho = sum r_s z; a column with rho = 0 breaks down
struct bicg_weigh_entry {
  static constexpr const char* operation = "bicg.weigh";
  static constexpr const char* symbol = "bicg_weigh";
  static constexpr const char* names[] = {
      "r_s",
      "z",
      "rho",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.r_s_.ld == ld && f.z_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.r_s_.ld = f.z_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const bicg_weigh<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<T>(2, k),
          call.status<T>(3, k),
      };
      call.submit(n * k, Map<bicg_weigh<T>, bicg_weigh_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// p = z + beta p, p_s = z_s + beta p_s with beta = rho / rho_old
struct bicg_direction_entry {
  static constexpr const char* operation = "bicg.direction";
  static constexpr const char* symbol = "bicg_direction";
  static constexpr const char* names[] = {
      "z",
      "z_s",
      "p",
      "p_s",
      "rho",
      "rho_old",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.z_.ld == ld && f.z_s_.ld == ld && f.p_.ld == ld && f.p_s_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.z_.ld = f.z_s_.ld = f.p_.ld = f.p_s_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const bicg_direction<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.block<T>(2, n, k),
          call.block<T>(3, n, k),
          call.contiguous<const T>(4, k),
          call.contiguous<const T>(5, k),
          call.status<T>(6, k),
      };
      call.submit(n * k, Map<bicg_direction<T>, bicg_direction_entry>(body, n, k));
    });
    return none_object();
  }
};

} // namespace

void add_bicg_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<bicg_shadow_entry>("bicg_shadow", "fbd01867160ed785"),
      method<bicg_start_entry>("bicg_start", "a69b9c0553f4fe0c"),
      method<bicg_start_entry, Half::VISITING>("bicg_start_visiting", "a69b9c0553f4fe0c"),
      method<bicg_start_entry, Half::FINISHING>("bicg_start_finishing", "a69b9c0553f4fe0c"),
      method<bicg_length_entry>("bicg_length", "975399d3c8e187a8"),
      method<bicg_length_entry, Half::VISITING>("bicg_length_visiting", "975399d3c8e187a8"),
      method<bicg_length_entry, Half::FINISHING>("bicg_length_finishing", "975399d3c8e187a8"),
      method<bicg_update_entry>("bicg_update", "8a5b9ec56a98992f"),
      method<bicg_update_entry, Half::VISITING>("bicg_update_visiting", "8a5b9ec56a98992f"),
      method<bicg_update_entry, Half::FINISHING>("bicg_update_finishing", "8a5b9ec56a98992f"),
      method<bicg_weigh_entry>("bicg_weigh", "b3639571185e95a7"),
      method<bicg_weigh_entry, Half::VISITING>("bicg_weigh_visiting", "b3639571185e95a7"),
      method<bicg_weigh_entry, Half::FINISHING>("bicg_weigh_finishing", "b3639571185e95a7"),
      method<bicg_direction_entry>("bicg_direction", "fe8cc589a2aa7c35"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
