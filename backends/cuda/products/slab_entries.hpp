// Entries of a sparse pattern for tensor cores without tiles of it. A warp has panels of 8 rows,
// and columns pass by in slabs whose dense rows are in the shared memory of a block. A product's 16
// rows are those that any 16 entries of a panel name, its 8 columns the rows of the panel: one of
// the 8 sums of each entry is of use, which at low densities is cheaper than to multiply tiles of
// which one place in a hundred is an entry. A slab is read from the second-level cache once for
// each block, where a kernel by rows reads two rows for each entry.
#pragma once
#include "tile_gradients.hpp"

namespace wl {

// Rows of a panel, and entries that are multiplied at once.
constexpr int PANEL_ROWS = 8, BATCH_ENTRIES = 16;
// An entry is where its dense row begins in the slab, and above that its row in the panel; 8 of
// what only fills a batch.
constexpr int PLACE_BITS = 28;

WL_DEVICE int row_in_panel(u32 entry) { return int(entry >> PLACE_BITS); }
// Where a chunk of an entry's dense row is; see chunk_at. Bits 4 to 6 say how chunks change places.
template <int DIM>
WL_DEVICE u32 chunk_of(u32 entry, int chunk) {
  const u32 place = (entry & ((1u << PLACE_BITS) - 1)) ^ u32((chunk & 7) << 4);
  return DIM > 64 ? place + u32(chunk >> 3) * 1024 : place;
}
template <int DIM>
WL_DEVICE int row_in_slab(u32 entry) {
  const u32 place = entry & ((1u << PLACE_BITS) - 1);
  if constexpr (DIM > 64)
    return int(place / (16 * DIM) * 8 + place / 128 % 8);
  else
    return int(place / (2 * DIM));
}

// The entries of a panel, slab by slab, in batches.
template <int DIM, int HEIGHT>
struct panel_entries {
  const i32* starts; // the first batch of each slab, and the end
  const u32* entries;
  int slabs;

  // Calls `visit` with the column of each entry of a row.
  template <class Visit>
  WL_DEVICE void for_entries(int row, const Visit& visit) const {
    for (int s = 0; s < slabs; ++s)
      for (i64 e = i64(starts[s]) * BATCH_ENTRIES; e < i64(starts[s + 1]) * BATCH_ENTRIES; ++e)
        if (row_in_panel(entries[e]) == row)
          visit(i64(s) * HEIGHT + row_in_slab<DIM>(entries[e]));
  }
  WL_DEVICE bool any(int row) const {
    bool found = false;
    for_entries(row, [&](i64) { found = true; });
    return found;
  }
};

// What a lane needs to know of a batch: entries lane / 4 and 8 behind it, whose dense rows it loads
// parts of for dot products and of whose sums it has those with two rows of the panel; and one
// entry whose dense row it names to be added up.
struct lane_entries {
  u32 dotted[2], added;

  WL_DEVICE void load(const u32* batch, int lane) {
    dotted[0] = batch[lane / 4];
    dotted[1] = batch[lane / 4 + 8];
    added = batch[lane % 8 + lane / 16 * 8];
  }
  // Whether entry 8 h behind lane / 4 is in row e of the two that the lane has sums of.
  WL_DEVICE bool has(int h, int e, int lane) const {
    return row_in_panel(dotted[h]) == lane % 4 * 2 + e;
  }
};

// The rows of a panel, of up to DIM numbers, as products take them; in the order of their chunks of
// 16 bytes that suits loads of 16 bytes: lane q of four has chunks q, q + 4, ..
template <int DIM, int WHOLE, class T>
struct own_rows {
  static constexpr int turns = DIM / 32;
  u32 words[turns][4];

  WL_DEVICE void load(const rows_of<T>& from, i64 first, i64 columns, u32 signs, int lane) {
    const i64 row = first + lane / 4;
    const T* const place = from.row(row < from.count ? row : 0);
#pragma unroll
    for (int turn = 0; turn < turns; ++turn) {
      const int column = (lane % 4 + 4 * turn) * 8;
      pack<T, 8> numbers{};
      if constexpr (WHOLE) {
        if (row < from.count && column < columns)
          numbers = load_pack<T, 8>(place + column);
      } else {
        for (int e = 0; e < 8; ++e)
          if (row < from.count && column + e < columns)
            numbers.at[e] = place[column + e];
      }
      const auto four = __builtin_bit_cast(pack<u32, 4>, numbers);
#pragma unroll
      for (int w = 0; w < 4; ++w)
        words[turn][w] = four.at[w] ^ signs;
    }
  }

