// The entry of csr.sddmm.
#include "sddmm.hpp"

#include "ml.hpp"

namespace wl {

namespace {

struct sddmm_entry {
  static constexpr const char* operation = "csr.sddmm";
  static constexpr const char* symbol = "sddmm";
  static constexpr const char* names[] = {"A", "values", "C", "B", "S", "alpha", "beta", "plan"};
  static Object run(const Call& call) {
    const BatchReader read(call);
    with_real_type(call, "C", call.array(2), [&](auto value) {
      with_pattern_type(call, 0, [&](auto index) {
        using S = decltype(value);
        using I = decltype(index);
        using T = computed_t<S>;
        const PatternArgument<I> A(call, 0);
        const auto plan = A.plan(call, 7);
        const i64 nnz = A.nnz;
        Extent count, m{A.m}, n{A.n}, k;
        const Batch<const S> C = read.blocks<const S>(2, count, m, k);
        const Batch<const S> B = read.blocks<const S>(3, count, n, k);
        const Batch<S> out = read.values<S>(4, count, Extent{nnz});
        const Batch<const S> values = read.optional_values<const S>(1, count, nnz);
        const T alpha = call.scalar<T>(5), beta = call.scalar<T>(6);
        const i64 blocks = count, inner = k;
        call.submit(nnz * (inner + 1) * blocks, [=](int threads) {
          for (i64 i = 0; i < blocks; ++i) {
            const S* const given = values.data ? values[i].data : nullptr;
            const Sddmm<S, I> o{A.m,  A.n,  inner,       A.indptr, A.indices, given,
                                C[i], B[i], out[i].data, alpha,    beta,      plan.get()};
            sddmm(o, threads_for(nnz, inner, threads));
          }
        });
      });
    });
    return none_object();
  }
};

} // namespace

void add_sddmm_entries(PyObject* module) {
  static PyMethodDef methods[] = {method<sddmm_entry>(), {nullptr, nullptr, 0, nullptr}};
  add_methods(module, methods);
}

} // namespace wl
