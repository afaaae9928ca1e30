// Direct solves of the systems of a batch: each thread factorizes and solves its systems one after
// the other.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "unified/band_lu.hpp"
#include "omp/entries.hpp"
#include "omp/parallel.hpp"

namespace wl {

namespace {

// One thread.
struct OneThread {
  static constexpr i64 rank() { return 0; }
  static constexpr i64 size() { return 1; }
  static void barrier() {}

  template <class T>
  static i64 pivot_row(const lu_shape& s, const T* a, i64 k) {
    return wl::pivot_row(s, a, k);
  }

  template <class T>
  static void eliminate(const lu_shape& s, T* a, i64 k, T pivot) {
    const T* const row = a + s.at(k, 0);
    const i64 end = s.last_column(k) + 1;
    for (i64 i = k + 1; i <= s.last_row(k); ++i) {
      T* const target = a + s.at(i, 0);
      const T factor = target[k] / pivot;
      target[k] = factor;
      if (factor == T(0))
        continue;
#pragma omp simd
      for (i64 j = k + 1; j < end; ++j)
        target[j] -= factor * row[j];
    }
  }
};

// The states of factors; wollemi.core.batch.factors has the same.
enum factor_state : u8 { NONE = 0, FACTORIZED = 1, SINGULAR = 2 };

template <class R>
double modulus(R v) {
  return std::fabs(double(v));
}
template <class R>
double modulus(complex<R> v) {
  return std::hypot(double(v.re), double(v.im));
}

template <class T>
T unit_of(T v, double size) {
  if constexpr (std::is_same_v<T, real_t<T>>)
    return v < T(0) ? T(-1) : T(1);
  else
    return {static_cast<real_t<T>>(v.re / size), static_cast<real_t<T>>(v.im / size)};
}

// Factorizes the matrices of a batch.
template <class T>
struct FactorizeBatch {
  lu_shape shape;
  i64 count, entries, length; // matrices, entries of each, elements of the factors of each
  const i64* places;          // of each entry among the elements
  const T* values;
  T* factors;
  i32* pivots;
  u8* states;
  T* signs;
  double* logarithms;

  void operator()(int threads) const {
    std::atomic<i64> next{0};
    for_parts(threads, [&](int) {
      for (i64 k; (k = next.fetch_add(1, std::memory_order_relaxed)) < count && !interrupted();)
        factorize(k);
    });
  }

private:
  void factorize(i64 k) const {
    T* const a = factors + k * length;
    const T* const v = values + k * entries;
    std::fill_n(a, length, T(0));
    for (i64 e = 0; e < entries; ++e)
      a[places[e]] += v[e];
    i32* const exchanged = pivots + k * shape.n;
    const bool fits = factorize_band(OneThread(), shape, a, exchanged);
    states[k] = fits ? FACTORIZED : SINGULAR;
    signs[k] = T(0);
    logarithms[k] = -std::numeric_limits<double>::infinity();
    if (fits)
      determine(k, a, exchanged);
  }

  // The determinant of the matrix, from the diagonal of U and the exchanges.
  void determine(i64 k, const T* a, const i32* exchanged) const {
    T sign(1);
    double logarithm = 0;
    for (i64 i = 0; i < shape.n; ++i) {
      const T pivot = a[shape.at(i, i)];
      const double size = modulus(pivot);
      logarithm += std::log(size);
      sign = sign * unit_of(pivot, size);
      if (exchanged[i] != i)
        sign = -sign;
    }
    signs[k] = sign;
    logarithms[k] = logarithm;
  }
};

// Solves with factors, refines, and judges each system by its true residual.
template <class T, class I>
struct SolveBatch {
  using R = real_t<T>;
  // Sums of residuals are of double precision.
  using W = std::conditional_t<std::is_same_v<T, R>, double, complex<double>>;

  lu_shape shape;
  i64 count, entries, length, refine;
  const i64* order; // row i of the factors is row order[i] of the matrix
  const I *indptr, *indices;
  const T* values;
  const i64* matrix;
  const T* b;
  T* x;
  const double *relative, *absolute;
  const double* limits; // the least and the largest norm of b, the least of a residual
  const T* factors;
  const i32* pivots;
  const u8* states;
  u8* codes;
  i64* iterations;
  double *norms, *thresholds;

