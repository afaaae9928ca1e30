// New rows that consist of entries of given rows. LANES adjacent work-items share a row, so that
// they read and write adjacent entries. See wollemi.core.operations.rows.
#pragma once
#include "simt/bits.hpp"
#include "simt/shared_atomics.hpp"
#include "unified/compared_rows.hpp"

namespace wl {

// Calls visit(i, e) for each entry e of each row i.
template <int LANES, class I, class Begin, class End, class Visit>
WL_DEVICE void each_entry(const item& it, i64 m, Begin begin, End end, Visit visit) {
  using group = lane_group<LANES>;
  const i64 step = it.blocks() * group::per_block;
  for (i64 i = it.block() * group::per_block + group::number(it); i < m; i += step) {
    const I last = end(i);
    for (I e = begin(i) + I(group::lane(it)); e < last; e += I(LANES))
      visit(i, e);
  }
}

// Calls put(e, to) for each entry e that stays, with its new position `to`. The entries of row i
// that stay are stored from target[i] on, in their order.
template <int LANES, class I, class Keep, class Put>
WL_DEVICE void each_kept(const item& it, i64 m, const I* begin, const I* end, const I* target,
                         Keep keep, Put put) {
  using group = lane_group<LANES>;
  const int lane = group::lane(it), first = lane_of(it) - lane;
  const u64 mine = (u64(1) << LANES) - 1, before = (u64(1) << lane) - 1;
  const i64 step = it.blocks() * group::per_block;
  for (i64 base = it.block() * group::per_block; base < m; base += step) {
    const i64 i = base + group::number(it);
    I e = i < m ? begin[i] + I(lane) : I(0), to = i < m ? target[i] : I(0);
    const I last = i < m ? end[i] : I(0);
    for (; ballot(e < last); e += I(LANES)) { // all lanes of a wave take part in each ballot
      const bool kept = e < last && keep(i, e);
      const u64 votes = ballot(kept) >> first & mine;
      if (kept)
        put(e, to + I(ones_in(votes & before)));
      to += I(ones_in(votes));
    }
  }
}

template <int LANES, class T, class I>
WL_DEVICE void put_rows(const item& it, i64 m, const I* begin, const I* end, const I* indices,
                        const T* values, i64 offset, const I* target, I* new_indices,
                        T* new_values) {
  each_entry<LANES, I>(
      it, m, [&](i64 i) { return begin[i]; }, [&](i64 i) { return end[i]; },
      [&](i64 i, I e) {
        const I to = target[i] + (e - begin[i]);
        new_indices[to] = I(indices[e] + offset);
        new_values[to] = values[e];
      });
}

template <int LANES, class T, class I>
WL_DEVICE void take_rows(const item& it, i64 m, const I* rows, const I* indptr, const I* indices,
                         const T* values, const I* target, I* new_indices, T* new_values) {
  each_entry<LANES, I>(
      it, m, [&](i64 i) { return indptr[rows[i]]; }, [&](i64 i) { return indptr[rows[i] + 1]; },
      [&](i64 i, I e) {
        const I to = target[i] + (e - indptr[rows[i]]);
        new_indices[to] = indices[e];
        new_values[to] = values[e];
      });
}

template <int LANES, class I>
WL_DEVICE void number_rows(const item& it, i64 m, const I* begin, const I* end, I* row) {
  each_entry<LANES, I>(
      it, m, [&](i64 i) { return begin[i]; }, [&](i64 i) { return end[i]; },
      [&](i64 i, I e) { row[e] = I(i); });
}

template <int LANES, class T, class I>
WL_DEVICE void scale_rows(const item& it, i64 m, const I* begin, const I* end, const I* indices,
                          const T* values, const T* dense, i64 row_step, i64 column_step,
                          T* result) {
  each_entry<LANES, I>(
      it, m, [&](i64 i) { return begin[i]; }, [&](i64 i) { return end[i]; },
      [&](i64 i, I e) {
        result[e] = values[e] * dense[i * row_step + i64(indices[e]) * column_step];
      });
}

template <int LANES, class T, class I>
WL_DEVICE void drop_zeros_of_rows(const item& it, i64 m, const I* begin, const I* end,
                                  const I* indices, const T* values, const I* target,
                                  I* new_indices, T* new_values) {
  each_kept<LANES>(
      it, m, begin, end, target, [&](i64, I e) { return values[e] != T(0); },
      [&](I e, I to) { new_indices[to] = indices[e], new_values[to] = values[e]; });
}

template <int LANES, class T, class I>
WL_DEVICE void pick_of_rows(const item& it, i64 m, const I* begin, const I* end, const I* indices,
                            const I* numbers, const T* values, const I* target, I* new_indices,
                            T* new_values) {
  each_kept<LANES>(
      it, m, begin, end, target, [&](i64, I e) { return numbers[indices[e]] >= 0; },
      [&](I e, I to) { new_indices[to] = numbers[indices[e]], new_values[to] = values[e]; });
}

template <int LANES, class T, class I>
WL_DEVICE void between_of_rows(const item& it, i64 m, const I* begin, const I* end,
                               const I* indices, i64 first, i64 last, const T* values,
                               const I* target, I* new_indices, T* new_values) {
  each_kept<LANES>(
      it, m, begin, end, target, [&](i64, I e) { return first <= indices[e] && indices[e] < last; },
      [&](I e, I to) { new_indices[to] = I(indices[e] - first), new_values[to] = values[e]; });
}

template <int LANES, class T, class I>
WL_DEVICE void band_of_rows(const item& it, i64 m, const I* begin, const I* end, const I* indices,
                            i64 lower, i64 upper, const T* values, const I* target, I* new_indices,
                            T* new_values) {
  each_kept<LANES>(
      it, m, begin, end, target,
      [&](i64 i, I e) { return lower <= i64(indices[e]) - i && i64(indices[e]) - i <= upper; },
      [&](I e, I to) { new_indices[to] = indices[e], new_values[to] = values[e]; });
}

// Lists the columns of the entries for which a comparison with a number holds. with_comparison
// calls of_row once with all rows, so that its loop contains only one comparison.
template <int LANES, class T, class I>
struct columns_compared {
  using sum = int;
  const item& it;
  const I *begin, *end, *indices;
  const T* values;
  T number;
  const I* target;
  I* new_indices;

