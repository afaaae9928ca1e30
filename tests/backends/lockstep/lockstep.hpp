// A wavefront on the CPU: each work-item is a fiber, and nothing happens between two lanes but
// through a shuffle, a ballot or a barrier, where all of them have to meet. Kernel text is included
// unchanged; what no GPU would forgive is an error with a sentence:
//
// - lanes of a wave that meet at different places, or of which some have returned (divergent code);
// - work-items of a block that meet at different barriers, or of which some have returned;
// - a shuffle that asks for a lane that is not there.
//
// Shared memory holds garbage when a block begins. Between two meetings a wave runs as far as it
// can before the next wave starts, in the order that `schedule` says: what lacks a barrier finds
// the old value under one of the orders.
//
// Compile with -O0: at higher levels one place of the text may become several places of the code,
// or several one, and places are told apart by their return addresses.
#pragma once

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <setjmp.h>
#include <ucontext.h>

namespace wl::lockstep {

enum class waits_for { nothing, wave, block, end };

struct fiber {
  static constexpr std::size_t stack_size = 64 * 1024;
  std::unique_ptr<char[]> stack{new char[stack_size]};
  jmp_buf place;
  bool started = false;
  waits_for wait = waits_for::end;
  const void* site = nullptr; // where in the code it waits
  long long slot = 0;         // what it offers to its wave
};

// What runs where, and what went wrong. One launch at a time.
struct machine {
  std::vector<fiber> fibers;
  ucontext_t back;
  jmp_buf scheduler;
  int thread = 0, threads = 0;
  long long block = 0, blocks = 0;
  const void* body = nullptr;
  void (*call)(const void*) = nullptr;
  std::string error;
  unsigned schedule = 0;
};

inline machine& here() {
  static machine the_machine;
  return the_machine;
}

inline int thread() { return here().thread; }
inline long long block() { return here().block; }
inline long long blocks() { return here().blocks; }

// ---------------------------------------------------------------- fibers
// ucontext makes their stacks; _setjmp and _longjmp switch, because swapcontext asks the kernel for
// the signal mask each time.

inline void fiber_main() {
  for (;;) {
    machine& m = here();
    m.call(m.body);
    fiber& self = m.fibers[m.thread];
    self.wait = waits_for::end;
    if (_setjmp(self.place) == 0)
      _longjmp(m.scheduler, 1);
  }
}

// Runs the fiber until it waits for somebody.
inline void resume(int thread) {
  machine& m = here();
  m.thread = thread;
  fiber& f = m.fibers[thread];
  f.wait = waits_for::nothing;
  if (_setjmp(m.scheduler) != 0)
    return;
  if (f.started)
    _longjmp(f.place, 1);
  f.started = true;
  ucontext_t fresh;
  getcontext(&fresh);
  fresh.uc_stack.ss_sp = f.stack.get();
  fresh.uc_stack.ss_size = fiber::stack_size;
  fresh.uc_link = nullptr;
  makecontext(&fresh, fiber_main, 0);
  setcontext(&fresh);
}

__attribute__((noinline)) inline void park(waits_for what, const void* site) {
  machine& m = here();
  fiber& self = m.fibers[m.thread];
  self.wait = what;
  self.site = site;
  if (_setjmp(self.place) == 0)
    _longjmp(m.scheduler, 1);
}

// A kernel that went wrong never goes on: its fibers are made anew for the next one.
[[noreturn]] inline void fail(const std::string& what) {
  machine& m = here();
  m.error = what + " (thread " + std::to_string(m.thread) + ", block " + std::to_string(m.block) +
            " of " + std::to_string(m.blocks) + ", wave of " + std::to_string(WL_WARP) + ")";
  _longjmp(m.scheduler, 2);
}

// ---------------------------------------------------------------- what lanes say to one another

inline fiber& lane(int l) {
  machine& m = here();
  return m.fibers[m.thread / WL_WARP * WL_WARP + l];
}

// Every lane offers, all meet, every lane takes, all meet again.
__attribute__((noinline)) inline int exchange(int word, int from) {
  if (from < 0 || from >= WL_WARP)
    fail("a shuffle asks for lane " + std::to_string(from));
  const void* site = __builtin_return_address(0);
  lane(here().thread % WL_WARP).slot = word;
  park(waits_for::wave, site);
  const int taken = int(lane(from).slot);
  park(waits_for::wave, site);
  return taken;
}

__attribute__((noinline)) inline unsigned long long ballot(bool vote) {
  const void* site = __builtin_return_address(0);
  lane(here().thread % WL_WARP).slot = vote;
  park(waits_for::wave, site);
  unsigned long long votes = 0;
  for (int l = 0; l < WL_WARP; ++l)
    votes |= (unsigned long long)(lane(l).slot) << l;
  park(waits_for::wave, site);
  return votes;
}

__attribute__((noinline)) inline void barrier() {
  park(waits_for::block, __builtin_return_address(0));
}

// ---------------------------------------------------------------- shared memory

// Each place has garbage in it when a block begins, like the real one.
struct shared_place {
  void* data;
  std::size_t bytes;
};

inline std::vector<shared_place>& shared_places() {
  static std::vector<shared_place> places;
  return places;
}

template <class T, int N>
struct shared_array {
  alignas(16) unsigned char bytes[N * sizeof(T)];
  shared_array() {
    std::memset(bytes, 0xcd, sizeof bytes);
    shared_places().push_back({bytes, sizeof bytes});
  }
  T (&cells()) [N] { return *reinterpret_cast<T(*)[N]>(bytes); }
};

// ---------------------------------------------------------------- blocks

// Threads first to first + count of a block all wait for `what` at one place.
inline bool all_wait(int first, int count, waits_for what, const char* divergent) {
  const auto& fibers = here().fibers;
  int waiting = 0;
  for (int t = first; t < first + count; ++t)
    waiting += fibers[t].wait == what;
  if (waiting == 0)
    return false;
  here().thread = first;
  for (int t = first; t < first + count; ++t)
    if (fibers[t].wait != what || fibers[t].site != fibers[first].site) {
      here().error = divergent;
      return false;
    }
  return true;
}

// Bit 0 of the schedule reverses lanes, bit 1 waves, bit 2 blocks.
inline int place_in(int i, int count, unsigned reversed) { return reversed ? count - 1 - i : i; }

// Runs a wave until it waits for the block or has ended.
inline bool run_wave(int wave) {
  machine& m = here();
  const int first = wave * WL_WARP;
  for (;;) {
    for (int i = 0; i < WL_WARP; ++i) {
      resume(first + place_in(i, WL_WARP, m.schedule & 1));
      if (!m.error.empty())
        return false;
    }
    if (!all_wait(first, WL_WARP, waits_for::wave,
                  "lanes of a wave do not meet at one shuffle or ballot: divergent code"))
      return m.error.empty();
  }
}

inline void run_block() {
  machine& m = here();
  for (const shared_place& place : shared_places())
    std::memset(place.data, 0xcd, place.bytes);
  do {
    const int waves = m.threads / WL_WARP;
    for (int w = 0; w < waves; ++w)
      if (!run_wave(place_in(w, waves, m.schedule & 2)))
        return;
  } while (all_wait(0, m.threads, waits_for::block,
                    "work-items of a block do not meet at one barrier: divergent code"));
}

// Runs the body in every work-item of every block. Afterwards `here().error` says what went wrong.
template <class Body>
void launch(long long blocks, int threads, const Body& body) {
  machine& m = here();
  m.error.clear();
  if (int(m.fibers.size()) != threads)
    m.fibers = std::vector<fiber>(threads);
  m.threads = threads;
  m.blocks = blocks;
  m.body = &body;
  m.call = [](const void* it) { (*static_cast<const Body*>(it))(); };
  for (long long b = 0; b < blocks && m.error.empty(); ++b) {
    m.block = m.schedule & 4 ? blocks - 1 - b : b;
    run_block();
  }
  if (!m.error.empty())
    m.fibers.clear();
}

} // namespace wl::lockstep

extern "C" {
inline __attribute__((used)) const char* lockstep_error() {
  return wl::lockstep::here().error.c_str();
}
inline __attribute__((used)) void lockstep_schedule(unsigned schedule) {
  wl::lockstep::here().schedule = schedule;
}
}
