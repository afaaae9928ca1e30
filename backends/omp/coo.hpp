// Products of coordinates sorted by row: equal shares of entries, however long the rows.
#pragma once

#include "cpu/columns.hpp"
#include "omp/parallel.hpp"
#include "omp/scaling.hpp"
#include "omp/spmv_operands.hpp"

namespace wl {

template <class T, class I>
struct CooArrays {
  i64 m, n, nnz;
  const I *row, *column;
  const T* data;
};

namespace detail {

// Entries from which a row is summed in several partial sums; a shorter one has no use for them.
constexpr i64 kLongRow = 16;

// One column of rows of few entries from `begin` on, up to a longer one, row `shared` or entry
// `stop`; returns the processed end. A separate function keeps its pointers in registers.
template <class T, class I>
WL_NOINLINE i64 coo_short_rows(const CooArrays<T, I>& A, const SpmvOperands<T>& o, i64 begin,
                               i64 end, i64 stop, i64 shared) {
  const I *const rows = A.row, *const columns = A.column;
  const T *const data = A.data, alpha = o.alpha;
  const mat<const T> x = o.x;
  const mat<T> y = o.y;
  while (begin < stop) {
    const I row = rows[begin];
    if (row == shared || (end - begin > kLongRow && rows[begin + kLongRow] == row))
      break;
    T sum(0);
    do {
      multiply_add(sum, data[begin], x(columns[begin], 0));
      ++begin;
    } while (begin < end && rows[begin] == row);
    update(y(row, 0), sum, alpha, T(1));
  }
  return begin;
}

// y += alpha * (entries [begin, end)) * x. Entries that belong to row `shared`, which an earlier
// share begins, go to carry.
template <class T, class I>
void coo_part(const CooArrays<T, I>& A, const SpmvOperands<T>& o, i64 begin, i64 end, i64 shared,
              T* carry) {
  i64 look = begin + kPieceOfWork / std::max<i64>(o.k, 1);
  while (begin < end) {
    if (begin > look) {
      if (interrupted())
        return;
      look = begin + kPieceOfWork / std::max<i64>(o.k, 1);
    }
    if (o.k == 1) {
      begin = coo_short_rows(A, o, begin, end, std::min(end, look + 1), shared);
      if (begin >= end || begin > look)
        continue;
    }
    const I row = A.row[begin];
    i64 next = begin + 1;
    while (next < end && A.row[next] == row)
      ++next;
    const I* const columns = A.column + begin;
    const bool is_shared = row == shared;
    row_times_columns(
        next - begin, A.data + begin, 1, [=](i64 e) { return i64(columns[e]); }, o.x,
        is_shared ? carry : &o.y(row, 0), o.k, o.alpha, is_shared ? T(0) : T(1));
    begin = next;
  }
}

} // namespace detail

template <class T, class I>
void coo_spmv(const CooArrays<T, I>& A, const SpmvOperands<T>& o, int threads) {
  const int parts = A.nnz * o.k < kSerialEntries ? 1 : threads;
  Scratch<T> carries(parts * o.k);
  T* const carry = carries.data();
  const auto shared_row = [&](i64 begin) -> i64 {
    return begin > 0 && begin < A.nnz && A.row[begin - 1] == A.row[begin] ? A.row[begin] : -1;
  };
  for_parts(parts, [&](int part) {
    const Share rows(A.m, part, parts);
    scale_rows(o.y, o.k, o.beta, rows.begin, rows.end);
  });
  for_parts(parts, [&](int part) {
    const Share share(A.nnz, part, parts);
    detail::coo_part(A, o, share.begin, share.end, shared_row(share.begin), carry + part * o.k);
  });
  for (int part = 1; part < parts; ++part) {
    const Share share(A.nnz, part, parts);
    const i64 row = shared_row(share.begin);
    for (i64 c = 0; row >= 0 && c < o.k; ++c)
      o.y(row, c) += carry[part * o.k + c];
  }
}

} // namespace wl
