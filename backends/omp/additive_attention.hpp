// Attention with scores that are sums of two numbers, leaky(own + other), row by row for all heads.
// See wollemi.core.operations.attention. Each thread processes whole rows.
#pragma once

#include <cmath>
#include <type_traits>

#include "omp/fusedmm.hpp"

namespace wl {

// The number of entries of a row for which weights are computed before their rows are added up.
constexpr i64 kAttended = 128;

// The weights of some entries; the weights of all heads of an entry are adjacent.
template <class T>
struct head_weights {
  T *weight, *is_positive, *base;

  explicit head_weights(i64 heads) {
    const i64 padded = kAttended * heads + kLanesOf<T>;
    weight = workspace<T>(5, 2 * padded + heads);
    is_positive = weight + padded;
    base = is_positive + padded;
  }

  // weight = leaky(own + other_e)
  template <class I>
  void score(const I* indices, i64 count, const T* own, mat<const T> other, i64 heads,
             T slope) const {
    by_heads(heads, [&](auto part, i64 h) {
      using V = decltype(part);
      const V mine = loaded<V>(own + h), one = V{} + T(1), zero = V{};
      for (i64 e = 0; e < count; ++e) {
        const V z = mine + loaded<V>(other.data + i64(indices[e]) * other.ld + h);
        const V steep = slope * z;
        stored(weight + e * heads + h, V(z > zero ? z : steep));
        stored(is_positive + e * heads + h, V(z > zero ? one : zero));
      }
    });
  }
  // base = the largest of base and the scores of each head
  void raise(i64 count, i64 heads) const {
    by_heads(heads, [&](auto part, i64 h) {
      using V = decltype(part);
      V largest = loaded<V>(base + h);
      for (i64 e = 0; e < count; ++e) {
        const V s = loaded<V>(weight + e * heads + h);
        largest = s > largest ? s : largest;
      }
      stored(base + h, largest);
    });
  }
  // weight = exp(weight - base_at(e))
  template <class Base>
  void power(i64 count, i64 heads, const Base& base_at) const {
    constexpr int L = kLanesOf<T>;
    by_heads(heads, [&](auto part, i64 h) {
      using V = decltype(part);
      for (i64 e = 0; e < count; ++e)
        stored(weight + e * heads + h,
               V(loaded<V>(weight + e * heads + h) - loaded<V>(base_at(e) + h)));
    });
    for (i64 at = 0; at < count * heads; at += L)
      save<T>(weight + at, exp_of<T, L>(load<T>(weight + at)));
  }
  // Adds up the weights of each head, and the weights of positive scores.
  void add_to(i64 count, i64 heads, const PieceSum<T>& totals) const {
    totals.before(count);
    T *const all = totals.piece(), *const of_positive = all + heads;
    by_heads(heads, [&](auto part, i64 h) {
      using V = decltype(part);
      const V zero = V{};
      V total = loaded<V>(all + h), counted = loaded<V>(of_positive + h);
      for (i64 e = 0; e < count; ++e) {
        const V w = loaded<V>(weight + e * heads + h);
        total += w;
        counted += loaded<V>(is_positive + e * heads + h) > zero ? w : zero;
      }
      stored(all + h, total);
      stored(of_positive + h, counted);
    });
  }

private:
  template <class V>
  static V loaded(const T* from) {
    V v;
    std::memcpy(&v, from, sizeof v);
    return v;
  }
  template <class V>
  static void stored(T* to, const V& v) {
    std::memcpy(to, &v, sizeof v);
  }
  // Calls body(V(), h) for adjacent heads from h on, one for each lane of V.
  template <class Body>
  static void by_heads(i64 heads, Body&& body) {
    i64 h = 0;
    for (; h + 8 <= heads; h += 8)
      body(wide<T, 8>{}, h);
    for (; h + 4 <= heads; h += 4)
      body(wide<T, 4>{}, h);
    for (; h < heads; ++h)
      body(T(), h);
  }
};

// Calls body(std::integral_constant<int, P>(), c) for adjacent columns from c on, P at a time.
template <int P = 64, class Body>
void by_columns(i64 first, i64 last, const Body& body) {
  for (; first + P <= last; first += P)
    body(std::integral_constant<int, P>(), first);
  if constexpr (P > 1)
    by_columns<P / 2>(first, last, body);
}

// The sums of the P columns of a head over some entries, in registers: the sum of all entries, and
// a second sum with other factors.
template <int P, class T>
struct head_sums {
  static constexpr int L = P < kLanesOf<T> ? P : kLanesOf<T>, N = P / L;
  using Z = typename detail::integer_of<T>::type;
  wide<T, L> all[N] = {}, others[N] = {};

