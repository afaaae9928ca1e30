// Entries of a sparse pattern for tensor cores without tiles of it. A warp has panels of 8 rows,
// and columns pass by in slabs whose dense rows are in the shared memory of a block. What a product
// takes in the place of 16 neighbouring columns are the columns of any 16 entries of a panel: one
// of the 8 sums of each is of use, which at low densities is cheaper than to multiply tiles of
// which one place in a hundred is an entry. A slab is read from the second-level cache once for
// each block, where a kernel by rows reads two rows for each entry.
#pragma once
#include "tile_gradients.hpp"

namespace wl {

// Rows of a panel, and entries that are multiplied at once.
constexpr int PANEL_ROWS = 8, BATCH_ENTRIES = 16;
// An entry is where its dense row begins in the slab, a multiple of 16, and its row in the panel; 8
// of what only fills a batch. The highest bit says that the batch is the last one of its list.
constexpr u32 ROW_BITS = 15, LAST_BIT = 1u << 31, PLACE_BITS = ~(ROW_BITS | LAST_BIT);

WL_DEVICE int row_in_panel(u32 entry) { return int(entry & ROW_BITS); }
// Where a dense row begins, its chunks changed places as for `chunk`; see chunk_at.
WL_DEVICE u32 place_of(u32 entry, int chunk) { return (entry ^ u32(chunk << 4)) & PLACE_BITS; }
// The place of the chunk that is `by` behind: chunks change places in bits 4 to 6, which slabs
// begin at multiples of.
WL_DEVICE u32 chunk_on(u32 at, int by) { return at ^ u32(by << 4); }
template <int DIM>
WL_DEVICE int row_in_slab(u32 entry) {
  return int((entry & PLACE_BITS) / (2 * DIM));
}

// Where entry e of a batch is stored: the four that a lane has sums of are neighbours.
WL_DEVICE constexpr int place_in_batch(int e) { return e % 8 / 2 * 4 + e / 8 * 2 + e % 2; }

// The entries of a pair of panels: a list for each slab and panel of the pair, of one batch or
// more.
template <int DIM, int HEIGHT>
struct pair_entries {
  const u32* batches; // from the first one of the pair on
  int slabs;

  // Calls `visit` with the column of each entry of a row of 16.
  template <class Visit>
  WL_DEVICE void for_entries(int row, const Visit& visit) const {
    const u32* batch = batches;
    for (int list = 0; list < 2 * slabs; ++list)
      for (bool last = false; !last; batch += BATCH_ENTRIES) {
        for (int e = 0; e < BATCH_ENTRIES; ++e)
          if (list % 2 * PANEL_ROWS + row_in_panel(batch[e]) == row &&
              row_in_panel(batch[e]) < PANEL_ROWS)
            visit(i64(list / 2) * HEIGHT + row_in_slab<DIM>(batch[e]));
        last = (batch[0] & LAST_BIT) != 0;
      }
  }
  WL_DEVICE bool any(int row) const {
    bool found = false;
    for_entries(row, [&](i64) { found = true; });
    return found;
  }
};

// What a lane needs to know of a batch.
struct lane_entries {
  pack<u32, 4> summed; // entries 2 (lane % 4), the next one, and 8 behind these: it has their sums
  u32 dotted[2];       // entries lane / 4 and 8 behind: it loads parts of their dense rows
  u32 added;           // it names the dense row of this one to be added up

  WL_DEVICE void load(const u32* entries, u32 batch, int lane) {
    const u32 first = batch * BATCH_ENTRIES; // in 32 bits, as pointers of a lane take registers
    summed = load_pack<u32, 4>(entries + (first + lane % 4 * 4));
    const u32* const two = entries + (first + place_in_batch(lane / 4));
    dotted[0] = load_pack<u32, 1>(two).at[0];
    dotted[1] = load_pack<u32, 1>(two + 2).at[0];
    added = load_pack<u32, 1>(entries + (first + place_in_batch(lane % 8 + lane / 16 * 8))).at[0];
  }
  WL_DEVICE bool last() const { return (added & LAST_BIT) != 0; }
  // Whether entry 8 j + e of those that begin at 2 (lane % 4) is in row lane / 4 of the panel.
  WL_DEVICE bool has(int j, int e, int lane) const {
    return row_in_panel(summed.at[2 * j + e]) == lane / 4;
  }
};

// The rows of two panels, of up to DIM numbers, as products take them; in the order of their chunks
// of 16 bytes that suits loads of 16 bytes: lane q of four has chunks q, q + 4, ..
template <int DIM, int WHOLE, class T>
struct own_rows {
  static constexpr int turns = DIM / 32;
  u32 words[2 * turns][4];

