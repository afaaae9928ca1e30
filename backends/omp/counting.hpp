// A stable sort by counting, on several threads; backends/cpu has the part of one thread.
#pragma once

#include "cpu/buckets.hpp"
#include "omp/huge.hpp"
#include "omp/parallel.hpp"

namespace wl {

// The limit of a thread's counters per entry that it sorts; more counters cost more than they save.
constexpr i64 kCountersPerEntry = 4;

// Shares of entries that threads sort in parallel.
inline int sorting_parts(i64 entries, i64 buckets, int threads) {
  if (entries < kSerialElements)
    return 1;
  return buckets * threads > kCountersPerEntry * entries ? 1 : threads;
}

// Sorts entries by their keys, equal ones in their old order. Bucket b begins at pointers[b], for 0
// <= b <= buckets; move(begin, end, positions) moves entries to the next free position of each
// bucket in `positions`.
template <class I, class Move>
void counting_sort(i64 entries, i64 buckets, int threads, const I* keys, I* pointers, Move&& move) {
  const int parts = sorting_parts(entries, buckets, threads);
  const Huge<I> counters(static_cast<std::size_t>(parts) * buckets);
  I* const counts = counters.data();
  for_parts(parts, [&](int part) {
    I* const mine = counts + part * buckets;
    std::fill_n(mine, buckets, I(0));
    const Share share(entries, part, parts);
    in_pieces(share.begin, share.end, kPieceOfWork,
              [&](i64 begin, i64 end) { count_keys(keys, begin, end, mine); });
  });
  find_buckets(buckets, parts, counts, pointers);
  for_parts(parts, [&](int part) {
    const Share share(entries, part, parts);
    in_pieces(share.begin, share.end, kPieceOfWork,
              [&](i64 begin, i64 end) { move(begin, end, counts + part * buckets); });
  });
}

} // namespace wl
