// Direct solves of tridiagonal systems without exchanges of rows: L lanes share a system, and each
// lane holds R adjacent rows in registers.
//
// A lane eliminates all its unknowns but the last one; parallel cyclic reduction then solves for
// the last unknowns of all lanes. A solution is accepted only if its residual is as small as that
// of a stable method. Other systems are refined once. Systems that then still fail stay undecided
// and are solved by a factorization with pivots. H. H. Wang, A parallel method for tridiagonal
// equations, ACM Trans. Math. Softw. 7 (1981), pp. 170-183.
#pragma once
#include "simt/batch_judge.hpp"

namespace wl {

// Elements that a lane loads before it stores the first of them.
constexpr int AHEAD_OF_USE = 16;

// The equation that is left for the last unknown of a lane: its coefficients for the last unknowns
// of the adjacent lanes and of this lane, and the right-hand side.
template <class T>
struct reduced_row {
  T a, d, c, f;
};

// The equation of another lane of the group; beyond the group an equation that makes the unknown 0.
template <int L, class T>
WL_DEVICE reduced_row<T> row_of_lane(const item& it, const reduced_row<T>& row, int from) {
  const bool inside = from >= 0 && from < L;
  const int lane = lane_of(it) / L * L + (inside ? from : 0);
  reduced_row<T> other{shuffle(row.a, lane), shuffle(row.d, lane), shuffle(row.c, lane),
                       shuffle(row.f, lane)};
  return inside ? other : reduced_row<T>{T(0), T(1), T(0), T(0)};
}

// Replaces the right-hand sides f by the solution. `rows` holds the three coefficients of each row
// of the lane; l is the number of the lane among the L lanes that share the system.
template <int R, int L, class T>
WL_DEVICE void solve_by_lanes(const item& it, int l, int n, const T* rows, T (&f)[R]) {
  T a[R], d[R], c[R];
#pragma unroll
  for (int q = 0; q < R; ++q) {
    a[q] = rows[3 * q];
    d[q] = l * R + q < n ? rows[3 * q + 1] : T(1);
    c[q] = rows[3 * q + 2];
  }
#pragma unroll
  for (int q = 1; q < R; ++q) {
    const T factor = a[q] / d[q - 1];
    a[q] = -(factor * a[q - 1]);
    d[q] -= factor * c[q - 1];
    f[q] -= factor * f[q - 1];
  }
#pragma unroll
  for (int q = R - 3; q >= 0; --q) {
    const T factor = c[q] / d[q + 1];
    a[q] -= factor * a[q + 1];
    c[q] = -(factor * c[q + 1]);
    f[q] -= factor * f[q + 1];
  }
  const T top = T(1) / d[0];
  const reduced_row<T> next =
      row_of_lane<L>(it, reduced_row<T>{a[0] * top, T(1), c[0] * top, f[0] * top}, l + 1);
  reduced_row<T> row{a[R - 1], d[R - 1] - c[R - 1] * next.a, -(c[R - 1] * next.c),
                     f[R - 1] - c[R - 1] * next.f};
#pragma unroll
  for (int far = 1; far < L; far *= 2) {
    const reduced_row<T> before = row_of_lane<L>(it, row, l - far);
    const reduced_row<T> after = row_of_lane<L>(it, row, l + far);
    const T up = row.a / before.d, down = row.c / after.d;
    row = {-(up * before.a), row.d - up * before.c - down * after.a, -(down * after.c),
           row.f - up * before.f - down * after.f};
  }
  f[R - 1] = row.f / row.d;
  const T from_before = shuffle_up(it, f[R - 1], 1);
  const T last_before = l > 0 ? from_before : T(0);
#pragma unroll
  for (int q = 0; q < R - 1; ++q)
    f[q] = (f[q] - a[q] * last_before - c[q] * f[R - 1]) / d[q];
}

// The norm of the residual of a system, and the norm of all its terms.
struct residual_norms {
  double residual, terms;
};

// r = the residual of x for the right-hand sides `side`; `count` of them belong to the lane.
template <int R, int L, class T>
WL_DEVICE residual_norms residual_by_lanes(const item& it, int l, const T* rows, const T* side,
                                           int count, const T (&x)[R], T (&r)[R]) {
  using D = doubled<T>;
  const T from_before = shuffle_up(it, x[R - 1], 1);
  const T last_before = l > 0 ? from_before : T(0);
  const int beyond = l + 1 < L ? lane_of(it) + 1 : lane_of(it);
  const T from_after = shuffle(x[0], beyond);
  const T first_after = l + 1 < L ? from_after : T(0);
  double residual = 0, terms = 0;
#pragma unroll
  for (int q = 0; q < R; ++q) {
    const T below = q > 0 ? x[q > 0 ? q - 1 : 0] : last_before;
    const T above = q + 1 < R ? x[q + 1 < R ? q + 1 : 0] : first_after;
    const auto right = D::up(q < count ? side[q] : T(0)), left = D::up(rows[3 * q]) * D::up(below),
               middle = D::up(rows[3 * q + 1]) * D::up(x[q]),
               end = D::up(rows[3 * q + 2]) * D::up(above);
    const auto rest = right - (left + middle + end);
    r[q] = D::down(rest);
    residual += square_of_norm(rest);
    terms += square(right) + square(left) + square(middle) + square(end);
  }
  return {square_root(sum_of_lanes<L>(it, residual)), square_root(sum_of_lanes<L>(it, terms))};
}

// `places` holds the cell of each entry of a matrix: a lane has 3 R + 1 cells, three for each row.
// If `matrix` is null, system k has matrix k. `apart` is the distance of the tolerances of two
// systems, 0 or 1.
template <int R, int L, class T>
WL_DEVICE void batch_tridiagonal(const item& it, i64 count, i64 n, const i32* places,
                                 const i64* matrix, i64 entries, const T* values, const T* b, T* x,
                                 const double* relative, const double* absolute, i64 apart,
                                 const double* limits, i64 refine, u8* codes, i64* iterations,
                                 double* norms, double* thresholds, i32* undecided) {
  using N = real_t<T>;
  using D = doubled<T>;
  constexpr int waves = WL_BLOCK / WL_WARP, together = WL_WARP / L;
  constexpr int of_values = (3 * R + 1) * L, cells = of_values + (R + 1) * L;
  static_assert(R > 1 && WL_WARP % L == 0, "lanes share systems");
  WL_SHARED(T, memory, waves * together * cells);
  T* const mine = memory + wave_of(it) * together * cells;
  const i64 first_system = (it.block() * waves + wave_of(it)) * together;
  for (int e = lane_of(it); e < together * cells; e += WL_WARP)
    mine[e] = T(0);
  wave_barrier();
  constexpr int loads = (3 * R * L + WL_WARP - 1) / WL_WARP, sides = R * L / WL_WARP + 1;
  constexpr int at_once = loads < AHEAD_OF_USE ? AHEAD_OF_USE / loads : 1;
  i32 place[loads];
#pragma unroll
  for (int u = 0; u < loads; ++u) {
    const int e = lane_of(it) + u * WL_WARP;
    place[u] = e < int(entries) ? places[e] : -1;
  }
#pragma unroll 1
  for (int p = 0; p < together; p += at_once) {
    T v[at_once][loads], right[at_once][sides];
#pragma unroll
    for (int q = 0; q < at_once; ++q) {
      const i64 k = first_system + p + q;
      const bool there = p + q < together && k < count;
      const T* const own_values = values + (there ? matrix ? matrix[k] : k : 0) * entries;
#pragma unroll
      for (int u = 0; u < loads; ++u)
        v[q][u] = there && place[u] >= 0 ? read_once(own_values + lane_of(it) + u * WL_WARP) : T(0);
#pragma unroll
      for (int u = 0; u < sides; ++u) {
        const int i = lane_of(it) + u * WL_WARP;
        right[q][u] = there && i < int(n) ? read_once(b + k * n + i) : T(0);
      }
    }
#pragma unroll
    for (int q = 0; q < at_once; ++q) {
      T* const of_system = mine + (p + q) * cells;
      const bool there = p + q < together;
#pragma unroll
      for (int u = 0; u < loads; ++u)
        if (there && place[u] >= 0)
          of_system[place[u]] = v[q][u];
#pragma unroll
      for (int u = 0; u < sides; ++u) {
        const int i = lane_of(it) + u * WL_WARP;
        if (there && i < int(n))
          of_system[of_values + i + i / R] = right[q][u];
      }
    }
  }
  wave_barrier();
  const int l = lane_of(it) % L;
  const i64 k = first_system + lane_of(it) / L;
  T* const system = mine + lane_of(it) / L * cells;
  const T* const rows = system + l * (3 * R + 1);
  T* const side = system + of_values + l * (R + 1);
  T x_of_lane[R], r[R];
  double squares = 0;
#pragma unroll
  for (int q = 0; q < R; ++q) {
    x_of_lane[q] = side[q];
    squares += square_of_norm(D::up(side[q]));
  }
  const N first = N(square_root(sum_of_lanes<L>(it, squares)));
  solve_by_lanes<R, L>(it, l, int(n), rows, x_of_lane);
  residual_norms found = residual_by_lanes<R, L>(it, l, rows, side, R, x_of_lane, r);
  const bool inside = k < count;
  const i64 at = inside ? k * apart : 0;
  const N by_length = N(relative[at]) * first, at_least = N(absolute[at]);
  const N threshold = by_length > at_least ? by_length : at_least;
  const bool fits = inside && (first == N(0) || (first >= N(limits[0]) && first <= N(limits[1])));
  const auto is_solved = [&](const residual_norms& of) {
    const N norm = N(of.residual);
    return fits && norm <= threshold && finite(of.terms) &&
           of.residual <= STABLE * double(epsilon<T>) * of.terms &&
           (norm == N(0) || norm >= N(limits[2]));
  };
  bool solved = is_solved(found);
  i64 applied = 1;
  // Few systems have a residual that is too large. If there is one, all lanes of its wave refine,
  // and a system that was solved keeps its solution. To spare registers, the array of the
  // right-hand side holds the solution meanwhile; the right-hand side is read again.
  if (refine > 0 && ballot(fits && !solved && finite(found.terms)) != 0) {
#pragma unroll
    for (int q = 0; q < R; ++q) {
      side[q] = x_of_lane[q];
      x_of_lane[q] = r[q];
    }
    solve_by_lanes<R, L>(it, l, int(n), rows, x_of_lane);
#pragma unroll
    for (int q = 0; q < R; ++q)
      x_of_lane[q] += side[q];
    const int begin = l * R < int(n) ? l * R : 0, left = inside ? int(n) - l * R : 0;
    const residual_norms again =
        residual_by_lanes<R, L>(it, l, rows, b + (inside ? k * n : 0) + begin, left, x_of_lane, r);
    const bool better = !solved && is_solved(again);
    solved = solved || better;
    applied = better ? 2 : 1;
    found = better ? again : found;
#pragma unroll
    for (int q = 0; q < R; ++q)
      x_of_lane[q] = better ? x_of_lane[q] : side[q];
  }
#pragma unroll
  for (int q = 0; q < R; ++q)
    side[q] = x_of_lane[q];
  if (inside && l == 0) {
    const verdicts_of_systems verdicts{codes, iterations, norms, thresholds, undecided};
    if (solved)
      verdicts.solved(k, applied, double(N(found.residual)), double(threshold));
    else
      verdicts.leave(k);
  }
  const u64 all = ballot(solved);
  wave_barrier();
  for (int p = 0; p < together; ++p)
    if (all >> (p * L) & 1)
      for (int i = lane_of(it); i < int(n); i += WL_WARP)
        x[(first_system + p) * n + i] = mine[p * cells + of_values + i + i / R];
}

} // namespace wl
