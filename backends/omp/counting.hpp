// A stable sort by counting: what turns coordinates into rows, and rows into columns.
#pragma once

#include "huge.hpp"
#include "parallel.hpp"

namespace wl {

// How many counters a thread may have for each entry that it sorts; more cost more than they save.
constexpr i64 kCountersPerEntry = 4;

// Shares of entries that threads sort side by side.
inline int sorting_parts(i64 entries, i64 buckets, int threads) {
  if (entries < kSerialElements)
    return 1;
  return buckets * threads > kCountersPerEntry * entries ? 1 : threads;
}

// Sorts entries 0 ... entries - 1 into buckets, those of one bucket in their old order.
// `visit(begin, end, body)` calls body(entry, bucket of e) for e in [begin, end), where `entry` is
// whatever tells place(entry, position) what goes there; it is called once for each entry. Bucket b
// begins at pointers[b], of which there are buckets + 1.
template <class I, class Visit, class Place>
void counting_sort(i64 entries, i64 buckets, int threads, I* pointers, Visit&& visit,
                   Place&& place) {
  const int parts = sorting_parts(entries, buckets, threads);
  const Huge<I> counters(static_cast<std::size_t>(parts) * buckets);
  I* const counts = counters.data();
  for_parts(parts, [&](int part) {
    I* const mine = counts + part * buckets;
    std::fill_n(mine, buckets, I(0));
    const Share share(entries, part, parts);
    in_pieces(share.begin, share.end, kPieceOfWork, [&](i64 begin, i64 end) {
      visit(begin, end, [=](auto&&, i64 bucket) { ++mine[bucket]; });
    });
  });
  I before = 0;
  for (i64 bucket = 0; bucket < buckets; ++bucket) {
    pointers[bucket] = before;
    for (int part = 0; part < parts; ++part) {
      I& count = counts[part * buckets + bucket];
      before += std::exchange(count, before);
    }
  }
  pointers[buckets] = before;
  for_parts(parts, [&](int part) {
    I* const mine = counts + part * buckets;
    const Share share(entries, part, parts);
    in_pieces(share.begin, share.end, kPieceOfWork, [&](i64 begin, i64 end) {
      visit(begin, end,
            [&](auto&& entry, i64 bucket) { place(entry, static_cast<i64>(mine[bucket]++)); });
    });
  });
}

// Calls body(e, row) for entries [begin, end) of compressed rows.
template <class I, class Body>
void for_entries(const I* indptr, i64 m, i64 begin, i64 end, Body&& body) {
  i64 row = std::upper_bound(indptr, indptr + m + 1, static_cast<I>(begin)) - indptr - 1;
  for (i64 e = begin; e < end; ++row) {
    const i64 row_end = std::min<i64>(indptr[row + 1], end);
    for (; e < row_end; ++e)
      body(e, row);
  }
}

} // namespace wl
