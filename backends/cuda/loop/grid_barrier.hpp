// Barriers and sums over blocks that are all resident: a whole grid with one block for each
// multiprocessor (a cooperative launch), or a cluster.
//
// A block stores its value into its mailbox as words of 4 bytes, each next to a flag with the
// number of the barrier. Other blocks poll the mailbox until they read that flag. So a sum over the
// grid takes a write and a read, without atomics, and all blocks add up the same numbers in the
// same order.
#pragma once
#include "simt/spmv.hpp"

namespace wl {

constexpr int WAVES = WL_BLOCK / WL_WARP;
static_assert(WAVES <= WL_WARP, "a wave holds the sums of all waves");

// Two sums that share a barrier.
template <class A, class B>
struct both {
  A first;
  B second;
  WL_DEVICE both& operator+=(const both& o) {
    first += o.first;
    second += o.second;
    return *this;
  }
};

// No work for the work-item that runs while the others wait.
struct idle {
  static constexpr bool works = false;
  WL_DEVICE void operator()() const {}
};
template <class L>
struct work_meanwhile {
  static constexpr bool works = true;
  L work;
  WL_DEVICE void operator()() const { work(); }
};
template <class L>
WL_DEVICE work_meanwhile<L> meanwhile(const L& work) {
  return {work};
}
// The work-item that runs the work is in the last wave, which has the least work in a sum.
WL_DEVICE bool works_meanwhile(const item& it) { return it.thread() == WL_BLOCK - WL_WARP; }

#if defined(WL_CLUSTER)
// A cluster of blocks (compute capability 9.0) has a barrier in hardware, and its blocks write into
// one another's shared memory.
struct grid_barrier {
  u64* mailboxes;
  u32 number;
};

WL_DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
WL_DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }
WL_DEVICE void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\n"
               "barrier.cluster.wait.acquire;" ::
                   : "memory");
}

// Stores a word at `address` of the shared memory of block `rank`.
WL_DEVICE void store_remote_word(const void* address, int rank, u32 word) {
  const u32 local = u32(__cvta_generic_to_shared(address));
  asm volatile("{.reg .u32 remote;\n"
               " mapa.shared::cluster.u32 remote, %0, %1;\n"
               " st.shared::cluster.u32 [remote], %2;}" ::"r"(local),
               "r"(rank), "r"(word)
               : "memory");
}

template <class S>
WL_DEVICE void store_remote(int rank, S* address, const S& value) {
  const auto bits = __builtin_bit_cast(words_of<S>, value);
  for (int w = 0; w < int(sizeof(S) / sizeof(i32)); ++w)
    store_remote_word(reinterpret_cast<const i32*>(address) + w, rank, u32(bits.word[w]));
}

template <bool PUBLISH, class R, class S, class F, class W = idle>
WL_DEVICE void add_up(const item& it, grid_barrier& m, S value, const F& finish,
                      const W& work = {}) {
  WL_SHARED(S, of_wave, WAVES);
  WL_SHARED(S, received, 2 * WL_CLUSTER);
  S* const mailboxes = received + (m.number++ & 1) * WL_CLUSTER;
  value = sum_in_first_wave(it, value, of_wave);
  if (it.thread() < WL_CLUSTER)
    store_remote(lane_of(it), &mailboxes[it.block()], value);
  if constexpr (W::works) {
    cluster_arrive();
    if (works_meanwhile(it))
      work();
    cluster_wait();
    it.barrier();
  } else {
    cluster_sync();
  }
  if (it.thread() == 0) {
    S sum = mailboxes[0];
    for (int b = 1; b < WL_CLUSTER; ++b)
      sum += mailboxes[b];
    finish(sum);
  }
  it.barrier();
}

