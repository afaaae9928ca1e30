// How work is shared by threads, and where they put their parts.
//
// Loops go over parts, not over threads: libgomp may give fewer threads than were asked for, and
// the result depends on the number of parts alone.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>

#include <omp.h>

#include "types.hpp"

namespace wl {

// Below this many elements a parallel region (0.6 microseconds with threads that still spin) costs
// more than it saves.
constexpr i64 kSerialElements = 16384;

// The part [begin, end) of `count` things that is the `part`-th of `parts` equal ones.
struct Share {
  i64 begin, end;
  Share(i64 count, int part, int parts)
      : begin(count / parts * part + count % parts * part / parts),
        end(count / parts * (part + 1) + count % parts * (part + 1) / parts) {}
};

// Room for small arrays on the stack and for others on the heap.
template <class S>
class Scratch {
public:
  explicit Scratch(std::size_t count) {
    if (count > kSmall)
      large_ = std::make_unique<S[]>(count);
    std::fill_n(data(), count, S{});
  }
  S* data() { return large_ ? large_.get() : reinterpret_cast<S*>(small_); }

private:
  static constexpr std::size_t kSmall = 4096 / sizeof(S);
  alignas(64) std::byte small_[kSmall * sizeof(S)];
  std::unique_ptr<S[]> large_;
};

// Calls body(i) for each i < count, on up to `threads` threads. Each begins with neighbours of its
// own, the same ones in every call, which it may still have in its cache; who has done his takes
// from the others, so that nobody waits for one that was stopped.
template <class Body>
void for_each_near(i64 count, int threads, Body&& body) {
  const int queues = static_cast<int>(std::min<i64>(count, threads));
  if (queues < 2) {
    for (i64 i = 0; i < count; ++i)
      body(i);
    return;
  }
  struct alignas(64) Queue {
    std::atomic<i64> next;
    i64 end;
  };
  const std::unique_ptr<Queue[]> all = std::make_unique<Queue[]>(queues);
  for (int q = 0; q < queues; ++q) {
    const Share share(count, q, queues);
    all[q].next.store(share.begin, std::memory_order_relaxed);
    all[q].end = share.end;
  }
#pragma omp parallel num_threads(queues)
  {
    const int own = omp_get_thread_num();
    for (int turn = 0; turn < queues; ++turn) {
      Queue& queue = all[(own + turn) % queues];
      for (i64 i; (i = queue.next.fetch_add(1, std::memory_order_relaxed)) < queue.end;)
        body(i);
    }
  }
}

} // namespace wl
