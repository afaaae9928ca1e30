// Orders of rows and columns. See wollemi.core.operations.ordering.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "omp/interruption.hpp"
#include "unified/types.hpp"

namespace wl {

// Shortest augmenting paths (Duff and Koster, On algorithms for permuting large entries to the
// diagonal of a sparse matrix, SIAM J. Matrix Anal. Appl. 22 (2001), section 4), in linear memory.
template <class T, class I>
struct ordering_matching {
  using R = real_t<T>;
  const I *indptr, *indices;
  const T* cost;
  I* column;
  T *u, *v;
  i64 p, e, n;

  static constexpr I kNone = I(-1);
  static constexpr R kFar = std::numeric_limits<R>::infinity();

  struct State {
    std::vector<R> row_dual, column_dual, distance;
    std::vector<I> row_of, from; // of a column: the row matched to it, the row it was reached from
    std::vector<char> done;
    std::vector<I> touched;
    std::vector<I> closing, closed; // rows without a path; of a column: which of them closed it
    std::vector<std::pair<R, I>> heap;
  };

  void operator()(int) const {
    State s;
    const auto size = static_cast<std::size_t>(n);
    s.row_dual.assign(size, R(0)), s.column_dual.assign(size, kFar);
    s.distance.assign(size, kFar);
    s.row_of.assign(size, kNone), s.from.assign(size, kNone);
    s.done.assign(size, 0), s.closed.assign(size, I(0));
    begin(s);
    for (i64 i = 0; i < n && !interrupted(); ++i)
      if (column[i] == kNone)
        augment(s, static_cast<I>(i));
    shift(s);
    for (i64 i = 0; i < n; ++i)
      u[i] = T(s.row_dual[i]), v[i] = T(s.column_dual[i]);
    end_if_interrupted();
  }

  // Duals from the least costs of columns, then of rows; tight edges are matched at once.
  void begin(State& s) const {
    for (i64 q = 0; q < indptr[n]; ++q)
      s.column_dual[indices[q]] = std::min(s.column_dual[indices[q]], real(cost[q]));
    for (R& dual : s.column_dual)
      dual = dual == kFar ? R(0) : dual;
    for (i64 i = 0; i < n; ++i) {
      column[i] = kNone;
      R least = kFar;
      for (I q = indptr[i]; q < indptr[i + 1]; ++q)
        least = std::min(least, real(cost[q]) - s.column_dual[indices[q]]);
      s.row_dual[i] = least == kFar ? R(0) : least;
      for (I q = indptr[i]; q < indptr[i + 1] && column[i] == kNone; ++q)
        if (const I j = indices[q];
            s.row_of[j] == kNone && real(cost[q]) - s.column_dual[j] == s.row_dual[i])
          s.row_of[j] = static_cast<I>(i), column[i] = j;
    }
  }

  // The shortest path from row `first` to a free column, by Dijkstra's algorithm, which ends when
  // no other column is nearer than the nearest free one.
  void augment(State& s, I first) const {
    I row = first, end = kNone;
    R base(0), length_to_end = kFar;
    s.touched.clear(), s.heap.clear();
    for (;;) {
      for (I q = indptr[row]; q < indptr[row + 1]; ++q) {
        const I j = indices[q];
        if (s.done[j])
          continue;
        const R length = base + (real(cost[q]) - s.row_dual[row] - s.column_dual[j]);
        if (!(length < s.distance[j] && length < length_to_end))
          continue;
        if (s.distance[j] == kFar)
          s.touched.push_back(j);
        s.distance[j] = length, s.from[j] = row;
        if (s.row_of[j] == kNone) {
          end = j, length_to_end = length;
        } else {
          s.heap.emplace_back(-length, -j);
          std::push_heap(s.heap.begin(), s.heap.end());
        }
      }
      I next = kNone;
      while (!s.heap.empty() && next == kNone) {
        std::pop_heap(s.heap.begin(), s.heap.end());
        const I j = -s.heap.back().second;
        s.heap.pop_back();
        if (!s.done[j])
          next = j;
      }
      if (next == kNone || !(s.distance[next] < length_to_end))
        break;
      s.done[next] = 1;
      base = s.distance[next];
      row = s.row_of[next];
    }
    if (end == kNone) { // all columns of these rows are matched to these rows: no path leaves them
      s.closing.push_back(first);
      for (const I j : s.touched)
        s.closed[j] = static_cast<I>(s.closing.size());
      return;
    }
    take(s, first, end);
    for (const I j : s.touched)
      s.distance[j] = kFar, s.done[j] = 0;
  }

  // The duals of closed columns and of their rows do not follow later paths. Rows have entries in
  // columns that were closed with them or before, so that a shift for each search without a path,
  // of its columns and rows, makes all entries feasible again.
  void shift(State& s) const {
    const std::size_t searches = s.closing.size(), open = searches + 1;
    std::vector<R> shifts(open + 1, R(0));
    std::vector<std::size_t> of_row(static_cast<std::size_t>(n), open);
    for (i64 i = 0; i < n; ++i)
      if (column[i] != kNone && s.closed[column[i]])
        of_row[i] = static_cast<std::size_t>(s.closed[column[i]]);
    for (std::size_t k = 0; k < searches; ++k)
      of_row[s.closing[k]] = k + 1;
    std::vector<std::vector<I>> rows(open + 1);
    for (i64 i = 0; i < n; ++i)
      rows[of_row[i]].push_back(static_cast<I>(i));
    for (std::size_t k = open; k > 0; --k)
      for (const I i : rows[k])
        for (I q = indptr[i]; q < indptr[i + 1]; ++q)
          if (const I j = indices[q], m = s.closed[j]; m && static_cast<std::size_t>(m) < k)
            shifts[m] =
                std::max(shifts[m], shifts[k] + s.row_dual[i] + s.column_dual[j] - real(cost[q]));
    for (i64 i = 0; i < n; ++i) {
      s.row_dual[i] += shifts[of_row[i]];
      s.column_dual[i] -= shifts[s.closed[i]];
    }
  }