  void operator()(int threads) const {
    std::atomic<i64> next{0};
    for_parts(threads, [&](int) {
      Vectors vectors(static_cast<std::size_t>(shape.n));
      for (i64 k; (k = next.fetch_add(1, std::memory_order_relaxed)) < count && !interrupted();)
        codes[k] = solve(k, vectors) ? kConverged : kUndecided;
    });
  }

private:
  // The codes of wollemi.core.status.Stop.
  static constexpr u8 kConverged = 1, kUndecided = 255;
  static constexpr R kProgress = R(0.5);
  // Independent sums of a row, which hide the latency of additions.
  static constexpr int kSums = 4;

  struct Vectors {
    std::vector<T> x, better, r, found, solved;
    explicit Vectors(std::size_t n) : x(n), better(n), r(n), found(n), solved(n) {}
  };

  // The least square that is added to a norm; smaller squares are replaced by it. So a norm is 0
  // only if all elements are 0. Norms of this size are below all limits of a verdict.
  static constexpr double kLeastSquare = 1e-300;

  static R norm(const T* v, i64 n) {
    double sum = 0;
    for (i64 i = 0; i < n; ++i) {
      const double size = modulus(v[i]), square = size * size;
      sum += square < kLeastSquare && size != 0 ? kLeastSquare : square;
    }
    return static_cast<R>(std::sqrt(sum));
  }

  static W widened(T v) {
    if constexpr (std::is_same_v<T, R>)
      return double(v);
    else
      return {double(v.re), double(v.im)};
  }
  static T narrowed(W v) {
    if constexpr (std::is_same_v<T, R>)
      return static_cast<T>(v);
    else
      return {static_cast<R>(v.re), static_cast<R>(v.im)};
  }

  // r = b - A v; returns its norm.
  R residual(i64 k, const T* v, T* r) const {
    const T* const a = values + matrix[k] * entries;
    for (i64 i = 0; i < shape.n; ++i) {
      W sums[kSums] = {};
      I e = indptr[i];
      const I end = indptr[i + 1];
      for (; e + kSums <= end; e += kSums) {
#pragma GCC unroll 4
        for (int u = 0; u < kSums; ++u)
          sums[u] += widened(a[e + u]) * widened(v[indices[e + u]]);
      }
      for (; e < end; ++e)
        sums[0] += widened(a[e]) * widened(v[indices[e]]);
      r[i] = narrowed(widened(b[k * shape.n + i]) - ((sums[0] + sums[1]) + (sums[2] + sums[3])));
    }
    return norm(r, shape.n);
  }

  // better = x + the factors applied to r
  void correct(i64 k, Vectors& v) const {
    const i64 m = matrix[k];
    for (i64 i = 0; i < shape.n; ++i)
      v.solved[i] = v.r[order[i]];
    solve_band(shape, factors + m * length, pivots + m * shape.n, v.solved.data());
    for (i64 i = 0; i < shape.n; ++i)
      v.better[order[i]] = v.x[order[i]] + v.solved[i];
  }

