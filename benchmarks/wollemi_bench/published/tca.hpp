// TCA-SpMM (Electronics 2024, 13(20), 3981): C = alpha A B + beta C on tensor cores straight from
// compressed rows. The product of a row is reshaped into products of small matrices: 16 of its
// entries (8 of TF32) times their gathered rows of B; warps are assigned by the lengths of rows, of
// which long ones are cut.
#pragma once
#include "simt/packs.hpp"

namespace wl {

// Steps of the tensor cores: d (16 x 8) += a (16 x K) b (K x 8). A lane's registers of a are of
// row l / 4, then of row l / 4 + 8, then of both for the second half of K; its registers of b are
// of column l / 4. Of K it has 2 (l % 4), 1 further, and both 8 further, or l % 4 and 4 further if
// K is 8.
template <class T>
struct step_of;
template <>
struct step_of<half> {
  static constexpr int entries = 16; // K
  WL_DEVICE static void add(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};
template <>
struct step_of<bfloat> {
  static constexpr int entries = 16;
  WL_DEVICE static void add(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};
template <>
struct step_of<float> { // rounded to TF32
  static constexpr int entries = 8;
  WL_DEVICE static void add(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};

// The register of two neighbours in K, of which only the first is used if K is 8.
template <class T>
WL_DEVICE u32 pair_of(T first, T second) {
  return u32(second.bits) << 16 | first.bits;
}
WL_DEVICE u32 pair_of(float first, float) {
  u32 rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(first));
  return rounded;
}

// A warp has 16 J columns of an item's row, 2 J adjacent ones a lane: rows l / 4 and l / 4 + 8 of
// tile j of a are columns 2 j and 2 j + 1 of these. Which entry is where in K is free as well: a
// lane has neighbours. Of b only the values are needed; all eight columns get them.
//
// Items are the items of csr_spmm. E is 2 J, or 1 where rows do not begin at multiples of 2 J.
template <int J, int E, int WHOLE, class T, class I>
WL_DEVICE void tca_spmm(const item& it, i64 items, i64 k, i64 batch, const I* bounds,
                        const I* target, const I* indices, const T* values, i64 values_step,
                        const T* B, i64 B_ld, i64 B_step, T* C, i64 C_ld, i64 C_step,
                        held_t<T> alpha, held_t<T> beta, i64 lines, u8* partial) {
  constexpr int entries = step_of<T>::entries, each = entries / 4, width = 16 * J, own = 2 * J;
  constexpr int ahead = J * sizeof(T) > 8 ? 1 : 2; // steps with rows loaded together
  constexpr int waves = WL_BLOCK / WL_WARP;
  const int lane = lane_of(it), quad = lane % 4;
  const i64 tiles = (k + width - 1) / width, units = items * tiles * batch;
  for (i64 u = it.block() * waves + wave_of(it); u < units; u += it.blocks() * waves) {
    const unit_of unit(u, items, tiles);
    const i64 first = unit.tile * width + lane / 4 * own, end = bounds[unit.i + 1];
    const T* const of_B = B + unit.b * B_step;
    const T* const of_values = values + unit.b * values_step;
    float sums[J][4] = {};
    for (i64 begin = bounds[unit.i]; begin < end; begin += WL_WARP) {
      const int count = end - begin < WL_WARP ? int(end - begin) : WL_WARP;
      const i64 e = begin + (lane < count ? lane : count - 1);
      const I column = read_once(indices + e);
      const float value = widen(read_once(of_values + e));
      for (int s = 0; s < count; s += entries * ahead) {
        T rows[ahead][each][own], factors[ahead][each];
#pragma unroll
        for (int a = 0; a < ahead; ++a)
#pragma unroll
          for (int i = 0; i < each; ++i) {
            const int from = s + a * entries + quad * each + i;
            const I c = shuffle(column, from % WL_WARP);
            factors[a][i] = narrowed<T>::of(shuffle(value, from % WL_WARP));
            const T* const row = row_at(of_B, c, I(B_ld));
#pragma unroll
            for (int v = 0; v < own; v += E) {
              pack<T, E> loaded{};
              if (from < count && (WHOLE || first + v < k))
                loaded = load_pack<T, E>(row + first + v);
#pragma unroll
              for (int x = 0; x < E; ++x)
                rows[a][i][v + x] = loaded.at[x];
            }
            if (from >= count)
              factors[a][i] = T{};
          }
#pragma unroll
        for (int a = 0; a < ahead; ++a) {
          constexpr int next = entries == 16; // registers of K = 16 hold two entries
          const T(&f)[each] = factors[a];
          const u32 b[2] = {pair_of(f[0], f[next]), pair_of(f[each / 2], f[each / 2 + next])};
#pragma unroll
          for (int j = 0; j < J; ++j) {
            u32 of_tile[4];
#pragma unroll
            for (int h = 0; h < 4; ++h) {
              const int i = h / 2 * (each / 2), c = 2 * j + h % 2;
              of_tile[h] = pair_of(rows[a][i][c], rows[a][i + next][c]);
            }
            step_of<T>::add(sums[j], of_tile, b);
          }
        }
      }
    }
    const I row = target ? target[unit.i] : I(unit.i);
    if (quad != 0)
      continue; // all four lanes of a column have its sums
    float* const line = reinterpret_cast<float*>(partial) + (unit.b * lines - 1 - row) * k;
    T* const of_C = C + unit.b * C_step + row * C_ld;
#pragma unroll
    for (int v = 0; v < own; v += E) {
      float made[E];
#pragma unroll
      for (int x = 0; x < E; ++x)
        made[x] = sums[(v + x) / 2][(v + x) % 2 * 2];
      if (!WHOLE && first + v >= k)
        continue;
      if (row < 0) {
#pragma unroll
        for (int x = 0; x < E; ++x)
          line[first + v + x] = made[x];
      } else {
        store_pack<T, E>(of_C + first + v, made, alpha, beta);
      }
    }
  }
}

} // namespace wl