  // all += factor row, others += other row
  [[gnu::always_inline]] void add(const T* row, T factor, T other) {
    for (int v = 0; v < N; ++v) {
      const wide<T, L> x = load<T, L>(row + v * L);
      all[v] += factor * x;
      others[v] += other * x;
    }
  }
  // all += factor row
  [[gnu::always_inline]] void add(const T* row, T factor) {
    for (int v = 0; v < N; ++v)
      all[v] += factor * load<T, L>(row + v * L);
  }
  // all += factor row, and the same to others if `counts`, without a branch or 0 times infinity
  [[gnu::always_inline]] void add_if(const T* row, T factor, bool counts) {
    const wide<Z, L> mask = wide<Z, L>{} - Z(counts);
    for (int v = 0; v < N; ++v) {
      const wide<T, L> term = factor * load<T, L>(row + v * L);
      all[v] += term;
      wide<Z, L> bits;
      std::memcpy(&bits, &term, sizeof bits);
      bits &= mask;
      wide<T, L> kept;
      std::memcpy(&kept, &bits, sizeof kept);
      others[v] += kept;
    }
  }
  void add_to(T* sums, T* other_sums) const {
    for (int v = 0; v < N; ++v) {
      save<T, L>(sums + v * L, load<T, L>(sums + v * L) + all[v]);
      if (other_sums)
        save<T, L>(other_sums + v * L, load<T, L>(other_sums + v * L) + others[v]);
    }
  }
};

// The outputs of a row: the result and the inputs of its gradients; null pointers are not stored.
template <class T>
struct attended {
  T *sums, *positive, *log_totals, *shares;
};

template <class T, class I>
void attend_row(const I* indices, i64 count, const T* own, mat<const T> other, mat<const T> D,
                i64 heads, i64 p, T slope, const attended<T>& out) {
  constexpr T nothing = -std::numeric_limits<T>::infinity();
  const head_weights<T> made(heads);
  const PieceSum<T> totals = cleared_sum<T>(7, 2 * heads); // and the weights of positive scores
  const PieceSum<T> rows = cleared_sum<T>(8, (out.positive ? 2 : 1) * heads * p);
  T *const sums_of_rows = rows.piece(), *const of_positive_rows =
                                            out.positive ? sums_of_rows + heads * p : nullptr;
  std::fill(made.base, made.base + heads, nothing);
  for (i64 first = 0; first < count; first += kAttended) {
    const i64 here = std::min(kAttended, count - first);
    made.score(indices + first, here, own, other, heads, slope);
    made.raise(here, heads);
  }
  for (i64 h = 0; h < heads; ++h)
    made.base[h] = made.base[h] == nothing ? T(0) : made.base[h];
  for (i64 first = 0; first < count; first += kAttended) {
    const i64 here = std::min(kAttended, count - first);
    if (count > kAttended) // the scores of a short row are there
      made.score(indices + first, here, own, other, heads, slope);
    made.power(here, heads, [&](i64) { return made.base; });
    made.add_to(here, heads, totals);
    rows.before(here);
    for (i64 h = 0; h < heads; ++h)
      by_columns(h * p, (h + 1) * p, [&](auto columns, i64 c) {
        head_sums<columns(), T> sums;
        if (out.positive)
          for (i64 e = 0; e < here; ++e)
            sums.add_if(D.data + i64(indices[first + e]) * D.ld + c, made.weight[e * heads + h],
                        made.is_positive[e * heads + h] > T(0));
        else
          for (i64 e = 0; e < here; ++e)
            sums.add(D.data + i64(indices[first + e]) * D.ld + c, made.weight[e * heads + h]);
        sums.add_to(sums_of_rows + c, out.positive ? of_positive_rows + c : nullptr);
      });
  }
  totals.finish();
  rows.finish();
  const T *const total = totals.piece(), *const of_positive = total + heads;
  for (i64 h = 0; h < heads; ++h) {
    const T share = share_of_total(total[h]);
    for (i64 c = h * p; c < (h + 1) * p; ++c) {
      out.sums[c] = share * sums_of_rows[c];
      if (out.positive)
        out.positive[c] = share * of_positive_rows[c];
    }
    if (out.positive) {
      out.shares[h] = share * of_positive[h];
      out.log_totals[h] = log_of_total(made.base[h], total[h]);
    }
  }
}

// The gradients of column j of the pattern, which has entries in the rows `indices`.
template <class T, class I>
void attending_column(const I* indices, i64 count, const T* own, mat<const T> target,
                      mat<const T> G, mat<const T> log_totals, mat<const T> means, const T* D,
                      i64 heads, i64 p, T slope, T* of_source, T* of_D) {
  const head_weights<T> made(heads);
  // The gradient of D, the rows of G with the slopes of scores, and the means with these.
  const PieceSum<T> sums_of_rows = cleared_sum<T>(8, 2 * heads * p);
  const PieceSum<T> sums_of_means = cleared_sum<T>(7, heads);
  T *const weighted = sums_of_rows.piece(), *const steep = weighted + heads * p;
  T* const of_means = sums_of_means.piece();
  for (i64 first = 0; first < count; first += kAttended) {
    const i64 here = std::min(kAttended, count - first);
    const I* const rows = indices + first;
    made.score(rows, here, own, target, heads, slope);
    made.power(here, heads, [&](i64 e) { return log_totals.data + i64(rows[e]) * log_totals.ld; });
    sums_of_rows.before(here);
    sums_of_means.before(here);
    for (i64 e = 0; e < here; ++e)
      for (i64 h = 0; h < heads; ++h) {
        const T weight = made.weight[e * heads + h];
        T& steepness = made.is_positive[e * heads + h];
        steepness = steepness > T(0) ? weight : slope * weight;
        of_means[h] += steepness * means.data[i64(rows[e]) * means.ld + h];
      }
    for (i64 h = 0; h < heads; ++h)
      by_columns(h * p, (h + 1) * p, [&](auto columns, i64 c) {
        head_sums<columns(), T> sums;
        for (i64 e = 0; e < here; ++e)
          sums.add(G.data + i64(rows[e]) * G.ld + c, made.weight[e * heads + h],
                   made.is_positive[e * heads + h]);
        sums.add_to(weighted + c, steep + c);
      });
  }
  sums_of_rows.finish();
  sums_of_means.finish();
  std::copy_n(weighted, heads * p, of_D);
  for (i64 h = 0; h < heads; ++h) {
    of_source[h] = -of_means[h];
    for (i64 c = h * p; c < (h + 1) * p; ++c)
      of_source[h] += D[c] * steep[c];
  }
}

} // namespace wl
