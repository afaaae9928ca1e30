// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/parilu.hpp"

namespace wl {

namespace {

// next_ij = a_ij - sum_(l < min(i,j)) v_il v_lj, over v_jj if i > j; change = |next - v|; rows of v are sorted, columns[j]:columns[j+1] are the positions in entries of column j by rows
struct parilu_sweep_entry {
  static constexpr const char* operation = "parilu.sweep";
  static constexpr const char* symbol = "parilu_sweep";
  static constexpr const char* names[] = {
      "indptr",
      "indices",
      "rows",
      "columns",
      "entries",
      "diagonal",
      "a",
      "v",
      "next",
      "change",
  };
  static constexpr bool by_row = true;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.a.ld == ld && f.v.ld == ld && f.next.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.a.ld = f.v.ld = f.next.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[6], call.array(6), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent p, e, q, n, k;
        const parilu_sweep<T, I> body{
            call.contiguous<const I>(0, p),
            call.contiguous<const I>(1, e),
            call.contiguous<const I>(2, e),
            call.contiguous<const I>(3, q),
            call.contiguous<const I>(4, e),
            call.contiguous<const I>(5, n),
            call.block<const T>(6, e, k),
            call.block<const T>(7, e, k),
            call.block<T>(8, e, k),
            call.contiguous<real_t<T>>(9, k),
        };
        call.submit(e * k, Map<parilu_sweep<T, I>, parilu_sweep_entry>(body, e, k, call.slots<real_t<T>>(k)));
      });
    });
    return none_object();
  }
};

} // namespace

void add_parilu_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<parilu_sweep_entry>("parilu_sweep", nullptr),
      method<parilu_sweep_entry, Half::VISITING>("parilu_sweep_visiting", nullptr),
      method<parilu_sweep_entry, Half::FINISHING>("parilu_sweep_finishing", nullptr),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
