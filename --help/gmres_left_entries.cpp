// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// length = caution |r|, ratio = |z| / length, caution = 10; halt where |z| is 0
template <class T>
struct gmres_left_measure {
  mat<const T> r_;
  mat<const T> z_;
  real_t<T>* length_;
  real_t<T>* ratio_;
  real_t<T>* caution_;
  status_of<T> status;
  struct sum {
    real_t<T> v0;
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
    const T r_i = r_(i, c);
    const T z_i = z_(i, c);
    return {square(r_i), square(z_i)};
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const real_t<T> e0 = (caution_[c] * square_root(total.v0));
    const real_t<T> new_length = e0;
    const real_t<T> e2 = square_root(total.v1);
    const real_t<T> new_ratio = (e2 / e0);
    const real_t<T> new_caution = real_t<T>(10.0);
    length_[c] = new_length;
    ratio_[c] = new_ratio;
    caution_[c] = new_caution;
    status.begin(c, e0);
    if (status.is_running(c)) {
      if (!finite(e2))
        status.halt(c, NOT_FINITE);
      else if (e2 == real_t<T>(0.0))
        status.halt(c, BREAKDOWN);
    }
  }
};

// r = z / ratio, which has the norm of the status
template <class T>
struct gmres_left_scale {
  mat<T> r_;
  mat<const T> z_;
  const real_t<T>* ratio_;
  status_of<T> status;
  using sum = none;
  struct column_state {
    bool active;
    real_t<T> ratio_;
  };

  WL_DEVICE column_state column(i64 c) const {
    const bool active = status.is_running(c);
    return {active, active ? ratio_[c] : real_t<T>(0)};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T z_i = z_(i, c);
    const T new_r = (z_i / s.ratio_);
    r_(i, c) = new_r;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

namespace {

// length = caution |r|, ratio = |z| / length, caution = 10; halt where |z| is 0
struct gmres_left_measure_entry {
  static constexpr const char* operation = "gmres_left.measure";
  static constexpr const char* symbol = "gmres_left_measure";
  static constexpr const char* names[] = {
      "r",
      "z",
      "length",
      "ratio",
      "caution",
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
      const gmres_left_measure<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<real_t<T>>(2, k),
          call.contiguous<real_t<T>>(3, k),
          call.contiguous<real_t<T>>(4, k),
          call.status<T>(5, k),
      };
      call.submit(n * k, Map<gmres_left_measure<T>, gmres_left_measure_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// r = z / ratio, which has the norm of the status
struct gmres_left_scale_entry {
  static constexpr const char* operation = "gmres_left.scale";
  static constexpr const char* symbol = "gmres_left_scale";
  static constexpr const char* names[] = {
      "r",
      "z",
      "ratio",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
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
      const gmres_left_scale<T> body{
          call.block<T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<const real_t<T>>(2, k),
          call.status<T>(3, k),
      };
      call.submit(n * k, Map<gmres_left_scale<T>, gmres_left_scale_entry>(body, n, k));
    });
    return none_object();
  }
};

} // namespace

void add_gmres_left_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<gmres_left_measure_entry>("gmres_left_measure", "85e20cca4b98584c"),
      method<gmres_left_measure_entry, Half::VISITING>("gmres_left_measure_visiting", "85e20cca4b98584c"),
      method<gmres_left_measure_entry, Half::FINISHING>("gmres_left_measure_finishing", "85e20cca4b98584c"),
      method<gmres_left_scale_entry>("gmres_left_scale", "6794d293a7ca918c"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
