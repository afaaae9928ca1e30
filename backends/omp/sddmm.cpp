// The entry of csr.sddmm.
#include "omp/batched_operands.hpp"
#include "omp/entries.hpp"
#include "omp/sddmm_column.hpp"

namespace wl {

namespace {

// Samples of every block, with all that they need.
template <class S, class I>
struct SddmmWork {
  using T = computed_t<S>;
  PatternArrays<I> A;
  i64 blocks, inner;
  Batch<const S> values, C, B;
  Batch<S> out;
  T alpha, beta;
  const PatternPlan* plan;

  void operator()(int threads) const {
    const int used = threads_for(A.nnz, inner, threads);
    for (i64 i = 0; i < blocks; ++i) {
      const S* const given = values.data ? values[i].data : nullptr;
      const Sddmm<S, I> o{A.m,  A.n,  inner,       A.indptr, A.indices, given,
                          C[i], B[i], out[i].data, alpha,    beta,      plan};
      if (inner == 1)
        sddmm_of_one_column(o, used);
      else
        sddmm(o, used);
    }
  }
};

struct sddmm_entry {
  static constexpr const char* operation = "csr.sddmm";
  static constexpr const char* symbol = "sddmm";
  static constexpr const char* names[] = {"A", "values", "C", "B", "S", "alpha", "beta", "plan"};
  static Object run(const Call& call) {
    const BatchReader read(call);
    with_real_pattern(call, 2, [&](auto value, auto A) {
      using S = decltype(value);
      using T = computed_t<S>;
      const auto plan = A.plan(call, 7);
      Extent count, m{A.m}, n{A.n}, k;
      const Batch<const S> C = read.blocks<const S>(2, count, m, k);
      const Batch<const S> B = read.blocks<const S>(3, count, n, k);
      const Batch<S> out = read.values<S>(4, count, Extent{A.nnz});
      const Batch<const S> values = read.optional_values<const S>(1, count, A.nnz);
      const T alpha = call.scalar<T>(5), beta = call.scalar<T>(6);
      const SddmmWork<S, typename decltype(A)::Index> work{A, count, k,     values, C,
                                                           B, out,   alpha, beta,   plan.get()};
      call.submit(A.nnz * (k + 1) * count, [work, plan](int threads) { work(threads); });
    });
    return none_object();
  }
};

} // namespace

void compute(const StoredSddmm& p, int threads) {
  with_stored(p.type, p.A, [&](auto value, auto A) {
    using S = decltype(value);
    const SddmmWork<S, typename decltype(A)::Index> work{
        A,           p.blocks, p.columns, {nullptr, 0, 0}, p.C.of<const S>(), p.B.of<const S>(),
        p.S.of<S>(), 1,        0,         p.plan};
    work(threads);
  });
}

void add_sddmm_entries(PyObject* module) { add_entries<sddmm_entry>(module); }

} // namespace wl
