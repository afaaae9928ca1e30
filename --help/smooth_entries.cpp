// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// d = next D^-1 b, y = d: the first step of a polynomial from 0
template <class T>
struct smooth_begin {
  mat<const T> b_;
  mat<T> y_;
  mat<T> d_;
  const T* inverse_;
  T next_;
  using sum = none;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64) const { return {true}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T inverse_i = inverse_[i];
    const T b_i = b_(i, c);
    const T new_d = ((next_ * inverse_i) * b_i);
    d_(i, c) = new_d;
    y_(i, c) = new_d;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

// d = next D^-1 (b - q), y = x + d: the first step from any x
template <class T>
struct smooth_resume {
  mat<const T> b_;
  mat<const T> x_;
  mat<T> y_;
  mat<const T> q_;
  mat<T> d_;
  const T* inverse_;
  T next_;
  using sum = none;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64) const { return {true}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T inverse_i = inverse_[i];
    const T b_i = b_(i, c);
    const T q_i = q_(i, c);
    const T new_d = ((next_ * inverse_i) * (b_i - q_i));
    const T x_i = x_(i, c);
    const T new_y = (x_i + new_d);
    d_(i, c) = new_d;
    y_(i, c) = new_y;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

// d = last d + next D^-1 (b - q), y = x + d: the following steps
template <class T>
struct smooth_go_on {
  mat<const T> b_;
  mat<const T> x_;
  mat<T> y_;
  mat<const T> q_;
  mat<T> d_;
  const T* inverse_;
  T last_;
  T next_;
  using sum = none;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64) const { return {true}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T d_i = d_(i, c);
    const T inverse_i = inverse_[i];
    const T b_i = b_(i, c);
    const T q_i = q_(i, c);
    const T new_d = ((last_ * d_i) + ((next_ * inverse_i) * (b_i - q_i)));
    const T x_i = x_(i, c);
    const T new_y = (x_i + new_d);
    d_(i, c) = new_d;
    y_(i, c) = new_y;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

// d = next D^-1 (b - q), x += d: the first of an odd number of steps
template <class T>
struct smooth_resume_in_place {
  mat<const T> b_;
  mat<T> x_;
  mat<const T> q_;
  mat<T> d_;
  const T* inverse_;
  T next_;
  using sum = none;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64) const { return {true}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T inverse_i = inverse_[i];
    const T b_i = b_(i, c);
    const T q_i = q_(i, c);
    const T new_d = ((next_ * inverse_i) * (b_i - q_i));
    const T x_i = x_(i, c);
    const T new_x = (x_i + new_d);
    d_(i, c) = new_d;
    x_(i, c) = new_x;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

// q = b - q
template <class T>
struct smooth_residual {
  mat<const T> b_;
  mat<T> q_;
  using sum = none;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64) const { return {true}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T b_i = b_(i, c);
    const T q_i = q_(i, c);
    const T new_q = (b_i - q_i);
    q_(i, c) = new_q;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

namespace {

// d = next D^-1 b, y = d: the first step of a polynomial from 0
struct smooth_begin_entry {
  static constexpr const char* operation = "smooth.begin";
  static constexpr const char* symbol = "smooth_begin";
  static constexpr const char* names[] = {
      "b",
      "y",
      "d",
      "inverse",
      "next",
  };
  static constexpr bool by_row = true;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.b_.ld == ld && f.y_.ld == ld && f.d_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.b_.ld = f.y_.ld = f.d_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const smooth_begin<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<T>(2, n, k),
          call.contiguous<const T>(3, n),
          call.scalar<T>(4),
      };
      call.submit(n * k, Map<smooth_begin<T>, smooth_begin_entry>(body, n, k));
    });
    return none_object();
  }
};

// d = next D^-1 (b - q), y = x + d: the first step from any x
struct smooth_resume_entry {
  static constexpr const char* operation = "smooth.resume";
  static constexpr const char* symbol = "smooth_resume";
  static constexpr const char* names[] = {
      "b",
      "x",
      "y",
      "q",
      "d",
      "inverse",
      "next",
  };
  static constexpr bool by_row = true;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.b_.ld == ld && f.x_.ld == ld && f.y_.ld == ld && f.q_.ld == ld && f.d_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.b_.ld = f.x_.ld = f.y_.ld = f.q_.ld = f.d_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const smooth_resume<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.block<T>(2, n, k),
          call.block<const T>(3, n, k),
          call.block<T>(4, n, k),
          call.contiguous<const T>(5, n),
          call.scalar<T>(6),
      };
      call.submit(n * k, Map<smooth_resume<T>, smooth_resume_entry>(body, n, k));
    });
    return none_object();
  }
};

// d = last d + next D^-1 (b - q), y = x + d: the following steps
struct smooth_go_on_entry {
  static constexpr const char* operation = "smooth.go_on";
  static constexpr const char* symbol = "smooth_go_on";
  static constexpr const char* names[] = {
      "b",
      "x",
      "y",
      "q",
      "d",
      "inverse",
      "last",
      "next",
  };
  static constexpr bool by_row = true;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.b_.ld == ld && f.x_.ld == ld && f.y_.ld == ld && f.q_.ld == ld && f.d_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.b_.ld = f.x_.ld = f.y_.ld = f.q_.ld = f.d_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const smooth_go_on<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.block<T>(2, n, k),
          call.block<const T>(3, n, k),
          call.block<T>(4, n, k),
          call.contiguous<const T>(5, n),
          call.scalar<T>(6),
          call.scalar<T>(7),
      };
      call.submit(n * k, Map<smooth_go_on<T>, smooth_go_on_entry>(body, n, k));
    });
    return none_object();
  }
};

// d = next D^-1 (b - q), x += d: the first of an odd number of steps
struct smooth_resume_in_place_entry {
  static constexpr const char* operation = "smooth.resume_in_place";
  static constexpr const char* symbol = "smooth_resume_in_place";
  static constexpr const char* names[] = {
      "b",
      "x",
      "q",
      "d",
      "inverse",
      "next",
  };
  static constexpr bool by_row = true;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.b_.ld == ld && f.x_.ld == ld && f.q_.ld == ld && f.d_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.b_.ld = f.x_.ld = f.q_.ld = f.d_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const smooth_resume_in_place<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.block<const T>(2, n, k),
          call.block<T>(3, n, k),
          call.contiguous<const T>(4, n),
          call.scalar<T>(5),
      };
      call.submit(n * k, Map<smooth_resume_in_place<T>, smooth_resume_in_place_entry>(body, n, k));
    });
    return none_object();
  }
};

// q = b - q
struct smooth_residual_entry {
  static constexpr const char* operation = "smooth.residual";
  static constexpr const char* symbol = "smooth_residual";
  static constexpr const char* names[] = {
      "b",
      "q",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.b_.ld == ld && f.q_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.b_.ld = f.q_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const smooth_residual<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
      };
      call.submit(n * k, Map<smooth_residual<T>, smooth_residual_entry>(body, n, k));
    });
    return none_object();
  }
};

} // namespace

void add_smooth_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<smooth_begin_entry>("smooth_begin", "f7a364de23772f2d"),
      method<smooth_resume_entry>("smooth_resume", "94d833f7059d3c08"),
      method<smooth_go_on_entry>("smooth_go_on", "295c249fd38630f1"),
      method<smooth_resume_in_place_entry>("smooth_resume_in_place", "da2aa061d84f6c8c"),
      method<smooth_residual_entry>("smooth_residual", "6e77c9b5b225d136"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
