// Detection of other programs on the cores on which threads of this process would wait actively.
#pragma once

#include <atomic>
#include <chrono>

#include "unified/types.hpp"

namespace wl {

using Clock = std::chrono::steady_clock;
using Nanoseconds = std::chrono::nanoseconds;

inline i64 now_in_ns() {
  return std::chrono::duration_cast<Nanoseconds>(Clock::now().time_since_epoch()).count();
}

// A thread that waits actively and did not read the clock for this time (nanoseconds) was
// descheduled by the system: time slices last 0.7 ms and more, interrupts tens of microseconds.
constexpr i64 kPutAside = 400'000;

// One object for the process: its threads share the cores.
class Crowding {
public:
  // Costs a load, and a read of the clock only if cores are crowded.
  bool is_on() { return on_.load(std::memory_order_relaxed) && !is_over(); }

  // A waiting thread was descheduled: no thread waits actively for the next 10 ms, and for twice as
  // long each time that active waits would still have been descheduled.
  void seen(i64 now);

private:
  static constexpr i64 kFirstHold = 10'000'000, kLongestHold = 1'000'000'000;
  // Threads that compute on crowded cores are descheduled once per time slice; on other cores a few
  // times a second.
  static constexpr i64 kSwitchesPerSecond = 50;

  std::atomic<bool> on_{false};
  std::atomic<i64> since_{0}, until_{0}, hold_{kFirstHold};
  std::atomic<long> switches_{0};

  bool is_over();
  void prolong(i64 now);
};

Crowding& crowding();

} // namespace wl
