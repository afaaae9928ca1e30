// y = alpha A x + beta y for formats that let several lanes share a row. beta = 0 does not read y.
//
// The kernels for one vector have an epilogue as their last argument. It is called for a row once y
// has its value, and computes for example this row's part of a sum that a solver needs next. This
// saves reading y again. An epilogue also determines the order of the rows, and may wait before a
// row until its entries of x have arrived from another device.
//
// Values of CSR are stored in S, which may be a lower dtype than T: they are converted in
// registers.
#pragma once
#include "unified/long_sums.hpp"
#include "unified/map_simt.hpp"
#include "simt/narrow.hpp"

namespace wl {

// The epilogue that does nothing.
struct nothing {
  // The position that is processed in turn `turn` of `count`, a multiple of the wave's lanes.
  WL_DEVICE i64 place(i64 turn, i64) const { return turn; }
  // Called before x is read for rows begin .. end.
  WL_DEVICE void before(i64, i64) {}
  WL_DEVICE void row(i64) {}
  WL_DEVICE void close(const item&) {}
};

// A functor over rows is evaluated at each row right after its product.
template <class F>
struct then : nothing {
  F f;
  void* partials;
  i32* counter;
  typename F::column_state state;
  typename F::sum sum;

  WL_DEVICE then(const F& functor, void* scratch, i32* zero)
      : f(functor), partials(scratch), counter(zero), state(functor.column(0)), sum{} {}
  WL_DEVICE void row(i64 i) {
    if (state.active)
      sum += f(i, 0, state);
  }
  WL_DEVICE void close(const item& it) {
    if (state.active)
      close_column(it, f, sum, partials, counter);
  }
};

// W lanes for each row and any number of columns; four columns at a time, so that a row is read k /
// 4 times.
template <int W, class T, class I, class S, class E = nothing>
WL_DEVICE void csr_subwarp(const item& it, i64 m, i64 k, const I* indptr, const I* indices,
                           const S* data, mat<const T> x, mat<T> y, T alpha, T beta, E after = {}) {
  constexpr int rows = WL_BLOCK / W, strip = 4;
  const int lane = it.thread() % W;
  for (i64 first = it.block() * rows; first < m; first += it.blocks() * rows) {
    const i64 row = first + it.thread() / W;
    const bool inside = row < m;
    const I begin = inside ? indptr[row] : I(0), end = inside ? indptr[row + 1] : I(0);
    if (k == 1) {
      after.before(row, row + 1);
      T sum = sum_of_terms<T>(end - begin, W, [&](i64 from, i64 to) {
        T part{};
        for (I e = begin + I(from) + lane; e < begin + I(to); e += W)
          part += raised<T>(read_once(data + e)) * x(read_once(indices + e), 0);
        return part;
      });
      sum = sum_of_lanes<W>(it, sum);
      if (inside && lane == 0) {
        store(y(row, 0), sum, alpha, beta);
        after.row(row);
      }
      continue;
    }
    for (i64 c = 0; c < k; c += strip) {
      T sums[strip] = {};
      const auto add = [&](I from, I to) {
        for (I e = from + lane; e < to; e += W) {
          const T value = raised<T>(data[e]);
          const i64 column = indices[e];
          for (int s = 0; s < strip; ++s)
            if (c + s < k)
              sums[s] += value * x(column, c + s);
        }
      };
      if (sums_in_pieces<T> && end - begin > I(PIECE_OF_SUM * W)) {
        long_sum<T> totals[strip] = {};
        for (I e = begin; e < end;) {
          const I stop = end - e > I(PIECE_OF_SUM * W) ? e + I(PIECE_OF_SUM * W) : end;
          add(e, stop);
          for (int s = 0; s < strip; ++s) {
            totals[s].add(sums[s]);
            sums[s] = T{};
          }
          e = stop;
        }
        for (int s = 0; s < strip; ++s)
          sums[s] = totals[s].value();
      } else {
        add(begin, end);
      }
      for (int s = 0; s < strip; ++s) {
        const T sum = sum_of_lanes<W>(it, sums[s]);
        if (inside && lane == 0 && c + s < k)
          store(y(row, c + s), sum, alpha, beta);
      }
    }
  }
  after.close(it);
}

// Each block processes WL_BLOCK rows: it loads their entries coalesced and stores the products in
// shared memory; then each work-item adds up a row. A few lanes share each row that does not fit.
// The index type must be able to count the rows.
//
// 7-point stencil 200^3, H200: 206 microseconds. With the beginnings of the rows loaded to shared
// memory first it took 224: the entries waited for one more barrier, and with 42 registers instead
// of 32 fewer blocks were resident. With rows counted in 64 bits it took 211.
template <class S, class T, class I, class E>
WL_DEVICE void csr_stream_rows(const item& it, I first, I m, const I* indptr, const I* indices,
                               const S* data, const T* x, T* y, T alpha, T beta, E& after) {
  constexpr int each = sizeof(T) > 8 ? 4 : 8, capacity = WL_BLOCK * each, lanes = 8;
  WL_SHARED(T, products, capacity);
  WL_SHARED(int, bounds, WL_BLOCK + 1);
  const int t = it.thread(), rows = m - first < WL_BLOCK ? int(m - first) : WL_BLOCK;
  const I begin = indptr[first], count = indptr[first + rows] - begin;
  if (count <= capacity) {
    const int mine = t < rows ? int(indptr[first + t] - begin) : 0, left = int(count) - t;
    indices += begin + t;
    data += begin + t;
    I columns[each];
    T values[each];
#pragma unroll
    for (int u = 0; u < each; ++u) {
      columns[u] = u * WL_BLOCK < left ? read_once(indices + u * WL_BLOCK) : I(0);
      values[u] = u * WL_BLOCK < left ? raised<T>(read_once(data + u * WL_BLOCK)) : T(0);
    }
    if (t < rows)
      bounds[t] = mine;
    if (t == 0)
      bounds[rows] = int(count);
// All gathers are issued before the first product is stored: the compiler cannot know that the
// stores do not change x.
#pragma unroll
    for (int u = 0; u < each; ++u)
      values[u] = values[u] * x[columns[u]];
#pragma unroll
    for (int u = 0; u < each; ++u)
      if (u * WL_BLOCK < left)
        products[u * WL_BLOCK + t] = values[u];
    it.barrier();
    if (t < rows) {
      T sum{};
      for (int e = bounds[t]; e < bounds[t + 1]; ++e)
        sum += products[e];
      store(y[first + t], sum, alpha, beta);
      after.row(first + t);
    }
  } else {
    for (int r = t / lanes; r < WL_BLOCK; r += WL_BLOCK / lanes) {
      const i64 row = first + r;
      const I stop = r < rows ? indptr[row + 1] : I(0);
      const I start = r < rows ? indptr[row] : I(0);
      T sum = sum_of_terms<T>(stop - start, lanes, [&](i64 from, i64 to) {
        T part{};
#pragma unroll 4
        for (I e = start + I(from) + t % lanes; e < start + I(to); e += lanes)
          part += raised<T>(data[e]) * x[indices[e]];
        return part;
      });
      sum = sum_of_lanes<lanes>(it, sum);
      if (r < rows && t % lanes == 0) {
        store(y[row], sum, alpha, beta);
        after.row(row);
      }
    }
  }
}

// An epilogue may need a small number of blocks, which then process the rows in turn. Otherwise
// every block has its own rows.
template <class T, class I, class S, class E = nothing>
WL_DEVICE void csr_stream(const item& it, i64 m, const I* indptr, const I* indices, const S* data,
                          const T* x, T* y, T alpha, T beta, E after = {}) {
  i64 first = it.block() * WL_BLOCK;
  if constexpr (same<E, nothing>::value) {
    if (first < m)
      csr_stream_rows(it, I(first), I(m), indptr, indices, data, x, y, alpha, beta, after);
  } else {
    const i64 count = (m + WL_BLOCK - 1) / WL_BLOCK * WL_BLOCK;
    for (; first < m; first += it.blocks() * WL_BLOCK) {
      const i64 row = after.place(first, count);
      after.before(row, row + WL_BLOCK);
      it.barrier(); // the previous rows are added up
      csr_stream_rows(it, I(row), I(m), indptr, indices, data, x, y, alpha, beta, after);
    }
    after.close(it);
  }
}

// The encoding of the column of an entry of a packed matrix.
enum column_code { ABSOLUTE = 0, NEAR = 1, PATTERN = 2 };
constexpr short NO_STEP = -0x7fff - 1;

// The column of an entry of a packed matrix in `row`; negative for padding.
template <int CODE>
WL_DEVICE i32 packed_column(const u8* codes, i64 at, const i32* offsets, int j, i32 row) {
  if constexpr (CODE == ABSOLUTE) {
    return read_once(reinterpret_cast<const i32*>(codes) + at);
  } else if constexpr (CODE == NEAR) {
    const short near = read_once(reinterpret_cast<const short*>(codes) + at);
    return near == NO_STEP ? -1 : row + near;
  } else {
    return row + offsets[j]; // -2^31, the code of padding, makes every row negative
  }
}

// Processes entries begin .. begin + COUNT of a lane; all loads are issued before the first use.
template <int CODE, int COUNT, class T, class S, class X>
WL_DEVICE T packed_part(const u8* codes, const S* values, i64 place, const i32* offsets, int begin,
                        int width, i32 row, const X& x) {
  T entries[COUNT];
  i32 columns[COUNT];
#pragma unroll
  for (int u = 0; u < COUNT; ++u) {
    const bool real_entry = begin + u < width;
    const i64 at = place + i64(begin + u) * WL_WARP;
    entries[u] = real_entry ? raised<T>(read_once(values + at)) : T(0);
    columns[u] = real_entry ? packed_column<CODE>(codes, at, offsets, begin + u, row) : -1;
  }
  T sum{};
#pragma unroll
  for (int u = 0; u < COUNT; ++u)
    if (columns[u] >= 0)
      sum += entries[u] * x[columns[u]];
  return sum;
}

// Slices of WL_WARP rows of similar length, stored entry by entry: each lane processes a row, and
// the loads of adjacent lanes are coalesced.
//
// CODE is the encoding of an entry's column: ABSOLUTE, an i32 each; NEAR, an i16 each, relative to
// the row; PATTERN, in a table of offsets shared by all rows of a pattern. `target` holds the row
// of each lane; if it is null, lane v has row v. A target t < 0 marks a segment of a long row, and
// its sum goes to partial[-1 - t]. WIDTH is the width of all slices; if it is 0, widths differ and
// `slice_ptr` holds the beginnings. There are fewer than 2^31 rows, columns and entries.
template <int CODE, int WIDTH, class T, class S, class X, class E = nothing>
WL_DEVICE void sell_packed(const item& it, i64 lanes, const i64* slice_ptr, const u8* codes,
                           const S* values, const i32* target, const i32* offsets,
                           i64 pattern_width, const X& x, T* y, T alpha, T beta, T* partial,
                           E after = {}) {
  constexpr int most = sizeof(T) > 8 ? 4 : 8;
  constexpr int parts = WIDTH ? (WIDTH + most - 1) / most : 1;
  constexpr int count = WIDTH ? (WIDTH + parts - 1) / parts : most;
  const i64 step = it.blocks() * WL_BLOCK;
  for (i64 turn = it.block() * WL_BLOCK + it.thread(); turn < lanes; turn += step) {
    const i64 v = after.place(turn, lanes);
    const i64 slice = v / WL_WARP;
    const i64 base = WIDTH ? slice * (WIDTH * WL_WARP) : slice_ptr[slice];
    const int width = WIDTH ? WIDTH : int((slice_ptr[slice + 1] - base) / WL_WARP);
    const i32 row = target ? target[v] : i32(v);
    after.before(row, row + 1);
    const i32* const offset = CODE == PATTERN ? offsets + codes[v] * pattern_width : nullptr;
    const i64 place = base + v % WL_WARP;
    T sum{};
    if constexpr (WIDTH > 0) {
#pragma unroll
      for (int part = 0; part < parts; ++part)
        sum +=
            packed_part<CODE, count, T>(codes, values, place, offset, part * count, width, row, x);
    } else {
      for (int j = 0; j < width; j += count)
        sum += packed_part<CODE, count, T>(codes, values, place, offset, j, width, row, x);
    }
    if (row < 0) {
      partial[-1 - row] = sum;
    } else {
      store(y[row], sum, alpha, beta);
      after.row(row);
    }
  }
  after.close(it);
}

// Rows that were cut get the sum of their pieces, in order: row rows[i] has the pieces first[i] ..
// last[i]. A block adds up each of the first `many` rows, which have many pieces, and a wave each
// of the others: one wave took 40 microseconds for the 7,000 pieces of the longest row of a
// power-law matrix (H200).
template <class T>
WL_DEVICE void join_cut_rows(const item& it, i64 count, i64 many, const i32* rows, const i32* first,
                             const i32* last, const T* partial, mat<T> y, T alpha, T beta) {
  constexpr int waves = WL_BLOCK / WL_WARP;
  const i64 block = it.block();
  if (block < many) {
    T sum{};
#pragma unroll 8
    for (i32 p = first[block] + it.thread(); p < last[block]; p += WL_BLOCK)
      sum += partial[p];
    sum = sum_of_block(it, sum);
    if (it.thread() == 0)
      store(y(rows[block], 0), sum, alpha, beta);
    return;
  }
  const i64 i = many + (block - many) * waves + wave_of(it);
  const bool inside = i < count;
  T sum{};
  if (inside)
    for (i32 p = first[i] + lane_of(it); p < last[i]; p += WL_WARP)
      sum += partial[p];
  sum = sum_of_lanes<WL_WARP>(it, sum);
  if (inside && lane_of(it) == 0)
    store(y(rows[i], 0), sum, alpha, beta);
}

// The preparation of a load-balanced product: x in the order `gathered` (unless it is null), and y
// = beta y in the rows without entries.
template <class T>
WL_DEVICE void prepare_balanced(const item& it, i64 n, const i32* gathered, mat<const T> x,
                                T* sorted, i64 empty, const i32* empty_rows, mat<T> y, T beta) {
  const i64 step = it.blocks() * WL_BLOCK, mine = it.block() * WL_BLOCK + it.thread();
  if (gathered)
    for (i64 i = mine; i < n; i += step)
      sorted[i] = x(gathered[i], 0);
  for (i64 i = mine; i < empty; i += step)
    store(y(empty_rows[i], 0), T(0), T(0), beta);
}

// A row of ELLPACK times column c of x. Entries of adjacent rows are adjacent in memory.
template <class T, class I>
WL_DEVICE T ell_row(i64 m, i64 row, i64 width, const T* data, const I* indices,
                    const mat<const T>& x, i64 c) {
  return sum_of_terms<T>(width, 1, [&](i64 from, i64 to) {
    T sum{};
#pragma unroll 8
    for (i64 j = from; j < to; ++j) {
      const I column = indices[j * m + row];
      if (column >= 0)
        sum += data[j * m + row] * x(column, c);
    }
    return sum;
  });
}

// ELLPACK: one work-item for each row.
template <class T, class I>
WL_DEVICE void ell_rows(const item& it, i64 m, i64 k, i64 width, const T* data, const I* indices,
                        mat<const T> x, mat<T> y, T alpha, T beta) {
  const i64 step = it.blocks() * WL_BLOCK;
  for (i64 i = it.block() * WL_BLOCK + it.thread(); i < m * k; i += step) {
    const i64 row = k == 1 ? i : i % m, c = k == 1 ? 0 : i / m;
    store(y(row, c), ell_row(m, row, width, data, indices, x, c), alpha, beta);
  }
}

// ELLPACK, and CSR for the rest of long rows: one work-item per row.
template <class T, class I>
WL_DEVICE void hybrid_rows(const item& it, i64 m, i64 k, i64 width, const T* data, const I* indices,
                           const I* rest_indptr, const I* rest_indices, const T* rest,
                           mat<const T> x, mat<T> y, T alpha, T beta) {
  const i64 step = it.blocks() * WL_BLOCK;
  for (i64 i = it.block() * WL_BLOCK + it.thread(); i < m * k; i += step) {
    const i64 row = k == 1 ? i : i % m, c = k == 1 ? 0 : i / m;
    const I begin = rest_indptr[row], end = rest_indptr[row + 1];
    const T of_ell = ell_row(m, row, width, data, indices, x, c);
    const T of_rest = sum_of_terms<T>(end - begin, 1, [&](i64 from, i64 to) {
      T sum{};
#pragma unroll 4
      for (I e = begin + I(from); e < begin + I(to); ++e)
        sum += rest[e] * x(rest_indices[e], c);
      return sum;
    });
    store(y(row, c), of_ell + of_rest, alpha, beta);
  }
}

// SELL-P as the format stores it, for any size of slices.
template <class T, class I>
WL_DEVICE void sellp_rows(const item& it, i64 m, i64 k, i64 slice_size, const T* data,
                          const I* indices, const I* slice_ptr, const I* permutation,
                          mat<const T> x, mat<T> y, T alpha, T beta) {
  const i64 step = it.blocks() * WL_BLOCK;
  for (i64 i = it.block() * WL_BLOCK + it.thread(); i < m * k; i += step) {
    const i64 place = k == 1 ? i : i % m, c = k == 1 ? 0 : i / m;
    const i64 slice = place / slice_size, first = slice_ptr[slice] + place % slice_size;
    const i64 width = (slice_ptr[slice + 1] - slice_ptr[slice]) / slice_size;
    const T sum = sum_of_terms<T>(width, 1, [&](i64 from, i64 to) {
      T part{};
      const i64 end = first + to * slice_size;
#pragma unroll 8
      for (i64 e = first + from * slice_size; e < end; e += slice_size) {
        const I column = indices[e];
        if (column >= 0)
          part += data[e] * x(column, c);
      }
      return part;
    });
    store(y(permutation[place], c), sum, alpha, beta);
  }
}

// Block rows: W lanes for each row of numbers. C is the number of columns of a block; if C is 0,
// `columns` holds this number.
template <int W, int C, class T, class I>
WL_DEVICE void bsr_subwarp(const item& it, i64 m, i64 k, i64 r, i64 columns, const I* indptr,
                           const I* indices, const T* data, mat<const T> x, mat<T> y, T alpha,
                           T beta) {
  constexpr int rows = WL_BLOCK / W;
  const i64 width = C ? C : columns;
  const int lane = it.thread() % W;
  for (i64 first = it.block() * rows; first < m; first += it.blocks() * rows) {
    const i64 row = first + it.thread() / W;
    const bool inside = row < m;
    const i64 block_row = inside ? row / r : 0, in_block = inside ? row % r : 0;
    const i64 begin = inside ? indptr[block_row] : 0;
    const i64 count = inside ? (indptr[block_row + 1] - begin) * width : 0;
    for (i64 c = 0; c < k; ++c) {
      T sum = sum_of_terms<T>(count, W, [&](i64 from, i64 to) {
        T part{};
#pragma unroll 4
        for (i64 e = from + lane; e < to; e += W) {
          const i64 block = begin + e / width, j = e % width;
          part += data[(block * r + in_block) * width + j] * x(indices[block] * width + j, c);
        }
        return part;
      });
      sum = sum_of_lanes<W>(it, sum);
      if (inside && lane == 0)
        store(y(row, c), sum, alpha, beta);
    }
  }
}

// A wave for each dense row.
template <class T>
WL_DEVICE void dense_rows(const item& it, i64 m, i64 n, i64 k, const T* data, mat<const T> x,
                          mat<T> y, T alpha, T beta) {
  constexpr int waves = WL_BLOCK / WL_WARP;
  const i64 work = m * k;
  for (i64 i = it.block() * waves + wave_of(it); i < work; i += it.blocks() * waves) {
    const i64 row = i / k, c = i % k;
    T sum = sum_of_terms<T>(n, WL_WARP, [&](i64 from, i64 to) {
      T part{};
#pragma unroll 8
      for (i64 j = from + lane_of(it); j < to; j += WL_WARP)
        part += data[row * n + j] * x(j, c);
      return part;
    });
    sum = sum_of_lanes<WL_WARP>(it, sum);
    if (lane_of(it) == 0)
      store(y(row, c), sum, alpha, beta);
  }
}

} // namespace wl
