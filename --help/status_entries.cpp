// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/step.hpp"

namespace wl {

// norm_c = |r_c|; a running column halts at its threshold, or if that is not finite
template <class T>
struct status_start {
  mat<const T> r_;
  status_of<T> status;
  using sum = real_t<T>;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    const T r_i = r_(i, c);
    return square(r_i);
  }
  WL_DEVICE void finish(i64 c, sum total) const {
    status.begin(c, square_root(total));
  }
};

namespace {

// norm_c = |r_c|; a running column halts at its threshold, or if that is not finite
struct status_start_entry {
  static constexpr const char* operation = "status.start";
  static constexpr const char* symbol = "status_start";
  static constexpr const char* names[] = {
      "r",
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
      const status_start<T> body{
          call.block<const T>(0, n, k),
          call.status<T>(1, k),
      };
      call.submit(n * k, Map<status_start<T>, status_start_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

} // namespace

void add_status_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<status_start_entry>("status_start", "9042f870967a7f7f"),
      method<status_start_entry, Half::VISITING>("status_start_visiting", "9042f870967a7f7f"),
      method<status_start_entry, Half::FINISHING>("status_start_finishing", "9042f870967a7f7f"),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
