// The loops of the instructions of a step's program: real ones, which complex programs share, and
// complex ones.
#pragma once

#include "omp/map.hpp"
#include "omp/step_program.hpp"

namespace wl {

// The elements of an operand: one for each element of the result, or a single one.
struct StepSource {
  const std::byte* data = nullptr;
  bool is_single = false;

  template <class V>
  const V* of() const {
    return reinterpret_cast<const V*>(data);
  }
};

namespace detail {

template <class O, class A, class B, class F>
void on_pairs(i64 n, O* to, const A* x, const B* y, F f) {
#pragma omp simd
  for (i64 e = 0; e < n; ++e)
    to[e] = f(x[e], y[e]);
}

template <class O, class A, class F>
void on_each(i64 n, O* to, const A* x, F f) {
#pragma omp simd
  for (i64 e = 0; e < n; ++e)
    to[e] = f(x[e]);
}

// Either operand may be a single value.
template <class V, class F>
void with_single(i64 n, V* to, StepSource a, StepSource b, F f) {
  if (a.is_single) {
    const V value = *a.of<V>();
    on_each(n, to, b.of<V>(), [=](V y) { return f(value, y); });
  } else if (b.is_single) {
    const V value = *b.of<V>();
    on_each(n, to, a.of<V>(), [=](V x) { return f(x, value); });
  } else {
    on_pairs(n, to, a.of<V>(), b.of<V>(), f);
  }
}

template <class V, class F>
void with_third(i64 n, V* to, const StepSource* parts, F f) {
  const V *const a = parts[0].of<V>(), *const b = parts[1].of<V>(), *const c = parts[2].of<V>();
  if (parts[0].is_single) {
    const V value = *a;
    on_pairs(n, to, b, c, [=](V y, V z) { return f(value, y, z); });
    return;
  }
#pragma omp simd
  for (i64 e = 0; e < n; ++e)
    to[e] = f(a[e], b[e], c[e]);
}

template <class R, class V>
void choose(i64 n, V* to, const StepSource* parts) {
  const R* const condition = parts[0].of<R>();
  const V *const a = parts[1].of<V>(), *const b = parts[2].of<V>();
#pragma omp simd
  for (i64 e = 0; e < n; ++e)
    to[e] = condition[e] != R(0) ? a[e] : b[e];
}

// Arithmetic and equality, which real and complex numbers have in common. Returns false for
// another instruction.
template <class V>
bool run_arithmetic(StepCode code, i64 n, void* result, const StepSource* parts) {
  using R = real_t<V>;
  V* const to = static_cast<V*>(result);
  const StepSource a = parts[0], b = parts[1];
  switch (code) {
  case StepCode::add:
    with_single(n, to, a, b, [](V x, V y) { return x + y; });
    return true;
  case StepCode::sub:
    with_single(n, to, a, b, [](V x, V y) { return x - y; });
    return true;
  case StepCode::mul:
    with_single(n, to, a, b, [](V x, V y) { return x * y; });
    return true;
  case StepCode::div:
    with_single(n, to, a, b, [](V x, V y) { return x / y; });
    return true;
  case StepCode::add_product:
    with_third(n, to, parts, [](V x, V y, V z) { return z + x * y; });
    return true;
  case StepCode::sub_product:
    with_third(n, to, parts, [](V x, V y, V z) { return z - x * y; });
    return true;
  case StepCode::eq:
    on_pairs(n, static_cast<R*>(result), a.of<V>(), b.of<V>(),
             [](V x, V y) { return x == y ? R(1) : R(0); });
    return true;
  case StepCode::ne:
    on_pairs(n, static_cast<R*>(result), a.of<V>(), b.of<V>(),
             [](V x, V y) { return x != y ? R(1) : R(0); });
    return true;
  case StepCode::where:
    choose<R>(n, to, parts);
    return true;
  case StepCode::neg:
    on_each(n, to, a.of<V>(), [](V x) { return -x; });
    return true;
  case StepCode::copy:
    if (a.is_single)
      std::fill_n(to, n, *a.of<V>());
    else
      on_each(n, to, a.of<V>(), [](V x) { return x; });
    return true;
  case StepCode::magnitude:
    on_each(n, static_cast<R*>(result), a.of<V>(), [](V x) { return magnitude(x); });
    return true;
  case StepCode::finite:
    on_each(n, static_cast<R*>(result), a.of<V>(), [](V x) { return finite(x) ? R(1) : R(0); });
    return true;
  case StepCode::square:
    on_each(n, static_cast<R*>(result), a.of<V>(), [](V x) { return square(x); });
    return true;
  default:
    return false;
  }
}

template <class R>
void run_real(StepCode code, i64 n, void* result, const StepSource* parts) {
  if (run_arithmetic<R>(code, n, result, parts))
    return;
  R* const to = static_cast<R*>(result);
  const R *const a = parts[0].of<R>(), *const b = parts[1].of<R>();
  const auto compare = [=](auto f) {
    on_pairs(n, to, a, b, [=](R x, R y) { return f(x, y) ? R(1) : R(0); });
  };
  switch (code) {
  case StepCode::lt:
    return compare([](R x, R y) { return x < y; });
  case StepCode::le:
    return compare([](R x, R y) { return x <= y; });
  case StepCode::gt:
    return compare([](R x, R y) { return x > y; });
  case StepCode::ge:
    return compare([](R x, R y) { return x >= y; });
  case StepCode::both:
    return on_pairs(n, to, a, b, [](R x, R y) { return x * y; });
  case StepCode::either:
    return on_pairs(n, to, a, b, [](R x, R y) { return x > y ? x : y; });
  case StepCode::opposite:
    return on_each(n, to, a, [](R x) { return R(1) - x; });
  case StepCode::square_root:
    return on_each(n, to, a, [](R x) { return square_root(x); });
  default: // cast to a complex number
    return on_each(n, static_cast<complex<R>*>(result), a, [](R x) { return complex<R>(x); });
  }
}

template <class R>
void run_complex(StepCode code, i64 n, void* result, const StepSource* parts) {
  using V = complex<R>;
  if (run_arithmetic<V>(code, n, result, parts))
    return;
  const V* const a = parts[0].of<V>();
  if (code == StepCode::conj)
    on_each(n, static_cast<V*>(result), a, [](V x) { return conj(x); });
  else
    on_each(n, static_cast<R*>(result), a, [](V x) { return real(x); });
}

// Adds terms up in `period` sums at `kept`: element e goes to sum e % period.
template <class S, class F>
void add_up(S* kept, i64 period, i64 n, F term) {
  if (period != kLanes) {
    for (i64 e = 0; e < n; e += period) {
      const i64 count = std::min(period, n - e);
#pragma omp simd
      for (i64 lane = 0; lane < count; ++lane)
        kept[lane] += term(e + lane);
    }
    return;
  }
  S part[kLanes];
  std::copy_n(kept, kLanes, part);
  i64 e = 0;
  for (; e + kLanes <= n; e += kLanes) {
#pragma omp simd
    for (int lane = 0; lane < kLanes; ++lane)
      part[lane] += term(e + lane);
  }
  const int rest = static_cast<int>(n - e);
#pragma omp simd
  for (int lane = 0; lane < rest; ++lane)
    part[lane] += term(e + lane);
  std::copy_n(part, kLanes, kept);
}

template <class V>
void run_sum(StepCode code, void* kept, i64 period, i64 n, const StepSource* parts) {
  using R = real_t<V>;
  const V *const a = parts[0].of<V>(), *const b = parts[1].of<V>();
  if (code == StepCode::sum_of_products)
    add_up(static_cast<V*>(kept), period, n, [=](i64 e) { return conj(a[e]) * b[e]; });
  else if (code == StepCode::sum_of_squares)
    add_up(static_cast<R*>(kept), period, n, [=](i64 e) { return square(a[e]); });
  else
    add_up(static_cast<V*>(kept), period, n, [=](i64 e) { return a[e]; });
}

template <class V>
void run_with_squares(StepCode code, i64 n, void* result, void* kept, i64 period,
                      const StepSource* parts) {
  V* const to = static_cast<V*>(result);
  const V *const a = parts[0].of<V>(), *const b = parts[1].of<V>(), *const c = parts[2].of<V>();
  const auto add = [=](auto factor, auto sign) {
    add_up(static_cast<real_t<V>*>(kept), period, n, [=](i64 e) {
      const V product = factor(e) * b[e];
      const V value = sign(c[e], product);
      to[e] = value;
      return square(value);
    });
  };
  const auto either_sign = [=](auto factor) {
    if (code == StepCode::add_product)
      add(factor, [](V x, V y) { return x + y; });
    else
      add(factor, [](V x, V y) { return x - y; });
  };
  if (parts[0].is_single)
    either_sign([value = *a](i64) { return value; });
  else
    either_sign([=](i64 e) { return a[e]; });
}

} // namespace detail

// Runs one operator for n elements.
template <class R>
void run_operator(const StepInstruction& one, i64 n, void* to, const StepSource* parts) {
  if (one.is_complex)
    detail::run_complex<R>(one.code, n, to, parts);
  else
    detail::run_real<R>(one.code, n, to, parts);
}

// Runs c + a b or c - a b for n elements, and adds the squares of the results up.
template <class R>
void run_with_squares(const StepInstruction& one, i64 n, void* to, void* kept, i64 period,
                      const StepSource* parts) {
  if (one.is_complex)
    detail::run_with_squares<complex<R>>(one.code, n, to, kept, period, parts);
  else
    detail::run_with_squares<R>(one.code, n, to, kept, period, parts);
}

// Adds n elements to the sums of one instruction.
template <class R>
void run_sum(const StepInstruction& one, i64 n, void* kept, i64 period, const StepSource* parts) {
  if (one.code == StepCode::largest)
    detail::add_up(static_cast<maximum<R>*>(kept), period, n,
                   [=, x = parts[0].of<R>()](i64 e) { return maximum<R>{x[e]}; });
  else if (one.is_complex)
    detail::run_sum<complex<R>>(one.code, kept, period, n, parts);
  else
    detail::run_sum<R>(one.code, kept, period, n, parts);
}

} // namespace wl
