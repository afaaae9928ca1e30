// csr.spmv_transposed: products with the transpose without its rows.
#include "by_columns.hpp"
#include "csr_arrays.hpp"
#include "ml.hpp"

namespace wl {

namespace {

// How Python holds parts.
constexpr const char* kCapsule = "wollemi.ColumnParts";
using Held = std::shared_ptr<const ColumnParts>;

Object capsule_of(ColumnParts parts) {
  auto held = std::make_unique<Held>(std::make_shared<const ColumnParts>(std::move(parts)));
  PyObject* const capsule = PyCapsule_New(held.get(), kCapsule, [](PyObject* self) {
    delete static_cast<Held*>(PyCapsule_GetPointer(self, kCapsule));
  });
  if (capsule == nullptr)
    throw_python_error();
  held.release();
  return Object::steal(capsule);
}

const Held& parts_in(PyObject* capsule) {
  void* const held = PyCapsule_GetPointer(capsule, kCapsule);
  if (held == nullptr)
    throw_python_error();
  return *static_cast<const Held*>(held);
}

// The parts of a pattern, made once for it.
struct column_parts_entry {
  static constexpr const char* operation = "csr.spmv_transposed";
  static constexpr const char* symbol = "column_parts";
  static constexpr const char* names[] = {"A"};
  static Object run(const Call& call) {
    return with_pattern_type(call, 0, [&](auto index) {
      using I = decltype(index);
      const PatternArgument<I> A(call, 0);
      return capsule_of(call.at_once(
          [&](int threads) { return column_parts(A.m, A.indptr, A.indices, threads); }));
    });
  }
};

struct csr_by_columns_entry {
  static constexpr const char* operation = "csr.spmv_transposed";
  static constexpr const char* symbol = "csr_by_columns";
  static constexpr const char* names[] = {"A", "x", "y", "alpha", "beta", "parts"};
  static Object run(const Call& call) {
    const CsrArgument argument(call, 0);
    argument.with_arrays([&](const auto& A) { apply(call, A, parts_in(call.argument(5))); });
    return none_object();
  }

private:
  template <class T, class I>
  static void apply(const Call& call, const CsrArrays<T, I>& A, const Held& parts) {
    const SpmvOperands<T> o = spmv_operands<T>(call, A.n, A.m);
    call.submit(A.nnz() * o.k, [=](int threads) { multiply_by_columns(A, *parts, o, threads); });
  }
};

} // namespace

void add_by_columns_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<column_parts_entry>(), method<csr_by_columns_entry>(), {nullptr, nullptr, 0, nullptr}};
  add_methods(module, methods);
}

} // namespace wl
