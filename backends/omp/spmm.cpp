// The entry of csr.spmm.
#include "omp/spmm.hpp"

#include "omp/batched_operands.hpp"
#include "omp/entries.hpp"

namespace wl {

namespace {

// A product of every block, with all that it needs.
template <class S, class I>
struct SpmmWork {
  using Factor = typename factor_of<S>::type;
  PatternArrays<I> A;
  i64 blocks, columns;
  Batch<const S> values, B;
  Batch<S> C;
  Factor alpha, beta;
  const PatternPlan* plan;
  bool by_reduction;

  void operator()(int threads) const {
    const int used = threads_for(A.nnz, columns, threads);
    for (i64 i = 0; i < blocks; ++i) {
      const Spmm<S, I> o{
          {A.n, columns, values[i].data, B[i], C[i], alpha, beta, plan}, A.indptr, A.indices};
      if constexpr (!Spmm<S, I>::is_complex) {
        if (by_reduction) {
          spmm_by_reduction(o, used);
          continue;
        }
      }
      spmm(o, used);
    }
  }
};

struct spmm_entry {
  static constexpr const char* operation = "csr.spmm";
  static constexpr const char* symbol = "spmm";
  static constexpr const char* names[] = {"A",     "values", "B",    "C",
                                          "alpha", "beta",   "plan", "lanes"};
  static Object run(const Call& call) {
    const BatchReader read(call);
    const bool by_reduction = call.text(7) == "entries";
    with_stored_type(call, "B", call.array(2), [&](auto value) {
      with_pattern_type(call, 0, [&](auto index) {
        using S = decltype(value);
        using I = decltype(index);
        using Factor = typename factor_of<S>::type;
        const PatternArgument<I> A(call, 0);
        const auto plan = A.plan(call, 6);
        Extent count, m{A.m}, n{A.n}, k;
        const Batch<const S> values = read.values<const S>(1, count, Extent{A.nnz});
        const Batch<const S> B = read.blocks<const S>(2, count, n, k);
        const Batch<S> C = read.blocks<S>(3, count, m, k);
        const Factor alpha = call.scalar<Factor>(4), beta = call.scalar<Factor>(5);
        const SpmmWork<S, I> work{A, count, k, values, B, C, alpha, beta, plan.get(), by_reduction};
        call.submit(A.nnz * k * count, [work, plan](int threads) { work(threads); });
      });
    });
    return none_object();
  }
};

} // namespace

void compute(const StoredSpmm& p, int threads) {
  with_stored(p.type, p.A, [&](auto value, auto A) {
    using S = decltype(value);
    const SpmmWork<S, typename decltype(A)::Index> work{
        A, p.blocks, p.columns, p.values.of<const S>(), p.B.of<const S>(), p.C.of<S>(),
        1, 0,        p.plan,    p.by_reduction};
    work(threads);
  });
}

void add_spmm_entries(PyObject* module) { add_entries<spmm_entry>(module); }

} // namespace wl
