// The split of the entries of a CSR pattern for spmm, sddmm and fusedmm.
//
// The parts depend on the pattern alone, so results do not depend on the number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "omp/huge.hpp"
#include "omp/parallel.hpp"

namespace wl {

using u16 = std::uint16_t;

// The cost of a row besides its entries, in entries.
constexpr i64 kPartRowCost = 2;

// The number of entries of a part: 4096 entries take about 20 microseconds at 32 columns; compared
// with that, the cost of starting a part is negligible. Small patterns have shorter parts, so that
// threads have equal work; parts of this size balance two threads as well as two hundred.
constexpr i64 kPartEntries = 4096, kFewestPartEntries = 512;
constexpr i64 kEvenParts = 16, kMostParts = 1024;

inline i64 part_entries(i64 cost) {
  return std::clamp(cost / kEvenParts, kFewestPartEntries, kPartEntries);
}

// Rows [first, last) of a pattern, or with slot >= 0 the entries [begin, end) of the long row
// `first`; their sum goes to that slot.
struct Part {
  i64 first, last, begin, end, slot;
};

struct LongRow {
  i64 row, first_slot, last_slot;
};

// The entries of a row of a part that are in one panel, counted from the part's first entry.
struct Piece {
  i32 begin;
  u16 row, count;
};

struct PatternPlan {
  std::vector<Part> parts;
  std::vector<LongRow> long_rows;
  i64 slots = 0;
  i64 rows = 0, entries = 0;
  // Panels: `width` adjacent columns; 0 where rows are whole. The pieces of panel p of part q are
  // [piece_ptr[q * panels + p], piece_ptr[q * panels + p + 1]), and kPiecesAhead empty ones follow
  // the last.
  i64 width = 0, panels = 1;
  std::vector<Piece> pieces;
  std::vector<i64> piece_ptr;
  // The columns of the pieces' entries in the order of the pieces, counted from their panel's
  // first. A part has as many as it has entries, and they begin where its entries begin.
  std::vector<u16> columns;

  static constexpr i64 kPiecesAhead = 16;

  bool is_of(i64 m, i64 nnz) const { return rows == m && entries == nnz; }
  bool has_panels() const { return width > 0; }
  i64 bytes() const {
    return bytes_of(parts) + bytes_of(long_rows) + bytes_of(pieces) + bytes_of(piece_ptr) +
           bytes_of(columns);
  }

  // Calls body(row, begin, end) for the entries of a part, panel by panel. Segments are too short
  // for hardware to prefetch the next one: ahead(row, entry) may prefetch its first operands.
  template <class I, class Body, class Ahead>
  void for_segments(const Part& part, const I* indptr, Body&& body, Ahead&& ahead) const {
    if (part.slot >= 0) {
      body(part.first, part.begin, part.end);
      return;
    }
    if (!has_panels()) {
      for (i64 row = part.first; row < part.last; ++row)
        body(row, i64(indptr[row]), i64(indptr[row + 1]));
      return;
    }
    const i64 at = (&part - parts.data()) * panels;
    const Piece* const last = pieces.data() + piece_ptr[at + panels];
    for (const Piece* piece = pieces.data() + piece_ptr[at]; piece < last; ++piece) {
      const Piece& later = piece[kPiecesAhead];
      ahead(part.first + later.row, part.begin + later.begin);
      const i64 begin = part.begin + piece->begin;
      body(part.first + piece->row, begin, begin + piece->count);
    }
  }

  // Calls body(row of the part, begin, count, columns, panel's first column) for its pieces.
  template <class Body, class Ahead>
  void for_pieces(const Part& part, Body&& body, Ahead&& ahead) const {
    const i64* const ptr = piece_ptr.data() + (&part - parts.data()) * panels;
    const u16* at = columns.data() + part.begin;
    for (i64 panel = 0; panel < panels; ++panel) {
      const Piece* const last = pieces.data() + ptr[panel + 1];
      for (const Piece* piece = pieces.data() + ptr[panel]; piece < last; ++piece) {
        ahead(part.begin + piece[kPiecesAhead].begin);
        body(i64(piece->row), part.begin + piece->begin, i64(piece->count), at, panel * width);
        at += piece->count;
      }
    }
  }

