#include "omp/crowding.hpp"

#include <algorithm>

#if defined(__linux__)
#include <sys/resource.h>
#endif

namespace wl {

namespace {

// The number of times that the system took a core from a running thread of this process.
long involuntary_switches() {
#if defined(__linux__)
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
#else
  return 0;
#endif
}

} // namespace

Crowding& crowding() {
  static Crowding* const one = new Crowding; // threads may ask until the process is gone
  return *one;
}

void Crowding::seen(i64 now) {
  if (on_.load(std::memory_order_relaxed))
    return;
  // Soon after the last time it was not over yet.
  const i64 hold = hold_.load(std::memory_order_relaxed);
  const bool again = now - until_.load(std::memory_order_relaxed) < 4 * hold;
  hold_.store(again ? std::min(2 * hold, kLongestHold) : kFirstHold, std::memory_order_relaxed);
  prolong(now);
  on_.store(true, std::memory_order_relaxed);
}

void Crowding::prolong(i64 now) {
  switches_.store(involuntary_switches(), std::memory_order_relaxed);
  since_.store(now, std::memory_order_relaxed);
  until_.store(now + hold_.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

bool Crowding::is_over() {
  const i64 now = now_in_ns();
  if (now < until_.load(std::memory_order_relaxed))
    return false;
  const i64 passed = now - since_.load(std::memory_order_relaxed);
  const i64 switches = involuntary_switches() - switches_.load(std::memory_order_relaxed);
  if (switches * 1'000'000'000 >= kSwitchesPerSecond * passed) {
    const i64 hold = hold_.load(std::memory_order_relaxed);
    hold_.store(std::min(2 * hold, kLongestHold), std::memory_order_relaxed);
    prolong(now);
    return false;
  }
  on_.store(false, std::memory_order_relaxed);
  return true;
}

} // namespace wl
