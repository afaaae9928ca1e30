// Functions of the user between the scores and the edge function. Their text is generated from a
// trace: see edge_functions.py.
#pragma once
#include "unified/types.hpp"

namespace wl {

// No function of the user: scores go directly to the edge function.
struct scores_alone {
  static constexpr bool TRACED = false;
};

// The inputs of a function of the user: numbers of rows, columns and entries. Blocks are `step`
// elements apart, and the lines of a block, one line for each number, `ld` elements apart.
template <class S>
struct edge_input {
  const S* data;
  i64 ld, step;
  WL_DEVICE S operator()(i64 b, i64 number, i64 at) const {
    return data[b * step + number * ld + at];
  }
};
template <class S>
struct edge_inputs {
  edge_input<S> rows, columns, entries;
};

// A function of the user: the text of PROGRAM is generated from its trace.
template <class PROGRAM, class S>
struct traced_scores {
  static constexpr bool TRACED = true;
  edge_inputs<S> inputs;
  WL_DEVICE S operator()(S score, i64 b, i64 row, i64 column, i64 entry) const {
    return PROGRAM::run(score, b, row, column, entry, inputs);
  }
};

} // namespace wl
