// CSR matrices with rows of very different lengths on CPU devices: rows of similar length are
// adjacent, and each lane of a vector register processes one.
#pragma once
#include "dpcpp/lanes_cpu.hpp"
#include "dpcpp/arithmetic.hpp"

namespace wl {

// Sorted row i is row rows[i] of the matrix, with lengths[i] entries; entry e of it is at
// slice_ptr[i / LANES] + LANES e + i % LANES. Padding is never read: zero times an infinite x would
// be NaN. Part p has slices from cut[p].
template <class T, class I, class S>
WL_DEVICE void csr_slices(const item& it, i64 parts, const i64* cut, i64 m, const i64* slice_ptr,
                          const I* rows, const I* lengths, const I* indices, const S* values,
                          mat<const T> x, mat<T> y, T alpha, T beta) {
  const i64 lane = own_lane();
  for (i64 p = it.block(); p < parts; p += it.blocks())
    for (i64 s = cut[p]; s < cut[p + 1]; ++s) {
      const i64 i = s * LANES + lane;
      const I length = i < m ? lengths[i] : I(0);
      // of the slice; its first row is its longest
      const I longest = lengths[s * LANES];
      const S* const data = values + slice_ptr[s];
      const I* const columns = indices + slice_ptr[s];
      T sum{};
      for (I e = 0; e < longest; ++e)
        if (e < length) {
          const i64 at = i64(e) * LANES + lane;
          multiply_add(sum, raised<T>(data[at]), x(columns[at], 0));
        }
      if (i < m)
        store(y(rows[i], 0), sum, alpha, beta);
    }
}

} // namespace wl