  // sums = the dense rows in `slab` that the entries of N batches name, times own rows
  template <int N>
  WL_DEVICE void multiply(float (&sums)[N][4], const unsigned char* slab,
                          const lane_entries (&known)[N], int lane) const {
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        sums[n][e] = 0;
#pragma unroll
    for (int turn = 0; turn < turns; ++turn) {
      pack<u32, 4> four[N][2];
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int h = 0; h < 2; ++h)
          four[n][h] = *reinterpret_cast<const pack<u32, 4>*>(
              slab + chunk_of<DIM>(known[n].dotted[h], lane % 4 + 4 * turn));
#pragma unroll
      for (int w = 0; w < 4; w += 2)
#pragma unroll
        for (int n = 0; n < N; ++n) {
          const u32 a[4] = {four[n][0].at[w], four[n][1].at[w], four[n][0].at[w + 1],
                            four[n][1].at[w + 1]};
          add_product<T>(sums[n], a, words[turn][w], words[turn][w + 1]);
        }
    }
  }
};

// sums (DIM x 8) += the dense rows in `slab` that 16 entries name, times their factors (16 x 8)
template <int DIM, class T>
WL_DEVICE void add_rows(float (&sums)[DIM / 16][4], const float (&factors)[4], u32 slab,
                        const lane_entries& known, int lane) {
  const u32 low = transpose_core(narrow_both<T>(factors[0], factors[1])),
            high = transpose_core(narrow_both<T>(factors[2], factors[3]));
#pragma unroll
  for (int j = 0; j < DIM / 16; ++j) {
    u32 a[4];
    load_cores_transposed(a, slab + chunk_of<DIM>(known.added, 2 * j + lane / 8 % 2));
    add_product<T>(sums[j], a, low, high);
  }
}

// The sum, or the largest, over the lanes that have sums of the same rows of a panel.
WL_DEVICE float sum_of_entries(const item& it, float value) {
#pragma unroll
  for (int d = 4; d < 32; d *= 2)
    value += shuffle_xor(it, value, d);
  return value;
}
WL_DEVICE float largest_of_entries(const item& it, float value) {
#pragma unroll
  for (int d = 4; d < 32; d *= 2)
    value = fmaxf(value, shuffle_xor(it, value, d));
  return value;
}

// Multiplies the sums of row e of the two that a lane has; returns whether all are finite.
template <int N>
WL_DEVICE bool scale_sums(float (&sums)[N][4], int e, float factor) {
  bool finite = true;
#pragma unroll
  for (int j = 0; j < N; ++j)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      sums[j][2 * h + e] *= factor;
      finite = finite && is_finite(sums[j][2 * h + e]);
    }
  return finite;
}

// Stores sums as the rows of a panel, of which there are `rows` with `columns` numbers.
template <int DIM, int WHOLE, class T>
WL_DEVICE void store_sums(const float (&sums)[DIM / 16][4], T* out, i64 ld, i64 rows, i64 columns,
                          int lane) {
#pragma unroll
  for (int j = 0; j < DIM / 16; ++j)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const u32 two = transpose_core(narrow_both<T>(sums[j][2 * h], sums[j][2 * h + 1]));
      const int row = lane / 4, column = 16 * j + 8 * h + lane % 4 * 2;
      T* const place = out + row * ld + column;
      if constexpr (WHOLE) {
        if (row < rows && column < columns)
          *reinterpret_cast<u32*>(place) = two;
      } else {
        const auto both = __builtin_bit_cast(pack<T, 2>, two);
        for (int e = 0; e < 2; ++e)
          if (row < rows && column + e < columns)
            place[e] = both.at[e];
      }
    }
}

// The slabs of two dense operands, HEIGHT rows of each at a time: while one is used, the next one
// is copied.
template <int DIM, int HEIGHT, int WHOLE, int FACTS, class T>
struct slab_pair {
  using rows = tile_rows<DIM, WHOLE, WL_BLOCK>;
  static constexpr int of_slab = rows::size(HEIGHT), of_stage = 2 * of_slab + FACTS * HEIGHT;
  rows_of<T> one, other;
  i64 k, p;
  const u8* facts; // FACTS bytes of each row
  unsigned char* memory;

