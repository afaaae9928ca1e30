// The arrays of a CSR matrix, and reading them from a Python object.
#pragma once

#include "omp/call.hpp"

namespace wl {

// The arrays of a CSR matrix of m rows and n columns.
template <class T, class I>
struct CsrArrays {
  using Value = T;
  using Index = I;
  i64 m, n;
  const I *indptr, *indices;
  const T* data;

  i64 nnz() const { return indptr[m]; }
};

// A matrix argument and the objects that own its arrays.
class CsrArgument {
public:
  CsrArgument(const Call& call, int at) : call_(call), at_(at) {
    static const Name data("data"), indices("indices"), indptr("indptr"), shape("shape");
    data_ = call.member(at, data);
    indices_ = call.member(at, indices);
    indptr_ = call.member(at, indptr);
    shape_ = call.member(at, shape);
  }

  template <class T, class I>
  CsrArrays<T, I> arrays() const {
    Extent entries;
    const CsrArrays<T, I> A{rows(), columns(),
                            call_.member_array<const I>(indptr_, "indptr", Extent{rows() + 1}),
                            call_.member_array<const I>(indices_, "indices", entries),
                            call_.member_array<const T>(data_, "data", entries)};
    if (A.nnz() != entries)
      call_.fail(call_.name(at_), "indptr does not end at the number of entries");
    return A;
  }

  i64 rows() const { return call_.integer(PyTuple_GetItem(shape_.get(), 0)); }
  i64 columns() const { return call_.integer(PyTuple_GetItem(shape_.get(), 1)); }

  // Calls body(arrays) with the matrix's types.
  template <class Body>
  auto with_arrays(Body&& body) const {
    return with_value_type(call_, "data", values(), [&](auto value) {
      return with_index(
          [&](auto index) { return body(arrays<decltype(value), decltype(index)>()); });
    });
  }

  // Calls body(I()) with the type of its indices.
  template <class Body>
  auto with_index(Body&& body) const {
    return with_index_type(call_, "indptr", call_.array(indptr_.get(), "indptr"), body);
  }

  // The array of its values.
  ArrayView values() const { return call_.array(data_.get(), "data"); }

private:
  const Call& call_;
  int at_;
  Object data_, indices_, indptr_, shape_;
};

} // namespace wl
