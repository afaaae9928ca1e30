// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// d = z / centre, rho = half_width / centre, best = 0
template <class T>
struct chebyshev_start {
  mat<const T> z_;
  mat<T> d_;
  const real_t<T>* centre_;
  const real_t<T>* half_width_;
  real_t<T>* rho_;
  real_t<T>* best_;
  status_of<T> status;
  using sum = real_t<T>;
  struct column_state {
    bool active;
    real_t<T> centre_;
  };

  WL_DEVICE column_state column(i64 c) const {
    const bool active = status.is_running(c);
    return {active, active ? centre_[c] : real_t<T>(0)};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T z_i = z_(i, c);
    const T new_d = (z_i / s.centre_);
    d_(i, c) = new_d;
    return real_t<T>(0);
  }
  WL_DEVICE void finish(i64 c, sum) const {
    const real_t<T> new_rho = (half_width_[c] / centre_[c]);
    const real_t<T> new_best = real_t<T>(0.0);
    rho_[c] = new_rho;
    best_[c] = new_best;
  }
};

// x += d, r -= q; observes |r|
template <class T>
struct chebyshev_advance {
  mat<T> x_;
  mat<T> r_;
  mat<const T> d_;
  mat<const T> q_;
  real_t<T>* best_;
  const real_t<T>* growth_;
  status_of<T> status;
  using sum = real_t<T>;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T x_i = x_(i, c);
    const T d_i = d_(i, c);
    const T new_x = (x_i + d_i);
    const T r_i = r_(i, c);
    const T q_i = q_(i, c);
    const T new_r = (r_i - q_i);
    x_(i, c) = new_x;
    r_(i, c) = new_r;
    return square(new_r);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const real_t<T> e0 = square_root(total);
    const real_t<T> e1 = (((best_[c] == real_t<T>(0.0)) || (e0 < best_[c])) ? real_t<T>(e0) : real_t<T>(best_[c]));
    const real_t<T> new_best = e1;
    best_[c] = new_best;
    status.observe(c, e0);
    if (status.is_running(c)) {
      if (e0 > (growth_[c] * e1))
        status.halt(c, INDEFINITE);
    }
  }
};

// d = rho' rho d + (2 rho' / half_width) z, rho = rho'
template <class T>
struct chebyshev_direction {
  mat<const T> z_;
  mat<T> d_;
  const real_t<T>* centre_;
  const real_t<T>* half_width_;
  real_t<T>* rho_;
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
    const real_t<T> e0 = (real_t<T>(1.0) / ((real_t<T>(2.0) * centre_[c]) - (half_width_[c] * rho_[c])));
    return {true, ((half_width_[c] * e0) * rho_[c]), (real_t<T>(2.0) * e0)};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T d_i = d_(i, c);
    const T z_i = z_(i, c);
    const T new_d = ((s.v0 * d_i) + (s.v1 * z_i));
    d_(i, c) = new_d;
    return real_t<T>(0);
  }
  WL_DEVICE void finish(i64 c, sum) const {
    const real_t<T> e0 = (half_width_[c] * (real_t<T>(1.0) / ((real_t<T>(2.0) * centre_[c]) - (half_width_[c] * rho_[c]))));
    const real_t<T> new_rho = e0;
    rho_[c] = new_rho;
    if (!finite(e0))
      status.halt(c, NOT_FINITE);
  }
};

namespace {

// d = z / centre, rho = half_width / centre, best = 0
struct chebyshev_start_entry {
  static constexpr const char* operation = "chebyshev.start";
  static constexpr const char* symbol = "chebyshev_start";
  static constexpr const char* names[] = {
      "z",
      "d",
      "centre",
      "half_width",
      "rho",
      "best",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.z_.ld == ld && f.d_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.z_.ld = f.d_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const chebyshev_start<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.contiguous<const real_t<T>>(2, k),
          call.contiguous<const real_t<T>>(3, k),
          call.contiguous<real_t<T>>(4, k),
          call.contiguous<real_t<T>>(5, k),
          call.status<T>(6, k),
      };
      call.submit(n * k, Map<chebyshev_start<T>, chebyshev_start_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// x += d, r -= q; observes |r|
struct chebyshev_advance_entry {
  static constexpr const char* operation = "chebyshev.advance";
  static constexpr const char* symbol = "chebyshev_advance";
  static constexpr const char* names[] = {
      "x",
      "r",
      "d",
      "q",
      "best",
      "growth",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x_.ld == ld && f.r_.ld == ld && f.d_.ld == ld && f.q_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x_.ld = f.r_.ld = f.d_.ld = f.q_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const chebyshev_advance<T> body{
          call.block<T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<const T>(3, n, k),
          call.contiguous<real_t<T>>(4, k),
          call.contiguous<const real_t<T>>(5, k),
          call.status<T>(6, k),
      };
      call.submit(n * k, Map<chebyshev_advance<T>, chebyshev_advance_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// d = rho' rho d + (2 rho' / half_width) z, rho = rho'
struct chebyshev_direction_entry {
  static constexpr const char* operation = "chebyshev.direction";
  static constexpr const char* symbol = "chebyshev_direction";
  static constexpr const char* names[] = {
      "z",
      "d",
      "centre",
      "half_width",
      "rho",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.z_.ld == ld && f.d_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.z_.ld = f.d_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const chebyshev_direction<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.contiguous<const real_t<T>>(2, k),
          call.contiguous<const real_t<T>>(3, k),
          call.contiguous<real_t<T>>(4, k),
          call.status<T>(5, k),
      };
      call.submit(n * k, Map<chebyshev_direction<T>, chebyshev_direction_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

} // namespace

void add_chebyshev_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<chebyshev_start_entry>("chebyshev_start", "74c24632970cb7d9"),
      method<chebyshev_start_entry, Half::VISITING>("chebyshev_start_visiting", "74c24632970cb7d9"),
      method<chebyshev_start_entry, Half::FINISHING>("chebyshev_start_finishing", "74c24632970cb7d9"),
      method<chebyshev_advance_entry>("chebyshev_advance", "8ffc3262193af4b1"),
      method<chebyshev_advance_entry, Half::VISITING>("chebyshev_advance_visiting", "8ffc3262193af4b1"),
      method<chebyshev_advance_entry, Half::FINISHING>("chebyshev_advance_finishing", "8ffc3262193af4b1"),
      method<chebyshev_direction_entry>("chebyshev_direction", "35a93fdfcea3db84"),
      method<chebyshev_direction_entry, Half::VISITING>("chebyshev_direction_visiting", "35a93fdfcea3db84"),
      method<chebyshev_direction_entry, Half::FINISHING>("chebyshev_direction_finishing", "35a93fdfcea3db84"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
