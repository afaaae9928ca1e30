// Rows of dense matrices in vectors: E adjacent numbers are loaded and stored at once. A caller
// chooses E > 1 only if all rows begin at a multiple of a vector's bytes and have a multiple of E
// columns.
#pragma once
#include "simt/narrow.hpp"

namespace wl {

template <class T, int E>
struct alignas(E * sizeof(T)) pack {
  T at[E];
};

// A load of data that is read repeatedly and that the kernel does not write.
template <class T, int E>
WL_DEVICE pack<T, E> load_pack(const T* place) {
  using P = pack<T, E>;
#if defined(WL_CUDA)
  if constexpr (sizeof(P) == 16)
    return __builtin_bit_cast(P, __ldg(reinterpret_cast<const int4*>(place)));
  else if constexpr (sizeof(P) == 8)
    return __builtin_bit_cast(P, __ldg(reinterpret_cast<const long long*>(place)));
  else if constexpr (sizeof(P) == 4)
    return __builtin_bit_cast(P, __ldg(reinterpret_cast<const int*>(place)));
  else
    return __builtin_bit_cast(P, __ldg(reinterpret_cast<const short*>(place)));
#else
  return *reinterpret_cast<const P*>(place);
#endif
}

// The same if `there` is true, else zeros after a load from the beginning of the row: loads that
// each wait for a condition took twice the time.
template <int WHOLE, class T, int E>
WL_DEVICE pack<T, E> load_part(bool there, const T* row, i64 at) {
  if constexpr (WHOLE) {
    return load_pack<T, E>(row + at);
  } else {
    pack<T, E> loaded = load_pack<T, E>(row + (there ? at : 0));
#pragma unroll
    for (int e = 0; e < E; ++e)
      loaded.at[e] = there ? loaded.at[e] : T{};
    return loaded;
  }
}

// E adjacent numbers as the words that a load returns. As 16-bit numbers they would be unpacked at
// once and occupy twice the registers.
template <class T, int E>
struct words_in {
  static constexpr int count = sizeof(T) * E < 4 ? 1 : int(sizeof(T)) * E / 4;
  u32 at[count];
};

template <class T, int E>
WL_DEVICE words_in<T, E> load_words(const T* place) {
  const pack<T, E> loaded = load_pack<T, E>(place);
  if constexpr (sizeof(loaded) < 4)
    return {{u32(__builtin_bit_cast(u16, loaded))}};
  else
    return __builtin_bit_cast(words_in<T, E>, loaded);
}

// sums += factor row
template <class T, int E>
WL_DEVICE void add_words(held_t<T>* sums, held_t<T> factor, const words_in<T, E>& row) {
  if constexpr (sizeof(T) == 2) {
#pragma unroll
    for (int e = 0; e < E; e += 2) {
      float low, high;
      widen_both<T>(row.at[e / 2], low, high);
      sums[e] += factor * low;
      if (e + 1 < E)
        sums[e + 1] += factor * high;
    }
  } else {
    const auto numbers = __builtin_bit_cast(pack<T, E>, row);
#pragma unroll
    for (int e = 0; e < E; ++e)
      sums[e] += factor * numbers.at[e];
  }
}

// How many iterations of the loop that distributes entries are unrolled. All are, where a constant
// lane saves an instruction, unless the code becomes too long for compilers.
WL_DEVICE constexpr int unrolled(int turns) {
#if defined(WL_CUDA)
  return turns > 8 ? 1 : turns;
#else
  return turns ? 1 : 0;
#endif
}

// sums += factor row
template <class T, int E>
WL_DEVICE void add_pack(held_t<T>* sums, held_t<T> factor, const pack<T, E>& row) {
#pragma unroll
  for (int e = 0; e < E; ++e)
    sums[e] += factor * widen(row.at[e]);
}

template <class T, int E>
WL_DEVICE held_t<T> dot_pack(held_t<T> sum, const pack<T, E>& a, const pack<T, E>& b) {
#pragma unroll
  for (int e = 0; e < E; ++e)
    sum += widen(a.at[e]) * widen(b.at[e]);
  return sum;
}

// y = alpha sums + beta y
template <class T, int E>
WL_DEVICE void store_pack(T* place, const held_t<T>* sums, held_t<T> alpha, held_t<T> beta) {
  auto* const y = reinterpret_cast<pack<T, E>*>(place);
  pack<T, E> made = beta == held_t<T>(0) ? pack<T, E>{} : *y;
#pragma unroll
  for (int e = 0; e < E; ++e)
    store_narrowed(made.at[e], sums[e], alpha, beta);
  *y = made;
}

// The product of two indices: one instruction if both have 32 bits. If one of them is constant in a
// loop, CUDA's compiler widens it before the loop and multiplies 64 bits by 64.
template <class I>
WL_DEVICE i64 wide_product(I a, I b) {
#if defined(WL_CUDA)
  if constexpr (sizeof(I) == 4) {
    i64 product;
    asm("mul.wide.s32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b));
    return product;
  }
#endif
  return i64(a) * b;
}

// The address of row i of a matrix. The distance of two rows fits an index.
template <class I, class T>
WL_DEVICE T* row_at(T* data, I i, I ld) {
  return data + i64(i) * ld;
}

// The address of a row that an entry selects in a loop.
template <class I, class T>
WL_DEVICE T* gathered_row(T* data, I i, I ld) {
  return data + wide_product(i, ld);
}

// The work of a wave: item i of a list for tile `tile` of the columns of block b.
struct unit_of {
  i64 i, tile, b;
  WL_DEVICE unit_of(i64 unit, i64 items, i64 tiles) : i(unit), tile(0), b(0) {
    if (unit < items)
      return; // a single tile of a single block needs no division
    const i64 rest = unit / items;
    i = unit - rest * items;
    b = rest / tiles;
    tile = rest - b * tiles;
  }
};

} // namespace wl
