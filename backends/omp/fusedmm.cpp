// The entry of csr.fusedmm.
#include "omp/fusedmm.hpp"

#include "omp/batched_operands.hpp"
#include "omp/entries.hpp"

namespace wl {

WL_FUSEDMM_OF(, Listed, i32)
WL_FUSEDMM_OF(, Listed, i64)

namespace {

// A fused product of every block, with all that it needs.
template <class S, class I>
struct FusedmmWork {
  using T = computed_t<S>;
  PatternArrays<I> A;
  i64 blocks, inner, columns;
  Batch<const S> values, C, B, D;
  Batch<S> E;
  Batch<T> log_totals;
  T alpha;
  Edge edge;
  const PatternPlan* plan;

  void operator()(int threads) const {
    const bool same_operand =
        B.data == D.data && B.step == D.step && B.ld == D.ld && inner == columns;
    const int used = threads_for(A.nnz, inner + columns, threads);
    for (i64 i = 0; i < blocks; ++i) {
      const S* const given = values.data ? values[i].data : nullptr;
      T* const totals = log_totals.data ? log_totals[i].data : nullptr;
      const Fusedmm<S, Listed<I>> o{A.m,    A.n,   inner, columns,      {A.indptr, A.indices},
                                    given,  C[i],  B[i],  D[i],         E[i],
                                    totals, alpha, edge,  same_operand, plan};
      fusedmm(o, used);
    }
  }
};

struct fusedmm_entry {
  static constexpr const char* operation = "csr.fusedmm";
  static constexpr const char* symbol = "fusedmm";
  static constexpr const char* names[] = {"A", "values",     "C",     "B",    "D",
                                          "E", "log_totals", "alpha", "edge", "plan"};
  static Object run(const Call& call) {
    const BatchReader read(call);
    const Edge edge = edge_called("csr.fusedmm", call.text(8));
    with_real_pattern(call, 2, [&](auto value, auto A) {
      using S = decltype(value);
      using T = computed_t<S>;
      const auto plan = A.plan(call, 9);
      Extent count, m{A.m}, n{A.n}, k, p;
      const Batch<const S> C = read.blocks<const S>(2, count, m, k);
      const Batch<const S> B = read.blocks<const S>(3, count, n, k);
      const Batch<const S> D = read.blocks<const S>(4, count, n, p);
      const Batch<S> E = read.blocks<S>(5, count, m, p);
      const Batch<const S> values = read.optional_values<const S>(1, count, A.nnz);
      const Batch<T> log_totals = read.optional_values<T>(6, count, A.m);
      const T alpha = call.scalar<T>(7);
      const FusedmmWork<S, typename decltype(A)::Index> work{
          A, count, k, p, values, C, B, D, E, log_totals, alpha, edge, plan.get()};
      call.submit(A.nnz * (k + p) * count, [work, plan](int threads) { work(threads); });
    });
    return none_object();
  }
};

} // namespace

void compute(const StoredFusedmm& p, int threads) {
  const Edge edge = edge_called("csr.fusedmm", p.edge);
  with_stored(p.type, p.A, [&](auto value, auto A) {
    using S = decltype(value);
    const FusedmmWork<S, typename decltype(A)::Index> work{A,
                                                           p.blocks,
                                                           p.inner,
                                                           p.columns,
                                                           p.values.of<const S>(),
                                                           p.C.of<const S>(),
                                                           p.B.of<const S>(),
                                                           p.D.of<const S>(),
                                                           p.E.of<S>(),
                                                           {nullptr, 0, 0},
                                                           static_cast<computed_t<S>>(p.alpha),
                                                           edge,
                                                           p.plan};
    work(threads);
  });
}

void add_fusedmm_entries(PyObject* module) { add_entries<fusedmm_entry>(module); }

} // namespace wl
