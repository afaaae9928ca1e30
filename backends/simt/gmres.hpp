// The steps of restarted GMRES. See wollemi.core.operations.gmres.
//
// A basis of s vectors is [s][n][k], small arrays are [s][k]. It is stored in S, which is T or a
// lower dtype, times basis_unit<S>. The work-items of a block are a tile of rows and columns; `j`
// is the number of the iteration in its cycle.
#pragma once
#include "map_simt.hpp"
#include "narrow.hpp"
#include "rotations.hpp"
#include "status.hpp"
#include "triangle.hpp"

namespace wl {

// What a vector must keep of its length not to be projected again: all but a digit.
constexpr double KEPT = 0.1;

template <class R>
WL_DEVICE bool lost_digits(R after, R before) {
  return after < R(KEPT) * before;
}

template <class T>
WL_DEVICE bool takes_part(const status_of<T>& status, i64 c, bool repeat, const real_t<T>* before,
                          const real_t<T>* after) {
  return status.is_running(c) && (!repeat || lost_digits(after[c], before[c]));
}

// An element of a vector, as it is stored, and what that is in T.
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

template <class T, int N>
struct several {
  T value[N];
  WL_DEVICE several& operator+=(const several& o) {
    for (int i = 0; i < N; ++i)
      value[i] += o.value[i];
    return *this;
  }
};

// One vector: each wave takes every so many vectors of the basis over the block's rows, so that no
// wave waits for another; the row after the last is w itself. What is loaded ahead of the basis are
// as many bytes whatever it is stored in: bandwidth is bytes under way over the time they take.
template <int REPEAT, class T, class S>
WL_DEVICE void project_vector(const item& it, i64 n, i64 j, const S* basis, mat<const T> w,
                              T* partials) {
  constexpr int waves = WL_BLOCK / WL_WARP, ahead = sizeof(S) < 8 ? 64 / int(sizeof(S)) : 8;
  // Whole waves of rows a block, neighbours to neighbours.
  const i64 share = ((n + it.blocks() - 1) / it.blocks() + WL_WARP - 1) / WL_WARP * WL_WARP;
  const i64 begin = it.block() * share, end = begin + share < n ? begin + share : n;
  const i64 many = j + (REPEAT ? 1 : 2);
  for (i64 i = wave_of(it); i < many; i += waves) {
    const S* const vector = basis + i * n;
    T sum{};
    for (i64 first = begin + lane_of(it); first < end; first += ahead * WL_WARP) {
      S others[ahead];
      if (i <= j) {
#pragma unroll
        for (int u = 0; u < ahead; ++u) {
          const i64 row = first + u * WL_WARP;
          others[u] = vector[row < end ? row : first];
        }
      }
#pragma unroll
      for (int u = 0; u < ahead; ++u) {
        const i64 row = first + u * WL_WARP;
        const T mine = row < end ? w(row, 0) : T(0);
        sum += conj(i > j ? mine : raised<T>(others[u])) * mine;
      }
    }
    sum = sum_of_lanes<WL_WARP>(it, sum);
    if (lane_of(it) == 0)
      partials[i * it.blocks() + it.block()] = sum;
  }
}

// Many vectors: a tile of rows and columns, a few vectors of the basis at a time.
template <int REPEAT, class T, class S>
WL_DEVICE void project_block(const item& it, i64 n, i64 k, i64 j, const S* basis, mat<const T> w,
                             const real_t<T>* before, const real_t<T>* after,
                             const status_of<T>& status, T* partials) {
  constexpr int at_once = 4;
  const tile t(it, k);
  const i64 across = t.across(k), groups = it.blocks() / across, group = it.block() / across;
  const i64 c = it.block() % across * t.width + t.column;
  const bool mine = t.inside && c < k && takes_part(status, c < k ? c : 0, REPEAT, before, after);
  const i64 first = group * t.rows + t.row, stride = groups * t.rows;
  const i64 many = j + (REPEAT ? 1 : 2);
  for (i64 i = 0; i < many; i += at_once) {
    several<T, at_once> sums{};
    if (mine)
      for (i64 row = first; row < n; row += stride) {
        const T wi = w(row, c);
#pragma unroll
        for (int u = 0; u < at_once; ++u)
          if (i + u < many)
            sums.value[u] +=
                conj(i + u > j ? wi : raised<T>(basis[((i + u) * n + row) * k + c])) * wi;
      }
    sums = t.sum_down(it, sums);
    if (t.row == 0 && c < k)
      for (int u = 0; u < at_once; ++u)
        if (i + u < many)
          partials[((i + u) * k + c) * groups + group] = sums.value[u];
  }
}

// h_i = <basis_i, w> for i <= j, and before = |w|; REPEAT is 1 for the second time, which makes
// corrections, and takes only the columns that lost digits. `partials` holds
// groups * (s + 1) * k.
template <int REPEAT, class T, class S>
WL_DEVICE void gmres_project(const item& it, i64 s, i64 n, i64 k, const S* basis, mat<const T> w,
                             mat<T> h, T* correction, real_t<T>* before, const real_t<T>* after,
                             const i64* step, status_of<T> status, T* partials, i32* counter) {
  const i64 j = *step;
  if (k == 1) {
    if (!takes_part(status, 0, REPEAT, before, after))
      return;
    project_vector<REPEAT>(it, n, j, basis, w, partials);
  } else {
    project_block<REPEAT>(it, n, k, j, basis, w, before, after, status, partials);
  }
  if (!is_last_block(it, counter))
    return;
  // A wave for each sum; the parts of one lie side by side.
  const i64 groups = it.blocks() / tile(it, k).across(k);
  const i64 many = (j + (REPEAT ? 1 : 2)) * k;
  for (i64 i = wave_of(it); i < many; i += WL_BLOCK / WL_WARP) {
    T total{};
#pragma unroll 8
    for (i64 g = lane_of(it); g < groups; g += WL_WARP)
      total += partials[i * groups + g];
    total = sum_of_lanes<WL_WARP>(it, total);
    const i64 row = i / k, c = i % k;
    if (lane_of(it) != 0 || !takes_part(status, c, REPEAT, before, after))
      continue;
    if (row > j) {
      before[c] = square_root(real(total));
    } else if constexpr (REPEAT) {
      correction[i] = without_unit<S>(total);
    } else {
      h(row, c) = without_unit<S>(total);
    }
  }
}

// w -= sum_i h_i basis_i for i <= j, after = |w|. The second time h are the corrections, which are
// added to `sums`.
template <int REPEAT, class T, class S>
WL_DEVICE void gmres_subtract(const item& it, i64 s, i64 n, i64 k, const S* basis, mat<T> w,
                              mat<const T> h, mat<T> sums, const real_t<T>* before,
                              real_t<T>* after, const i64* step, status_of<T> status,
                              real_t<T>* partials, i32* counter) {
  const i64 j = *step;
  const tile t(it, k);
  const i64 across = t.across(k), groups = it.blocks() / across, group = it.block() / across;
  if (k == 1 && !takes_part(status, 0, REPEAT, before, after))
    return;
  {
    const i64 c = it.block() % across * t.width + t.column;
    const bool mine = t.inside && c < k && takes_part(status, c < k ? c : 0, REPEAT, before, after);
    real_t<T> sum{};
    if (mine)
      for (i64 row = group * t.rows + t.row; row < n; row += groups * t.rows) {
        constexpr int at_once = 8; // a loop with a rest would wait for each load of the rest
        const S* const mine_of_basis = basis + row * k + c;
        T value = w(row, c);
        for (i64 i = 0; i <= j; i += at_once) {
          S others[at_once];
#pragma unroll
          for (int u = 0; u < at_once; ++u)
            others[u] = mine_of_basis[(i + u <= j ? i + u : j) * n * k];
#pragma unroll
          for (int u = 0; u < at_once; ++u)
            if (i + u <= j)
              value -= without_unit<S>(h(i + u, c)) * raised<T>(others[u]);
        }
        w(row, c) = value;
        sum += square(value);
      }
    sum = k == 1 ? sum_of_block(it, sum) : t.sum_down(it, sum);
    if (t.row == 0 && c < k)
      partials[group * k + c] = sum;
  }
  if (!is_last_block(it, counter))
    return;
  if constexpr (REPEAT) {
    for (i64 e = it.thread(); e < (j + 1) * k; e += WL_BLOCK)
      if (takes_part(status, e % k, REPEAT, before, after))
        sums(e / k, e % k) += h(e / k, e % k);
    it.barrier(); // before `after` says otherwise
  }
  for (i64 chunk = 0; chunk < across; ++chunk) {
    const i64 c = chunk * t.width + t.column;
    real_t<T> total{};
    if (t.inside && c < k)
      for (i64 g = t.row; g < groups; g += t.rows)
        total += partials[g * k + c];
    total = k == 1 ? sum_of_block(it, total) : t.sum_down(it, total);
    if (t.row == 0 && c < k && takes_part(status, c, REPEAT, before, after))
      after[c] = square_root(total);
  }
}

// A work-item a column. For one column the block fetches and stores what that one work-item goes
// through.
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
  const i64 stride = it.blocks() * WL_BLOCK, j = *step;
  for (i64 i = it.block() * WL_BLOCK + it.thread(); i < n * k; i += stride) {
    const i64 row = k == 1 ? i : i / k, c = k == 1 ? 0 : i % k;
    if (!status.is_running(c))
      continue;
    keep_rounded(v(row, c), basis[(j + 1) * n * k + i],
                 after[c] == real_t<T>(0) ? T(0) : w(row, c) / after[c]);
  }
  // Every block has read the step by then.
  if (is_last_block(it, counter) && it.thread() == 0)
    *step = j + 1;
}

// As solve_rows, for one column: from the bottom, as soon as an unknown is known, every work-item
// takes its part off the row that it has. One work-item alone took 53 microseconds for 30 rows
// (H200).
template <class T>
WL_DEVICE remainder<real_t<T>> solve_together(const item& it, i64 s, const T* hessenberg,
                                              mat<const T> g, i64 most, i64 rows, mat<T> y) {
  using R = real_t<T>;
  WL_SHARED(T, left, WL_BLOCK);
  const i64 t = it.thread();
  R rest{}, size{};
  it.barrier(); // an earlier solution has been read
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

// A work-item a column, or all of a block for the only one.
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
