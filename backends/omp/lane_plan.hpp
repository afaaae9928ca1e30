// The schedule of a triangle for several threads: which thread computes which blocks of rows, and
// which other blocks each block waits for.
//
// Rows in their own order are cut into chunks, and chunk c belongs to lane c mod p. If the rows are
// the cells of a grid, a chunk of half a plane needs the same half of the previous plane, which its
// own thread has computed, and one line of the other half: two threads then run one behind the
// other without waiting. The length of chunks is found by trial: each length gives a schedule with
// an estimated time.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "unified/types.hpp"

namespace wl {

// Blocks as lanes.hpp reads them. Block b has the rows begin[b], ..., end[b] - 1, in the order of
// substitution. Without lanes it is better that one thread computes all rows.
template <class I>
struct LanePlan {
  std::vector<I> starts, begin, end, waits, of, needed;
};

namespace lane_plan {

// Nanoseconds for one right-hand side in float64, measured with 7 and 27 points on 64^3 cells
// (benchmarks/results/cholesky-omp-2-threads.md): for a row; for an entry; for starting a block and
// reporting its end; for noticing that another thread has finished a block; for a row of x that
// another thread has computed (eight rows share a cache line); for starting and ending the parallel
// work.
constexpr double kRow = 1.6, kEntry = 0.8, kBlock = 20, kWait = 200, kMoved = 5, kShared = 3000;

// Shorter blocks (in nanoseconds) would spend their time on waiting and on being started.
constexpr double kLeastBlock = 1000;

// The estimated time of a schedule must be below this share of the sequential time, because threads
// that share cores with other processes wait longer.
constexpr double kWorthwhile = 0.8;

// Cells: adjacent rows that are always in one chunk. Estimates are made from cells.
constexpr i64 kCellRows = 32, kCellEntries = 1024, kMostCells = 16384;

constexpr int kMostLanes = 64;

// A triangle by cells, which are numbered in the order of substitution.
struct Cells {
  std::vector<i64> first{0}; // row of each cell, and the number of rows
  std::vector<double> time;
  std::vector<i64> pointers{0};
  std::vector<i32> needs;     // the earlier cells that each needs
  std::vector<i64> distances; // of entries from the diagonal, of some cells

  i64 count() const { return static_cast<i64>(time.size()); }
  i64 rows(i64 c) const { return first[c + 1] - first[c]; }
};

template <class I>
Cells cells_of(const I* indptr, const I* indices, i64 n, bool upper) {
  Cells made;
  const i64 most = std::max(kCellRows, n / kMostCells);
  std::vector<i32> cell_of(static_cast<std::size_t>(n));
  std::vector<i64> seen; // the last cell that needed a cell
  double time = 0;
  i64 entries = 0;
  const auto close = [&](i64 step) {
    made.first.push_back(step);
    made.time.push_back(time);
    made.pointers.push_back(static_cast<i64>(made.needs.size()));
    time = 0, entries = 0;
  };
  for (i64 step = 0; step < n; ++step) {
    const i64 i = upper ? n - 1 - step : step;
    bool follows = false; // it needs the row before, as the next one on a line of a grid
    i64 count = 0;
    for (I q = indptr[i]; q < indptr[i + 1]; ++q) {
      const i64 distance = upper ? indices[q] - i : i - indices[q];
      follows |= distance == 1;
      count += distance > 0;
    }
    const i64 rows = step - made.first.back();
    if (rows >= most || (rows > 0 && entries + count > kCellEntries) ||
        (!follows && 2 * rows >= most))
      close(step);
    const auto cell = static_cast<i32>(made.count());
    cell_of[step] = cell;
    seen.resize(static_cast<std::size_t>(cell) + 1, -1);
    for (I q = indptr[i]; q < indptr[i + 1]; ++q) {
      const i64 distance = upper ? indices[q] - i : i - indices[q];
      if (distance <= 0)
        continue;
      if (cell % 16 == 0)
        made.distances.push_back(distance);
      const i32 needed = cell_of[step - distance];
      if (needed != cell && std::exchange(seen[needed], cell) != cell)
        made.needs.push_back(needed);
    }
    entries += count;
    time += kRow + kEntry * static_cast<double>(count);
  }
  close(n);
  return made;
}

// Chunk c begins with the first cell from row c length / lanes on.
struct Cut {
  int lanes;
  i64 length;
};

// The most frequent distances from the diagonal, and the largest one: they are a plane and a line
// of a grid. Of nearly equal distances only one is returned.
std::vector<i64> lengths_of_pattern(std::vector<i64> distances) {
  constexpr std::size_t kMost = 6;
  if (distances.empty())
    return {};
  std::sort(distances.begin(), distances.end());
  std::vector<std::pair<i64, i64>> counted; // the number of occurrences, and the distance
  for (const i64 d : distances)
    if (counted.empty() || counted.back().second != d)
      counted.emplace_back(1, d);
    else
      ++counted.back().first;
  std::sort(counted.begin(), counted.end(), std::greater<>());
  std::vector<i64> found;
  const auto take = [&](i64 d) {
    const auto near = [&](i64 other) { return 8 * std::abs(d - other) <= other; };
    if (d >= kCellRows && std::none_of(found.begin(), found.end(), near))
      found.push_back(d);
  };
  for (const auto& [often, d] : counted)
    if (found.size() < kMost)
      take(d);
  take(distances.back());
  return found;
}

std::vector<Cut> cuts_of(const Cells& cells, int threads) {
  std::vector<Cut> found;
  const std::vector<i64> lengths = lengths_of_pattern(cells.distances);
  const i64 n = cells.first.back();
  for (int lanes = std::min(threads, kMostLanes); lanes > 1; lanes /= 2) {
    for (const i64 length : lengths)
      found.push_back({lanes, length});
    for (i64 chunk = 2 * kCellRows; chunk * lanes <= n; chunk *= 4)
      found.push_back({lanes, chunk * lanes});
  }
  return found;
}

// The schedule of a cut: blocks of cells in their order, and the blocks that they wait for.
class Schedule {
public:
  Schedule(const Cells& cells, const Cut& cut) : cells_(cells), cut_(cut), lanes_(cut.lanes) {
    make_blocks();
  }

