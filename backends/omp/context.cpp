#include "context.hpp"

#include <pthread.h>

#include <atomic>

namespace wl {

namespace {

std::atomic<bool> pool_is_used{false};
std::atomic<bool> pool_is_lost{false};

} // namespace

int Context::threads() const {
  if (threads_ == 1 || pool_is_lost.load(std::memory_order_relaxed))
    return 1;
  if (!pool_is_used.load(std::memory_order_relaxed))
    pool_is_used = true;
  return threads_;
}

Tape*& recording() {
  thread_local Tape* tape = nullptr;
  return tape;
}

void watch_forks() {
  pthread_atfork(nullptr, nullptr, [] {
    if (pool_is_used)
      pool_is_lost = true;
  });
}

} // namespace wl
