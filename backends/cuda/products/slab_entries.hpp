// Entries of a sparse pattern for tensor cores without tiles of it. A warp has panels of 8 rows,
// and columns pass by in slabs whose dense rows are in the shared memory of a block. What a product
// takes in the place of 16 neighbouring columns are the columns of any 16 entries of a panel: one
// of the 8 sums of each is of use, which at low densities is cheaper than to multiply tiles of which
// one place in a hundred is an entry. A slab is read from the second-level cache once for each
// block, where a kernel by rows reads two rows for each entry.
#pragma once
#include "tile_gradients.hpp"

namespace wl {

// Rows of a panel, and entries that are multiplied at once.
constexpr int PANEL_ROWS = 8, BATCH_ENTRIES = 16;
// An entry is where its dense row begins in the slab, a multiple of 16, and its row in the panel; 8
// of what only fills a batch.
constexpr u32 ROW_BITS = 15;

WL_DEVICE int row_in_panel(u32 entry) { return int(entry & ROW_BITS); }
// Where a dense row begins, its chunks changed places as for `chunk`; see chunk_at.
WL_DEVICE u32 place_of(u32 entry, int chunk) { return (entry ^ u32(chunk << 4)) & ~ROW_BITS; }
// How far chunk `by` behind one of the first four or two is from it: these addresses are changed in
// bits 4 to 6, which slabs begin at multiples of.
template <int DIM>
WL_DEVICE u32 chunk_on(u32 at, int by) {
  return (at ^ u32((by & 7) << 4)) + (DIM > 64 ? u32(by >> 3) * 1024 : 0u);
}
template <int DIM>
WL_DEVICE int row_in_slab(u32 entry) {
  if constexpr (DIM > 64)
    return int(entry / (16 * DIM) * 8 + entry / 128 % 8);
  else
    return int(entry / (2 * DIM));
}

// Where entry e of a batch is stored: the four that a lane has sums of are neighbours.
WL_DEVICE constexpr int place_in_batch(int e) { return e % 8 / 2 * 4 + e / 8 * 2 + e % 2; }

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

// What a lane needs to know of a batch.
struct lane_entries {
  pack<u32, 4> summed; // entries 2 (lane % 4), the next one, and 8 behind these: it has their sums
  u32 dotted[2];       // entries lane / 4 and 8 behind: it loads parts of their dense rows
  u32 added;           // it names the dense row of this one to be added up

  WL_DEVICE void load(const u32* batch, int lane) {
    summed = load_pack<u32, 4>(batch + lane % 4 * 4);
    dotted[0] = load_pack<u32, 1>(batch + place_in_batch(lane / 4)).at[0];
    dotted[1] = load_pack<u32, 1>(batch + place_in_batch(lane / 4) + 2).at[0];
    added = load_pack<u32, 1>(batch + place_in_batch(lane % 8 + lane / 16 * 8)).at[0];
  }
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

  // sums = the rows of both panels times the dense rows in `slab` that N batches name
  template <int N>
  WL_DEVICE void multiply(float (&sums)[N][2][4], const unsigned char* slab,
                          const lane_entries (&known)[N], int lane) const {
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          sums[n][j][e] = 0;
#pragma unroll
    for (int turn = 0; turn < turns; ++turn) {
      pack<u32, 4> four[N][2];
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int j = 0; j < 2; ++j)
          four[n][j] = *reinterpret_cast<const pack<u32, 4>*>(
              slab + chunk_on<DIM>(place_of(known[n].dotted[j], lane % 4), 4 * turn));
#pragma unroll
      for (int w = 0; w < 4; w += 2)
#pragma unroll
        for (int n = 0; n < N; ++n)
#pragma unroll
          for (int j = 0; j < 2; ++j)
            add_product<T>(sums[n][j], words[2 * turn + w / 2], four[n][j].at[w],
                           four[n][j].at[w + 1]);
    }
  }
};

// The same for one of two panels: two of each eight entries for the lane's row.
template <int N, class Rows>
WL_DEVICE void multiply_panel(float (&sums)[N][2][2], const Rows& rows, int panel,
                              const unsigned char* slab, const lane_entries (&known)[N],
                              int lane) {
  float both[N][2][4];
  rows.multiply(both, slab, known, lane);
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        sums[n][j][e] = both[n][j][2 * panel + e];
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
    load_cores_transposed(a, chunk_on<DIM>(at, 2 * j));
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
