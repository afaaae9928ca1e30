// C = alpha A B + beta C with a slab of B in the shared memory of every multiprocessor. A slab is
// some rows of 32 columns (128 bytes a row, for every type). A block loads its slab and processes
// the entries of its rows with columns in the slab. So B is read from the caches once for each
// block and not once for each entry; an entry costs one row read from shared memory, at 128 bytes a
// cycle.
#pragma once
#include "simt/packs.hpp"

namespace wl {

// Bytes of a row of a slab, and its number of 16-byte vectors: together they span the 32 banks.
constexpr int slab_row = 128, slab_vectors = slab_row / 16;

// Copies a vector of 16 bytes from global to shared memory without a register.
WL_DEVICE void copy_vector(unsigned shared, const void* place) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(place) : "memory");
}
WL_DEVICE void wait_for_copies() {
  asm volatile("cp.async.commit_group;\n cp.async.wait_group 0;" ::: "memory");
}

// Adds up vectors over groups of L lanes: lanes exchange vectors with the lane H groups away. After
// H = V / 2, .., 1 a lane holds the sum over V groups of its vector 0. This is a recursion because
// an array is kept in registers only if its indices are constants.
template <int H, int L, int E, class T>
WL_DEVICE void fold_vectors(const item& it, T* sums) {
  if constexpr (H > 0) {
#pragma unroll
    for (int w = 0; w < H; ++w)
#pragma unroll
      for (int e = 0; e < E; ++e)
        sums[w * E + e] += shuffle_xor(it, sums[(w ^ H) * E + e], H * L);
    fold_vectors<H / 2, L, E>(it, sums);
  }
}

// Adds up the numbers of lanes with numbers that differ by D, 2 D, ...; each of two lanes keeps
// half of the numbers. Returns the index of the first number that the lane keeps.
template <int D, int COUNT, class T>
WL_DEVICE int deal_numbers(const item& it, T* sums) {
  if constexpr (D >= WL_WARP) {
    return 0;
  } else if constexpr (COUNT == 1) {
    sums[0] += shuffle_xor(it, sums[0], D);
    return deal_numbers<2 * D, 1>(it, sums);
  } else {
    constexpr int half = COUNT / 2;
    const bool high = lane_of(it) & D;
#pragma unroll
    for (int e = 0; e < half; ++e) {
      // No conditional pointer: it would move the sums from registers to memory.
      const T first = sums[e], second = sums[e + half];
      const T kept = high ? second : first, sent = high ? first : second;
      sums[e] = kept + shuffle_xor(it, sent, D);
    }
    return (high ? half : 0) + deal_numbers<2 * D, half>(it, sums);
  }
}

