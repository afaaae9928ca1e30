// A stable counting sort on CPU devices: a work-group is one work-item, and has a part of the
// entries and its own counters. The functions are in backends/cpu.
#pragma once
#include "dpcpp/arithmetic.hpp"
#include "cpu/buckets.hpp"
#include "simt/scan.hpp"

static_assert(WL_BLOCK == 1, "this is for work-groups of one");

namespace wl {

template <class I>
WL_DEVICE void count_keys_cpu(const item& it, i64 n, i64 buckets, const I* keys, I* counts) {
  const own_elements own(it, n);
  I* const mine = counts + it.block() * buckets;
  for (i64 bucket = 0; bucket < buckets; ++bucket)
    mine[bucket] = 0;
  count_keys(keys, own.begin, own.end, mine);
}

// One work-item finds where all buckets begin.
template <class I>
WL_DEVICE void find_buckets_cpu(const item& it, i64 buckets, i64 parts, I* counts, I* indptr) {
  if (it.block() == 0)
    find_buckets(buckets, parts, counts, indptr);
}

template <class T, class I>
WL_DEVICE void move_coordinates_cpu(const item& it, i64 n, i64 buckets, const I* row, const I* col,
                                    const T* data, I* counts, I* new_indices, T* new_data) {
  const own_elements own(it, n);
  move_coordinates(own.begin, own.end, row, col, data, counts + it.block() * buckets, new_indices,
                   new_data);
}

template <class T, class I>
WL_DEVICE void move_to_columns_cpu(const item& it, i64 n, i64 m, i64 buckets, const I* indptr,
                                   const I* indices, const T* data, I* counts, I* new_indices,
                                   T* new_data, I* order) {
  const own_elements own(it, n);
  move_to_columns(own.begin, own.end, m, indptr, indices, data, counts + it.block() * buckets,
                  new_indices, new_data, order);
}

} // namespace wl
