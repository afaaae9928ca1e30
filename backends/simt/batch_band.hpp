// Direct solves of the systems of a batch: a block factorizes a dense matrix or a band matrix in
// its shared memory or in global memory.
#pragma once
#include "simt/batch_judge.hpp"
#include "simt/launch_memory.hpp"

namespace wl {

// The work-items of a block share the steps of a factorization.
struct block_team {
  item it;

  WL_DEVICE int rank() const { return it.thread(); }
  WL_DEVICE int size() const { return WL_BLOCK; }
  WL_DEVICE void barrier() const { it.barrier(); }

  // Each wave searches all rows, so that the waves need no barrier.
  template <class T>
  WL_DEVICE i64 pivot_row(const lu_shape& s, const T* a, i64 k) const {
    using R = real_t<T>;
    R size(-1);
    i32 best = i32(k);
    for (i64 i = k + lane_of(it); i <= s.last_row(k); i += WL_WARP) {
      const R other = pivot_size(a[s.at(i, k)]);
      if (other > size)
        best = i32(i), size = other;
    }
#pragma unroll
    for (int d = WL_WARP / 2; d > 0; d /= 2) {
      const R other = shuffle_xor(it, size, d);
      const i32 row = shuffle_xor(it, best, d);
      if (other > size || (other == size && row < best))
        best = row, size = other;
    }
    return shuffle(best, 0); // lanes may hold different results where values are NaN
  }

  template <class T>
  WL_DEVICE void eliminate(const lu_shape& s, T* a, i64 k, T pivot) const {
    const i64 bottom = s.last_row(k), right = s.last_column(k);
    for (i64 i = k + 1 + it.thread(); i <= bottom; i += WL_BLOCK)
      a[s.at(i, k)] = a[s.at(i, k)] / pivot;
    it.barrier();
    int across = 1;
    while (across < 32 && across < right - k && across < WL_BLOCK)
      across *= 2;
    const int down = WL_BLOCK / across, column = it.thread() % across;
    const T* const row = a + s.at(k, 0);
    for (i64 i = k + 1 + it.thread() / across; i <= bottom; i += down) {
      T* const target = a + s.at(i, 0);
      const T factor = target[k];
      for (i64 j = k + 1 + column; j <= right; j += across)
        target[j] -= factor * row[j];
    }
  }
};

// Factors in the memory of a block.
template <class T>
struct factors_of_block {
  lu_shape s;
  const T* a;
  const i32* pivots;
  const i64* order;

  // d = the solution for r.
  WL_DEVICE void apply(const item& it, const T* r, T* d, T* y) const {
    for (i64 i = it.thread(); i < s.n; i += WL_BLOCK)
      y[i] = r[order[i]];
    it.barrier();
    for (i64 k = 0; k < s.n; ++k) {
      const i64 p = pivots[k];
      const T value = y[p];
      if (p != k) {
        const T other = y[k];
        it.barrier();
        if (it.thread() == 0)
          y[p] = other, y[k] = value;
        it.barrier();
      }
      for (i64 i = k + 1 + it.thread(); i <= s.last_row(k); i += WL_BLOCK)
        y[i] -= a[s.at(i, k)] * value;
      it.barrier();
    }
    for (i64 k = s.n - 1; k >= 0; --k) {
      const T value = y[k] / a[s.at(k, k)];
      if (it.thread() == 0)
        d[order[k]] = value;
      const i64 reach = k - s.lower - s.upper, top = reach > 0 ? reach : 0;
      for (i64 i = top + it.thread(); i < k; i += WL_BLOCK)
        y[i] -= a[s.at(i, k)] * value;
      it.barrier();
    }
  }
};

// The matrix (`size` elements), 4 vectors and the pivots are in an array of CELLS elements of
// shared memory, in the shared memory that the launch allocates where OWN is 1, or else in a part
// of the arena. `repeated`: two entries of the matrix may share one element.
template <int CELLS, int OWN, int B, int L, class T, class I>
WL_DEVICE void
batch_band(const item& it, i64 first, i64 n, i64 lower, i64 upper, i64 stride, i64 offset, i64 size,
           const i64* order, T* arena, i64 each, const i64* places, i64 repeated, const i64* starts,
           i64 width, i64 entries, const I* indptr, const I* indices, const T* values, const T* b,
           T* x, i64 started, const double* relative, const double* absolute, i64 apart,
           const double* limits, i64 refine, u8* codes, i64* iterations, double* norms,
           double* thresholds, i32* undecided, i64 determines, u8* states, T* signs,
           double* logarithms) {
  static_assert(B == WL_BLOCK, "the kernel is named by the size of its blocks");
  T* memory = arena + it.block() * each;
  if constexpr (CELLS > 0) {
    WL_SHARED(T, shared, CELLS);
    memory = shared;
  }
  if constexpr (OWN == 1)
    memory = reinterpret_cast<T*>(launch_memory());
  const i64 m = first + it.block();
  if (starts && starts[m] == starts[m + 1] && !determines)
    return;
  for (i64 e = it.thread(); e < size; e += WL_BLOCK)
    memory[e] = T(0);
  it.barrier();
  const T* const own_values = values + m * entries;
  if (repeated == 0)
    for (i64 e = it.thread(); e < entries; e += WL_BLOCK)
      memory[places[e]] = own_values[e];
  else if (it.thread() == 0)
    for (i64 e = 0; e < entries; ++e)
      memory[places[e]] += own_values[e];
  it.barrier();
  T* const v = memory + size;
  i32* const pivots = reinterpret_cast<i32*>(v + 4 * n);
  const lu_shape shape{n, lower, upper, stride, offset};
  const bool has_factors = factorize_band(block_team{it}, shape, memory, pivots);
  it.barrier();
  if (determines && it.thread() == 0) {
    i64 exchanges = 0;
    for (i64 i = 0; has_factors && i < n; ++i)
      exchanges += pivots[i] != i ? 1 : 0;
    write_determinant(determinants<T>{1, states, signs, logarithms}, m, n, has_factors, exchanges,
                      [&](i64 i) { return memory[shape.at(i, i)]; });
  }
  const verdicts_of_systems verdicts{codes, iterations, norms, thresholds, undecided};
  const factored_systems<T, I> s{n, entries, starts,   width,    indptr, indices, values, b,
                                 x, started, relative, absolute, apart,  limits,  refine, verdicts};
  solve_systems_of<L>(it, s, m, has_factors, factors_of_block<T>{shape, memory, pivots, order},
                      judged_vectors<T>{v, v + n, v + 2 * n, v + 3 * n});
}

} // namespace wl
