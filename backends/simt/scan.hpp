// Exclusive prefix sums in three launches: the sum of each part, the prefix of each part, and the
// prefix of each element. See wollemi.core.operations.scan.
#pragma once
#include "simt/block_scan.hpp"

namespace wl {

WL_DEVICE i64 part_begin(i64 m, i64 part, i64 parts) {
  return m / parts * part + (part < m % parts ? part : m % parts);
}

// The elements of a work-item. On GPUs adjacent work-items read adjacent elements. On CPUs, where a
// work-group is one work-item, it has a contiguous share, so that no two cores write to one cache
// line.
struct own_elements {
  static constexpr bool is_alone = WL_BLOCK == 1;
  i64 begin, end, step;
  WL_DEVICE own_elements(const item& it, i64 n)
      : begin(is_alone ? part_begin(n, it.block(), it.blocks())
                       : it.block() * WL_BLOCK + it.thread()),
        end(is_alone ? part_begin(n, it.block() + 1, it.blocks()) : n),
        step(is_alone ? 1 : it.blocks() * WL_BLOCK) {}
};

// totals[p] = the sum of part p.
template <class I>
WL_DEVICE void scan_totals(const item& it, i64 m, i64 parts, const I* lengths, I* totals) {
  const own_elements own(it, parts);
  for (i64 p = own.begin; p < own.end; p += own.step) {
    I sum(0);
    for (i64 i = part_begin(m, p, parts); i < part_begin(m, p + 1, parts); ++i)
      sum += lengths[i];
    totals[p] = sum;
  }
}

// totals[p] = the sum of the parts before p. One block.
template <class I>
WL_DEVICE void scan_join(const item& it, i64 parts, I* totals) {
  if (it.block() != 0)
    return;
  WL_SHARED(I, sums, WL_BLOCK);
  const i64 begin = part_begin(parts, it.thread(), WL_BLOCK),
            end = part_begin(parts, it.thread() + 1, WL_BLOCK);
  I mine(0);
  for (i64 p = begin; p < end; ++p)
    mine += totals[p];
  sums[it.thread()] = mine;
  it.barrier();
  if (it.thread() == 0) {
    I before(0);
    for (int t = 0; t < WL_BLOCK; ++t) {
      const I of_thread = sums[t];
      sums[t] = before;
      before += of_thread;
    }
  }
  it.barrier();
  I before = sums[it.thread()];
  for (i64 p = begin; p < end; ++p) {
    const I of_part = totals[p];
    totals[p] = before;
    before += of_part;
  }
}

// indptr[i] = the sum of the elements before i.
template <class I>
WL_DEVICE void scan_fill(const item& it, i64 m, i64 parts, const I* lengths, const I* totals,
                         I* indptr) {
  const own_elements own(it, parts);
  for (i64 p = own.begin; p < own.end; p += own.step) {
    I sum = totals[p];
    for (i64 i = part_begin(m, p, parts); i < part_begin(m, p + 1, parts); ++i) {
      indptr[i] = sum;
      sum += lengths[i];
    }
    if (p + 1 == parts)
      indptr[m] = sum;
  }
}

// The same with one part per block and coalesced loads, in two launches: each block adds up the
// parts before its own.

// Numbers that a work-item adds up in one step of its block.
constexpr int kScanned = 8;

template <class I>
WL_DEVICE void scan_block_totals(const item& it, i64 m, const I* lengths, I* totals) {
  const i64 end = part_begin(m, it.block() + 1, it.blocks());
  I sum(0);
  for (i64 i = part_begin(m, it.block(), it.blocks()) + it.thread(); i < end; i += WL_BLOCK)
    sum += lengths[i];
  sum = sum_of_block(it, sum);
  if (it.thread() == 0)
    totals[it.block()] = sum;
}

template <class I>
WL_DEVICE void scan_block_fill(const item& it, i64 m, const I* lengths, const I* totals,
                               I* indptr) {
  const i64 begin = part_begin(m, it.block(), it.blocks());
  const i64 end = part_begin(m, it.block() + 1, it.blocks());
  I of_parts(0);
  for (i64 p = it.thread(); p < it.block(); p += WL_BLOCK)
    of_parts += totals[p];
  I before = sum_of_block(it, of_parts);
  for (i64 step = begin; step < end; step += kScanned * WL_BLOCK) {
    const i64 first = step + it.thread() * kScanned;
    I length[kScanned], mine(0);
#pragma unroll
    for (int j = 0; j < kScanned; ++j) {
      length[j] = first + j < end ? lengths[first + j] : I(0);
      mine += length[j];
    }
    const partial_sum_of<I> sums = sums_before(it, mine);
    I sum = before + sums.before;
#pragma unroll
    for (int j = 0; j < kScanned; ++j) {
      if (first + j < end)
        indptr[first + j] = sum;
      sum += length[j];
    }
    before += sums.all;
  }
  if (it.thread() == 0 && end == m)
    indptr[m] = before;
}

} // namespace wl
