// The steps of restarted GMRES. See wollemi.core.operations.gmres.
//
// A basis of s vectors is [s][n][k], small arrays are [s][k]. The basis is stored in S, which is T
// or a lower dtype, and is multiplied by basis_unit<S>. The work-items of a block form a tile of
// rows and columns; `j` is the number of the iteration in its cycle.
#pragma once
#include "simt/gram_schmidt.hpp"
#include "simt/rotations.hpp"
#include "unified/triangle.hpp"

namespace wl {

// An element of a vector in its stored dtype, and its value in T.
template <class T, class S>
WL_DEVICE void keep_rounded(T& v, S& stored, T value) {
  stored = rounded_to<S>(value);
  v = without_unit<S>(raised<T>(stored));
}

// v = basis_0 = r / |r|, g = (|r|, 0, ...), count = 0, step = 0.
template <class T, class S>
WL_DEVICE void gmres_start(const item& it, i64 s, i64 n, i64 k, mat<const T> r, mat<T> v, S* basis,
                           mat<T> g, i64* count, i64* step, status_of<T> status) {
  const i64 stride = it.blocks() * WL_BLOCK, mine = it.block() * WL_BLOCK + it.thread();
  for (i64 i = mine; i < n * k; i += stride) {
    const i64 row = i / k, c = i % k;
    keep_rounded(v(row, c), basis[i], status.is_running(c) ? r(row, c) / status.norm[c] : T(0));
  }
  for (i64 i = mine; i < s * k; i += stride)
    g(i / k, i % k) = i < k ? T(status.norm[i]) : T(0);
  for (i64 c = mine; c < k; c += stride)
    count[c] = 0;
  if (mine == 0)
    *step = 0;
}

// One work-item per column. For a single column the block loads and stores the array that one
// work-item reads.
template <class T>
WL_DEVICE void gmres_rotate(const item& it, i64 s, i64 k, mat<const T> h, real_t<T>* after,
                            const real_t<T>* before, T* hessenberg, mat<real_t<T>> cosine,
                            mat<T> sine, mat<T> g, i64* count, const i64* step,
                            status_of<T> status) {
  constexpr int capacity = 256;
  const i64 j = *step;
  if (k == 1 && j < capacity) {
    WL_SHARED(T, column, capacity);
    WL_SHARED(T, sines, capacity);
    WL_SHARED(real_t<T>, cosines, capacity);
    if (!status.is_running(0))
      return;
    for (i64 i = it.thread(); i <= j; i += WL_BLOCK) {
      column[i] = h(i, 0);
      if (i < j) {
        sines[i] = sine(i, 0);
        cosines[i] = cosine(i, 0);
      }
    }
    it.barrier();
    if (it.thread() == 0)
      rotate_column<T>(0, j, strided<T>{column, 1}, strided<real_t<T>>{cosines, 1},
                       strided<T>{sines, 1}, strided<T>{column, 1}, after, before, cosine, sine, g,
                       count, status);
    it.barrier();
    for (i64 i = it.thread(); i <= j; i += WL_BLOCK)
      hessenberg[i * s + j] = column[i];
    return;
  }
  const i64 c = it.block() * WL_BLOCK + it.thread();
  if (c >= k || !status.is_running(c))
    return;
  rotate_column<T>(c, j, strided<const T>{h.data + c, h.ld},
                   strided<const real_t<T>>{cosine.data + c, cosine.ld},
                   strided<const T>{sine.data + c, sine.ld},
                   strided<T>{hessenberg + j * k + c, s * k}, after, before, cosine, sine, g, count,
                   status);
}

// v = basis_(j+1) = w / after, or 0 where after is 0; then step = j + 1.
template <class T, class S>
WL_DEVICE void gmres_append(const item& it, i64 s, i64 n, i64 k, mat<const T> w,
                            const real_t<T>* after, mat<T> v, S* basis, i64* step,
                            status_of<T> status, i32* counter) {
  constexpr int ahead = 4;
  const i64 stride = it.blocks() * WL_BLOCK, j = *step;
  for (i64 first = it.block() * WL_BLOCK + it.thread(); first < n * k; first += ahead * stride) {
    T values[ahead];
#pragma unroll
    for (int u = 0; u < ahead; ++u) {
      const i64 i = first + u * stride < n * k ? first + u * stride : first;
      values[u] = k == 1 ? w(i, 0) : w(i / k, i % k);
    }
#pragma unroll
    for (int u = 0; u < ahead; ++u) {
      const i64 i = first + u * stride, row = k == 1 ? i : i / k, c = k == 1 ? 0 : i % k;
      if (i < n * k && status.is_running(c))
        keep_rounded(v(row, c), basis[(j + 1) * n * k + i],
                     after[c] == real_t<T>(0) ? T(0) : values[u] / after[c]);
    }
  }
  // Every block has read `step` by then.
  if (is_last_block(it, counter) && it.thread() == 0)
    *step = j + 1;
}

// Does the work of solve_rows for one column. The rows are solved from the last one up. As soon as
// an unknown is known, every work-item subtracts its term from the row that the work-item holds.
// One work-item alone took 53 microseconds for 30 rows (H200).
template <class T>
WL_DEVICE remainder<real_t<T>> solve_together(const item& it, i64 s, const T* hessenberg,
                                              mat<const T> g, i64 most, i64 rows, mat<T> y) {
  using R = real_t<T>;
  WL_SHARED(T, left, WL_BLOCK);
  const i64 t = it.thread();
  R rest{}, size{};
  it.barrier(); // all work-items have read the previous solution
  left[t] = t < rows ? g(t, 0) : T(0);
  if (t >= rows && t <= most && t < s)
    rest = square(g(t, 0));
  T entry = t < rows ? hessenberg[t * s + rows - 1] : T(0);
  for (i64 i = rows - 1; i >= 0; --i) {
    const T pivot = hessenberg[i * s + i], here = entry;
    if (i > 0 && t < i)
      entry = hessenberg[t * s + i - 1];
    it.barrier();
    const T value = pivot == T(0) ? T(0) : left[i] / pivot;
    if (t <= i)
      size += magnitude(t == i ? pivot : here) * magnitude(value);
    if (t < i)
      left[t] -= here * value;
    else if (t == i) {
      y(i, 0) = value;
      if (pivot == T(0))
        rest = square(left[i]);
    }
  }
  if (t >= rows && t < s)
    y(t, 0) = T(0);
  rest = sum_of_block(it, rest);
  size = sum_of_block(it, square(size));
  return {square_root(rest), epsilon<T> * square_root(size)};
}

// One work-item for each column, or all work-items of a block for a single column.
template <class T>
WL_DEVICE void gmres_solve(const item& it, i64 s, i64 k, const T* hessenberg, mat<const T> g,
                           const i64* count, mat<T> y) {
  if (k == 1 && s <= WL_BLOCK) {
    solve_leading<real_t<T>>(count[0], [&](i64 rows) {
      return solve_together(it, s, hessenberg, g, count[0], rows, y);
    });
    return;
  }
  const i64 c = it.block() * WL_BLOCK + it.thread();
  if (c >= k)
    return;
  solve_leading<real_t<T>>(
      count[c], [&](i64 rows) { return solve_rows(hessenberg, s, k, c, g, count[c], rows, y); });
}

// u = sum_i y_i basis_i for i < count.
template <class T, class S>
WL_DEVICE void gmres_combine(const item& it, i64 s, i64 n, i64 k, const S* basis, mat<const T> y,
                             const i64* count, mat<T> u) {
  const i64 stride = it.blocks() * WL_BLOCK;
  for (i64 i = it.block() * WL_BLOCK + it.thread(); i < n * k; i += stride) {
    const i64 row = k == 1 ? i : i / k, c = k == 1 ? 0 : i % k;
    T sum{};
#pragma unroll 8
    for (i64 l = 0; l < count[c]; ++l)
      sum += y(l, c) * raised<T>(basis[l * n * k + i]);
    u(row, c) = without_unit<S>(sum);
  }
}

} // namespace wl
