// An iteration as a list of bound native calls, replayed without Python.
#pragma once

#include <memory>
#include <vector>

#include "omp/call.hpp"

namespace wl {

// Steps bind raw pointers and scalars by value; the tape holds references to the Python objects
// that own the memory.
class Tape {
public:
  explicit Tape(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  // Calls `body` once; its submissions on this thread become the tape and are not run.
  void record(PyObject* body);

  void append(Work step, std::vector<Object> arguments) {
    steps_.push_back(std::move(step));
    kept_.insert(kept_.end(), arguments.begin(), arguments.end());
  }

  // Replays until *running is 0, at most `limit` times; returns the number of replays. Checks for
  // Ctrl-C between two iterations about every 50 ms, and throws PythonError after it.
  i64 run(const i32* running, i64 limit) const;

  // Replays without a check for Ctrl-C, on any thread of a loop.
  i64 replay(const i32* running, i64 limit) const;
  void replay_once() const;

  // Replays, and calls `after` after each operation.
  template <class After>
  void replay_stepwise(const After& after) const {
    const int threads = context_->threads();
    for (const Work& step : steps_) {
      step(threads);
      after();
    }
  }

  // Appends a call of Python, which takes the GIL when it is replayed.
  void append_call(PyObject* function, PyObject* arguments);

  std::size_t size() const { return steps_.size(); }

private:
  std::shared_ptr<Context> context_;
  std::vector<Work> steps_;
  std::vector<Object> kept_;
};

} // namespace wl
