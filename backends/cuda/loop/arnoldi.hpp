// An iteration of GMRES for one right-hand side. Each work-item has the same rows in all steps
// (register_rows.hpp).
//
// A work-item reads only its own rows of the basis vectors, so that the first basis vectors can be
// in shared memory, and no block waits for another block's part of them. Every block solves the
// small least squares problem itself.
#pragma once
#include "simt/gmres.hpp"
#include "cuda/loop/register_rows.hpp"
#include "cuda/loop/grid_barrier.hpp"

namespace wl {

// The first SHARED vectors of the basis are in shared memory while the kernel runs. Rows beyond the
// last one are 0 in shared memory; in global memory the last row is read instead, so that loads
// depend on no condition. The vectors are stored in S, which is T or a lower dtype, times
// basis_unit<S>; visited vectors are in T, times basis_unit<S>.
template <int ROWS, int SHARED, class T, class S = T>
struct kept_basis {
  using stored = S;
  S* mine; // [i][r][work-item]
  S* all;  // [i][n]
  i64 n;

  WL_DEVICE S& own(const item& it, i64 i, int r) const {
    return mine[(i * ROWS + r) * WL_BLOCK + it.thread()];
  }
  WL_DEVICE i64 row(const item& it, int r) const {
    return (r * it.blocks() + it.block()) * WL_BLOCK + it.thread();
  }
  WL_DEVICE bool has(const item& it, int r) const { return row(it, r) < n; }
  template <class V>
  WL_DEVICE void keep(const item& it, i64 i, const V& v) const {
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
      if (i < SHARED)
        own(it, i, r) = has(it, r) ? rounded_to<S>(T(v[r])) : S{};
      else if (has(it, r))
        all[i * n + row(it, r)] = rounded_to<S>(T(v[r]));
  }
  // Loads the vectors 0 .. last that an earlier launch left in memory.
  WL_DEVICE void load(const item& it, i64 last) const {
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
      for (i64 i = 0; i <= last && i < SHARED; ++i)
        own(it, i, r) = has(it, r) ? all[i * n + row(it, r)] : S{};
  }
  // Stores vectors first .. last in global memory for the next launch.
  WL_DEVICE void leave(const item& it, i64 first, i64 last) const {
    each_kept<ROWS>(it, n, [&](int r, i64 row) {
      for (i64 i = first; i <= last && i < SHARED; ++i)
        all[i * n + row] = own(it, i, r);
    });
  }

  // f(i, end, parts) for vectors 0 .. j, COUNT at a time from i, with parts[u][r] of vector i + u;
  // vectors from `end` on repeat another vector. All loads are issued before the first use.
  template <int COUNT, class F>
  WL_DEVICE void visit(const item& it, i64 j, const F& f) const {
    T parts[COUNT][ROWS];
    const i64 near = j + 1 < SHARED ? j + 1 : SHARED;
    for (i64 i = 0; i < near; i += COUNT) {
#pragma unroll
      for (int u = 0; u < COUNT; ++u)
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
          parts[u][r] = raised<T>(own(it, i + u < near ? i + u : near - 1, r));
      f(i, near, parts);
    }
    for (i64 i = SHARED; i <= j; i += COUNT) {
#pragma unroll
      for (int u = 0; u < COUNT; ++u)
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
          parts[u][r] =
              raised<T>(all[(i + u <= j ? i + u : j) * n + (has(it, r) ? row(it, r) : n - 1)]);
      f(i, j + 1, parts);
    }
  }
};

// The small arrays of a block, in shared memory: each holds s numbers, `parts` holds s for every
// wave.
template <class T>
struct small_arrays {
  T *h, *turned, *correction, *sines, *g;
  real_t<T>* cosines;
  T *parts, *received;
  u64* mailboxes;
};

// Vectors of the basis for which a work-item issues the loads of its ROWS rows together. 30
// iterations with four rows took 661 microseconds with two vectors, 706 with four and 714 with
// eight (64^3); with one row 200 with four and 193 with eight (16^3, H200).
template <class T, int ROWS>
constexpr int at_once = ROWS * sizeof(T) > 16  ? 2
                        : ROWS * sizeof(T) > 8 ? 4
                                               : 8;

// parts[i][wave] of <basis_i, w> for i <= j, and of <w, w> for i = j + 1.
template <int ROWS, class T, class B>
WL_DEVICE void project_kept(const item& it, i64 j, const B& basis, const T* w, T* parts) {
  constexpr int count = at_once<T, ROWS>;
  basis.template visit<count>(it, j, [&](i64 i, i64 end, const T(&others)[count][ROWS]) {
    T sums[count] = {};
#pragma unroll
    for (int u = 0; u < count; ++u)
#pragma unroll
      for (int r = 0; r < ROWS; ++r)
        sums[u] += conj(others[u][r]) * w[r];
    const T sum = reduce_scatter<WL_WARP>(it, sums);
    const i64 mine = i + lane_of(it);
    if (lane_of(it) < count && mine < end)
      parts[mine * WAVES + wave_of(it)] = without_unit<typename B::stored>(sum);
  });
  real_t<T> own{};
#pragma unroll
  for (int r = 0; r < ROWS; ++r)
    own += square(w[r]);
  own = sum_of_lanes<WL_WARP>(it, own);
  if (lane_of(it) == 0)
    parts[(j + 1) * WAVES + wave_of(it)] = T(own);
}

// w -= sum_i h_i basis_i for i <= j; returns this work-item's part of |w|^2.
template <int ROWS, class T, class B>
WL_DEVICE real_t<T> subtract_kept(const item& it, i64 j, const B& basis, T* w, const T* h) {
  constexpr int count = at_once<T, ROWS>;
  basis.template visit<count>(it, j, [&](i64 i, i64 end, const T(&others)[count][ROWS]) {
#pragma unroll
    for (int u = 0; u < count; ++u) {
      const T factor = i + u < end ? without_unit<typename B::stored>(h[i + u]) : T(0);
#pragma unroll
      for (int r = 0; r < ROWS; ++r)
        w[r] -= factor * others[u][r];
    }
  });
  real_t<T> sum{};
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    w[r] = basis.has(it, r) ? w[r] : T(0);
    sum += square(w[r]);
  }
  return sum;
}

