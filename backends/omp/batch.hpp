// Solves many systems with the tapes of single systems: each thread replays the tapes of its own
// member.
//
// A system is solved with its own operations, or in a lane of vector registers together with other
// systems. Every bit of its solution is independent of the other systems, of the thread, and of
// timing.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "omp/parallel.hpp"
#include "omp/tape.hpp"

namespace wl {

// The tapes of one system and the arrays on which they operate; see core/batch/systems.py.
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

// The codes of wollemi.core.status.Stop that are decided here. Other verdicts, such as failures,
// need further tests and are left to the caller.
constexpr u8 kGoesOn = 0, kConverged = 1, kMaxIterations = 6, kUndecided = 255;

// The state of a system between two of its cycles.
template <class R>
struct SystemState {
  i64 k = -1;
  R threshold{}, before{}, best{};
  bool is_zero = false; // whether the right-hand side and the initial guess are 0
};

// The steps of a solve of one system with the tapes of a member.
template <class R>
class SystemSteps {
public:
  SystemSteps(const BatchMember& member, const BatchSystems& systems) : m(member), s(systems) {}

  // Starts system k from its initial guess; false if the caller has to decide about it.
  bool enter(SystemState<R>& t, i64 k) const {
    t = {};
    t.k = k;
    load_operands(k);
    if (m.refresh != nullptr) {
      m.refresh->replay_once();
      for (i64 f = 0; f < m.flag_count; ++f)
        if (m.flags[f] != 0)
          return false;
    }
    std::memcpy(m.x, s.x + k * s.vector_bytes, s.vector_bytes);
    *m.iterations = 0;
    m.measure->replay_once();
    const R first = *static_cast<const R*>(m.first);
    t.is_zero = first == R(0) && are_zero(m.b) && are_zero(m.x);
    if (!t.is_zero && !(first >= R(s.least) && first <= R(s.most)))
      return false;
    t.threshold = std::max(R(s.relative[k]) * first, R(s.absolute[k]));
    t.before = t.best = std::numeric_limits<R>::infinity();
    return true;
  }

  // The values and the right-hand side of system k.
  void load_operands(i64 k) const {
    std::memcpy(m.values, s.values + s.matrix[k] * s.value_bytes, s.value_bytes);
    std::memcpy(m.b, s.b + k * s.vector_bytes, s.vector_bytes);
  }

  // Begins a cycle from the iterate; returns the largest number of its iterations, 0 if the system
  // has ended.
  i64 open(SystemState<R>& t) const {
    *static_cast<R*>(m.threshold) = t.threshold;
    *m.stop = 0;
    *m.running = 1;
    m.restart->replay_once();
    t.best = std::min(t.best, *static_cast<const R*>(m.norm));
    return *m.running != 0 ? std::min(s.limit - *m.iterations, m.cycle) : kNone;
  }

  // Ends a cycle of `turns` iterations: a verdict, or kGoesOn.
  u8 close(SystemState<R>& t, i64 turns) const {
    if (turns != kNone)
      m.finish->replay_once();
    m.judge->replay_once();
    const R truth = *static_cast<const R*>(m.truth), largest = *static_cast<const R*>(m.largest);
    if (!std::isfinite(truth) || !std::isfinite(largest))
      return kUndecided;
    if (truth <= t.threshold) { // squares of tiny numbers have lost digits
      const bool is_exact = truth == R(0) && (t.is_zero || t.threshold >= R(s.least_norm));
      return truth >= R(s.least_norm) || is_exact ? kept(t, kConverged, truth) : kUndecided;
    }
    const bool exhausted = *m.iterations >= s.limit;
    const bool ended = *m.stop != 0 || turns == kNone;
    if (exhausted && !ended && truth <= t.best)
      return kept(t, kMaxIterations, truth);
    if (exhausted || (ended && !(truth <= R(m.progress) * t.before)) || interrupted())
      return kUndecided;
    t.before = truth;
    return kGoesOn;
  }

  // A cycle that ends before its first iteration.
  static constexpr i64 kNone = -1;

private:
  // Whether all elements of a vector are 0.
  bool are_zero(const std::byte* vector) const {
    const R* const parts = reinterpret_cast<const R*>(vector);
    const i64 count = s.vector_bytes / static_cast<i64>(sizeof(R));
    return std::all_of(parts, parts + count, [](R part) { return part == R(0); });
  }

  u8 kept(const SystemState<R>& t, u8 code, R truth) const {
    std::memcpy(s.x + t.k * s.vector_bytes, m.x, s.vector_bytes);
    s.iterations[t.k] = *m.iterations;
    s.norms[t.k] = double(truth);
    s.thresholds[t.k] = double(t.threshold);
    return code;
  }

  const BatchMember& m;
  const BatchSystems& s;
};

// Solves one system after the other.
template <class R>
void solve_in_turn(const BatchMember& member, const BatchSystems& systems, std::atomic<i64>& next) {
  const SystemSteps<R> steps(member, systems);
  SystemState<R> t;
  for (i64 k; (k = next.fetch_add(1, std::memory_order_relaxed)) < systems.count;) {
    u8 code = steps.enter(t, k) ? kGoesOn : kUndecided;
    while (code == kGoesOn) {
      const i64 turns = steps.open(t);
      if (turns != steps.kNone)
        member.iterate->replay(member.running, turns);
      code = steps.close(t, turns);
    }
    systems.codes[k] = code;
    if (interrupted())
      return;
  }
}

} // namespace detail

} // namespace wl
