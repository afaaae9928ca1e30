// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/attention.hpp"

namespace wl {

namespace {

// means = <G, E> and of_target = (1 - slope) (<G, positive> - means shares) for each head, for each of its columns: the gradient of <G, E> for target
struct attention_row_gradients_entry {
  static constexpr const char* operation = "attention.row_gradients";
  static constexpr const char* symbol = "attention_row_gradients";
  static constexpr const char* names[] = {
      "G",
      "E",
      "positive",
      "shares",
      "columns",
      "slope",
      "means",
      "of_target",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.G.ld == ld && f.E.ld == ld && f.positive.ld == ld && f.shares.ld == ld && f.means.ld == ld && f.of_target.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.G.ld = f.E.ld = f.positive.ld = f.shares.ld = f.means.ld = f.of_target.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent m, w, h;
      const attention_row_gradients<T> body{
          call.block<const T>(0, m, w),
          call.block<const T>(1, m, w),
          call.block<const T>(2, m, w),
          call.block<const T>(3, m, h),
          call.scalar<i64>(4),
          call.scalar<T>(5),
          call.block<T>(6, m, h),
          call.block<T>(7, m, h),
      };
      call.submit(m * h, Map<attention_row_gradients<T>, attention_row_gradients_entry>(body, m, h));
    });
    return none_object();
  }
};

} // namespace

void add_attention_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<attention_row_gradients_entry>("attention_row_gradients", nullptr),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
