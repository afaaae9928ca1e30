// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// p = z, rho = <r, z>; a column with rho <= 0 halts as indefinite
template <class T>
struct cg_start {
  mat<const T> r_;
  mat<const T> z_;
  mat<T> p_;
  T* rho_;
  status_of<T> status;
  using sum = T;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T z_i = z_(i, c);
    const T r_i = r_(i, c);
    p_(i, c) = z_i;
    return (conj(r_i) * z_i);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const T new_rho = total;
    rho_[c] = new_rho;
    if (!finite(total))
      status.halt(c, NOT_FINITE);
    else if (!(real(total) > real_t<T>(0.0)))
      status.halt(c, INDEFINITE);
  }
};

// pq = <p, q>; a column with pq <= 0 halts as indefinite
template <class T>
struct cg_curvature {
  mat<const T> p_;
  mat<const T> q_;
  T* pq_;
  status_of<T> status;
  using sum = T;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T p_i = p_(i, c);
    const T q_i = q_(i, c);
    return (conj(p_i) * q_i);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const T new_pq = total;
    pq_[c] = new_pq;
    if (!finite(total))
      status.halt(c, NOT_FINITE);
    else if (!(real(total) > real_t<T>(0.0)))
      status.halt(c, INDEFINITE);
  }
};

// x += alpha p, r -= alpha q; rho_old = rho, rho = |r|^2; observes |r|
template <class T>
struct cg_update {
  mat<T> x_;
  mat<T> r_;
  mat<const T> p_;
  mat<const T> q_;
  T* rho_;
  T* rho_old_;
  const T* pq_;
  status_of<T> status;
  using sum = real_t<T>;
  struct column_state {
    bool active;
    T v0;
  };

  WL_DEVICE column_state column(i64 c) const {
    const bool active = status.is_running(c);
    return {active, active ? (rho_[c] / pq_[c]) : T(0)};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T x_i = x_(i, c);
    const T p_i = p_(i, c);
    const T new_x = (x_i + (s.v0 * p_i));
    const T r_i = r_(i, c);
    const T q_i = q_(i, c);
    const T new_r = (r_i - (s.v0 * q_i));
    x_(i, c) = new_x;
    r_(i, c) = new_r;
    return square(new_r);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const T new_rho_old = rho_[c];
    const T new_rho = T(total);
    rho_old_[c] = new_rho_old;
    rho_[c] = new_rho;
    status.observe(c, square_root(total));
  }
};

// rho = <r, z>; a column with rho <= 0 halts as indefinite
template <class T>
struct cg_weigh {
  mat<const T> r_;
  mat<const T> z_;
  T* rho_;
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
    const T new_rho = total;
    rho_[c] = new_rho;
    if (!finite(total))
      status.halt(c, NOT_FINITE);
    else if (!(real(total) > real_t<T>(0.0)))
      status.halt(c, INDEFINITE);
  }
};

// Do ``update`` and ``weigh`` in one pass, with z = factors r for M r; observes |r|
template <class T>
struct cg_update_scaled {
  mat<T> x_;
  mat<T> r_;
  mat<T> z_;
  mat<const T> p_;
  mat<const T> q_;
  const T* factors_;
  T* rho_;
  T* rho_old_;
  const T* pq_;
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
    T v0;
  };

  WL_DEVICE column_state column(i64 c) const {
    const bool active = status.is_running(c);
    return {active, active ? (rho_[c] / pq_[c]) : T(0)};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T x_i = x_(i, c);
    const T p_i = p_(i, c);
    const T new_x = (x_i + (s.v0 * p_i));
    const T r_i = r_(i, c);
    const T q_i = q_(i, c);
    const T new_r = (r_i - (s.v0 * q_i));
    const T factors_i = factors_[i];
    const T new_z = (factors_i * new_r);
    x_(i, c) = new_x;
    r_(i, c) = new_r;
    z_(i, c) = new_z;
    return {(conj(new_r) * new_z), square(new_r)};
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
      else if (!(real(total.v0) > real_t<T>(0.0)))
        status.halt(c, INDEFINITE);
    }
  }
};

