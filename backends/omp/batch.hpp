// Many systems by the programs of one: each thread replays the tapes of its own member.
//
// A system is solved with operations of its own, in the order in which one system alone is solved.
// So no bit of its solution depends on the other systems, on the thread, or on the time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "parallel.hpp"
#include "tape.hpp"

namespace wl {

// The tapes of one system and the arrays that they work on; see core/batch/systems.py.
struct BatchMember {
  const Tape *refresh, *measure, *restart, *iterate, *finish, *judge; // refresh may be missing
  std::byte* values;
  std::byte *b, *x;
  const i64* flags;
  i64 flag_count;
  u8* stop;
  i32* running;
  i64* iterations;
  void *threshold, *norm, *first, *truth, *largest; // one real number each
  i64 cycle;
  double progress;
};

// All systems, one row each.
struct BatchSystems {
  i64 count;
  const i64* matrix;
  const std::byte* values;
  i64 value_bytes;
  const std::byte* b;
  std::byte* x;
  i64 vector_bytes;
  const double *relative, *absolute;
  i64 limit;
  double least, most, least_norm;
  u8* codes;
  i64* iterations;
  double *norms, *thresholds;
};

namespace detail {

// The codes of wollemi.core.status.Stop that are decided here.
constexpr u8 kConverged = 1, kMaxIterations = 6, kUndecided = 255;

// One system. A verdict that takes a closer look, which failures do, is left to the caller.
template <class R>
u8 solve_system(const BatchMember& m, const BatchSystems& s, i64 k) {
  R& threshold = *static_cast<R*>(m.threshold);
  const R &norm = *static_cast<R*>(m.norm), &first = *static_cast<R*>(m.first);
  const R &truth = *static_cast<R*>(m.truth), &largest = *static_cast<R*>(m.largest);
  std::memcpy(m.values, s.values + s.matrix[k] * s.value_bytes, s.value_bytes);
  if (m.refresh != nullptr) {
    m.refresh->replay_once();
    for (i64 f = 0; f < m.flag_count; ++f)
      if (m.flags[f] != 0)
        return kUndecided;
  }
  std::memcpy(m.b, s.b + k * s.vector_bytes, s.vector_bytes);
  std::memcpy(m.x, s.x + k * s.vector_bytes, s.vector_bytes);
  *m.iterations = 0;
  m.measure->replay_once();
  if (!(first >= R(s.least) && first <= R(s.most)))
    return kUndecided;
  threshold = std::max(R(s.relative[k]) * first, R(s.absolute[k]));
  R before = std::numeric_limits<R>::infinity(), best = before;
  for (;;) {
    *m.stop = 0;
    *m.running = 1;
    m.restart->replay_once();
    best = std::min(best, norm);
    const bool begins = *m.running != 0;
    if (begins) {
      m.iterate->replay(m.running, std::min(s.limit - *m.iterations, m.cycle));
      m.finish->replay_once();
    }
    m.judge->replay_once();
    if (!std::isfinite(truth) || !std::isfinite(largest))
      return kUndecided;
    if (truth <= threshold) {
      if (truth < R(s.least_norm))
        return kUndecided; // its squares have lost digits
      break;
    }
    const bool exhausted = *m.iterations >= s.limit;
    const bool ended = *m.stop != 0 || !begins;
    if (exhausted && !ended && truth <= best) {
      std::memcpy(s.x + k * s.vector_bytes, m.x, s.vector_bytes);
      s.iterations[k] = *m.iterations;
      s.norms[k] = double(truth);
      s.thresholds[k] = double(threshold);
      return kMaxIterations;
    }
    if (exhausted || (ended && !(truth <= R(m.progress) * before)) || interrupted())
      return kUndecided;
    before = truth;
  }
  std::memcpy(s.x + k * s.vector_bytes, m.x, s.vector_bytes);
  s.iterations[k] = *m.iterations;
  s.norms[k] = double(truth);
  s.thresholds[k] = double(threshold);
  return kConverged;
}

} // namespace detail

// Solves all systems. A thread takes the next system as soon as it has solved one.
template <class R>
void solve_systems(const std::vector<BatchMember>& members, const BatchSystems& systems) {
  std::atomic<i64> next{0};
  for_parts(static_cast<int>(members.size()), [&](int part) {
    for (i64 k; (k = next.fetch_add(1, std::memory_order_relaxed)) < systems.count;) {
      systems.codes[k] = detail::solve_system<R>(members[part], systems, k);
      if (interrupted())
        return;
    }
  });
}

} // namespace wl
