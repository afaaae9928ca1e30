// The long loops of restarted GMRES on CPU devices: a work-group is one work-item with rows of its
// own. What is a few numbers a column (rotate, solve) is the text of backends/simt.
//
// Rows go in tiles that stay in the first-level cache while all basis vectors pass by; a basis is
// read from memory once a call.
#pragma once
#include "gmres.hpp"
#include "rows_cpu.hpp"

namespace wl {

// A third of a first-level cache of 48 KB, in rows of float64.
constexpr i64 BASIS_ROWS = 2048;

// sum_r conj(v[r v_ld]) w[r w_ld] in sixteen parts.
template <class T>
WL_DEVICE T dot_of_rows(i64 rows, const T* v, i64 v_ld, const T* w, i64 w_ld) {
  T sums[TOGETHER] = {};
  i64 r = 0;
  if (v_ld == 1 && w_ld == 1)
    for (; r + TOGETHER <= rows; r += TOGETHER)
#pragma unroll
      for (int l = 0; l < TOGETHER; ++l)
        multiply_add(sums[l], conj(v[r + l]), w[r + l]);
  for (; r < rows; ++r)
    multiply_add(sums[0], conj(v[r * v_ld]), w[r * w_ld]);
  for (int half = TOGETHER / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l)
      sums[l] += sums[l + half];
  return sums[0];
}

// w -= factor v over some rows.
template <class T>
WL_DEVICE void subtract_rows(i64 rows, T factor, const T* v, i64 v_ld, T* w, i64 w_ld) {
  if (v_ld == 1 && w_ld == 1) {
#pragma clang loop vectorize(assume_safety)
    for (i64 r = 0; r < rows; ++r)
      multiply_add(w[r], -factor, v[r]);
  } else {
    for (i64 r = 0; r < rows; ++r)
      multiply_add(w[r * w_ld], -factor, v[r * v_ld]);
  }
}

template <class T>
WL_DEVICE void gmres_start_cpu(const item& it, i64 s, i64 n, i64 k, mat<const T> r, mat<T> v,
                               T* basis, mat<T> g, i64* count, i64* step, status_of<T> status) {
  const share mine(it, n);
  for (i64 row = mine.begin; row < mine.end; ++row)
    for (i64 c = 0; c < k; ++c) {
      const T value = status.is_running(c) ? r(row, c) / status.norm[c] : T(0);
      v(row, c) = basis[row * k + c] = value;
    }
  if (it.block() != 0)
    return;
  for (i64 i = 0; i < s; ++i)
    for (i64 c = 0; c < k; ++c)
      g(i, c) = i == 0 ? T(status.norm[c]) : T(0);
  for (i64 c = 0; c < k; ++c)
    count[c] = 0;
  *step = 0;
}

// As gmres_project of backends/simt; `partials` has room for (s + 1) k sums a work-group.
template <int REPEAT, class T>
WL_DEVICE void gmres_project_cpu(const item& it, i64 s, i64 n, i64 k, const T* basis,
                                 mat<const T> w, mat<T> h, T* correction, real_t<T>* before,
                                 const real_t<T>* after, const i64* step, status_of<T> status,
                                 T* partials, i32* counter) {
  const i64 j = *step, vectors = j + 1, sums = vectors + (REPEAT ? 0 : 1);
  const share mine(it, n);
  T* const own = partials + it.block() * (s + 1) * k;
  for (i64 i = 0; i < sums * k; ++i)
    own[i] = T(0);
  for (i64 first = mine.begin; first < mine.end; first += BASIS_ROWS) {
    const i64 rows = mine.end - first < BASIS_ROWS ? mine.end - first : BASIS_ROWS;
    for (i64 c = 0; c < k; ++c) {
      if (!takes_part(status, c, REPEAT, before, after))
        continue;
      const T* const of_w = &w(first, c);
      for (i64 i = 0; i < vectors; ++i)
        own[i * k + c] += dot_of_rows(rows, basis + (i * n + first) * k + c, k, of_w, w.ld);
      if constexpr (!REPEAT)
        own[vectors * k + c] += dot_of_rows(rows, of_w, w.ld, of_w, w.ld);
    }
  }
  if (!is_last_block(it, counter))
    return;
  for (i64 i = 0; i < sums; ++i)
    for (i64 c = 0; c < k; ++c) {
      if (!takes_part(status, c, REPEAT, before, after))
        continue;
      T total{};
      for (i64 b = 0; b < it.blocks(); ++b)
        total += partials[(b * (s + 1) + i) * k + c];
      if (i == vectors) {
        before[c] = square_root(real(total));
      } else if constexpr (REPEAT) {
        correction[i * k + c] = total;
        h(i, c) += total;
      } else {
        h(i, c) = total;
      }
    }
}

template <int REPEAT, class T>
WL_DEVICE void gmres_subtract_cpu(const item& it, i64 s, i64 n, i64 k, const T* basis, mat<T> w,
                                  mat<const T> h, const real_t<T>* before, real_t<T>* after,
                                  const i64* step, status_of<T> status, real_t<T>* partials,
                                  i32* counter) {
  const i64 j = *step;
  const share mine(it, n);
  real_t<T>* const own = partials + it.block() * k;
  for (i64 c = 0; c < k; ++c)
    own[c] = real_t<T>(0);
  for (i64 first = mine.begin; first < mine.end; first += BASIS_ROWS) {
    const i64 rows = mine.end - first < BASIS_ROWS ? mine.end - first : BASIS_ROWS;
    for (i64 c = 0; c < k; ++c) {
      if (!takes_part(status, c, REPEAT, before, after))
        continue;
      T* const of_w = &w(first, c);
      for (i64 i = 0; i <= j; ++i)
        subtract_rows(rows, h(i, c), basis + (i * n + first) * k + c, k, of_w, w.ld);
      own[c] += real(dot_of_rows<T>(rows, of_w, w.ld, of_w, w.ld));
    }
  }
  if (!is_last_block(it, counter))
    return;
  for (i64 c = 0; c < k; ++c) {
    if (!takes_part(status, c, REPEAT, before, after))
      continue;
    real_t<T> total{};
    for (i64 b = 0; b < it.blocks(); ++b)
      total += partials[b * k + c];
    after[c] = square_root(total);
  }
}

template <class T>
WL_DEVICE void gmres_append_cpu(const item& it, i64 s, i64 n, i64 k, mat<const T> w,
                                const real_t<T>* after, mat<T> v, T* basis, i64* step,
                                status_of<T> status, i32* counter) {
  const share mine(it, n);
  const i64 j = *step;
  T* const next = basis + (j + 1) * n * k;
  for (i64 c = 0; c < k; ++c) {
    if (!status.is_running(c))
      continue;
    const real_t<T> length = after[c];
    for (i64 row = mine.begin; row < mine.end; ++row) {
      const T value = length == real_t<T>(0) ? T(0) : w(row, c) / length;
      v(row, c) = next[row * k + c] = value;
    }
  }
  // every work-group has read the step by then
  if (is_last_block(it, counter))
    *step = j + 1;
}

template <class T>
WL_DEVICE void gmres_combine_cpu(const item& it, i64 s, i64 n, i64 k, const T* basis,
                                 mat<const T> y, const i64* count, mat<T> u) {
  const share mine(it, n);
  for (i64 first = mine.begin; first < mine.end; first += BASIS_ROWS) {
    const i64 rows = mine.end - first < BASIS_ROWS ? mine.end - first : BASIS_ROWS;
    for (i64 c = 0; c < k; ++c) {
      T* const of_u = &u(first, c);
      for (i64 r = 0; r < rows; ++r)
        of_u[r * u.ld] = T(0);
      for (i64 i = 0; i < count[c]; ++i)
        subtract_rows(rows, -y(i, c), basis + (i * n + first) * k + c, k, of_u, u.ld);
    }
  }
}

} // namespace wl
