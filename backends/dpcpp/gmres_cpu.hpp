// The long loops of restarted GMRES on CPU devices. Operations on a few numbers per column (rotate,
// solve) use the kernels of backends/simt.
//
// Elements are processed in tiles that stay in the first-level cache while all basis vectors are
// read, a few at a time; a basis is read from memory once per call.
#pragma once
#include "simt/gmres.hpp"
#include "dpcpp/lanes_cpu.hpp"
#include "dpcpp/arithmetic.hpp"

namespace wl {

// A third of a first-level cache of 48 KB, in elements of float64.
constexpr i64 TILE = 2048;

// Basis vectors that are processed together: w is loaded once for this number.
constexpr int AT_ONCE = 4;

// The part of a basis and of a vector w that one lane reads, in one column c. If FLAT, `e` counts
// elements of contiguous blocks, and adjacent lanes read adjacent elements; otherwise `e` counts
// rows, and only this lane reads the column.
template <bool FLAT, class T, class S>
struct lane_share {
  i64 begin, end, step; // of e
  i64 lane, c, k;
  const S* basis;
  i64 between; // from a basis vector to the next
  mat<T> w;

  // The index of its sum among the sums of a basis vector.
  WL_DEVICE i64 slot() const { return FLAT ? lane : c; }
  WL_DEVICE i64 in_basis(i64 e) const { return FLAT ? e + lane : e * k + c; }
  WL_DEVICE T& of_w(i64 e) const { return w.data[FLAT ? e + lane : e * w.ld + c]; }

  // Calls body(first, last) for tiles of whole steps.
  template <class Body>
  WL_DEVICE void for_tiles(const Body& body) const {
    const i64 tile = TILE / step * step;
    for (i64 first = begin; first < end; first += tile)
      body(first, first + tile < end ? first + tile : end);
  }

  // Calls body(e) for a tile; all lanes take part in each step except the last one.
  template <class Body>
  WL_DEVICE void for_elements(i64 first, i64 last, const Body& body) const {
    i64 e = first;
    for (; e + step <= last; e += step)
      body(e);
    if (e + (FLAT ? lane : 0) < last)
      body(e);
  }

  // sums[g distance] += <v_g, w> for G vectors from v on.
  template <int G>
  WL_DEVICE void dots(i64 first, i64 last, const S* v, T* sums, i64 distance) const {
    T part[G] = {};
    for_elements(first, last, [&](i64 e) {
      const T value = of_w(e);
#pragma unroll
      for (int g = 0; g < G; ++g)
        part[g] += conj(raised<T>(v[g * between + in_basis(e)])) * value;
    });
#pragma unroll
    for (int g = 0; g < G; ++g)
      sums[g * distance] += part[g];
  }

  // sums[i distance] += <v_i, w> for i < count.
  WL_DEVICE void all_dots(i64 first, i64 last, i64 count, T* sums, i64 distance) const {
    i64 i = 0;
    for (; i + AT_ONCE <= count; i += AT_ONCE)
      dots<AT_ONCE>(first, last, basis + i * between, sums + i * distance, distance);
    for (; i < count; ++i)
      dots<1>(first, last, basis + i * between, sums + i * distance, distance);
  }

  // |w|^2
  WL_DEVICE real_t<T> square_of_w(i64 first, i64 last) const {
    real_t<T> sum{};
    for_elements(first, last, [&](i64 e) { sum += square(of_w(e)); });
    return sum;
  }

  // w += sum of factor(g) v_g for G vectors from v on.
  template <int G, class Factor>
  WL_DEVICE void add(i64 first, i64 last, const S* v, const Factor& factor) const {
    T factors[G];
#pragma unroll
    for (int g = 0; g < G; ++g)
      factors[g] = without_unit<S>(T(factor(g)));
    for_elements(first, last, [&](i64 e) {
      T sum = of_w(e);
#pragma unroll
      for (int g = 0; g < G; ++g)
        multiply_add(sum, factors[g], raised<T>(v[g * between + in_basis(e)]));
      of_w(e) = sum;
    });
  }

