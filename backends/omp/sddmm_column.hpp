// csr.sddmm of one column: a product of two numbers for each entry, which fills no register.
#pragma once

#include "omp/sddmm.hpp"

namespace wl {

template <class S, class I>
void sddmm_of_one_column(const Sddmm<S, I>& o, int threads) {
  using T = computed_t<S>;
  const auto number = [](const S& stored) { return static_cast<T>(widen(stored)); };
  const PatternPlan& plan = *o.plan;
  plan.for_parts(threads, [&](const Part& part) {
    plan.for_segments(
        part, o.indptr,
        [&](i64 row, i64 begin, i64 end) {
          const T c = number(o.C.data[row * o.C.ld]);
          const S* const B = o.B.data;
          const i64 ld = o.B.ld;
          for (i64 e = begin; e < end; ++e) {
            T result = o.alpha * (c * number(B[o.indices[e] * ld]));
            if (o.values)
              result *= number(o.values[e]);
            if (!(o.beta == 0))
              result += o.beta * number(o.out[e]);
            narrow(result, o.out[e]);
          }
        },
        [&](i64, i64 entry) { prefetch_some(o.indices + entry); });
  });
}

} // namespace wl