  WL_DEVICE void load(int panel, const rows_of<T>& from, i64 first, i64 columns, u32 signs,
                      int lane) {
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
        words[2 * turn + w / 2][w % 2 * 2 + panel] = four.at[w] ^ signs;
    }
  }

  // What four lanes have of chunks of two dense rows.
  WL_DEVICE static void bring(pack<u32, 4> (&four)[2], const unsigned char* slab,
                              const lane_entries& known, int turn, int lane) {
#pragma unroll
    for (int j = 0; j < 2; ++j)
      four[j] = *reinterpret_cast<const pack<u32, 4>*>(
          slab + chunk_on(place_of(known.dotted[j], lane % 4), 4 * turn));
  }
  // sums += own rows times half of these chunks
  WL_DEVICE void add(float (&sums)[2][4], const pack<u32, 4> (&four)[2], int turn, int half) const {
#pragma unroll
    for (int j = 0; j < 2; ++j)
      add_product<T>(sums[j], words[2 * turn + half], four[j].at[2 * half],
                     four[j].at[2 * half + 1]);
  }
};

// What one of two panels has of their sums.
WL_DEVICE void of_panel(float (&sums)[2][2], const float (&both)[2][4], int panel) {
#pragma unroll
  for (int j = 0; j < 2; ++j)
#pragma unroll
    for (int e = 0; e < 2; ++e)
      sums[j][e] = both[j][2 * panel + e];
}

// sums = rows of a panel times the dense rows in `slab` that a batch names
template <int DIM, int WHOLE, class T>
WL_DEVICE void multiply(float (&sums)[2][2], const own_rows<DIM, WHOLE, T>& rows, int panel,
                        const unsigned char* slab, const lane_entries& known, int lane) {
  float both[2][4] = {};
#pragma unroll
  for (int turn = 0; turn < DIM / 32; ++turn) {
    pack<u32, 4> four[2];
    rows.bring(four, slab, known, turn, lane);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      rows.add(both, four, turn, half);
  }
  of_panel(sums, both, panel);
}
// The same for two operands at once: products that wait for one another alternate.
template <int DIM, int WHOLE, class T>
WL_DEVICE void multiply(float (&sums)[2][2], float (&others)[2][2],
                        const own_rows<DIM, WHOLE, T>& rows, const own_rows<DIM, WHOLE, T>& more,
                        int panel, const unsigned char* slab, const unsigned char* other,
                        const lane_entries& known, int lane) {
  float both[2][4] = {}, other_both[2][4] = {};
#pragma unroll
  for (int turn = 0; turn < DIM / 32; ++turn) {
    pack<u32, 4> four[2], other_four[2];
    rows.bring(four, slab, known, turn, lane);
    more.bring(other_four, other, known, turn, lane);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      rows.add(both, four, turn, half);
      more.add(other_both, other_four, turn, half);
    }
  }
  of_panel(sums, both, panel);
  of_panel(others, other_both, panel);
}

// sums (DIM x 8) += the dense rows in `slab` that 16 entries name, times their factors: two of each
// eight entries for the lane's row.
template <int DIM, class T>
WL_DEVICE void add_rows(float (&sums)[DIM / 16][4], const float (&factors)[2][2], u32 slab,
                        const lane_entries& known, int lane) {
  const u32 low = narrow_both<T>(factors[0][0], factors[0][1]),
            high = narrow_both<T>(factors[1][0], factors[1][1]);
  const u32 at = slab + place_of(known.added, lane / 8 % 2);
#pragma unroll
  for (int j = 0; j < DIM / 16; ++j) {
    u32 a[4];
    load_cores_transposed(a, chunk_on(at, 2 * j));
    add_product<T>(sums[j], a, low, high);
  }
}

