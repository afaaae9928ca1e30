// Entries of a sparse pattern for tensor cores without tiles of it: a warp has 16 rows, and columns
// pass by in slabs whose dense rows are in the shared memory of a block. What a product takes in
// the place of 16 neighbouring columns are the columns of any 16 entries of the 16 rows, so that
// one of the 16 sums of each column is of use: at low densities this is cheaper than to multiply
// tiles of which one place in a hundred is an entry, and a slab is read from the second-level cache
// once for each block where a kernel by rows reads two rows for each entry.
#pragma once
#include "tile_gradients.hpp"

namespace wl {

// Rows of a panel, and entries that are multiplied at once.
constexpr int PANEL_ROWS = 16, BATCH_ENTRIES = 16;
// An entry is its column in the slab and, above that, its row in the panel; 16 of what only fills a
// batch.
constexpr int COLUMN_BITS = 11;

WL_DEVICE int column_in_slab(u32 entry) { return int(entry & ((1u << COLUMN_BITS) - 1)); }
WL_DEVICE int row_in_panel(u32 entry) { return int(entry >> COLUMN_BITS & 31u); }

// Where entry e of a batch is stored: the four that a lane has sums of are neighbours.
WL_DEVICE constexpr int place_in_batch(int e) { return e % 8 / 2 * 4 + e / 8 * 2 + e % 2; }

// The entries of a panel, slab by slab, in batches.
struct panel_entries {
  const i32* starts; // the first batch of each slab, and the end
  const u16* entries;
  int slabs, height; // how many, and columns of each

  // Those of a panel. Behind the last panel of a pattern is an empty one.
  WL_DEVICE static panel_entries of(i64 panel, const i32* starts, const u8* entries, int slabs,
                                    int height) {
    return {starts + panel * slabs, reinterpret_cast<const u16*>(entries), slabs, height};
  }

  // Calls `visit` with the column of each entry of a row.
  template <class Visit>
  WL_DEVICE void for_entries(int row, const Visit& visit) const {
    for (int s = 0; s < slabs; ++s)
      for (i64 e = i64(starts[s]) * BATCH_ENTRIES; e < i64(starts[s + 1]) * BATCH_ENTRIES; ++e)
        if (row_in_panel(entries[e]) == row)
          visit(i64(s) * height + column_in_slab(entries[e]));
  }
  WL_DEVICE bool any(int row) const {
    bool found = false;
    for_entries(row, [&](i64) { found = true; });
    return found;
  }
};

// What a lane needs to know of a batch.
struct lane_entries {
  u32 two[2];    // entries 2 (lane % 4) and the next one, and 8 behind these: it has their sums
  u16 dotted[2]; // entries lane / 4 and 8 behind: it loads parts of their rows for dot products
  u16 added;     // entry lane % 16: it names the rows that are added up

  WL_DEVICE lane_entries() : two{}, dotted{}, added{} {}
  WL_DEVICE lane_entries(const u16* batch, int lane) {
    const auto four = load_pack<u32, 2>(reinterpret_cast<const u32*>(batch) + lane % 4 * 2);
    two[0] = four.at[0];
    two[1] = four.at[1];
    dotted[0] = batch[place_in_batch(lane / 4)];
    dotted[1] = batch[place_in_batch(lane / 4 + 8)];
    added = batch[place_in_batch(lane % 16)];
  }
  // Entry 8 j + e of those that begin at 2 (lane % 4).
  WL_DEVICE u32 entry(int j, int e) const { return two[j] >> 16 * e & 0xffffu; }
};

// Which of a lane's sums are of entries, as bits_of_rows says it of a tile.
struct places_of_entries {
  int rows[2][2];

  WL_DEVICE places_of_entries(const lane_entries& known, int lane) {
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        rows[j][e] = row_in_panel(known.entry(j, e)) - lane / 4;
  }
  WL_DEVICE bool has(int, int h, int j, int e) const { return rows[j][e] == 8 * h; }
};

// 16 rows of up to DIM numbers as products take them. In the order of their chunks of 16 bytes that
// suits loads of 16 bytes: lane q of four has chunks q, q + 4, ..
template <int DIM, int WHOLE, class T>
struct own_rows {
  static constexpr int turns = DIM / 32;
  u32 words[2 * turns][4];

