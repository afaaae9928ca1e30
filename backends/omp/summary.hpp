// Properties of a square matrix in one pass by one thread. See wollemi.core.operations.summary.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

#include "omp/interruption.hpp"
#include "unified/balanced.hpp"
#include "unified/facts.hpp"

namespace wl {

template <class T, class I>
struct summary_square {
  using R = real_t<T>;
  const I *indptr, *indices;
  const T* values;
  R least, most;
  i64* counts;
  R* bound;
  i64 p, e;

  void operator()(int) const {
    const i64 n = p - 1;
    const Rows found = look_at_rows(n);
    const bool usable = found.disorder + found.not_finite == 0;
    const i64 all[] = {found.disorder, found.not_finite, usable && differs(n), found.singular,
                       found.positive, found.repeated,   found.balanced};
    std::fill_n(counts, std::size(all), i64(0));
    std::copy_n(all, usable ? std::size(all) : 2, counts);
    bound[0] = usable ? found.bound : R(0);
    end_if_interrupted();
  }

private:
  struct Rows {
    i64 disorder, not_finite, singular, positive, repeated, balanced;
    R bound;
  };

  // Rows rise, and so do the columns of the mirror images that a row is asked for: each row is read
  // once by a place of its own.
  bool differs(i64 n) const {
    std::vector<I> place(indptr, indptr + n);
    i64 surplus = 0;
    for (i64 i = 0; i < n && !interrupted(); ++i)
      for (I q = indptr[i]; q < indptr[i + 1]; ++q) {
        const i64 j = indices[q];
        const T value = values[q];
        if (j == i) {
          if (!is_mirrored(value, value))
            return true;
        } else if (value != T(0)) {
          surplus += j > i ? 1 : -1;
          if (j < i && !has_image(value, place[j], indptr[j + 1], i))
            return true;
        }
      }
    return surplus != 0;
  }
  bool has_image(T value, I& place, I beyond, i64 column) const {
    while (place < beyond && i64(indices[place]) < column)
      ++place;
    return place < beyond && i64(indices[place]) == column && is_mirrored(value, values[place]);
  }

  // Rows are short, so that a loop for each property would mispredict its end anew.
  Rows look_at_rows(i64 n) const {
    const coarsen_balanced<T, I> balance{indptr, indptr + 1, indices, values, least, most, nullptr};
    Rows found{};
    T first(0);
    for (i64 i = 0; i < n && !interrupted(); ++i) {
      T d(0);
      R size(0), negative(0), positive(0);
      i64 before = -1;
      for (I q = indptr[i]; q < indptr[i + 1]; ++q) {
        const i64 j = indices[q];
        const T value = values[q];
        const R a = j == i ? R(0) : real(value);
        found.disorder += j <= before;
        found.not_finite += !finite(value);
        d += j == i ? value : T(0);
        size += size_of(value);
        negative += a < R(0) ? -a : R(0);
        positive += a < R(0) ? R(0) : a;
        before = j;
      }
      const T inverse = T(1) / d;
      first = i == 0 ? d : first;
      found.singular += !(finite(d) && finite(inverse));
      found.positive += real(d) > R(0);
      found.repeated += d == first;
      found.balanced += balance.of_sums(real(d), negative, positive);
      const R scale = size_of(d), ratio = scale > R(0) ? size / scale : R(0);
      found.bound = ratio > found.bound ? ratio : found.bound;
    }
    return found;
  }
};

} // namespace wl