// L lanes share an entry, and each holds V vectors of its row of B. Lanes read the vectors in an
// order rotated by the lane number, so that eight lanes that read at once access all banks.
// VECTORS: the rows of B begin at multiples of 16 bytes and consist of whole vectors. SORTED:
// entries are in the order of the matrix; otherwise entry p of the list is entry order[p] of the
// matrix.
//
// The number of a block counts slabs fastest, then groups of `share` rows, panels of 32 columns,
// and blocks of the batch.
template <int L, int VECTORS, int SORTED, class T>
WL_DEVICE void slab_spmm(const item& it, i64 m, i64 n, i64 k, i64 slabs, i64 height, i64 share,
                         i64 batch, const i32* starts, const u8* column_of, const i32* order,
                         const T* values, i64 values_step, const T* B, i64 B_ld, i64 B_step, T* C,
                         i64 C_ld, i64 C_step, T alpha, T beta, u8* partial) {
  constexpr int E = 16 / int(sizeof(T)), V = slab_vectors / L, panel = slab_vectors * E;
  constexpr int waves = WL_BLOCK / WL_WARP, entries = WL_WARP / L;
  const u16* const columns = reinterpret_cast<const u16*>(column_of);
  extern __shared__ __align__(128) unsigned char bytes[];
  const pack<T, E>* const slab = reinterpret_cast<const pack<T, E>*>(bytes);
  const i64 shares = (m + share - 1) / share, panels = (k + panel - 1) / panel;
  const int s = int(it.block() % slabs);
  const i64 g = it.block() / slabs % shares, q = it.block() / slabs / shares % panels,
            b = it.block() / slabs / shares / panels;
  const i64 top = s * height, left = q * panel;
  const int rows = int(n - top < height ? n - top : height);
  const T* const of_B = B + b * B_step + top * B_ld + left;
  if constexpr (VECTORS) {
    const unsigned shared = unsigned(__cvta_generic_to_shared(bytes));
    for (int v = it.thread(); v < rows * slab_vectors; v += WL_BLOCK) {
      const int r = v / slab_vectors, c = v % slab_vectors * E;
      if (left + c < k)
        copy_vector(shared + v * 16, of_B + r * B_ld + c);
      else
        reinterpret_cast<pack<T, E>*>(bytes)[v] = pack<T, E>{};
    }
  } else {
    for (int v = it.thread(); v < rows * panel; v += WL_BLOCK) {
      const int r = v / panel, c = v % panel;
      reinterpret_cast<T*>(bytes)[v] = left + c < k ? of_B[r * B_ld + c] : T(0);
    }
  }
  const int lane = lane_of(it), l = lane % L, mine = lane / L, x = mine % V;
  const T* const of_values = values + b * values_step;
  const i64 end = (g + 1) * share < m ? (g + 1) * share : m;
  i64 row = g * share + wave_of(it);
  // The range of the next row, and its first entries, are loaded while the current row is
  // multiplied.
  i32 first = 0, last = 0;
  if (row < end) {
    first = starts[row * slabs + s];
    last = starts[row * slabs + s + 1];
  }
  i32 p = first + mine;
  int column = 0;
  T value{};
  if (p < last) {
    column = columns[p];
    value = of_values[SORTED ? p : order[p]];
  }
  if constexpr (VECTORS)
    wait_for_copies();
  it.barrier();
  for (; row < end; row += waves) {
    i32 next_first = 0, next_last = 0;
    if (row + waves < end) {
      next_first = starts[(row + waves) * slabs + s];
      next_last = starts[(row + waves) * slabs + s + 1];
    }
    T sums[V * E] = {};
    for (i32 at = first; at < last; at += entries) {
      const int now = column;
      const T factor = value;
      const bool there = at + mine < last;
      i32 next = at + entries + mine, limit = last;
      if (at + entries >= last) {
        next = next_first + mine;
        limit = next_last;
      }
      if (next < limit) {
        column = columns[next];
        value = of_values[SORTED ? next : order[next]];
      }
      if (there) {
        const pack<T, E>* const of_row = slab + now * slab_vectors + l;
#pragma unroll
        for (int w = 0; w < V; ++w) {
          const pack<T, E> v = of_row[(w ^ x) * L];
#pragma unroll
          for (int e = 0; e < E; ++e)
            sums[w * E + e] += factor * v.at[e];
        }
      }
    }
    if (first >= last && next_first + mine < next_last) { // an empty row loads nothing in advance
      column = columns[next_first + mine];
      value = of_values[SORTED ? next_first + mine : order[next_first + mine]];
    }
    fold_vectors<V / 2, L, E>(it, sums);
    const int c = lane % slab_vectors * E + deal_numbers<slab_vectors, E>(it, sums);
    if (lane < panel && left + c < k) {
      if (slabs == 1)
        store_narrowed(C[b * C_step + row * C_ld + left + c], sums[0], alpha, beta);
      else
        reinterpret_cast<T*>(partial)[((b * slabs + s) * m + row) * k + left + c] = sums[0];
    }
    first = next_first;
    last = next_last;
  }
}

// Adds up the sums of all slabs in their order.
template <class T>
WL_DEVICE void slab_join(const item& it, i64 m, i64 k, i64 slabs, i64 batch, const u8* partial,
                         T* C, i64 C_ld, i64 C_step, T alpha, T beta) {
  const i64 count = m * k, w = it.block() * WL_BLOCK + it.thread();
  if (w >= count * batch)
    return;
  const i64 b = w / count, i = w - b * count, row = i / k;
  const T* const sums = reinterpret_cast<const T*>(partial) + b * slabs * count + i;
  T sum = sums[0];
  for (i64 s = 1; s < slabs; ++s)
    sum += sums[s * count];
  store_narrowed(C[b * C_step + row * C_ld + (i - row * k)], sum, alpha, beta);
}

} // namespace wl
