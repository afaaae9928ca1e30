// Incomplete factors and substitution, row by row. See wollemi.core.operations.triangular.
#pragma once

#include <vector>

#include "parallel.hpp"
#include "types.hpp"

namespace wl {

template <class T, class I>
struct triangular_factorize {
  const I *indptr, *indices, *diagonal;
  T* v;
  i64 p, e, n;

  void operator()(int) const {
    // Where the entries of the row at hand are, by column.
    std::vector<I> place(static_cast<std::size_t>(n), I(-1));
    for (i64 i = 0; i < n; ++i) {
      for (I q = indptr[i]; q < indptr[i + 1]; ++q)
        place[indices[q]] = q;
      for (I q = indptr[i]; q < diagonal[i]; ++q) {
        const i64 l = indices[q];
        const T factor = v[q] / v[diagonal[l]];
        v[q] = factor;
        for (I t = diagonal[l] + 1; t < indptr[l + 1]; ++t)
          if (const I at = place[indices[t]]; at >= 0)
            v[at] -= factor * v[t];
      }
      for (I q = indptr[i]; q < indptr[i + 1]; ++q)
        place[indices[q]] = I(-1);
    }
  }
};

// x_i += sum of N_ij x_j over one triangle. A row needs those before it, so one thread does it all.
template <class T, class I, bool lower>
struct substitution {
  const I *indptr, *indices;
  const T* data;
  mat<T> x;
  i64 p, e, n, k;

  void operator()(int) const {
    for (i64 step = 0; step < n; ++step) {
      const i64 i = lower ? step : n - 1 - step;
      if (k == 1) {
        T sum = x(i, 0);
        for (I q = indptr[i]; q < indptr[i + 1]; ++q)
          if (lower ? indices[q] < i : indices[q] > i)
            sum += data[q] * x(indices[q], 0);
        x(i, 0) = sum;
        continue;
      }
      for (I q = indptr[i]; q < indptr[i + 1]; ++q) {
        if (!(lower ? indices[q] < i : indices[q] > i))
          continue;
        const T value = data[q];
        for (i64 c = 0; c < k; ++c)
          x(i, c) += value * x(indices[q], c);
      }
    }
  }
};

template <class T, class I>
struct triangular_forward : substitution<T, I, true> {};

template <class T, class I>
struct triangular_backward : substitution<T, I, false> {};

} // namespace wl
