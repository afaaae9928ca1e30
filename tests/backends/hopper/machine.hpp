// A block of a Hopper GPU on the CPU: work-items are fibers that go on in a random order until they
// wait, copies arrive at random times, and products run when they are waited for, on what is then
// in shared memory and in their registers. A block in which nobody goes on any more is an error.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <ucontext.h>

#define __shared__
#define __align__(bytes) __attribute__((aligned(bytes)))

struct int2 {
  int x, y;
};
struct float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

namespace wl {
alignas(128) inline unsigned char shared[232448];
}

namespace wl::lockstep {

// Where so many work-items wait for one another.
struct meeting {
  int came = 0;
  long long round = 0;
  int votes = 0, result = 0;
};
// A barrier in shared memory that counts arrivals and bytes.
struct counting {
  int expected = 0, pending = 0;
  long long bytes = 0;
  unsigned phase = 0;
};
struct copying {
  unsigned to;
  std::vector<unsigned char> data;
  unsigned barrier;
};
// A product that was asked for: registers by place, not by value.
struct product {
  float* d;
  const unsigned* a;
  unsigned b;
  int columns;
  bool add, wide; // wide: bfloat
};
struct fiber {
  std::unique_ptr<char[]> stack{new char[256 * 1024]};
  ucontext_t context;
  bool ended = false;
  long long slot = 0;
  std::vector<product> products;
};

struct machine {
  std::vector<fiber> fibers;
  ucontext_t back;
  int thread = 0, threads = 0;
  long long block = 0, blocks = 0;
  const void* body = nullptr;
  void (*call)(const void*) = nullptr;
  std::string error;
  unsigned schedule = 0;
  std::mt19937 random;
  long long progress = 0;
  std::map<int, meeting> meetings;
  std::map<unsigned, counting> barriers;
  std::vector<copying> copies;
};
inline machine& here() {
  static machine the_machine;
  return the_machine;
}
inline int thread() { return here().thread; }
inline long long block() { return here().block; }
inline long long blocks() { return here().blocks; }

inline void yield() {
  machine& m = here();
  swapcontext(&m.fibers[m.thread].context, &m.back);
}
inline void fiber_main() {
  machine& m = here();
  m.call(m.body);
  m.fibers[m.thread].ended = true;
  ++m.progress;
  swapcontext(&m.fibers[m.thread].context, &m.back);
}
inline void fail(const std::string& what) {
  machine& m = here();
  if (m.error.empty())
    m.error =
        what + " (thread " + std::to_string(m.thread) + ", block " + std::to_string(m.block) + ")";
}

// Numbers of meetings: named barriers are 0 to 15, then warps, then warpgroups.
constexpr int of_warps = 100, of_warpgroups = 200;

inline void come(int id, int total, int vote = 0) {
  machine& m = here();
  meeting& there = m.meetings[id];
  ++m.progress;
  there.votes |= vote;
  if (++there.came == total) {
    there.came = 0;
    there.result = there.votes;
    there.votes = 0;
    ++there.round;
  }
}
inline int meet(int id, int total, int vote = 0) {
  machine& m = here();
  meeting& there = m.meetings[id];
  const long long round = there.round;
  come(id, total, vote);
  while (there.round == round && m.error.empty())
    yield();
  return there.result;
}
inline void barrier() { meet(0, here().threads); }
inline void meet_warp() { meet(of_warps + thread() / 32, 32); }

inline int exchange(int word, int from) {
  machine& m = here();
  m.fibers[m.thread].slot = word;
  meet_warp();
  const int taken = int(m.fibers[m.thread / 32 * 32 + from].slot);
  meet_warp();
  return taken;
}
inline unsigned long long ballot(bool vote) {
  unsigned long long votes = 0;
  for (int l = 0; l < 32; ++l)
    votes |= (unsigned long long)(exchange(vote, l)) << l;
  return votes;
}

template <class T, int N>
struct shared_array {
  alignas(16) unsigned char bytes[N * sizeof(T)];
  T (&cells()) [N] { return *reinterpret_cast<T(*)[N]>(bytes); }
};

// ---------------------------------------------------------------- barriers that count bytes

inline void settle(counting& barrier) {
  ++here().progress;
  if (barrier.pending == 0 && barrier.bytes == 0) {
    barrier.pending = barrier.expected;
    barrier.phase ^= 1;
  }
}
inline void land(std::size_t i) {
  machine& m = here();
  copying copy = std::move(m.copies[i]);
  m.copies.erase(m.copies.begin() + i);
  std::memcpy(shared + copy.to, copy.data.data(), copy.data.size());
  counting& barrier = m.barriers[copy.barrier];
  barrier.bytes -= (long long)copy.data.size();
  settle(barrier);
}

// ---------------------------------------------------------------- products

inline float number(unsigned bits, bool wide) {
  if (wide) {
    bits <<= 16;
    float v;
    std::memcpy(&v, &bits, 4);
    return v;
  }
  const int e = int(bits >> 10 & 31), f = int(bits & 1023);
  const float v =
      e == 31 ? (f ? NAN : INFINITY) : std::ldexp(float(e ? f + 1024 : f), (e ? e : 1) - 25);
  return bits & 0x8000u ? -v : v;
}
inline unsigned bits_at(unsigned address) {
  unsigned short bits;
  std::memcpy(&bits, shared + address, 2);
  return bits;
}
// All products that the 128 work-items of a warpgroup have asked for.
inline void multiply(int first) {
  machine& m = here();
  const std::size_t count = m.fibers[first].products.size();
  for (int t = 0; t < 128; ++t)
    if (m.fibers[first + t].products.size() != count)
      return fail("work-items of a warpgroup asked for different products");
  for (std::size_t p = 0; p < count; ++p)
    for (int t = 0; t < 128; ++t) {
      const product& mine = m.fibers[first + t].products[p];
      const int quad = first + t / 4 * 4, lane = t % 32;
      for (int half = 0; half < 2; ++half) {
        float a[16];
        for (int k = 0; k < 16; ++k) {
          const product& of = m.fibers[quad + k % 8 / 2].products[p];
          a[k] = number(of.a[k / 8 * 2 + half] >> 16 * (k % 2) & 0xffffu, mine.wide);
        }
        for (int j = 0; j < mine.columns / 8; ++j)
          for (int z = 0; z < 2; ++z) {
            const int n = 8 * j + 2 * (lane % 4) + z;
            double sum = 0;
            for (int k = 0; k < 16; ++k)
              sum += double(a[k]) *
                     number(bits_at(mine.b + n / 8 * 256 + k / 8 * 128 + n % 8 * 16 + k % 8 * 2),
                            mine.wide);
            float& d = mine.d[4 * j + 2 * half + z];
            d = float((mine.add ? double(d) : 0.0) + sum);
          }
      }
    }
  for (int t = 0; t < 128; ++t)
    m.fibers[first + t].products.clear();
}
inline void wait_for_products() {
  const int group = thread() / 128;
  if (meet(of_warpgroups + 2 * group, 128) == 0 && thread() % 128 == 0)
    multiply(group * 128);
  meet(of_warpgroups + 2 * group + 1, 128);
}

// ---------------------------------------------------------------- blocks

inline void run_block() {
  machine& m = here();
  m.meetings.clear();
  m.barriers.clear();
  m.copies.clear();
  std::memset(shared, 0xcd, sizeof shared);
  for (int t = 0; t < m.threads; ++t) {
    fiber& f = m.fibers[t];
    f.ended = false;
    f.products.clear();
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack.get();
    f.context.uc_stack.ss_size = 256 * 1024;
    f.context.uc_link = nullptr;
    makecontext(&f.context, fiber_main, 0);
  }
  std::vector<int> warps(m.threads / 32);
  for (std::size_t w = 0; w < warps.size(); ++w)
    warps[w] = int(w);
  for (int idle = 0; idle < 1000;) {
    const long long before = m.progress;
    bool all_ended = true;
    std::shuffle(warps.begin(), warps.end(), m.random);
    for (const int w : warps)
      for (int t = w * 32; t < w * 32 + 32; ++t)
        if (!m.fibers[t].ended) {
          all_ended = false;
          m.thread = t;
          swapcontext(&m.back, &m.fibers[t].context);
          if (!m.error.empty())
            return;
        }
    if (!m.copies.empty() && m.random() % 2)
      land(m.random() % m.copies.size());
    if (all_ended) {
      if (!m.copies.empty())
        fail("copies arrive after the block has ended");
      return;
    }
    idle = m.progress == before ? idle + 1 : 0;
  }
  fail("nobody goes on");
}

template <class Body>
void launch(long long blocks, int threads, const Body& body) {
  machine& m = here();
  m.error.clear();
  m.fibers = std::vector<fiber>(threads);
  m.threads = threads;
  m.blocks = blocks;
  m.body = &body;
  m.random.seed(m.schedule);
  m.call = [](const void* it) { (*static_cast<const Body*>(it))(); };
  for (m.block = 0; m.block < blocks && m.error.empty(); ++m.block)
    run_block();
}

} // namespace wl::lockstep

inline int __syncthreads_or(int vote) {
  return wl::lockstep::meet(0, wl::lockstep::here().threads, vote != 0);
}
inline void __syncwarp() { wl::lockstep::meet_warp(); }
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long both = (unsigned long long)(y) << 32 | x;
  unsigned made = 0;
  for (int i = 0; i < 4; ++i)
    made |= unsigned(both >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  return made;
}

extern "C" {
inline __attribute__((used)) const char* lockstep_error() {
  return wl::lockstep::here().error.c_str();
}
inline __attribute__((used)) void lockstep_schedule(unsigned schedule) {
  wl::lockstep::here().schedule = schedule;
}
}
