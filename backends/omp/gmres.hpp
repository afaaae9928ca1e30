// The steps of restarted GMRES. See wollemi.core.operations.gmres; the long loops are in
// krylov.hpp. A basis has values of S, which is T or a type of lower precision.
#pragma once

#include "omp/krylov.hpp"
#include "unified/status.hpp"
#include "unified/triangle.hpp"

namespace wl {

template <class T, class S>
struct gmres_start {
  mat<const T> r;
  mat<T> v;
  S* basis;
  mat<T> g;
  i64 *count, *step;
  status_of<T> status;
  i64 n, k, s;

  void operator()(int threads) const {
    normalize(r, status.norm, v, basis, n, k, threads,
              [this](i64 c) { return status.is_running(c) ? Scaling::DIVIDE : Scaling::ZERO; });
    for (i64 i = 0; i < s; ++i)
      for (i64 c = 0; c < k; ++c)
        g(i, c) = i == 0 ? T(status.norm[c]) : T(0);
    std::fill_n(count, k, 0);
    *step = 0;
  }
};

template <class T, class S>
struct gmres_project {
  const S* basis;
  mat<const T> w;
  mat<T> h;
  real_t<T>* before;
  const i64* step;
  status_of<T> status;
  i64 s, n, k;

  void operator()(int threads) const {
    project(
        Basis<S>{basis, *step + 1, n, k}, w, threads,
        [this](i64 c) { return status.is_running(c); },
        [this](i64 i, i64 c, T sum) { h(i, c) = sum; },
        [this](i64 c, real_t<T> norm) { before[c] = norm; });
  }
};

template <class T, class S>
struct gmres_subtract {
  const S* basis;
  mat<T> w;
  mat<const T> h;
  real_t<T>* after;
  const i64* step;
  status_of<T> status;
  i64 s, n, k;

  void operator()(int threads) const {
    const i64 vectors = *step + 1;
    combine(
        Basis<S>{basis, vectors, n, k}, w, false, threads,
        [=](i64 c) { return status.is_running(c) ? vectors : 0; },
        [this](i64 i, i64 c) { return -h(i, c); },
        [this](i64 c, real_t<T> norm) { after[c] = norm; });
  }
};

// A vector that keeps this share of its length is orthogonal except for one digit; a vector that
// lost more is projected again. Daniel, Gragg, Kaufman and Stewart (1976) do not fix the share.
// With 0.7071 half of all iterations on Laplacians project twice, and none of the real systems that
// were tested converges sooner.
template <class R>
constexpr R kKept = R(0.1);

template <class T>
bool lost_digits(const status_of<T>& status, i64 c, const real_t<T>* before,
                 const real_t<T>* after) {
  return status.is_running(c) && after[c] < kKept<real_t<T>> * before[c];
}

template <class T, class S>
struct gmres_reproject {
  const S* basis;
  mat<const T> w;
  mat<T> correction;
  const real_t<T>*before, *after;
  const i64* step;
  status_of<T> status;
  i64 s, n, k;

  void operator()(int threads) const {
    const auto lost = [this](i64 c) { return lost_digits(status, c, before, after); };
    bool any = false;
    for (i64 c = 0; c < k; ++c)
      any = any || lost(c);
    if (any)
      project(
          Basis<S>{basis, *step + 1, n, k}, w, threads, lost,
          [this](i64 i, i64 c, T sum) { correction(i, c) = sum; }, [](i64, real_t<T>) {});
  }
};

template <class T, class S>
struct gmres_resubtract {
  const S* basis;
  mat<T> w;
  mat<T> h;
  mat<const T> correction;
  const real_t<T>* before;
  real_t<T>* after;
  const i64* step;
  status_of<T> status;
  i64 s, n, k;

  void operator()(int threads) const {
    const i64 vectors = *step + 1;
    const auto lost = [this](i64 c) { return lost_digits(status, c, before, after); };
    bool any = false;
    for (i64 c = 0; c < k; ++c) {
      any = any || lost(c);
      for (i64 i = 0; lost(c) && i < vectors; ++i)
        h(i, c) += correction(i, c);
    }
    if (any)
      combine(
          Basis<S>{basis, vectors, n, k}, w, false, threads,
          [&](i64 c) { return lost(c) ? vectors : 0; },
          [this](i64 i, i64 c) { return -correction(i, c); },
          [this](i64 c, real_t<T> norm) { after[c] = norm; });
  }
};

// Rotates (a, b), b >= 0, so that the second component is 0; the cosine is real.
template <class T>
struct Rotation {
  real_t<T> cosine;
  T sine;

