// Entries of a sparse pattern for tensor cores, without tiles of the pattern. A warp processes
// panels of 8 rows. It traverses the columns in slabs; the dense rows of a slab are in the shared
// memory of a block. Instead of 16 adjacent columns, each MMA gathers the columns of any 16 entries
// of a panel. Only one of the 8 sums of each entry is used, but at low densities this is faster
// than tiles that are mostly empty. A slab is read from the second-level cache once for each block;
// a kernel by rows reads two rows for each entry.
#pragma once
#include "cuda/products/slab_stages.hpp"
#include "cuda/products/tile_gradients.hpp"

namespace wl {

// Rows of a panel, and entries that one MMA multiplies.
constexpr int PANEL_ROWS = 8, BATCH_ENTRIES = 16;
// An entry holds the offset of its dense row in the slab, a multiple of 16, and its row in the
// panel; row 8 marks padding of a batch. The highest bit marks the last batch of a list.
constexpr u32 ROW_BITS = 15, LAST_BIT = 1u << 31, PLACE_BITS = ~(ROW_BITS | LAST_BIT);

WL_DEVICE int row_in_panel(u32 entry) { return int(entry & ROW_BITS); }
// The offset of a dense row, with its chunks swizzled as for `chunk`; see chunk_at.
WL_DEVICE u32 place_of(u32 entry, int chunk) { return (entry ^ u32(chunk << 4)) & PLACE_BITS; }
// The offset of the chunk `by` chunks later: the swizzle changes bits 4 to 6, and slabs begin at
// multiples of the swizzle.
WL_DEVICE u32 chunk_on(u32 at, int by) { return at ^ u32(by << 4); }
template <int DIM>
WL_DEVICE int row_in_slab(u32 entry) {
  return int((entry & PLACE_BITS) / (2 * DIM));
}

// The position of entry e of a batch: the four entries for which a lane holds sums are adjacent.
WL_DEVICE constexpr int place_in_batch(int e) { return e % 8 / 2 * 4 + e / 8 * 2 + e % 2; }

// The entries of a pair of panels: a list for each slab and panel of the pair, of one or more
// batches.
template <int DIM, int HEIGHT>
struct pair_entries {
  const u32* batches; // from the first batch of the pair on
  int slabs;

  // Calls `visit` with the column of each entry of one of the 16 rows.
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

// The entries of a batch that a lane needs.
struct lane_entries {
  // entries 2 (lane % 4), the next one, and the two 8 later: the lane holds their sums
  u32 summed[4];
  u32 dotted[2]; // entry lane / 4 and the one 8 later: the lane loads parts of their dense rows
  // entry lane % 8 + lane / 16 * 8: the lane gives the address of its dense row for the sum
  u32 added;

  WL_DEVICE bool last() const { return (added & LAST_BIT) != 0; }
  // Whether entry 8 j + e of the entries from 2 (lane % 4) on is in row lane / 4 of the panel.
  WL_DEVICE bool has(int j, int e, int lane) const {
    return row_in_panel(summed[2 * j + e]) == lane / 4;
  }
};

// The entries that a lane needs of successive batches. The entries of a batch are loaded while the
// previous batch is computed, so one batch follows the last one. Either each lane loads all of its
// entries, in seven registers, or, if `told`, it loads one entry and gets the others by shuffles
// when the batch is processed. With `told`, gradients, which are short of registers, take 216
// microseconds instead of 242; the product, which is not, takes 71 instead of 67.
template <bool told>
struct batch_reader {
  const u32* entries;
  u32 at; // 32 bits, because a pointer in each lane takes two registers
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

// The rows of two panels, of up to DIM numbers, in the register layout of products. The chunks of
// 16 bytes are in an order that allows loads of 16 bytes: lane q of four holds chunks q, q + 4, ..
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

  // The chunks of two dense rows that four lanes hold together.
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

// sums = rows of a panel times the dense rows in `slab` that a batch selects
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
// The same for two operands at once: the products of the two alternate, because each product waits
// for the previous one of its operand.
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

// sums (DIM x 8) += the dense rows in `slab` that 16 entries select, times their factors. A lane
// passes the factors of its row for two of each eight entries.
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

// `of_row` is the value of row lane / 4. Returns the value of row lane % 4 * 2 + e, which is row e
// of the two rows for which a lane holds sums.
WL_DEVICE float of_sums(float of_row, int e, int lane) {
  return shuffle(of_row, (lane % 4 * 2 + e) * 4);
}

// Multiplies the sums of row e of the two rows that a lane holds; returns whether all are finite.
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

// Stores sums as the rows of a panel of `rows` rows with `columns` numbers.
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

// The pair of panels of a warp. Panels of a block are adjacent, and blocks of a head are
// consecutive, so that the slabs of the head are in the second-level cache while they are read.
template <int DIM, int HEIGHT>
struct own_pair {
  i64 block, first_row;
  const u32* all;
  u32 first_batch;
  int slabs;

  // An empty pair follows the last pair of a pattern.
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

  // Calls panels.take(i, lane, known, stage) for the batches of panel i; `stage` holds the slab.
  template <class Slabs, class Panels>
  WL_DEVICE void for_batches(const item& it, const Slabs& pair, Panels& panels) const {
    // The division is unsigned: with signed numbers gradients took 229 microseconds instead of 211,
    // because the compiler kept fewer values in registers.
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