  WL_DEVICE unsigned char* stage(int s) const { return memory + s % 2 * of_stage; }
  // Not unrolled: sums are in registers meanwhile.
  WL_DEVICE void bring(int t, unsigned char* to, const rows_of<T>& from, i64 first,
                       i64 columns) const {
    constexpr int whole = HEIGHT / rows::apart * rows::apart;
#pragma unroll 1
    for (int r = 0; r < whole; r += rows::apart)
      rows::template bring<rows::apart>(t, to + rows::size(r), from, first + r, columns);
    if constexpr (whole < HEIGHT)
      rows::template bring<HEIGHT - whole>(t, to + rows::size(whole), from, first + whole, columns);
  }
  WL_DEVICE void bring(int t, int s) const {
    unsigned char* const to = stage(s);
    bring(t, to, one, i64(s) * HEIGHT, k);
    bring(t, to + of_slab, other, i64(s) * HEIGHT, p);
    for (int i = t * 16; i < FACTS * HEIGHT; i += WL_BLOCK * 16)
      copy_16_bytes_if(true, shared_offset(to + 2 * of_slab + i),
                       facts + i64(s) * (FACTS * HEIGHT) + i);
    commit_copies();
  }
};

// The panels of a warp: the block's are neighbours. Blocks of a head follow one another, so that its
// slabs are in the second-level cache while they are read.
template <int DIM, int HEIGHT, int M>
struct own_panels {
  i64 block, first_row[M];
  panel_entries<DIM, HEIGHT> entries[M];

  // Behind the last panel of a pattern is an empty one.
  WL_DEVICE own_panels(const item& it, i64 rows, i64 shares, i64 slabs, const i32* starts,
                       const u8* all)
      : block(it.block() / shares) {
    const i64 count = (rows + PANEL_ROWS - 1) / PANEL_ROWS;
    const i64 first = it.block() % shares * (M * (WL_BLOCK / 32)) + wave_of(it) * M;
#pragma unroll
    for (int i = 0; i < M; ++i) {
      const i64 panel = first + i < count ? first + i : count;
      first_row[i] = panel * PANEL_ROWS;
      entries[i] = {starts + panel * slabs, reinterpret_cast<const u32*>(all), int(slabs)};
    }
  }

  // Calls panels.take(i, known, stage) for N and for single batches: of each slab those of one panel
  // after the other. What is to be known of batches is asked for while those before are computed.
  template <int N, class Slabs, class Panels>
  WL_DEVICE void for_batches(const item& it, const Slabs& slabs, Panels& panels) const {
    const int t = it.thread(), lane = lane_of(it), count = entries[0].slabs;
    i32 at[M];
    lane_entries next[M][N];
    // Behind the last batch of a pattern are N that are empty.
    const auto ask = [&](int i) {
#pragma unroll
      for (int n = 0; n < N; ++n)
        next[i][n].load(entries[i].entries + i64(at[i]) * BATCH_ENTRIES + n * BATCH_ENTRIES, lane);
    };
    slabs.bring(t, 0);
#pragma unroll
    for (int i = 0; i < M; ++i) {
      at[i] = entries[i].starts[0];
      ask(i);
    }
#pragma unroll 1
    for (int s = 0; s < count; ++s) {
      wait_for_copies<0>();
      it.barrier(); // what others copied is there too, and all have used the slab before
      if (s + 1 < count)
        slabs.bring(t, s + 1);
      const unsigned char* const stage = slabs.stage(s);
#pragma unroll
      for (int i = 0; i < M; ++i) {
        const i32 end = entries[i].starts[s + 1];
#pragma unroll 1
        while (at[i] + N <= end) {
          lane_entries known[N];
#pragma unroll
          for (int n = 0; n < N; ++n)
            known[n] = next[i][n];
          at[i] += N;
          ask(i);
          panels.take(i, known, stage);
        }
        if constexpr (N > 1) {
#pragma unroll 1
          while (at[i] < end) {
            const lane_entries known[1] = {next[i][0]};
            at[i] += 1;
            ask(i);
            panels.take(i, known, stage);
          }
        }
      }
    }
  }
};

} // namespace wl
