// Preconditioners that approximate an inverse on a pattern, where a block solves one system. See
// wollemi.core.operations.isai.
#pragma once
#include "simt/one_system.hpp"
#include "unified/isai.hpp"

namespace wl {

// The small systems of `count` rows, one row for each work-item. `work` has width (width + 1)
// WL_BLOCK elements. Ends with a barrier.
template <class T, class I>
WL_DEVICE void invert_rows(const item& it, i64 count, i64 width, const I* rows, const I* pointers,
                           const I* columns, const I* indptr, const I* indices, const T* data,
                           T* work, T* w, i64* singular) {
  for (i64 e = it.thread(); e < width * (width + 1) * WL_BLOCK; e += WL_BLOCK)
    work[e] = T(0); // the elements that this work-item uses
  i64 failed = 0;
  for (i64 base = 0; base < count; base += WL_BLOCK) {
    const isai_general<T, I> f{rows + base, pointers,      columns, indptr, indices, data,
                               width,       i64(WL_BLOCK), work,    w,      singular};
    if (base + it.thread() < count)
      failed += f(it.thread(), 0, f.column(0));
  }
  failed = total_of_block(it, failed);
  if (it.thread() == 0)
    *singular = failed;
  it.barrier();
}

// Element `row` of the product with a matrix of B x B blocks, computed by one work-item.
template <class T, class I>
WL_DEVICE T row_of_blocks_times(i64 row, i64 size, const I* indptr, const I* indices, const T* data,
                                const T* x) {
  const i64 block_row = row / size, inside = row % size;
  T sum{};
  for (I e = indptr[block_row]; e < indptr[block_row + 1]; ++e)
    for (i64 c = 0; c < size; ++c)
      sum += data[(i64(e) * size + inside) * size + c] * x[indices[e] * size + c];
  return sum;
}

// y = alpha A x + beta y for the rows of a work-item. A is a CSR matrix where `size` is 0, else it
// has blocks of that size. OWN_ROW is 1 where y points to the element of the only row.
template <int OWN_ROW, class T, class I>
WL_DEVICE void multiply_inverse(const item& it, i64 n, i64 size, const I* indptr, const I* indices,
                                const T* data, const T* x, T* y, T alpha, T beta) {
  for_rows_of_item<OWN_ROW>(it, n, [&](i64 row, i64 at) {
    const T product = size == 0 ? row_times(indptr[row], indptr[row + 1], indices, data, x)
                                : row_of_blocks_times(row, size, indptr, indices, data, x);
    store(y[at], product, alpha, beta);
  });
}

} // namespace wl
