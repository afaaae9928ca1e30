// Gradients of fusedmm by rows and by columns for matrices with values, including the gradient of
// the values.
#pragma once
#include "simt/fusedmm_gradients.hpp"

namespace wl {

// Listed rows, and the values of their entries. For the gradients by columns, `order` holds the
// positions of the entries in the pattern before it was transposed. `of_values` may be null;
// `values` may not, which saves 16 registers.
template <class T, class I>
struct valued_rows : listed_rows<I> {
  static constexpr bool VALUED = true;
  const I* order;
  const T* values;
  i64 values_step;
  T* of_values;
  i64 of_values_step;

  WL_DEVICE I place(I e) const { return order ? read_once(order + e) : e; }
  WL_DEVICE held_t<T> value(I place) const { return widen(values[place]); }
};

template <class T, class I>
WL_DEVICE valued_rows<T, I> rows_of(const valued_rows<T, I>& rows, i64 b) {
  valued_rows<T, I> found = rows;
  found.values = rows.values + b * rows.values_step;
  if (rows.of_values)
    found.of_values = rows.of_values + b * rows.of_values_step;
  return found;
}

template <int L, int VK, int VP, int E, int A, int EDGE, int KNOWN, int WHOLE, class T, class I,
          class... Rest>
WL_DEVICE void csr_valued_row_gradients(const item& it, i64 m, i64 k, i64 p, i64 batch,
                                        const I* indptr, const I* indices, const T* values,
                                        i64 values_step, T* of_values, i64 of_values_step,
                                        Rest... rest) {
  const valued_rows<T, I> rows{
      {indptr, nullptr, indices}, nullptr, values, values_step, of_values, of_values_step};
  row_gradients<L, VK, VP, E, A, EDGE, KNOWN, WHOLE, T, I>(it, rows, m, k, p, batch, rest...);
}

template <int L, int VK, int VP, int E, int A, int EDGE, int WHOLE, class T, class I, class... Rest>
WL_DEVICE void csr_valued_column_gradients(const item& it, i64 m, i64 n, i64 k, i64 p, i64 batch,
                                           const I* indptr, const I* indices, const I* order,
                                           const T* values, i64 values_step, Rest... rest) {
  const valued_rows<T, I> rows{{indptr, nullptr, indices}, order, values, values_step, nullptr, 0};
  column_gradients<L, VK, VP, E, A, EDGE, WHOLE, T, I>(it, rows, m, n, k, p, batch, rest...);
}

} // namespace wl
