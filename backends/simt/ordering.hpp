// Orders of entries: a stable radix sort, with one launch that counts and one that moves for each
// digit, and arrays derived from an order. Each work-item processes a part of the entries.
#pragma once
#include "simt/scan.hpp"

namespace wl {

// The digit of a key: one of `digits` values, a power of two.
template <class I>
WL_DEVICE i64 digit_of(const I* keys, i64 entry, i64 shift, i64 digits) {
  return (i64(keys[entry]) >> shift) & (digits - 1);
}

// counts[d * parts + p] = the number of entries of part p with digit d. If `order` is null, the
// entries are in their own order.
template <class I>
WL_DEVICE void radix_count(const item& it, i64 n, i64 parts, i64 shift, i64 digits, const I* keys,
                           const I* order, I* counts) {
  const own_elements own(it, parts);
  for (i64 p = own.begin; p < own.end; p += own.step) {
    for (i64 d = 0; d < digits; ++d)
      counts[d * parts + p] = 0;
    for (i64 i = part_begin(n, p, parts); i < part_begin(n, p + 1, parts); ++i)
      ++counts[digit_of(keys, order ? i64(order[i]) : i, shift, digits) * parts + p];
  }
}

// Moves the entries to the positions that the counts before them determine; equal digits keep their
// order.
template <class I>
WL_DEVICE void radix_move(const item& it, i64 n, i64 parts, i64 shift, i64 digits, const I* keys,
                          const I* order, I* places, I* moved) {
  const own_elements own(it, parts);
  for (i64 p = own.begin; p < own.end; p += own.step)
    for (i64 i = part_begin(n, p, parts); i < part_begin(n, p + 1, parts); ++i) {
      const i64 entry = order ? i64(order[i]) : i;
      moved[places[digit_of(keys, entry, shift, digits) * parts + p]++] = I(entry);
    }
}

// indptr[b] = the number of keys smaller than b, for entries in the order of their keys.
template <class I>
WL_DEVICE void ordered_bounds(const item& it, i64 n, i64 buckets, const I* keys, const I* order,
                              I* indptr) {
  const own_elements own(it, buckets + 1);
  for (i64 b = own.begin; b < own.end; b += own.step) {
    i64 low = 0, high = n;
    while (low < high) {
      const i64 middle = (low + high) / 2;
      if (i64(keys[order[middle]]) < b)
        low = middle + 1;
      else
        high = middle;
    }
    indptr[b] = I(low);
  }
}

// row[e] = the row of entry e.
template <class I>
WL_DEVICE void entry_rows(const item& it, i64 m, const I* indptr, I* row) {
  const own_elements own(it, m);
  for (i64 i = own.begin; i < own.end; i += own.step)
    for (I e = indptr[i]; e < indptr[i + 1]; ++e)
      row[e] = I(i);
}

// The number of distinct positions in each sorted row.
template <class I>
WL_DEVICE void count_places(const item& it, i64 m, const I* indptr, const I* indices, I* lengths) {
  const own_elements own(it, m);
  for (i64 i = own.begin; i < own.end; i += own.step) {
    I count = 0;
    for (I e = indptr[i]; e < indptr[i + 1]; ++e)
      count += e == indptr[i] || indices[e] != indices[e - 1];
    lengths[i] = count;
  }
}

// Entries in another order.
template <class T, class I>
WL_DEVICE void reorder_entries(const item& it, i64 n, const I* order, const I* indices,
                               const T* data, I* new_indices, T* new_data) {
  const own_elements own(it, n);
  for (i64 i = own.begin; i < own.end; i += own.step) {
    new_indices[i] = indices[order[i]];
    new_data[i] = data[order[i]];
  }
}

// Adds up entries with the same position in sorted rows, in their order.
template <class T, class I>
WL_DEVICE void merge_places(const item& it, i64 m, const I* indptr, const I* indices, const T* data,
                            const I* target, I* new_indices, T* new_data) {
  const own_elements own(it, m);
  for (i64 i = own.begin; i < own.end; i += own.step) {
    i64 to = i64(target[i]) - 1;
    for (I e = indptr[i]; e < indptr[i + 1]; ++e) {
      if (e == indptr[i] || indices[e] != indices[e - 1]) {
        new_indices[++to] = indices[e];
        new_data[to] = data[e];
      } else {
        new_data[to] += data[e];
      }
    }
  }
}

} // namespace wl
