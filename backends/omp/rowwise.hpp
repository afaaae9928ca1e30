// Functions of all entries of a row: softmax of samples and its gradient, the largest rows of a
// dense matrix, and sums over equal entries. Threads have whole rows.
#pragma once

#include "omp/fusedmm.hpp"

namespace wl {

// The samples of a row as they are computed with, and minus infinities or zeros that fill a
// register.
template <class S>
computed_t<S>* held_samples(const S* from, i64 count, int which, computed_t<S> behind) {
  using T = computed_t<S>;
  constexpr i64 L = kLanesOf<T>;
  const i64 padded = (count + L - 1) / L * L;
  T* const held = workspace<T>(which, padded);
  for (i64 e = 0; e < count; ++e)
    held[e] = widen(from[e]);
  std::fill(held + count, held + padded, behind);
  return held;
}

template <class S>
void softmax_of_row(S* samples, i64 count) {
  using T = computed_t<S>;
  constexpr int L = kLanesOf<T>;
  if (count == 0)
    return;
  constexpr T nothing = -std::numeric_limits<T>::infinity();
  T* const s = held_samples(samples, count, 5, nothing);
  const T largest = largest_score(s, count), base = largest == nothing ? T(0) : largest;
  const T share = share_of_total(sum_of_registers<T>(count, [=](i64 e) {
    const wide<T> power = exp_of<T, L>(load<T>(s + e) - base);
    save<T>(s + e, power);
    return power;
  }));
  for (i64 e = 0; e < count; ++e)
    narrow(share * s[e], samples[e]);
}

// Turns gradients of weights into gradients of scores.
template <class S>
void softmax_gradient_of_row(const S* weights, S* gradients, i64 count) {
  using T = computed_t<S>;
  T* const p = held_samples(weights, count, 5, T(0));
  T* const g = held_samples(gradients, count, 7, T(0));
  const T mean =
      sum_of_registers<T>(count, [=](i64 e) -> wide<T> { return load<T>(p + e) * load<T>(g + e); });
  for (i64 e = 0; e < count; ++e)
    narrow(p[e] * (g[e] - mean), gradients[e]);
}

// The sum of the numbers of a row, in the type that sums are held in.
template <class S>
computed_t<S> sum_of_row(const S* numbers, i64 count) {
  using T = computed_t<S>;
  constexpr int L = kLanesOf<T>;
  return sum_of_terms<T>(count, L, [=](i64 begin, i64 end) {
    T lanes[L]{};
    i64 e = begin;
    for (; e + L <= end; e += L)
      for (int lane = 0; lane < L; ++lane)
        lanes[lane] += T(widen(numbers[e + lane]));
    T sum = T(0);
    for (; e < end; ++e)
      sum += T(widen(numbers[e]));
    for (int lane = 0; lane < L; ++lane)
      sum += lanes[lane];
    return sum;
  });
}

// A row of C becomes the largest of the rows of B that are named; NaN is larger than all.
template <class S, class I>
void largest_of_rows(const I* indices, i64 count, mat<const S> B, i64 k, S* row) {
  using T = computed_t<S>;
  T* const most = workspace<T>(5, k);
  std::fill(most, most + k, count > 0 ? -std::numeric_limits<T>::infinity() : T(0));
  for (i64 e = 0; e < count; ++e) {
    const S* const b = B.data + i64(indices[e]) * B.ld;
    for (i64 j = 0; j < k; ++j) {
      const T value = widen(b[j]);
      most[j] = value > most[j] || value != value ? value : most[j];
    }
  }
  for (i64 j = 0; j < k; ++j)
    narrow(most[j], row[j]);
}

// A row of Z becomes the sum of the elements of the rows of G where Y equals x.
template <class S, class I>
void sum_where_equal(const I* indices, i64 count, const S* x, mat<const S> Y, mat<const S> G, i64 k,
                     S* row) {
  using T = computed_t<S>;
  const PieceSum<T> sum = cleared_sum<T>(5, k);
  T* const own = workspace<T>(7, k);
  for (i64 j = 0; j < k; ++j)
    own[j] = widen(x[j]);
  for (i64 e = 0; e < count; ++e) {
    const S* const y = Y.data + i64(indices[e]) * Y.ld;
    const S* const g = G.data + i64(indices[e]) * G.ld;
    sum.before(1);
    T* const piece = sum.piece();
    for (i64 j = 0; j < k; ++j)
      piece[j] += T(widen(y[j])) == own[j] ? T(widen(g[j])) : T(0);
  }
  const T* const made = sum.value();
  for (i64 j = 0; j < k; ++j)
    narrow(made[j], row[j]);
}

} // namespace wl
