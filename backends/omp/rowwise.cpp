// The entries of csr.softmax, csr.spmm_max and their gradients.
#include "omp/rowwise.hpp"

#include "omp/batched_operands.hpp"
#include "unified/long_sums.hpp"

namespace wl {

namespace {

// Calls body(block, row) for all rows of all blocks, `columns` numbers of an entry each.
template <class I, class Plan, class Body>
void submit_rows(const Call& call, const PatternArgument<I>& A, const Plan& plan, i64 blocks,
                 i64 columns, Body body) {
  const i64 nnz = A.nnz;
  call.submit((nnz + A.m) * columns * blocks, [=](int threads) {
    for (i64 b = 0; b < blocks; ++b)
      plan->for_parts(threads_for(nnz, columns, threads), [&](const Part& part) {
        for (i64 row = part.first; row < part.last; ++row)
          body(b, row);
      });
  });
}

struct softmax_entry {
  static constexpr const char* operation = "csr.softmax";
  static constexpr const char* symbol = "softmax";
  static constexpr const char* names[] = {"A", "S", "plan"};
  static Object run(const Call& call) {
    const BatchReader read(call);
    with_real_type(call, "S", call.array(1), [&](auto value) {
      with_pattern_type(call, 0, [&](auto index) {
        using S = decltype(value);
        using I = decltype(index);
        const PatternArgument<I> A(call, 0);
        Extent count;
        const Batch<S> samples = read.values<S>(1, count, Extent{A.nnz});
        const I* const indptr = A.indptr;
        submit_rows(call, A, A.plan(call, 2), count, 1, [=](i64 b, i64 row) {
          const i64 begin = indptr[row];
          softmax_of_row(samples[b].data + begin, indptr[row + 1] - begin);
        });
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
    with_real_type(call, "G", call.array(2), [&](auto value) {
      with_pattern_type(call, 0, [&](auto index) {
        using S = decltype(value);
        using I = decltype(index);
        const PatternArgument<I> A(call, 0);
        Extent count;
        const Batch<const S> weights = read.values<const S>(1, count, Extent{A.nnz});
        const Batch<S> gradients = read.values<S>(2, count, Extent{A.nnz});
        const I* const indptr = A.indptr;
        submit_rows(call, A, A.plan(call, 3), count, 1, [=](i64 b, i64 row) {
          const i64 begin = indptr[row];
          softmax_gradient_of_row(weights[b].data + begin, gradients[b].data + begin,
                                  indptr[row + 1] - begin);
        });
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
    with_real_type(call, "B", call.array(1), [&](auto value) {
      with_pattern_type(call, 0, [&](auto index) {
        using S = decltype(value);
        using I = decltype(index);
        const PatternArgument<I> A(call, 0);
        Extent count, m{A.m}, n{A.n}, k;
        const Batch<const S> B = read.blocks<const S>(1, count, n, k);
        const Batch<S> C = read.blocks<S>(2, count, m, k);
        const I *const indptr = A.indptr, *const indices = A.indices;
        const i64 columns = k;
        submit_rows(call, A, A.plan(call, 3), count, columns, [=](i64 b, i64 row) {
          const i64 begin = indptr[row];
          largest_of_rows(indices + begin, indptr[row + 1] - begin, B[b], columns,
                          C[b].data + row * C[b].ld);
        });
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
    with_real_type(call, "X", call.array(1), [&](auto value) {
      with_pattern_type(call, 0, [&](auto index) {
        using S = decltype(value);
        using I = decltype(index);
        const PatternArgument<I> A(call, 0);
        Extent count, m{A.m}, n{A.n}, k;
        const Batch<const S> X = read.blocks<const S>(1, count, m, k);
        const Batch<const S> Y = read.blocks<const S>(2, count, n, k);
        const Batch<const S> G = read.blocks<const S>(3, count, n, k);
        const Batch<S> Z = read.blocks<S>(4, count, m, k);
        const I *const indptr = A.indptr, *const indices = A.indices;
        const i64 columns = k;
        submit_rows(call, A, A.plan(call, 5), count, columns, [=](i64 b, i64 row) {
          const i64 begin = indptr[row];
          sum_where_equal(indices + begin, indptr[row + 1] - begin, X[b].data + row * X[b].ld, Y[b],
                          G[b], columns, Z[b].data + row * Z[b].ld);
        });
      });
    });
    return none_object();
  }
};

} // namespace

void compute(const StoredSoftmax& p, int threads) {
  with_stored(p.type, p.A, [&](auto value, auto index) {
    using S = decltype(value);
    using I = decltype(index);
    const Batch<const S> from = p.S.of<const S>();
    const Batch<S> to = p.P.of<S>();
    const I* const indptr = static_cast<const I*>(p.A.indptr);
    for (i64 b = 0; b < p.blocks; ++b)
      for_whole_rows(*p.plan, indptr, threads_for(p.A.nnz, 1, threads),
                     [&](i64, i64 begin, i64 end) {
                       std::copy(from[b].data + begin, from[b].data + end, to[b].data + begin);
                       softmax_of_row(to[b].data + begin, end - begin);
                     });
  });
}

void compute(const StoredRowSum& p, int threads) {
  with_stored(p.type, p.A, [&](auto value, auto index) {
    using S = decltype(value);
    using I = decltype(index);
    const Batch<const S> from = p.X.of<const S>();
    const Batch<S> to = p.y.of<S>();
    const I* const indptr = static_cast<const I*>(p.A.indptr);
    for (i64 b = 0; b < p.blocks; ++b)
      for_whole_rows(*p.plan, indptr, threads_for(p.A.nnz, 1, threads),
                     [&](i64 row, i64 begin, i64 end) {
                       narrow(sum_of_row(from[b].data + begin, end - begin), to[b].data[row]);
                     });
  });
}

void compute(const StoredContraction& p, int threads) {
  with_stored(p.type, p.A, [&](auto value, auto index) {
    using S = decltype(value);
    using I = decltype(index);
    using T = computed_t<S>;
    const Batch<const S> X = p.X.of<const S>(), Z = p.Z.of<const S>();
    const Batch<S> to = p.y.of<S>();
    const I* const indptr = static_cast<const I*>(p.A.indptr);
    const I* const first = static_cast<const I*>(p.first);
    const I* const second = static_cast<const I*>(p.A.indices);
    for (i64 b = 0; b < p.blocks; ++b) {
      const S *const x = X[b].data, *const z = Z[b].data;
      for_whole_rows(*p.plan, indptr, threads_for(p.A.nnz, 1, threads),
                     [&](i64 row, i64 begin, i64 end) {
                       const auto sum_of = [&](i64 from, i64 beyond) {
                         T found(0);
                         for (i64 e = begin + from; e < begin + beyond; ++e)
                           found += T(widen(x[first[e]])) * T(widen(z[second[e]]));
                         return found;
                       };
                       narrow(sum_of_terms<T>(end - begin, 1, sum_of), to[b].data[row]);
                     });
    }
  });
}

void compute(const StoredSpread& p, int threads) {
  with_stored(p.type, p.A, [&](auto value, auto index) {
    using S = decltype(value);
    using I = decltype(index);
    const Batch<const S> from = p.y.of<const S>();
    const Batch<S> to = p.X.of<S>();
    const I* const indptr = static_cast<const I*>(p.A.indptr);
    for (i64 b = 0; b < p.blocks; ++b)
      for_whole_rows(*p.plan, indptr, threads_for(p.A.nnz, 1, threads),
                     [&](i64 row, i64 begin, i64 end) {
                       std::fill(to[b].data + begin, to[b].data + end, from[b].data[row]);
                     });
  });
}

void add_rowwise_entries(PyObject* module) {
  static PyMethodDef methods[] = {method<softmax_entry>(),
                                  method<softmax_backward_entry>(),
                                  method<spmm_max_entry>(),
                                  method<spmm_where_equal_entry>(),
                                  {nullptr, nullptr, 0, nullptr}};
  add_methods(module, methods);
}

} // namespace wl
