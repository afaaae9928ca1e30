// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// c = t / left, u = w / left; both 0 where left <= 1e-10 before
template <class T>
struct gcrot_keep {
  mat<const T> w_;
  mat<const T> t_;
  mat<T> c_;
  mat<T> u_;
  const real_t<T>* left_;
  const real_t<T>* before_;
  using sum = none;
  struct column_state {
    bool active;
    bool v0;
    real_t<T> left_;
  };

  WL_DEVICE column_state column(i64 c) const {
    return {true, (left_[c] > (real_t<T>(1e-10) * before_[c])), left_[c]};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    const T t_i = t_(i, c);
    const T new_c = (s.v0 ? T((t_i / s.left_)) : T(real_t<T>(0.0)));
    const T w_i = w_(i, c);
    const T new_u = (s.v0 ? T((w_i / s.left_)) : T(real_t<T>(0.0)));
    c_(i, c) = new_c;
    u_(i, c) = new_u;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

namespace {

// c = t / left, u = w / left; both 0 where left <= 1e-10 before
struct gcrot_keep_entry {
  static constexpr const char* operation = "gcrot.keep";
  static constexpr const char* symbol = "gcrot_keep";
  static constexpr const char* names[] = {
      "w",
      "t",
      "c",
      "u",
      "left",
      "before",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.w_.ld == ld && f.t_.ld == ld && f.c_.ld == ld && f.u_.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.w_.ld = f.t_.ld = f.c_.ld = f.u_.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const gcrot_keep<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.block<T>(2, n, k),
          call.block<T>(3, n, k),
          call.contiguous<const real_t<T>>(4, k),
          call.contiguous<const real_t<T>>(5, k),
      };
      call.submit(n * k, Map<gcrot_keep<T>, gcrot_keep_entry>(body, n, k));
    });
    return none_object();
  }
};

} // namespace

void add_gcrot_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<gcrot_keep_entry>("gcrot_keep", "b932af69a7debec0"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
