// csr.spmv_transposed: products with the transpose without its rows.
#include "omp/by_columns.hpp"
#include "omp/capsule.hpp"
#include "omp/csr_arrays.hpp"
#include "omp/entries.hpp"
#include "omp/batched_operands.hpp"

namespace wl {

namespace {

// The name of the capsule in which Python holds parts.
constexpr const char* kCapsule = "wollemi.ColumnParts";
using Held = std::shared_ptr<const ColumnParts>;

// The parts of a pattern, made once for it.
struct column_parts_entry {
  static constexpr const char* operation = "csr.spmv_transposed";
  static constexpr const char* symbol = "column_parts";
  static constexpr const char* names[] = {"A"};
  static Object run(const Call& call) {
    return with_pattern_type(call, 0, [&](auto index) {
      using I = decltype(index);
      const PatternArgument<I> A(call, 0);
      ColumnParts parts = call.at_once(
          [&](int threads) { return column_parts(A.m, A.indptr, A.indices, threads); });
      return capsule_of<const ColumnParts>(kCapsule,
                                           std::make_shared<ColumnParts>(std::move(parts)));
    });
  }
};

// Whether sums of columns in single precision would be too coarse.
struct has_long_columns_entry {
  static constexpr const char* operation = "csr.spmv_transposed";
  static constexpr const char* symbol = "has_long_columns";
  static constexpr const char* names[] = {"A"};
  static Object run(const Call& call) {
    return with_pattern_type(call, 0, [&](auto index) {
      using I = decltype(index);
      const PatternArgument<I> A(call, 0);
      return Object::steal(PyBool_FromLong(call.at_once(
          [&](int threads) { return has_long_columns(A.m, A.n, A.indptr, A.indices, threads); })));
    });
  }
};

struct csr_by_columns_entry {
  static constexpr const char* operation = "csr.spmv_transposed";
  static constexpr const char* symbol = "csr_by_columns";
  static constexpr const char* names[] = {"A", "x", "y", "alpha", "beta", "parts", "long_columns"};
  static Object run(const Call& call) {
    const CsrArgument argument(call, 0);
    const Held& parts = held_in<const ColumnParts>(kCapsule, call.argument(5));
    const bool long_columns = PyObject_IsTrue(call.argument(6)) == 1;
    argument.with_arrays([&](auto A) {
      using T = typename decltype(A)::Value;
      const SpmvOperands<T> o = spmv_operands<T>(call, A.n, A.m);
      call.submit(A.nnz() * o.k, [=, held = parts](int threads) {
        if constexpr (sums_in_pieces<T>)
          if (long_columns)
            return multiply_by_long_columns(A, *held, o, threads);
        multiply_by_columns(A, *held, o, threads);
      });
    });
    return none_object();
  }
};

} // namespace

void add_by_columns_entries(PyObject* module) {
  add_entries<column_parts_entry, has_long_columns_entry, csr_by_columns_entry>(module);
}

} // namespace wl
