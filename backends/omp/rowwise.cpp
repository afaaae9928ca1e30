// The entries of csr.softmax, csr.spmm_max and their gradients.
#include "omp/rowwise.hpp"

#include "omp/batched_operands.hpp"
#include "omp/entries.hpp"
#include "unified/long_sums.hpp"

namespace wl {

namespace {

// Calls body(block, row, begin, end) for all rows of all blocks, `columns` numbers of an entry
// each.
template <class I, class Plan, class Body>
void submit_rows(const Call& call, const PatternArgument<I>& A, const Plan& plan, i64 blocks,
                 i64 columns, Body body) {
  const PatternArrays<I> arrays = A;
  call.submit((A.nnz + A.m) * columns * blocks,
              [=](int threads) { for_whole_rows(*plan, arrays, blocks, columns, threads, body); });
}

struct softmax_entry {
  static constexpr const char* operation = "csr.softmax";
  static constexpr const char* symbol = "softmax";
  static constexpr const char* names[] = {"A", "S", "plan"};
  static Object run(const Call& call) {
    const BatchReader read(call);
    with_real_pattern(call, 1, [&](auto value, const auto& A) {
      Extent count;
      const auto samples = read.values<decltype(value)>(1, count, Extent{A.nnz});
      submit_rows(call, A, A.plan(call, 2), count, 1, [=](i64 b, i64, i64 begin, i64 end) {
        softmax_of_row(samples[b].data + begin, end - begin);
      });
    });
    return none_object();
  }
};

struct softmax_backward_entry {
  static constexpr const char* operation = "csr.softmax_backward";
  static constexpr const char* symbol = "softmax_backward";
  static constexpr const char* names[] = {"A", "P", "G", "plan"};
  static Object run(const Call& call) {
    const BatchReader read(call);
    with_real_pattern(call, 2, [&](auto value, const auto& A) {
      using S = decltype(value);
      Extent count;
      const Batch<const S> weights = read.values<const S>(1, count, Extent{A.nnz});
      const Batch<S> gradients = read.values<S>(2, count, Extent{A.nnz});
      submit_rows(call, A, A.plan(call, 3), count, 1, [=](i64 b, i64, i64 begin, i64 end) {
        softmax_gradient_of_row(weights[b].data + begin, gradients[b].data + begin, end - begin);
      });
    });
    return none_object();
  }
};

struct spmm_max_entry {
  static constexpr const char* operation = "csr.spmm_max";
  static constexpr const char* symbol = "spmm_max";
  static constexpr const char* names[] = {"A", "B", "C", "plan"};
  static Object run(const Call& call) {
    const BatchReader read(call);
    with_real_pattern(call, 1, [&](auto value, const auto& A) {
      using S = decltype(value);
      Extent count, m{A.m}, n{A.n}, k;
      const Batch<const S> B = read.blocks<const S>(1, count, n, k);
      const Batch<S> C = read.blocks<S>(2, count, m, k);
      const auto* const indices = A.indices;
      const i64 columns = k;
      submit_rows(call, A, A.plan(call, 3), count, k, [=](i64 b, i64 row, i64 begin, i64 end) {
        largest_of_rows(indices + begin, end - begin, B[b], columns, C[b].data + row * C[b].ld);
      });
    });
    return none_object();
  }
};

struct spmm_where_equal_entry {
  static constexpr const char* operation = "csr.spmm_where_equal";
  static constexpr const char* symbol = "spmm_where_equal";
  static constexpr const char* names[] = {"A", "X", "Y", "G", "Z", "plan"};
  static Object run(const Call& call) {
    const BatchReader read(call);
    with_real_pattern(call, 1, [&](auto value, const auto& A) {
      using S = decltype(value);
      Extent count, m{A.m}, n{A.n}, k;
      const Batch<const S> X = read.blocks<const S>(1, count, m, k);
      const Batch<const S> Y = read.blocks<const S>(2, count, n, k);
      const Batch<const S> G = read.blocks<const S>(3, count, n, k);
      const Batch<S> Z = read.blocks<S>(4, count, m, k);
      const auto* const indices = A.indices;
      const i64 columns = k;
      submit_rows(call, A, A.plan(call, 5), count, k, [=](i64 b, i64 row, i64 begin, i64 end) {
        sum_where_equal(indices + begin, end - begin, X[b].data + row * X[b].ld, Y[b], G[b],
                        columns, Z[b].data + row * Z[b].ld);
      });
    });
    return none_object();
  }
};

// Calls body(block, row, begin, end) for all rows of a product of stored types.
template <class Product, class I, class Body>
void for_its_rows(const Product& p, const PatternArrays<I>& A, int threads, Body&& body) {
  for_whole_rows(*p.plan, A, p.blocks, 1, threads, body);
}

} // namespace

void compute(const StoredSoftmax& p, int threads) {
  with_stored(p.type, p.A, [&](auto value, const auto& A) {
    using S = decltype(value);
    const Batch<const S> from = p.S.of<const S>();
    const Batch<S> to = p.P.of<S>();
    for_its_rows(p, A, threads, [&](i64 b, i64, i64 begin, i64 end) {
      std::copy(from[b].data + begin, from[b].data + end, to[b].data + begin);
      softmax_of_row(to[b].data + begin, end - begin);
    });
  });
}

void compute(const StoredRowSum& p, int threads) {
  with_stored(p.type, p.A, [&](auto value, const auto& A) {
    using S = decltype(value);
    const Batch<const S> from = p.X.of<const S>();
    const Batch<S> to = p.y.of<S>();
    for_its_rows(p, A, threads, [&](i64 b, i64 row, i64 begin, i64 end) {
      narrow(sum_of_row(from[b].data + begin, end - begin), to[b].data[row]);
    });
  });
}

void compute(const StoredContraction& p, int threads) {
  with_stored(p.type, p.A, [&](auto value, auto A) {
    using S = decltype(value);
    using T = computed_t<S>;
    const Batch<const S> X = p.X.of<const S>(), Z = p.Z.of<const S>();
    const Batch<S> to = p.y.of<S>();
    const auto* const first = static_cast<const typename decltype(A)::Index*>(p.first);
    const auto* const second = A.indices;
    for_its_rows(p, A, threads, [&](i64 b, i64 row, i64 begin, i64 end) {
      const S *const x = X[b].data, *const z = Z[b].data;
      const auto sum_of = [&](i64 from, i64 beyond) {
        T found(0);
        for (i64 e = begin + from; e < begin + beyond; ++e)
          found += T(widen(x[first[e]])) * T(widen(z[second[e]]));
        return found;
      };
      narrow(sum_of_terms<T>(end - begin, 1, sum_of), to[b].data[row]);
    });
  });
}

void compute(const StoredSpread& p, int threads) {
  with_stored(p.type, p.A, [&](auto value, const auto& A) {
    using S = decltype(value);
    const Batch<const S> from = p.y.of<const S>();
    const Batch<S> to = p.X.of<S>();
    for_its_rows(p, A, threads, [&](i64 b, i64 row, i64 begin, i64 end) {
      std::fill(to[b].data + begin, to[b].data + end, from[b].data[row]);
    });
  });
}

void add_rowwise_entries(PyObject* module) {
  add_entries<softmax_entry, softmax_backward_entry, spmm_max_entry, spmm_where_equal_entry>(
      module);
}

} // namespace wl
