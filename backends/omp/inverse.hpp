// Selected entries of an inverse. See wollemi.core.operations.inverse.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <numeric>
#include <vector>

#include "omp/interruption.hpp"
#include "unified/types.hpp"

namespace wl {

// The columns of a factor in groups of adjacent columns that share their rows (supernodes), from
// the pattern of the matrix. A group is the child of the group that has its first row below.
template <class I>
struct Supernodes {
  std::vector<I> first;   // the first column of each group, and the number of columns
  std::vector<I> owner;   // the group of each column
  std::vector<I> parent;  // of each group, -1 of a root
  std::vector<i64> begin; // index in `rows` of the first row below each group
  std::vector<i64> end;
  std::vector<I> rows; // in rising order

  // Groups are joined with the next one as long as padding stays below this part of the entries, or
  // as long as they have few columns.
  static constexpr double kPadding = 0.15;
  static constexpr i64 kNarrow = 8;

  i64 count() const { return static_cast<i64>(parent.size()); }
  i64 width(i64 s) const { return first[s + 1] - first[s]; }
  i64 below(i64 s) const { return end[s] - begin[s]; }

  Supernodes(i64 n, i64 entries, const I* row, const I* column) {
    std::vector<i64> from(n), to(n);
    fill_columns(n, entries, row, column, from, to);
    group(n, from, to);
  }

  // The rows of a column are its own entries and its children's in the elimination tree
  // (Liu, The role of elimination trees in sparse factorization, 1990, section 2). A column with
  // the rows of its largest child shares them.
  void fill_columns(i64 n, i64 entries, const I* row, const I* column, std::vector<i64>& from,
                    std::vector<i64>& to) {
    std::vector<i64> at(n + 1, 0);
    for (i64 k = 0; k < entries; ++k)
      if (row[k] != column[k])
        ++at[std::min(row[k], column[k]) + 1];
    std::partial_sum(at.begin(), at.end(), at.begin());
    std::vector<I> own(static_cast<std::size_t>(at[n]));
    std::vector<i64> next(at.begin(), at.end() - 1);
    for (i64 k = 0; k < entries; ++k)
      if (row[k] != column[k])
        own[next[std::min(row[k], column[k])]++] = std::max(row[k], column[k]);

    std::vector<I> child(n, I(-1)), sibling(n, I(-1)), seen(n, I(-1));
    for (i64 j = 0; j < n && !interrupted(); ++j) {
      i64 largest = -1;
      for (I c = child[j]; c != I(-1); c = sibling[c])
        if (largest < 0 || to[c] - from[c] > to[largest] - from[largest])
          largest = c;
      i64 shared_begin = 0, shared_end = 0;
      if (largest >= 0) {
        shared_begin = from[largest] + 1, shared_end = to[largest];
        for (i64 q = shared_begin; q < shared_end; ++q)
          seen[rows[q]] = static_cast<I>(j);
      }
      const i64 added = static_cast<i64>(rows.size());
      const auto add = [&](I r) {
        if (r > j && seen[r] != j)
          seen[r] = static_cast<I>(j), rows.push_back(r);
      };
      for (i64 q = at[j]; q < at[j + 1]; ++q)
        add(own[q]);
      for (I c = child[j]; c != I(-1); c = sibling[c])
        if (c != largest)
          for (i64 q = from[c] + 1; q < to[c]; ++q)
            add(rows[q]);
      if (static_cast<i64>(rows.size()) == added) {
        from[j] = shared_begin, to[j] = shared_end;
      } else {
        const i64 middle = static_cast<i64>(rows.size());
        std::sort(rows.begin() + added, rows.end());
        rows.resize(static_cast<std::size_t>(middle + shared_end - shared_begin));
        std::copy(rows.begin() + shared_begin, rows.begin() + shared_end, rows.begin() + middle);
        std::inplace_merge(rows.begin() + added, rows.begin() + middle, rows.end());
        from[j] = added, to[j] = static_cast<i64>(rows.size());
      }
      if (from[j] != to[j]) {
        const I p = rows[from[j]];
        sibling[j] = child[p], child[p] = static_cast<I>(j);
      }
    }
  }

