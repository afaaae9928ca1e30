// Where native work is submitted: a number of threads, and whether a tape is being recorded.
#pragma once

#include <functional>

#include "unified/types.hpp"

namespace wl {

class Tape;

// The work of an operation with bound arguments; called with the number of threads.
using Work = std::function<void(int threads)>;

// The part of an executor that kernels see.
class Context {
public:
  explicit Context(int threads) : threads_(threads) {}

  int threads() const { return threads_; }

private:
  int threads_;
};

// The tape that this thread records, or nullptr. It belongs to the thread and not to the context:
// submissions of other Python threads run at once.
Tape*& recording();

} // namespace wl
