// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/isai.hpp"

namespace wl {

namespace {

// w_i N_S = e_i: row i of the inverse of I - N on its pattern S = columns[pointers[i]:pointers[i+1]], for i in rows; N is strictly lower triangular, or upper if upper; the rows of both are sorted
struct isai_triangle_entry {
  static constexpr const char* operation = "isai.triangle";
  static constexpr const char* symbol = "isai_triangle";
  static constexpr const char* names[] = {
      "rows",
      "pointers",
      "columns",
      "indptr",
      "indices",
      "data",
      "upper",
      "w",
  };
  static constexpr bool by_row = true;
  static constexpr bool one_column = true;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F&, i64) {
    return true;
  }
  template <class F>
  static void set_unit(F&) {
  }
  static Object run(const Call& call) {
    with_value_type(call, names[5], call.array(5), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent m, q, f, p, e;
        const isai_triangle<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, q),
            call.contiguous<const I>(2, f),
            call.contiguous<const I>(3, p),
            call.contiguous<const I>(4, e),
            call.contiguous<const T>(5, e),
            call.scalar<i64>(6),
            call.contiguous<T>(7, f),
        };
        call.submit(m * 1, Map<isai_triangle<T, I>, isai_triangle_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// w_i A(S,S) = e_i: row i of an approximate inverse on its pattern S, for i in rows; work has width (width + 1) count zeros, count = the rows, and keeps them, width = the most entries of such a row; where A(S,S) has no inverse, w_i = 1 / a_ii, or 1, on the diagonal, and singular counts it
struct isai_general_entry {
  static constexpr const char* operation = "isai.general";
  static constexpr const char* symbol = "isai_general";
  static constexpr const char* names[] = {
      "rows",
      "pointers",
      "columns",
      "indptr",
      "indices",
      "data",
      "width",
      "count",
      "work",
      "w",
      "singular",
  };
  static constexpr bool by_row = true;
  static constexpr bool one_column = true;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F&, i64) {
    return true;
  }
  template <class F>
  static void set_unit(F&) {
  }
  static Object run(const Call& call) {
    with_value_type(call, names[5], call.array(5), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent m, q, f, p, e, l, of_1{1};
        const isai_general<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, q),
            call.contiguous<const I>(2, f),
            call.contiguous<const I>(3, p),
            call.contiguous<const I>(4, e),
            call.contiguous<const T>(5, e),
            call.scalar<i64>(6),
            call.scalar<i64>(7),
            call.contiguous<T>(8, l),
            call.contiguous<T>(9, f),
            call.contiguous<i64>(10, of_1),
        };
        call.submit(m * 1, Map<isai_general<T, I>, isai_general_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

} // namespace

void add_isai_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<isai_triangle_entry>("isai_triangle", nullptr),
      method<isai_general_entry>("isai_general", nullptr),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