  WL_DEVICE void load(const rows_of<T>& from, i64 first, i64 columns, u32 signs, int lane) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const i64 row = first + lane / 4 + 8 * h;
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
          words[2 * turn + w / 2][w % 2 * 2 + h] = four.at[w] ^ signs;
      }
    }
  }

  // sums = own rows times the rows in `slab` that a batch's entries name
  WL_DEVICE void multiply(float (&sums)[1][2][4], const unsigned char* slab,
                          const lane_entries& known, int lane) const {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int row = column_in_slab(known.dotted[j]);
#pragma unroll
      for (int e = 0; e < 4; ++e)
        sums[0][j][e] = 0;
#pragma unroll
      for (int turn = 0; turn < turns; ++turn) {
        const auto four = *reinterpret_cast<const pack<u32, 4>*>(
            slab + chunk_at<DIM>(row, lane % 4 + 4 * turn));
        add_product<T>(sums[0][j], words[2 * turn], four.at[0], four.at[1]);
        add_product<T>(sums[0][j], words[2 * turn + 1], four.at[2], four.at[3]);
      }
    }
  }
};

// sums (16 x DIM) += factors (16 x 16 entries) times the rows in `slab` that the entries name
template <int DIM, class T>
WL_DEVICE void add_rows(float (&sums)[DIM / 8][4], const float (&factors)[1][2][4], u32 slab,
                        const lane_entries& known, int lane) {
  u32 words[4];
  pack_weights<T>(factors[0], 0, words);
  const int row = column_in_slab(known.added);
#pragma unroll
  for (int j = 0; j < DIM / 8; j += 2) {
    u32 y[4];
    load_cores_transposed(y, slab + chunk_at<DIM>(row, j, lane / 16));
    add_product<T>(sums[j], words, y[0], y[1]);
    add_product<T>(sums[j + 1], words, y[2], y[3]);
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
  WL_DEVICE void bring(int t, int s) const {
    unsigned char* const to = stage(s);
    rows::template bring<HEIGHT>(t, to, one, i64(s) * HEIGHT, k);
    rows::template bring<HEIGHT>(t, to + of_slab, other, i64(s) * HEIGHT, p);
    for (int i = t * 16; i < FACTS * HEIGHT; i += WL_BLOCK * 16)
      copy_16_bytes_if(true, shared_offset(to + 2 * of_slab + i),
                       facts + i64(s) * (FACTS * HEIGHT) + i);
    commit_copies();
  }
};

// Calls visit(i, known, stage) for the batches of M panels: of each slab those of one panel after
// the other. What is to be known of a batch is asked for while the one before is computed.
template <int M, class Slabs, class Visit>
WL_DEVICE void for_batches(const item& it, const Slabs& slabs, const panel_entries (&panels)[M],
                           const Visit& visit) {
  const int t = it.thread(), lane = lane_of(it), count = panels[0].slabs;
  i32 at[M], last[M];
  lane_entries next[M];
  slabs.bring(t, 0);
#pragma unroll
  for (int i = 0; i < M; ++i) {
    at[i] = panels[i].starts[0];
    last[i] = panels[i].starts[count];
    if (at[i] < last[i])
      next[i] = lane_entries(panels[i].entries + i64(at[i]) * BATCH_ENTRIES, lane);
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
      const i32 end = panels[i].starts[s + 1];
#pragma unroll 1
      for (; at[i] < end; ++at[i]) {
        const lane_entries known = next[i];
        if (at[i] + 1 < last[i])
          next[i] = lane_entries(panels[i].entries + i64(at[i] + 1) * BATCH_ENTRIES, lane);
        visit(i, known, stage);
      }
    }
  }
}

} // namespace wl
