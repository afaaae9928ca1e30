// Finds the runs of rows of a CSR matrix that repeat the same column offsets (column - row); their
// product is in patterns.hpp. New values cost nothing. Plain C++ of the host, for every backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace wl {

// Rows a run must have on average. 7-point stencils on lines of 16 points (5.3 rows a run) take
// 0.70 of the CSR kernel's time, and on lines of 100 points 0.66; lines of 8 points (2.7) about
// 0.86.
constexpr std::int64_t kMinRowsPerRun = 4;

// The table of offsets must stay in half of a 32 KB level-1 cache.
constexpr std::size_t kMaxOffsets = 2048;

// Rows [run_end[q - 1], run_end[q]) have columns row + offsets[pattern_ptr[id] : pattern_ptr[id +
// 1]] where id = run_pattern[q].
template <class I>
struct RowPatterns {
  std::vector<I> run_end;
  std::vector<std::int32_t> run_pattern;
  std::vector<std::int32_t> pattern_ptr{0};
  std::vector<I> offsets;
};

// The patterns of a CSR matrix, or false where they would not pay: runs are short, or patterns are
// many. It gives up as soon as it knows, so that a matrix with no structure costs a few thousand
// rows.
template <class I>
bool pack_patterns(I m, const I* indptr, const I* indices, RowPatterns<I>& out) {
  constexpr std::size_t kRunsBeforeGivingUp = 1024;
  out = RowPatterns<I>();
  std::unordered_multimap<std::uint64_t, std::int32_t> known;
  for (I row = 0; row < m; ++row) {
    const I* columns = indices + indptr[row];
    const I length = indptr[row + 1] - indptr[row];
    if (row > 0 && length == indptr[row] - indptr[row - 1]) {
      I moved = 0;
      for (I e = 0; e < length; ++e)
        moved += columns[e] != columns[e - length] + 1;
      if (moved == 0) {
        out.run_end.back() = row + 1;
        continue;
      }
    }
    const std::int64_t runs = out.run_end.size() + 1;
    if (runs > static_cast<std::int64_t>(kRunsBeforeGivingUp) && runs * kMinRowsPerRun > row)
      return false;

    std::uint64_t hash = 14695981039346656037u; // FNV-1a
    for (I e = 0; e < length; ++e)
      hash = (hash ^ static_cast<std::uint64_t>(columns[e] - row)) * 1099511628211u;
    std::int32_t id = -1;
    const auto range = known.equal_range(hash);
    for (auto it = range.first; it != range.second && id < 0; ++it) {
      const I* offsets = out.offsets.data() + out.pattern_ptr[it->second];
      bool same = out.pattern_ptr[it->second + 1] - out.pattern_ptr[it->second] == length;
      for (I e = 0; same && e < length; ++e)
        same = columns[e] - row == offsets[e];
      if (same)
        id = it->second;
    }
    if (id < 0) {
      if (out.offsets.size() + length > kMaxOffsets)
        return false;
      id = static_cast<std::int32_t>(out.pattern_ptr.size()) - 1;
      known.emplace(hash, id);
      for (I e = 0; e < length; ++e)
        out.offsets.push_back(columns[e] - row);
      out.pattern_ptr.push_back(static_cast<std::int32_t>(out.offsets.size()));
    }
    out.run_end.push_back(row + 1);
    out.run_pattern.push_back(id);
  }
  return static_cast<std::int64_t>(out.run_end.size()) * kMinRowsPerRun <= m;
}

} // namespace wl
