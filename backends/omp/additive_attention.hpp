// Attention whose scores are sums of two numbers, leaky(own + other), row by row for all heads. See
// wollemi.core.operations.attention. Threads have whole rows.
#pragma once

#include <cmath>
#include <type_traits>

#include "fusedmm.hpp"

namespace wl {

// Entries of a row whose weights are computed before their rows are added up.
constexpr i64 kAttended = 128;

// The weights of some entries, all heads of an entry side by side.
template <class T>
struct head_weights {
  T *weight, *is_positive, *base;

  explicit head_weights(i64 heads) {
    const i64 padded = kAttended * heads + kLanesOf<T>;
    weight = workspace<T>(5, 2 * padded + heads);
    is_positive = weight + padded;
    base = is_positive + padded;
  }

  // weight = exp(leaky(own + other_e) - base(e, head))
  template <class I, class Base>
  void compute(const I* indices, i64 count, const T* own, mat<const T> other, i64 heads, T slope,
               const Base& base_of) const {
    constexpr int L = kLanesOf<T>;
    for (i64 e = 0; e < count; ++e) {
      const T* const of_other = other.data + i64(indices[e]) * other.ld;
      for (i64 h = 0; h < heads; ++h) {
        const T z = own[h] + of_other[h];
        weight[e * heads + h] = (z > T(0) ? z : slope * z) - base_of(e, h);
        is_positive[e * heads + h] = z > T(0) ? T(1) : T(0);
      }
    }
    for (i64 at = 0; at < count * heads; at += L)
      save<T>(weight + at, exp_of<T, L>(load<T>(weight + at)));
  }
};

// Calls body(std::integral_constant) with P = p where loops over so few columns are worth a text of
// their own, else with 0.
template <class Body>
void with_columns(i64 p, Body&& body) {
  switch (p) {
  case 8:
    return body(std::integral_constant<int, 8>());
  case 16:
    return body(std::integral_constant<int, 16>());
  case 32:
    return body(std::integral_constant<int, 32>());
  case 64:
    return body(std::integral_constant<int, 64>());
  default:
    return body(std::integral_constant<int, 0>());
  }
}

// sums += factor row
template <int P, class T>
inline void add_head(T* sums, T factor, const T* row, i64 p) {
  const i64 columns = P ? P : p;
  for (i64 c = 0; c < columns; ++c)
    sums[c] += factor * row[c];
}

// Where a row of the result and what its gradients need go; null is not asked for.
template <class T>
struct attended {
  T *sums, *positive, *log_totals, *shares;
};

template <int P, class T, class I>
void attend_row(const I* indices, i64 count, const T* own, mat<const T> other, mat<const T> D,
                i64 heads, i64 p, T slope, const attended<T>& out) {
  constexpr T nothing = -std::numeric_limits<T>::infinity();
  const head_weights<T> made(heads);
  T* const totals = workspace<T>(7, 2 * heads);
  T* const of_positive = totals + heads;
  std::fill(made.base, made.base + heads, nothing);
  std::fill(totals, totals + 2 * heads, T(0));
  std::fill(out.sums, out.sums + heads * p, T(0));
  if (out.positive)
    std::fill(out.positive, out.positive + heads * p, T(0));
  for (i64 e = 0; e < count; ++e) {
    const T* const of_other = other.data + i64(indices[e]) * other.ld;
    for (i64 h = 0; h < heads; ++h) {
      const T z = own[h] + of_other[h], s = z > T(0) ? z : slope * z;
      made.base[h] = s > made.base[h] ? s : made.base[h];
    }
  }
  for (i64 h = 0; h < heads; ++h)
    made.base[h] = made.base[h] == nothing ? T(0) : made.base[h];
  for (i64 first = 0; first < count; first += kAttended) {
    const i64 here = std::min(kAttended, count - first);
    made.compute(indices + first, here, own, other, heads, slope,
                 [&](i64, i64 h) { return made.base[h]; });
    for (i64 e = 0; e < here; ++e) {
      const T* const row = D.data + i64(indices[first + e]) * D.ld;
      for (i64 h = 0; h < heads; ++h) {
        const T weight = made.weight[e * heads + h];
        totals[h] += weight;
        add_head<P>(out.sums + h * p, weight, row + h * p, p);
        if (out.positive && made.is_positive[e * heads + h] > T(0)) {
          of_positive[h] += weight;
          add_head<P>(out.positive + h * p, weight, row + h * p, p);
        }
      }
    }
  }
  for (i64 h = 0; h < heads; ++h) {
    const T share = count > 0 ? T(1) / totals[h] : T(0);
    for (i64 c = h * p; c < (h + 1) * p; ++c) {
      out.sums[c] *= share;
      if (out.positive)
        out.positive[c] *= share;
    }
    if (out.positive) {
      out.shares[h] = share * of_positive[h];
      out.log_totals[h] = made.base[h] + std::log(totals[h]);
    }
  }
}

// The gradients that belong to a column j of the pattern, whose entries are in the rows `indices`.
template <int P, class T, class I>
void attending_column(const I* indices, i64 count, const T* own, mat<const T> target,
                      mat<const T> G, mat<const T> log_totals, mat<const T> means, const T* D,
                      i64 heads, i64 p, T slope, T* of_source, T* of_D) {
  const head_weights<T> made(heads);
  T* const steep = workspace<T>(7, heads * p);
  std::fill(steep, steep + heads * p, T(0));
  std::fill(of_D, of_D + heads * p, T(0));
  std::fill(of_source, of_source + heads, T(0));
  for (i64 first = 0; first < count; first += kAttended) {
    const i64 here = std::min(kAttended, count - first);
    const I* const rows = indices + first;
    made.compute(rows, here, own, target, heads, slope,
                 [&](i64 e, i64 h) { return log_totals.data[i64(rows[e]) * log_totals.ld + h]; });
    for (i64 e = 0; e < here; ++e) {
      const T* const row = G.data + i64(rows[e]) * G.ld;
      const T* const of_mean = means.data + i64(rows[e]) * means.ld;
      for (i64 h = 0; h < heads; ++h) {
        const T weight = made.weight[e * heads + h];
        const T steepness = made.is_positive[e * heads + h] > T(0) ? weight : slope * weight;
        add_head<P>(of_D + h * p, weight, row + h * p, p);
        add_head<P>(steep + h * p, steepness, row + h * p, p);
        of_source[h] -= steepness * of_mean[h];
      }
    }
  }
  for (i64 h = 0; h < heads; ++h)
    for (i64 c = h * p; c < (h + 1) * p; ++c)
      of_source[h] += D[c] * steep[c];
}

} // namespace wl
