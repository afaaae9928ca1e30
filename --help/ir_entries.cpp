// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// best = |r|, idle = 0
template <class T>
struct ir_start {
  mat<const T> r_;
  real_t<T>* best_;
  real_t<T>* idle_;
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
    const real_t<T> new_idle = real_t<T>(0.0);
    best_[c] = new_best;
    idle_[c] = new_idle;
  }
};

// x += relaxation z, r -= relaxation q; observes |r|
template <class T>
struct ir_advance {
  mat<T> x_;
  mat<T> r_;
  mat<const T> z_;
  mat<const T> q_;
  const real_t<T>* relaxation_;
  real_t<T>* best_;
  const real_t<T>* growth_;
  real_t<T>* idle_;
  status_of<T> status;
  using sum = real_t<T>;
  struct column_state {
    bool active;
    real_t<T> relaxation_;
  };

  WL_DEVICE column_state column(i64 c) const {
    const bool active = status.is_running(c);
    return {active, active ? relaxation_[c] : real_t<T>(0)};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T x_i = x_(i, c);
    const T z_i = z_(i, c);
    const T new_x = (x_i + (s.relaxation_ * z_i));
    const T r_i = r_(i, c);
    const T q_i = q_(i, c);
    const T new_r = (r_i - (s.relaxation_ * q_i));
    x_(i, c) = new_x;
    r_(i, c) = new_r;
    return square(new_r);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const real_t<T> e0 = square_root(total);
    const bool e1 = (e0 < (real_t<T>(0.999755859375) * best_[c]));
    const real_t<T> e2 = (e1 ? real_t<T>(e0) : real_t<T>(best_[c]));
    const real_t<T> new_best = e2;
    const real_t<T> e4 = ((e1 || (e0 > (real_t<T>(16.0) * best_[c]))) ? real_t<T>(real_t<T>(0.0)) : real_t<T>((idle_[c] + real_t<T>(1.0))));
    const real_t<T> new_idle = e4;
    best_[c] = new_best;
    idle_[c] = new_idle;
    status.observe(c, e0);
    if (status.is_running(c)) {
      if (e4 >= real_t<T>(30.0))
        status.halt(c, BREAKDOWN);
      else if (e0 > (growth_[c] * e2))
        status.halt(c, INDEFINITE);
    }
  }
};

namespace {

// best = |r|, idle = 0
struct ir_start_entry {
  static constexpr const char* operation = "ir.start";
  static constexpr const char* symbol = "ir_start";
  static constexpr const char* names[] = {
      "r",
      "best",
      "idle",
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
      const ir_start<T> body{
          call.block<const T>(0, n, k),
          call.contiguous<real_t<T>>(1, k),
          call.contiguous<real_t<T>>(2, k),
          call.status<T>(3, k),
      };
      call.submit(n * k, Map<ir_start<T>, ir_start_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// x += relaxation z, r -= relaxation q; observes |r|
struct ir_advance_entry {
  static constexpr const char* operation = "ir.advance";
  static constexpr const char* symbol = "ir_advance";
  static constexpr const char* names[] = {
      "x",
      "r",
      "z",
      "q",
      "relaxation",
      "best",
      "growth",
      "idle",
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
      const ir_advance<T> body{
          call.block<T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<const T>(3, n, k),
          call.contiguous<const real_t<T>>(4, k),
          call.contiguous<real_t<T>>(5, k),
          call.contiguous<const real_t<T>>(6, k),
          call.contiguous<real_t<T>>(7, k),
          call.status<T>(8, k),
      };
      call.submit(n * k, Map<ir_advance<T>, ir_advance_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

} // namespace

void add_ir_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<ir_start_entry>("ir_start", "5fd140edee0da31a"),
      method<ir_start_entry, Half::VISITING>("ir_start_visiting", "5fd140edee0da31a"),
      method<ir_start_entry, Half::FINISHING>("ir_start_finishing", "5fd140edee0da31a"),
      method<ir_advance_entry>("ir_advance", "2162bd4674812e3a"),
      method<ir_advance_entry, Half::VISITING>("ir_advance_visiting", "2162bd4674812e3a"),
      method<ir_advance_entry, Half::FINISHING>("ir_advance_finishing", "2162bd4674812e3a"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
