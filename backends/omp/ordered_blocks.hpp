// Threads process blocks of rows in an order in which each block follows the earlier blocks that it
// needs.
//
// Every block belongs to a lane, and the blocks of a lane are processed one after the other. Lanes
// run in parallel, usually one on each thread: before a block, its thread waits until the blocks of
// other lanes that it needs are finished. There is no barrier of all threads.
//
// No lane depends on a thread that the system has not woken: running threads process the lanes of
// absent threads, and a thread that waits for long processes blocks of any lane that are ready. The
// first unfinished block is always ready. A single thread processes all blocks in their order,
// without lanes.
#pragma once

#include <atomic>
#include <limits>
#include <thread>
#include <vector>

#include "omp/crowding.hpp"
#include "omp/parallel.hpp"
#include "omp/waiting.hpp"

namespace wl {

// Blocks lane by lane: lane l has the blocks starts[l], ..., starts[l + 1] - 1. Blocks are ordered
// by their first row. Block b waits for the first needed[w] blocks of lane of[w], waits[b] <= w <
// waits[b + 1].
template <class I>
struct Lanes {
  const I *starts, *begin, *waits, *of, *needed;
  i64 count;
};

// The time (nanoseconds) that a thread waits for another one before it processes a block of that
// thread's lane: if another thread processes a block, its part of x moves between caches.
constexpr i64 kBeforeHelp = 5'000;

template <class I, class Body>
class LaneRun {
public:
  LaneRun(const Lanes<I>& lanes, const Body& body) : lanes_(lanes), body_(body), at_(lanes.count) {}

  // Processes the blocks of a lane, and blocks of lanes without a thread.
  void attend(int own) {
    at_[own].is_attended.store(true, std::memory_order_relaxed);
    Seen seen(lanes_.count, 0);
    bool all_attended = false; // all lanes have a thread; it need not be tested again
    while (!interrupted()) {
      const int lane = all_attended ? own : next_lane(own, seen, all_attended);
      if (done(own, seen) == blocks(own))
        return;
      if (!advance(lane, seen) && (lane == own || !advance(own, seen)))
        wait(own, seen);
    }
  }

private:
  // The numbers of blocks of a lane that were taken and done: in cache lines of their own, because
  // other threads poll the second number.
  struct Place {
    alignas(64) std::atomic<i64> taken{0};
    std::atomic<bool> is_attended{false};
    alignas(64) std::atomic<i64> done{0};
  };

  // The number of blocks of each lane that a thread knows to be finished. A thread that is far
  // behind need not read the number from another core before each block.
  using Seen = std::vector<i64>;

  const Lanes<I> lanes_;
  const Body& body_;
  std::vector<Place> at_;

  i64 blocks(int lane) const { return lanes_.starts[lane + 1] - lanes_.starts[lane]; }

  i64 done(int lane, Seen& seen) const {
    return seen[lane] = at_[lane].done.load(std::memory_order_acquire);
  }

  bool is_ready(i64 block, Seen& seen) const {
    for (i64 w = lanes_.waits[block]; w < lanes_.waits[block + 1]; ++w) {
      const auto lane = static_cast<int>(lanes_.of[w]);
      if (seen[lane] < lanes_.needed[w] && done(lane, seen) < lanes_.needed[w])
        return false;
    }
    return true;
  }

  // Does the next block of a lane if it is ready and no thread works on it.
  bool advance(int lane, Seen& seen) {
    i64 next = done(lane, seen);
    if (next == blocks(lane) || at_[lane].taken.load(std::memory_order_relaxed) != next)
      return false;
    const i64 block = lanes_.starts[lane] + next;
    if (!is_ready(block, seen) ||
        !at_[lane].taken.compare_exchange_strong(next, next + 1, std::memory_order_relaxed))
      return false;
    body_(block);
    at_[lane].done.store(next + 1, std::memory_order_release);
    return true;
  }

  // The lane with the earliest next block, among the thread's own lane and the unattended ones.
  int next_lane(int own, Seen& seen, bool& all_attended) const {
    int found = own;
    i64 first = next_of(own, seen);
    all_attended = true;
    for (int lane = 0; lane < lanes_.count; ++lane)
      if (!at_[lane].is_attended.load(std::memory_order_relaxed)) {
        all_attended = false;
        if (const i64 next = next_of(lane, seen); next < first)
          found = lane, first = next;
      }
    return found;
  }

  i64 next_of(int lane, Seen& seen) const {
    const i64 next = done(lane, seen);
    return next == blocks(lane) ? std::numeric_limits<i64>::max()
                                : static_cast<i64>(lanes_.begin[lanes_.starts[lane] + next]);
  }

  bool help(int own, Seen& seen) {
    for (int lane = 0; lane < lanes_.count; ++lane)
      if (lane != own && advance(lane, seen))
        return true;
    return false;
  }

  // Until the next block of the lane is ready, or another one was done in the meantime.
  void wait(int own, Seen& seen) {
    constexpr int kFirstLooks = 32, kLooks = 16; // before the clock is read
    const auto may_go_on = [&] {
      const i64 next = done(own, seen);
      return next == blocks(own) || (at_[own].taken.load(std::memory_order_relaxed) == next &&
                                     is_ready(lanes_.starts[own] + next, seen));
    };
    for (int look = 0; look < kFirstLooks; ++look, pause())
      if (may_go_on())
        return;
    const i64 began = now_in_ns();
    for (i64 last = began; !interrupted();) {
      for (int look = 0; look < kLooks; ++look, pause())
        if (may_go_on())
          return;
      const i64 now = now_in_ns();
      if (now - last > kPutAside)
        crowding().seen(now);
      last = now;
      if (now - began > kBeforeHelp && help(own, seen))
        return;
      if (crowding().is_on())
        std::this_thread::yield();
    }
  }
};

// Calls body(block) for all blocks, each after the blocks that it needs.
template <class I, class Body>
void for_lanes(const Lanes<I>& lanes, const Body& body) {
  LaneRun<I, Body> run(lanes, body);
  for_parts(static_cast<int>(lanes.count), [&](int lane) { run.attend(lane); });
}

} // namespace wl
