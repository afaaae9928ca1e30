// Products with the transpose of a CSR matrix by its columns: y = alpha A^T x + beta y without the
// rows of the transpose.
//
// Several threads process parts of the rows in parallel. Each part has a window of columns that it
// touches. A part adds columns beyond the windows of the earlier parts directly to y. It adds other
// columns to sums of its own, which are added to y in the order of the parts. The parts depend only
// on the pattern, so that a result has the same bits with any number of threads.
#pragma once

#include <limits>
#include <vector>

#include "cpu/columns.hpp"
#include "omp/csr_arrays.hpp"
#include "omp/huge.hpp"
#include "omp/operand.hpp"
#include "omp/row_cuts.hpp"
#include "omp/scaling.hpp"
#include "omp/spmv_operands.hpp"

namespace wl {

// The largest number of parts, a power of two: smaller numbers of parts are formed by joining
// adjacent ones.
constexpr int kMostColumnParts = 16;

// The number of parts is increased as long as the parts have at most this number of sums per entry
// of the matrix. Sums have to be cleared and added up: with eight random entries a row, 1, 2, 4, 8
// and 16 parts (0, 0.1, 0.4, 0.9 and 1.9 sums per entry) took 1.6, 1.7, 1.9, 2.1 and 2.6 ms at
// least, on two threads of a busy Xeon (2026-11).
constexpr double kSumsPerEntry = 0.45;

// Bytes of sums up to which columns of a block are processed together, and up to which memory is
// kept between calls.
constexpr i64 kSumsTogether = i64(1) << 25;

// Entries [from.entry, to.entry) in rows from from.row on.
struct ColumnPart {
  row_cut from, to;
  i64 scaled;          // columns [scaled, end) are in no window of the parts before
  i64 begin, own, end; // columns [begin, own) have sums in the part, [own, end) are added to y
  i64 sums;            // index of its first sum
  row_cut added;       // entries from here on are all added to y
};

struct ColumnParts {
  std::vector<ColumnPart> parts;
  i64 sums = 0; // of all parts, for each column of x
};

namespace detail {

struct Touched {
  i64 begin = std::numeric_limits<i64>::max(), end = 0;
};

// The parts that result if `together` adjacent segments are joined.
inline ColumnParts joined_parts(const std::vector<row_cut>& cuts,
                                const std::vector<Touched>& touched, std::size_t together) {
  ColumnParts made;
  i64 done = 0; // columns before it are in windows, or in gaps between them
  for (std::size_t piece = 0; piece < touched.size(); piece += together) {
    Touched window;
    for (std::size_t i = piece; i < piece + together; ++i) {
      window.begin = std::min(window.begin, touched[i].begin);
      window.end = std::max(window.end, touched[i].end);
    }
    if (window.begin >= window.end)
      window = {done, done};
    const i64 own = std::min(std::max(done, window.begin), window.end);
    const row_cut &from = cuts[piece], &to = cuts[piece + together];
    made.parts.push_back({from, to, done, window.begin, own, window.end, made.sums, to});
    made.sums += own - window.begin;
    done = std::max(done, window.end);
  }
  return made;
}

// The first entries of a part, by row, with columns that are all added directly to y; columns
// increase in each row.
template <class I>
row_cut all_added_from(const I* indptr, const I* indices, const ColumnPart& part) {
  row_cut from = part.to;
  while (from.entry > part.from.entry) {
    const i64 row = indptr[from.row] < from.entry ? from.row : from.row - 1;
    const i64 first = std::max<i64>(indptr[row], part.from.entry);
    if (first < from.entry && indices[first] < part.own)
      return from;
    from = {static_cast<decltype(from.row)>(row), first};
  }
  return from;
}

} // namespace detail

// As many parts as reduce the time. Reads the columns of all entries.
template <class I>
ColumnParts column_parts(i64 m, const I* indptr, const I* indices, int threads) {
  const i64 nnz = indptr[m];
  const int pieces = nnz < kSerialElements ? 1 : kMostColumnParts;
  const std::vector<row_cut> cuts = balanced_cuts(indptr, static_cast<I>(m), pieces);
  std::vector<detail::Touched> touched(pieces);
  std::vector<i64> falls_in(pieces); // number of decreases of columns within a row
  for_each_near(pieces, pieces == 1 ? 1 : threads, [&](i64 piece) {
    I first = std::numeric_limits<I>::max(), last = -1;
    const i64 from = cuts[piece].entry, to = cuts[piece + 1].entry;
    i64 falls = 0; // counts decreases between rows too; these are subtracted below
    in_pieces(from, to, kPieceOfWork, [&](i64 begin, i64 end) {
      for (i64 e = begin; e < end; ++e) {
        first = std::min(first, indices[e]);
        last = std::max(last, indices[e]);
        falls += e > from && indices[e] < indices[e - 1];
      }
    });
    for (i64 row = cuts[piece].row + 1; row < m && indptr[row] < to; ++row) {
      const i64 e = indptr[row];
      falls -= e > from && indptr[row + 1] > e && indices[e] < indices[e - 1];
    }
    touched[piece] = {first, i64(last) + 1};
    falls_in[piece] = falls;
  });
  const bool sorted = std::count(falls_in.begin(), falls_in.end(), 0) == pieces;
  for (int parts = pieces;; parts /= 2) {
    ColumnParts made = detail::joined_parts(cuts, touched, pieces / parts);
    if (parts > 1 && static_cast<double>(made.sums) > kSumsPerEntry * static_cast<double>(nnz))
      continue;
    if (sorted)
      for_each_near(parts, parts == 1 ? 1 : threads, [&](i64 at) {
        ColumnPart& part = made.parts[at];
        if (part.begin < part.own && part.own < part.end)
          part.added = detail::all_added_from(indptr, indices, part);
      });
    return made;
  }
}

namespace detail {

// The sums of columns: all of a part's, or the columns before `own` separately.
template <class T>
struct OneTarget {
  T* data;
  i64 begin, ld;
  T* operator()(i64 column) const { return data + (column - begin) * ld; }
};

template <class T>
struct TwoTargets {
  OneTarget<T> before, from_own;
  i64 own;
  T* operator()(i64 column) const { return column < own ? before(column) : from_own(column); }
};

template <class T>
inline T product_of(T a, T b) {
  T made(0);
  multiply_add(made, a, b);
  return made;
}

// Adds alpha x_i a_ij to column j of the target, in the order of the entries. It is a separate
// function so that its pointers are in registers.
template <class S, class T, class I, class Target>
WL_NOINLINE void add_entries(const CsrArrays<S, I>& A, const SpmvOperands<T>& o, row_cut from,
                             row_cut to, Target target) {
  const I *const indptr = A.indptr, *const indices = A.indices;
  const S* const data = A.data;
  const T alpha = o.alpha;
  const mat<const T> x = o.x;
  const i64 k = o.k, pause = kPieceOfWork / std::max<i64>(k, 1), last = to.entry;
  i64 begin = from.entry, look = begin + pause;
  for (i64 row = from.row; begin < last; ++row) {
    if (begin > look) {
      if (interrupted())
        return;
      look = begin + pause;
    }
    const i64 end = std::min<i64>(indptr[row + 1], last);
    if (k == 1) {
      const T value = product_of(alpha, x(row, 0));
      for (i64 e = begin; e < end; ++e)
        multiply_add(*target(indices[e]), raised<T>(data[e]), value);
    } else {
      for_column_tiles(k, [&](auto columns, i64 first) {
        constexpr int W = decltype(columns)::value;
        T values[W];
        for (int w = 0; w < W; ++w)
          values[w] = product_of(alpha, x(row, first + w));
        for (i64 e = begin; e < end; ++e) {
          T* const sums = target(indices[e]) + first;
          const T entry = raised<T>(data[e]);
          WL_SIMD
          for (int w = 0; w < W; ++w)
            multiply_add(sums[w], entry, values[w]);
        }
      });
    }
    begin = end;
  }
}

// Adds rows [begin, end) of sums, which start at row `first`, to y.
template <class T>
void add_rows(mat<T> y, i64 k, const T* sums, i64 first, i64 begin, i64 end) {
  if (begin >= end)
    return;
  const T* const from = sums + (begin - first) * k;
  if (y.ld == k) {
    T* const to = y.data + begin * k;
    WL_INDEPENDENT
    for (i64 i = 0; i < (end - begin) * k; ++i)
      to[i] += from[i];
    return;
  }
  for (i64 i = begin; i < end; ++i)
    for (i64 c = 0; c < k; ++c)
      y(i, c) += from[(i - begin) * k + c];
}

// Adds a part to y and to the part's sums.
template <class S, class T, class I>
void add_part(const CsrArrays<S, I>& A, const SpmvOperands<T>& o, const ColumnPart& part, T* sums) {
  const OneTarget<T> y{o.y.data, 0, o.y.ld}, own{sums, part.begin, o.k};
  std::fill_n(sums, (part.own - part.begin) * o.k, T(0));
  if (part.own == part.begin)
    add_entries(A, o, part.from, part.to, y);
  else if (part.own == part.end)
    add_entries(A, o, part.from, part.to, own);
  else {
    add_entries(A, o, part.from, part.added, TwoTargets<T>{own, y, part.own});
    add_entries(A, o, part.added, part.to, y);
  }
}

// The product for columns of x that advance together.
template <class S, class T, class I>
void add_columns(const CsrArrays<S, I>& A, const ColumnParts& of, const SpmvOperands<T>& o, T* sums,
                 int threads) {
  const i64 parts = static_cast<i64>(of.parts.size());
  if (parts == 1) { // y may be much longer than the number of entries of the part
    const int shares = A.n * o.k < kSerialElements ? 1 : threads;
    for_parts(shares, [&](int share) {
      const Share rows(A.n, share, shares);
      scale_rows(o.y, o.k, o.beta, rows.begin, rows.end);
    });
  }
  const bool serial = A.nnz() * o.k < kSerialEntries;
  for_each_near(parts, serial ? 1 : threads, [&](i64 at) {
    const ColumnPart& part = of.parts[at];
    if (parts > 1)
      scale_rows(o.y, o.k, o.beta, part.scaled, at + 1 == parts ? A.n : part.end);
    add_part(A, o, part, sums + part.sums * o.k);
  });
  const int shares = of.sums * o.k < kSerialElements ? 1 : threads;
  if (of.sums > 0)
    for_parts(shares, [&](int share) {
      const Share columns(A.n, share, shares);
      for (const ColumnPart& part : of.parts)
        add_rows(o.y, o.k, sums + part.sums * o.k, part.begin, std::max(part.begin, columns.begin),
                 std::min(part.own, columns.end));
    });
}

} // namespace detail

// y = alpha A^T x + beta y; x has A.m rows and y has A.n. S may be lower than T.
template <class S, class T, class I>
void multiply_by_columns(const CsrArrays<S, I>& A, const ColumnParts& of, const SpmvOperands<T>& o,
                         int threads) {
  const i64 bytes = std::max<i64>(of.sums * sizeof(T), 1);
  const i64 together = std::min(std::max<i64>(kSumsTogether / bytes, 1), i64(WIDEST_TILE));
  const i64 count = of.sums * std::min(together, o.k);
  const bool is_kept = count * i64(sizeof(T)) <= kSumsTogether;
  const Huge<T> large(is_kept ? 0 : count);
  T* const sums = is_kept ? workspace<T>(0, count) : large.data();
  for (i64 first = 0; first < o.k; first += together) {
    const SpmvOperands<T> some{{o.x.data + first, o.x.ld},
                               {o.y.data + first, o.y.ld},
                               std::min(together, o.k - first),
                               o.alpha,
                               o.beta};
    detail::add_columns(A, of, some, sums, threads);
  }
}

// The number of entries from which a column is long: a sum of it in single precision has too large
// an error.
constexpr u32 kLongColumn = 1024;

// Whether a column may be long. Columns are counted in groups that fit into the second-level cache:
// a pattern with more than kLongColumn entries for each group may wrongly be reported as one with
// long columns.
template <class I>
bool has_long_columns(i64 m, i64 n, const I* indptr, const I* indices, int threads) {
  constexpr i64 kGroups = i64(1) << 16;
  const i64 nnz = indptr[m];
  if (nnz <= kLongColumn)
    return false;
  const i64 groups = std::min(n, kGroups);
  const int parts = nnz < kSerialEntries ? 1 : threads;
  std::vector<std::vector<u32>> counts(parts);
  for_parts(parts, [&](int part) {
    std::vector<u32> counted(groups);
    const Share share(nnz, part, parts);
    in_pieces(share.begin, share.end, kPieceOfWork, [&](i64 begin, i64 end) {
      for (i64 e = begin; e < end; ++e)
        ++counted[n <= kGroups ? i64(indices[e]) : i64(indices[e]) & (kGroups - 1)];
    });
    counts[part] = std::move(counted);
  });
  for (i64 group = 0; group < groups; ++group) {
    i64 count = 0;
    for (const std::vector<u32>& of_part : counts)
      count += of_part[group];
    if (count > kLongColumn)
      return true;
  }
  return false;
}

// The double precision of a number.
template <class T>
struct double_of {
  using type = double;
};
template <class R>
struct double_of<complex<R>> {
  using type = complex<double>;
};

// The product in single precision of a matrix with long columns: it is summed in double.
template <class T, class I>
void multiply_by_long_columns(const CsrArrays<T, I>& A, const ColumnParts& of,
                              const SpmvOperands<T>& o, int threads) {
  using D = typename double_of<T>::type;
  const Huge<D> x(A.m * o.k), y(A.n * o.k);
  for (i64 i = 0; i < A.m; ++i)
    for (i64 c = 0; c < o.k; ++c)
      x.data()[i * o.k + c] = raised<D>(o.x(i, c));
  multiply_by_columns(
      A, of, SpmvOperands<D>{{x.data(), o.k}, {y.data(), o.k}, o.k, raised<D>(o.alpha), D(0)},
      threads);
  for (i64 i = 0; i < A.n; ++i)
    for (i64 c = 0; c < o.k; ++c) {
      const D sum = y.data()[i * o.k + c];
      if constexpr (same<T, real_t<T>>::value)
        update(o.y(i, c), static_cast<T>(sum), T(1), o.beta);
      else
        update(o.y(i, c), T(static_cast<real_t<T>>(sum.re), static_cast<real_t<T>>(sum.im)), T(1),
               o.beta);
    }
}

} // namespace wl
