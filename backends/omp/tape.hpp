// An iteration as a list of bound native calls, replayed without Python.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <vector>

#include "context.hpp"

namespace wl {

// Steps bind raw pointers and scalars by value; the tape holds references to the Python objects
// that own the memory.
class Tape {
public:
  explicit Tape(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  // Calls `body` once; what it submits on this thread becomes the tape and is not run.
  void record(const pybind11::function& body);

  void append(Work step, pybind11::tuple arguments) {
    steps_.push_back(std::move(step));
    kept_.push_back(std::move(arguments));
  }

  // Replays until *running is 0 or `limit` times; returns how many times. Looks for Ctrl-C between
  // two iterations about every 50 ms and throws KeyboardInterrupt.
  i64 run(const i32* running, i64 limit) const;

  std::size_t size() const { return steps_.size(); }

private:
  std::shared_ptr<Context> context_;
  std::vector<Work> steps_;
  std::vector<pybind11::tuple> kept_;
};

} // namespace wl
