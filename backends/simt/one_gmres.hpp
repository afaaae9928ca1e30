// The steps of GMRES where a block solves one system. See wollemi.core.operations.gmres.
//
// The basis, the small arrays, and every vector that work-items of other rows read are in shared
// memory. OWN_ROW is 1 where a work-item has one row: the pointers of the other vectors then point
// to the element of this row. Each step ends with a barrier.
#pragma once
#include "simt/gmres.hpp"
#include "simt/one_system.hpp"

namespace wl {

// v = basis_0 = r / |r|, g = (|r|, 0, ...), count = 0, step = 0.
template <int OWN_ROW, class T, class S>
WL_DEVICE void start_basis(const item& it, i64 s, i64 n, const T* r, T* v, S* basis, T* g,
                           i64* count, i64* step, const status_of<T>& status) {
  const bool runs = status.is_running(0);
  const real_t<T> length = status.norm[0];
  for_rows_of_item<OWN_ROW>(it, n, [&](i64 row, i64 at) {
    keep_rounded(v[at], basis[row], runs ? r[at] / length : T(0));
  });
  for (i64 i = it.thread(); i < s; i += WL_BLOCK)
    g[i] = i == 0 ? T(length) : T(0);
  if (it.thread() == 0)
    *count = *step = 0;
  it.barrier();
}

// Elements of a vector that a lane loads and adds up in independent sums.
constexpr int PROJECTED = 4;

// h_i = <basis_i, w> for i <= j, and before = |w|; a wave computes each sum. REPEAT is 1 for
// corrections.
template <int REPEAT, class T, class S>
WL_DEVICE void project_on_basis(const item& it, i64 n, const S* basis, const T* w, T* h,
                                real_t<T>* before, const real_t<T>* after, const i64* step,
                                const status_of<T>& status) {
  it.barrier(); // all rows of w are written
  if (!takes_part(status, 0, REPEAT, before, after))
    return; // all work-items of the block return
  const i64 j = *step, many = j + (REPEAT ? 1 : 2);
  for (i64 i = wave_of(it); i < many; i += WL_BLOCK / WL_WARP) {
    T sums[PROJECTED]{};
    for (i64 first = lane_of(it); first < n; first += PROJECTED * WL_WARP) {
#pragma unroll
      for (int u = 0; u < PROJECTED; ++u) {
        const i64 row = first + u * WL_WARP;
        if (row < n)
          sums[u] += conj(i > j ? w[row] : raised<T>(basis[i * n + row])) * w[row];
      }
    }
    const T total = sum_of_lanes<WL_WARP>(it, (sums[0] + sums[1]) + (sums[2] + sums[3]));
    if (lane_of(it) != 0)
      continue;
    if (i > j)
      *before = square_root(real(total));
    else
      h[i] = without_unit<S>(total);
  }
  it.barrier();
}

// w -= sum_i h_i basis_i for i <= j, after = |w|. In the second projection h holds the corrections,
// which are added to `sums`.
template <int REPEAT, class T, class S>
WL_DEVICE void subtract_projection(const item& it, i64 n, const S* basis, T* w, const T* h, T* sums,
                                   const real_t<T>* before, real_t<T>* after, const i64* step,
                                   const status_of<T>& status) {
  if (!takes_part(status, 0, REPEAT, before, after))
    return;
  const i64 j = *step;
  real_t<T> own{};
  for (i64 row = it.thread(); row < n; row += WL_BLOCK) {
    T value = w[row];
#pragma unroll 4
    for (i64 i = 0; i <= j; ++i)
      value -= without_unit<S>(h[i]) * raised<T>(basis[i * n + row]);
    w[row] = value;
    own += square(value);
  }
  if constexpr (REPEAT) {
    for (i64 i = it.thread(); i <= j; i += WL_BLOCK)
      sums[i] += h[i];
    it.barrier(); // all work-items have read `after`
  }
  own = total_of_block(it, own);
  if (it.thread() == 0)
    *after = square_root(own);
  it.barrier();
}

// Applies the rotations to column j of the Hessenberg matrix and to g, in one work-item.
template <class T>
WL_DEVICE void rotate_in_block(const item& it, i64 s, const T* h, real_t<T>* after,
                               const real_t<T>* before, T* hessenberg, real_t<T>* cosine, T* sine,
                               T* g, i64* count, const i64* step, const status_of<T>& status) {
  using R = real_t<T>;
  if (it.thread() == 0 && status.is_running(0)) {
    const i64 j = *step;
    rotate_column<T>(0, j, strided<const T>{h, 1}, strided<const R>{cosine, 1},
                     strided<const T>{sine, 1}, strided<T>{hessenberg + j, s}, after, before,
                     mat<R>{cosine, 1}, mat<T>{sine, 1}, mat<T>{g, 1}, count, status);
  }
  it.barrier();
}

// v = basis_(j+1) = w / after, or 0 where after is 0; step = j + 1.
template <int OWN_ROW, class T, class S>
WL_DEVICE void append_to_basis(const item& it, i64 n, const T* w, const real_t<T>* after, T* v,
                               S* basis, i64* step, const status_of<T>& status) {
  const i64 j = *step;
  const real_t<T> length = *after;
  if (status.is_running(0))
    for_rows_of_item<OWN_ROW>(it, n, [&](i64 row, i64 at) {
      keep_rounded(v[at], basis[(j + 1) * n + row],
                   length == real_t<T>(0) ? T(0) : w[row] / length);
    });
  it.barrier();
  if (it.thread() == 0)
    *step = j + 1;
  it.barrier();
}

// basis_j = z.
template <int OWN_ROW, class T>
WL_DEVICE void keep_direction(const item& it, i64 n, const T* z, T* basis, const i64* step,
                              const status_of<T>& status) {
  const i64 j = *step;
  if (status.is_running(0))
    for_rows_of_item<OWN_ROW>(it, n, [&](i64 row, i64 at) { basis[j * n + row] = z[at]; });
  it.barrier();
}

// Does the work of solve_rows. The rows are solved from the last one up. As soon as an unknown is
// known, each work-item subtracts its term from the rows that the work-item has. `left` and `sizes`
// have s elements each.
template <class T>
WL_DEVICE remainder<real_t<T>> solve_rows_together(const item& it, i64 s, const T* hessenberg,
                                                   const T* g, i64 most, i64 rows, T* y, T* left,
                                                   real_t<T>* sizes) {
  using R = real_t<T>;
  R rest{}, size{};
  for (i64 t = it.thread(); t < s; t += WL_BLOCK) {
    left[t] = t < rows ? g[t] : T(0);
    sizes[t] = R(0);
    if (t >= rows)
      y[t] = T(0);
    if (t >= rows && t <= most)
      rest += square(g[t]);
  }
  for (i64 i = rows - 1; i >= 0; --i) {
    it.barrier();
    const T pivot = hessenberg[i * s + i], value = pivot == T(0) ? T(0) : left[i] / pivot;
    for (i64 t = it.thread(); t <= i; t += WL_BLOCK) {
      const T entry = hessenberg[t * s + i];
      sizes[t] += magnitude(entry) * magnitude(value);
      if (t < i)
        left[t] -= entry * value;
      else
        y[i] = value;
      if (t == i && pivot == T(0))
        rest += square(left[i]);
    }
  }
  for (i64 t = it.thread(); t < rows; t += WL_BLOCK)
    size += square(sizes[t]);
  rest = sum_of_block(it, rest);
  size = sum_of_block(it, size);
  it.barrier();
  return {square_root(rest), epsilon<T> * square_root(size)};
}

template <class T>
WL_DEVICE void solve_triangle(const item& it, i64 s, const T* hessenberg, const T* g,
                              const i64* count, T* y, T* left, real_t<T>* sizes) {
  const i64 most = *count;
  solve_leading<real_t<T>>(most, [&](i64 rows) {
    return solve_rows_together(it, s, hessenberg, g, most, rows, y, left, sizes);
  });
  it.barrier();
}

// u = sum_i y_i basis_i for i < count.
template <int OWN_ROW, class T, class S>
WL_DEVICE void combine_basis(const item& it, i64 n, const S* basis, const T* y, const i64* count,
                             T* u) {
  const i64 most = *count;
  for_rows_of_item<OWN_ROW>(it, n, [&](i64 row, i64 at) {
    T sum{};
#pragma unroll 4
    for (i64 i = 0; i < most; ++i)
      sum += y[i] * raised<T>(basis[i * n + row]);
    u[at] = without_unit<S>(sum);
  });
  it.barrier();
}

} // namespace wl
