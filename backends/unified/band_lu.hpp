// LU factors of one small matrix with row exchanges, in place: dense, or in a band.
//
// Entry (i, j) is at a[offset + i * stride + j], by rows. A dense matrix of n rows has stride n.
// Row i of a band has the columns from i - lower to i + lower + upper, since exchanged rows add up
// to `lower` columns; the stride is one less than the number of these columns. A team of work-items
// shares the work: rank() is the number of a work-item, size() their count, and barrier() waits for
// all.
//
// Multipliers stay in the rows in which they were computed, as in LINPACK: a solve applies the
// exchanges one by one. G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., 2013,
// algorithms 3.4.1 and 4.3.1.
#pragma once
#include "unified/types.hpp"

namespace wl {

struct lu_shape {
  i64 n, lower, upper, stride, offset;

  WL_DEVICE i64 at(i64 i, i64 j) const { return offset + i * stride + j; }
  // The last row below the diagonal of column k, and the last column of row k of U.
  WL_DEVICE i64 last_row(i64 k) const { return k + lower < n ? k + lower : n - 1; }
  WL_DEVICE i64 last_column(i64 k) const {
    return k + lower + upper < n ? k + lower + upper : n - 1;
  }
};

template <class R>
WL_DEVICE R pivot_size(R v) {
  return v < R(0) ? -v : v;
}
template <class R>
WL_DEVICE R pivot_size(complex<R> v) {
  return pivot_size(v.re) + pivot_size(v.im);
}

// The row of the largest entry of column k on and below the diagonal; the first of equal ones.
template <class T>
WL_DEVICE i64 pivot_row(const lu_shape& s, const T* a, i64 k) {
  i64 best = k;
  auto size = pivot_size(a[s.at(k, k)]);
  for (i64 i = k + 1; i <= s.last_row(k); ++i) {
    const auto other = pivot_size(a[s.at(i, k)]);
    if (other > size)
      best = i, size = other;
  }
  return best;
}

// Factorizes the matrix; false if a pivot is zero or not finite. The team finds the pivot of a
// column, and subtracts multiples of the pivot row from the rows below.
template <class Team, class T>
WL_DEVICE bool factorize_band(const Team& team, const lu_shape& s, T* a, i32* pivots) {
  using R = real_t<T>;
  for (i64 k = 0; k < s.n; ++k) {
    const i64 p = team.pivot_row(s, a, k), right = s.last_column(k);
    const T pivot = a[s.at(p, k)];
    const R size = pivot_size(pivot);
    team.barrier();
    if (!(size > R(0)) || !(size - size == R(0)))
      return false;
    if (team.rank() == 0)
      pivots[k] = i32(p);
    if (p != k) {
      T* const row = a + s.at(k, 0);
      T* const other = a + s.at(p, 0);
      for (i64 j = k + team.rank(); j <= right; j += team.size()) {
        const T kept = row[j];
        row[j] = other[j];
        other[j] = kept;
      }
    }
    team.barrier();
    team.eliminate(s, a, k, pivot);
    team.barrier();
  }
  return true;
}

// Replaces b by the solution.
template <class T>
WL_DEVICE void solve_band(const lu_shape& s, const T* a, const i32* pivots, T* b) {
  for (i64 k = 0; k < s.n; ++k) {
    const i64 p = pivots[k];
    const T value = b[p];
    b[p] = b[k];
    b[k] = value;
    if (value == T(0))
      continue;
    for (i64 i = k + 1; i <= s.last_row(k); ++i)
      b[i] -= a[s.at(i, k)] * value;
  }
  for (i64 k = s.n - 1; k >= 0; --k) {
    T sum = b[k];
    const T* const row = a + s.at(k, 0);
    for (i64 j = k + 1; j <= s.last_column(k); ++j)
      sum -= row[j] * b[j];
    b[k] = sum / row[k];
  }
}

} // namespace wl