  void take(State& s, I first, I end) const {
    const R length = s.distance[end];
    s.row_dual[first] += length;
    for (const I j : s.touched)
      if (s.done[j]) {
        s.column_dual[j] += s.distance[j] - length;
        s.row_dual[s.row_of[j]] += length - s.distance[j];
      }
    for (I j = end; j != kNone;) {
      const I row = s.from[j], before = column[row];
      s.row_of[j] = row, column[row] = j;
      j = row == first ? kNone : before;
    }
  }
};

template <class I>
struct ordering_colors {
  const I *indptr, *indices;
  I* color;
  i64 p, e, n;

  void operator()(int) const {
    std::vector<i64> taken; // by which row a color was last found with a neighbour
    for (i64 i = 0; i < n; ++i) {
      for (I q = indptr[i]; q < indptr[i + 1]; ++q)
        if (indices[q] < i) {
          const auto other = static_cast<std::size_t>(color[indices[q]]);
          if (other >= taken.size())
            taken.resize(other + 1, -1);
          taken[other] = i;
        }
      std::size_t free = 0;
      while (free < taken.size() && taken[free] == i)
        ++free;
      color[i] = static_cast<I>(free);
    }
  }
};

// Entries of the columns of a Cholesky factor: the entries of row k lie on the paths from its
// columns to k in the elimination tree (T. A. Davis, Direct Methods for Sparse Linear Systems,
// section 4.4).
template <class I>
struct ordering_fill {
  const I *indptr, *indices, *order;
  i64 most;
  i64 *entries, *operations;
  i64 p, e, n;

  void operator()(int) const {
    const auto size = static_cast<std::size_t>(n);
    std::vector<I> place(size), parent(size, I(-1)), seen(size, I(-1));
    std::vector<i64> count(size, 1);
    for (i64 k = 0; k < n; ++k)
      place[order[k]] = static_cast<I>(k);
    i64 found = 0;
    for (i64 k = 0; k < n && found <= most && !interrupted(); ++k) {
      seen[k] = static_cast<I>(k);
      ++found;
      const I row = order[k];
      for (I q = indptr[row]; q < indptr[row + 1]; ++q)
        for (I j = place[indices[q]]; j < k && seen[j] != k; j = parent[j]) {
          if (parent[j] == I(-1))
            parent[j] = static_cast<I>(k);
          ++count[j], ++found;
          seen[j] = static_cast<I>(k);
        }
    }
    i64 squares = 0;
    for (const i64 length : count)
      squares += length * length;
    entries[0] = found, operations[0] = squares;
    end_if_interrupted();
  }
};

// Levels of a breadth-first search. Rows of a level are visited in the order of the queue.
template <class I>
struct ordering_search {
  const I *indptr, *indices;
  i64 start;
  I* level;
  i64 p, e, n;

  void operator()(int) const {
    std::vector<I> queue;
    if (start < 0 || start >= n || level[start] != I(-1))
      return;
    queue.reserve(static_cast<std::size_t>(n));
    queue.push_back(static_cast<I>(start));
    level[start] = 0;
    for (std::size_t head = 0; head < queue.size() && !interrupted(); ++head) {
      const I row = queue[head], next = level[row] + 1;
      for (I q = indptr[row]; q < indptr[row + 1]; ++q)
        if (const I j = indices[q]; level[j] == I(-1)) {
          level[j] = next;
          queue.push_back(j);
        }
    }
    end_if_interrupted();
  }
};

// Orders in which a pattern is triangular: a row with one entry left comes next, and its column is
// taken out. The sum of the columns that a row has left is its last one in the end.
template <class I>
struct ordering_substitution {
  const I *indptr, *indices;
  I *row, *column;
  i64* found;
  i64 p, e, n;

  void operator()(int) const {
    const auto size = static_cast<std::size_t>(n);
    std::vector<i64> left(size), sum(size, 0), begin(size + 1, 0);
    std::vector<I> rows(static_cast<std::size_t>(e));
    for (i64 q = 0; q < e; ++q)
      ++begin[static_cast<std::size_t>(indices[q]) + 1];
    for (std::size_t j = 0; j < size; ++j)
      begin[j + 1] += begin[j];
    std::vector<i64> place(begin.begin(), begin.end() - 1);
    std::vector<I> ready;
    for (i64 i = 0; i < n; ++i) {
      left[i] = i64(indptr[i + 1]) - i64(indptr[i]);
      for (I q = indptr[i]; q < indptr[i + 1]; ++q) {
        sum[i] += indices[q];
        rows[place[indices[q]]++] = static_cast<I>(i);
      }
      if (left[i] == 1)
        ready.push_back(static_cast<I>(i));
    }
    i64 count = 0;
    for (std::size_t head = 0; head < ready.size() && !interrupted(); ++head) {
      const I i = ready[head];
      if (left[i] != 1) // its last column went to another row
        continue;
      const i64 j = sum[i];
      row[count] = i, column[count] = static_cast<I>(j), ++count;
      for (i64 q = begin[j]; q < begin[j + 1]; ++q) {
        const I other = rows[q];
        sum[other] -= j;
        if (--left[other] == 1)
          ready.push_back(other);
      }
    }
    found[0] = count;
    end_if_interrupted();
  }
};

} // namespace wl
