// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// cv = <c, v>, cb = <c, b> with v = A c
template <class T>
struct kcycle_measure {
  mat<const T> b_;
  mat<const T> c_;
  mat<const T> v_;
  T* cv_;
  T* cb_;
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

  WL_DEVICE column_state column(i64) const { return {true}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T c_i = c_(i, c);
    const T v_i = v_(i, c);
    const T b_i = b_(i, c);
    return {(conj(c_i) * v_i), (conj(c_i) * b_i)};
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const T new_cv = total.v0;
    const T new_cb = total.v1;
    cv_[c] = new_cv;
    cb_[c] = new_cb;
  }
};

// b -= (cb / cv) v: the residual after the first direction; nothing where cv = 0
template <class T>
struct kcycle_advance {
  mat<T> b_;
  mat<const T> v_;
  const T* cv_;
  const T* cb_;
  using sum = none;
  struct column_state {
    bool active;
    T v0;
  };

  WL_DEVICE column_state column(i64 c) const {
    const bool e0 = (magnitude(cv_[c]) > real_t<T>(0.0));
    return {true, (e0 ? T((cb_[c] / (e0 ? T(cv_[c]) : T(real_t<T>(1.0))))) : T(real_t<T>(0.0)))};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T b_i = b_(i, c);
    const T v_i = v_(i, c);
    const T new_b = (b_i - (s.v0 * v_i));
    b_(i, c) = new_b;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

// dv = <d, v>, dw = <d, w>, db = <d, b> with w = A d
template <class T>
struct kcycle_measure_again {
  mat<const T> b_;
  mat<const T> v_;
  mat<const T> d_;
  mat<const T> w_;
  T* dv_;
  T* dw_;
  T* db_;
  struct sum {
    T v0;
    T v1;
    T v2;
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
    const T d_i = d_(i, c);
    const T v_i = v_(i, c);
    const T w_i = w_(i, c);
    const T b_i = b_(i, c);
    return {(conj(d_i) * v_i), (conj(d_i) * w_i), (conj(d_i) * b_i)};
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    const T new_dv = total.v0;
    const T new_dw = total.v1;
    const T new_db = total.v2;
    dv_[c] = new_dv;
    dw_[c] = new_dw;
    db_[c] = new_db;
  }
};

// x = first c + second d, the best of both directions; c alone where d adds none
template <class T>
struct kcycle_combine {
  mat<T> x_;
  mat<const T> c_;
  mat<const T> d_;
  const T* cv_;
  const T* cb_;
  const T* dv_;
  const T* dw_;
  const T* db_;
  using sum = none;
  struct column_state {
    bool active;
    T v0;
    T v1;
  };

  WL_DEVICE column_state column(i64 c) const {
    const bool e0 = (magnitude(cv_[c]) > real_t<T>(0.0));
    const T e1 = (e0 ? T(cv_[c]) : T(real_t<T>(1.0)));
    const T e2 = (conj(dv_[c]) / e1);
    const T e3 = (dw_[c] - (e2 * dv_[c]));
    const bool e4 = (magnitude(e3) > ((real_t<T>(16.0) * epsilon<T>) * magnitude(dw_[c])));
    const T e5 = (e4 ? T((db_[c] / (e4 ? T(e3) : T(real_t<T>(1.0))))) : T(real_t<T>(0.0)));
    return {true, (e0 ? T(((cb_[c] / e1) - (e2 * e5))) : T(real_t<T>(0.0))), e5};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T c_i = c_(i, c);
    const T d_i = d_(i, c);
    const T new_x = ((s.v0 * c_i) + (s.v1 * d_i));
    x_(i, c) = new_x;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

namespace {

// cv = <c, v>, cb = <c, b> with v = A c
struct kcycle_measure_entry {
  static constexpr const char* operation = "kcycle.measure";
  static constexpr const char* symbol = "kcycle_measure";
  static constexpr const char* names[] = {
      "b",
      "c",
      "v",
      "cv",
      "cb",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.b_.ld == ld && f.c_.ld == ld && f.v_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.b_.ld = f.c_.ld = f.v_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const kcycle_measure<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.block<const T>(2, n, k),
          call.contiguous<T>(3, k),
          call.contiguous<T>(4, k),
      };
      call.submit(n * k, Map<kcycle_measure<T>, kcycle_measure_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// b -= (cb / cv) v: the residual after the first direction; nothing where cv = 0
struct kcycle_advance_entry {
  static constexpr const char* operation = "kcycle.advance";
  static constexpr const char* symbol = "kcycle_advance";
  static constexpr const char* names[] = {
      "b",
      "v",
      "cv",
      "cb",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.b_.ld == ld && f.v_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.b_.ld = f.v_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const kcycle_advance<T> body{
          call.block<T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<const T>(2, k),
          call.contiguous<const T>(3, k),
      };
      call.submit(n * k, Map<kcycle_advance<T>, kcycle_advance_entry>(body, n, k));
    });
    return none_object();
  }
};

// dv = <d, v>, dw = <d, w>, db = <d, b> with w = A d
struct kcycle_measure_again_entry {
  static constexpr const char* operation = "kcycle.measure_again";
  static constexpr const char* symbol = "kcycle_measure_again";
  static constexpr const char* names[] = {
      "b",
      "v",
      "d",
      "w",
      "dv",
      "dw",
      "db",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.b_.ld == ld && f.v_.ld == ld && f.d_.ld == ld && f.w_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.b_.ld = f.v_.ld = f.d_.ld = f.w_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const kcycle_measure_again<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<const T>(3, n, k),
          call.contiguous<T>(4, k),
          call.contiguous<T>(5, k),
          call.contiguous<T>(6, k),
      };
      call.submit(n * k, Map<kcycle_measure_again<T>, kcycle_measure_again_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// x = first c + second d, the best of both directions; c alone where d adds none
struct kcycle_combine_entry {
  static constexpr const char* operation = "kcycle.combine";
  static constexpr const char* symbol = "kcycle_combine";
  static constexpr const char* names[] = {
      "x",
      "c",
      "d",
      "cv",
      "cb",
      "dv",
      "dw",
      "db",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x_.ld == ld && f.c_.ld == ld && f.d_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x_.ld = f.c_.ld = f.d_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const kcycle_combine<T> body{
          call.block<T>(0, n, k),
          call.block<const T>(1, n, k),
          call.block<const T>(2, n, k),
          call.contiguous<const T>(3, k),
          call.contiguous<const T>(4, k),
          call.contiguous<const T>(5, k),
          call.contiguous<const T>(6, k),
          call.contiguous<const T>(7, k),
      };
      call.submit(n * k, Map<kcycle_combine<T>, kcycle_combine_entry>(body, n, k));
    });
    return none_object();
  }
};

} // namespace

void add_kcycle_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<kcycle_measure_entry>("kcycle_measure", "6494c95242b26eeb"),
      method<kcycle_measure_entry, Half::VISITING>("kcycle_measure_visiting", "6494c95242b26eeb"),
      method<kcycle_measure_entry, Half::FINISHING>("kcycle_measure_finishing", "6494c95242b26eeb"),
      method<kcycle_advance_entry>("kcycle_advance", "5df84a8e595961bc"),
      method<kcycle_measure_again_entry>("kcycle_measure_again", "05e0b4fde8024b0d"),
      method<kcycle_measure_again_entry, Half::VISITING>("kcycle_measure_again_visiting", "05e0b4fde8024b0d"),
      method<kcycle_measure_again_entry, Half::FINISHING>("kcycle_measure_again_finishing", "05e0b4fde8024b0d"),
      method<kcycle_combine_entry>("kcycle_combine", "d6c6b1e0ae61f6c3"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
