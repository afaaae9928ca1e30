// Threads that share the parts of a loop.
//
// The thread that calls a loop computes the first part, and a worker each of the other parts. A
// worker gets the same part in every call, because it may still have the data in its cache. If no
// thread has started a part, the first free thread computes it: no caller waits for a worker that
// the system has not woken. The result of a part does not depend on the thread.
//
// A thread that waits, for work or for the end of a loop, waits actively for microseconds and then
// sleeps. On crowded cores (crowding.hpp) it sleeps at once: an active wait would use up the CPU
// time of the thread that it waits for. Sleeping workers are woken for parts that are long enough.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "omp/crowding.hpp"
#include "omp/interruption.hpp"
#include "omp/loop.hpp"

namespace wl {

// One thread besides the caller.
struct alignas(64) Worker {
  enum State : std::uint32_t {
    IDLE,    // waits actively, or is about to
    ASLEEP,  // waits for `wake`
    READY,   // has a part that it has not started
    CALLED,  // as READY, and the caller sleeps
    TAKEN,   // computes its part
    AWAITED, // as TAKEN, and the caller sleeps
  };
  std::atomic<std::uint32_t> state{IDLE};
  std::atomic<bool> is_late{false}; // it was woken, and the system has not let it run yet
  int part = 0;
  i64 patience; // time limit of the next active wait
  std::mutex mutex;
  std::condition_variable wake;
};

// Workers of one caller at a time.
class Team {
public:
  // Does all parts, and returns when they are done; throws the exception of a part.
  void run(const Loop& loop);

  // Starts workers up to this number, or until the system has no more threads.
  void grow(int workers);
  int size() const { return static_cast<int>(workers_.size()); }
  bool may_grow() const { return may_grow_; }

private:
  // The time of a part of a loop, for loops that found workers asleep.
  struct Known {
    const void* kind = nullptr;
    i64 nanoseconds = 0;
  };
  static constexpr int kKnown = 64;

  std::vector<std::unique_ptr<Worker>> workers_;
  bool may_grow_ = true;
  // The current loop. Workers read it after they have taken their part.
  Loop loop_;
  int involved_ = 0; // workers that have a part
  Interruption* interruption_ = nullptr;
  std::exception_ptr error_;             // the first one, under the mutex
  alignas(64) std::atomic<int> next_{0}; // of the parts that no worker has

  alignas(64) std::atomic<int> asleep_{0};
  std::mutex mutex_;
  std::condition_variable done_;
  i64 owed_ = 0; // nanoseconds that workers could have saved since they fell asleep
  Known known_[kKnown];

  void work(Worker& worker);
  void wait_for_part(Worker& worker);
  static bool take_part(Worker& worker);
  void let_begin(Worker& worker);
  void wait_for(Worker& worker);
  void hand_out(int workers);
  void do_part(int part);
  void do_left_parts();
  void do_parts_not_begun();
  int worth_involving(int most);
  bool is_worth_waking();
  void learn(i64 nanoseconds);
  Known& known() { return known_[reinterpret_cast<std::uintptr_t>(loop_.kind) / 16 % kKnown]; }
};

// Called once, when the module is loaded.
void watch_forks();

} // namespace wl