  template <class Holds>
  WL_DEVICE sum of_row(i64 m, Holds holds) const {
    each_kept<LANES>(
        it, m, begin, end, target, [&](i64, I e) { return holds(values[e], number); },
        [&](I e, I to) { new_indices[to] = indices[e]; });
    return 0;
  }
};

template <int LANES, class T, class I>
WL_DEVICE void compare_number_rows(const item& it, i64 m, const I* begin, const I* end,
                                   const I* indices, const T* values, T number, i64 comparison,
                                   const I* target, I* new_indices) {
  with_comparison<T>(
      comparison,
      columns_compared<LANES, T, I>{it, begin, end, indices, values, number, target, new_indices},
      m);
}

// a / b of numbers that are not negative. GPUs divide 32-bit numbers in a quarter of the time.
WL_DEVICE i64 quotient(i64 a, i64 b) {
  return (u64(a) | u64(b)) >> 32 ? a / b : i64(u32(a) / u32(b));
}

// Row r of a Kronecker product has the products of the entries of row r / other_rows with the
// entries of row r % other_rows of the other matrix.
template <int LANES, class T, class I>
WL_DEVICE void kron_rows(const item& it, i64 count, const I* begin, const I* end, const I* indices,
                         const T* values, const I* other_begin, const I* other_end,
                         const I* other_indices, const T* other_values, i64 other_rows, i64 width,
                         const I* target, I* new_indices, T* new_values) {
  using group = lane_group<LANES>;
  const i64 step = it.blocks() * group::per_block;
  for (i64 r = it.block() * group::per_block + group::number(it); r < count; r += step) {
    const i64 i = quotient(r, other_rows), k = r - i * other_rows;
    const I from = begin[i], other_from = other_begin[k], to = target[r];
    const I length = other_end[k] - other_from, products = (end[i] - from) * length;
    for (I p = I(group::lane(it)); p < products; p += I(LANES)) {
      const I left = I(quotient(p, length)), e = from + left, f = other_from + p - left * length;
      new_indices[to + p] = I(indices[e] * width + other_indices[f]);
      new_values[to + p] = values[e] * other_values[f];
    }
  }
}

} // namespace wl
