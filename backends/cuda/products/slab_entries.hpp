// Entries of a sparse pattern for tensor cores without tiles of it. A warp has panels of 8 rows. It
// walks through the columns in slabs; the dense rows of a slab are in the shared memory of a block.
// Instead of 16 adjacent columns, each MMA gathers the columns of any 16 entries of a panel. Only
// one of the 8 sums of each entry is used, but at low densities this beats tiles that are mostly
// empty. A slab is read from the second-level cache once for each block, where a kernel by rows
// reads two rows for each entry.
#pragma once
#include "cuda/products/slab_stages.hpp"
#include "cuda/products/tile_gradients.hpp"

namespace wl {

// Rows of a panel, and entries that are multiplied at once.
constexpr int PANEL_ROWS = 8, BATCH_ENTRIES = 16;
// An entry is where its dense row begins in the slab, a multiple of 16, and its row in the panel; 8
// for padding of a batch. The highest bit says that the batch is the last one of its list.
constexpr u32 ROW_BITS = 15, LAST_BIT = 1u << 31, PLACE_BITS = ~(ROW_BITS | LAST_BIT);

WL_DEVICE int row_in_panel(u32 entry) { return int(entry & ROW_BITS); }
// The offset of a dense row, with its chunks swizzled as for `chunk`; see chunk_at.
WL_DEVICE u32 place_of(u32 entry, int chunk) { return (entry ^ u32(chunk << 4)) & PLACE_BITS; }
// The offset of the chunk that is `by` behind: the swizzle changes bits 4 to 6, and slabs begin at
// multiples of it.
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
};

// The data of a batch that a lane needs.
struct lane_entries {
  u32 summed[4]; // entries 2 (lane % 4), the next one, and 8 behind these: it has their sums
  u32 dotted[2]; // entries lane / 4 and 8 behind: it loads parts of their dense rows
  u32 added;     // entry lane % 8 + lane / 16 * 8: it names this one's dense row to be added up

  WL_DEVICE bool last() const { return (added & LAST_BIT) != 0; }
  // Whether entry 8 j + e of the entries from 2 (lane % 4) on is in row lane / 4 of the panel.
  WL_DEVICE bool has(int j, int e, int lane) const {
    return row_in_panel(summed[2 * j + e]) == lane / 4;
  }
};

// The entries that lanes need of successive batches. The entries of a batch are loaded while the
// previous batch is computed, so one batch follows the last one. Either each lane loads all of its
// entries, in seven registers, or, where `told`, it loads one entry and gets the others by shuffles
// at the batch's turn. With `told`, gradients, which are short of registers, take 216 microseconds
// instead of 242, and the product, which is not, 71 instead of 67.
template <bool told>
struct batch_reader {
  const u32* entries;
  u32 at; // in 32 bits, as pointers of a lane take registers
  lane_entries next;

  WL_DEVICE batch_reader(const u32* entries, u32 batch, int lane)
      : entries(entries), at(batch * BATCH_ENTRIES) {
    load(lane);
  }
  WL_DEVICE lane_entries read(int lane) {
    const lane_entries known = next;
    at += BATCH_ENTRIES;
    load(lane);
    return known;
  }
  WL_DEVICE void load(int lane) {
    const auto four = load_pack<u32, 4>(entries + (at + lane % 4 * 4));
    const u32* const two = entries + (at + place_in_batch(lane / 4));
#pragma unroll
    for (int e = 0; e < 4; ++e)
      next.summed[e] = four.at[e];
    next.dotted[0] = load_pack<u32, 1>(two).at[0];
    next.dotted[1] = load_pack<u32, 1>(two + 2).at[0];
    next.added = load_pack<u32, 1>(entries + (at + place_in_batch(lane % 8 + lane / 16 * 8))).at[0];
  }
};
template <>
struct batch_reader<true> {
  const u32* entries;
  u32 at, next;

  WL_DEVICE batch_reader(const u32* entries, u32 batch, int lane)
      : entries(entries),
        at(batch * BATCH_ENTRIES + u32(place_in_batch(lane % 8 + lane / 16 * 8))) {
    next = load_pack<u32, 1>(entries + at).at[0];
  }
  WL_DEVICE lane_entries read(int lane) {
    lane_entries known;
    known.added = next;
    at += BATCH_ENTRIES;
    next = load_pack<u32, 1>(entries + at).at[0];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      known.dotted[j] = shuffle(known.added, lane / 4 + 16 * j);
#pragma unroll
      for (int e = 0; e < 2; ++e)
        known.summed[2 * j + e] = shuffle(known.added, lane % 4 * 2 + e + 16 * j);
    }
    return known;
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

  // The chunks of two dense rows that four lanes hold.
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

// The sums of one of two panels.
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

// The value of lane row lane / 4 for row e of the two rows of a lane's sums.
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

// The pair of panels of a warp. Panels of a block are adjacent, and blocks of a head follow one
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

  // Calls panels.take(i, lane, known, stage) for the batches of panel i with its slab at `stage`.
  template <class Slabs, class Panels>
  WL_DEVICE void for_batches(const item& it, const Slabs& pair, Panels& panels) const {
    // Of a number that is not negative: else gradients took 229 microseconds in place of 211, as
    // the compiler kept fewer things in registers.
    const int lane = int(u32(it.thread()) % 32);
    pair.begin(it);
    batch_reader<Panels::told> reader(all, first_batch, lane);
#pragma unroll 1
    for (int s = 0; s < slabs; ++s) {
      pair.wait_until_there(s);
      const unsigned char* const stage = pair.stage_at_once(s);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (i == 1)
          pair.copy_next(s, lane);
        bool last;
#pragma unroll 1
        do {
          const lane_entries known = reader.read(lane);
          last = known.last();
          panels.take(i, lane, known, stage);
        } while (!last);
      }
      pair.leave(s, lane);
    }
  }
};

} // namespace wl
