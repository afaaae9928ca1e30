// Blocks that wait for one another: all of a grid at once on the device, one a multiprocessor (a
// cooperative launch), or a cluster.
//
// What a block has to say goes out in words of 4 bytes with the number of the barrier beside each;
// whoever waits reads until it sees that number. So a sum over the grid takes a write and a read,
// without atomics, and all blocks add up the same numbers in the same order.
#pragma once
#include "spmv.hpp"

namespace wl {

constexpr int WAVES = WL_BLOCK / WL_WARP;
static_assert(WAVES <= WL_WARP, "a wave can hold what all waves have to say");

// The sum over the block, in the lanes of the first wave; the others have what is of no use. A
// block-wide barrier has been passed.
template <class S>
WL_DEVICE S sum_in_first_wave(const item& it, S value, S* of_wave) {
  value = sum_of_lanes<WL_WARP>(it, value);
  if (lane_of(it) == 0)
    of_wave[wave_of(it)] = value;
  it.barrier();
  if (wave_of(it) == 0)
    value = sum_of_lanes<WL_WARP>(it, lane_of(it) < WAVES ? of_wave[lane_of(it)] : S{});
  return value;
}

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

// What a work-item does while others wait, if there is nothing to do.
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
// The work-item that does it: of the last wave, which has the least to do with a sum.
WL_DEVICE bool works_meanwhile(const item& it) { return it.thread() == WL_BLOCK - WL_WARP; }

#if defined(WL_CLUSTER)
// A cluster of blocks (compute capability 9.0) meets in hardware, and its blocks write into one
// another's shared memory.
struct grid_barrier {
  u64* mailboxes;
  u32 number;
};

WL_DEVICE void arrive() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
WL_DEVICE void wait_for_others() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }
WL_DEVICE void meet() {
  asm volatile("barrier.cluster.arrive.release;\n"
               "barrier.cluster.wait.acquire;" ::
                   : "memory");
}

// What is at `place` in my shared memory, in that of block `there`.
WL_DEVICE void write_there(const void* place, int there, u32 word) {
  const u32 mine = u32(__cvta_generic_to_shared(place));
  asm volatile("{.reg .u32 there;\n"
               " mapa.shared::cluster.u32 there, %0, %1;\n"
               " st.shared::cluster.u32 [there], %2;}" ::"r"(mine),
               "r"(there), "r"(word)
               : "memory");
}

template <class S>
WL_DEVICE void tell(int there, S* place, const S& value) {
  const auto said = __builtin_bit_cast(words_of<S>, value);
  for (int w = 0; w < int(sizeof(S) / sizeof(i32)); ++w)
    write_there(reinterpret_cast<const i32*>(place) + w, there, u32(said.word[w]));
}

template <bool PUBLISH, class R, class S, class F, class W = idle>
WL_DEVICE void add_up(const item& it, grid_barrier& m, S value, const F& finish,
                      const W& work = {}) {
  WL_SHARED(S, of_wave, WAVES);
  WL_SHARED(S, heard, 2 * WL_CLUSTER);
  S* const room = heard + (m.number++ & 1) * WL_CLUSTER;
  value = sum_in_first_wave(it, value, of_wave);
  if (it.thread() < WL_CLUSTER)
    tell(lane_of(it), &room[it.block()], value);
  if constexpr (W::works) {
    arrive();
    if (works_meanwhile(it))
      work();
    wait_for_others();
    it.barrier();
  } else {
    meet();
  }
  if (it.thread() == 0) {
    S sum = room[0];
    for (int b = 1; b < WL_CLUSTER; ++b)
      sum += room[b];
    finish(sum);
  }
  it.barrier();
}

// totals[i] = the sum of parts[i][wave] over all waves of all blocks, for i < many. A sum takes as
// many lanes as it has numbers, so that a wave has several at once.
template <class T>
WL_DEVICE void add_up_many(const item& it, grid_barrier& m, i64 many, const T* parts, T* totals,
                           T* heard, u64*) {
  constexpr int near = WAVES, far = WL_CLUSTER;
  static_assert(WL_WARP % near == 0 && WL_WARP % far == 0, "sums divide the wave");
  it.barrier();
  for (i64 first = 0; first < many; first += WL_BLOCK / near) {
    const i64 i = first + it.thread() / near;
    const T value = sum_of_lanes<near>(it, i < many ? parts[i * near + it.thread() % near] : T{});
    if (i < many)
      for (int b = it.thread() % near; b < WL_CLUSTER; b += near)
        tell(b, &heard[i * WL_CLUSTER + it.block()], value);
  }
  ++m.number;
  meet();
  for (i64 first = 0; first < many; first += WL_BLOCK / far) {
    const i64 i = first + it.thread() / far;
    const T total = sum_of_lanes<far>(it, i < many ? heard[i * far + it.thread() % far] : T{});
    if (i < many && it.thread() % far == 0)
      totals[i] = total;
  }
  it.barrier();
}

