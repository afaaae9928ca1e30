// The directions of flexible GMRES. See wollemi.core.operations.gmres.
#pragma once
#include "unified/map_simt.hpp"
#include "unified/status.hpp"

namespace wl {

// z = extra_(j-first) / size_(j-first) if that vector exists; basis_j = z.
template <class T>
WL_DEVICE void gmres_augment(const item& it, i64 n, i64 k, mat<T> z, const T* extra,
                             mat<const real_t<T>> size, i64 first, T* basis, const i64* step,
                             status_of<T> status) {
  const i64 stride = it.blocks() * WL_BLOCK, j = *step;
  for (i64 i = it.block() * WL_BLOCK + it.thread(); i < n * k; i += stride) {
    const i64 row = k == 1 ? i : i / k, c = k == 1 ? 0 : i % k;
    if (!status.is_running(c))
      continue;
    T value = z(row, c);
    if (j >= first && size(j - first, c) != real_t<T>(0)) {
      value = extra[(j - first) * n * k + i] / size(j - first, c);
      z(row, c) = value;
    }
    basis[j * n * k + i] = value;
  }
}

} // namespace wl
