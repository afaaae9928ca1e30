// Products of compressed rows: a range of rows, and parts that begin or end within a row.
#pragma once
#include "cpu/row_dot.hpp"

namespace wl {

// y[0:k] = alpha (entries [begin, end)) x + beta y[0:k]; the entries belong to one row.
template <class S, class T, class I>
inline void csr_row(i64 begin, i64 end, const I* indices, const S* data, mat<const T> x, T* y,
                    i64 k, T alpha, T beta) {
  const I* const columns = indices + begin;
  if (k == 1 && x.ld == 1)
    update(*y, row_dot(data + begin, columns, end - begin, x.data), alpha, beta);
  else
    row_times_columns(
        end - begin, data + begin, 1, [=](i64 e) { return i64(columns[e]); }, x, y, k, alpha, beta);
}

// The loop over rows of one column: column.put(i, dot(row i, x)). It is a separate function so that
// all pointers are in registers: if it is inlined, g++ keeps three of them on the stack.
template <class S, class T, class I, class Dot, class Column>
WL_NOINLINE inline void csr_column(i64 row, i64 last, const I* indptr, const I* indices,
                                   const S* data, const T* x, Dot dot, Column column) {
  i64 begin = indptr[row];
  for (; row < last; ++row) {
    const i64 end = indptr[row + 1];
    column.put(row, dot(data + begin, indices + begin, end - begin, x));
    begin = end;
  }
}

// y = alpha A x + beta y for rows [row, last); x and y have k columns. `few` says that most rows
// have few entries; the same for all parts of a matrix.
template <class S, class T, class I>
inline void csr_rows(i64 row, i64 last, const I* indptr, const I* indices, const S* data,
                     mat<const T> x, mat<T> y, i64 k, T alpha, T beta, bool few = false) {
  if (row >= last)
    return;
  if (k == 1 && x.ld == 1) {
    with_row_dot<T>(few, [&](auto dot) {
      with_column(y, alpha, beta, [&](auto column) {
        csr_column(row, last, indptr, indices, data, x.data, dot, column);
      });
    });
    return;
  }
  i64 begin = indptr[row];
  for (; row < last; ++row) {
    const i64 end = indptr[row + 1];
    csr_row(begin, end, indices, data, x, &y(row, 0), k, alpha, beta);
    begin = end;
  }
}

// The beginning of a part of a matrix: rows before `row` and entries before `entry` belong to
// earlier parts. entry > indptr[row] means that the row is cut here.
struct row_cut {
  i64 row, entry;
};

// The rows and pieces of rows between two cuts. The first piece of a cut row goes to y; a later
// piece goes to carry[0:k], which add_carries adds when all parts are finished. rows(first, last)
// computes whole rows.
template <class S, class T, class I, class Rows>
inline void csr_part(row_cut from, row_cut to, const I* indptr, const I* indices, const S* data,
                     mat<const T> x, mat<T> y, i64 k, T alpha, T beta, T* carry, const Rows& rows) {
  i64 row = from.row;
  if (from.entry > indptr[row]) {
    const bool ends_here = to.row > row;
    const i64 end = ends_here ? i64(indptr[row + 1]) : to.entry;
    csr_row(from.entry, end, indices, data, x, carry, k, alpha, T(0));
    if (!ends_here)
      return;
    ++row;
  }
  rows(row, to.row);
  if (to.entry > indptr[to.row])
    csr_row(indptr[to.row], to.entry, indices, data, x, &y(to.row, 0), k, alpha, beta);
}

// Adds the later pieces of cut rows in the order of the parts, so that a result depends on the
// number of parts and on nothing else. Part p begins at cut(p).
template <class T, class I, class Cut>
inline void add_carries(i64 parts, const Cut& cut, const I* indptr, mat<T> y, i64 k,
                        const T* carry) {
  for (i64 p = 1; p < parts; ++p) {
    const row_cut from = cut(p);
    if (from.entry > indptr[from.row])
      for (i64 c = 0; c < k; ++c)
        y(from.row, c) += carry[p * k + c];
  }
}

} // namespace wl