  // The time of all blocks, or infinity if it exceeds `most`.
  double estimate(double most) {
    constexpr double never = std::numeric_limits<double>::infinity();
    std::vector<i64> need(lanes_, 0), waited(static_cast<std::size_t>(lanes_) * lanes_, 0);
    std::vector<double> clock(lanes_, 0);
    std::vector<std::vector<double>> done(lanes_);
    double last = 0;
    for (i64 b = 0; b < count(); ++b) {
      const int own = lane_[b];
      double time = kBlock;
      std::fill(need.begin(), need.end(), 0);
      for (i64 c = first_[b]; c < first_[b + 1]; ++c) {
        time += cells_.time[c];
        for (i64 q = cells_.pointers[c]; q < cells_.pointers[c + 1]; ++q) {
          const i64 other = cells_.needs[q], block = block_of_[other];
          if (lane_[block] == own)
            continue;
          time += kMoved * static_cast<double>(std::min(cells_.rows(c), cells_.rows(other)));
          need[lane_[block]] = std::max(need[lane_[block]], place_[block] + 1);
        }
      }
      double begin = clock[own];
      for (int l = 0; l < lanes_; ++l)
        if (i64& before = waited[static_cast<std::size_t>(own) * lanes_ + l]; need[l] > before) {
          before = need[l];
          of_.push_back(l);
          needed_.push_back(need[l]);
          begin = std::max(begin, done[l][need[l] - 1] + kWait);
        }
      waits_.push_back(static_cast<i64>(of_.size()));
      clock[own] = begin + time;
      done[own].push_back(clock[own]);
      last = std::max(last, clock[own]);
      if (last > most)
        return never;
    }
    return last + kShared;
  }

  template <class I>
  LanePlan<I> plan() const {
    LanePlan<I> made;
    made.starts.push_back(0);
    made.waits.push_back(0);
    for (int l = 0; l < lanes_; ++l) {
      for (i64 b = 0; b < count(); ++b) {
        if (lane_[b] != l)
          continue;
        made.begin.push_back(static_cast<I>(cells_.first[first_[b]]));
        made.end.push_back(static_cast<I>(cells_.first[first_[b + 1]]));
        for (i64 w = waits_[b]; w < waits_[b + 1]; ++w) {
          made.of.push_back(static_cast<I>(of_[w]));
          made.needed.push_back(static_cast<I>(needed_[w]));
        }
        made.waits.push_back(static_cast<I>(made.of.size()));
      }
      made.starts.push_back(static_cast<I>(made.begin.size()));
    }
    return made;
  }

private:
  const Cells& cells_;
  Cut cut_;
  int lanes_;
  std::vector<i64> first_;    // cell of each block, and the number of cells
  std::vector<int> lane_;     // of each block
  std::vector<i64> place_;    // of each block in its lane
  std::vector<i64> block_of_; // of each cell
  std::vector<i64> waits_{0}, of_, needed_;

  i64 count() const { return static_cast<i64>(lane_.size()); }

  void make_blocks() {
    std::vector<i64> length(lanes_, 0);
    i64 before = -1;
    double time = 0;
    for (i64 c = 0; c < cells_.count(); ++c) {
      const i64 chunk = cells_.first[c] * lanes_ / cut_.length;
      if (chunk != before || time >= kLeastBlock) {
        const int lane = static_cast<int>(chunk % lanes_);
        first_.push_back(c);
        lane_.push_back(lane);
        place_.push_back(length[lane]++);
        before = chunk, time = 0;
      }
      time += cells_.time[c];
      block_of_.push_back(count() - 1);
    }
    first_.push_back(cells_.count());
  }
};

} // namespace lane_plan

template <class I>
LanePlan<I> plan_lanes(const I* indptr, const I* indices, i64 n, bool upper, int threads) {
  using namespace lane_plan;
  const double work = kRow * static_cast<double>(n) + kEntry * static_cast<double>(indptr[n]);
  if (threads < 2 || kWorthwhile * work < kShared)
    return {};
  const Cells cells = cells_of(indptr, indices, n, upper);
  double best = 0;
  for (const double time : cells.time)
    best += kWorthwhile * time;
  LanePlan<I> made;
  for (const Cut& cut : cuts_of(cells, threads)) {
    Schedule schedule(cells, cut);
    if (const double time = schedule.estimate(best); time < best) {
      best = time;
      made = schedule.plan<I>();
    }
  }
  return made;
}

} // namespace wl