// totals[i] = the sum of parts[i][wave] over all waves of all blocks, for i < many. A sum takes one
// lane for each of its numbers, so that a wave computes several sums at once.
template <class T>
WL_DEVICE void add_up_many(const item& it, grid_barrier& m, i64 many, const T* parts, T* totals,
                           T* received, u64*) {
  constexpr int near = WAVES, far = WL_CLUSTER;
  static_assert(WL_WARP % near == 0 && WL_WARP % far == 0, "sums divide the wave");
  it.barrier();
  for (i64 first = 0; first < many; first += WL_BLOCK / near) {
    const i64 i = first + it.thread() / near;
    const T value = sum_of_lanes<near>(it, i < many ? parts[i * near + it.thread() % near] : T{});
    if (i < many)
      for (int b = it.thread() % near; b < WL_CLUSTER; b += near)
        store_remote(b, &received[i * WL_CLUSTER + it.block()], value);
  }
  ++m.number;
  cluster_sync();
  for (i64 first = 0; first < many; first += WL_BLOCK / far) {
    const i64 i = first + it.thread() / far;
    const T total = sum_of_lanes<far>(it, i < many ? received[i * far + it.thread() % far] : T{});
    if (i < many && it.thread() % far == 0)
      totals[i] = total;
  }
  it.barrier();
}

WL_DEVICE void grid_sync(const item&, grid_barrier&) { cluster_sync(); }

// No block writes to the shared memory of a block that has not started.
WL_DEVICE void begin_barriers() { cluster_sync(); }

#elif defined(WL_LOCKSTEP)
// Emulated blocks run one after the other: the grid is one block.
struct grid_barrier {
  u64* mailboxes;
  u32 number;
};

template <bool PUBLISH, class R, class S, class F, class W = idle>
WL_DEVICE void add_up(const item& it, grid_barrier& m, S value, const F& finish,
                      const W& work = {}) {
  WL_SHARED(S, of_wave, WAVES);
  ++m.number;
  value = sum_in_first_wave(it, value, of_wave);
  if (works_meanwhile(it))
    work();
  if constexpr (W::works)
    it.barrier();
  if (it.thread() == 0)
    finish(value);
  it.barrier();
}

template <class T>
WL_DEVICE void add_up_many(const item& it, grid_barrier& m, i64 many, const T* parts, T* totals, T*,
                           u64*) {
  ++m.number;
  it.barrier();
  for (i64 i = wave_of(it); i < many; i += WAVES) {
    const T total =
        sum_of_lanes<WL_WARP>(it, lane_of(it) < WAVES ? parts[i * WAVES + lane_of(it)] : T{});
    if (lane_of(it) == 0)
      totals[i] = total;
  }
  it.barrier();
}

WL_DEVICE void grid_sync(const item& it, grid_barrier&) { it.barrier(); }
WL_DEVICE void begin_barriers() {}

#else
struct grid_barrier {
  u64* mailboxes; // double-buffered: words are not overwritten before all blocks have read them
  u32 number;

  // The mailboxes of the next barrier: LARGEST words a block.
  static constexpr int LARGEST = 16;
  WL_DEVICE u64* next(const item& it) {
    ++number;
    return mailboxes + (number & 1) * it.blocks() * LARGEST;
  }
};

// fence() would be sequentially consistent, which costs more and is not needed here.
WL_DEVICE void release_or_acquire() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

// Two words, each with its flag.
struct flagged {
  u64 first, second;
};
template <class S>
constexpr int pairs_of = (sizeof(S) / sizeof(i32) + 1) / 2;

WL_DEVICE flagged load_flagged(const u64* address) {
  flagged found;
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(found.first), "=l"(found.second)
               : "l"(address)
               : "memory");
  return found;
}
WL_DEVICE bool has_arrived(const flagged& found, u32 number) {
  return u32(found.first >> 32) == number && u32(found.second >> 32) == number;
}

template <class S>
WL_DEVICE void store_flagged(u64* address, const S& value, u32 number) {
  constexpr int words = sizeof(S) / sizeof(i32);
  const auto bits = __builtin_bit_cast(words_of<S>, value);
  for (int p = 0; p < pairs_of<S>; ++p) {
    const u64 first = u64(number) << 32 | u32(bits.word[2 * p]);
    const u64 second = u64(number) << 32 | (2 * p + 1 < words ? u32(bits.word[2 * p + 1]) : 0u);
    asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(address + 2 * p), "l"(first),
                 "l"(second)
                 : "memory");
  }
}

