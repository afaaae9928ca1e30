// A loop with parts that threads share. The threads are in team.hpp, with headers that take long to
// compile: kernels need this file alone.
#pragma once

namespace wl {

// One part of a loop; `body` is the loop's body.
using PartFunction = void (*)(const void* body, int part);

struct Loop {
  PartFunction run = nullptr;
  const void* body = nullptr;
  int parts = 0;
  const void* kind = nullptr; // loops of one kind take about as long
};

// Calls run(body, part) for all parts, in parallel on at most `threads` threads. Within a part it
// is a plain loop. Ctrl-C in the meantime throws when all parts have ended.
void run_parts(const Loop& loop);

} // namespace wl
