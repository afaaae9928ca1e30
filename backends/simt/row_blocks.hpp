// The row blocks of CSR-Adaptive: the first rows of all row blocks are found in jumps of 1, 2, 4,
// ... row blocks. See gpu/spmv/row_blocks.py.
#pragma once
#include "simt/lanes.hpp"

namespace wl {

// jump[i] = the row after the row block that begins at row i: as many whole rows as have at most
// `most` entries and `most_rows` rows together, but at least one; m for i = m.
template <class I>
WL_DEVICE void end_row_blocks(const item& it, i64 m, const I* indptr, i64 most, i64 most_rows,
                              i64* jump, u8* begins) {
  const i64 step = it.blocks() * WL_BLOCK;
  for (i64 i = it.block() * WL_BLOCK + it.thread(); i <= m; i += step) {
    i64 low = i < m ? i + 1 : m, high = i + most_rows < m ? i + most_rows : m;
    while (low < high) { // the last row that may begin the next row block
      const i64 middle = (low + high + 1) / 2;
      if (i64(indptr[middle]) - i64(indptr[i]) <= most)
        low = middle;
      else
        high = middle - 1;
    }
    jump[i] = low;
    begins[i] = i == 0;
  }
}

// next[i] = jump[jump[i]]. If a row block begins at row i, another one begins after the jump.
template <class I>
WL_DEVICE void double_jumps(const item& it, i64 m, const i64* jump, i64* next, u8* begins) {
  const i64 step = it.blocks() * WL_BLOCK;
  for (i64 i = it.block() * WL_BLOCK + it.thread(); i <= m; i += step) {
    next[i] = jump[jump[i]];
    if (begins[i])
      begins[jump[i]] = 1;
  }
}

// parts[i] = the number of row blocks that begin at row i: several if it has more than `most`
// entries.
template <class I>
WL_DEVICE void count_row_blocks(const item& it, i64 m, const I* indptr, i64 most, const u8* begins,
                                i64* parts) {
  const i64 step = it.blocks() * WL_BLOCK;
  for (i64 i = it.block() * WL_BLOCK + it.thread(); i < m; i += step) {
    const i64 length = i64(indptr[i + 1] - indptr[i]);
    parts[i] = !begins[i] ? 0 : length > most ? (length + most - 1) / most : 1;
  }
}

// The first rows and the first entries of row blocks, and their ends; ~row marks a part of a row.
template <class I>
WL_DEVICE void write_row_blocks(const item& it, i64 m, const I* indptr, i64 most, const i64* places,
                                I* row, I* entry, i32* cut) {
  const i64 step = it.blocks() * WL_BLOCK;
  for (i64 i = it.block() * WL_BLOCK + it.thread(); i <= m; i += step) {
    const i64 at = places[i], parts = i < m ? places[i + 1] - at : 1;
    for (i64 p = 0; p < parts; ++p) {
      row[at + p] = parts > 1 ? I(~i) : I(i);
      entry[at + p] = I(i64(indptr[i]) + p * most);
    }
    if (parts > 1)
      *cut = 1;
  }
}

} // namespace wl
