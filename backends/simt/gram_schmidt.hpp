// Classical Gram-Schmidt: inner products of a vector with all vectors of a basis, and subtraction
// of the projection. See wollemi.core.operations.gmres; gmres.hpp describes the storage of a basis.
#pragma once
#include "unified/map_simt.hpp"
#include "simt/narrow.hpp"
#include "unified/status.hpp"

namespace wl {

// A vector is projected a second time if the first projection leaves less than this part of its
// length.
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

template <class T, int N>
struct several {
  T value[N];
  WL_DEVICE several& operator+=(const several& o) {
    for (int i = 0; i < N; ++i)
      value[i] += o.value[i];
    return *this;
  }
};

// Vectors of the basis that a work-item reads at once; ROWS is the number of rows that it reads of
// each. Bandwidth is bytes in flight divided by latency: four rows of eight vectors use all
// registers and are faster than one wave per vector. gpu/gmres.py repeats the number of rows.
constexpr int SIDE_BY_SIDE = 8;
template <class S, int COUNT>
constexpr int rows_ahead = SIDE_BY_SIDE * (sizeof(S) > 8 ? 2 : 4) / COUNT;

// Stores the block's sums of basis_(i+u) . w for u < COUNT over rows begin .. end in `partials`.
// Indices beyond vector j repeat vector j. `parts` holds COUNT elements per wave. `own` accumulates
// |w|^2.
template <int COUNT, class T, class S>
WL_DEVICE void project_some(const item& it, i64 n, i64 begin, i64 end, i64 i, i64 j, const S* basis,
                            mat<const T> w, T* parts, T& own, T* partials) {
  constexpr int ROWS = rows_ahead<S, COUNT>, waves = WL_BLOCK / WL_WARP;
  T sums[COUNT] = {};
  for (i64 first = begin + it.thread(); first < end; first += ROWS * WL_BLOCK) {
    S others[COUNT][ROWS];
    T mine[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const i64 row = first + r * WL_BLOCK < end ? first + r * WL_BLOCK : first;
#pragma unroll
      for (int u = 0; u < COUNT; ++u)
        others[u][r] = basis[(i + u < j ? i + u : j) * n + row];
      mine[r] = first + r * WL_BLOCK < end ? w(row, 0) : T(0);
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
#pragma unroll
      for (int u = 0; u < COUNT; ++u)
        sums[u] += conj(raised<T>(others[u][r])) * mine[r];
      if (i == 0)
        own += conj(mine[r]) * mine[r];
    }
  }
  if constexpr (WL_WARP >= COUNT) {
    const T sum = reduce_scatter<WL_WARP>(it, sums);
    if (lane_of(it) < COUNT)
      parts[lane_of(it) * waves + wave_of(it)] = sum;
  } else {
    for (int u = 0; u < COUNT; ++u) {
      const T sum = sum_of_lanes<WL_WARP>(it, sums[u]);
      if (lane_of(it) == 0)
        parts[u * waves + wave_of(it)] = sum;
    }
  }
  it.barrier();
  for (int u = it.thread(); u < COUNT && i + u <= j; u += WL_BLOCK) {
    T sum{};
    for (int wave = 0; wave < waves; ++wave)
      sum += parts[u * waves + wave];
    partials[(i + u) * it.blocks() + it.block()] = sum;
  }
}

// One column. All work-items of a block traverse the rows of the block with a few vectors of the
// basis at a time: all have the same amount of work, and w is read once for these vectors. Row j +
// 1 of `partials` holds |w|^2.
template <int REPEAT, class T, class S>
WL_DEVICE void project_vector(const item& it, i64 n, i64 j, const S* basis, mat<const T> w,
                              T* partials) {
  constexpr int room = SIDE_BY_SIDE * (WL_BLOCK / WL_WARP);
  WL_SHARED(T, parts, 2 * room);
  // The rows of a block are a multiple of the wave, and adjacent blocks have adjacent rows.
  const i64 share = ((n + it.blocks() - 1) / it.blocks() + WL_WARP - 1) / WL_WARP * WL_WARP;
  const i64 begin = it.block() * share, end = begin + share < n ? begin + share : n;
  T own{};
  i64 i = 0;
  // the two halves of `parts` alternate, which saves a second barrier
  for (int turn = 0; i <= j; turn ^= 1) {
    T* const here = parts + turn * room;
    if (j - i >= SIDE_BY_SIDE / 2) {
      project_some<SIDE_BY_SIDE>(it, n, begin, end, i, j, basis, w, here, own, partials);
      i += SIDE_BY_SIDE;
    } else if (j - i >= SIDE_BY_SIDE / 4) {
      project_some<SIDE_BY_SIDE / 2>(it, n, begin, end, i, j, basis, w, here, own, partials);
      i += SIDE_BY_SIDE / 2;
    } else {
      project_some<SIDE_BY_SIDE / 4>(it, n, begin, end, i, j, basis, w, here, own, partials);
      i += SIDE_BY_SIDE / 4;
    }
  }
  if constexpr (!REPEAT) {
    own = sum_of_block(it, own);
    if (it.thread() == 0)
      partials[(j + 1) * it.blocks() + it.block()] = own;
  }
}

// Several columns: a block processes a tile of rows and columns, a few vectors of the basis at a
// time.
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

// h_i = <basis_i, w> for i <= j, and before = |w|. REPEAT is 1 for the second projection, which
// computes corrections, only for the columns that lost digits. `partials` holds groups * (s + 1) *
// k.
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
  // A wave adds up each sum; the parts of a sum are contiguous.
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

// One column: w -= sum_i h_i basis_i for i <= j, several rows of a work-item at a time; returns the
// work-item's part of |w|^2.
template <class T, class S>
WL_DEVICE real_t<T> subtract_vector(const item& it, i64 n, i64 j, const S* basis, mat<T> w,
                                    mat<const T> h) {
  constexpr int capacity = 256, ROWS = rows_ahead<S, SIDE_BY_SIDE>;
  WL_SHARED(T, factors, capacity);
  const i64 stride = it.blocks() * WL_BLOCK, mine = it.block() * WL_BLOCK + it.thread();
  real_t<T> sum{};
  for (i64 from = 0; from <= j; from += capacity) {
    const i64 to = from + capacity <= j ? from + capacity - 1 : j;
    it.barrier(); // all work-items have read the previous factors
    for (i64 i = from + it.thread(); i <= to; i += WL_BLOCK)
      factors[i - from] = without_unit<S>(h(i, 0));
    it.barrier();
    for (i64 first = mine; first < n; first += ROWS * stride) {
      T values[ROWS];
#pragma unroll
      for (int r = 0; r < ROWS; ++r)
        values[r] = w(first + r * stride < n ? first + r * stride : first, 0);
      for (i64 i = from; i <= to; i += SIDE_BY_SIDE) {
        // full groups only: a loop with a remainder would wait for each load of the remainder
        S others[SIDE_BY_SIDE][ROWS];
#pragma unroll
        for (int u = 0; u < SIDE_BY_SIDE; ++u)
#pragma unroll
          for (int r = 0; r < ROWS; ++r)
            others[u][r] = basis[(i + u < to ? i + u : to) * n +
                                 (first + r * stride < n ? first + r * stride : first)];
#pragma unroll
        for (int u = 0; u < SIDE_BY_SIDE; ++u)
          if (i + u <= to) {
            const T factor = factors[i + u - from];
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
              values[r] -= factor * raised<T>(others[u][r]);
          }
      }
#pragma unroll
      for (int r = 0; r < ROWS; ++r)
        if (first + r * stride < n) {
          w(first + r * stride, 0) = values[r];
          if (to == j)
            sum += square(values[r]);
        }
    }
  }
  return sum;
}

// w -= sum_i h_i basis_i for i <= j, after = |w|. In the second projection h holds the corrections,
// which are added to `sums`.
template <int REPEAT, class T, class S>
WL_DEVICE void gmres_subtract(const item& it, i64 s, i64 n, i64 k, const S* basis, mat<T> w,
                              mat<const T> h, mat<T> sums, const real_t<T>* before,
                              real_t<T>* after, const i64* step, status_of<T> status,
                              real_t<T>* partials, i32* counter) {
  const i64 j = *step;
  const tile t(it, k);
  const i64 across = t.across(k), groups = it.blocks() / across, group = it.block() / across;
  if (k == 1) {
    if (!takes_part(status, 0, REPEAT, before, after))
      return;
    const real_t<T> sum = sum_of_block(it, subtract_vector(it, n, j, basis, w, h));
    if (it.thread() == 0)
      partials[group] = sum;
  } else {
    const i64 c = it.block() % across * t.width + t.column;
    const bool mine = t.inside && c < k && takes_part(status, c < k ? c : 0, REPEAT, before, after);
    real_t<T> sum{};
    if (mine)
      for (i64 row = group * t.rows + t.row; row < n; row += groups * t.rows) {
        // full groups only: a loop with a remainder would wait for each load of the remainder
        constexpr int at_once = 8;
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
    sum = t.sum_down(it, sum);
    if (t.row == 0 && c < k)
      partials[group * k + c] = sum;
  }
  if (!is_last_block(it, counter))
    return;
  if constexpr (REPEAT) {
    for (i64 e = it.thread(); e < (j + 1) * k; e += WL_BLOCK)
      if (takes_part(status, e % k, REPEAT, before, after))
        sums(e / k, e % k) += h(e / k, e % k);
    it.barrier(); // before one work-item overwrites `after`
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

} // namespace wl