  // Whether system k is solved. If it is not, the caller decides about it.
  bool solve(i64 k, Vectors& v) const {
    const i64 n = shape.n;
    if (states[matrix[k]] != FACTORIZED)
      return false;
    const R first = norm(b + k * n, n);
    if (first != R(0) && !(first >= R(limits[0]) && first <= R(limits[1])))
      return false;
    std::copy_n(x + k * n, n, v.x.data());
    const bool started = std::any_of(v.x.begin(), v.x.end(), [](T value) { return value != T(0); });
    R before = first;
    if (started)
      before = residual(k, v.x.data(), v.r.data());
    else
      // the residual of x = 0, unless the matrix contains NaN
      std::copy_n(b + k * n, n, v.r.data());
    // the initial guess is so large that rounding loses all digits of b
    if (!(before <= first / std::numeric_limits<R>::epsilon())) {
      std::fill(v.x.begin(), v.x.end(), T(0));
      before = residual(k, v.x.data(), v.r.data());
    }
    // A smaller residual is within the rounding error of b.
    const R enough = std::numeric_limits<R>::epsilon() * first;
    i64 applied = 0;
    while (applied <= refine) {
      correct(k, v);
      const R now = residual(k, v.better.data(), v.found.data());
      if (!(now <= before))
        break;
      const bool falls = now < kProgress * before && now > enough;
      std::swap(v.x, v.better);
      std::swap(v.r, v.found);
      before = now;
      ++applied;
      if (!falls)
        break;
    }
    if (applied == 0)
      before = residual(k, v.x.data(), v.r.data());
    const R threshold = std::max(R(relative[k]) * first, R(absolute[k]));
    bool finite = true;
    for (const T& value : v.x)
      finite = finite && std::isfinite(modulus(value));
    if (!finite || !(before <= threshold) || (before != R(0) && before < R(limits[2])))
      return false;
    std::copy_n(v.x.data(), n, x + k * n);
    iterations[k] = applied;
    norms[k] = double(before);
    thresholds[k] = double(threshold);
    return true;
  }
};

// The shape of the factors, from the first arguments of both entries.
lu_shape shape_of(const Call& call) {
  i64 given[5];
  for (int at = 0; at < 5; ++at)
    given[at] = call.integer(call.argument(at));
  return {given[0], given[1], given[2], given[3], given[4]};
}

struct batch_factorize_entry {
  static constexpr const char* operation = "batch.factorize";
  static constexpr const char* symbol = "batch_factorize";
  static constexpr const char* names[] = {"n",      "lower",  "upper",  "stride",
                                          "offset", "places", "values", "factors",
                                          "pivots", "states", "signs",  "logarithms"};
  static Object run(const Call& call) {
    with_value_type(call, "values", call.array(6), [&](auto value) {
      using T = decltype(value);
      const lu_shape shape = shape_of(call);
      Extent count, entries, length, rows{shape.n};
      FactorizeBatch<T> work{};
      work.shape = shape;
      work.places = call.contiguous<const i64>(5, entries);
      work.values = call.contiguous<const T>(6, count, entries);
      work.factors = call.contiguous<T>(7, count, length);
      work.pivots = call.contiguous<i32>(8, count, rows);
      work.states = call.contiguous<u8>(9, count);
      work.signs = call.contiguous<T>(10, count);
      work.logarithms = call.contiguous<double>(11, count);
      work.count = count, work.entries = entries, work.length = length;
      call.compute(work);
    });
    return none_object();
  }
};

struct batch_solve_entry {
  static constexpr const char* operation = "batch.solve";
  static constexpr const char* symbol = "batch_solve";
  static constexpr const char* names[] = {
      "n",       "lower",  "upper",  "stride", "offset",     "order",    "indptr",    "indices",
      "values",  "matrix", "b",      "x",      "relative",   "absolute", "limits",    "refine",
      "factors", "pivots", "states", "codes",  "iterations", "norms",    "thresholds"};
  static Object run(const Call& call) {
    with_value_type(call, "values", call.array(8), [&](auto value) {
      with_index_type(call, "indptr", call.array(6),
                      [&](auto index) { solve<decltype(value), decltype(index)>(call); });
    });
    return none_object();
  }

private:
  template <class T, class I>
  static void solve(const Call& call) {
    const lu_shape shape = shape_of(call);
    Extent rows{shape.n}, offsets{shape.n + 1}, entries, matrices, count, length, three{3};
    SolveBatch<T, I> work{};
    work.shape = shape;
    work.order = call.contiguous<const i64>(5, rows);
    work.indptr = call.contiguous<const I>(6, offsets);
    work.indices = call.contiguous<const I>(7, entries);
    work.values = call.contiguous<const T>(8, matrices, entries);
    work.matrix = call.contiguous<const i64>(9, count);
    work.b = call.contiguous<const T>(10, count, rows);
    work.x = call.contiguous<T>(11, count, rows);
    work.relative = call.contiguous<const double>(12, count);
    work.absolute = call.contiguous<const double>(13, count);
    work.limits = call.contiguous<const double>(14, three);
    work.refine = call.integer(call.argument(15));
    work.factors = call.contiguous<const T>(16, matrices, length);
    work.pivots = call.contiguous<const i32>(17, matrices, rows);
    work.states = call.contiguous<const u8>(18, matrices);
    work.codes = call.contiguous<u8>(19, count);
    work.iterations = call.contiguous<i64>(20, count);
    work.norms = call.contiguous<double>(21, count);
    work.thresholds = call.contiguous<double>(22, count);
    work.count = count, work.entries = entries, work.length = length;
    call.compute(work);
  }
};

} // namespace

void add_batch_direct_entries(PyObject* module) {
  add_entries<batch_factorize_entry, batch_solve_entry>(module);
}

} // namespace wl
