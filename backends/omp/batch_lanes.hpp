// Systems of a batch in the lanes of vector registers: one thread iterates on several systems at
// once.
//
// Iterations run on interleaved arrays, which the steps process as columns. The member does
// everything else for one system at a time: the arrays of a system are copied to a lane when a
// cycle begins, and back when it ends. When a system has ended, the next system of the batch gets
// its lane. Lanes without a system compute with meaningless numbers, so that all lanes always
// execute the same steps and the sums of a lane have a fixed order.
#pragma once

#include <cstdint>
#include <vector>

#include "omp/batch.hpp"

namespace wl {

// An array of one system and the same array of all lanes.
struct LaneArray {
  std::byte *one, *lanes;
  i64 rows;    // elements of one system
  i64 item;    // bytes of an element
  bool leaves; // whether the array is read after the iterations of a cycle
};

// The interleaved arrays of a member.
struct BatchLanes {
  const Tape* iterate;
  i64 width;
  LaneArray values; // `one` is null: each system has a row of the values of the batch
  std::vector<LaneArray> arrays;
  u8* stop;
  i32* running;
};

namespace detail {

// An element as bytes: its array is aligned to the parts of a number, and the array `kept` is not
// aligned.
template <std::size_t ITEM>
void copy_strided(const std::byte* from, i64 from_stride, std::byte* to, i64 to_stride, i64 rows) {
  constexpr i64 item = ITEM;
  for (i64 i = 0; i < rows; ++i)
    std::memcpy(to + i * to_stride * item, from + i * from_stride * item, ITEM);
}

// Copies elements with distances in elements.
inline void copy_elements(i64 item, const std::byte* from, i64 from_stride, std::byte* to,
                          i64 to_stride, i64 rows) {
  switch (item) {
  case 1:
    return copy_strided<1>(from, from_stride, to, to_stride, rows);
  case 4:
    return copy_strided<4>(from, from_stride, to, to_stride, rows);
  case 8:
    return copy_strided<8>(from, from_stride, to, to_stride, rows);
  default:
    return copy_strided<16>(from, from_stride, to, to_stride, rows);
  }
}

// The lanes of one thread.
template <class R>
class LaneGroup {
public:
  LaneGroup(const BatchMember& member, const BatchLanes& lanes, const BatchSystems& systems,
            std::atomic<i64>& next)
      : m(member), l(lanes), s(systems), next_(next), steps_(member, systems),
        states_(static_cast<std::size_t>(lanes.width)) {
    i64 bytes = 0;
    for (const LaneArray& array : l.arrays)
      bytes += array.leaves ? array.rows * array.item : 0;
    for (Lane& lane : states_)
      lane.kept.resize(static_cast<std::size_t>(bytes));
  }

  // Solves systems until none is left.
  void solve() {
    *l.running = static_cast<i32>(l.width);
    for (i64 c = 0; c < l.width; ++c)
      fill(c);
    while (std::any_of(states_.begin(), states_.end(), [](const Lane& t) { return t.runs; })) {
      l.iterate->replay_stepwise([&] {
        if (*l.running != l.width)
          take_out_stopped();
      });
      if (interrupted())
        return;
      for (i64 c = 0; c < l.width; ++c)
        end_turn(c);
    }
  }

private:
  struct Lane {
    SystemState<R> system;
    i64 turns = 0;        // iterations that are left in its cycle
    bool runs = false;    // whether it has a system that iterates
    bool stopped = false; // whether the system has ended in this iteration; `kept` has its arrays
    std::vector<std::byte> kept;
  };

  // Copies the arrays of lanes that have just stopped, before later steps overwrite them.
  void take_out_stopped() {
    for (i64 c = 0; c < l.width; ++c) {
      if (l.stop[c] == 0)
        continue;
      Lane& lane = states_[c];
      if (lane.runs && !lane.stopped)
        take_out(c);
      l.stop[c] = 0;
    }
    *l.running = static_cast<i32>(l.width);
  }

  void take_out(i64 c) {
    std::byte* to = states_[c].kept.data();
    for (const LaneArray& array : l.arrays)
      if (array.leaves) {
        copy_elements(array.item, array.lanes + c * array.item, l.width, to, 1, array.rows);
        to += array.rows * array.item;
      }
    states_[c].stopped = true;
  }

  void end_turn(i64 c) {
    Lane& lane = states_[c];
    if (!lane.runs || (!lane.stopped && --lane.turns > 0))
      return;
    if (!lane.stopped)
      take_out(c);
    put_back(lane);
    if (!goes_on(c, steps_.close(lane.system, lane.turns)))
      fill(c);
  }

  // The arrays of a lane's system, among the arrays of the member.
  void put_back(const Lane& lane) {
    steps_.load_operands(lane.system.k);
    const std::byte* from = lane.kept.data();
    for (const LaneArray& array : l.arrays)
      if (array.leaves) {
        const i64 bytes = array.rows * array.item;
        std::memcpy(array.one, from, static_cast<std::size_t>(bytes));
        from += bytes;
      }
    *m.running = *m.stop == 0;
  }

  // Advances the system of a lane to its next iteration; false if it has ended.
  bool goes_on(i64 c, u8 code) {
    Lane& lane = states_[c];
    while (code == kGoesOn) {
      const i64 turns = steps_.open(lane.system);
      if (turns > 0) {
        put_in(c, turns);
        return true;
      }
      code = steps_.close(lane.system, turns);
    }
    s.codes[lane.system.k] = code;
    return false;
  }

  // Starts the next system of the batch that iterates, if there is one.
  void fill(i64 c) {
    Lane& lane = states_[c];
    lane.runs = false;
    for (i64 k; !interrupted() && (k = next_.fetch_add(1, std::memory_order_relaxed)) < s.count;)
      if (goes_on(c, steps_.enter(lane.system, k) ? kGoesOn : kUndecided))
        return;
  }

  void put_in(i64 c, i64 turns) {
    const i64 k = states_[c].system.k;
    copy_elements(l.values.item, s.values + s.matrix[k] * s.value_bytes, 1,
                  l.values.lanes + c * l.values.item, l.width, l.values.rows);
    for (const LaneArray& array : l.arrays)
      copy_elements(array.item, array.one, 1, array.lanes + c * array.item, l.width, array.rows);
    *l.running = static_cast<i32>(l.width);
    states_[c].turns = turns;
    states_[c].runs = true;
    states_[c].stopped = false;
  }

  const BatchMember& m;
  const BatchLanes& l;
  const BatchSystems& s;
  std::atomic<i64>& next_;
  const SystemSteps<R> steps_;
  std::vector<Lane> states_;
};

} // namespace detail

// Solves all systems. A thread starts the next system as soon as it has solved one. `lanes` has an
// item for each member, or is empty.
template <class R>
void solve_systems(const std::vector<BatchMember>& members, const std::vector<BatchLanes>& lanes,
                   const BatchSystems& systems) {
  std::atomic<i64> next{0};
  for_parts(static_cast<int>(members.size()), [&](int part) {
    if (lanes.empty())
      detail::solve_in_turn<R>(members[part], systems, next);
    else
      detail::LaneGroup<R>(members[part], lanes[part], systems, next).solve();
  });
}

} // namespace wl
