// Products of several matrices of one pattern at once: their values are interleaved.
//
// Entry e of matrix w is at values[e * W + w], and row i of its vectors at x[i * W + w]. So one
// vector register holds the same number of W systems, and a product reads the pattern once.
#include "omp/entries.hpp"

namespace wl {

namespace {

// Independent sums of a row, which hide the latency of additions.
constexpr int kSums = 4;

// y_w = alpha A_w x_w + beta y_w for the W matrices.
template <int W, class T, class I>
struct InterleavedProduct {
  i64 rows;
  const I *indptr, *indices;
  const T *values, *x;
  T* y;
  T alpha, beta;

  void operator()(int) const {
    for (i64 i = 0; i < rows; ++i)
      multiply_row(i);
  }

private:
  void multiply_row(i64 i) const {
    T sums[kSums][W] = {};
    I e = indptr[i];
    const I end = indptr[i + 1];
    for (; e + kSums <= end; e += kSums) {
#pragma GCC unroll 4
      for (int s = 0; s < kSums; ++s)
        add(e + s, sums[s]);
    }
    for (; e < end; ++e)
      add(e, sums[0]);
    T* const target = y + i * W;
#pragma omp simd
    for (int w = 0; w < W; ++w) {
      const T sum = (sums[0][w] + sums[1][w]) + (sums[2][w] + sums[3][w]);
      target[w] = beta == T(0) ? alpha * sum : alpha * sum + beta * target[w];
    }
  }

  void add(I e, T* sum) const {
    const T* const v = values + i64(e) * W;
    const T* const from = x + i64(indices[e]) * W;
#pragma omp simd
    for (int w = 0; w < W; ++w)
      sum[w] += v[w] * from[w];
  }
};

// y = alpha d x + beta y, element by element.
template <class T>
struct InterleavedScaling {
  i64 count;
  const T *d, *x;
  T* y;
  T alpha, beta;

  void operator()(int) const {
    if (beta == T(0)) {
#pragma omp simd
      for (i64 i = 0; i < count; ++i)
        y[i] = alpha * (d[i] * x[i]);
    } else {
#pragma omp simd
      for (i64 i = 0; i < count; ++i)
        y[i] = alpha * (d[i] * x[i]) + beta * y[i];
    }
  }
};

struct interleaved_spmv_entry {
  static constexpr const char* operation = "interleaved.spmv";
  static constexpr const char* symbol = "interleaved_spmv";
  static constexpr const char* names[] = {"indptr", "indices", "values", "x", "y", "alpha", "beta"};
  static Object run(const Call& call) {
    with_value_type(call, "values", call.array(2), [&](auto value) {
      with_index_type(call, "indptr", call.array(0),
                      [&](auto index) { bind<decltype(value), decltype(index)>(call); });
    });
    return none_object();
  }

private:
  template <class T, class I>
  static void bind(const Call& call) {
    Extent offsets, entries, rows, columns, width;
    const I* const indptr = call.contiguous<const I>(0, offsets);
    const I* const indices = call.contiguous<const I>(1, entries);
    const T* const values = call.contiguous<const T>(2, entries, width);
    const T* const x = call.contiguous<const T>(3, columns, width);
    T* const y = call.contiguous<T>(4, rows, width);
    const T alpha = call.scalar<T>(5), beta = call.scalar<T>(6);
    const auto submit = [&](auto lanes) {
      constexpr int W = decltype(lanes)::value;
      call.submit(entries * width,
                  InterleavedProduct<W, T, I>{rows, indptr, indices, values, x, y, alpha, beta});
    };
    switch (width) {
    case 4:
      return submit(std::integral_constant<int, 4>());
    case 8:
      return submit(std::integral_constant<int, 8>());
    case 16:
      return submit(std::integral_constant<int, 16>());
    default:
      call.fail("values", "expected 4, 8 or 16 matrices");
    }
  }
};

struct interleaved_scale_entry {
  static constexpr const char* operation = "interleaved.scale";
  static constexpr const char* symbol = "interleaved_scale";
  static constexpr const char* names[] = {"d", "x", "y", "alpha", "beta"};
  static Object run(const Call& call) {
    with_value_type(call, "x", call.array(1), [&](auto value) {
      using T = decltype(value);
      Extent rows, columns;
      const T* const d = call.contiguous<const T>(0, rows, columns);
      const T* const x = call.contiguous<const T>(1, rows, columns);
      T* const y = call.contiguous<T>(2, rows, columns);
      call.submit(rows * columns, InterleavedScaling<T>{rows * columns, d, x, y, call.scalar<T>(3),
                                                        call.scalar<T>(4)});
    });
    return none_object();
  }
};

} // namespace

void add_interleaved_entries(PyObject* module) {
  add_entries<interleaved_spmv_entry, interleaved_scale_entry>(module);
}

} // namespace wl
