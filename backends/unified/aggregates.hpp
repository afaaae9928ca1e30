// The set-up of algebraic multigrid by aggregates. See wollemi.core.operations.coarsen.
#pragma once
#include "unified/coarsen_rows.hpp"

namespace wl {

template <class T, class I>
struct coarsen_count_coupled {
  const I *begin, *end, *indices;
  const T *values, *d;
  real_t<T> theta;
  I* lengths;
  i64* total;
  WL_COUNT(total);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    I count = 0;
    matrix_rows<T, I>{begin, end, indices, values}.for_coupled(i, d, theta, [&](I) { ++count; });
    return lengths[i] = count;
  }
};

template <class T, class I>
struct coarsen_coupled {
  const I *begin, *end, *indices;
  const T *values, *d;
  real_t<T> theta;
  const I* target;
  I* new_indices;
  T* new_values;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    I to = target[i];
    matrix_rows<T, I>{begin, end, indices, values}.for_coupled(i, d, theta, [&](I e) {
      new_indices[to] = indices[e];
      new_values[to++] = values[e];
    });
    return {};
  }
};

// The first entry of a sorted row with a column of at least a bound.
template <class I>
WL_DEVICE I first_beyond(I begin, I end, const I* indices, i64 bound) {
  while (begin < end) {
    const I middle = begin + (end - begin) / 2;
    if (i64(indices[middle]) < bound)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

// Calls use(block, sum of squares) for the blocks of a block row, from left to right. Rows are
// sorted: the next block is the first block behind the last one in which any of the rows has an
// entry.
template <class T, class I, class Use>
WL_DEVICE void for_blocks(const I* indptr, const I* indices, const T* values, i64 size, i64 i,
                          Use&& use) {
  i64 last = -1;
  for (;;) {
    i64 next = -1;
    for (i64 row = i * size; row < i * size + size; ++row) {
      const I e = first_beyond(indptr[row], indptr[row + 1], indices, (last + 1) * size);
      if (e < indptr[row + 1]) {
        const i64 block = i64(indices[e]) / size;
        next = next < 0 || block < next ? block : next;
      }
    }
    if (next < 0)
      return;
    real_t<T> squares(0);
    for (i64 row = i * size; row < i * size + size; ++row)
      for (I e = first_beyond(indptr[row], indptr[row + 1], indices, next * size);
           e < indptr[row + 1] && i64(indices[e]) < (next + 1) * size; ++e)
        squares += rounded_square(values[e]);
    use(next, squares);
    last = next;
  }
}

template <class T, class I>
struct coarsen_count_nodes {
  const I *indptr, *indices;
  const T* values;
  i64 size;
  I* lengths;
  i64* total;
  WL_COUNT(total);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    I count = 0;
    for_blocks(indptr, indices, values, size, i, [&](i64, real_t<T>) { ++count; });
    return lengths[i] = count;
  }
};

template <class T, class I>
struct coarsen_nodes {
  const I *indptr, *indices;
  const T* values;
  i64 size;
  const I *lengths, *target;
  I* new_indices;
  T* new_values;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    I to = target[i];
    for_blocks(indptr, indices, values, size, i, [&](i64 block, real_t<T> squares) {
      new_indices[to] = I(block);
      new_values[to++] = T(square_root(squares));
    });
    return {};
  }
};

template <class I>
struct coarsen_spread {
  const I *begin, *end, *indices;
  const i64* key;
  i64* next;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    i64 largest = key[i];
    for (I e = begin[i]; e < end[i]; ++e)
      largest = key[indices[e]] > largest ? key[indices[e]] : largest;
    return next[i] = largest, sum{};
  }
};

constexpr i64 kUndecidedKey = i64(1) << 40, kRootKey = i64(2) << 40;

// It has no values: the parameter is there because functors are templates.
template <class T = float>
struct coarsen_decide {
  const i64 *key, *spread;
  i64 *next, *undecided;
  WL_COUNT(undecided);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    i64 mine = key[i];
    i64 left = 0;
    if (mine >= kUndecidedKey && mine < kRootKey) {
      if (spread[i] == mine)
        mine += kUndecidedKey;
      else if (spread[i] >= kRootKey)
        mine -= kUndecidedKey;
      else
        left = 1;
    }
    next[i] = mine;
    return left;
  }
};