  void group(i64 n, const std::vector<i64>& from, const std::vector<i64>& to) {
    owner.resize(n);
    i64 stored = 0; // entries of the open group without padding
    for (i64 j = 0; j < n; ++j) {
      const i64 own = to[j] - from[j];
      bool joins = j > 0 && from[j - 1] != to[j - 1] && rows[from[j - 1]] == j;
      if (joins) {
        // With this column the group has the rows of this column below it.
        const i64 wide = j - first.back() + 1, all = wide * (wide - 1) / 2 + wide * own;
        const i64 padded = all - (stored + own);
        joins = padded == 0 || wide <= kNarrow || padded < kPadding * static_cast<double>(all);
      }
      if (!joins)
        first.push_back(static_cast<I>(j)), begin.push_back(0), end.push_back(0), stored = 0;
      stored += own;
      owner[j] = static_cast<I>(first.size() - 1);
      begin.back() = from[j], end.back() = to[j];
    }
    parent.resize(first.size());
    for (std::size_t s = 0; s < first.size(); ++s)
      parent[s] = begin[s] == end[s] ? I(-1) : owner[rows[begin[s]]];
    first.push_back(static_cast<I>(n));
  }
};

// Takahashi's equations for groups of columns (Takahashi, Fagan and Chen 1973; Campbell and Davis,
// Computing the sparse inverse subset, 1995). With J the columns of a group and R the rows below
// them, from the last group to the first:
//
//   Z_RJ = -Z_RR X        with X = L_RJ L_JJ^-1
//   Z_JR = -Y Z_RR        with Y = U_JJ^-1 U_JR
//   Z_JJ = U_JJ^-1 L_JJ^-1 - Y Z_RJ
//
// Z_RR is a part of the dense block of the parent, which has all rows of R. A block is freed after
// its last child.
template <class T, class I>
struct inverse_selected {
  const I *rows, *columns, *lower_begin, *lower_rows;
  const T* lower;
  const I *upper_begin, *upper_columns;
  const T* upper;
  i64 symmetric;
  T* inverse;
  i64* outside;
  i64 e, p, l, u;

  using Block = std::unique_ptr<T[]>;

  struct Work {
    std::vector<i64> place;  // of a row in the block of the current group, or -1
    std::vector<i64> within; // the rows of R in the block of the parent
    std::vector<T> X, Y, right, left, turned;
  };

  void operator()(int) const {
    const i64 n = p - 1;
    outside[0] = 0;
    const Supernodes<I> nodes(n, e, rows, columns);
    const i64 count = nodes.count();
    std::vector<i64> waiting(count, 0), at(count + 1, 0), wanted(e);
    for (i64 s = 0; s < count; ++s)
      if (nodes.parent[s] != I(-1))
        ++waiting[nodes.parent[s]];
    const auto group_of = [&](i64 k) { return nodes.owner[std::min(rows[k], columns[k])]; };
    for (i64 k = 0; k < e; ++k)
      ++at[group_of(k) + 1];
    std::partial_sum(at.begin(), at.end(), at.begin());
    std::vector<i64> next(at.begin(), at.end() - 1);
    for (i64 k = 0; k < e; ++k)
      wanted[next[group_of(k)]++] = k;

    std::vector<Block> blocks(count);
    Work work;
    work.place.assign(n, -1);
    for (i64 s = count - 1; s >= 0 && !interrupted(); --s) {
      const i64 parent = nodes.parent[s];
      blocks[s] = block_of(nodes, s, parent < 0 ? nullptr : blocks[parent].get(), work);
      const i64 size = nodes.width(s) + nodes.below(s);
      for (i64 q = at[s]; q < at[s + 1]; ++q) {
        const i64 k = wanted[q];
        inverse[k] = blocks[s][work.place[rows[k]] * size + work.place[columns[k]]];
      }
      forget(nodes, s, work);
      if (waiting[s] == 0)
        blocks[s].reset();
      if (parent >= 0 && --waiting[parent] == 0)
        blocks[parent].reset();
    }
    end_if_interrupted();
  }

