// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/inverse.hpp"

namespace wl {

namespace {

// inverse_k = the entry of (L U)^-1 at (rows_k, columns_k); L by columns, with or without its diagonal of ones, U by rows; the positions, with mirrored ones, are those of the matrix before elimination; if symmetric, L U is a symmetric matrix; outside = entries of L and U at positions that elimination does not fill
struct inverse_selected_entry {
  static constexpr const char* operation = "inverse.selected";
  static constexpr const char* symbol = "inverse_selected";
  static constexpr const char* names[] = {
      "rows",
      "columns",
      "lower_begin",
      "lower_rows",
      "lower",
      "upper_begin",
      "upper_columns",
      "upper",
      "symmetric",
      "inverse",
      "outside",
  };
  static Object run(const Call& call) {
    with_value_type(call, names[4], call.array(4), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent e, p, l, u, of_1{1};
        const inverse_selected<T, I> body{
            call.contiguous<const I>(0, e),
            call.contiguous<const I>(1, e),
            call.contiguous<const I>(2, p),
            call.contiguous<const I>(3, l),
            call.contiguous<const T>(4, l),
            call.contiguous<const I>(5, p),
            call.contiguous<const I>(6, u),
            call.contiguous<const T>(7, u),
            call.scalar<i64>(8),
            call.contiguous<T>(9, e),
            call.contiguous<i64>(10, of_1),
            i64(e),
            i64(p),
            i64(l),
            i64(u),
        };
        call.submit(e * p * l * u, body);
      });
    });
    return none_object();
  }
};

} // namespace

void add_inverse_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<inverse_selected_entry>("inverse_selected", nullptr),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
