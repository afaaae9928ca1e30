// csr.spmv of values that are stored in a lower precision than is computed in.
#include "omp/csr_entry.hpp"
#include "omp/stored.hpp"

namespace wl {

namespace {

template <class S, class T>
struct Storage {
  using stored = S;
  using computed = T;
};

template <class T, class Body>
bool with_lower(int stored, Body&& body) {
  using Lower = typename detail::lower_than<T>::types;
  return detail::with_one_of(stored, Lower(),
                             [&](auto value) { body(Storage<decltype(value), T>()); });
}

// Calls body(Storage<S, T>()) with the types of these numbers; false if there is no such pair.
template <class Body>
bool with_storage(int stored, int computed, Body&& body) {
  if (computed == detail::FLOAT64)
    return with_lower<double>(stored, body);
  if (computed == detail::FLOAT32)
    return with_lower<float>(stored, body);
  return computed == detail::COMPLEX128 && with_lower<complex<double>>(stored, body);
}

// Calls body(Storage<S, T>(), arrays) with the arrays of a matrix.
template <class Body>
void with_arrays(const Call& call, const CsrArgument& A, int computed, Body&& body) {
  const ArrayView values = A.values();
  const bool known = with_storage(values.type_number, computed, [&](auto pair) {
    using S = typename decltype(pair)::stored;
    A.with_index([&](auto index) { body(pair, A.arrays<S, decltype(index)>()); });
  });
  if (!known)
    call.fail_dtype("data", values, "a dtype that values of this matrix are stored in");
}

} // namespace

bool is_storage(int stored, int computed) {
  return with_storage(stored, computed, [](auto) {});
}

void multiply_stored(const Call& call, const CsrArgument& A, int computed,
                     const std::shared_ptr<CsrState>& state) {
  with_arrays(call, A, computed, [&](auto pair, const auto& arrays) {
    multiply<typename decltype(pair)::computed>(call, arrays, state);
  });
}

std::shared_ptr<CsrState> made_stored(const Call& call, const CsrArgument& A, int computed,
                                      const std::string& kernel) {
  std::shared_ptr<CsrState> made;
  with_arrays(call, A, computed, [&](auto pair, const auto& arrays) {
    made = call.at_once([&](int threads) {
      return made_state<typename decltype(pair)::computed>(arrays, kernel, threads);
    });
  });
  return made;
}

void update_stored(const Call& call, const CsrArgument& A, int computed,
                   const std::shared_ptr<CsrState>& state) {
  with_arrays(call, A, computed, [&](auto pair, const auto& arrays) {
    update_state<typename decltype(pair)::computed>(call, arrays, state);
  });
}

} // namespace wl
