// The stopping status of the columns of a solve; wollemi.core.status holds the same codes and
// members.
//
// Only the `finish` of a functor writes it, which runs after every element was visited: within one
// kernel all threads read the same status.
#pragma once
#include "unified/types.hpp"

namespace wl {

enum stop_code : u8 { RUNNING = 0, CONVERGED = 1, INDEFINITE = 2, BREAKDOWN = 3, NOT_FINITE = 5 };

template <class T>
struct status_of {
  using R = real_t<T>;
  u8* stop;
  i64* iterations;
  R* norm;
  const R* threshold;
  R* history;
  i32* running;
  i64 capacity;
  i64 k;

  WL_DEVICE bool is_running(i64 c) const { return stop[c] == RUNNING; }

  WL_DEVICE void halt(i64 c, stop_code why) const {
    stop[c] = why;
    count_down(running);
  }

  // Takes the norm of the residual before the first iteration of a cycle.
  WL_DEVICE void begin(i64 c, R residual_norm) const {
    norm[c] = residual_norm;
    judge(c, residual_norm);
  }

  // Takes the norm of the residual after an iteration, and counts the iteration.
  WL_DEVICE void observe(i64 c, R residual_norm) const {
    norm[c] = residual_norm;
    history[iterations[c] % capacity * k + c] = residual_norm;
    ++iterations[c];
    judge(c, residual_norm);
  }

  WL_DEVICE void judge(i64 c, R residual_norm) const {
    if (!finite(residual_norm))
      halt(c, NOT_FINITE);
    else if (residual_norm <= threshold[c])
      halt(c, CONVERGED);
  }
};

// A value of a column that is known before the first row: whether the column is active.
struct taking_part {
  bool active;
};

} // namespace wl

// The members of functors that visit every column: with a sum of a given type, with a sum that is a
// count and that the last work-item stores, and without a sum.
#define WL_SUM(...)                                                                                \
  WL_DEVICE taking_part column(i64) const { return {true}; }                                       \
  using sum = __VA_ARGS__;                                                                         \
  using column_state = taking_part

#define WL_COUNT(total)                                                                            \
  WL_DEVICE void finish(i64, i64 of_all) const { *total = of_all; }                                \
  WL_SUM(i64)

#define WL_NO_SUM                                                                                  \
  WL_DEVICE void finish(i64, none) const {}                                                        \
  WL_SUM(none)
