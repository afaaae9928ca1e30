// Tiles of 128 x 64 positions of a sparse pattern, and rows of dense operands in shared memory, for
// attention by tiles and its gradients.
#pragma once
#include "cuda/products/mma_instructions.hpp"

namespace wl {

constexpr int TILE_ROWS = 128, TILE_COLUMNS = 64;
// A word of 64 bits for each row of a tile marks the entries among its positions.
constexpr int MASK_BYTES = TILE_ROWS * 8;
constexpr float LOG2_E = 1.4426950408889634f, LN_2 = 0.6931471805599453f;

WL_DEVICE float lowest() { return float_of(0xff800000u); } // minus infinity

WL_DEVICE bool is_finite(float v) { return (bits_of(v) & 0x7f800000u) != 0x7f800000u; }

// The rows of one block of a dense operand.
template <class T>
struct rows_of {
  const T* data;
  i64 ld, count;
  WL_DEVICE const T* row(i64 i) const { return data + i * ld; }
};

// Rows of up to DIM numbers in shared memory, padded with zeros, in chunks of 16 bytes: blocks of 8
// rows of 8 chunks (of 4, if there are no more), then the block of the next 8 chunks, then the next
// 8 rows. Chunks of adjacent rows are permuted, so that eight chunks of one column are in different
// banks. This is wgmma's swizzle of 128 and 64 bytes, see rows_descriptor. `next`, 0 or 1, selects
// the chunk after an even chunk, so that the rest of the address can be computed once for both.
template <int DIM>
WL_DEVICE int chunk_at(int row, int chunk, int next = 0) {
  if constexpr (DIM < 64)
    return row * (DIM * 2) + ((chunk ^ next ^ (row >> 1 & 3)) << 4);
  else if constexpr (DIM == 64)
    return row * (DIM * 2) + ((chunk ^ next ^ (row & 7)) << 4);
  else
    return (row >> 3) * (DIM * 16) + (row & 7) * 128 + (chunk >> 3) * 1024 +
           (((chunk & 7) ^ next ^ (row & 7)) << 4);
}

template <int DIM, int WHOLE, int THREADS>
struct tile_rows {
  // A thread copies one column of chunks. The distance of its rows is a multiple of 8, so that all
  // its chunks have the same swizzle.
  static constexpr int chunks = DIM / 8, apart = THREADS / chunks;
  static_assert(apart % 8 == 0, "all chunks of a thread have one swizzle");

  WL_DEVICE static constexpr int size(int rows) { return rows * DIM * 2; }

  // Copies ROWS rows from `first` on; rows and columns that do not exist become zeros.
  template <int ROWS, class T>
  WL_DEVICE static void bring(int t, unsigned char* to, const rows_of<T>& from, i64 first,
                              i64 columns) {
    const int row = t / chunks, column = t % chunks * 8;
    const i64 left = column < columns ? from.count - first - row : 0;
    const T* place = from.row(first + row) + column;
    unsigned char* const chunk = to + chunk_at<DIM>(row, t % chunks);
    const u32 at = shared_offset(chunk);
#pragma unroll
    for (int i = 0; i * apart < ROWS; ++i) {
      if (ROWS % apart != 0 && row + i * apart >= ROWS)
        continue;
      const bool there = i * apart < left;
      if constexpr (WHOLE) {
        copy_16_bytes_if(there, at + i * size(apart), there ? place : from.data);
      } else {
        pack<T, 8> numbers{};
        for (int e = 0; e < 8; ++e)
          if (there && column + e < columns)
            numbers.at[e] = place[e];
        *reinterpret_cast<pack<T, 8>*>(chunk + i * size(apart)) = numbers;
      }
      place += apart * from.ld;
    }
  }

  // Changes the signs of the numbers that this thread has copied, after they have arrived.
  template <int ROWS>
  WL_DEVICE static void change_signs(int t, unsigned char* to) {
    commit_copies();
    wait_for_copies<0>();
    unsigned char* const chunk = to + chunk_at<DIM>(t / chunks, t % chunks);
#pragma unroll
    for (int i = 0; i * apart < ROWS; ++i)
      if (ROWS % apart == 0 || t / chunks + i * apart < ROWS) {
        uint4& four = *reinterpret_cast<uint4*>(chunk + i * size(apart));
        constexpr u32 signs = 0x80008000u;
        four = {four.x ^ signs, four.y ^ signs, four.z ^ signs, four.w ^ signs};
      }
  }
};

// The tiles of a panel of 128 rows.
struct tile_list {
  i32 first, last;
  const i32* columns; // the number of each tile in its row of tiles
  const i32* masks;   // the number of the mask of each tile
  const u8* words;

  // Copies the mask of a tile.
  template <int THREADS>
  WL_DEVICE void bring_words(int t, unsigned char* to, i32 u) const {
    for (int i = t * 16; i < MASK_BYTES; i += THREADS * 16)
      copy_16_bytes_if(true, shared_offset(to + i), words + i64(masks[u]) * MASK_BYTES + i);
  }

  // Calls `visit` with the column of each entry of a row.
  template <class Visit>
  WL_DEVICE void for_entries(int row, const Visit& visit) const {
    for (i32 u = first; u < last; ++u) {
      const u64 word = reinterpret_cast<const u64*>(words + i64(masks[u]) * MASK_BYTES)[row];
      for (int c = 0; c < TILE_COLUMNS; ++c)
        if (word >> c & 1)
          visit(i64(columns[u]) * TILE_COLUMNS + c);
    }
  }
};

// The mask words of the rows for which a lane holds sums: two rows, 8 apart, for each 16 rows of
// its warp.
template <int M>
struct bits_of_rows {
  u32 low[M][2], high[M][2];

