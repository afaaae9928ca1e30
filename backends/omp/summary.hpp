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
    i64 disorder = 0, not_finite = 0;
    for (i64 i = 0; i < n && !interrupted(); ++i)
      for (I q = indptr[i] + 1; q < indptr[i + 1]; ++q)
        disorder += indices[q] <= indices[q - 1];
    for (i64 q = 0; q < e; ++q)
      not_finite += !finite(values[q]);
    const Rows found = disorder + not_finite == 0 ? look_at_rows(n) : Rows{};
    const i64 all[] = {disorder,       not_finite,     disorder + not_finite == 0 && differs(n),
                       found.singular, found.positive, found.repeated,
                       found.balanced};
    std::copy(std::begin(all), std::end(all), counts);
    bound[0] = found.bound;
    end_if_interrupted();
  }

private:
  struct Rows {
    i64 singular, positive, repeated, balanced;
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

  Rows look_at_rows(i64 n) const {
    const coarsen_balanced<T, I> balance{indptr, indptr + 1, indices, values, least, most, nullptr};
    const matrix_rows<T, I> rows{indptr, indptr + 1, indices, values};
    Rows found{};
    T first(0);
    for (i64 i = 0; i < n && !interrupted(); ++i) {
      const T d = rows.diagonal(i), inverse = T(1) / d;
      first = i == 0 ? d : first;
      found.singular += !(finite(d) && finite(inverse));
      found.positive += real(d) > R(0);
      found.repeated += d == first;
      found.balanced += balance(i, 0, {true});
      const R size = size_of(d), ratio = size > R(0) ? rows.size(i) / size : R(0);
      found.bound = ratio > found.bound ? ratio : found.bound;
    }
    return found;
  }
};

} // namespace wl
