// Ctrl-C ends long native work.
//
// Python runs its signal handlers on the main thread, between two of its own instructions. So long
// work checks for signals itself: loops call interrupted() every few milliseconds and end early if
// it returns true; their callers then throw, and partial results are not read.
#pragma once

#include <atomic>

#include "unified/types.hpp"

namespace wl {

// Python's error indicator is set.
struct PythonError {};

[[noreturn]] inline void throw_python_error() { throw PythonError(); }

// The interruption state of one piece of native work, from the moment its caller releases the GIL
// until it ends.
class Interruption {
public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // Whether a handler has raised. Any thread may call it.
  bool has_come() const { return has_come_.load(std::memory_order_relaxed); }

  // Lets Python run its handlers if the last check was long ago. Called by the thread that created
  // this object.
  void look();

  // Throws if a handler has raised.
  void end() const {
    if (has_come())
      throw_python_error();
  }

private:
  std::atomic<bool> has_come_{false};
  const bool on_main_thread_;
  Interruption* const outer_;
  i64 last_ = 0, clock_ = 0;   // nanoseconds of the steady clock
  int calls_ = 0, stride_ = 1; // calls between reads of the clock
};

// The interruption state for the loops of this thread. Threads of a team share the state of their
// caller.
struct Belonging {
  Interruption* interruption = nullptr;
  bool called_it = false; // whether this thread created the state
  int handlers = 0;       // signal handlers that run on this thread, called in the middle of a loop
};
Belonging& belonging();

// Whether to leave the loop; a few nanoseconds.
inline bool interrupted() {
  const Belonging& here = belonging();
  if (here.interruption == nullptr)
    return false;
  if (here.called_it)
    here.interruption->look();
  return here.interruption->has_come();
}

// Throws if the loops of this thread were left early; for its caller.
inline void end_if_interrupted() {
  const Belonging& here = belonging();
  if (here.interruption != nullptr && here.called_it)
    here.interruption->end();
}

// Calls body(from, to) on pieces of [begin, end), until Ctrl-C.
template <class Body>
inline void in_pieces(i64 begin, i64 end, i64 size, Body&& body) {
  while (end - begin > size) {
    body(begin, begin + size);
    begin += size;
    if (interrupted())
      return;
  }
  body(begin, end);
}

// Called with the GIL when the module is loaded.
void remember_main_thread();
// Called in the child of a fork; its one thread is its main thread.
void this_is_the_main_thread();

} // namespace wl
