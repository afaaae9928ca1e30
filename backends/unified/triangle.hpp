// The small least squares problem at the end of a cycle of GMRES.
//
// For singular and inconsistent systems its triangle becomes singular too: the unknowns grow, and
// the rounding error of the product with them exceeds the residual that they should leave. A
// solution with fewer unknowns then has a smaller residual. See reference/gmres.py.
#pragma once
#include "unified/types.hpp"

namespace wl {

// The residual of a solution of the triangle, and the rounding error of the product with it.
template <class R>
struct remainder {
  R left, rounding;
};

// Calls solve(rows) for `most` rows. Where the rounding error exceeds the residual, it is also
// called for 1, 2, 4, ... fewer rows, as long as the residual decreases. The last call is the call
// with the smallest residual.
template <class R, class S>
WL_DEVICE void solve_leading(i64 most, const S& solve) {
  i64 best = 0, rows = most;
  R least = R(0);
  bool found = false;
  for (i64 fewer = 0;; fewer = fewer == 0 ? 1 : 2 * fewer) {
    rows = fewer < most ? most - fewer : 0;
    const remainder<R> now = solve(rows);
    const R total = now.left + now.rounding;
    const bool better = finite(total) && (!found || total < least);
    if (better) {
      found = true;
      best = rows;
      least = total;
    }
    if (rows == 0 || (fewer == 0 && now.rounding <= now.left) || (!better && fewer >= 2))
      break;
  }
  if (rows != best)
    solve(best);
}

// y = the solution of the first rows of the triangle of column c, 0 beyond them. An unknown with a
// zero pivot is 0, and its row is skipped. Entry (i, j) of the triangle is triangle[(i * s + j) * k
// + c].
template <class T>
WL_DEVICE remainder<real_t<T>> solve_rows(const T* triangle, i64 s, i64 k, i64 c, mat<const T> g,
                                          i64 most, i64 rows, mat<T> y) {
  using R = real_t<T>;
  R left{}, sizes{};
  for (i64 i = rows; i < s; ++i) {
    y(i, c) = T(0);
    if (i <= most)
      left += square(g(i, c));
  }
  for (i64 i = rows - 1; i >= 0; --i) {
    T known(0);
    R size{};
    for (i64 j = i + 1; j < rows; ++j) {
      const T entry = triangle[(i * s + j) * k + c], value = y(j, c);
      known += entry * value;
      size += magnitude(entry) * magnitude(value);
    }
    const T pivot = triangle[(i * s + i) * k + c], rest = g(i, c) - known;
    const T value = pivot == T(0) ? T(0) : rest / pivot;
    if (pivot == T(0))
      left += square(rest);
    size += magnitude(pivot) * magnitude(value);
    sizes += square(size);
    y(i, c) = value;
  }
  return {square_root(left), epsilon<T> * square_root(sizes)};
}

} // namespace wl