  void forget(const Supernodes<I>& nodes, i64 s, Work& work) const {
    for (i64 j = nodes.first[s]; j < nodes.first[s + 1]; ++j)
      work.place[j] = -1;
    for (i64 q = nodes.begin[s]; q < nodes.end[s]; ++q)
      work.place[nodes.rows[q]] = -1;
  }

  Block block_of(const Supernodes<I>& nodes, i64 s, const T* of_parent, Work& work) const {
    const i64 w = nodes.width(s), h = nodes.below(s), size = w + h, first = nodes.first[s];
    const I* below = nodes.rows.data() + nodes.begin[s];
    for (i64 a = 0; a < w; ++a)
      work.place[first + a] = a;
    for (i64 a = 0; a < h; ++a)
      work.place[below[a]] = w + a;
    Block Z(new T[static_cast<std::size_t>(size * size)]);
    if (h)
      take_from_parent(nodes, s, of_parent, Z.get(), work);
    take_factors(first, w, size, work);
    eliminate(Z.get(), w, h, work);
    return Z;
  }

  // Z_RR of the parent's block; the rows of R are in rising order in both.
  void take_from_parent(const Supernodes<I>& nodes, i64 s, const T* of_parent, T* Z,
                        Work& work) const {
    const i64 parent = nodes.parent[s], w = nodes.width(s), h = nodes.below(s), size = w + h;
    const i64 wide = nodes.width(parent), other = wide + nodes.below(parent);
    const I* below = nodes.rows.data() + nodes.begin[s];
    const I* rows_of_parent = nodes.rows.data() + nodes.begin[parent];
    work.within.resize(h);
    i64 at = 0;
    for (i64 a = 0; a < h; ++a)
      if (below[a] < nodes.first[parent + 1]) {
        work.within[a] = below[a] - nodes.first[parent];
      } else {
        while (rows_of_parent[at] != below[a])
          ++at;
        work.within[a] = wide + at;
      }
    const i64* within = work.within.data();
    for (i64 a = 0; a < h; ++a) {
      const T* from = of_parent + within[a] * other;
      T* to = Z + (w + a) * size + w;
      for (i64 b = 0; b < h; ++b)
        to[b] = from[within[b]];
    }
  }

  // X: row k is column k of L in the rows of the block. Y: row k is row k of U.
  void take_factors(i64 first, i64 w, i64 size, Work& work) const {
    work.X.assign(static_cast<std::size_t>(w * size), T(0));
    work.Y.assign(static_cast<std::size_t>(w * size), T(0));
    for (i64 k = 0; k < w; ++k) {
      for (I q = lower_begin[first + k]; q < lower_begin[first + k + 1]; ++q)
        set(work.X.data() + k * size, work.place[lower_rows[q]], lower[q]);
      for (I q = upper_begin[first + k]; q < upper_begin[first + k + 1]; ++q)
        set(work.Y.data() + k * size, work.place[upper_columns[q]], upper[q]);
    }
  }

  void set(T* row, i64 place, T value) const {
    if (place < 0)
      ++outside[0];
    else
      row[place] = value;
  }

  static void subtract(T* y, T factor, const T* x, i64 count) {
    for (i64 i = 0; i < count; ++i)
      y[i] -= factor * x[i];
  }