  WL_DEVICE bits_of_rows() : low{}, high{} {}
  WL_DEVICE bits_of_rows(const unsigned char* words, int row, int lane) {
#pragma unroll
    for (int i = 0; i < M; ++i)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const u32* const both =
            reinterpret_cast<const u32*>(words) + 2 * (row + 16 * i + 8 * h + lane / 4);
        low[i][h] = both[0];
        high[i][h] = both[1];
      }
  }
  // Shifts the words so that the lane's own columns are the lowest bits; columns of the upper half
  // if `upper`.
  WL_DEVICE bits_of_rows for_lane(int lane, bool upper = false) const {
    bits_of_rows moved;
#pragma unroll
    for (int i = 0; i < M; ++i)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        moved.low[i][h] = (upper ? high[i][h] : low[i][h]) >> lane % 4 * 2;
        moved.high[i][h] = high[i][h] >> lane % 4 * 2;
      }
    return moved;
  }
  // Whether number e of the pair of columns 8 j and 8 j + 1 of a lane is an entry.
  WL_DEVICE bool has(int i, int h, int j, int e) const {
    return ((j < 4 ? low[i][h] : high[i][h]) & 1u << (8 * (j % 4) + e)) != 0;
  }
  WL_DEVICE bool any() const {
    u32 found = 0;
#pragma unroll
    for (int i = 0; i < M; ++i)
      found |= low[i][0] | low[i][1] | high[i][0] | high[i][1];
    return found != 0;
  }
  WL_DEVICE bool all() const {
    u32 found = ~0u;
#pragma unroll
    for (int i = 0; i < M; ++i)
      found &= low[i][0] & low[i][1] & high[i][0] & high[i][1];
    return found == ~0u;
  }
};

// The factor that turns scores into exponents of 2. It is not negative: for alpha below 0 the rows
// of one operand change their signs. A factor of 0 would turn positions without an entry into NaN.
WL_DEVICE float score_scale(float alpha) { return fmaxf(fabsf(alpha) * LOG2_E, 1e-30f); }

// Multiplies one of the two rows that a lane holds of 16; returns whether all are finite.
template <int N>
WL_DEVICE bool scale_row(float (&sums)[N][4], int h, float factor) {
  bool finite = true;
#pragma unroll
  for (int j = 0; j < N; ++j)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      sums[j][2 * h + e] *= factor;
      finite = finite && is_finite(sums[j][2 * h + e]);
    }
  return finite;
}

// Stores sums as rows from `first` on; there are `rows` rows with `columns` numbers.
template <int DIM, int M, int WHOLE, class T>
WL_DEVICE void store_rows(const float (&sums)[M][DIM / 8][4], T* out, i64 ld, i64 first, i64 rows,
                          i64 columns, int lane) {
#pragma unroll
  for (int i = 0; i < M; ++i)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const i64 row = first + 16 * i + 8 * h + lane / 4;
      if (row >= rows)
        continue;
#pragma unroll
      for (int j = 0; j < DIM / 8; ++j) {
        const int column = 8 * j + lane % 4 * 2;
        const float* const two = sums[i][j] + 2 * h;
        T* const place = out + row * ld + column;
        if constexpr (WHOLE) {
          if (column < columns)
            *reinterpret_cast<u32*>(place) = narrow_both<T>(two[0], two[1]);
        } else {
          for (int e = 0; e < 2; ++e)
            if (column + e < columns)
              place[e] = narrowed<T>::of(two[e]);
        }
      }
    }
}

// One of four parts of the dot product of two rows of up to DIM numbers; four lanes add up the
// parts.
template <int DIM, int WHOLE, class T>
WL_DEVICE float part_of_dot(int part, const T* one, const T* other, i64 columns) {
  float sum = 0;
#pragma unroll
  for (int c = 8 * part; c < DIM; c += 32) {
    if constexpr (WHOLE) {
      if (c < columns) {
        const auto a = *reinterpret_cast<const pack<T, 8>*>(one + c);
        const auto b = *reinterpret_cast<const pack<T, 8>*>(other + c);
#pragma unroll
        for (int e = 0; e < 8; ++e)
          sum += widen(a.at[e]) * widen(b.at[e]);
      }
    } else {
      for (int e = c; e < c + 8 && e < columns; ++e)
        sum += widen(one[e]) * widen(other[e]);
    }
  }
  return sum;
}

// A row of up to 32 N numbers, distributed over the lanes of a warp.
template <int N, class T>
WL_DEVICE void load_by_lanes(int lane, const T* row, i64 columns, float (&numbers)[N]) {
  for (int i = 0; i < N; ++i)
    numbers[i] = lane + 32 * i < columns ? widen(row[lane + 32 * i]) : 0.0f;
}

// <numbers, row>, returned to every lane
template <int N, class T>
WL_DEVICE float dot_by_lanes(const item& it, const float (&numbers)[N], const T* row, i64 columns) {
  float other[N], sum = 0;
  load_by_lanes(lane_of(it), row, columns, other);
  for (int i = 0; i < N; ++i)
    sum += numbers[i] * other[i];
  return sum_of_lanes<32>(it, sum);
}

} // namespace wl
