// Blocks that wait for one another: all of a grid at once on the device, one a multiprocessor (a
// cooperative launch).
//
// What a block has to say goes out in words of 4 bytes with the number of the meeting beside each,
// in one store of 8 bytes; whoever waits reads until it sees that number. So a sum over the grid
// takes a write and a read, without atomics, and all blocks add up the same numbers in the same
// order.
#pragma once
#include "spmv.hpp"

namespace wl {

#if defined(WL_CLUSTER)
// A cluster of blocks (compute capability 9.0) meets in hardware, and its blocks write into one
// another's shared memory.
struct meeting {
  u64* posts;
  u32 number;
};

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

template <bool PUBLISH, class S>
WL_DEVICE S sum_of_grid(const item& it, meeting& m, S value) {
  WL_SHARED(words_of<S>, heard, 2 * WL_CLUSTER);
  words_of<S>* const room = heard + (m.number++ & 1) * WL_CLUSTER;
  value = sum_of_block(it, value);
  if (it.thread() < WL_CLUSTER) {
    const auto said = __builtin_bit_cast(words_of<S>, value);
    for (int w = 0; w < int(sizeof(S) / sizeof(i32)); ++w)
      write_there(&room[it.block()].word[w], it.thread(), u32(said.word[w]));
  }
  meet();
  S sum = __builtin_bit_cast(S, room[0]);
  for (int b = 1; b < WL_CLUSTER; ++b)
    sum += __builtin_bit_cast(S, room[b]);
  return sum;
}

WL_DEVICE void wait_for_all(const item&, meeting&) { meet(); }

// Nobody writes to a block that has not begun.
WL_DEVICE void begin_meetings() { meet(); }

#else
struct meeting {
  u64* posts; // two rooms, so that nobody's words are overwritten before all have read them
  u32 number;

  // The room of the next meeting: LARGEST words a block.
  static constexpr int LARGEST = 8;
  WL_DEVICE u64* room(const item& it) {
    ++number;
    return posts + (number & 1) * it.blocks() * LARGEST;
  }
};

WL_DEVICE void post(u64* place, u32 word, u32 number) {
  const u64 both = u64(number) << 32 | word;
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(place), "l"(both) : "memory");
}
WL_DEVICE u32 await_post(const u64* place, u32 number) {
  u64 both;
  do {
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(both) : "l"(place) : "memory");
  } while (u32(both >> 32) != number);
  return u32(both);
}

// The sum over the grid, in every work-item. With PUBLISH, what work-items wrote before is seen by
// all after.
template <bool PUBLISH, class S>
WL_DEVICE S sum_of_grid(const item& it, meeting& m, S value) {
  constexpr int words = sizeof(S) / sizeof(u32);
  static_assert(words <= meeting::LARGEST, "a sum fits the room");
  u64* const room = m.room(it);
  value = sum_of_block(it, value);
  if (it.thread() == 0) {
    if constexpr (PUBLISH)
      fence();
    const auto said = __builtin_bit_cast(words_of<S>, value);
    for (int w = 0; w < words; ++w)
      post(room + it.block() * meeting::LARGEST + w, u32(said.word[w]), m.number);
  }
  S heard{};
  for (i64 b = it.thread(); b < it.blocks(); b += WL_BLOCK) {
    words_of<S> said;
    for (int w = 0; w < words; ++w)
      said.word[w] = i32(await_post(room + b * meeting::LARGEST + w, m.number));
    heard += __builtin_bit_cast(S, said);
  }
  if constexpr (PUBLISH)
    fence();
  return sum_of_block(it, heard);
}

// Everything that was written before is seen by all after.
WL_DEVICE void wait_for_all(const item& it, meeting& m) {
  u64* const room = m.room(it);
  it.barrier();
  if (it.thread() == 0) {
    fence();
    post(room + it.block() * meeting::LARGEST, 0, m.number);
  }
  for (i64 b = it.thread(); b < it.blocks(); b += WL_BLOCK)
    await_post(room + b * meeting::LARGEST, m.number);
  fence();
  it.barrier();
}

WL_DEVICE void begin_meetings() {}
#endif

// The functor of a step that others follow in the same kernel: every block finishes its own copy of
// the column.
template <bool PUBLISH, class F>
struct then_together {
  F f;
  meeting& m;
  typename F::column_state state;
  typename F::sum sum;

  WL_DEVICE then_together(const F& functor, meeting& all)
      : f(functor), m(all), state(functor.column(0)), sum{} {}
  WL_DEVICE void row(i64 i) {
    if (state.active)
      sum += f(i, 0, state);
  }
  WL_DEVICE void close(const item& it) {
    if constexpr (has_sum<F>) {
      sum = sum_of_grid<PUBLISH>(it, m, sum);
      if (it.thread() == 0 && state.active)
        f.finish(0, sum);
      it.barrier();
    }
  }
};

// A function of the row as something to be indexed.
template <class L>
struct by_index {
  L function;
  WL_DEVICE auto operator[](i64 i) const { return function(i); }
};
template <class L>
WL_DEVICE by_index<L> indexed(const L& function) {
  return {function};
}

// A row of a vector that is formed while it is gathered is stored before anything else is done with
// it.
template <class T, class V, class E>
struct storing {
  T* target;
  const V& values;
  E after;
  WL_DEVICE void row(i64 i) {
    target[i] = values[i];
    after.row(i);
  }
  WL_DEVICE void close(const item& it) { after.close(it); }
};
template <class T, class V, class E>
WL_DEVICE storing<T, V, E> stored(T* target, const V& values, const E& after) {
  return {target, values, after};
}

// target = source, each work-item its own rows.
template <class T>
struct copying {
  T* target;
  const T* source;
  WL_DEVICE void row(i64 i) { target[i] = source[i]; }
  WL_DEVICE void close(const item&) {}
};

template <class E>
WL_DEVICE void each_row(const item& it, i64 n, E after) {
  const i64 step = it.blocks() * WL_BLOCK;
  for (i64 i = it.block() * WL_BLOCK + it.thread(); i < n; i += step)
    after.row(i);
  after.close(it);
}

// A work-item a row, as the other steps have them; for rows that are short and in the caches.
template <class T, class I, class X, class E>
WL_DEVICE void csr_rows(const item& it, i64 m, const I* indptr, const I* indices, const T* data,
                        const X& x, T* y, T alpha, T beta, E after) {
  const i64 step = it.blocks() * WL_BLOCK;
  for (i64 i = it.block() * WL_BLOCK + it.thread(); i < m; i += step) {
    T sum{};
#pragma unroll 4
    for (I e = indptr[i]; e < indptr[i + 1]; ++e)
      sum += data[e] * x[indices[e]];
    store(y[i], sum, alpha, beta);
    after.row(i);
  }
  after.close(it);
}

} // namespace wl
