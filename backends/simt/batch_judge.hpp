// Solutions of systems by factors, with refinement and a verdict. A block holds the factors of one
// matrix and solves all systems of this matrix, one after the other. SolveBatch in
// backends/omp/batch_direct.cpp decides in the same way.
#pragma once
#include "unified/band_lu.hpp"
#include "simt/lanes.hpp"
#include "simt/not_a_number.hpp"

namespace wl {

// Sums of squares of residuals are in double precision.
template <class T>
struct doubled {
  using type = double;
  static WL_DEVICE double up(T v) { return double(v); }
  static WL_DEVICE T down(double v) { return T(v); }
};
template <class R>
struct doubled<complex<R>> {
  using type = complex<double>;
  static WL_DEVICE complex<double> up(complex<R> v) { return {double(v.re), double(v.im)}; }
  static WL_DEVICE complex<R> down(complex<double> v) { return {R(v.re), R(v.im)}; }
};

// The least square that is added to a norm; smaller squares are replaced by it. So a norm is 0 only
// if all elements are 0. Norms of this size are below all limits of a verdict.
constexpr double LEAST_SQUARE = 1e-300;

// The square of an element of a norm.
template <class V>
WL_DEVICE double square_of_norm(V v) {
  const double found = square(v);
  return found < LEAST_SQUARE && !(v == V(0)) ? LEAST_SQUARE : found;
}

// The largest residual of a stable method, in units of rounding times the norm of |A| |x| + |b|.
constexpr double STABLE = 16;

// The arrays of verdicts; see core/batch/verdicts.py. `undecided` counts the systems without a
// verdict.
struct verdicts_of_systems {
  u8* codes;
  i64* iterations;
  double *norms, *thresholds;
  i32* undecided;

  WL_DEVICE void solved(i64 k, i64 applied, double norm, double threshold) const {
    codes[k] = 1;
    iterations[k] = applied;
    norms[k] = norm;
    thresholds[k] = threshold;
  }

  WL_DEVICE void leave(i64 k) const {
    codes[k] = 255;
    iterations[k] = 0;
    norms[k] = thresholds[k] = not_a_number();
    fetch_add(undecided, 1);
  }
};

// The systems of a batch and their verdicts; see FactoredSystems in core/batch/factors.py. The
// systems of matrix m are starts[m] to starts[m + 1], or `width` adjacent systems if `starts` is
// null. `apart` is the distance of the tolerances of two systems: 0 (one tolerance for all) or 1.
template <class T, class I>
struct factored_systems {
  i64 n, entries;
  const i64* starts;
  i64 width;
  const I *indptr, *indices;
  const T *values, *b;
  T* x;
  i64 started;
  const double *relative, *absolute;
  i64 apart;
  const double* limits;
  i64 refine;
  verdicts_of_systems verdicts;

