// A block whose warps do different things, on the CPU: each work-item is a fiber that runs until it
// waits for somebody, and fibers take turns. What lockstep.hpp does not have: barriers of some of
// the warps, barriers in shared memory that count bytes, and dynamic shared memory.
//
// A block in which nobody can go on, or that leaves a barrier half full, is an error.
#pragma once

#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <setjmp.h>
#include <ucontext.h>

namespace wl::lockstep {

struct fiber {
  static constexpr std::size_t stack_size = 128 * 1024;
  std::unique_ptr<char[]> stack{new char[stack_size]};
  jmp_buf place;
  bool started = false, ended = false;
};

// Those who come wait until all have come.
struct gate {
  int come = 0;
  long long opened = 0;
};

// A barrier in shared memory: it turns when all have arrived and all bytes have come.
struct counting_barrier {
  int each = 0, missing = 0;
  long long bytes = 0;
  unsigned phase = 0;
};

struct machine {
  std::vector<fiber> fibers;
  jmp_buf scheduler;
  int thread = 0, threads = 0;
  long long block = 0, blocks = 0, events = 0;
  const void* body = nullptr;
  void (*call)(const void*) = nullptr;
  std::string error;
  unsigned schedule = 0;
  std::vector<gate> warps;
  gate all, some[16];
  std::vector<long long> slots;
  unsigned words[1024][8];
  bool any = false;
  std::map<unsigned, counting_barrier> counting;
  alignas(128) unsigned char shared[227 * 1024];
};

inline machine& here() {
  static machine the_machine;
  return the_machine;
}

inline int thread() { return here().thread; }
inline long long block() { return here().block; }
inline long long blocks() { return here().blocks; }

__attribute__((noinline)) inline void yield() {
  machine& m = here();
  if (_setjmp(m.fibers[m.thread].place) == 0)
    _longjmp(m.scheduler, 1);
}

inline void fiber_main() {
  machine& m = here();
  m.call(m.body);
  m.fibers[m.thread].ended = true;
  ++m.events;
  _longjmp(m.scheduler, 1);
}

__attribute__((noinline)) inline void resume(int thread) {
  machine& m = here();
  m.thread = thread;
  fiber& f = m.fibers[thread];
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

// ---------------------------------------------------------------- meetings

inline void pass(gate& g, int count) {
  ++here().events;
  if (++g.come == count) {
    g.come = 0;
    ++g.opened;
  }
}

inline void meet(gate& g, int count) {
  const long long before = g.opened;
  pass(g, count);
  while (g.opened == before)
    yield();
}

inline gate& my_warp() { return here().warps[thread() / WL_WARP]; }

inline int exchange(int word, int from) {
  machine& m = here();
  m.slots[thread()] = word;
  meet(my_warp(), WL_WARP);
  const int taken = int(m.slots[thread() / WL_WARP * WL_WARP + from]);
  meet(my_warp(), WL_WARP);
  return taken;
}

inline unsigned long long ballot(bool vote) {
  machine& m = here();
  m.slots[thread()] = vote;
  meet(my_warp(), WL_WARP);
  unsigned long long votes = 0;
  for (int l = 0; l < WL_WARP; ++l)
    votes |= (unsigned long long)(m.slots[thread() / WL_WARP * WL_WARP + l]) << l;
  meet(my_warp(), WL_WARP);
  return votes;
}

// Offers words to the warp, gives what all lanes offer to `take`, and meets again.
template <class Take>
void share(const unsigned* mine, int count, const Take& take) {
  machine& m = here();
  std::memcpy(m.words[thread()], mine, count * sizeof(unsigned));
  meet(my_warp(), WL_WARP);
  for (int l = 0; l < WL_WARP; ++l)
    take(l, m.words[thread() / WL_WARP * WL_WARP + l]);
  meet(my_warp(), WL_WARP);
}

inline void barrier() { meet(here().all, here().threads); }

inline void turn_if_done(counting_barrier& b) {
  if (b.missing != 0 || b.bytes != 0)
    return;
  b.missing = b.each;
  b.phase ^= 1;
  ++here().events;
}

// ---------------------------------------------------------------- blocks

inline void run_block() {
  machine& m = here();
  m.fibers = std::vector<fiber>(m.threads);
  m.warps.assign(m.threads / WL_WARP, {});
  m.slots.assign(m.threads, 0);
  m.all = {};
  for (gate& g : m.some)
    g = {};
  m.counting.clear();
  std::memset(m.shared, 0xcd, sizeof m.shared);
  for (int live = m.threads; live > 0;) {
    const long long before = m.events;
    live = 0;
    for (int i = 0; i < m.threads; ++i) {
      const int t = m.schedule & 1 ? m.threads - 1 - i : i;
      if (!m.fibers[t].ended)
        resume(t);
      live += !m.fibers[t].ended;
    }
    if (live > 0 && m.events == before) {
      m.error = std::to_string(live) + " work-items wait for what nobody does";
      return;
    }
  }
  for (int i = 0; i < 16; ++i)
    if (m.some[i].come != 0)
      m.error = "barrier " + std::to_string(i) + " is left half full";
}

template <class Body>
void launch(long long blocks, int threads, const Body& body) {
  machine& m = here();
  m.error.clear();
  m.threads = threads;
  m.blocks = blocks;
  m.body = &body;
  m.call = [](const void* it) { (*static_cast<const Body*>(it))(); };
  for (long long b = 0; b < blocks && m.error.empty(); ++b) {
    m.block = b;
    run_block();
  }
}

template <class T, int N>
struct shared_array {
  T at[N];
  T (&cells()) [N] { return at; }
};

} // namespace wl::lockstep

extern "C" {
inline __attribute__((used)) const char* lockstep_error() {
  return wl::lockstep::here().error.c_str();
}
inline __attribute__((used)) void lockstep_schedule(unsigned schedule) {
  wl::lockstep::here().schedule = schedule;
}
}