// What lanes have of their rows, lane / 4, for row e of the two that a lane has sums of.
WL_DEVICE float of_sums(float of_row, int e, int lane) {
  return shuffle(of_row, (lane % 4 * 2 + e) * 4);
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
  // Copies HEIGHT rows from `first` on; what there is not becomes zeros.
  WL_DEVICE static void bring(int t, unsigned char* to, const rows_of<T>& from, i64 first,
                              i64 columns) {
    constexpr int apart = rows::apart;
    const int row = t / rows::chunks, chunk = t % rows::chunks;
    if constexpr (WHOLE) {
      const T* place = from.row(first + row) + chunk * 8;
      const i64 step = apart * from.ld, rest = from.count - first;
      const int there = 8 * chunk >= columns ? 0 : rest < HEIGHT ? int(rest) : HEIGHT;
      const u32 at = shared_offset(to + chunk_at<DIM>(row, chunk));
#pragma unroll
      for (int r = 0; r < HEIGHT; r += apart) {
        if (r + apart <= HEIGHT || row + r < HEIGHT)
          copy_16_bytes_if(row + r < there, at + rows::size(r), place);
        place += step;
      }
    } else {
#pragma unroll 1
      for (int r = 0; r < HEIGHT; r += apart)
        if (r + row < HEIGHT)
          rows::template bring<apart>(t, to + rows::size(r), from, first + r, columns);
    }
  }
  WL_DEVICE void bring(int t, int s) const {
    unsigned char* const to = stage(s);
    bring(t, to, one, i64(s) * HEIGHT, k);
    bring(t, to + of_slab, other, i64(s) * HEIGHT, p);
    if constexpr (FACTS > 0)
      for (int i = t * 16; i < FACTS * HEIGHT; i += WL_BLOCK * 16)
        copy_16_bytes_if(true, shared_offset(to + 2 * of_slab + i),
                         facts + i64(s) * (FACTS * HEIGHT) + i);
    commit_copies();
  }
};

// The pair of panels of a warp. Those of a block are neighbours, and blocks of a head follow one
// another, so that its slabs are in the second-level cache while they are read.
template <int DIM, int HEIGHT>
struct own_pair {
  i64 block, first_row;
  const u32* all;
  u32 first_batch;
  int slabs;

  // Behind the last pair of a pattern is an empty one.
  WL_DEVICE own_pair(const item& it, i64 rows, i64 shares, i64 slabs, const i32* starts,
                     const u8* entries)
      : block(it.block() / shares), all(reinterpret_cast<const u32*>(entries)), slabs(int(slabs)) {
    const i64 count = (rows + 2 * PANEL_ROWS - 1) / (2 * PANEL_ROWS);
    const i64 pair = it.block() % shares * (WL_BLOCK / 32) + wave_of(it);
    first_row = (pair < count ? pair : count) * 2 * PANEL_ROWS;
    first_batch = u32(starts[pair < count ? pair : count]);
  }
  WL_DEVICE pair_entries<DIM, HEIGHT> entries() const {
    return {all + i64(first_batch) * BATCH_ENTRIES, slabs};
  }

  // Calls panels.take(i, known, stage) for the batches of panel i. What is to be known of a batch
  // is asked for while that before is computed.
  template <class Slabs, class Panels>
  WL_DEVICE void for_batches(const item& it, const Slabs& pair, Panels& panels) const {
    const int t = it.thread(), lane = lane_of(it);
    u32 at = first_batch;
    lane_entries next;
    pair.bring(t, 0);
    next.load(all, at, lane);
#pragma unroll 1
    for (int s = 0; s < slabs; ++s) {
      wait_for_copies<0>();
      it.barrier(); // what others copied is there too, and all have used the slab before
      if (s + 1 < slabs)
        pair.bring(t, s + 1);
      const unsigned char* const stage = pair.stage(s);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        lane_entries known;
#pragma unroll 1
        do {
          known = next;
          next.load(all, ++at, lane); // behind the last batch is one more
          panels.take(i, known, stage);
        } while (!known.last());
      }
    }
  }
};

} // namespace wl
