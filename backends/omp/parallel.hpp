// How work is shared by threads, and where they put their parts.
//
// Loops go over parts, not over threads: the result depends on the number of parts alone, whoever
// does them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>

#include "team.hpp"
#include "types.hpp"

namespace wl {

// Below this many elements sharing a loop (half a microsecond with threads that wait actively)
// costs more than it saves.
constexpr i64 kSerialElements = 16384;

// The part [begin, end) of `count` things that is the `part`-th of `parts` equal ones.
struct Share {
  i64 begin, end;
  Share(i64 count, int part, int parts)
      : begin(count / parts * part + count % parts * part / parts),
        end(count / parts * (part + 1) + count % parts * (part + 1) / parts) {}
};

// Work between two looks for Ctrl-C, in multiplications: some milliseconds.
constexpr i64 kPieceOfWork = i64(1) << 22;

// How many of `rows` rows are such a piece if all of them are `work`.
inline i64 rows_of_a_piece(i64 rows, i64 work) {
  return std::max<i64>(1, work <= kPieceOfWork
                              ? rows
                              : static_cast<i64>(static_cast<double>(rows) * kPieceOfWork /
                                                 static_cast<double>(work)));
}

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

// Calls body(part) for each part, side by side.
template <class Body>
inline void for_parts(int parts, const Body& body) {
  if (parts == 1) {
    body(0);
    return end_if_interrupted();
  }
  run_parts(
      {[](const void* what, int part) { (*static_cast<const Body*>(what))(part); }, &body, parts});
}

// Calls body(i) for each i < count, `together` neighbours at a time, on up to `threads` threads:
// who has done some takes the next ones.
template <class Body>
void for_each_in_turn(i64 count, i64 together, int threads, const Body& body) {
  std::atomic<i64> next{0};
  for_parts(threads, [&](int) {
    for (i64 begin; (begin = next.fetch_add(together, std::memory_order_relaxed)) < count;) {
      for (i64 i = begin; i < std::min(begin + together, count); ++i)
        body(i);
      if (interrupted())
        return;
    }
  });
}

// Calls body(i) for each i < count, on up to `threads` threads. Each begins with neighbours of its
// own, the same ones in every call, which it may still have in its cache; who has done his takes
// from the others, so that nobody waits for one that was stopped.
template <class Body>
void for_each_near(i64 count, int threads, const Body& body) {
  const int queues = static_cast<int>(std::min<i64>(count, threads));
  if (queues < 2) {
    for (i64 i = 0; i < count && !interrupted(); ++i)
      body(i);
    return end_if_interrupted();
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
  for_parts(queues, [&](int own) {
    for (int turn = 0; turn < queues; ++turn) {
      Queue& queue = all[(own + turn) % queues];
      for (i64 i; (i = queue.next.fetch_add(1, std::memory_order_relaxed)) < queue.end;) {
        body(i);
        if (interrupted())
          return;
      }
    }
  });
}

} // namespace wl
