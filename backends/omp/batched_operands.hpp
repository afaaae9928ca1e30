// The shared part of the entries of spmm, sddmm and fusedmm: reading batches of operands of any
// stored type.
#pragma once

#include <algorithm>
#include <memory>

#include "omp/call.hpp"
#include "omp/capsule.hpp"
#include "omp/stored_products.hpp"

namespace wl {

namespace detail {

// The type numbers of NumPy's float16, and of the integers by which bfloat16 is passed: NumPy has
// no type for it.
constexpr int FLOAT16 = 23, UINT16 = 4;

template <class S>
constexpr int stored_number = number_of<S>;
template <>
inline constexpr int stored_number<half> = FLOAT16;
template <>
inline constexpr int stored_number<bfloat> = UINT16;

} // namespace detail

// Calls body(S()) with the type that values are stored in.
template <class Body>
auto with_stored_type(const Call& call, const char* name, const ArrayView& a, Body&& body) {
  if (a.type_number == detail::FLOAT16)
    return body(half());
  if (a.type_number == detail::UINT16)
    return body(bfloat());
  return with_value_type(call, name, a, body);
}

// Calls body(S()) with the type of real values; complex values are refused.
template <class Body>
auto with_real_type(const Call& call, const char* name, const ArrayView& a, Body&& body) {
  switch (a.type_number) {
  case detail::FLOAT16:
    return body(half());
  case detail::UINT16:
    return body(bfloat());
  case detail::FLOAT32:
    return body(float());
  case detail::FLOAT64:
    return body(double());
  default:
    call.fail_dtype(name, a, "float16, bfloat16, float32 or float64");
  }
}

// Reads batches; extents are bound as Call binds them.
class BatchReader {
public:
  explicit BatchReader(const Call& call) : call_(call) {}

  template <class S>
  Batch<S> blocks(int at, Extent& count, Extent& rows, Extent& columns) const {
    const ArrayView a = checked<S>(at, 3);
    bind(at, a, 0, count);
    bind(at, a, 1, rows);
    bind(at, a, 2, columns);
    return {reinterpret_cast<S*>(a.data), stride<S>(at, a, 0), stride<S>(at, a, 1)};
  }

  // T[b,nnz]: the values of one block are adjacent.
  template <class S>
  Batch<S> values(int at, Extent& count, Extent entries) const {
    const ArrayView a = checked<S>(at, 2);
    bind(at, a, 0, count);
    bind(at, a, 1, entries);
    return {reinterpret_cast<S*>(a.data), stride<S>(at, a, 0), 0};
  }

  // The values, or nothing if the argument is None.
  template <class S>
  Batch<S> optional_values(int at, Extent& count, i64 entries) const {
    if (call_.argument(at) == Py_None)
      return {nullptr, 0, 0};
    return values<S>(at, count, Extent{entries});
  }

  // Blocks, or nothing if the argument is None.
  template <class S>
  Batch<S> optional_blocks(int at, Extent& count, Extent rows, Extent columns) const {
    if (call_.argument(at) == Py_None)
      return {nullptr, 0, 0};
    return blocks<S>(at, count, rows, columns);
  }

private:
  const Call& call_;

  template <class S>
  ArrayView checked(int at, int ndim) const {
    using E = detail::element<S>;
    const ArrayView a = call_.array(at);
    const int number = detail::stored_number<typename E::type>;
    if (a.type_number != number)
      fail(at, "expected the dtype of the other operands");
    if (a.ndim != ndim)
      fail(at, "expected " + std::to_string(ndim) + " dimensions");
    if (!E::is_const && !a.writeable)
      fail(at, "is written to, but the array is read-only");
    constexpr Py_ssize_t item = sizeof(S);
    const bool empty = std::find(a.shape, a.shape + ndim, 0) != a.shape + ndim;
    if (!empty && a.shape[ndim - 1] > 1 && a.strides[ndim - 1] != item)
      fail(at, "expected neighbours along the last axis");
    return a;
  }

  template <class S>
  i64 stride(int at, const ArrayView& a, int axis) const {
    constexpr Py_ssize_t item = sizeof(S);
    if (a.strides[axis] % item != 0)
      fail(at, "expected strides of whole elements");
    return a.strides[axis] / item;
  }

  void bind(int at, const ArrayView& a, int axis, Extent& extent) const {
    if (extent.value < 0)
      extent.value = a.shape[axis];
    if (extent.value != a.shape[axis])
      fail(at, "expected " + std::to_string(extent.value) + " along axis " + std::to_string(axis) +
                   ", got " + std::to_string(a.shape[axis]));
  }

  [[noreturn]] void fail(int at, const std::string& what) const {
    call_.fail(call_.name(at), what);
  }
};

// The name of the capsule in which Python holds the plan of a pattern.
constexpr const char* kPlanCapsule = "wollemi.PatternPlan";

// The plan at `at`; it exists until the submitted work ends.
inline std::shared_ptr<const PatternPlan> plan_at(const Call& call, int at, i64 rows, i64 entries) {
  const auto plan = held_in<const PatternPlan>(kPlanCapsule, call.argument(at));
  if (!plan->is_of(rows, entries))
    call.fail(call.name(at), "was made for another pattern");
  return plan;
}

// The pattern of the matrix argument at `matrix`; the matrix keeps the arrays.
template <class I>
struct PatternArgument : PatternArrays<I> {
  using PatternArrays<I>::m, PatternArrays<I>::n, PatternArrays<I>::nnz;
  using PatternArrays<I>::indptr, PatternArrays<I>::indices;

  PatternArgument(const Call& call, int matrix) {
    static const Name of_indptr("indptr"), of_indices("indices"), of_shape("shape");
    const Object shape = call.member(matrix, of_shape);
    m = call.integer(PyTuple_GetItem(shape.get(), 0));
    n = call.integer(PyTuple_GetItem(shape.get(), 1));
    indptr = array(call, call.member(matrix, of_indptr), "indptr", m + 1);
    nnz = indptr[m];
    indices = array(call, call.member(matrix, of_indices), "indices", nnz);
  }

  std::shared_ptr<const PatternPlan> plan(const Call& call, int at) const {
    return plan_at(call, at, m, nnz);
  }

  // Numbers of the same type, one for each entry, in the argument at `at`.
  static const I* array(const Call& call, int at, i64 size) {
    return array(call, Object::borrow(call.argument(at)), call.name(at), size);
  }

private:
  static const I* array(const Call& call, const Object& object, const char* name, i64 size) {
    const ArrayView a = call.array(object.get(), name);
    const bool neighbours =
        a.ndim == 1 && (a.shape[0] < 2 || a.strides[0] == Py_ssize_t(sizeof(I)));
    if (!neighbours || a.shape[0] != size)
      call.fail(name, "expected " + std::to_string(size) + " neighbouring numbers");
    return reinterpret_cast<const I*>(a.data);
  }
};

// Calls body(I()) with the index type of the matrix argument at `at`.
template <class Body>
auto with_pattern_type(const Call& call, int at, Body&& body) {
  static const Name of_indptr("indptr");
  const Object indptr = call.member(at, of_indptr);
  return with_index_type(call, "indptr", call.array(indptr.get(), "indptr"), body);
}

// Calls body(S(), A) with the type of the real numbers at `values` and the pattern at 0.
template <class Body>
void with_real_pattern(const Call& call, int values, Body&& body) {
  with_real_type(call, call.name(values), call.array(values), [&](auto value) {
    with_pattern_type(call, 0,
                      [&](auto index) { body(value, PatternArgument<decltype(index)>(call, 0)); });
  });
}

} // namespace wl