template <class T, class I>
struct coarsen_join {
  const I *begin, *end, *indices;
  const T* values;
  const i64* label;
  i64 *next, *total;
  WL_COUNT(total);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    i64 mine = label[i];
    if (mine < 0) {
      real_t<T> best(-1);
      for (I e = begin[i]; e < end[i]; ++e) {
        const real_t<T> s = size_of(values[e]);
        if (label[indices[e]] >= 0 && s > best)
          best = s, mine = label[indices[e]];
      }
    }
    next[i] = mine;
    return mine < 0 ? 1 : 0;
  }
};

template <class I>
struct coarsen_open_keys {
  const I *begin, *end;
  i64 *key, *undecided;
  WL_COUNT(undecided);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    const bool open = end[i] > begin[i];
    key[i] = hashed(i) + (open ? kUndecidedKey : 0);
    return open ? 1 : 0;
  }
};

template <class T = float>
struct coarsen_roots {
  const i64* key;
  i64 *lengths, *total;
  WL_COUNT(total);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    return lengths[i] = key[i] >= kRootKey ? 1 : 0;
  }
};

template <class T = float>
struct coarsen_label {
  const i64 *lengths, *number;
  i64* label;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    return label[i] = lengths[i] > 0 ? number[i] : -1, sum{};
  }
};

template <class T = float>
struct coarsen_unknowns {
  const i64* label;
  i64 size;
  i64* unknown;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    return unknown[i] = label[i / size], sum{};
  }
};

template <class T, class I>
struct coarsen_count_basis {
  const i64* label;
  i64 columns;
  const T* values;
  I* lengths;
  i64* total;
  WL_COUNT(total);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    return lengths[i] = label[i] >= 0 ? I(columns) : I(0);
  }
};

template <class T, class I>
struct coarsen_basis {
  const i64* label;
  i64 columns;
  const T* values;
  const I* target;
  I* new_indices;
  T* new_values;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    if (label[i] >= 0)
      for (i64 j = 0; j < columns; ++j) {
        new_indices[target[i] + j] = I(label[i] * columns + j);
        new_values[target[i] + j] = values[i * columns + j];
      }
    return {};
  }
};

template <class T, class I>
struct coarsen_orthonormalize {
  const I *begin, *end, *members;
  i64 size, columns;
  const T* given;
  T *basis, *coarse;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    using R = real_t<T>;
    T* const r = coarse + i * columns * columns;
    for (i64 j = 0; j < columns; ++j) {
      for_rows(i, [&](i64 row) { basis[row + j] = given[row + j]; });
      const R before = real(product(i, j, j));
      for (i64 k = 0; k < columns; ++k)
        r[k * columns + j] = T(0);
      for (i64 k = 0; k < j; ++k) {
        const T part = r[k * columns + j] = product(i, k, j);
        for_rows(i, [&](i64 row) {
          basis[row + j] = basis[row + j] - rounded_product(part, basis[row + k]);
        });
      }
      const R after = real(product(i, j, j));
      const bool independent = after > R(64) * epsilon<T> * before;
      const R length = independent ? square_root(after) : R(1);
      r[j * columns + j] = independent ? T(length) : T(0);
      for_rows(i, [&](i64 row) { basis[row + j] = independent ? basis[row + j] / length : T(0); });
    }
    return {};
  }

private:
  // Calls use(beginning of its row) for every unknown of the nodes of an aggregate.
  template <class Use>
  WL_DEVICE void for_rows(i64 i, Use&& use) const {
    for (I e = begin[i]; e < end[i]; ++e)
      for (i64 u = 0; u < size; ++u)
        use((i64(members[e]) * size + u) * columns);
  }
  WL_DEVICE T product(i64 i, i64 k, i64 j) const {
    T total(0);
    for_rows(i, [&](i64 row) { total += rounded_product(conj(basis[row + k]), basis[row + j]); });
    return total;
  }
};

} // namespace wl
