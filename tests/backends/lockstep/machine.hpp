// The functions of a block for kernel text, in place of the functions of a GPU; machine.cpp
// implements them. There is no standard header here: hundreds of programs include this file, and
// parsing standard headers took longer than the kernels.
//
// Compile with -O0: at higher levels one call in the text may become several calls in the code, or
// several calls one, and calls are distinguished by their return addresses.
#pragma once

#define __shared__
#define __align__(bytes) __attribute__((aligned(bytes)))

extern "C" {
float fmaf(float, float, float) noexcept;
float fmaxf(float, float) noexcept;
float fabsf(float) noexcept;
}

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
// The memory that a launch asks for: as much as a block of Hopper can have.
constexpr int most_shared = 227 * 1024;
extern unsigned char shared[most_shared];
} // namespace wl

namespace wl::lockstep {

// ---------------------------------------------------------------- indices of the work-item

struct item_now {
  int thread;
  long long block, blocks;
};
extern item_now now;

inline int thread() { return now.thread; }
inline long long block() { return now.block; }
inline long long blocks() { return now.blocks; }

// ---------------------------------------------------------------- barriers and exchanges

int exchange(int word, int from);
unsigned long long ballot(bool vote);
void barrier();
bool barrier_or(bool vote);
void wave_barrier();
// One of sixteen barriers: `count` work-items arrive at it, and the ones that sync wait for all.
void named_barrier_sync(int barrier, int count);
void named_barrier_arrive(int barrier, int count);

// ---------------------------------------------------------------- barriers that count bytes

void counting_init(unsigned barrier, int arrivals);
void counting_arrive(unsigned barrier, unsigned bytes);
void counting_wait(unsigned barrier, unsigned parity);
bool counting_turned(unsigned barrier, unsigned parity);
// The copy arrives later, and then informs the barrier.
void copy(unsigned to, const void* from, unsigned bytes, unsigned barrier);

// ---------------------------------------------------------------- copies that a work-item waits
// for

// 16 bytes, or zeros from null. They arrive when the work-item waits for them.
void copy_16_bytes(unsigned to, const void* from);
void commit_copies();
// Waits for all but the last groups that were committed.
void wait_for_copies(int left);
// The barrier counts an arrival when all copies that this work-item has asked for have come.
void arrive_when_copied(unsigned barrier);

// ---------------------------------------------------------------- tensor cores

enum class halves { ieee, bfloat };

// d (16 x 8) += a (16 x 16) b (16 x 8) of a wave, with the register layout of mma.m16n8k16.
void wave_product(float* d, const unsigned* a, const unsigned* b, halves kind);
// ldmatrix.x4: four cores of 8 x 8; each lane gives the address of a row; transposed with .trans.
void load_cores(unsigned* b, unsigned row, bool transposed);
// d (64 x columns) (+)= a (64 x 16) b of a warpgroup: registers by address, and operands in shared
// memory by descriptors; the rows of b may be along the dimension of 16.
struct product {
  float* d;
  const unsigned* a; // or null, if it is in shared memory
  unsigned long long of_a, of_b;
  int columns;
  bool add, transposed;
  halves kind;
};
// It is carried out at the wait: until then registers are read and written by address.
void ask_product(const product& asked);
void commit_products();
// Waits for all but the last groups that were committed.
void wait_for_products(int left);

// ---------------------------------------------------------------- shared memory

// Shared memory holds garbage when a block begins, as on a GPU. Each program is one translation
// unit with its own static variables.
struct shared_place {
  void* data;
  unsigned long bytes;
  shared_place* next;
  shared_place(void* data, unsigned long bytes);
};
static shared_place* shared_places = nullptr;
inline shared_place::shared_place(void* data, unsigned long bytes)
    : data(data), bytes(bytes), next(shared_places) {
  __builtin_memset(data, 0xcd, bytes);
  shared_places = this;
}

template <class T, int N>
struct shared_array {
  alignas(16) unsigned char bytes[N * sizeof(T)];
  shared_place place{bytes, sizeof bytes};
  T (&cells()) [N] { return *reinterpret_cast<T(*)[N]>(bytes); }
};

// ---------------------------------------------------------------- launches

void run(long long blocks, int threads, int wave, shared_place* const* places, const void* body,
         void (*call)(const void*));

#if defined(WL_WARP)
// Runs the body in every work-item of every block.
template <class Body>
void launch(long long blocks, int threads, const Body& body) {
  run(blocks, threads, WL_WARP, &shared_places, &body,
      [](const void* it) { (*static_cast<const Body*>(it))(); });
}
#endif

} // namespace wl::lockstep

// ---------------------------------------------------------------- functions of CUDA

inline __attribute__((always_inline)) int __syncthreads_or(int vote) {
  return wl::lockstep::barrier_or(vote != 0);
}
inline __attribute__((always_inline)) void __syncwarp() { wl::lockstep::wave_barrier(); }
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long both = (unsigned long long)(y) << 32 | x;
  unsigned made = 0;
  for (int i = 0; i < 4; ++i)
    made |= unsigned(both >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  return made;
}