  void eliminate(T* Z, i64 w, i64 h, Work& work) const {
    const i64 size = w + h;
    T *X = work.X.data(), *Y = work.Y.data();
    // X_R = L_RJ L_JJ^-1, Y_R = U_JJ^-1 U_JR: the parts of their rows from w on.
    for (i64 k = w - 1; k >= 0; --k)
      for (i64 m = k + 1; m < w; ++m)
        if (X[k * size + m] != T(0))
          subtract(X + k * size + w, X[k * size + m], X + m * size + w, h);
    for (i64 k = w - 1; k >= 0; --k) {
      for (i64 m = k + 1; m < w; ++m)
        if (Y[k * size + m] != T(0))
          subtract(Y + k * size + w, Y[k * size + m], Y + m * size + w, h);
      const T pivot = T(1) / Y[k * size + k];
      for (i64 i = w; i < size; ++i)
        Y[k * size + i] = pivot * Y[k * size + i];
    }
    work.right.assign(static_cast<std::size_t>(w * h), T(0));
    multiply(work.right.data(), Y + w, size, Z + w * size + w, size, w, h); // -Y Z_RR
    const T* left = work.right.data();
    if (!symmetric) {
      work.left.assign(static_cast<std::size_t>(w * h), T(0));
      work.turned.resize(static_cast<std::size_t>(h * h));
      turn(work.turned.data(), Z + w * size + w, size, h);
      multiply(work.left.data(), X + w, size, work.turned.data(), h, w, h); // (-Z_RR X)^T
      left = work.left.data();
    }
    for (i64 k = 0; k < w; ++k)
      std::copy(work.right.data() + k * h, work.right.data() + (k + 1) * h, Z + k * size + w);
    for (i64 i = 0; i < h; ++i)
      for (i64 k = 0; k < w; ++k)
        Z[(w + i) * size + k] = left[k * h + i];
    diagonal_block(Z, w, h, work);
  }

  // Z_JJ = U_JJ^-1 L_JJ^-1 - Y Z_RJ, in the first w columns of the first w rows.
  void diagonal_block(T* Z, i64 w, i64 h, const Work& work) const {
    const i64 size = w + h;
    const T *X = work.X.data(), *Y = work.Y.data();
    for (i64 a = 0; a < w; ++a) {
      std::fill_n(Z + a * size, w, T(0));
      Z[a * size + a] = T(1);
      for (i64 m = 0; m < a; ++m)
        if (X[m * size + a] != T(0))
          subtract(Z + a * size, X[m * size + a], Z + m * size, m + 1);
    }
    for (i64 a = w - 1; a >= 0; --a) {
      for (i64 m = a + 1; m < w; ++m)
        if (Y[a * size + m] != T(0))
          subtract(Z + a * size, Y[a * size + m], Z + m * size, w);
      const T pivot = T(1) / Y[a * size + a];
      for (i64 b = 0; b < w; ++b)
        Z[a * size + b] = pivot * Z[a * size + b];
    }
    for (i64 a = 0; a < w; ++a)
      for (i64 i = 0; i < h; ++i)
        if (Y[a * size + w + i] != T(0))
          subtract(Z + a * size, Y[a * size + w + i], Z + (w + i) * size, w);
  }

  static void turn(T* to, const T* from, i64 ld, i64 h) {
    constexpr i64 kTile = 16;
    for (i64 a = 0; a < h; a += kTile)
      for (i64 b = 0; b < h; b += kTile)
        for (i64 i = a; i < std::min(a + kTile, h); ++i)
          for (i64 j = b; j < std::min(b + kTile, h); ++j)
            to[j * h + i] = from[i * ld + j];
  }

  // C -= A B: A has w rows, a distance of lda apart, and B is h x h. Four rows of B are read
  // together, so that a row of C is loaded and stored once for four multiplications.
  static void multiply(T* __restrict C, const T* A, i64 lda, const T* B, i64 ldb, i64 w, i64 h) {
    i64 i = 0;
    for (; i + 4 <= h; i += 4) {
      const T* b = B + i * ldb;
      for (i64 k = 0; k < w; ++k) {
        const T* a = A + k * lda + i;
        const T a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
        T* __restrict c = C + k * h;
        for (i64 j = 0; j < h; ++j)
          c[j] -= a0 * b[j] + a1 * b[ldb + j] + (a2 * b[2 * ldb + j] + a3 * b[3 * ldb + j]);
      }
    }
    for (; i < h; ++i)
      for (i64 k = 0; k < w; ++k)
        subtract(C + k * h, A[k * lda + i], B + i * ldb, h);
  }
};

} // namespace wl
