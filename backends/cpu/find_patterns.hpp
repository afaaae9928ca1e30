// Finds the runs of rows of a CSR matrix that repeat the same column offsets (column - row);
// patterns.hpp computes their product. New values of the matrix need no new search. Plain C++ of
// the host, for every backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace wl {

// The least number of rows per run on average. 7-point stencils on lines of 16 points (5.3 rows per
// run) take 0.70 of the CSR kernel's time, on lines of 100 points 0.66, and on lines of 8 points
// (2.7) about 0.86.
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

// Appends to `starts` the rows of [begin, end) that do not repeat the previous row, shifted by one
// column. Stops after `most` of them.
//
// Adjacent rows of one length are one piece of the entries, which is compared with the entries one
// row earlier: this fills vector registers, which rows of seven entries would not.
template <class I>
void find_run_starts(I begin, I end, const I* indptr, const I* indices, std::size_t most,
                     std::vector<I>& starts) {
  constexpr I kTogether = 64;
  I row = begin;
  if (row == 0 && row < end)
    starts.push_back(row++);
  while (row < end && starts.size() <= most) {
    const I length = indptr[row] - indptr[row - 1];
    I alike = row;
    while (alike < end && indptr[alike + 1] - indptr[alike] == length)
      ++alike;
    if (length > 0)
      for (I e = indptr[row]; e < indptr[alike] && starts.size() <= most;) {
        const I count = indptr[alike] - e < kTogether ? indptr[alike] - e : kTogether;
        const I* const columns = indices + e;
        I moved = 0;
        for (I i = 0; i < count; ++i)
          moved |= columns[i] ^ (columns[i - length] + 1);
        if (moved == 0) {
          e += count;
          continue;
        }
        I i = 0;
        while (columns[i] == columns[i - length] + 1)
          ++i;
        const I start = row + (e + i - indptr[row]) / length;
        starts.push_back(start);
        e = indptr[start + 1];
      }
    if (alike < end)
      starts.push_back(alike);
    row = alike + 1;
  }
}

// Calls body(part) for each part, one after the other.
struct OnePartAfterTheOther {
  template <class Body>
  void operator()(int parts, const Body& body) const {
    for (int part = 0; part < parts; ++part)
      body(part);
  }
};

// The patterns of a CSR matrix, or false if they would not reduce the time: runs are short, or
// there are many patterns. Runs are searched for in the first rows before all rows are read, so
// that a matrix without such runs costs a few thousand rows. `loop` calls a body for each of
// `parts` parts of the rows; the patterns depend neither on `loop` nor on `parts`.
template <class I, class Loop = OnePartAfterTheOther>
bool pack_patterns(I m, const I* indptr, const I* indices, RowPatterns<I>& out, int parts = 1,
                   const Loop& loop = {}) {
  constexpr std::int64_t kRunsBeforeGivingUp = 1024;
  const I few = kRunsBeforeGivingUp * kMinRowsPerRun, first = m < few ? m : few;
  out = RowPatterns<I>();
  std::unordered_multimap<std::uint64_t, std::int32_t> known;
  std::vector<std::int32_t> next; // the pattern that followed each one the last time
  std::int64_t runs = 0;

  // A run that begins at `row`; false where there are too many runs before it.
  const auto begin_run = [&](I row) {
    if (++runs > kRunsBeforeGivingUp && runs * kMinRowsPerRun > row)
      return false;
    if (row > 0)
      out.run_end.push_back(row);
    const I* const columns = indices + indptr[row];
    const I length = indptr[row + 1] - indptr[row];
    const auto repeats = [&](std::int32_t pattern) {
      const I* offsets = out.offsets.data() + out.pattern_ptr[pattern];
      bool same = out.pattern_ptr[pattern + 1] - out.pattern_ptr[pattern] == length;
      for (I e = 0; same && e < length; ++e)
        same = columns[e] - row == offsets[e];
      return same;
    };
    // The lines of a grid repeat the order of their patterns, so that most need no hash.
    const std::int32_t before = out.run_pattern.empty() ? -1 : out.run_pattern.back();
    std::int32_t id = before < 0 ? -1 : next[before];
    std::uint64_t hash = 14695981039346656037u; // FNV-1a
    if (id < 0 || !repeats(id)) {
      id = -1;
      for (I e = 0; e < length; ++e)
        hash = (hash ^ static_cast<std::uint64_t>(columns[e] - row)) * 1099511628211u;
      const auto range = known.equal_range(hash);
      for (auto it = range.first; it != range.second && id < 0; ++it)
        if (repeats(it->second))
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
      next.push_back(-1);
    }
    if (before >= 0)
      next[before] = id;
    out.run_pattern.push_back(id);
    return true;
  };
  const auto begin_runs = [&](const std::vector<I>& starts) {
    for (const I row : starts)
      if (!begin_run(row))
        return false;
    return true;
  };

  std::vector<std::vector<I>> starts(1);
  find_run_starts(I(0), first, indptr, indices, kRunsBeforeGivingUp, starts[0]);
  // More runs are refused below, after a hash of each: 20 of 24 us for a thousand rows.
  const auto most_runs = first < m ? kRunsBeforeGivingUp : m / kMinRowsPerRun;
  if (static_cast<std::int64_t>(starts[0].size()) > most_runs || !begin_runs(starts[0]))
    return false;
  if (first < m) {
    const I rows = (m - first) / parts;
    const std::size_t most = static_cast<std::size_t>(m) / kMinRowsPerRun + kRunsBeforeGivingUp;
    starts.assign(parts, {});
    loop(parts, [&](int part) {
      const I begin = first + rows * part, end = part + 1 < parts ? begin + rows : m;
      find_run_starts(begin, end, indptr, indices, most, starts[part]);
    });
    for (const auto& found : starts)
      if (!begin_runs(found))
        return false;
  }
  if (m > 0)
    out.run_end.push_back(m);
  return runs * kMinRowsPerRun <= m;
}

} // namespace wl
