// How the entries of a CSR pattern are dealt out to spmm, sddmm and fusedmm.
//
// The parts depend on the pattern alone, so results do not depend on the number of threads.
#pragma once

#include <algorithm>
#include <vector>

#include "types.hpp"

namespace wl {

// What a row costs besides its entries, in entries.
constexpr i64 kPartRowCost = 2;

// A part is worth a parallel loop's turn from here on (about 20 microseconds at 32 columns), and no
// pattern needs more parts than this for two or for two hundred threads to be even.
constexpr i64 kPartEntries = 4096;
constexpr i64 kMostParts = 1024;

// Rows [first, last) of a pattern, or with slot >= 0 the entries [begin, end) of the long row
// `first`, whose sum goes to that slot.
struct Part {
  i64 first, last, begin, end, slot;
};

struct LongRow {
  i64 row, first_slot, last_slot;
};

struct PatternPlan {
  std::vector<Part> parts;
  std::vector<LongRow> long_rows;
  i64 slots = 0;
  i64 rows = 0, entries = 0;
  // Panels of neighbouring columns: entry offsets within the rows, [panel][row], one panel more
  // than there are; empty where all columns are one panel.
  i64 panels = 1;
  std::vector<i32> offsets;

  bool is_of(i64 m, i64 nnz) const { return rows == m && entries == nnz; }

  // Calls body(row, begin, end, panel) for the entries of a part, panel by panel. Pieces of rows
  // are too short for hardware to foresee the next one: ahead(entry) may ask for what it begins
  // with.
  template <class I, class Body, class Ahead>
  void for_segments(const Part& part, const I* indptr, Body&& body, Ahead&& ahead) const {
    if (part.slot >= 0) {
      body(part.first, part.begin, part.end, i64(0));
      return;
    }
    if (panels == 1) {
      for (i64 row = part.first; row < part.last; ++row)
        body(row, i64(indptr[row]), i64(indptr[row + 1]), i64(0));
      return;
    }
    constexpr i64 kRowsAhead = 8;
    for (i64 panel = 0; panel < panels; ++panel) {
      const i32 *from = offsets.data() + panel * rows, *to = from + rows;
      for (i64 row = part.first; row < part.last; ++row) {
        const i64 next = std::min(row + kRowsAhead, part.last - 1);
        ahead(indptr[next] + from[next]);
        body(row, indptr[row] + from[row], indptr[row] + to[row], panel);
      }
    }
  }

  // Calls body(first, last) for each part, on up to `threads` threads; a piece of a long row is a
  // part.
  template <class Body>
  void for_parts(int threads, Body&& body) const {
    const i64 count = static_cast<i64>(parts.size());
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (threads > 1 && count > 1)
    for (i64 i = 0; i < count; ++i)
      body(parts[i]);
  }
};

// Parts of equal shares of entries, of at least `fewest` if there are so many. Rows longer than a
// part are cut into pieces.
template <class I>
PatternPlan balanced_plan(const I* indptr, i64 m, i64 fewest = kPartEntries) {
  PatternPlan plan;
  plan.rows = m;
  plan.entries = indptr[m];
  const i64 cost = plan.entries + kPartRowCost * m;
  const i64 count = std::clamp(cost / fewest, i64(1), kMostParts);
  const i64 target = std::max((cost + count - 1) / count, i64(1));
  i64 first = 0, held = 0;
  const auto close = [&](i64 last) {
    if (last > first)
      plan.parts.push_back({first, last, indptr[first], indptr[last], -1});
    first = last;
    held = 0;
  };
  for (i64 row = 0; row < m; ++row) {
    const i64 begin = indptr[row], length = indptr[row + 1] - begin;
    if (length > 2 * target) {
      close(row);
      const i64 pieces = (length + target - 1) / target;
      plan.long_rows.push_back({row, plan.slots, plan.slots + pieces});
      for (i64 piece = 0; piece < pieces; ++piece)
        plan.parts.push_back({row, row + 1, begin + length * piece / pieces,
                              begin + length * (piece + 1) / pieces, plan.slots++});
      first = row + 1;
      continue;
    }
    held += length + kPartRowCost;
    if (held >= target)
      close(row + 1);
  }
  close(m);
  return plan;
}

// Parts of equal numbers of rows, whatever is in them.
template <class I>
PatternPlan even_plan(const I* indptr, i64 m) {
  PatternPlan plan;
  plan.rows = m;
  plan.entries = indptr[m];
  const i64 count =
      std::clamp((plan.entries + kPartRowCost * m) / kPartEntries, i64(1), kMostParts);
  for (i64 part = 0; part < count; ++part) {
    const i64 first = m * part / count, last = m * (part + 1) / count;
    if (last > first)
      plan.parts.push_back({first, last, indptr[first], indptr[last], -1});
  }
  return plan;
}

// How often a part uses a row of the other operand that a panel keeps in cache. Below, panels cost
// what they save: 4096 x 4096, 10 %, 128 columns, one thread: once 8.5 ms, 12 times 6.4, without
// panels 7.3.
constexpr i64 kPanelReuse = 12;

// Cuts the rows of a plan into panels of `width` columns; says no if the columns of some row fall,
// or if a row is cut already.
template <class I>
bool add_panels(PatternPlan& plan, const I* indptr, const I* indices, i64 n, i64 width) {
  if (!plan.long_rows.empty())
    return false;
  const i64 m = plan.rows, panels = std::max((n + width - 1) / width, i64(1));
  plan.offsets.assign((panels + 1) * m, 0);
  for (i64 row = 0; row < m; ++row) {
    i64 panel = 0;
    for (i64 e = indptr[row]; e < indptr[row + 1]; ++e) {
      if (e > indptr[row] && indices[e] < indices[e - 1])
        return plan.offsets.clear(), false;
      for (; indices[e] >= (panel + 1) * width; ++panel)
        plan.offsets[(panel + 1) * m + row] = static_cast<i32>(e - indptr[row]);
    }
    for (; panel < panels; ++panel)
      plan.offsets[(panel + 1) * m + row] = static_cast<i32>(indptr[row + 1] - indptr[row]);
  }
  plan.panels = panels;
  return true;
}

// Asks for the lines of the first 32 elements from `address` on.
template <class T>
inline void prefetch_some(const T* address) {
  for (i64 byte = 0; byte < 32 * i64(sizeof(T)); byte += 64)
    __builtin_prefetch(reinterpret_cast<const char*>(address) + byte);
}

} // namespace wl
