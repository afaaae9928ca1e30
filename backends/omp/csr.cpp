// csr.spmv, what it keeps between products, and csr.diagonal.
#include "csr_state.hpp"

#include "parallel.hpp"

namespace wl {

namespace {

// A matrix argument and the objects that own its arrays.
struct CsrArgument {
  Object data, indices, indptr;

  CsrArgument(const Call& call, int at) {
    static const Name of_data("data"), of_indices("indices"), of_indptr("indptr");
    data = call.member(at, of_data);
    indices = call.member(at, of_indices);
    indptr = call.member(at, of_indptr);
  }

  template <class T, class I>
  CsrArrays<T, I> arrays(const Call& call) const {
    return {static_cast<I>(call.array(indptr.get(), "indptr").shape[0] - 1),
            call.contiguous_member<const I>(indptr, "indptr", 1),
            call.contiguous_member<const I>(indices, "indices", 1),
            call.contiguous_member<const T>(data, "data", 1)};
  }
};

// Calls body(T(), I()) with the types of a matrix.
template <class Body>
auto with_types(const Call& call, const CsrArgument& A, Body&& body) {
  return with_value_type(call, "data", call.array(A.data.get(), "data"), [&](auto value) {
    return with_index_type(call, "indptr", call.array(A.indptr.get(), "indptr"),
                           [&](auto index) { return body(value, index); });
  });
}

// How Python holds a state.
constexpr const char* kCapsule = "wollemi.CsrState";

Object capsule_of(std::shared_ptr<CsrState> state) {
  if (!state)
    return none_object();
  auto* const held = new std::shared_ptr<CsrState>(std::move(state));
  PyObject* const capsule = PyCapsule_New(held, kCapsule, [](PyObject* self) {
    delete static_cast<std::shared_ptr<CsrState>*>(PyCapsule_GetPointer(self, kCapsule));
  });
  if (capsule == nullptr) {
    delete held;
    throw_python_error();
  }
  return Object::steal(capsule);
}

const std::shared_ptr<CsrState>& state_in(const Object& capsule) {
  void* const held = PyCapsule_GetPointer(capsule.get(), kCapsule);
  if (held == nullptr)
    throw_python_error();
  return *static_cast<std::shared_ptr<CsrState>*>(held);
}

// The state in the plan of a matrix, which is made now if there is none.
Object state_of(const Call& call, int at) {
  static const Name hidden("_plan"), plan("plan"), state("state");
  Object found = call.member(at, hidden);
  if (found.get() == Py_None)
    found = call.member(at, plan);
  return Call::member(found.get(), state);
}

struct csr_spmv_entry {
  static constexpr const char* operation = "csr.spmv";
  static constexpr const char* symbol = "csr_spmv";
  static constexpr const char* names[] = {"A", "x", "y", "alpha", "beta"};
  static Object run(const Call& call) {
    const Object state = state_of(call, 0);
    const CsrArgument A(call, 0);
    with_types(call, A, [&](auto value, auto index) {
      using T = decltype(value);
      using I = decltype(index);
      const CsrArrays<T, I> arrays = A.arrays<T, I>(call);
      Extent m{arrays.m}, n, k;
      const SpmvOperands<T> operands{call.block<const T>(1, n, k), call.block<T>(2, m, k), k,
                                     call.scalar<T>(3), call.scalar<T>(4)};
      const auto typed = std::dynamic_pointer_cast<CsrStateOf<T, I>>(state_in(state));
      if (!typed)
        call.fail("A", "its plan was made for other dtypes; convert with astype");
      call.submit(arrays.indptr[arrays.m] * k,
                  [=](int threads) { typed->spmv(arrays, operands, threads); });
    });
    return none_object();
  }
};

// The state of a kernel for a matrix, or None where the kernel does not pay.
struct csr_state_entry {
  static constexpr const char* operation = "csr.plan";
  static constexpr const char* symbol = "csr_state";
  static constexpr const char* names[] = {"A", "kernel"};
  static Object run(const Call& call) {
    const std::string kernel = call.text(1);
    const CsrArgument A(call, 0);
    const int parts = call.context().threads();
    return with_types(call, A, [&](auto value, auto index) {
      using T = decltype(value);
      using I = decltype(index);
      const CsrArrays<T, I> arrays = A.arrays<T, I>(call);
      std::shared_ptr<CsrState> made;
      if (kernel == "pattern") {
        RowPatterns<I> patterns;
        if (pack_patterns(arrays.m, arrays.indptr, arrays.indices, patterns))
          made = std::make_shared<CsrPatterns<T, I>>(arrays, std::move(patterns), parts);
      } else {
        made = std::make_shared<CsrRows<T, I>>(arrays, parts);
      }
      return capsule_of(std::move(made));
    });
  }
};

struct csr_diagonal_entry {
  static constexpr const char* operation = "csr.diagonal";
  static constexpr const char* symbol = "csr_diagonal";
  static constexpr const char* names[] = {"A", "d"};
  static Object run(const Call& call) {
    const CsrArgument A(call, 0);
    with_types(call, A, [&](auto value, auto index) {
      using T = decltype(value);
      using I = decltype(index);
      const CsrArrays<T, I> arrays = A.arrays<T, I>(call);
      Extent length;
      T* const d = call.contiguous<T>(1, length);
      if (length > arrays.m)
        call.fail("d", "is longer than the matrix has rows");
      const i64 n = length, nnz = arrays.indptr[arrays.m];
      call.submit(nnz, [=](int threads) {
        const int parts = nnz < kSerialElements ? 1 : threads;
#pragma omp parallel for schedule(static) num_threads(parts) if (parts > 1)
        for (i64 i = 0; i < n; ++i) {
          T sum(0);
          for (I e = arrays.indptr[i]; e < arrays.indptr[i + 1]; ++e)
            if (arrays.indices[e] == i)
              sum += arrays.data[e];
          d[i] = sum;
        }
      });
    });
    return none_object();
  }
};

} // namespace

void add_csr_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<csr_spmv_entry>(),
      method<csr_state_entry>(),
      method<csr_diagonal_entry>(),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
