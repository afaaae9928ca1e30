// The entries of mask.fusedmm and of its gradients.
#include "omp/mask_backward.hpp"
#include "omp/batched_operands.hpp"
#include "omp/entries.hpp"

namespace wl {

WL_FUSEDMM_OF(, Intervals, i32)
WL_FUSEDMM_OF(, Intervals, i64)

namespace {

// The arguments that locate the entries: the first entry of each row, and its first column.
template <class I>
struct MaskArgument {
  Extent m;
  i64 nnz;
  Intervals<I> pattern;

  explicit MaskArgument(const Call& call) {
    Extent starts;
    const i64* const ptr = call.contiguous<const i64>(0, starts);
    m.value = starts - 1;
    nnz = ptr[m];
    pattern = {ptr, call.contiguous<const I>(1, m)};
  }
};

struct mask_fusedmm_entry {
  static constexpr const char* operation = "mask.fusedmm";
  static constexpr const char* symbol = "mask_products";
  static constexpr const char* names[] = {"ptr", "first",      "C",     "B",    "D",
                                          "E",   "log_totals", "alpha", "edge", "plan"};
  static Object run(const Call& call) {
    const BatchReader read(call);
    const Edge edge = edge_called("mask.fusedmm", call.text(8));
    with_real_type(call, "C", call.array(2), [&](auto value) {
      with_index_type(call, "first", call.array(1), [&](auto index) {
        using S = decltype(value);
        using I = decltype(index);
        using T = computed_t<S>;
        const MaskArgument<I> A(call);
        const auto plan = plan_at(call, 9, A.m, A.nnz);
        Extent count, m = A.m, n, k, p;
        const Batch<const S> C = read.blocks<const S>(2, count, m, k);
        const Batch<const S> B = read.blocks<const S>(3, count, n, k);
        const Batch<const S> D = read.blocks<const S>(4, count, n, p);
        const Batch<S> E = read.blocks<S>(5, count, m, p);
        const Batch<T> log_totals = read.optional_values<T>(6, count, A.m);
        const T alpha = call.scalar<T>(7);
        const bool same_operand = B.data == D.data && B.step == D.step && B.ld == D.ld && k == p;
        const i64 blocks = count, rows = m, others = n, inner = k, outer = p, nnz = A.nnz;
        const Intervals<I> pattern = A.pattern;
        call.submit(nnz * (inner + outer) * blocks, [=](int threads) {
          for (i64 i = 0; i < blocks; ++i) {
            T* const totals = log_totals.data ? log_totals[i].data : nullptr;
            const Fusedmm<S, Intervals<I>> o{rows,    others, inner, outer,        pattern,
                                             nullptr, C[i],   B[i],  D[i],         E[i],
                                             totals,  alpha,  edge,  same_operand, plan.get()};
            fusedmm(o, threads_for(nnz, inner + outer, threads));
          }
        });
      });
    });
    return none_object();
  }
};

struct mask_backward_entry {
  static constexpr const char* operation = "mask.fusedmm_backward";
  static constexpr const char* symbol = "mask_gradients";
  static constexpr const char* names[] = {
      "ptr", "first",      "column_first", "column_last", "C",    "B",     "D",   "G",
      "E",   "log_totals", "of_C",         "of_B",        "of_D", "alpha", "edge"};
  static Object run(const Call& call) {
    const BatchReader read(call);
    const Edge edge = edge_called("mask.fusedmm_backward", call.text(14));
    with_real_type(call, "C", call.array(4), [&](auto value) {
      with_index_type(call, "first", call.array(1), [&](auto index) {
        using S = decltype(value);
        using I = decltype(index);
        using T = computed_t<S>;
        const MaskArgument<I> A(call);
        Extent count, m = A.m, n, k, p;
        const ColumnEnds<I> ends{call.contiguous<const I>(2, n), call.contiguous<const I>(3, n)};
        const Batch<const S> C = read.blocks<const S>(4, count, m, k);
        const Batch<const S> B = read.blocks<const S>(5, count, n, k);
        const Batch<const S> D = read.blocks<const S>(6, count, n, p);
        const Batch<const S> G = read.blocks<const S>(7, count, m, p);
        const Batch<const S> E = read.optional_blocks<const S>(8, count, m, p);
        const Batch<const T> log_totals = read.optional_values<const T>(9, count, A.m);
        const Batch<S> of_C = read.optional_blocks<S>(10, count, m, k);
        const Batch<S> of_B = read.optional_blocks<S>(11, count, n, k);
        const Batch<S> of_D = read.optional_blocks<S>(12, count, n, p);
        const T alpha = call.scalar<T>(13);
        const i64 blocks = count, rows = m, others = n, inner = k, outer = p, nnz = A.nnz;
        const Intervals<I> pattern = A.pattern;
        const i64 products = 3 * inner + 2 * outer;
        call.submit(nnz * products * blocks, [=](int threads) {
          i64 most = std::min(kMaskPanel, nnz);
          for (i64 i = 0; i < rows; ++i)
            most = std::max(most, pattern.ptr[i + 1] - pattern.ptr[i]);
          auto* const kept = reinterpret_cast<Kept<T>*>(workspace<T>(2, 2 * most));
          const auto part = [](const auto& batch, i64 i) {
            return batch.data ? batch[i] : decltype(batch[i]){nullptr, 0};
          };
          for (i64 i = 0; i < blocks; ++i) {
            const FusedmmBackward<S, Intervals<I>> o{
                rows,    others,        inner,         outer,
                pattern, nullptr,       C[i],          B[i],
                D[i],    G[i],          part(E, i),    part(log_totals, i).data,
                nullptr, part(of_C, i), part(of_B, i), part(of_D, i),
                alpha,   edge};
            MaskGradients<S, I>(o, ends, kept, threads_for(nnz, products, threads)).run();
          }
        });
      });
    });
    return none_object();
  }
};

} // namespace

void add_mask_product_entries(PyObject* module) {
  add_entries<mask_fusedmm_entry, mask_backward_entry>(module);
}

} // namespace wl
