// Products of sparse matrices on CPU devices. The functions are in backends/cpu.
#pragma once
#include "dpcpp/arithmetic.hpp"
#include "cpu/column_sums.hpp"
#include "dpcpp/work_cpu.hpp"

namespace wl {

// The sums of a work-group, in memory next to the sums of other work-groups; see column_sums.
template <class T, class I>
WL_DEVICE column_sums<T, I> sums_of(const item& it, i64 n, i64 longest, i64 all_begin, T* sums,
                                    i64* bits, I* found) {
  using of = column_sums<T, I>;
  auto* const words = reinterpret_cast<typename of::word*>(bits);
  return {n, all_begin != 0, sums + it.block() * n, words + it.block() * of::words(n),
          found + it.block() * of::room(longest)};
}

// The number of terms of each row, plus one: rows without terms are work too. longest[g] is the
// largest number of terms in the rows of work-group g.
template <class T, class I>
WL_DEVICE void count_product_terms(const item& it, i64 m, const I* indptr, const I* indices,
                                   const I* other_indptr, i64* work, i64* longest) {
  const product_terms<T, I> terms{m, 0, indptr, indices, nullptr, other_indptr, nullptr, nullptr};
  const own_elements own(it, m);
  longest[it.block()] = count_terms(terms, own.begin, own.end, work);
  for (i64 row = own.begin; row < own.end; ++row)
    ++work[row];
}

// Adds up all rows. made[g] is the number of entries of work-group g; if `columns` is not null,
// they are stored from before[row] on.
template <class T, class I>
WL_DEVICE void make_product(const item& it, i64 m, i64 n, const I* indptr, const I* indices,
                            const T* data, const I* other_indptr, const I* other_indices,
                            const T* other_data, const i64* before, i64 longest, i64 all_begin,
                            T* sums, i64* bits, I* found, I* lengths, I* columns, T* values,
                            i64* made) {
  const product_terms<T, I> terms{m,         n, indptr, indices, data, other_indptr, other_indices,
                                  other_data};
  const rows_of_work own(it, m, [=](i64 row) { return before[row]; });
  const column_sums<T, I> mine = sums_of(it, n, longest, all_begin, sums, bits, found);
  mine.clear();
  const i64 first = columns ? before[own.begin] : 0;
  made[it.block()] = make_rows(terms, mine, own.begin, own.end, lengths,
                               columns ? columns + first : nullptr, values + first);
}

// Moves stored rows to their final positions.
template <class T, class I>
WL_DEVICE void move_product(const item& it, i64 m, const i64* before, const I* target,
                            const I* columns, const T* values, I* new_indices, T* new_data) {
  const rows_of_work own(it, m, [=](i64 row) { return before[row]; });
  const i64 to = target[own.begin], length = target[own.end] - to, from = before[own.begin];
  for (i64 e = 0; e < length; ++e)
    new_indices[to + e] = columns[from + e];
  for (i64 e = 0; e < length; ++e)
    new_data[to + e] = values[from + e];
}

// Adds up all rows again and writes them to their final positions. The sums come from make_product,
// which leaves no row in them.
template <class T, class I>
WL_DEVICE void fill_product(const item& it, i64 m, i64 n, const I* indptr, const I* indices,
                            const T* data, const I* other_indptr, const I* other_indices,
                            const T* other_data, const i64* before, i64 longest, i64 all_begin,
                            T* sums, i64* bits, I* found, const I* target, I* new_indices,
                            T* new_data) {
  const product_terms<T, I> terms{m,         n, indptr, indices, data, other_indptr, other_indices,
                                  other_data};
  const rows_of_work own(it, m, [=](i64 row) { return before[row]; });
  const column_sums<T, I> mine = sums_of(it, n, longest, all_begin, sums, bits, found);
  fill_rows(terms, mine, own.begin, own.end, target, new_indices, new_data);
}

// The values of a product with known positions.
template <class T, class I>
WL_DEVICE void value_product(const item& it, i64 m, i64 n, const I* indptr, const I* indices,
                             const T* data, const I* other_indptr, const I* other_indices,
                             const T* other_data, const I* target, const I* places, T* sums,
                             T* new_data) {
  const product_terms<T, I> terms{m,         n, indptr, indices, data, other_indptr, other_indices,
                                  other_data};
  const rows_of_work own(it, m, [=](i64 row) { return i64(target[row]); });
  value_rows(terms, sums + it.block() * n, own.begin, own.end, target, places, new_data);
}

} // namespace wl
