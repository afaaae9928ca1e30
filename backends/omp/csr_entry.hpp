// The parts of the entries of csr.spmv, for values of S and operands of T.
#pragma once

#include <string>

#include "omp/csr_state.hpp"
#include "omp/uninterrupted.hpp"

namespace wl {

// The states of matrices, as Python holds them. Defined in csr.cpp.
Object capsule_of(std::shared_ptr<CsrState> state);
const std::shared_ptr<CsrState>& state_in(const Object& capsule);

template <class T, class S, class I>
void multiply(const Call& call, const CsrArrays<S, I>& A, const std::shared_ptr<CsrState>& state) {
  const auto typed = std::dynamic_pointer_cast<CsrStateOf<S, T, I>>(state);
  if (!typed)
    call.fail("A", "its plan was made for other dtypes; convert with astype");
  const SpmvOperands<T> o = spmv_operands<T>(call, A.m, A.n);
  call.submit(A.nnz() * o.k, [=](int threads) { typed->spmv(A, o, threads); });
}

// The state of a kernel for a matrix, or null if the kernel is not faster.
template <class T, class S, class I>
std::shared_ptr<CsrState> made_state(const CsrArrays<S, I>& A, const std::string& kernel,
                                     int parts) {
  if (kernel == "rows")
    return std::make_shared<CsrRows<S, T, I>>(A, parts);
  if (kernel == "sell")
    return std::make_shared<CsrSell<S, T, I>>(A, parts);
  RowPatterns<I> patterns;
  const auto side_by_side = [](int count, const auto& body) { for_parts(count, body); };
  if (!pack_patterns(static_cast<I>(A.m), A.indptr, A.indices, patterns, parts, side_by_side))
    return nullptr;
  return std::make_shared<CsrPatterns<S, T, I>>(A, std::move(patterns), parts);
}

// A copy with old and new values would be wrong, so the update is not interrupted.
template <class T, class S, class I>
void update_state(const Call& call, const CsrArrays<S, I>& A,
                  const std::shared_ptr<CsrState>& state) {
  const auto typed = std::dynamic_pointer_cast<CsrStateOf<S, T, I>>(state);
  if (!typed)
    call.fail("A", "its plan was made for other dtypes");
  const ReleasedGil released;
  const Uninterrupted whole;
  typed->update_values(A);
}

// The same for values of a lower precision than the operands; the type number of the values is
// given. Defined in csr_stored.cpp.
bool is_storage(int stored, int computed);
void multiply_stored(const Call& call, const CsrArgument& A, int computed,
                     const std::shared_ptr<CsrState>& state);
std::shared_ptr<CsrState> made_stored(const Call& call, const CsrArgument& A, int computed,
                                      const std::string& kernel);
void update_stored(const Call& call, const CsrArgument& A, int computed,
                   const std::shared_ptr<CsrState>& state);

} // namespace wl
