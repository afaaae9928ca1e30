// Where native work is submitted: a number of threads, and whether a tape is being recorded.
#pragma once

#include <utility>

#include "unified/types.hpp"

namespace wl {

class Tape;

// The functions of a type of work, each of them compiled once.
struct WorkKind {
  void (*run)(const void* work, int threads);
  void* (*copy)(const void* work);
  void (*end)(void* work);
};

template <class W>
inline constexpr WorkKind work_kind = {
    [](const void* work, int threads) { (*static_cast<const W*>(work))(threads); },
    [](const void* work) -> void* { return new W(*static_cast<const W*>(work)); },
    [](void* work) { delete static_cast<W*>(work); },
};

// The work of an operation with bound arguments; called with the number of threads. Compilers take
// twice as long for std::function, which every file would include.
class Work {
public:
  Work(const void* work, const WorkKind& kind) : held_(kind.copy(work)), kind_(&kind) {}
  Work(Work&& other) noexcept : held_(std::exchange(other.held_, nullptr)), kind_(other.kind_) {}
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  ~Work() {
    if (held_ != nullptr)
      kind_->end(held_);
  }

  void operator()(int threads) const { kind_->run(held_, threads); }

private:
  void* held_;
  const WorkKind* kind_;
};

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
