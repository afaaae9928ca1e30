// Rows sorted by column on CPU devices. The functions are in backends/cpu.
#pragma once
#include "dpcpp/arithmetic.hpp"
#include "cpu/sorted_rows.hpp"
#include "dpcpp/work_cpu.hpp"

namespace wl {

// order[e] is the old index of entry e; the spare arrays have the length of the entries.
template <class T, class I>
WL_DEVICE void sort_rows_cpu(const item& it, i64 m, const I* indptr, const I* indices,
                             const T* data, I* new_indices, T* new_data, I* order, I* spare_indices,
                             I* spare_order) {
  const rows_of_work own(it, m, [=](i64 row) { return i64(indptr[row]) + row; });
  sort_rows(own.begin, own.end, indptr, unsorted_columns<I>{indices, indptr[m]}, data,
            placed_columns<I>{new_indices, order}, new_data,
            placed_columns<I>{spare_indices, spare_order});
}

} // namespace wl
