// Products of sparse and dense matrices with blocks of vectors on CPU devices: a work-group is one
// work-item, and has rows (or parts of a partition) of its own.
#pragma once
#include "products.hpp"

static_assert(WL_BLOCK == 1, "this is for work-groups of one");

namespace wl {

// The share of `count` things that a work-group has.
struct share {
  i64 begin, end;
  WL_DEVICE share(const item& it, i64 count)
      : begin(count * it.block() / it.blocks()), end(count * (it.block() + 1) / it.blocks()) {}
};

// Entries between the one in use and the one asked for; as the omp backend has measured it.
constexpr i64 AHEAD = 768;

// Asks for the cache lines of eight elements; past the end of an array this is harmless. SYCL's own
// prefetch does nothing on CPU devices, but their drivers take assembly: on two cores of an EPYC
// (Zen 4) the 7-point stencil falls from 2.24 ms to 1.90.
template <class T>
WL_DEVICE void prefetch_eight(const T* address) {
#if WL_X86
  for (int byte = 0; byte < int(8 * sizeof(T)); byte += 64)
    asm volatile("prefetcht0 (%0)" ::"r"(reinterpret_cast<const char*>(address) + byte));
#endif
}

// The sum of data[e] x[column(e)] over `n` entries that lie `stride` apart, for one contiguous x.
template <class S, class T, class I>
WL_DEVICE T row_dot(const S* data, const I* indices, i64 n, const T* x) {
  T even{}, odd{};
  i64 e = 0;
  for (; e + 8 <= n; e += 8) {
    prefetch_eight(data + e + AHEAD);
    prefetch_eight(indices + e + AHEAD);
#pragma unroll
    for (int j = 0; j < 8; j += 2) {
      multiply_add(even, raised<T>(data[e + j]), x[indices[e + j]]);
      multiply_add(odd, raised<T>(data[e + j + 1]), x[indices[e + j + 1]]);
    }
  }
  if (e < n) {
    prefetch_eight(data + e + AHEAD);
    prefetch_eight(indices + e + AHEAD);
  }
  for (; e < n; ++e)
    multiply_add(even, raised<T>(data[e]), x[indices[e]]);
  return even + odd;
}

// Where the sums of rows go in one column: y = alpha sum + beta y. Where beta is 0, a zero of ours
// takes the place of y: a branch would become a load that is always done, and waited for.
template <class T>
struct one_column {
  T* y;
  i64 ld;
  const T* old;
  i64 old_ld;
  T alpha, beta;

  WL_DEVICE one_column(mat<T> of_y, T a, T b, const T* zero)
      : y(of_y.data), ld(of_y.ld), old(b == T(0) ? zero : of_y.data),
        old_ld(b == T(0) ? 0 : of_y.ld), alpha(a), beta(b) {}

  WL_DEVICE void put(i64 row, T sum) const { y[row * ld] = alpha * sum + beta * old[row * old_ld]; }
};

// The same where beta is 0 and y has no gaps, as solvers and most products have it: without loads
// of old values and of strides the 7-point stencil on 100^3 in float32 falls from 3.75 ms to 3.36,
// the 27-point one on 60^3 from 2.54 to 2.27 (November 2026, two cores of an EPYC Zen 4).
template <class T>
struct plain_column {
  T* y;
  T alpha;
  WL_DEVICE void put(i64 row, T sum) const { y[row] = alpha * sum; }
};

// Calls body(column) with the column that y is. For complex numbers, which cost more arithmetic,
// there is the one kind: another would take a second more to compile.
template <class T, class Body>
WL_DEVICE void with_column(mat<T> y, T alpha, T beta, const Body& body) {
  if constexpr (same<T, real_t<T>>::value)
    if (y.ld == 1 && beta == T(0)) {
      body(plain_column<T>{y.data, alpha});
      return;
    }
  const T zero{};
  body(one_column<T>(y, alpha, beta, &zero));
}

// Calls body.template operator()<W>(c) on tiles that cover columns [0, k), widest first: sums of so
// many columns stay in registers while the entries of a row are read.
template <int W = 8, class Body>
WL_DEVICE void for_column_tiles(i64 k, const Body& body, i64 c = 0) {
  for (; c + W <= k; c += W)
    body.template tile<W>(c);
  if constexpr (W > 1)
    for_column_tiles<W / 2>(k, body, c);
}

// y(row, :) = alpha sum_e data[e stride] x(column(e), :) + beta y(row, :); a column below 0 is
// padding.
template <class T, class Column, class S = T>
struct row_times_columns {
  i64 n;
  const S* data;
  i64 stride;
  Column column;
  mat<const T> x;
  T* y;
  T alpha, beta;

