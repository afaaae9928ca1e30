// Kernels of matrix analysis and assembly, other than sorting and prefix sums.
#pragma once
#include "simt/spmv.hpp"

namespace wl {

// target[i] = the sum of data[order[e]] for first[i] <= e < first[i + 1], in this order.
template <class T, class I>
WL_DEVICE void segment_sum(const item& it, i64 count, const i64* first, const i64* order,
                           const T* data, T* target) {
  const i64 step = it.blocks() * WL_BLOCK;
  for (i64 i = it.block() * WL_BLOCK + it.thread(); i < count; i += step) {
    T sum = data[order[first[i]]];
    for (i64 e = first[i] + 1; e < first[i + 1]; ++e)
      sum += data[order[e]];
    target[i] = sum;
  }
}

// The sum of the entries at (i, i).
template <class T, class I>
WL_DEVICE T diagonal_entry(i64 i, const I* indptr, const I* indices, const T* data) {
  T sum{};
  for (I e = indptr[i]; e < indptr[i + 1]; ++e)
    if (indices[e] == i)
      sum += data[e];
  return sum;
}

template <class T, class I>
WL_DEVICE void csr_diagonal(const item& it, i64 count, const I* indptr, const I* indices,
                            const T* data, T* d) {
  const i64 step = it.blocks() * WL_BLOCK;
  for (i64 i = it.block() * WL_BLOCK + it.thread(); i < count; i += step)
    d[i] = diagonal_entry(i, indptr, indices, data);
}

// Fills the slices of a packed matrix: lane v gets the entries start[v] .. start[v] + length[v], or
// the entries of row v if `start` is null. `column` maps columns to codes if it is not null. CODE <
// 0 fills only the values.
template <int CODE, class T, class I, class S>
WL_DEVICE void sell_fill(const item& it, i64 lanes, const i64* slice_ptr, const I* indptr,
                         const i64* start, const i32* length, const i32* target, const i32* column,
                         const I* indices, const S* data, u8* codes, S* values) {
  const i64 step = it.blocks() * WL_BLOCK, padded = (lanes + WL_WARP - 1) / WL_WARP * WL_WARP;
  for (i64 v = it.block() * WL_BLOCK + it.thread(); v < padded; v += step) {
    const i64 base = slice_ptr[v / WL_WARP];
    const int width = int((slice_ptr[v / WL_WARP + 1] - base) / WL_WARP);
    i64 first = 0;
    int filled = 0;
    if (v < lanes) {
      first = start ? start[v] : i64(indptr[v]);
      filled = start ? length[v] : int(indptr[v + 1] - indptr[v]);
    }
    const i64 row = v >= lanes ? 0 : target ? target[v] : v;
    for (int j = 0; j < width; ++j) {
      const i64 at = base + i64(j) * WL_WARP + v % WL_WARP;
      const bool real_entry = j < filled;
      values[at] = real_entry ? data[first + j] : S{};
      if constexpr (CODE == ABSOLUTE) {
        const I c = real_entry ? indices[first + j] : I(-1);
        reinterpret_cast<i32*>(codes)[at] = c >= 0 && column ? column[c] : i32(c);
      } else if constexpr (CODE == NEAR) {
        reinterpret_cast<short*>(codes)[at] =
            real_entry ? short(i64(indices[first + j]) - row) : NO_STEP;
      }
    }
  }
}

} // namespace wl
