// The entries of the operations on structure; they return new arrays.
#include <optional>

#include "omp/entries.hpp"
#include "omp/merged_sums.hpp"
#include "omp/structure.hpp"

namespace wl {

namespace {

// indptr, indices and data of a matrix with rows that are sums of terms.
template <class T, class I, class Terms>
Object summed(const Call& call, const Terms& terms) {
  const NewArray<I> indptr(terms.m + 1);
  std::optional<RowSums<T, I, Terms>> sums;
  const i64 nnz = call.compute([&](int threads) {
    sums.emplace(terms, threads);
    return sums->count(indptr.data);
  });
  const NewArray<I> indices(nnz);
  const NewArray<T> data(nnz);
  call.compute([&](int) { sums->fill(indptr.data, indices.data, data.data); });
  return tuple_of(indptr, indices, data);
}

struct coo_to_csr_entry {
  static constexpr const char* operation = "coo.to_csr";
  static constexpr const char* symbol = "coo_to_csr";
  static constexpr const char* names[] = {"A"};

  static Object run(const Call& call) {
    static const Name row("row"), col("col"), data("data"), shape("shape");
    const Object held_row = call.member(0, row), held_col = call.member(0, col),
                 held_data = call.member(0, data), held_shape = call.member(0, shape);
    const i64 m = call.integer(PyTuple_GetItem(held_shape.get(), 0));
    return with_value_type(call, "data", call.array(held_data.get(), "data"), [&](auto value) {
      return with_index_type(call, "row", call.array(held_row.get(), "row"), [&](auto index) {
        using T = decltype(value);
        using I = decltype(index);
        Extent nnz;
        const T* const values = call.member_array<const T>(held_data, "data", nnz);
        const I* const rows = call.member_array<const I>(held_row, "row", nnz);
        const I* const columns = call.member_array<const I>(held_col, "col", nnz);
        const NewArray<I> indptr(m + 1), indices(nnz);
        const NewArray<T> sorted(nnz);
        call.compute([&](int threads) {
          counting_sort(nnz, m, threads, rows, indptr.data, [&](i64 begin, i64 end, I* places) {
            move_coordinates(begin, end, rows, columns, values, places, indices.data, sorted.data);
          });
        });
        return tuple_of(indptr, indices, sorted);
      });
    });
  }
};

struct csr_sort_entry {
  static constexpr const char* operation = "csr.sort";
  static constexpr const char* symbol = "csr_sort";
  static constexpr const char* names[] = {"A"};

  static Object run(const Call& call) {
    const CsrArgument argument(call, 0);
    return argument.with_arrays([&](auto A) {
      const NewArray<typename decltype(A)::Index> indices(A.nnz()), order(A.nnz());
      const NewArray<typename decltype(A)::Value> data(A.nnz());
      call.compute(
          [&](int threads) { sort_rows(A, indices.data, data.data, order.data, threads); });
      return tuple_of(indices, data, order);
    });
  }
};

struct csr_transpose_entry {
  static constexpr const char* operation = "csr.transpose";
  static constexpr const char* symbol = "csr_transpose";
  static constexpr const char* names[] = {"A"};

  static Object run(const Call& call) {
    const CsrArgument argument(call, 0);
    return argument.with_arrays([&](auto A) {
      const NewArray<typename decltype(A)::Index> indptr(A.n + 1), indices(A.nnz()), order(A.nnz());
      const NewArray<typename decltype(A)::Value> data(A.nnz());
      call.compute([&](int threads) {
        transpose(A, indptr.data, indices.data, data.data, order.data, threads);
      });
      return tuple_of(indptr, indices, data, order);
    });
  }
};

struct csr_sum_duplicates_entry {
  static constexpr const char* operation = "csr.sum_duplicates";
  static constexpr const char* symbol = "csr_sum_duplicates";
  static constexpr const char* names[] = {"A"};

  static Object run(const Call& call) {
    const CsrArgument argument(call, 0);
    return argument.with_arrays([&](auto A) {
      using T = typename decltype(A)::Value;
      using I = typename decltype(A)::Index;
      return summed<T, I>(call, OwnTerms<T, I>{A});
    });
  }
};

struct csr_add_entry {
  static constexpr const char* operation = "csr.add";
  static constexpr const char* symbol = "csr_add";
  static constexpr const char* names[] = {"A", "B", "alpha", "beta"};

  static Object run(const Call& call) {
    const CsrArgument argument(call, 0);
    return argument.with_arrays([&](auto A) {
      using T = typename decltype(A)::Value;
      using I = typename decltype(A)::Index;
      const CsrArrays<T, I> B = CsrArgument(call, 1).arrays<T, I>();
      if (B.m != A.m || B.n != A.n)
        call.fail("B", "has another shape than A");
      const T alpha = call.scalar<T>(2), beta = call.scalar<T>(3);
      const NewArray<I> indptr(A.m + 1);
      const MergedSums<T, I> merged(A, B, call.context().threads());
      const i64 nnz = call.compute([&](int) { return merged.count(indptr.data); });
      if (nnz < 0) // rows that are not sorted, or have duplicates
        return summed<T, I>(call, SumTerms<T, I>{A, B, alpha, beta});
      const NewArray<I> indices(nnz);
      const NewArray<T> data(nnz);
      call.compute([&](int) { merged.fill(alpha, beta, indptr.data, indices.data, data.data); });
      return tuple_of(indptr, indices, data);
    });
  }
};

// Calls body(A, B) with the matrices at 0 and 1, which have a product.
template <class Body>
Object with_factors(const Call& call, Body&& body) {
  const CsrArgument argument(call, 0);
  return argument.with_arrays([&](auto A) {
    using T = typename decltype(A)::Value;
    using I = typename decltype(A)::Index;
    const CsrArrays<T, I> B = CsrArgument(call, 1).arrays<T, I>();
    if (A.n != B.m)
      call.fail("B", "has another number of rows than A has columns");
    return body(A, B);
  });
}

// The terms of A B.
template <class T, class I>
product_terms<T, I> product_of(const CsrArrays<T, I>& A, const CsrArrays<T, I>& B) {
  return {A.m, B.n, A.indptr, A.indices, A.data, B.indptr, B.indices, B.data};
}

struct csr_matmul_entry {
  static constexpr const char* operation = "csr.matmul";
  static constexpr const char* symbol = "csr_matmul";
  static constexpr const char* names[] = {"A", "B"};

  static Object run(const Call& call) {
    return with_factors(call, [&](auto A, const auto& B) {
      using T = typename decltype(A)::Value;
      return summed<T, typename decltype(A)::Index>(call, product_of(A, B));
    });
  }
};

struct csr_matmul_values_entry {
  static constexpr const char* operation = "csr.matmul_values";
  static constexpr const char* symbol = "csr_matmul_values";
  static constexpr const char* names[] = {"A", "B", "C"};

  static Object run(const Call& call) {
    return with_factors(call, [&](auto A, const auto& B) {
      using T = typename decltype(A)::Value;
      const auto C = CsrArgument(call, 2).arrays<T, typename decltype(A)::Index>();
      if (C.m != A.m || C.n != B.n)
        call.fail("C", "has another shape than the product");
      const NewArray<T> data(C.nnz());
      call.compute([&](int threads) { product_values(product_of(A, B), C, data.data, threads); });
      return tuple_of(data);
    });
  }
};

} // namespace

void add_structure_entries(PyObject* module) {
  add_entries<coo_to_csr_entry, csr_sort_entry, csr_transpose_entry, csr_sum_duplicates_entry,
              csr_add_entry, csr_matmul_entry, csr_matmul_values_entry>(module);
}

} // namespace wl