// The sum of all blocks' mailboxes, returned to each lane of a wave. A lane polls several mailboxes
// at once: one after the other, each would take a round trip to the cache.
template <class S>
WL_DEVICE S sum_of_mailboxes(const item& it, const u64* mailboxes, u32 number) {
  constexpr int words = sizeof(S) / sizeof(i32), pairs = pairs_of<S>, W = WL_WARP;
  constexpr int ahead = pairs > 1 ? 2 : 5; // an H200 has 132 multiprocessors
  S sum{};
  for (i64 first = lane_of(it); first < it.blocks(); first += ahead * W) {
    flagged found[ahead][pairs];
    bool arrived[ahead];
#pragma unroll
    for (int u = 0; u < ahead; ++u)
      arrived[u] = first + u * W >= it.blocks();
    bool all;
    do {
#pragma unroll
      for (int u = 0; u < ahead; ++u)
        if (!arrived[u])
#pragma unroll
          for (int p = 0; p < pairs; ++p)
            found[u][p] = load_flagged(mailboxes + ((first + u * W) * pairs + p) * 2);
      all = true;
#pragma unroll
      for (int u = 0; u < ahead; ++u)
        if (!arrived[u]) {
          arrived[u] = true;
#pragma unroll
          for (int p = 0; p < pairs; ++p)
            arrived[u] = arrived[u] && has_arrived(found[u][p], number);
          all = all && arrived[u];
        }
    } while (!all);
#pragma unroll
    for (int u = 0; u < ahead; ++u)
      if (first + u * W < it.blocks()) {
        words_of<S> bits;
#pragma unroll
        for (int p = 0; p < pairs; ++p) {
          bits.word[2 * p] = i32(u32(found[u][p].first));
          if (2 * p + 1 < words)
            bits.word[2 * p + 1] = i32(u32(found[u][p].second));
        }
        sum += __builtin_bit_cast(S, bits);
      }
  }
  return sum_of_lanes<W>(it, sum);
}

// The largest number of sums that every block adds up for itself: two for each of its waves.
constexpr int DIRECT_SUMS = 2 * WAVES;

// Eight bytes of a sum: one double or two floats.
template <class R>
struct unit {
  R value[8 / sizeof(R)];
  WL_DEVICE unit& operator+=(const unit& o) {
    for (int i = 0; i < int(8 / sizeof(R)); ++i)
      value[i] += o.value[i];
    return *this;
  }
};
// Calls `finish` with the sum over the grid, in one work-item of every block. Its writes are
// visible to its block afterwards. Another work-item runs `work` before that. With PUBLISH, writes
// of all work-items before the barrier are visible to all work-items after it. S consists of
// numbers R; each wave adds up eight bytes of it, because one wave that added up all of them would
// leave too few registers for the vectors.
template <bool PUBLISH, class R, class S, class F, class W = idle>
WL_DEVICE void add_up(const item& it, grid_barrier& m, S value, const F& finish,
                      const W& work = {}) {
  constexpr int words = sizeof(S) / sizeof(i32), units = pairs_of<S>;
  static_assert(2 * units <= grid_barrier::LARGEST && units <= WAVES, "a sum fits a mailbox");
  WL_SHARED(S, of_wave, WAVES);
  WL_SHARED(unit<R>, received, units);
  u64* const mailboxes = m.next(it);
  value = sum_in_first_wave(it, value, of_wave);
  if (it.thread() == 0) {
    if constexpr (PUBLISH)
      release_or_acquire();
    const auto bits = __builtin_bit_cast(words_of<S>, value);
    for (int u = 0; u < units; ++u) {
      const words_of<unit<R>> two{{bits.word[2 * u], 2 * u + 1 < words ? bits.word[2 * u + 1] : 0}};
      store_flagged(mailboxes + (u * it.blocks() + it.block()) * 2, two, m.number);
    }
  }
  if (works_meanwhile(it))
    work();
  const int mine = wave_of(it);
  if (mine < units) {
    const unit<R> total =
        sum_of_mailboxes<unit<R>>(it, mailboxes + mine * it.blocks() * 2, m.number);
    if constexpr (PUBLISH)
      release_or_acquire();
    if (lane_of(it) == 0)
      received[mine] = total;
  }
  if constexpr (units > 1 || W::works)
    it.barrier();
  if (it.thread() == 0) {
    words_of<S> total;
    for (int u = 0; u < units; ++u) {
      const auto two = __builtin_bit_cast(words_of<unit<R>>, received[u]);
      total.word[2 * u] = two.word[0];
      if (2 * u + 1 < words)
        total.word[2 * u + 1] = two.word[1];
    }
    finish(__builtin_bit_cast(S, total));
  }
  it.barrier();
}