  WL_DEVICE i64 first_of(i64 m) const { return starts ? starts[m] : m * width; }
};

// Shared memory for vectors of n elements.
template <class T>
struct judged_vectors {
  T *x, *better, *r, *found;
};

// The states of factors; wollemi.core.batch.factors has the same codes.
enum factors_state : u8 { FACTORS_MADE = 1, FACTORS_SINGULAR = 2 };

template <class T>
WL_DEVICE double norm_over_block(const item& it, i64 n, const T* v) {
  double sum = 0;
  for (i64 i = it.thread(); i < n; i += WL_BLOCK)
    sum += square_of_norm(doubled<T>::up(v[i]));
  return square_root(sum_of_block(it, sum));
}

// r = b - A x, and its norm; L lanes share a row. There is a barrier before other work-items read
// r.
template <int L, class T, class I>
WL_DEVICE double residual_over_block(const item& it, const factored_systems<T, I>& s, const T* a,
                                     const T* b, const T* x, T* r) {
  using D = doubled<T>;
  constexpr int together = WL_BLOCK / L;
  double squares = 0;
  for (i64 base = 0; base < s.n; base += together) {
    const i64 row = base + it.thread() / L;
    typename D::type sum{};
    if (row < s.n)
      for (I e = s.indptr[row] + it.thread() % L; e < s.indptr[row + 1]; e += L)
        sum += D::up(a[e]) * D::up(x[s.indices[e]]);
    sum = sum_of_lanes<L>(it, sum);
    if (row < s.n && it.thread() % L == 0) {
      const T value = D::down(D::up(b[row]) - sum);
      r[row] = value;
      squares += square_of_norm(D::up(value));
    }
  }
  return square_root(sum_of_block(it, squares));
}

// Solves system k, or leaves it undecided for a slower method. `own.apply(it, r, d, scratch)` makes
// d the solution of the factors for r, and ends with a barrier.
template <int L, class T, class I, class Own>
WL_DEVICE void solve_and_judge(const item& it, const factored_systems<T, I>& s, i64 m, i64 k,
                               const Own& own, judged_vectors<T> v) {
  using R = real_t<T>;
  const T* const a = s.values + m * s.entries;
  const T* const b = s.b + k * s.n;
  T* const solution = s.x + k * s.n;
  const R first = R(norm_over_block(it, s.n, b));
  if (first != R(0) && !(first >= R(s.limits[0]) && first <= R(s.limits[1]))) {
    if (it.thread() == 0)
      s.verdicts.leave(k);
    return;
  }
  for (i64 i = it.thread(); i < s.n; i += WL_BLOCK)
    v.x[i] = s.started ? solution[i] : T(0);
  it.barrier();
  R before = R(residual_over_block<L>(it, s, a, b, v.x, v.r));
  // the initial guess is so large that rounding loses all digits of b
  if (!(before <= first / epsilon<T>)) {
    for (i64 i = it.thread(); i < s.n; i += WL_BLOCK)
      v.x[i] = T(0);
    it.barrier();
    before = R(residual_over_block<L>(it, s, a, b, v.x, v.r));
  }
  const R enough = epsilon<T> * first; // a smaller residual is within the rounding error of b
  i64 applied = 0;
  bool falls = true;
  while (falls && applied <= s.refine) {
    it.barrier();
    own.apply(it, v.r, v.better, v.found);
    for (i64 i = it.thread(); i < s.n; i += WL_BLOCK)
      v.better[i] = v.x[i] + v.better[i];
    it.barrier();
    const R now = R(residual_over_block<L>(it, s, a, b, v.better, v.found));
    if (!(now <= before))
      break;
    falls = now < R(0.5) * before && now > enough;
    v = {v.better, v.x, v.found, v.r};
    before = now;
    ++applied;
  }
  i64 infinite = 0;
  for (i64 i = it.thread(); i < s.n; i += WL_BLOCK)
    infinite += finite(v.x[i]) ? 0 : 1;
  infinite = sum_of_block(it, infinite);
  const R by_length = R(s.relative[k * s.apart]) * first, at_least = R(s.absolute[k * s.apart]);
  const R threshold = by_length > at_least ? by_length : at_least;
  if (infinite != 0 || !(before <= threshold) || (before != R(0) && before < R(s.limits[2]))) {
    if (it.thread() == 0)
      s.verdicts.leave(k);
    return;
  }
  for (i64 i = it.thread(); i < s.n; i += WL_BLOCK)
    solution[i] = v.x[i];
  if (it.thread() == 0)
    s.verdicts.solved(k, applied, double(before), double(threshold));
}

// Solves all systems of matrix m, or leaves them undecided if there are no factors.
template <int L, class T, class I, class Own>
WL_DEVICE void solve_systems_of(const item& it, const factored_systems<T, I>& s, i64 m,
                                bool has_factors, const Own& own, judged_vectors<T> v) {
  for (i64 k = s.first_of(m); k < s.first_of(m + 1); ++k) {
    if (has_factors)
      solve_and_judge<L>(it, s, m, k, own, v);
    else if (it.thread() == 0)
      s.verdicts.leave(k);
    it.barrier();
  }
}

// The sign and the logarithm of a determinant, from the diagonal of U. `exchanges` is odd if the
// permutation of the rows is odd.
template <class T>
struct determinants {
  i64 asked;
  u8* states;
  T* signs;
  double* logarithms;
};

template <class T>
WL_DEVICE T unit_of(T v, double size) {
  if constexpr (same<T, real_t<T>>::value)
    return v < T(0) ? T(-1) : T(1);
  else
    return {real_t<T>(double(v.re) / size), real_t<T>(double(v.im) / size)};
}

// Writes the sign and the logarithm from one work-item; pivot(i) is element i of the diagonal.
template <class T, class Pivot>
WL_DEVICE void write_determinant(const determinants<T>& d, i64 m, i64 n, bool has_factors,
                                 i64 exchanges, const Pivot& pivot) {
  T sign(has_factors ? 1 : 0);
  double logarithm_of = 0;
  if (has_factors)
    for (i64 i = 0; i < n; ++i) {
      const T value = pivot(i);
      const double size = double(magnitude(doubled<T>::up(value)));
      logarithm_of += logarithm(size);
      sign = sign * unit_of(value, size);
    }
  d.states[m] = has_factors ? FACTORS_MADE : FACTORS_SINGULAR;
  d.signs[m] = exchanges % 2 != 0 ? -sign : sign;
  d.logarithms[m] = has_factors ? logarithm_of : logarithm(0.0);
}

// Writes the determinant of matrix m, if it is requested, and solves the systems of this matrix,
// where rows were not exchanged: `steps` holds the step in which each row was the pivot. `v` holds
// four vectors.
template <int L, class T, class I, class Own, class Pivot>
WL_DEVICE void finish_matrix(const item& it, const factored_systems<T, I>& s,
                             const determinants<T>& d, i64 m, bool has_factors, const i32* steps,
                             const Own& own, T* v, const Pivot& pivot) {
  if (d.asked) {
    i64 inversions = 0;
    for (i64 i = it.thread(); has_factors && i < s.n; i += WL_BLOCK)
      for (i64 j = i + 1; j < s.n; ++j)
        inversions += steps[j] < steps[i] ? 1 : 0;
    inversions = sum_of_block(it, inversions);
    if (it.thread() == 0)
      write_determinant(d, m, s.n, has_factors, inversions, pivot);
    it.barrier();
  }
  solve_systems_of<L>(it, s, m, has_factors, own,
                      judged_vectors<T>{v, v + s.n, v + 2 * s.n, v + 3 * s.n});
}

} // namespace wl