WL_DEVICE void wait_for_all(const item&, grid_barrier&) { meet(); }

// Nobody writes to a block that has not begun.
WL_DEVICE void begin_barriers() { meet(); }

#elif defined(WL_LOCKSTEP)
// Emulated blocks run one after the other: there is but one, which hears what it says.
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

WL_DEVICE void wait_for_all(const item& it, grid_barrier&) { it.barrier(); }
WL_DEVICE void begin_barriers() {}

#else
struct grid_barrier {
  u64* mailboxes; // two rooms, so that nobody's words are overwritten before all have read them
  u32 number;

  // The room of the next barrier: LARGEST words a block.
  static constexpr int LARGEST = 16;
  WL_DEVICE u64* room(const item& it) {
    ++number;
    return mailboxes + (number & 1) * it.blocks() * LARGEST;
  }
};

// fence() would be sequentially consistent, which costs more and is not needed.
WL_DEVICE void release_or_acquire() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

// Words in pairs, each word with its number.
struct numbered {
  u64 first, second;
};
template <class S>
constexpr int pairs_of = (sizeof(S) / sizeof(i32) + 1) / 2;

WL_DEVICE numbered look(const u64* place) {
  numbered found;
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(found.first), "=l"(found.second)
               : "l"(place)
               : "memory");
  return found;
}
WL_DEVICE bool has_come(const numbered& found, u32 number) {
  return u32(found.first >> 32) == number && u32(found.second >> 32) == number;
}

template <class S>
WL_DEVICE void post(u64* place, const S& value, u32 number) {
  constexpr int words = sizeof(S) / sizeof(i32);
  const auto said = __builtin_bit_cast(words_of<S>, value);
  for (int p = 0; p < pairs_of<S>; ++p) {
    const u64 first = u64(number) << 32 | u32(said.word[2 * p]);
    const u64 second = u64(number) << 32 | (2 * p + 1 < words ? u32(said.word[2 * p + 1]) : 0u);
    asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(place + 2 * p), "l"(first),
                 "l"(second)
                 : "memory");
  }
}

// The sum of what all blocks posted side by side, in each lane of a wave. What has not come is
// looked for all at once: one after the other, each would take a way to the cache and back. (Half
// the lanes for each of two sums took so many registers that others were spilled.)
template <class S>
WL_DEVICE S sum_of_mailboxes(const item& it, const u64* room, u32 number) {
  constexpr int words = sizeof(S) / sizeof(i32), pairs = pairs_of<S>, W = WL_WARP;
  constexpr int ahead = pairs > 1 ? 2 : 5; // an H200 has 132 multiprocessors
  S sum{};
  for (i64 first = lane_of(it); first < it.blocks(); first += ahead * W) {
    numbered found[ahead][pairs];
    bool come[ahead];
#pragma unroll
    for (int u = 0; u < ahead; ++u)
      come[u] = first + u * W >= it.blocks();
    bool all;
    do {
#pragma unroll
      for (int u = 0; u < ahead; ++u)
        if (!come[u])
#pragma unroll
          for (int p = 0; p < pairs; ++p)
            found[u][p] = look(room + ((first + u * W) * pairs + p) * 2);
      all = true;
#pragma unroll
      for (int u = 0; u < ahead; ++u)
        if (!come[u]) {
          come[u] = true;
#pragma unroll
          for (int p = 0; p < pairs; ++p)
            come[u] = come[u] && has_come(found[u][p], number);
          all = all && come[u];
        }
    } while (!all);
#pragma unroll
    for (int u = 0; u < ahead; ++u)
      if (first + u * W < it.blocks()) {
        words_of<S> said;
#pragma unroll
        for (int p = 0; p < pairs; ++p) {
          said.word[2 * p] = i32(u32(found[u][p].first));
          if (2 * p + 1 < words)
            said.word[2 * p + 1] = i32(u32(found[u][p].second));
        }
        sum += __builtin_bit_cast(S, said);
      }
  }
  return sum_of_lanes<W>(it, sum);
}