  template <int W>
  WL_DEVICE void tile(i64 first) const {
    T sums[W] = {};
    for (i64 e = 0; e < n; ++e) {
      const i64 at = column(e);
      if (at < 0)
        continue;
      const T value = raised<T>(data[e * stride]);
      const T* const of_x = x.data + at * x.ld + first;
#pragma unroll
      for (int w = 0; w < W; ++w)
        multiply_add(sums[w], value, of_x[w]);
    }
    for (int w = 0; w < W; ++w)
      store(y[first + w], sums[w], alpha, beta);
  }
};

template <class T, class I>
struct listed {
  const I* indices;
  i64 stride;
  WL_DEVICE i64 operator()(i64 e) const { return indices[e * stride]; }
};

template <class S, class T, class I>
WL_DEVICE void csr_row(i64 begin, i64 end, const I* indices, const S* data, i64 k, mat<const T> x,
                       T* y, T alpha, T beta) {
  if (k == 1 && x.ld == 1)
    store(y[0], row_dot(data + begin, indices + begin, end - begin, x.data), alpha, beta);
  else
    for_column_tiles(k, row_times_columns<T, listed<T, I>, S>{
                            end - begin, data + begin, 1, {indices + begin, 1}, x, y, alpha, beta});
}

// Part p has what is from row cut_row[p], entry cut_entry[p], up to the next cut. A row that is cut
// gets its first piece at once; later pieces go to carry, for csr_carry to add.
template <class T, class I, class S>
WL_DEVICE void csr_parts(const item& it, i64 parts, const i64* cut_row, const i64* cut_entry, i64 k,
                         const I* indptr, const I* indices, const S* data, mat<const T> x, mat<T> y,
                         T alpha, T beta, T* carry) {
  for (i64 p = it.block(); p < parts; p += it.blocks()) {
    i64 row = cut_row[p], at = cut_entry[p];
    const i64 last = cut_row[p + 1], end = cut_entry[p + 1];
    if (row < last && at > indptr[row]) {
      csr_row(at, i64(indptr[row + 1]), indices, data, k, x, carry + p * k, alpha, T(0));
      at = indptr[++row];
    } else if (row == last && at < end && at > indptr[row]) {
      csr_row(at, end, indices, data, k, x, carry + p * k, alpha, T(0));
      continue;
    }
    if (k == 1 && x.ld == 1) {
      with_column(y, alpha, beta, [&](const auto& column) {
        for (; row < last; ++row) {
          const i64 next = indptr[row + 1];
          column.put(row, row_dot(data + at, indices + at, next - at, x.data));
          at = next;
        }
      });
    } else {
      for (; row < last; ++row) {
        const i64 next = indptr[row + 1];
        csr_row(at, next, indices, data, k, x, &y(row, 0), alpha, beta);
        at = next;
      }
    }
    if (at < end)
      csr_row(at, end, indices, data, k, x, &y(row, 0), alpha, beta);
  }
}

// One work-item adds the later pieces, in the order of the parts.
template <class T, class I>
WL_DEVICE void csr_carry(const item& it, i64 parts, const i64* cut_row, const i64* cut_entry, i64 k,
                         const I* indptr, mat<T> y, const T* carry) {
  if (it.block() != 0)
    return;
  for (i64 p = 1; p < parts; ++p)
    if (cut_entry[p] > indptr[cut_row[p]] && cut_entry[p] < cut_entry[p + 1])
      for (i64 c = 0; c < k; ++c)
        y(cut_row[p], c) += carry[p * k + c];
}

// Rows that are neighbours in memory go together, as many as fill vector registers.
constexpr int TOGETHER = 16;

template <class T, class I>
WL_DEVICE void ell_cpu(const item& it, i64 m, i64 k, i64 width, const T* data, const I* indices,
                       mat<const T> x, mat<T> y, T alpha, T beta) {
  const share mine(it, m);
  i64 row = mine.begin;
  for (; k == 1 && row + TOGETHER <= mine.end; row += TOGETHER) {
    T sums[TOGETHER] = {};
    for (i64 j = 0; j < width; ++j) {
      const T* const values = data + j * m + row;
      const I* const columns = indices + j * m + row;
      for (int l = 0; l < TOGETHER; ++l)
        if (columns[l] >= 0)
          multiply_add(sums[l], values[l], x(columns[l], 0));
    }
    for (int l = 0; l < TOGETHER; ++l)
      store(y(row + l, 0), sums[l], alpha, beta);
  }
  for (; row < mine.end; ++row)
    for_column_tiles(k, row_times_columns<T, listed<T, I>>{
                            width, data + row, m, {indices + row, m}, x, &y(row, 0), alpha, beta});
}

template <class T, class I>
WL_DEVICE void sellp_cpu(const item& it, i64 m, i64 k, i64 slice_size, const T* data,
                         const I* indices, const I* slice_ptr, const I* permutation, mat<const T> x,
                         mat<T> y, T alpha, T beta) {
  const share mine(it, (m + slice_size - 1) / slice_size);
  for (i64 s = mine.begin; s < mine.end; ++s) {
    const i64 base = slice_ptr[s], width = (slice_ptr[s + 1] - base) / slice_size;
    const i64 lanes = m - s * slice_size < slice_size ? m - s * slice_size : slice_size;
    const I* const rows = permutation + s * slice_size;
    i64 lane = 0;
    for (; k == 1 && lane + 8 <= lanes; lane += 8) {
      T sums[8] = {};
      for (i64 j = 0; j < width; ++j) {
        const i64 at = base + j * slice_size + lane;
        for (int l = 0; l < 8; ++l)
          if (indices[at + l] >= 0)
            multiply_add(sums[l], data[at + l], x(indices[at + l], 0));
      }
      for (int l = 0; l < 8; ++l)
        store(y(rows[lane + l], 0), sums[l], alpha, beta);
    }
    for (; lane < lanes; ++lane)
      for_column_tiles(k, row_times_columns<T, listed<T, I>>{width,
                                                             data + base + lane,
                                                             slice_size,
                                                             {indices + base + lane, slice_size},
                                                             x,
                                                             &y(rows[lane], 0),
                                                             alpha,
                                                             beta});
  }
}

// Element e of a row of blocks: column j of block b, where e = b c + j.
template <class I>
struct in_blocks {
  const I* indices;
  i64 c;
  WL_DEVICE i64 operator()(i64 e) const { return indices[e / c] * c + e % c; }
};

template <class T, class I>
WL_DEVICE void bsr_cpu(const item& it, i64 block_rows, i64 k, i64 r, i64 c, const I* indptr,
                       const I* indices, const T* data, mat<const T> x, mat<T> y, T alpha, T beta) {
  const share mine(it, block_rows);
  for (i64 block_row = mine.begin; block_row < mine.end; ++block_row)
    for (i64 i = 0; i < r; ++i)
      for (i64 column = 0; column < k; ++column) {
        T sum{};
        for (i64 b = indptr[block_row]; b < indptr[block_row + 1]; ++b) {
          const T* const values = data + (b * r + i) * c;
          const i64 first = i64(indices[b]) * c;
          for (i64 j = 0; j < c; ++j)
            multiply_add(sum, values[j], x(first + j, column));
        }
        store(y(block_row * r + i, column), sum, alpha, beta);
      }
}

struct all {
  WL_DEVICE i64 operator()(i64 e) const { return e; }
};

template <class T>
WL_DEVICE void dense_cpu(const item& it, i64 m, i64 n, i64 k, const T* data, mat<const T> x,
                         mat<T> y, T alpha, T beta) {
  const share mine(it, m);
  for (i64 row = mine.begin; row < mine.end; ++row) {
    const T* const values = data + row * n;
    if (k > 1 || x.ld != 1) {
      for_column_tiles(k, row_times_columns<T, all>{n, values, 1, {}, x, &y(row, 0), alpha, beta});
      continue;
    }
    T sums[TOGETHER] = {};
    i64 j = 0;
    for (; j + TOGETHER <= n; j += TOGETHER)
#pragma unroll
      for (int l = 0; l < TOGETHER; ++l)
        multiply_add(sums[l], values[j + l], x.data[j + l]);
    for (; j < n; ++j)
      multiply_add(sums[0], values[j], x.data[j]);
    for (int half = TOGETHER / 2; half > 0; half /= 2)
      for (int l = 0; l < half; ++l)
        sums[l] += sums[l + half];
    store(y(row, 0), sums[0], alpha, beta);
  }
}

template <class T, class I>
WL_DEVICE void csr_diagonal_cpu(const item& it, i64 count, const I* indptr, const I* indices,
                                const T* data, T* d) {
  const share mine(it, count);
  for (i64 row = mine.begin; row < mine.end; ++row) {
    T sum{};
    for (i64 e = indptr[row]; e < indptr[row + 1]; ++e)
      if (indices[e] == row)
        sum += data[e];
    d[row] = sum;
  }
}

} // namespace wl
