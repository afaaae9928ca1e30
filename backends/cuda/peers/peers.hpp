// Sums and ghost rows of GPUs that store into each other's memory.
//
// Each GPU of the group is a member and has a window, into which the other members store. A number
// is sent in words of 64 bits: one half holds bits of the number, the other half the turn in which
// it is sent. So a word itself tells that it has arrived, and no fence is needed. The words of even
// and odd turns alternate: a member posts turn t + 2 after it has read turn t + 1 of all others, so
// after all of them have read turn t.
//
// A wait ends when the host sets `stop`. Its result is then invalid.
#pragma once
#include "unified/dialect.hpp"
#include "unified/halves.hpp"
#include "simt/lanes.hpp"

namespace wl {

constexpr int MEMBERS = 16, COLUMNS = 32, WORDS = 12, NUMBERS = 1024;

struct window {
  u64 posts[COLUMNS][2][MEMBERS][WORDS][2];
  u64 numbers[2][MEMBERS][NUMBERS][2];
  u32 free[MEMBERS];    // the exchange for which a member's ghosts may receive rows of this one
  u32 arrived[MEMBERS]; // the exchange for which a member has stored its rows here
  // the same for exchanges within products, numbered by the turns of column 0
  u32 free_in_product[MEMBERS], arrived_in_product[MEMBERS];
};

// One member's view of the group, in its own memory.
struct peers {
  window* windows[MEMBERS]; // by rank, including its own
  const i32* stop;          // in host memory
  i32 rank, size;
  u32 turns[COLUMNS];
  u32 turn_of_numbers, exchanges;
  i32 counter;
  // whether the members have synchronized since ghosts were stored: then all have read them
  u32 met;
};

#if defined(WL_CUDA)
WL_DEVICE u64 load_word(const u64* place) {
  u64 word;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(place) : "memory");
  return word;
}
WL_DEVICE void store_word(u64* place, u64 word) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(place), "l"(word) : "memory");
}
WL_DEVICE u32 load_flag(const u32* place) {
  u32 flag;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(flag) : "l"(place) : "memory");
  return flag;
}
WL_DEVICE void store_flag(u32* place, u32 flag) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(place), "r"(flag) : "memory");
}
WL_DEVICE void fence_system() { __threadfence_system(); }
#else
WL_DEVICE u64 load_word(const u64* place) { return *static_cast<const volatile u64*>(place); }
WL_DEVICE void store_word(u64* place, u64 word) { *place = word; }
WL_DEVICE u32 load_flag(const u32* place) { return *static_cast<const volatile u32*>(place); }
WL_DEVICE void store_flag(u32* place, u32 flag) { *place = flag; }
WL_DEVICE void fence_system() {}
#endif

// Reads `stop` from the host once in 4096 reads of the window, because one such read takes about as
// long as a thousand reads of the window.
WL_DEVICE bool gives_up(const peers& group, u32 looks) {
  return looks % 4096 == 0 && *static_cast<const volatile i32*>(group.stop) != 0;
}

WL_DEVICE u32 await_word(const peers& group, const u64* place, u32 turn) {
  u64 word = load_word(place);
  for (u32 looks = 1; u32(word >> 32) != turn && !gives_up(group, looks); ++looks)
    word = load_word(place);
  return u32(word);
}

// Waits until a flag has reached a turn.
WL_DEVICE void await_flag(const peers& group, const u32* place, u32 turn) {
  for (u32 looks = 1; i32(load_flag(place) - turn) < 0 && !gives_up(group, looks); ++looks) {
  }
}

WL_DEVICE void post(u64* to, float number, u32 turn) {
  store_word(to, __builtin_bit_cast(u32, number) | u64(turn) << 32);
}
WL_DEVICE void post(u64* to, double number, u32 turn) {
  const u64 bits = __builtin_bit_cast(u64, number);
  store_word(to, u32(bits) | u64(turn) << 32);
  store_word(to + 1, bits >> 32 | u64(turn) << 32);
}
WL_DEVICE void await(const peers& group, const u64* from, float& number, u32 turn) {
  number = __builtin_bit_cast(float, await_word(group, from, turn));
}
WL_DEVICE void await(const peers& group, const u64* from, double& number, u32 turn) {
  const u32 low = await_word(group, from, turn), high = await_word(group, from + 1, turn);
  number = __builtin_bit_cast(double, low | u64(high) << 32);
}