  // Calls body(part) for each part, on up to `threads` threads; a piece of a long row is a part.
  template <class Body>
  void for_parts(int threads, Body&& body) const {
    for_each_near(static_cast<i64>(parts.size()), threads, [&](i64 i) { body(parts[i]); });
  }
};

// Parts of equal shares of entries, of at least `fewest` where the pattern has enough. Rows longer
// than a part are cut into pieces.
template <class I>
PatternPlan balanced_plan(const I* indptr, i64 m, i64 fewest = 0) {
  PatternPlan plan;
  plan.rows = m;
  plan.entries = indptr[m];
  const i64 cost = plan.entries + kPartRowCost * m;
  const i64 count = std::clamp(cost / std::max(fewest, part_entries(cost)), i64(1), kMostParts);
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

// Parts of equal numbers of rows, for any lengths of rows.
template <class I>
PatternPlan even_plan(const I* indptr, i64 m) {
  PatternPlan plan;
  plan.rows = m;
  plan.entries = indptr[m];
  const i64 cost = plan.entries + kPartRowCost * m;
  const i64 count = std::clamp(cost / part_entries(cost), i64(1), kMostParts);
  for (i64 part = 0; part < count; ++part) {
    const i64 first = m * part / count, last = m * (part + 1) / count;
    if (last > first)
      plan.parts.push_back({first, last, indptr[first], indptr[last], -1});
  }
  return plan;
}

// How often a part uses a row of the other operand that a panel keeps in the cache; the least such
// number; and the number of parts that keeps many threads busy although the parts are shorter. 4096
// x 4096 on one thread of a Zen 4, density 10 %, 128 columns: with 6 uses 6.7 ms, with 12 6.1, with
// 20 6.0.
constexpr i64 kPanelReuse = 16, kLeastPanelReuse = 8, kPanelParts = 32;

inline i64 panel_part_entries(i64 nnz, i64 n) {
  return std::clamp(nnz / kPanelParts, kLeastPanelReuse * n, kPanelReuse * n);
}

// Cuts the rows of a plan into panels of `width` columns; returns false if the columns of some row
// decrease, or if a row is cut already. The pieces of a panel are ordered by length: the end of
// consecutive loops of the same length is predicted (10 %, 32 columns: 2.4 ms instead of 2.9).
template <class I>
bool add_panels(PatternPlan& plan, const I* indptr, const I* indices, i64 n, i64 width,
                bool with_columns) {
  constexpr i64 kMost = 65535; // of a u16
  if (!plan.long_rows.empty() || width > kMost)
    return false;
  const i64 panels = std::max((n + width - 1) / width, i64(1));
  std::vector<std::vector<Piece>> of_panel(panels);
  plan.piece_ptr.assign(1, 0);
  if (with_columns)
    plan.columns.reserve(plan.entries);
  for (const Part& part : plan.parts) {
    if (part.last - part.first > kMost)
      return false;
    for (i64 row = part.first; row < part.last; ++row) {
      const i64 end = indptr[row + 1];
      for (i64 begin = indptr[row], e = begin; begin < end; begin = e) {
        const i64 panel = indices[begin] / width, next = (panel + 1) * width;
        for (++e; e < end && indices[e] < next; ++e)
          if (indices[e] < indices[e - 1])
            return false;
        if (e - begin > kMost || (e < end && indices[e] < indices[e - 1]))
          return false;
        of_panel[panel].push_back({static_cast<i32>(begin - part.begin),
                                   static_cast<u16>(row - part.first),
                                   static_cast<u16>(e - begin)});
      }
    }
    for (i64 panel = 0; panel < panels; ++panel) {
      std::vector<Piece>& found = of_panel[panel];
      std::stable_sort(found.begin(), found.end(),
                       [](const Piece& a, const Piece& b) { return a.count < b.count; });
      if (with_columns)
        for (const Piece& piece : found)
          for (i64 e = part.begin + piece.begin, end = e + piece.count; e < end; ++e)
            plan.columns.push_back(static_cast<u16>(indices[e] - panel * width));
      plan.pieces.insert(plan.pieces.end(), found.begin(), found.end());
      plan.piece_ptr.push_back(static_cast<i64>(plan.pieces.size()));
      found.clear();
    }
  }
  plan.pieces.resize(plan.pieces.size() + PatternPlan::kPiecesAhead, Piece{0, 0, 0});
  plan.width = width;
  plan.panels = panels;
  return true;
}

// Prefetches the cache lines of a row, or of its first part.
template <class T>
inline void prefetch_row(const T* row, i64 count) {
  constexpr i64 kMostBytes = 512;
  for (i64 byte = 0; byte < std::min(count * i64(sizeof(T)), kMostBytes); byte += 64)
    __builtin_prefetch(reinterpret_cast<const char*>(row) + byte);
}

// Asks for the lines of the first 32 elements from `address` on.
template <class T>
inline void prefetch_some(const T* address) {
  for (i64 byte = 0; byte < 32 * i64(sizeof(T)); byte += 64)
    __builtin_prefetch(reinterpret_cast<const char*>(address) + byte);
}

} // namespace wl
