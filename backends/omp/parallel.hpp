// How work is shared by threads, and where they put their parts.
//
// Loops go over parts, not over threads: libgomp may give fewer threads than were asked for, and
// the result depends on the number of parts alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>

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

} // namespace wl