// A functor with sums over all members, added in the order of ranks: each member gets the same
// bits. The work-item that finishes a column posts the sums and waits.
template <class F, class R>
struct meeting : F {
  peers* group;

  WL_DEVICE void finish(i64 c, typename F::sum own) const {
    peers& g = *group;
    const u32 turn = ++g.turns[c];
    g.met = 1;
    i64 word = 0;
    each_number(own, [&](R& x) {
      for (int member = 0; member < g.size; ++member)
        post(g.windows[member]->posts[c][turn % 2][g.rank][word], x, turn);
      ++word;
    });
    const auto& posts = g.windows[g.rank]->posts[c][turn % 2];
    typename F::sum total{};
    for (int member = 0; member < g.size; ++member) {
      typename F::sum part{};
      word = 0;
      each_number(part, [&](R& x) { await(g, posts[member][word++], x, turn); });
      if (member == 0)
        total = part;
      else
        total += part;
    }
    F::finish(c, total);
  }
};

enum total_kind { SUM = 0, LARGEST = 1, NORM = 2 };

// Numbers of columns that are replaced by totals of a kind: number i belongs to column i / width %
// columns.
template <class R>
struct summands {
  R* numbers;
  i64 count, kind, width;
};

// Marks the running columns in which a number has fallen below a fraction of another number.
template <class R>
WL_DEVICE void mark_shrunk(const item& it, i64 columns, const u8* stop, const R* after,
                           const R* before, double part, u8* marks) {
  for (i64 c = it.thread(); c < columns; c += WL_BLOCK)
    marks[c] = stop[c] == 0 && after[c] < R(part) * before[c];
}

// The totals of two arrays in one message of at most NUMBERS numbers, by one block. If there are
// marks, columns without a mark keep their numbers, and no member sends a message if no column is
// marked: all members have the same marks.
template <class R>
WL_DEVICE void make_totals(const item& it, peers* group, const summands<R>& first,
                           const summands<R>& second, const u8* marks, i64 columns) {
  if (marks) {
    bool any = false;
    for (i64 c = 0; c < columns; ++c)
      any = any || marks[c];
    if (!any)
      return;
  }
  peers& g = *group;
  const u32 turn = g.turn_of_numbers + 1;
  it.barrier();
  for (i64 i = it.thread(); i < first.count + second.count; i += WL_BLOCK) {
    const R own = i < first.count ? first.numbers[i] : second.numbers[i - first.count];
    for (int member = 0; member < g.size; ++member)
      post(g.windows[member]->numbers[turn % 2][g.rank][i], own, turn);
  }
  const auto& posts = g.windows[g.rank]->numbers[turn % 2];
  for (i64 i = it.thread(); i < first.count + second.count; i += WL_BLOCK) {
    const summands<R>& of = i < first.count ? first : second;
    const i64 at = i < first.count ? i : i - first.count;
    R total{};
    for (int member = 0; member < g.size; ++member) {
      R part;
      await(g, posts[member][i], part, turn);
      if (member == 0)
        total = of.kind == NORM ? part * part : part;
      else if (of.kind == SUM)
        total += part;
      else if (of.kind == NORM)
        total += part * part;
      else if (!(part <= total) && total == total)
        total = part;
    }
    if (!marks || marks[at / of.width % columns])
      of.numbers[at] = of.kind == NORM ? square_root(total) : total;
  }
  it.barrier();
  if (it.thread() == 0) {
    g.turn_of_numbers = turn;
    g.met = 1;
  }
}

// Rows begin .. end of the sent rows, for one member.
struct target {
  i64 member, ghosts, begin, end; // ghosts: the address at that member of the first of them
};

// The rows of x that are sent to the ghosts of other members, and the members that send rows here.
template <class T, class I>
struct exchange {
  peers* group;
  i64 targets;
  const target* to;
  i64 sources;
  const i64* from;
  const I* index;
  const T* x;
  i64 distance;
};

