// Where native work is submitted: a number of threads, and whether a tape is being recorded.
#pragma once

#include <functional>

#include "types.hpp"

namespace wl {

class Tape;

// What an operation does once its arguments are bound; called with the number of threads.
using Work = std::function<void(int threads)>;

// The part of an executor that kernels see.
class Context {
public:
  explicit Context(int threads) : threads_(threads) {}

  // What the executor was made with.
  int asked() const { return threads_; }

  // How many threads may work now. The pool of libgomp does not survive a fork: a child whose
  // parent used it would wait for threads that are not there, so children compute serially.
  int threads() const;

private:
  int threads_;
};

// The tape that this thread records, or nullptr. It belongs to the thread and not to the context:
// what other Python threads submit meanwhile runs at once.
Tape*& recording();

// Called once, when the module is loaded.
void watch_forks();

} // namespace wl
