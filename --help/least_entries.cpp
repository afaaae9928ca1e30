// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// true_r2 = |r|^2
template <class T>
struct least_measure_residual {
  mat<const T> r_;
  real_t<T>* true_r2_;
  using sum = real_t<T>;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64) const { return {true}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T r_i = r_(i, c);
    return square(r_i);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const real_t<T> new_true_r2 = total;
    true_r2_[c] = new_true_r2;
  }
};

// true_normal2 = <t, z>, true_t2 = |t|^2, true_x2 = |x|^2 with t = A^H r, z = M t
template <class T>
struct least_measure_normal {
  mat<const T> x_;
  mat<const T> t_;
  mat<const T> z_;
  real_t<T>* true_normal2_;
  real_t<T>* true_t2_;
  real_t<T>* true_x2_;
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
  using column_state = taking_part;

  WL_DEVICE column_state column(i64) const { return {true}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T t_i = t_(i, c);
    const T z_i = z_(i, c);
    const T x_i = x_(i, c);
    return {(conj(t_i) * z_i), square(t_i), square(x_i)};
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const real_t<T> new_true_normal2 = real(total.v0);
    const real_t<T> new_true_t2 = total.v1;
    const real_t<T> new_true_x2 = total.v2;
    true_normal2_[c] = new_true_normal2;
    true_t2_[c] = new_true_t2;
    true_x2_[c] = new_true_x2;
  }
};

namespace {

// true_r2 = |r|^2
struct least_measure_residual_entry {
  static constexpr const char* operation = "least.measure_residual";
  static constexpr const char* symbol = "least_measure_residual";
  static constexpr const char* names[] = {
      "r",
      "true_r2",
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
      const least_measure_residual<T> body{
          call.block<const T>(0, n, k),
          call.contiguous<real_t<T>>(1, k),
      };
      call.submit(n * k, Map<least_measure_residual<T>, least_measure_residual_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// true_normal2 = <t, z>, true_t2 = |t|^2, true_x2 = |x|^2 with t = A^H r, z = M t
struct least_measure_normal_entry {
  static constexpr const char* operation = "least.measure_normal";
  static constexpr const char* symbol = "least_measure_normal";
  static constexpr const char* names[] = {
      "x",
      "t",
      "z",
      "true_normal2",
      "true_t2",
      "true_x2",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x_.ld == ld && f.t_.ld == ld && f.z_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x_.ld = f.t_.ld = f.z_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const least_measure_normal<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.block<const T>(2, n, k),
          call.contiguous<real_t<T>>(3, k),
          call.contiguous<real_t<T>>(4, k),
          call.contiguous<real_t<T>>(5, k),
      };
      call.submit(n * k, Map<least_measure_normal<T>, least_measure_normal_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

} // namespace

void add_least_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<least_measure_residual_entry>("least_measure_residual", "95fffa3dba78bdb2"),
      method<least_measure_residual_entry, Half::VISITING>("least_measure_residual_visiting", "95fffa3dba78bdb2"),
      method<least_measure_residual_entry, Half::FINISHING>("least_measure_residual_finishing", "95fffa3dba78bdb2"),
      method<least_measure_normal_entry>("least_measure_normal", "c451d7c501ab11e6"),
      method<least_measure_normal_entry, Half::VISITING>("least_measure_normal_visiting", "c451d7c501ab11e6"),
      method<least_measure_normal_entry, Half::FINISHING>("least_measure_normal_finishing", "c451d7c501ab11e6"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