  // w += sum of factor(i) v_i for i < count.
  template <class Factor>
  WL_DEVICE void add_all(i64 first, i64 last, i64 count, const Factor& factor) const {
    i64 i = 0;
    for (; i + AT_ONCE <= count; i += AT_ONCE)
      add<AT_ONCE>(first, last, basis + i * between, [&](int g) { return factor(i + g); });
    for (; i < count; ++i)
      add<1>(first, last, basis + i * between, [&](int) { return factor(i); });
  }
};

// The layout of the sums of a work-group: `width` slots for each basis vector; column c has the
// slots c, c + k, ... below `used`.
struct slots {
  i64 width, used;
  bool flat;

  WL_DEVICE slots(i64 k, i64 ld)
      : width(k < LANES ? LANES : k), used(k), flat(k <= LANES && ld == k) {
    if (flat)
      used = LANES / k * k;
  }

  // The sum of column c over all work-groups, with sums `distance` apart.
  template <class S>
  WL_DEVICE S total(i64 blocks, i64 distance, const S* sums, i64 c, i64 k) const {
    S sum{};
    for (i64 b = 0; b < blocks; ++b)
      for (i64 l = c; l < used; l += k)
        sum += sums[b * distance + l];
    return sum;
  }
};

// Calls body(share) for all columns of which this lane has a part.
template <class T, class S, class Body>
WL_DEVICE void for_shares(const item& it, i64 n, i64 k, const S* basis, mat<T> w,
                          const Body& body) {
  const rows_of rows(it, n);
  const i64 lane = own_lane(), step = slots(k, w.ld).used;
  if (k == 1 && w.ld == 1) {
    // a separate call, because all values that depend on the column are the same in all lanes
    body(lane_share<true, T, S>{rows.begin, rows.end, LANES, lane, 0, 1, basis, n, w});
  } else if (slots(k, w.ld).flat) {
    if (lane < step)
      body(lane_share<true, T, S>{rows.begin * k, rows.end * k, step, lane, lane % k, k, basis,
                                  n * k, w});
  } else {
    for (i64 c = lane; c < k; c += LANES)
      body(lane_share<false, T, S>{rows.begin, rows.end, 1, lane, c, k, basis, n * k, w});
  }
}

// Calls body(row, c, e) for this lane's elements of n rows and k columns that are contiguous.
template <class Body>
WL_DEVICE void for_all(const item& it, i64 n, i64 k, const Body& body) {
  const rows_of rows(it, n);
  const i64 end = rows.end * k;
  for (i64 e = rows.begin * k + own_lane(); e < end; e += LANES)
    body(k == 1 ? e : e / k, k == 1 ? 0 : e % k, e);
}

template <class T, class S>
WL_DEVICE void gmres_start_cpu(const item& it, i64 s, i64 n, i64 k, mat<const T> r, mat<T> v,
                               S* basis, mat<T> g, i64* count, i64* step, status_of<T> status) {
  for_all(it, n, k, [&](i64 row, i64 c, i64 e) {
    keep_rounded(v(row, c), basis[e], status.is_running(c) ? r(row, c) / status.norm[c] : T(0));
  });
  if (it.block() != 0)
    return;
  for (i64 i = own_lane(); i < s * k; i += LANES)
    g(i / k, i % k) = i < k ? T(status.norm[i]) : T(0);
  for (i64 c = own_lane(); c < k; c += LANES)
    count[c] = 0;
  if (own_lane() == 0)
    *step = 0;
}

// As gmres_project of backends/simt; `partials` has (s + 1) `width` sums a work-group.
template <int REPEAT, class T, class S>
WL_DEVICE void gmres_project_cpu(const item& it, i64 s, i64 n, i64 k, const S* basis,
                                 mat<const T> w, mat<T> h, T* correction, real_t<T>* before,
                                 const real_t<T>* after, const i64* step, status_of<T> status,
                                 T* partials, i32* counter) {
  const i64 vectors = *step + 1, sums = vectors + (REPEAT ? 0 : 1);
  const slots lie(k, w.ld);
  const i64 distance = (s + 1) * lie.width;
  T* const own = partials + it.block() * distance;
  const mat<T> same{const_cast<T*>(w.data), w.ld};
  for_shares<T>(it, n, k, basis, same, [&](const auto& share) {
    if (!takes_part(status, share.c, REPEAT, before, after))
      return;
    T* const mine = own + share.slot();
    for (i64 i = 0; i < sums; ++i)
      mine[i * lie.width] = T(0);
    share.for_tiles([&](i64 first, i64 last) {
      share.all_dots(first, last, vectors, mine, lie.width);
      if constexpr (!REPEAT)
        mine[vectors * lie.width] += T(share.square_of_w(first, last));
    });
  });
  if (!is_last_block(it, counter))
    return;
  for (i64 e = own_lane(); e < sums * k; e += LANES) {
    const i64 i = k == 1 ? e : e / k, c = k == 1 ? 0 : e % k;
    if (!takes_part(status, c, REPEAT, before, after))
      continue;
    const T total = lie.total(it.blocks(), distance, partials + i * lie.width, c, k);
    if (i == vectors) {
      before[c] = square_root(real(total));
    } else if constexpr (REPEAT) {
      correction[i * k + c] = without_unit<S>(total);
    } else {
      h(i, c) = without_unit<S>(total);
    }
  }
}

template <int REPEAT, class T, class S>
WL_DEVICE void gmres_subtract_cpu(const item& it, i64 s, i64 n, i64 k, const S* basis, mat<T> w,
                                  mat<const T> h, mat<T> sums, const real_t<T>* before,
                                  real_t<T>* after, const i64* step, status_of<T> status,
                                  real_t<T>* partials, i32* counter) {
  const i64 vectors = *step + 1;
  const slots lie(k, w.ld);
  real_t<T>* const own = partials + it.block() * lie.width;
  for_shares<T>(it, n, k, basis, w, [&](const auto& share) {
    if (!takes_part(status, share.c, REPEAT, before, after))
      return;
    real_t<T> sum{};
    share.for_tiles([&](i64 first, i64 last) {
      share.add_all(first, last, vectors, [&](i64 i) { return -h(i, share.c); });
      sum += share.square_of_w(first, last);
    });
    own[share.slot()] = sum;
  });
  if (!is_last_block(it, counter))
    return;
  for (i64 c = own_lane(); c < k; c += LANES)
    if (takes_part(status, c, REPEAT, before, after)) {
      for (i64 i = 0; REPEAT && i < vectors; ++i)
        sums(i, c) += h(i, c);
      after[c] = square_root(lie.total(it.blocks(), lie.width, partials, c, k));
    }
}

template <class T, class S>
WL_DEVICE void gmres_append_cpu(const item& it, i64 s, i64 n, i64 k, mat<const T> w,
                                const real_t<T>* after, mat<T> v, S* basis, i64* step,
                                status_of<T> status, i32* counter) {
  const i64 j = *step;
  S* const next = basis + (j + 1) * n * k;
  for_all(it, n, k, [&](i64 row, i64 c, i64 e) {
    if (!status.is_running(c))
      return;
    const real_t<T> length = after[c];
    keep_rounded(v(row, c), next[e], length == real_t<T>(0) ? T(0) : w(row, c) / length);
  });
  // every work-group has read the step by then
  if (is_last_block(it, counter) && own_lane() == 0)
    *step = j + 1;
}

template <class T, class S>
WL_DEVICE void gmres_combine_cpu(const item& it, i64 s, i64 n, i64 k, const S* basis,
                                 mat<const T> y, const i64* count, mat<T> u) {
  for_shares<T>(it, n, k, basis, u, [&](const auto& share) {
    share.for_tiles([&](i64 first, i64 last) {
      share.for_elements(first, last, [&](i64 e) { share.of_w(e) = T(0); });
      share.add_all(first, last, count[share.c], [&](i64 i) { return y(i, share.c); });
    });
  });
}

} // namespace wl