// p = z + beta p with beta = rho / rho_old
template <class T>
struct cg_direction {
  mat<const T> z_;
  mat<T> p_;
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
    p_(i, c) = new_p;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

namespace {

// p = z, rho = <r, z>; a column with rho <= 0 halts as indefinite
struct cg_start_entry {
  static constexpr const char* operation = "cg.start";
  static constexpr const char* symbol = "cg_start";
  static constexpr const char* names[] = {
      "r",
      "z",
      "p",
      "rho",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.r_.ld == ld && f.z_.ld == ld && f.p_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.r_.ld = f.z_.ld = f.p_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const cg_start<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.block<T>(2, n, k),
          call.contiguous<T>(3, k),
          call.status<T>(4, k),
      };
      call.submit(n * k, Map<cg_start<T>, cg_start_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// pq = <p, q>; a column with pq <= 0 halts as indefinite
struct cg_curvature_entry {
  static constexpr const char* operation = "cg.curvature";
  static constexpr const char* symbol = "cg_curvature";
  static constexpr const char* names[] = {
      "p",
      "q",
      "pq",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.p_.ld == ld && f.q_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.p_.ld = f.q_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const cg_curvature<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<T>(2, k),
          call.status<T>(3, k),
      };
      call.submit(n * k, Map<cg_curvature<T>, cg_curvature_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// x += alpha p, r -= alpha q; rho_old = rho, rho = |r|^2; observes |r|
struct cg_update_entry {
  static constexpr const char* operation = "cg.update";
  static constexpr const char* symbol = "cg_update";
  static constexpr const char* names[] = {
      "x",
      "r",
      "p",
      "q",
      "rho",
      "rho_old",
      "pq",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x_.ld == ld && f.r_.ld == ld && f.p_.ld == ld && f.q_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x_.ld = f.r_.ld = f.p_.ld = f.q_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const cg_update<T> body{
          call.block<T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<const T>(3, n, k),
          call.contiguous<T>(4, k),
          call.contiguous<T>(5, k),
          call.contiguous<const T>(6, k),
          call.status<T>(7, k),
      };
      call.submit(n * k, Map<cg_update<T>, cg_update_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// rho = <r, z>; a column with rho <= 0 halts as indefinite
struct cg_weigh_entry {
  static constexpr const char* operation = "cg.weigh";
  static constexpr const char* symbol = "cg_weigh";
  static constexpr const char* names[] = {
      "r",
      "z",
      "rho",
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
      const cg_weigh<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<T>(2, k),
          call.status<T>(3, k),
      };
      call.submit(n * k, Map<cg_weigh<T>, cg_weigh_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// Do ``update`` and ``weigh`` in one pass, with z = factors r for M r; observes |r|
struct cg_update_scaled_entry {
  static constexpr const char* operation = "cg.update_scaled";
  static constexpr const char* symbol = "cg_update_scaled";
  static constexpr const char* names[] = {
      "x",
      "r",
      "z",
      "p",
      "q",
      "factors",
      "rho",
      "rho_old",
      "pq",
      "status",
  };
  static constexpr bool by_row = true;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x_.ld == ld && f.r_.ld == ld && f.z_.ld == ld && f.p_.ld == ld && f.q_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x_.ld = f.r_.ld = f.z_.ld = f.p_.ld = f.q_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const cg_update_scaled<T> body{
          call.block<T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<T>(2, n, k),
          call.block<const T>(3, n, k),
          call.block<const T>(4, n, k),
          call.contiguous<const T>(5, n),
          call.contiguous<T>(6, k),
          call.contiguous<T>(7, k),
          call.contiguous<const T>(8, k),
          call.status<T>(9, k),
      };
      call.submit(n * k, Map<cg_update_scaled<T>, cg_update_scaled_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// p = z + beta p with beta = rho / rho_old
struct cg_direction_entry {
  static constexpr const char* operation = "cg.direction";
  static constexpr const char* symbol = "cg_direction";
  static constexpr const char* names[] = {
      "z",
      "p",
      "rho",
      "rho_old",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.z_.ld == ld && f.p_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.z_.ld = f.p_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const cg_direction<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.contiguous<const T>(2, k),
          call.contiguous<const T>(3, k),
          call.status<T>(4, k),
      };
      call.submit(n * k, Map<cg_direction<T>, cg_direction_entry>(body, n, k));
    });
    return none_object();
  }
};

} // namespace

void add_cg_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<cg_start_entry>("cg_start", "9c3f88daf235b10d"),
      method<cg_start_entry, Half::VISITING>("cg_start_visiting", "9c3f88daf235b10d"),
      method<cg_start_entry, Half::FINISHING>("cg_start_finishing", "9c3f88daf235b10d"),
      method<cg_curvature_entry>("cg_curvature", "c0cfac2a1a5b31a8"),
      method<cg_curvature_entry, Half::VISITING>("cg_curvature_visiting", "c0cfac2a1a5b31a8"),
      method<cg_curvature_entry, Half::FINISHING>("cg_curvature_finishing", "c0cfac2a1a5b31a8"),
      method<cg_update_entry>("cg_update", "0d981b138d6d02e9"),
      method<cg_update_entry, Half::VISITING>("cg_update_visiting", "0d981b138d6d02e9"),
      method<cg_update_entry, Half::FINISHING>("cg_update_finishing", "0d981b138d6d02e9"),
      method<cg_weigh_entry>("cg_weigh", "498e4ea8f707a67f"),
      method<cg_weigh_entry, Half::VISITING>("cg_weigh_visiting", "498e4ea8f707a67f"),
      method<cg_weigh_entry, Half::FINISHING>("cg_weigh_finishing", "498e4ea8f707a67f"),
      method<cg_update_scaled_entry>("cg_update_scaled", "7bf4643c06a1678b"),
      method<cg_update_scaled_entry, Half::VISITING>("cg_update_scaled_visiting", "7bf4643c06a1678b"),
      method<cg_update_scaled_entry, Half::FINISHING>("cg_update_scaled_finishing", "7bf4643c06a1678b"),
      method<cg_direction_entry>("cg_direction", "45d72527d804aa72"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
