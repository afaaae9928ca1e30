// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// best = |r|
template <class T>
struct multigrid_start {
  mat<const T> r_;
  real_t<T>* best_;
  status_of<T> status;
  using sum = real_t<T>;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T r_i = r_(i, c);
    return square(r_i);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const real_t<T> new_best = square_root(total);
    best_[c] = new_best;
  }
};

// x += z, r -= q with q = A z; observes |r|
template <class T>
struct multigrid_correct {
  mat<T> x_;
  mat<T> r_;
  mat<const T> z_;
  mat<const T> q_;
  real_t<T>* best_;
  const real_t<T>* growth_;
  status_of<T> status;
  using sum = real_t<T>;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T x_i = x_(i, c);
    const T z_i = z_(i, c);
    const T new_x = (x_i + z_i);
    const T r_i = r_(i, c);
    const T q_i = q_(i, c);
    const T new_r = (r_i - q_i);
    x_(i, c) = new_x;
    r_(i, c) = new_r;
    return square(new_r);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const real_t<T> e0 = square_root(total);
    const real_t<T> e1 = ((e0 < best_[c]) ? real_t<T>(e0) : real_t<T>(best_[c]));
    const real_t<T> new_best = e1;
    best_[c] = new_best;
    status.observe(c, e0);
    if (status.is_running(c)) {
      if (e0 > (growth_[c] * e1))
        status.halt(c, INDEFINITE);
    }
  }
};

namespace {

// best = |r|
struct multigrid_start_entry {
  static constexpr const char* operation = "multigrid.start";
  static constexpr const char* symbol = "multigrid_start";
  static constexpr const char* names[] = {
      "r",
      "best",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.r_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.r_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const multigrid_start<T> body{
          call.block<const T>(0, n, k),
          call.contiguous<real_t<T>>(1, k),
          call.status<T>(2, k),
      };
      call.submit(n * k, Map<multigrid_start<T>, multigrid_start_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// x += z, r -= q with q = A z; observes |r|
struct multigrid_correct_entry {
  static constexpr const char* operation = "multigrid.correct";
  static constexpr const char* symbol = "multigrid_correct";
  static constexpr const char* names[] = {
      "x",
      "r",
      "z",
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
    return f.x_.ld == ld && f.r_.ld == ld && f.z_.ld == ld && f.q_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x_.ld = f.r_.ld = f.z_.ld = f.q_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const multigrid_correct<T> body{
          call.block<T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<const T>(3, n, k),
          call.contiguous<real_t<T>>(4, k),
          call.contiguous<const real_t<T>>(5, k),
          call.status<T>(6, k),
      };
      call.submit(n * k, Map<multigrid_correct<T>, multigrid_correct_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

} // namespace

void add_multigrid_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<multigrid_start_entry>("multigrid_start", "30ccfa81e3b1dd78"),
      method<multigrid_start_entry, Half::VISITING>("multigrid_start_visiting", "30ccfa81e3b1dd78"),
      method<multigrid_start_entry, Half::FINISHING>("multigrid_start_finishing", "30ccfa81e3b1dd78"),
      method<multigrid_correct_entry>("multigrid_correct", "d7de9e5066057196"),
      method<multigrid_correct_entry, Half::VISITING>("multigrid_correct_visiting", "d7de9e5066057196"),
      method<multigrid_correct_entry, Half::FINISHING>("multigrid_correct_finishing", "d7de9e5066057196"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
