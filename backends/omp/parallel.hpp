// The split of work over threads, and the memory of their parts.
//
// Loops go over parts, not over threads: the result depends on the number of parts alone, not on
// the threads that run them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>

#include "omp/interruption.hpp"
#include "omp/loop.hpp"
#include "unified/types.hpp"

namespace wl {

// The number of elements below which sharing a loop (half a microsecond with threads that wait
// actively) costs more than it saves.
constexpr i64 kSerialElements = 16384;

// The part [begin, end) of `count` things that is the `part`-th of `parts` equal ones.
struct Share {
  i64 begin, end;
  Share(i64 count, int part, int parts)
      : begin(count / parts * part + count % parts * part / parts),
        end(count / parts * (part + 1) + count % parts * (part + 1) / parts) {}
};

// Work between two checks for Ctrl-C, in multiplications: some milliseconds.
constexpr i64 kPieceOfWork = i64(1) << 22;

// The number of rows of such a piece, if all `rows` rows together are `work` multiplications.
inline i64 rows_of_a_piece(i64 rows, i64 work) {
  return std::max<i64>(1, work <= kPieceOfWork
                              ? rows
                              : static_cast<i64>(static_cast<double>(rows) * kPieceOfWork /
                                                 static_cast<double>(work)));
}

// Memory for small arrays on the stack and for others on the heap.
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

// Calls body(part) for each part, in parallel. A body is compiled once for all loops that call it,
// because the loops are no templates. `kind` distinguishes loops of one Body.
template <class Body>
inline void for_parts(int parts, const Body& body, const void* kind = nullptr) {
  const PartFunction run = [](const void* what, int part) {
    (*static_cast<const Body*>(what))(part);
  };
  run_parts({run, &body, parts, kind ? kind : reinterpret_cast<const void*>(run)});
}

namespace detail {

// Calls run(body, begin, end) for neighbours.
using RangeFunction = void (*)(const void* body, i64 begin, i64 end);

void run_in_turn(i64 count, i64 together, int threads, RangeFunction run, const void* body);
void run_near(i64 count, int threads, RangeFunction run, const void* body);

template <class Body>
constexpr RangeFunction on_range = [](const void* what, i64 begin, i64 end) {
  for (i64 i = begin; i < end; ++i)
    (*static_cast<const Body*>(what))(i);
};

} // namespace detail

// Calls body(i) for each i < count, `together` adjacent indices at a time, on up to `threads`
// threads: a thread that has finished some indices takes the next ones.
template <class Body>
void for_each_in_turn(i64 count, i64 together, int threads, const Body& body) {
  detail::run_in_turn(count, together, threads, detail::on_range<Body>, &body);
}

// Calls body(i) for each i < count, on up to `threads` threads. Each begins with adjacent indices
// of its own, the same ones in every call, which it may still have in its cache; a thread that has
// finished takes indices from the others, so that no thread waits for a descheduled one.
template <class Body>
void for_each_near(i64 count, int threads, const Body& body) {
  detail::run_near(count, threads, detail::on_range<Body>, &body);
}

} // namespace wl
