// Products of formats with padded rows: ELL and SELL-P. Padding has index -1 and does not touch x.
#pragma once

#include "parallel.hpp"
#include "spmv_csr.hpp"
#include "spmv_operands.hpp"

namespace wl {

// Rows of ELL that advance together: their sums are in the first-level cache, and each entry of
// theirs is a page of neighbours.
constexpr int kEllTile = 512;

namespace detail {

// sums[r] = sum of data[j * stride + r] * x[indices[j * stride + r]] over j < width. An index is
// made valid before x is read, and what was read for padding is dropped.
template <int Rows, class T, class I>
inline void padded_tile(i64 rows, i64 width, i64 stride, const T* data, const I* indices,
                        const T* x, T* sums) {
  const i64 count = Rows > 0 ? Rows : rows;
  T part[Rows > 0 ? Rows : kEllTile];
  for (i64 r = 0; r < count; ++r)
    part[r] = T(0);
  for (i64 j = 0; j < width; ++j, data += stride, indices += stride) {
#pragma omp simd
    for (i64 r = 0; r < count; ++r) {
      const I column = indices[r];
      T product(0);
      multiply_add(product, data[r], x[column < 0 ? 0 : column]);
      part[r] += column < 0 ? T(0) : product;
    }
  }
  for (i64 r = 0; r < count; ++r)
    sums[r] = part[r];
}

// y[0:k] = alpha * (one padded row) * x + beta * y[0:k].
template <class T, class I>
inline void padded_row(i64 width, i64 stride, const T* data, const I* indices, const T* x, i64 ldx,
                       T* y, i64 k, T alpha, T beta) {
  for_column_tiles(k, [&](auto tile, i64 first) {
    constexpr int W = decltype(tile)::value;
    T sums[W] = {};
    for (i64 j = 0; j < width; ++j) {
      const I column = indices[j * stride];
      if (column < 0)
        continue;
      const T value = data[j * stride];
      const T* const x_row = x + static_cast<i64>(column) * ldx + first;
#pragma omp simd
      for (int w = 0; w < W; ++w)
        multiply_add(sums[w], value, x_row[w]);
    }
    for (int w = 0; w < W; ++w)
      update(y[first + w], sums[w], alpha, beta);
  });
}

} // namespace detail

template <class T, class I>
struct EllArrays {
  i64 m, n, width;
  const I* indices;
  const T* data;
};

template <class T, class I>
void ell_spmv(const EllArrays<T, I>& A, const SpmvOperands<T>& o, int threads) {
  const i64 tiles = (A.m + kEllTile - 1) / kEllTile;
  const i64 width = A.n == 0 ? 0 : A.width; // then all is padding, and x[0] is not there
  const int parts = A.m * width * o.k < kSerialEntries ? 1 : threads;
  const auto do_tile = [&](i64 tile) {
    const i64 begin = tile * kEllTile, rows = std::min<i64>(kEllTile, A.m - begin);
    const T* const data = A.data + begin;
    const I* const indices = A.indices + begin;
    if (o.k == 1 && o.x.ld == 1) {
      T sums[kEllTile];
      detail::padded_tile<0>(rows, width, A.m, data, indices, o.x.data, sums);
      for (i64 r = 0; r < rows; ++r)
        detail::update(o.y(begin + r, 0), sums[r], o.alpha, o.beta);
    } else {
      for (i64 r = 0; r < rows && !interrupted(); ++r)
        detail::padded_row(width, A.m, data + r, indices + r, o.x.data, o.x.ld, &o.y(begin + r, 0),
                           o.k, o.alpha, o.beta);
    }
  };
  const i64 piece = rows_of_a_piece(tiles, A.m * width * o.k);
  for_parts(parts, [&](int part) {
    const Share share(tiles, part, parts);
    in_pieces(share.begin, share.end, piece, [&](i64 begin, i64 end) {
      for (i64 tile = begin; tile < end; ++tile)
        do_tile(tile);
    });
  });
}

template <class T, class I>
struct SellpArrays {
  i64 m, n, slices, slice_size;
  const I *slice_ptr, *permutation, *indices;
  const T* data;
};

// The most lanes whose sums are kept at once; wider slices go row by row.
constexpr i64 kWidestSlice = kEllTile;

template <class T, class I>
void sellp_slice(const SellpArrays<T, I>& A, const SpmvOperands<T>& o, i64 slice) {
  const i64 size = A.slice_size, begin = A.slice_ptr[slice], first = slice * size;
  const i64 width = A.n == 0 ? 0 : (A.slice_ptr[slice + 1] - begin) / size;
  const i64 rows = std::min(size, A.m - first);
  const T* const data = A.data + begin;
  const I* const indices = A.indices + begin;
  if (o.k == 1 && o.x.ld == 1 && size <= kWidestSlice) {
    T sums[kWidestSlice];
    if (size == 32) // the default
      detail::padded_tile<32>(size, width, size, data, indices, o.x.data, sums);
    else
      detail::padded_tile<0>(size, width, size, data, indices, o.x.data, sums);
    for (i64 r = 0; r < rows; ++r)
      detail::update(o.y(A.permutation[first + r], 0), sums[r], o.alpha, o.beta);
  } else {
    for (i64 r = 0; r < rows && !interrupted(); ++r)
      detail::padded_row(width, size, data + r, indices + r, o.x.data, o.x.ld,
                         &o.y(A.permutation[first + r], 0), o.k, o.alpha, o.beta);
  }
}

template <class T, class I>
void sellp_spmv(const SellpArrays<T, I>& A, const SpmvOperands<T>& o, int threads) {
  const int parts = A.slice_ptr[A.slices] * o.k < kSerialEntries ? 1 : threads;
  const std::vector<I> bounds = balanced_rows(A.slice_ptr, static_cast<I>(A.slices), parts);
  const i64 piece = rows_of_a_piece(A.slices, A.slice_ptr[A.slices] * o.k);
  for_parts(parts, [&](int part) {
    in_pieces(bounds[part], bounds[part + 1], piece, [&](i64 begin, i64 end) {
      for (i64 slice = begin; slice < end; ++slice)
        sellp_slice(A, o, slice);
    });
  });
}

} // namespace wl
