// Approximate inverses on a pattern, row by row. See wollemi.core.operations.isai.
#pragma once
#include "unified/status.hpp"

namespace wl {

// w (I - N) = e_i on the pattern of row i: w_j = sum of w_l N_lj over l between j and i. The
// computation proceeds from the diagonal outwards, so that w_l is complete when it is used.
template <class T, class I>
struct isai_triangle {
  const I *rows, *pointers, *columns, *indptr, *indices;
  const T* data;
  i64 upper;
  T* w;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 t, i64, const column_state&) const {
    const i64 i = rows[t], first = pointers[i], last = pointers[i + 1];
    for (i64 s = first; s < last; ++s)
      w[s] = T(columns[s] == i ? 1 : 0);
    for (i64 step = first; step < last; ++step) {
      const i64 s = upper ? step : first + last - 1 - step;
      const T value = w[s];
      const i64 l = columns[s];
      // The entries of row l beyond l are intersected with the pattern: both are sorted.
      i64 u = upper ? s + 1 : first;
      const i64 end = upper ? last : s;
      for (i64 e = indptr[l]; e < indptr[l + 1] && u < end; ++e) {
        const i64 j = indices[e];
        while (u < end && columns[u] < j)
          ++u;
        if (u < end && columns[u] == j)
          w[u] += value * data[e];
      }
    }
    return {};
  }
};

// w A(S,S) = e_i by elimination with pivots. Elements (r, c) of the systems of all rows are
// contiguous, so that adjacent work-items read adjacent memory.
template <class T, class I>
struct isai_general {
  const I *rows, *pointers, *columns, *indptr, *indices;
  const T* data;
  i64 width, count;
  T *work, *w;
  i64* singular;
  WL_COUNT(singular);

  WL_DEVICE T& at(i64 t, i64 r, i64 c) const { return work[(r * (width + 1) + c) * count + t]; }

  WL_DEVICE sum operator()(i64 t, i64, const column_state&) const {
    const i64 i = rows[t], first = pointers[i], m = pointers[i + 1] - first;
    const T own = gather(t, i, first, m);
    const bool solved = eliminate(t, m);
    bool fine = solved;
    for (i64 r = 0; r < m; ++r)
      fine = fine && finite(at(t, r, m));
    const T inverse = T(1) / own;
    for (i64 r = 0; r < m; ++r) {
      const T instead = columns[first + r] != i ? T(0) : finite(inverse) ? inverse : T(1);
      w[first + r] = fine ? at(t, r, m) : instead;
    }
    for (i64 r = 0; r < m; ++r)
      for (i64 c = 0; c <= m; ++c)
        at(t, r, c) = T(0);
    return fine ? 0 : 1;
  }

  // Stores A(S,S) transposed and the right-hand side; returns the diagonal entry.
  WL_DEVICE T gather(i64 t, i64 i, i64 first, i64 m) const {
    T own(0);
    for (i64 r = 0; r < m; ++r) {
      const i64 row = columns[first + r];
      i64 c = 0;
      for (i64 e = indptr[row]; e < indptr[row + 1] && c < m; ++e) {
        const i64 j = indices[e];
        while (c < m && columns[first + c] < j)
          ++c;
        if (c < m && columns[first + c] == j) {
          at(t, c, r) = data[e];
          if (row == i && j == i)
            own = data[e];
        }
      }
      at(t, r, m) = T(row == i ? 1 : 0);
    }
    return own;
  }

  // Solves the system of m unknowns; the solution is stored in column m.
  WL_DEVICE bool eliminate(i64 t, i64 m) const {
    real_t<T> largest(0);
    for (i64 r = 0; r < m; ++r)
      for (i64 c = 0; c < m; ++c) {
        const real_t<T> size = magnitude(at(t, r, c));
        largest = size > largest ? size : largest;
      }
    for (i64 step = 0; step < m; ++step) {
      i64 pivot = step;
      real_t<T> best = magnitude(at(t, step, step));
      for (i64 r = step + 1; r < m; ++r) {
        const real_t<T> size = magnitude(at(t, r, step));
        if (size > best)
          best = size, pivot = r;
      }
      if (!(best > epsilon<T> * largest) || !finite(best))
        return false;
      if (pivot != step)
        for (i64 c = step; c <= m; ++c) {
          const T other = at(t, pivot, c);
          at(t, pivot, c) = at(t, step, c);
          at(t, step, c) = other;
        }
      for (i64 r = step + 1; r < m; ++r) {
        const T factor = at(t, r, step) / at(t, step, step);
        for (i64 c = step + 1; c <= m; ++c)
          at(t, r, c) -= factor * at(t, step, c);
      }
    }
    for (i64 r = m - 1; r >= 0; --r) {
      T value = at(t, r, m);
      for (i64 c = r + 1; c < m; ++c)
        value -= at(t, r, c) * at(t, c, m);
      at(t, r, m) = value / at(t, r, r);
    }
    return true;
  }
};

} // namespace wl
