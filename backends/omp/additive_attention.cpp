// The entries of csr.additive_attention and its gradients.
#include "omp/additive_attention.hpp"

#include "omp/batched_operands.hpp"
#include "omp/entries.hpp"

namespace wl {

namespace {

// Calls body(T(), I()) with the types of an array and of the pattern at 0.
template <class Body>
void with_types(const Call& call, int at, Body&& body) {
  const auto with_index = [&](auto value) {
    with_pattern_type(call, 0, [&](auto index) { body(value, index); });
  };
  const ArrayView a = call.array(at);
  if (a.type_number == detail::FLOAT32)
    with_index(float());
  else if (a.type_number == detail::FLOAT64)
    with_index(double());
  else
    call.fail_dtype(call.name(at), a, "float32 or float64");
}

struct additive_attention_entry {
  static constexpr const char* operation = "csr.additive_attention";
  static constexpr const char* symbol = "additive_attention";
  static constexpr const char* names[] = {"A",        "target",     "source", "D",     "E",
                                          "positive", "log_totals", "shares", "slope", "plan"};
  static Object run(const Call& call) {
    const BatchReader read(call);
    with_types(call, 3, [&](auto value, auto index) {
      using T = decltype(value);
      using I = decltype(index);
      const PatternArgument<I> A(call, 0);
      const auto plan = A.plan(call, 9);
      Extent count, m{A.m}, n{A.n}, h, w;
      const Batch<const T> target = read.blocks<const T>(1, count, m, h);
      const Batch<const T> source = read.blocks<const T>(2, count, n, h);
      const Batch<const T> D = read.blocks<const T>(3, count, n, w);
      const Batch<T> E = read.blocks<T>(4, count, m, w);
      const Batch<T> positive = read.optional_blocks<T>(5, count, m, w);
      const Batch<T> logs = read.optional_blocks<T>(6, count, m, h);
      const Batch<T> shares = read.optional_blocks<T>(7, count, m, h);
      const T slope = call.scalar<T>(8);
      const i64 blocks = count, heads = h, width = w, p = heads > 0 ? width / heads : 0;
      const I *const indptr = A.indptr, *const indices = A.indices;
      const i64 nnz = A.nnz;
      const auto row_of = [](const Batch<T>& of, i64 b, i64 row) {
        return of.data ? of[b].data + row * of.ld : nullptr;
      };
      call.submit((nnz + A.m) * width * blocks, [=](int threads) {
        for (i64 b = 0; b < blocks; ++b)
          plan->for_parts(threads_for(nnz, width, threads), [&](const Part& part) {
            for (i64 row = part.first; row < part.last; ++row) {
              const i64 begin = indptr[row];
              attend_row(indices + begin, indptr[row + 1] - begin, target[b].data + row * target.ld,
                         source[b], D[b], heads, p, slope,
                         attended<T>{row_of(E, b, row), row_of(positive, b, row),
                                     row_of(logs, b, row), row_of(shares, b, row)});
            }
          });
      });
    });
    return none_object();
  }
};

struct additive_attention_backward_entry {
  static constexpr const char* operation = "csr.additive_attention_backward";
  static constexpr const char* symbol = "additive_attention_backward";
  static constexpr const char* names[] = {"A",    "target",     "source",     "D",
                                          "G",    "log_totals", "means",      "of_source",
                                          "of_D", "slope",      "transposed", "plan"};
  static Object run(const Call& call) {
    const BatchReader read(call);
    with_types(call, 3, [&](auto value, auto index) {
      using T = decltype(value);
      using I = decltype(index);
      const PatternArgument<I> A(call, 0), transposed(call, 10);
      const auto plan = transposed.plan(call, 11);
      Extent count, m{A.m}, n{A.n}, h, w;
      const Batch<const T> target = read.blocks<const T>(1, count, m, h);
      const Batch<const T> source = read.blocks<const T>(2, count, n, h);
      const Batch<const T> D = read.blocks<const T>(3, count, n, w);
      const Batch<const T> G = read.blocks<const T>(4, count, m, w);
      const Batch<const T> logs = read.blocks<const T>(5, count, m, h);
      const Batch<const T> means = read.blocks<const T>(6, count, m, h);
      const Batch<T> of_source = read.blocks<T>(7, count, n, h);
      const Batch<T> of_D = read.blocks<T>(8, count, n, w);
      const T slope = call.scalar<T>(9);
      const i64 blocks = count, heads = h, width = w, p = heads > 0 ? width / heads : 0;
      const I *const indptr = transposed.indptr, *const indices = transposed.indices;
      const i64 nnz = A.nnz;
      call.submit((nnz + A.n) * 2 * width * blocks, [=](int threads) {
        for (i64 b = 0; b < blocks; ++b)
          plan->for_parts(threads_for(nnz, width, threads), [&](const Part& part) {
            for (i64 j = part.first; j < part.last; ++j) {
              const i64 begin = indptr[j];
              attending_column(indices + begin, indptr[j + 1] - begin,
                               source[b].data + j * source.ld, target[b], G[b], logs[b], means[b],
                               D[b].data + j * D.ld, heads, p, slope,
                               of_source[b].data + j * of_source.ld, of_D[b].data + j * of_D.ld);
            }
          });
      });
    });
    return none_object();
  }
};

} // namespace

void add_additive_attention_entries(PyObject* module) {
  add_entries<additive_attention_entry, additive_attention_backward_entry>(module);
}

} // namespace wl
