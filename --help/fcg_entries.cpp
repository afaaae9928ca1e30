// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// p = z
template <class T>
struct fcg_start {
  mat<const T> z_;
  mat<T> p_;
  status_of<T> status;
  using sum = none;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T z_i = z_(i, c);
    p_(i, c) = z_i;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

// pq = <p, q>, rho = <p, r>; a column where one is <= 0 halts as indefinite
template <class T>
struct fcg_curvature {
  mat<const T> r_;
  mat<const T> p_;
  mat<const T> q_;
  T* rho_;
  T* pq_;
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
    const T p_i = p_(i, c);
    const T q_i = q_(i, c);
    const T r_i = r_(i, c);
    return {(conj(p_i) * q_i), (conj(p_i) * r_i)};
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const T new_pq = total.v0;
    const T new_rho = total.v1;
    pq_[c] = new_pq;
    rho_[c] = new_rho;
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

// x += alpha p, r -= alpha q, qz = <q, r> with alpha = rho / pq; observes |r|
template <class T>
struct fcg_update {
  mat<T> x_;
  mat<T> r_;
  mat<const T> p_;
  mat<const T> q_;
  const T* rho_;
  const T* pq_;
  T* qz_;
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
    x_(i, c) = new_x;
    r_(i, c) = new_r;
    return {(conj(q_i) * new_r), square(new_r)};
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const T new_qz = total.v0;
    qz_[c] = new_qz;
    status.observe(c, square_root(total.v1));
  }
};

// qz = <q, z>
template <class T>
struct fcg_project {
  mat<const T> z_;
  mat<const T> q_;
  T* qz_;
  status_of<T> status;
  using sum = T;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T q_i = q_(i, c);
    const T z_i = z_(i, c);
    return (conj(q_i) * z_i);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const T new_qz = total;
    qz_[c] = new_qz;
  }
};

// p = z - beta p with beta = qz / pq
template <class T>
struct fcg_direction {
  mat<const T> z_;
  mat<T> p_;
  const T* pq_;
  const T* qz_;
  status_of<T> status;
  using sum = none;
  struct column_state {
    bool active;
    T v0;
  };

  WL_DEVICE column_state column(i64 c) const {
    const bool active = status.is_running(c);
    return {active, active ? (qz_[c] / pq_[c]) : T(0)};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T z_i = z_(i, c);
    const T p_i = p_(i, c);
    const T new_p = (z_i - (s.v0 * p_i));
    p_(i, c) = new_p;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

namespace {

// p = z
struct fcg_start_entry {
  static constexpr const char* operation = "fcg.start";
  static constexpr const char* symbol = "fcg_start";
  static constexpr const char* names[] = {
      "z",
      "p",
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
      const fcg_start<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.status<T>(2, k),
      };
      call.submit(n * k, Map<fcg_start<T>, fcg_start_entry>(body, n, k));
    });
    return none_object();
  }
};

// pq = <p, q>, rho = <p, r>; a column where one is <= 0 halts as indefinite
struct fcg_curvature_entry {
  static constexpr const char* operation = "fcg.curvature";
  static constexpr const char* symbol = "fcg_curvature";
  static constexpr const char* names[] = {
      "r",
      "p",
      "q",
      "rho",
      "pq",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.r_.ld == ld && f.p_.ld == ld && f.q_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.r_.ld = f.p_.ld = f.q_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const fcg_curvature<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.block<const T>(2, n, k),
          call.contiguous<T>(3, k),
          call.contiguous<T>(4, k),
          call.status<T>(5, k),
      };
      call.submit(n * k, Map<fcg_curvature<T>, fcg_curvature_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// x += alpha p, r -= alpha q, qz = <q, r> with alpha = rho / pq; observes |r|
struct fcg_update_entry {
  static constexpr const char* operation = "fcg.update";
  static constexpr const char* symbol = "fcg_update";
  static constexpr const char* names[] = {
      "x",
      "r",
      "p",
      "q",
      "rho",
      "pq",
      "qz",
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
      const fcg_update<T> body{
          call.block<T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<const T>(3, n, k),
          call.contiguous<const T>(4, k),
          call.contiguous<const T>(5, k),
          call.contiguous<T>(6, k),
          call.status<T>(7, k),
      };
      call.submit(n * k, Map<fcg_update<T>, fcg_update_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// qz = <q, z>
struct fcg_project_entry {
  static constexpr const char* operation = "fcg.project";
  static constexpr const char* symbol = "fcg_project";
  static constexpr const char* names[] = {
      "z",
      "q",
      "qz",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.z_.ld == ld && f.q_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.z_.ld = f.q_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const fcg_project<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<T>(2, k),
          call.status<T>(3, k),
      };
      call.submit(n * k, Map<fcg_project<T>, fcg_project_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// p = z - beta p with beta = qz / pq
struct fcg_direction_entry {
  static constexpr const char* operation = "fcg.direction";
  static constexpr const char* symbol = "fcg_direction";
  static constexpr const char* names[] = {
      "z",
      "p",
      "pq",
      "qz",
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
      const fcg_direction<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.contiguous<const T>(2, k),
          call.contiguous<const T>(3, k),
          call.status<T>(4, k),
      };
      call.submit(n * k, Map<fcg_direction<T>, fcg_direction_entry>(body, n, k));
    });
    return none_object();
  }
};

} // namespace

void add_fcg_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<fcg_start_entry>("fcg_start", "35ee9e4a067a11fb"),
      method<fcg_curvature_entry>("fcg_curvature", "051e34e4d78451b1"),
      method<fcg_curvature_entry, Half::VISITING>("fcg_curvature_visiting", "051e34e4d78451b1"),
      method<fcg_curvature_entry, Half::FINISHING>("fcg_curvature_finishing", "051e34e4d78451b1"),
      method<fcg_update_entry>("fcg_update", "300e173f506bbaee"),
      method<fcg_update_entry, Half::VISITING>("fcg_update_visiting", "300e173f506bbaee"),
      method<fcg_update_entry, Half::FINISHING>("fcg_update_finishing", "300e173f506bbaee"),
      method<fcg_project_entry>("fcg_project", "dfb284754763b126"),
      method<fcg_project_entry, Half::VISITING>("fcg_project_visiting", "dfb284754763b126"),
      method<fcg_project_entry, Half::FINISHING>("fcg_project_finishing", "dfb284754763b126"),
      method<fcg_direction_entry>("fcg_direction", "b46fa3ca65023403"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