  static Rotation of(T a, real_t<T> b) {
    using R = real_t<T>;
    if (b == R(0))
      return {R(1), T(0)};
    const R size = magnitude(a);
    if (size == R(0))
      return {R(0), T(1)};
    const R length = magnitude(complex<R>{size, b});
    return {size / length, a / size * T(b / length)};
  }

  void apply(T& above, T& below) const {
    const T turned = T(cosine) * above + sine * below;
    below = T(cosine) * below - conj(sine) * above;
    above = turned;
  }
};

template <class T>
struct gmres_rotate {
  mat<const T> h;
  real_t<T>* after;
  const real_t<T>* before;
  T* hessenberg;
  mat<real_t<T>> cosine;
  mat<T> sine;
  mat<T> g;
  i64* count;
  const i64* step;
  status_of<T> status;
  i64 s, k;

  void operator()(int) const {
    for (i64 c = 0; c < k; ++c)
      if (status.is_running(c))
        column(c, *step);
  }

private:
  T& factor(i64 i, i64 j, i64 c) const { return hessenberg[(i * s + j) * k + c]; }

  void column(i64 c, i64 j) const {
    if (after[c] <= epsilon<T> * before[c])
      after[c] = real_t<T>(0);
    T above = h(0, c);
    for (i64 i = 0; i < j; ++i) {
      T below = h(i + 1, c);
      Rotation<T>{cosine(i, c), sine(i, c)}.apply(above, below);
      factor(i, j, c) = above;
      above = below;
    }
    const Rotation<T> rotation = Rotation<T>::of(above, after[c]);
    cosine(j, c) = rotation.cosine;
    sine(j, c) = rotation.sine;
    T below(after[c]);
    rotation.apply(above, below);
    factor(j, j, c) = above;
    rotation.apply(g(j, c), g(j + 1, c));
    count[c] = j + 1;
    status.observe(c, magnitude(g(j + 1, c)));
  }
};

template <class T, class S>
struct gmres_append {
  mat<const T> w;
  const real_t<T>* after;
  mat<T> v;
  S* basis;
  i64* step;
  status_of<T> status;
  i64 n, k, s;

  void operator()(int threads) const {
    normalize(w, after, v, basis + (*step + 1) * n * k, n, k, threads, [this](i64 c) {
      if (!status.is_running(c))
        return Scaling::SKIP;
      return after[c] == real_t<T>(0) ? Scaling::ZERO : Scaling::DIVIDE;
    });
    ++*step;
  }
};

template <class T>
struct gmres_augment {
  mat<T> z;
  const T* extra;
  mat<const real_t<T>> size;
  i64 first;
  T* basis;
  const i64* step;
  status_of<T> status;
  i64 n, k, l, s;

  void operator()(int threads) const {
    const int parts = n * k < kSerialElements ? 1 : threads;
    for_parts(parts, [&](int part) {
      for (i64 c = 0; c < k; ++c)
        if (status.is_running(c))
          column(*step, c, n * part / parts, n * (part + 1) / parts);
    });
  }

private:
  void column(i64 j, i64 c, i64 begin, i64 end) const {
    T* const to = basis + j * n * k + c;
    const bool given = j >= first && size(j - first, c) != real_t<T>(0);
    if (!given) {
      for (i64 i = begin; i < end; ++i)
        to[i * k] = z(i, c);
      return;
    }
    const T* const from = extra + (j - first) * n * k + c;
    const real_t<T> divisor = size(j - first, c);
    for (i64 i = begin; i < end; ++i)
      to[i * k] = z(i, c) = from[i * k] / divisor;
  }
};

template <class T>
struct gmres_solve {
  const T* hessenberg;
  mat<const T> g;
  const i64* count;
  mat<T> y;
  i64 s, k;

  void operator()(int) const {
    for (i64 c = 0; c < k; ++c)
      solve_leading<real_t<T>>(count[c], [&](i64 rows) {
        return solve_rows(hessenberg, s, k, c, g, count[c], rows, y);
      });
  }
};

template <class T, class S>
struct gmres_combine {
  const S* basis;
  mat<const T> y;
  const i64* count;
  mat<T> u;
  i64 s, n, k;

  void operator()(int threads) const {
    combine(
        Basis<S>{basis, s, n, k}, u, true, threads, [this](i64 c) { return count[c]; },
        [this](i64 i, i64 c) { return y(i, c); }, [](i64, real_t<T>) {});
  }
};

} // namespace wl
