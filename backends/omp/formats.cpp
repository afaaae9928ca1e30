// The entries of the products of all formats but CSR.
#include "omp/bsr.hpp"
#include "omp/coo.hpp"
#include "omp/dense.hpp"
#include "omp/entries.hpp"
#include "omp/ell_sellp.hpp"

namespace wl {

namespace {

// Calls body(T(), I()) with the types of a matrix.
template <class Body>
void with_types(const Call& call, const Object& data, const Object& indices, Body&& body) {
  with_value_type(call, "data", call.array(data.get(), "data"), [&](auto value) {
    with_index_type(call, "indices", call.array(indices.get(), "indices"),
                    [&](auto index) { body(value, index); });
  });
}

struct coo_spmv_entry {
  static constexpr const char* operation = "coo.spmv";
  static constexpr const char* symbol = "coo_spmv";
  static constexpr auto& names = kSpmvNames;

  static Object run(const Call& call) {
    static const Name data("data"), row("row"), col("col");
    const Object values = call.member(0, data), rows = call.member(0, row),
                 columns = call.member(0, col);
    const Shape shape(call, 0);
    with_types(call, values, rows, [&](auto value, auto index) {
      using T = decltype(value);
      using I = decltype(index);
      Extent nnz;
      const I* const row_of = call.member_array<const I>(rows, "row", nnz);
      const CooArrays<T, I> A{shape.m,
                              shape.n,
                              nnz,
                              row_of,
                              call.member_array<const I>(columns, "col", nnz),
                              call.member_array<const T>(values, "data", nnz)};
      const SpmvOperands<T> o = spmv_operands<T>(call, A.m, A.n);
      call.submit(A.nnz * o.k, [=](int threads) { coo_spmv(A, o, threads); });
    });
    return none_object();
  }
};

struct ell_spmv_entry {
  static constexpr const char* operation = "ell.spmv";
  static constexpr const char* symbol = "ell_spmv";
  static constexpr auto& names = kSpmvNames;

  static Object run(const Call& call) {
    static const Name data("data"), indices("indices");
    const Object values = call.member(0, data), columns = call.member(0, indices);
    const Shape shape(call, 0);
    with_types(call, values, columns, [&](auto value, auto index) {
      using T = decltype(value);
      using I = decltype(index);
      Extent width, rows{shape.m};
      const I* const column_of = call.member_array<const I>(columns, "indices", width, rows);
      const ell_arrays<T, I> A{shape.m, shape.n, width, column_of,
                               call.member_array<const T>(values, "data", width, rows)};
      const SpmvOperands<T> o = spmv_operands<T>(call, A.m, A.n);
      call.submit(A.width * A.m * o.k, [=](int threads) { ell_spmv(A, o, threads); });
    });
    return none_object();
  }
};

struct sellp_spmv_entry {
  static constexpr const char* operation = "sellp.spmv";
  static constexpr const char* symbol = "sellp_spmv";
  static constexpr auto& names = kSpmvNames;

  static Object run(const Call& call) {
    static const Name data("data"), indices("indices"), slice_ptr("slice_ptr"),
        permutation("permutation"), slice_size("slice_size");
    const Object values = call.member(0, data), columns = call.member(0, indices),
                 pointers = call.member(0, slice_ptr), order = call.member(0, permutation);
    const i64 size = call.integer(call.member(0, slice_size).get());
    const Shape shape(call, 0);
    with_types(call, values, columns, [&](auto value, auto index) {
      using T = decltype(value);
      using I = decltype(index);
      const i64 slices = (shape.m + size - 1) / size;
      Extent total;
      const I* const slice_begin =
          call.member_array<const I>(pointers, "slice_ptr", Extent{slices + 1});
      const I* const row_of = call.member_array<const I>(order, "permutation", Extent{shape.m});
      const I* const column_of = call.member_array<const I>(columns, "indices", total);
      const sellp_arrays<T, I> A{
          shape.m,     shape.n, slices,    size,
          slice_begin, row_of,  column_of, call.member_array<const T>(values, "data", total)};
      const SpmvOperands<T> o = spmv_operands<T>(call, A.m, A.n);
      call.submit(total * o.k, [=](int threads) { sellp_spmv(A, o, threads); });
    });
    return none_object();
  }
};

struct bsr_spmv_entry {
  static constexpr const char* operation = "bsr.spmv";
  static constexpr const char* symbol = "bsr_spmv";
  static constexpr auto& names = kSpmvNames;

  static Object run(const Call& call) {
    static const Name data("data"), indices("indices"), indptr("indptr");
    const Object values = call.member(0, data), columns = call.member(0, indices),
                 pointers = call.member(0, indptr);
    const Shape shape(call, 0);
    with_types(call, values, columns, [&](auto value, auto index) {
      using T = decltype(value);
      using I = decltype(index);
      Extent blocks, r, c;
      const T* const block_values = call.member_array<const T>(values, "data", blocks, r, c);
      const I* const column_of = call.member_array<const I>(columns, "indices", blocks);
      const i64 m = shape.m / r;
      const bsr_arrays<T, I> A{m,
                               shape.n / c,
                               r,
                               c,
                               call.member_array<const I>(pointers, "indptr", Extent{m + 1}),
                               column_of,
                               block_values};
      const SpmvOperands<T> o = spmv_operands<T>(call, shape.m, shape.n);
      call.submit(A.nnz() * o.k, [=](int threads) { bsr_spmv(A, o, threads); });
    });
    return none_object();
  }
};

struct dense_spmv_entry {
  static constexpr const char* operation = "dense.spmv";
  static constexpr const char* symbol = "dense_spmv";
  static constexpr auto& names = kSpmvNames;

  static Object run(const Call& call) {
    static const Name data("data");
    const Object values = call.member(0, data);
    with_value_type(call, "data", call.array(values.get(), "data"), [&](auto value) {
      using T = decltype(value);
      Extent m, n;
      const T* const entries = call.member_array<const T>(values, "data", m, n);
      const dense_array<T> A{m, n, entries};
      const SpmvOperands<T> o = spmv_operands<T>(call, m, n);
      call.submit(m * n * o.k, [=](int threads) { dense_spmv(A, o, threads); });
    });
    return none_object();
  }
};

} // namespace

void add_format_entries(PyObject* module) {
  add_entries<coo_spmv_entry, ell_spmv_entry, sellp_spmv_entry, bsr_spmv_entry, dense_spmv_entry>(
      module);
}

} // namespace wl
