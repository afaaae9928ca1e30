// The split of the entries of a CSR matrix over threads.
#pragma once

#include "cpu/csr.hpp"

#include <algorithm>
#include <vector>

namespace wl {

// The cost of a row besides its entries, in entries: its indptr, its y and the end of its loop.
constexpr i64 kRowCost = 2;

// A longer row may be shared by several threads; a shorter one unbalances them by less than a
// microsecond.
constexpr i64 kCutRow = 4096;

// Entries of a row on average up to which rows are added up in order.
constexpr i64 kShortRow = 8;

// Whether rows are added up in the order of their entries: they are short on average, and none is
// so long that the latency of its additions would dominate. This is a property of the whole matrix,
// so that a result does not depend on which thread computes which rows.
template <class I>
bool has_short_rows(const I* indptr, I m) {
  if (indptr[m] - indptr[0] > kShortRow * i64(m))
    return false;
  I longest = 0;
  for (I row = 0; row < m; ++row)
    longest = std::max<I>(longest, indptr[row + 1] - indptr[row]);
  return longest <= 4 * kShortRow;
}

// parts + 1 cuts that give each part an equal share of entries and rows. Only rows longer than
// kCutRow are cut inside. Costs a binary search per cut, so it needs no plan.
template <class I>
std::vector<row_cut> balanced_cuts(const I* indptr, I m, int parts) {
  const auto cost_before = [=](i64 row) { return indptr[row] + kRowCost * row; };
  std::vector<row_cut> cuts(parts + 1);
  cuts[0] = {0, indptr[0]};
  cuts[parts] = {m, indptr[m]};
  const i64 first = cost_before(0), total = cost_before(m) - first;
  for (int part = 1; part < parts; ++part) {
    const i64 target = first + total / parts * part + total % parts * part / parts;
    i64 row = cuts[part - 1].row, above = m;
    while (row < above) {
      const i64 middle = row + (above - row) / 2;
      if (cost_before(middle + 1) <= target)
        row = middle + 1;
      else
        above = middle;
    }
    i64 entry = indptr[row];
    if (row < m && indptr[row + 1] - entry > kCutRow)
      entry = std::min<i64>(entry + (target - cost_before(row)), indptr[row + 1]);
    cuts[part] = {row, std::max(entry, cuts[part - 1].entry)};
  }
  return cuts;
}

// Row boundaries (parts + 1 of them) for kernels that never cut a row.
template <class I>
std::vector<I> balanced_rows(const I* indptr, I m, int parts) {
  std::vector<I> rows;
  for (const row_cut& cut : balanced_cuts(indptr, m, parts))
    rows.push_back(static_cast<I>(cut.row));
  return rows;
}

} // namespace wl
