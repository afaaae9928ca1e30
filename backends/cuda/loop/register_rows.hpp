// Work-items that have the same rows in all steps of a kernel: the elements of vectors that they
// keep in registers, and matrices that are read by rows.
#pragma once
#include "simt/spmv.hpp"

namespace wl {

// A work-item has the same rows in every step, at most ROWS, and keeps their elements of all
// vectors: f(r, row) for the r-th row.
template <int ROWS, class F>
WL_DEVICE void each_kept(const item& it, i64 n, const F& f) {
  const i64 first = it.block() * WL_BLOCK + it.thread(), step = it.blocks() * WL_BLOCK;
#pragma unroll
  for (int r = 0; r < ROWS; ++r)
    if (first + r * step < n)
      f(r, first + r * step);
}

// The memory of a work-item's elements of a vector: registers (an array that is only indexed by
// constants, DISTANCE 1), or shared memory next to the values of the other rows.
template <class T, int DISTANCE>
struct kept {
  static constexpr int distance = DISTANCE;
  T* data;
  WL_DEVICE T& operator[](int r) const { return data[r * DISTANCE]; }
};

// A function of the row, used like an array.
template <class L>
struct by_index {
  L function;
  WL_DEVICE auto operator[](i64 i) const { return function(i); }
};
template <class L>
WL_DEVICE by_index<L> indexed(const L& function) {
  return {function};
}

// Issues the loads of a vector's elements together.
template <class T>
constexpr int loads_of = sizeof(T) > 8 ? 4 : 8;

// The rows of a matrix in shared memory, with at most WIDTH entries each; an absent entry has
// column -1.
template <int ROWS, int WIDTH, class T>
struct kept_matrix {
  static constexpr int slots = ROWS * WL_BLOCK;
  T* values;
  i32* columns;

  template <class I>
  WL_DEVICE void load(const item& it, i64 n, const I* indptr, const I* indices,
                      const T* data) const {
    each_kept<ROWS>(it, n, [&](int r, i64 row) {
      const i64 begin = indptr[row], end = indptr[row + 1];
      const int slot = r * WL_BLOCK + it.thread();
#pragma unroll 4
      for (int j = 0; j < WIDTH; ++j) {
        const bool there = begin + j < end;
        values[j * slots + slot] = there ? data[begin + j] : T(0);
        columns[j * slots + slot] = there ? i32(indices[begin + j]) : -1;
      }
    });
  }

  // The gathers of several entries are issued before the first use.
  template <int SOURCES, class X>
  WL_DEVICE T times(const item& it, int r, i64, const X& x) const {
    constexpr int most = loads_of<T> / SOURCES, parts = (WIDTH + most - 1) / most;
    constexpr int count = (WIDTH + parts - 1) / parts;
    const int slot = r * WL_BLOCK + it.thread();
    T sum{};
#pragma unroll 1
    for (int part = 0; part < parts; ++part) {
      T gathered[count];
#pragma unroll
      for (int u = 0; u < count; ++u) {
        const int j = part * count + u;
        const i32 column = j < WIDTH ? columns[j * slots + slot] : -1;
        gathered[u] = column >= 0 ? x[column] : T(0);
      }
#pragma unroll
      for (int u = 0; u < count; ++u) {
        const int j = part * count + u;
        if (j < WIDTH)
          sum += values[j * slots + slot] * gathered[u];
      }
    }
    return sum;
  }
};

// A row of a packed matrix; `offset` points to the offsets of its pattern, if it has one.
template <int CODE, int SOURCES, int WIDTH, class T, class X>
WL_DEVICE T packed_row(const i64* slice_ptr, const u8* codes, const T* values, const i32* offset,
                       i64 row, const X& x) {
  constexpr int most = loads_of<T> / SOURCES;
  constexpr int parts = WIDTH ? (WIDTH + most - 1) / most : 1;
  constexpr int count = WIDTH ? (WIDTH + parts - 1) / parts : most;
  const i64 slice = row / WL_WARP;
  const i64 base = WIDTH ? slice * (WIDTH * WL_WARP) : slice_ptr[slice];
  const int width = WIDTH ? WIDTH : int((slice_ptr[slice + 1] - base) / WL_WARP);
  T sum{};
#pragma unroll
  for (int j = 0; j < width; j += count)
    sum += packed_part<CODE, count, T>(codes, values, base + row % WL_WARP, offset, j, width,
                                       i32(row), x);
  return sum;
}

// The rows of a packed matrix in global memory; each lane processes one row.
template <int CODE, int WIDTH, class T>
struct packed_matrix {
  const i64* slice_ptr;
  const u8* codes;
  const T* values;
  const i32* offsets;
  i64 pattern_width;

  template <int SOURCES, class X>
  WL_DEVICE T times(const item&, int, i64 row, const X& x) const {
    const i32* const offset = CODE == PATTERN ? offsets + codes[row] * pattern_width : nullptr;
    return packed_row<CODE, SOURCES, WIDTH>(slice_ptr, codes, values, offset, row, x);
  }
};

// A packed matrix with rows that share the offsets of their pattern. The offsets and the pattern
// numbers of the rows are in shared memory, so a gather waits for no other load from global memory.
template <int ROWS, int WIDTH, class T>
struct pattern_matrix {
  const i64* slice_ptr;
  const T* values;
  i64 pattern_width;
  u8* patterns;
  i32* offsets;

  WL_DEVICE void load(const item& it, i64 n, const u8* codes, const i32* table, i64 count) const {
    each_kept<ROWS>(it, n,
                    [&](int r, i64 row) { patterns[r * WL_BLOCK + it.thread()] = codes[row]; });
    for (i64 i = it.thread(); i < count; i += WL_BLOCK)
      offsets[i] = table[i];
  }

  template <int SOURCES, class X>
  WL_DEVICE T times(const item& it, int r, i64 row, const X& x) const {
    const i32* const offset = offsets + patterns[r * WL_BLOCK + it.thread()] * pattern_width;
    return packed_row<PATTERN, SOURCES, WIDTH>(slice_ptr, nullptr, values, offset, row, x);
  }
};

// The rows of a CSR matrix in global memory.
template <class T, class I>
struct csr_matrix {
  const I* indptr;
  const I* indices;
  const T* data;

  template <int SOURCES, class X>
  WL_DEVICE T times(const item&, int, i64 row, const X& x) const {
    T sum{};
#pragma unroll 4
    for (I e = indptr[row]; e < indptr[row + 1]; ++e)
      sum += data[e] * x[indices[e]];
    return sum;
  }
};

// y = alpha A x + beta y on the rows of the work-item. All sums are computed before the first
// store. Each element of x consists of SOURCES numbers.
template <int ROWS, int SOURCES, class T, class A, class X, class Y>
WL_DEVICE void multiply(const item& it, i64 n, const A& a, const X& x, const Y& y, T alpha,
                        T beta) {
  T sums[ROWS];
  each_kept<ROWS>(it, n,
                  [&](int r, i64 row) { sums[r] = a.template times<SOURCES>(it, r, row, x); });
  each_kept<ROWS>(it, n, [&](int r, i64) { store(y[r], sums[r], alpha, beta); });
}

// Evaluates a functor on the rows of the work-item, and returns its sum over them.
template <int ROWS, class F>
WL_DEVICE typename F::sum visit(const item& it, i64 n, const F& f,
                                const typename F::column_state& state) {
  typename F::sum sum{};
  if (state.active)
    each_kept<ROWS>(it, n, [&](int r, i64) { sum += f(r, 0, state); });
  return sum;
}

} // namespace wl