// Stores rows of x into the ghosts of other members, by several blocks; returns true in the last of
// them. The ghosts are free once the members have synchronized. If they have not, each member
// reports when its own ghosts are free: the kernels that read them precede this kernel on the
// stream.
template <class T, class I>
WL_DEVICE bool store_rows(const item& it, const exchange<T, I>& e, i64 blocks, i64 k, u32 turn,
                          u32 (window::*free)[MEMBERS]) {
  peers& g = *e.group;
  const int t = it.thread();
  if (!g.met) {
    if (it.block() == 0 && t < e.sources)
      store_flag(&(g.windows[e.from[t]]->*free)[g.rank], turn);
    if (t < e.targets)
      await_flag(g, &(g.windows[g.rank]->*free)[e.to[t].member], turn);
    it.barrier();
  }
  const i64 first = it.block() * WL_BLOCK + t, step = blocks * WL_BLOCK;
  for (i64 target = 0; target < e.targets; ++target) {
    const i64 begin = e.to[target].begin, count = (e.to[target].end - begin) * k;
    T* const ghosts = reinterpret_cast<T*>(e.to[target].ghosts);
    for (i64 i = first; i < count; i += step)
      ghosts[i] = k == 1 ? e.x[e.index[begin + i] * e.distance]
                         : e.x[e.index[begin + i / k] * e.distance + i % k];
  }
  fence_system();
  return is_last_of(it, &g.counter, blocks);
}

// Tells the other members that their ghosts have arrived; called by one block.
template <class T, class I>
WL_DEVICE void tell_arrival(const item& it, const exchange<T, I>& e, u32 turn,
                            u32 (window::*arrived)[MEMBERS]) {
  peers& g = *e.group;
  fence_system();
  if (it.thread() < e.targets)
    store_flag(&(g.windows[e.to[it.thread()].member]->*arrived)[g.rank], turn);
}

// An exchange by a separate kernel, which ends when the rows of the other members have arrived.
template <class T, class I>
WL_DEVICE void exchange_rows(const item& it, const exchange<T, I>& e, i64 k) {
  peers& g = *e.group;
  const u32 turn = g.exchanges + 1;
  if (!store_rows(it, e, it.blocks(), k, turn, &window::free))
    return;
  tell_arrival(it, e, turn, &window::arrived);
  if (it.thread() < e.sources)
    await_flag(g, &g.windows[g.rank]->arrived[e.from[it.thread()]], turn);
  it.barrier();
  if (it.thread() == 0) {
    g.exchanges = turn;
    g.met = 0;
  }
}

// An epilogue that exchanges rows during the product of all rows. Its blocks first store rows at
// other members, then multiply the interior, rows begin .. end, and wait for the rows of other
// members before they multiply the rows around it.
//
// The epilogue E synchronizes with the other members at the end of the kernel, so that the turn of
// this synchronization numbers the exchange. No block may wait until another one has ended: all
// blocks are resident at once.
template <class E, class T, class I>
struct exchanging : E {
  const exchange<T, I>& rows;
  i64 begin, end, shift;
  u32 turn;
  bool arrived;

  WL_DEVICE exchanging(const item& it, const E& after, const exchange<T, I>& e, i64 first, i64 last,
                       i64 blocks)
      : E(after), rows(e), begin(first), end(last),
        shift((first + WL_BLOCK - 1) / WL_BLOCK * WL_BLOCK), turn(e.group->turns[0] + 1),
        arrived(e.sources == 0) {
    const i64 stores = blocks < it.blocks() ? blocks : it.blocks();
    if (it.block() < stores && store_rows(it, e, stores, 1, turn, &window::free_in_product))
      tell_arrival(it, e, turn, &window::arrived_in_product);
  }
  // The rows before the interior are processed last.
  WL_DEVICE i64 place(i64 at, i64 count) const {
    const i64 found = at + shift;
    return shift >= count ? at : found < count ? found : found - count;
  }
  WL_DEVICE void before(i64 first, i64 last) {
    if (arrived || (first >= begin && last <= end))
      return;
    const peers& g = *rows.group;
    for (i64 source = 0; source < rows.sources; ++source)
      await_flag(g, &g.windows[g.rank]->arrived_in_product[rows.from[source]], turn);
    arrived = true;
  }
};

} // namespace wl