// Lines 4 to 8 of the iteration: w is orthogonalized against the basis, a second time if it lost
// digits, and the rotations are applied to the new column of the Hessenberg matrix. `publish`
// stores the elements that other blocks gather. This takes two barriers, or four with the second
// orthogonalization.
template <int ROWS, class T, class B, class P>
WL_DEVICE void orthogonalize(const item& it, grid_barrier& m, i64 j, const B& basis, T* w,
                             const small_arrays<T>& a, real_t<T>* before, real_t<T>* after,
                             i64* count, i64* step, const status_of<T>& status, const P& publish) {
  using R = real_t<T>;
#pragma unroll
  for (int r = 0; r < ROWS; ++r)
    w[r] = basis.has(it, r) ? w[r] : T(0);
  project_kept<ROWS>(it, j, basis, w, a.parts);
  add_up_many(it, m, j + 2, a.parts, a.h, a.received, a.mailboxes);
  const R length = square_root(real(a.h[j + 1]));
  // One work-item applies the rotations to the column while the block waits for other blocks.
  const auto turn_earlier = meanwhile([&] {
    a.turned[j] = turn_column<T>(j, strided<T>{a.h, 1}, strided<R>{a.cosines, 1},
                                 strided<T>{a.sines, 1}, strided<T>{a.turned, 1});
  });
  const auto rotate = [&] {
    close_column<T>(0, j, a.turned[j], a.turned[j], after, before, mat<R>{a.cosines, 1},
                    mat<T>{a.sines, 1}, mat<T>{a.g, 1}, count, status);
    *step = j + 1;
  };
  R sum = subtract_kept<ROWS>(it, j, basis, w, a.h);
  publish();
  add_up<true, R>(
      it, m, sum,
      [&](R total) {
        *before = length;
        *after = square_root(total);
        if (!lost_digits(*after, length))
          rotate();
      },
      turn_earlier);
  // The same in all blocks: the work-item that rotated the column has incremented the step.
  if (*step == j + 1)
    return;
  project_kept<ROWS>(it, j, basis, w, a.parts);
  add_up_many(it, m, j + 1, a.parts, a.correction, a.received, a.mailboxes);
  sum = subtract_kept<ROWS>(it, j, basis, w, a.correction);
  for (i64 i = it.thread(); i <= j; i += WL_BLOCK)
    a.h[i] += a.correction[i];
  publish();
  add_up<true, R>(
      it, m, sum,
      [&](R total) {
        *after = square_root(total);
        rotate();
      },
      turn_earlier);
}

// Stores the values of the new column for the next launch.
template <class T>
WL_DEVICE void write_column(const item& it, i64 s, i64 j, const small_arrays<T>& a, T* hessenberg,
                            real_t<T>* cosine, T* sine, T* g) {
  for (i64 i = it.thread(); i <= j; i += WL_BLOCK)
    hessenberg[i * s + j] = a.turned[i];
  if (it.thread() == 0) {
    cosine[j] = a.cosines[j];
    sine[j] = a.sines[j];
    g[j] = a.g[j];
    g[j + 1] = a.g[j + 1];
  }
}
template <class T>
WL_DEVICE void read_columns(const item& it, i64 s, const small_arrays<T>& a,
                            const real_t<T>* cosine, const T* sine, const T* g) {
  for (i64 i = it.thread(); i < s; i += WL_BLOCK) {
    a.cosines[i] = cosine[i];
    a.sines[i] = sine[i];
    a.g[i] = g[i];
  }
}

// v = w / |w|, or 0 where |w| is 0, rounded to the dtype of the basis, as a functor over rows.
template <class T, class S = T>
struct arnoldi_append {
  mat<T> v;
  mat<const T> w;
  const real_t<T>* length;
  status_of<T> status;
  using sum = none;
  struct column_state {
    bool active, small;
    real_t<T> length, inverse;
  };

  WL_DEVICE column_state column(i64 c) const {
    using R = real_t<T>;
    // If the length and the elements are far from the limits of the range, a product with the
    // reciprocal replaces the division.
    const R size = length[c], inverse = R(1) / size;
    constexpr R least = sizeof(R) == 8 ? R(0x1p-500) : R(0x1p-60f);
    return {status.is_running(c), !(size > least && inverse > least), size, inverse};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state& s) const {
    T value;
    if (!s.small)
      value = w(i, c) * T(s.inverse);
    else
      value = s.length == real_t<T>(0) ? T(0) : w(i, c) / s.length;
    if constexpr (!same<S, T>::value)
      value = without_unit<S>(raised<T>(rounded_to<S>(value)));
    v(i, c) = value;
    return {};
  }
  WL_DEVICE void finish(i64, sum) const {}
};

// Selects the dtype in which the basis is stored by its code.
template <class T>
using arnoldi_append_f4 = arnoldi_append<T, float>;
template <class T>
using arnoldi_append_f2 = arnoldi_append<T, half>;
template <class T>
using arnoldi_append_b2 = arnoldi_append<T, bfloat>;
template <class T>
using arnoldi_append_c8 = arnoldi_append<T, complex<float>>;

} // namespace wl
