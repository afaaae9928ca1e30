// The plane rotations of GMRES's least squares problem. See wollemi.core.operations.gmres.
#pragma once
#include "unified/map_simt.hpp"
#include "unified/status.hpp"

namespace wl {

template <class R>
WL_DEVICE R hypotenuse(R a, R b) {
  return magnitude(complex<R>(a, b));
}

// a / size, where size = |a| > 0.
template <class R>
WL_DEVICE R sign(R a, R) {
  return a < R(0) ? R(-1) : R(1);
}
template <class R>
WL_DEVICE complex<R> sign(complex<R> a, R size) {
  return a / size;
}

// (above, below) turned by a rotation of a real cosine.
template <class T>
WL_DEVICE void turn(T& above, T& below, real_t<T> cosine, T sine) {
  const T a = above, b = below;
  above = T(cosine) * a + sine * b;
  below = T(cosine) * b - conj(sine) * a;
}

// Applies the earlier rotations to a new column h. `given` holds h and the cosines and sines of the
// rotations; `turned` receives the results. Returns the diagonal element.
template <class T, class H, class C, class S, class U>
WL_DEVICE T turn_column(i64 j, const H& given, const C& cosines, const S& sines, const U& turned) {
  using R = real_t<T>;
  T above = given(0);
  const auto one = [&](i64 i, T next, R co, T si) {
    turn(above, next, co, si);
    turned(i) = above;
    above = next;
  };
  // Each rotation depends on the one before it, but its loads do not: they are issued a few
  // rotations ahead. `turned` may alias `given`.
  constexpr int ahead = 4;
  T nexts[ahead], sines_of[ahead];
  R cosines_of[ahead];
  const auto ask = [&](i64 i, int u) {
    nexts[u] = given(i + 1), sines_of[u] = sines(i), cosines_of[u] = cosines(i);
  };
  if (j >= ahead)
#pragma unroll
    for (int u = 0; u < ahead; ++u)
      ask(u, u);
  i64 first = 0;
  for (; first + ahead <= j; first += ahead)
#pragma unroll
    for (int u = 0; u < ahead; ++u) {
      const T next = nexts[u], si = sines_of[u];
      const R co = cosines_of[u];
      const i64 later = first + ahead + u;
      ask(later < j ? later : j - 1, u);
      one(first + u, next, co, si);
    }
  for (; first < j; ++first)
    one(first, given(first + 1), cosines(first), sines(first));
  return above;
}

// Computes and stores the rotation of (above, after) that makes `after` 0, applies it to g as well,
// and updates `diagonal` from `above`.
template <class T>
WL_DEVICE void close_column(i64 c, i64 j, T above, T& diagonal, real_t<T>* after,
                            const real_t<T>* before, mat<real_t<T>> cosine, mat<T> sine, mat<T> g,
                            i64* count, const status_of<T>& status) {
  using R = real_t<T>;
  const R below = after[c] <= epsilon<T> * before[c] ? R(0) : after[c];
  after[c] = below;
  R co = R(1);
  T si = T(0);
  const R size = magnitude(above);
  if (below != R(0)) {
    const R length = hypotenuse(size, below);
    co = size / length;
    si = size == R(0) ? T(1) : sign(above, size) * T(below / length);
  }
  cosine(j, c) = co;
  sine(j, c) = si;
  diagonal = T(co) * above + si * T(below);
  T here = g(j, c), next = g(j + 1, c);
  turn(here, next, co, si);
  g(j, c) = here;
  g(j + 1, c) = next;
  count[c] = j + 1;
  status.observe(c, magnitude(next));
}

// Applies the earlier rotations, then computes and applies the new one.
template <class T, class H, class C, class S, class U>
WL_DEVICE void rotate_column(i64 c, i64 j, const H& given, const C& cosines, const S& sines,
                             const U& turned, real_t<T>* after, const real_t<T>* before,
                             mat<real_t<T>> cosine, mat<T> sine, mat<T> g, i64* count,
                             const status_of<T>& status) {
  const T above = turn_column<T>(j, given, cosines, sines, turned);
  close_column<T>(c, j, above, turned(j), after, before, cosine, sine, g, count, status);
}

// Elements at a constant distance, as a function of their index.
template <class T>
struct strided {
  T* data;
  i64 distance;
  WL_DEVICE T& operator()(i64 i) const { return data[i * distance]; }
};

} // namespace wl