// Polls the mailbox of one block and returns its value.
template <class S>
WL_DEVICE S poll(const u64* address, u32 number) {
  constexpr int words = sizeof(S) / sizeof(i32), pairs = pairs_of<S>;
  words_of<S> bits;
#pragma unroll
  for (int p = 0; p < pairs; ++p) {
    flagged found;
    do
      found = load_flagged(address + 2 * p);
    while (!has_arrived(found, number));
    bits.word[2 * p] = i32(u32(found.first));
    if (2 * p + 1 < words)
      bits.word[2 * p + 1] = i32(u32(found.second));
  }
  return __builtin_bit_cast(S, bits);
}

// totals[i] = the sum of parts[i][wave] over all waves of all blocks, for i < many. There must be
// another barrier between two calls, because they use the same mailboxes.
//
// If there are many sums, one block adds up each sum and stores the total for all blocks. This
// takes one more round trip to the cache. If every block added up all of them, it would take 2.5
// microseconds more for 28 sums at 32^3 (H200).
template <class T>
WL_DEVICE void add_up_many(const item& it, grid_barrier& m, i64 many, const T* parts, T* totals, T*,
                           u64* mailboxes) {
  constexpr int distance = 2 * pairs_of<T>;
  static_assert(WL_WARP % WAVES == 0, "a wave has several sums at once");
  const auto address = [&](i64 i, i64 b) {
    return mailboxes + (i * (it.blocks() + 1) + b) * distance;
  };
  ++m.number;
  it.barrier();
  for (i64 first = 0; first < many; first += WL_BLOCK / WAVES) {
    const i64 i = first + it.thread() / WAVES;
    const T value =
        sum_of_lanes<WAVES>(it, i < many ? parts[i * WAVES + it.thread() % WAVES] : T{});
    if (i < many && it.thread() % WAVES == 0)
      store_flagged(address(i, it.block()), value, m.number);
  }
  if (many <= DIRECT_SUMS) {
    for (i64 i = wave_of(it); i < many; i += WAVES) {
      const T total = sum_of_mailboxes<T>(it, address(i, 0), m.number);
      if (lane_of(it) == 0)
        totals[i] = total;
    }
  } else {
    for (i64 i = it.block() + wave_of(it) * it.blocks(); i < many; i += WAVES * it.blocks()) {
      const T total = sum_of_mailboxes<T>(it, address(i, 0), m.number);
      if (lane_of(it) == 0)
        store_flagged(address(i, it.blocks()), total, m.number);
    }
    for (i64 i = it.thread(); i < many; i += WL_BLOCK)
      totals[i] = poll<T>(address(i, it.blocks()), m.number);
  }
  it.barrier();
}

// Writes of all work-items before the barrier are visible to all after it.
WL_DEVICE void grid_sync(const item& it, grid_barrier& m) {
  u64* const mailboxes = m.next(it);
  it.barrier();
  if (wave_of(it) == 0) {
    if (lane_of(it) == 0) {
      release_or_acquire();
      store_flagged(mailboxes + it.block() * 2, 0, m.number);
    }
    sum_of_mailboxes<i32>(it, mailboxes, m.number);
    release_or_acquire();
  }
  it.barrier();
}

WL_DEVICE void begin_barriers() {}
#endif

} // namespace wl
