// Sums over the columns of the heads of attention. See wollemi.core.operations.attention.
#pragma once
#include "unified/step.hpp"

namespace wl {

template <class T>
struct attention_row_gradients {
  mat<const T> G, E, positive, shares;
  i64 columns;
  T slope;
  mat<T> means, of_target;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64 head, const column_state&) const {
    T mean(0), of_positive(0);
    for (i64 c = head * columns; c < (head + 1) * columns; ++c) {
      mean += G(i, c) * E(i, c);
      of_positive += G(i, c) * positive(i, c);
    }
    means(i, head) = mean;
    of_target(i, head) = (T(1) - slope) * (of_positive - mean * shares(i, head));
    return {};
  }
};

} // namespace wl
