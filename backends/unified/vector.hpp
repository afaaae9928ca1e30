// Element-wise operations on blocks of vectors, and sums over them. See
// wollemi.core.operations.vector.
#pragma once
#include "unified/step.hpp"

namespace wl {

template <class T>
struct vector_fill {
  mat<T> y;
  T value;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    return y(i, c) = value, sum{};
  }
};

template <class T>
struct vector_axpby {
  mat<const T> x;
  mat<T> y;
  T alpha, beta;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    store(y(i, c), x(i, c), alpha, beta);
    return {};
  }
};

template <class T>
struct vector_scale_rows {
  const T* d;
  mat<const T> x;
  mat<T> y;
  T alpha, beta;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    store(y(i, c), d[i] * x(i, c), alpha, beta);
    return {};
  }
};

template <class T>
struct vector_scaled_sum {
  const T* d;
  mat<const T> x;
  mat<T> y;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    y(i, c) = d[i] * (x(i, c) + y(i, c));
    return {};
  }
};

template <class T, class I>
struct vector_gather {
  const I* index;
  mat<const T> x;
  mat<T> y;
  T alpha, beta;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    store(y(i, c), x(index[i], c), alpha, beta);
    return {};
  }
};

template <class T>
struct vector_dot {
  mat<const T> x, y;
  T* value;
  WL_SUM(T);

  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    return conj(x(i, c)) * y(i, c);
  }
  WL_DEVICE void finish(i64 c, sum s) const { value[c] = s; }
};

template <class T>
struct vector_norm {
  mat<const T> x;
  real_t<T>* value;
  WL_SUM(real_t<T>);

  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const { return square(x(i, c)); }
  WL_DEVICE void finish(i64 c, sum s) const { value[c] = square_root(s); }
};

template <class T>
struct vector_largest {
  mat<const T> x;
  real_t<T>* value;
  WL_SUM(maximum<real_t<T>>);

  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const { return {magnitude(x(i, c))}; }
  WL_DEVICE void finish(i64 c, sum s) const { value[c] = s.value; }
};

// The code of a column with a norm out of range. The host inspects such a column before the solve
// begins; on other paths only the host sets this code.
constexpr stop_code OUT_OF_RANGE = stop_code(13);

template <class T>
struct vector_enter {
  using R = real_t<T>;
  mat<const T> r;
  mat<T> x;
  const R *relative, *absolute, *least, *most;
  R *first, *threshold;
  status_of<T> status;
  using sum = R;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const { return {status.is_running(c)}; }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    x(i, c) = T(0);
    return square(r(i, c));
  }
  WL_DEVICE void finish(i64 c, sum s) const {
    const R norm = square_root(s), scaled = relative[c] * norm;
    const R limit = scaled > absolute[c] ? scaled : absolute[c];
    first[c] = status.norm[c] = norm;
    threshold[c] = limit;
    if (!(norm >= least[c] && norm <= most[c]))
      status.halt(c, OUT_OF_RANGE);
    else if (norm <= limit)
      status.halt(c, CONVERGED);
  }
};

// A norm that is NaN is not below any other. The sum is always 0; because of it, `best` is written
// after all rows.
template <class T>
struct vector_keep {
  mat<const T> x;
  mat<T> kept;
  real_t<T>* best;
  status_of<T> status;
  using sum = real_t<T>;
  using column_state = taking_part;

  WL_DEVICE column_state column(i64 c) const {
    return {status.is_running(c) && status.norm[c] < best[c]};
  }
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    kept(i, c) = x(i, c);
    return sum(0);
  }
  WL_DEVICE void finish(i64 c, sum) const { best[c] = status.norm[c]; }
};

} // namespace wl
