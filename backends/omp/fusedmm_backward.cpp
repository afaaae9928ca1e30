// The entry of csr.fusedmm_backward.
#include "omp/fusedmm_backward.hpp"

#include "omp/batched_operands.hpp"
#include "omp/entries.hpp"

namespace wl {

namespace {

// Numbers that are kept between calls; larger patterns allocate memory, which costs little next to
// their computation.
constexpr i64 kKeptNumbers = i64(1) << 22;

struct fusedmm_backward_entry {
  static constexpr const char* operation = "csr.fusedmm_backward";
  static constexpr const char* symbol = "fusedmm_backward";
  static constexpr const char* names[] = {
      "A",    "values", "C",    "B",     "D",    "G",          "E",     "log_totals", "of_values",
      "of_C", "of_B",   "of_D", "alpha", "edge", "transposed", "order", "by_rows",    "by_columns"};
  static Object run(const Call& call) {
    const BatchReader read(call);
    const Edge edge = edge_called("csr.fusedmm_backward", call.text(13));
    with_real_type(call, "C", call.array(2), [&](auto value) {
      with_pattern_type(call, 0, [&](auto index) {
        using S = decltype(value);
        using I = decltype(index);
        using T = computed_t<S>;
        const PatternArgument<I> A(call, 0), transposed(call, 14);
        const auto by_rows = A.plan(call, 16), by_columns = transposed.plan(call, 17);
        const i64 nnz = A.nnz;
        const I* const order = PatternArgument<I>::array(call, 15, nnz);
        Extent count, m{A.m}, n{A.n}, k, p;
        const Batch<const S> C = read.blocks<const S>(2, count, m, k);
        const Batch<const S> B = read.blocks<const S>(3, count, n, k);
        const Batch<const S> D = read.blocks<const S>(4, count, n, p);
        const Batch<const S> G = read.blocks<const S>(5, count, m, p);
        const Batch<const S> values = read.optional_values<const S>(1, count, nnz);
        const Batch<const S> E = read.optional_blocks<const S>(6, count, m, p);
        const Batch<const T> log_totals = read.optional_values<const T>(7, count, A.m);
        const Batch<S> of_values = read.optional_values<S>(8, count, nnz);
        const Batch<S> of_C = read.optional_blocks<S>(9, count, m, k);
        const Batch<S> of_B = read.optional_blocks<S>(10, count, n, k);
        const Batch<S> of_D = read.optional_blocks<S>(11, count, n, p);
        const T alpha = call.scalar<T>(12);
        const i64 blocks = count, inner = k, outer = p;
        const i64 products = 3 * inner + 2 * outer;
        call.submit(nnz * products * blocks, [=](int threads) {
          Huge<T> fresh;
          if (2 * nnz > kKeptNumbers)
            fresh = Huge<T>(static_cast<std::size_t>(2 * nnz));
          T* const numbers = fresh.size() > 0 ? fresh.data() : workspace<T>(2, 2 * nnz);
          auto* const kept = reinterpret_cast<Kept<T>*>(numbers);
          const auto part = [](const auto& batch, i64 i) {
            return batch.data ? batch[i] : decltype(batch[i]){nullptr, 0};
          };
          for (i64 i = 0; i < blocks; ++i) {
            const FusedmmBackward<S, Listed<I>> o{A.m,
                                                  A.n,
                                                  inner,
                                                  outer,
                                                  {A.indptr, A.indices},
                                                  part(values, i).data,
                                                  C[i],
                                                  B[i],
                                                  D[i],
                                                  G[i],
                                                  part(E, i),
                                                  part(log_totals, i).data,
                                                  part(of_values, i).data,
                                                  part(of_C, i),
                                                  part(of_B, i),
                                                  part(of_D, i),
                                                  alpha,
                                                  edge};
            const Turned<I> turned{transposed.indptr, transposed.indices, order, by_rows.get(),
                                   by_columns.get()};
            const int wanted = threads_for(nnz, products, threads);
            FusedmmGradients<S, I>(o, turned, kept, wanted).run();
          }
        });
      });
    });
    return none_object();
  }
};

} // namespace

void add_fusedmm_backward_entries(PyObject* module) { add_entries<fusedmm_backward_entry>(module); }

} // namespace wl