// Sums that every block adds up for itself: two for each of its waves.
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
// The sum over the grid goes to `finish`, in one work-item of every block, whose writes its block
// sees after; another one does `work` before that. With PUBLISH, what work-items wrote
// before is seen by all after. S consists of numbers R, which waves add up eight bytes each: one
// wave with all of them had no registers left for what it keeps of the vectors.
template <bool PUBLISH, class R, class S, class F, class W = idle>
WL_DEVICE void add_up(const item& it, grid_barrier& m, S value, const F& finish,
                      const W& work = {}) {
  constexpr int words = sizeof(S) / sizeof(i32), units = pairs_of<S>;
  static_assert(2 * units <= grid_barrier::LARGEST && units <= WAVES, "a sum fits the room");
  WL_SHARED(S, of_wave, WAVES);
  WL_SHARED(unit<R>, heard, units);
  u64* const room = m.room(it);
  value = sum_in_first_wave(it, value, of_wave);
  if (it.thread() == 0) {
    if constexpr (PUBLISH)
      release_or_acquire();
    const auto said = __builtin_bit_cast(words_of<S>, value);
    for (int u = 0; u < units; ++u) {
      const words_of<unit<R>> two{{said.word[2 * u], 2 * u + 1 < words ? said.word[2 * u + 1] : 0}};
      post(room + (u * it.blocks() + it.block()) * 2, two, m.number);
    }
  }
  if (works_meanwhile(it))
    work();
  const int mine = wave_of(it);
  if (mine < units) {
    const unit<R> total = sum_of_mailboxes<unit<R>>(it, room + mine * it.blocks() * 2, m.number);
    if constexpr (PUBLISH)
      release_or_acquire();
    if (lane_of(it) == 0)
      heard[mine] = total;
  }
  if constexpr (units > 1 || W::works)
    it.barrier();
  if (it.thread() == 0) {
    words_of<S> total;
    for (int u = 0; u < units; ++u) {
      const auto two = __builtin_bit_cast(words_of<unit<R>>, heard[u]);
      total.word[2 * u] = two.word[0];
      if (2 * u + 1 < words)
        total.word[2 * u + 1] = two.word[1];
    }
    finish(__builtin_bit_cast(S, total));
  }
  it.barrier();
}

// A word that one block says, when it comes.
template <class S>
WL_DEVICE S hear(const u64* place, u32 number) {
  constexpr int words = sizeof(S) / sizeof(i32), pairs = pairs_of<S>;
  words_of<S> said;
#pragma unroll
  for (int p = 0; p < pairs; ++p) {
    numbered found;
    do
      found = look(place + 2 * p);
    while (!has_come(found, number));
    said.word[2 * p] = i32(u32(found.first));
    if (2 * p + 1 < words)
      said.word[2 * p + 1] = i32(u32(found.second));
  }
  return __builtin_bit_cast(S, said);
}

// totals[i] = the sum of parts[i][wave] over all waves of all blocks, for i < many. Another barrier
// lies between two of these: they share a room.
//
// If there are many sums, each is added up by one block, which tells all: that is a way to the
// cache and back more, but every block adding up all of them took 2.5 microseconds more for 28 of
// them at 32^3 (H200).
template <class T>
WL_DEVICE void add_up_many(const item& it, grid_barrier& m, i64 many, const T* parts, T* totals, T*,
                           u64* room) {
  constexpr int distance = 2 * pairs_of<T>;
  static_assert(WL_WARP % WAVES == 0, "a wave has several sums at once");
  const auto place = [&](i64 i, i64 b) { return room + (i * (it.blocks() + 1) + b) * distance; };
  ++m.number;
  it.barrier();
  for (i64 first = 0; first < many; first += WL_BLOCK / WAVES) {
    const i64 i = first + it.thread() / WAVES;
    const T value =
        sum_of_lanes<WAVES>(it, i < many ? parts[i * WAVES + it.thread() % WAVES] : T{});
    if (i < many && it.thread() % WAVES == 0)
      post(place(i, it.block()), value, m.number);
  }
  if (many <= DIRECT_SUMS) {
    for (i64 i = wave_of(it); i < many; i += WAVES) {
      const T total = sum_of_mailboxes<T>(it, place(i, 0), m.number);
      if (lane_of(it) == 0)
        totals[i] = total;
    }
  } else {
    for (i64 i = it.block() + wave_of(it) * it.blocks(); i < many; i += WAVES * it.blocks()) {
      const T total = sum_of_mailboxes<T>(it, place(i, 0), m.number);
      if (lane_of(it) == 0)
        post(place(i, it.blocks()), total, m.number);
    }
    for (i64 i = it.thread(); i < many; i += WL_BLOCK)
      totals[i] = hear<T>(place(i, it.blocks()), m.number);
  }
  it.barrier();
}

// Everything that was written before is seen by all after.
WL_DEVICE void wait_for_all(const item& it, grid_barrier& m) {
  u64* const room = m.room(it);
  it.barrier();
  if (wave_of(it) == 0) {
    if (lane_of(it) == 0) {
      release_or_acquire();
      post(room + it.block() * 2, 0, m.number);
    }
    sum_of_mailboxes<i32>(it, room, m.number);
    release_or_acquire();
  }
  it.barrier();
}

WL_DEVICE void begin_barriers() {}
#endif

} // namespace wl
