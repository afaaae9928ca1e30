// Attention with scores that are sums of two numbers, leaky(own + other), row by row for all heads.
// See wollemi.core.operations.attention. Threads have whole rows.
#pragma once

#include <cmath>
#include <type_traits>

#include "omp/fusedmm.hpp"

namespace wl {

// Entries of a row with weights that are computed before their rows are added up.
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
  void add_to(i64 count, i64 heads, T* totals, T* of_positive) const {
    by_heads(heads, [&](auto part, i64 h) {
      using V = decltype(part);
      const V zero = V{};
      V total = loaded<V>(totals + h), counted = loaded<V>(of_positive + h);
      for (i64 e = 0; e < count; ++e) {
        const V w = loaded<V>(weight + e * heads + h);
        total += w;
        counted += loaded<V>(is_positive + e * heads + h) > zero ? w : zero;
      }
      stored(totals + h, total);
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

// The sums of the P columns of a head over some entries, in registers: of all of them, and with
// other factors.
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
  T* const totals = workspace<T>(7, 2 * heads);
  T* const of_positive = totals + heads;
  std::fill(made.base, made.base + heads, nothing);
  std::fill(totals, totals + 2 * heads, T(0));
  std::fill(out.sums, out.sums + heads * p, T(0));
  if (out.positive)
    std::fill(out.positive, out.positive + heads * p, T(0));
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
    made.add_to(here, heads, totals, of_positive);
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
        sums.add_to(out.sums + c, out.positive ? out.positive + c : nullptr);
      });
  }
  for (i64 h = 0; h < heads; ++h) {
    const T share = share_of_total(totals[h]);
    for (i64 c = h * p; c < (h + 1) * p; ++c) {
      out.sums[c] *= share;
      if (out.positive)
        out.positive[c] *= share;
    }
    if (out.positive) {
      out.shares[h] = share * of_positive[h];
      out.log_totals[h] = log_of_total(made.base[h], totals[h]);
    }
  }
}

// The gradients that belong to a column j of the pattern, with entries in the rows `indices`.
template <class T, class I>
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
    made.score(rows, here, own, target, heads, slope);
    made.power(here, heads, [&](i64 e) { return log_totals.data + i64(rows[e]) * log_totals.ld; });
    for (i64 e = 0; e < here; ++e)
      for (i64 h = 0; h < heads; ++h) {
        const T weight = made.weight[e * heads + h];
        T& steepness = made.is_positive[e * heads + h];
        steepness = steepness > T(0) ? weight : slope * weight;
        of_source[h] -= steepness * means.data[i64(rows[e]) * means.ld + h];
      }
    for (i64 h = 0; h < heads; ++h)
      by_columns(h * p, (h + 1) * p, [&](auto columns, i64 c) {
        head_sums<columns(), T> sums;
        for (i64 e = 0; e < here; ++e)
          sums.add(G.data + i64(rows[e]) * G.ld + c, made.weight[e * heads + h],
                   made.is_positive[e * heads + h]);
        sums.add_to(of_D + c, steep + c);
      });
  }
  for (i64 h = 0; h < heads; ++h)
    for (i64 c = h * p; c < (h + 1) * p; ++c)
      of_source[h] += D[c] * steep[c];
}

} // namespace wl
