// Sums of sparse matrices with sorted rows on CPU devices. The bodies are in backends/cpu.
#pragma once
#include "dpcpp/arithmetic.hpp"
#include "cpu/merged_rows.hpp"
#include "dpcpp/work_cpu.hpp"

namespace wl {

// The number of columns of each row; made[g] is the number of columns of work-group g, or -1 if the
// columns of one of its rows do not increase.
template <class T, class I>
WL_DEVICE void count_sum(const item& it, i64 m, const I* indptr, const I* indices,
                         const I* other_indptr, const I* other_indices, I* lengths, i64* made) {
  const merged_rows<T, I> rows{indptr, indices, nullptr, other_indptr, other_indices, nullptr};
  const rows_of_work own(it, m, [=](i64 row) { return rows.before(row); });
  made[it.block()] = rows.count(own.begin, own.end, lengths);
}

template <class T, class I>
WL_DEVICE void fill_sum(const item& it, i64 m, const I* indptr, const I* indices, const T* data,
                        const I* other_indptr, const I* other_indices, const T* other_data, T alpha,
                        T beta, const I* target, I* new_indices, T* new_data) {
  const merged_rows<T, I> rows{indptr, indices, data, other_indptr, other_indices, other_data};
  const rows_of_work own(it, m, [=](i64 row) { return rows.before(row); });
  rows.fill(own.begin, own.end, alpha, beta, target, new_indices, new_data);
}

} // namespace wl
