// csr.spmv, its state between products, and csr.diagonal.
#include "omp/capsule.hpp"
#include "omp/csr_entry.hpp"
#include "omp/entries.hpp"
#include "omp/parallel.hpp"

namespace wl {

namespace {

// The name of the capsule in which Python holds a state.
constexpr const char* kCapsule = "wollemi.CsrState";

} // namespace

Object capsule_of(std::shared_ptr<CsrState> state) {
  return state ? capsule_of(kCapsule, std::move(state)) : none_object();
}

const std::shared_ptr<CsrState>& state_in(const Object& capsule) {
  return held_in<CsrState>(kCapsule, capsule.get());
}

namespace {

// The state in the plan of a matrix; the first call makes it.
Object state_of(const Call& call, int at) {
  static const Name hidden("_plan"), plan("plan"), state("state");
  Object found = call.member(at, hidden);
  if (found.get() == Py_None)
    found = call.member(at, plan);
  return Call::member(found.get(), state);
}

// The type number of the dtype that products with a matrix are computed in.
int computed_in(const Call& call, int at) {
  static const Name dtype("dtype"), number("num");
  const Object held = call.member(at, dtype);
  return static_cast<int>(call.integer(Call::member(held.get(), number).get()));
}

struct csr_spmv_entry {
  static constexpr const char* operation = "csr.spmv";
  static constexpr const char* symbol = "csr_spmv";
  static constexpr auto& names = kSpmvNames;
  static Object run(const Call& call) {
    const Object state = state_of(call, 0);
    const CsrArgument argument(call, 0);
    const int stored = argument.values().type_number, computed = call.array(1).type_number;
    if (stored != computed && is_storage(stored, computed))
      multiply_stored(call, argument, computed, state_in(state));
    else
      argument.with_arrays(
          [&](auto A) { multiply<typename decltype(A)::Value>(call, A, state_in(state)); });
    return none_object();
  }
};

// The product by the state of a plan alone, for a matrix without its original arrays.
struct planned_spmv_entry {
  static constexpr const char* operation = "planned.spmv";
  static constexpr const char* symbol = "planned_spmv";
  static constexpr auto& names = kSpmvNames;
  static Object run(const Call& call) {
    static const Name nnz("nnz");
    with_value_type(call, "x", call.array(1), [&](auto value) {
      using T = decltype(value);
      const auto typed = std::dynamic_pointer_cast<CsrStateFor<T>>(state_in(state_of(call, 0)));
      if (!typed || !typed->holds_entries())
        call.fail("A", "its plan holds no entries for operands of this dtype");
      const Shape shape(call, 0);
      const SpmvOperands<T> o = spmv_operands<T>(call, shape.m, shape.n);
      const i64 entries = call.integer(call.member(0, nnz).get());
      call.submit(entries * o.k, [=](int threads) { typed->spmv_alone(o, threads); });
    });
    return none_object();
  }
};

// y = A x in y, or as a new vector where y is None; None where the operands need more than a
// kernel: another dtype, several columns, gaps, a y that is part of x, a tape, or a new y with
// memory that the executor aligns. Products of small matrices take less time than Python's checks
// of their operands: for 100 rows and 500 entries 0.4 of 9 microseconds.
struct csr_product_entry {
  static constexpr const char* operation = "csr.spmv";
  static constexpr const char* symbol = "csr_product";
  static constexpr const char* names[] = {"A", "x", "y"};
  static Object run(const Call& call) {
    ArrayView x, y;
    const CsrArgument argument(call, 0);
    const int stored = argument.values().type_number;
    if (recording() != nullptr || stored != computed_in(call, 0) ||
        !is_vector(call.argument(1), x, stored, argument.columns()))
      return none_object();
    const bool given = call.argument(2) != Py_None;
    if (given && (!is_vector(call.argument(2), y, stored, argument.rows()) || !y.writeable))
      return none_object();
    const Object state = state_of(call, 0);
    return argument.with_arrays(
        [&](const auto& A) { return made(call, A, x, given ? &y : nullptr, state_in(state)); });
  }

private:
  static constexpr i64 kLargest = 65536; // bytes of a y that need not begin a cache line

  static bool is_vector(PyObject* object, ArrayView& view, int type_number, i64 length) {
    return view_array(object, view) && view.ndim == 1 && view.aligned && view.native &&
           view.type_number == type_number && view.shape[0] == length;
  }

  template <class T, class I>
  static Object made(const Call& call, const CsrArrays<T, I>& A, const ArrayView& x,
                     const ArrayView* y, const std::shared_ptr<CsrState>& state) {
    const auto typed = std::dynamic_pointer_cast<CsrStateOf<T, T, I>>(state);
    if (!typed || x.strides[0] != sizeof(T))
      return none_object();
    const auto multiply = [&](T* target) {
      const SpmvOperands<T> o{{reinterpret_cast<const T*>(x.data), 1}, {target, 1}, 1, T(1), T(0)};
      call.submit(A.nnz(), [=](int threads) { typed->spmv(A, o, threads); });
    };
    if (y != nullptr) {
      const std::byte *const x_end = x.data + A.n * sizeof(T), *const y_end =
                                                                   y->data + A.m * sizeof(T);
      if (y->strides[0] != sizeof(T) || (y->data < x_end && x.data < y_end))
        return none_object();
      multiply(reinterpret_cast<T*>(y->data));
      return Object::borrow(call.argument(2));
    }
    if (A.m * i64(sizeof(T)) > kLargest)
      return none_object();
    const NewArray<T> made(A.m);
    multiply(made.data);
    return made.object;
  }
};

// The state of a kernel for a matrix, or None if the kernel is not faster.
struct csr_state_entry {
  static constexpr const char* operation = "csr.plan";
  static constexpr const char* symbol = "csr_state";
  static constexpr const char* names[] = {"A", "kernel"};
  static Object run(const Call& call) {
    const CsrArgument argument(call, 0);
    const std::string kernel = call.text(1);
    const int computed = computed_in(call, 0);
    if (argument.values().type_number != computed)
      return capsule_of(made_stored(call, argument, computed, kernel));
    return argument.with_arrays([&](auto A) {
      using T = typename decltype(A)::Value;
      return capsule_of(
          call.at_once([&](int threads) { return made_state<T>(A, kernel, threads); }));
    });
  }
};

// The bytes of a state; None for another object.
struct csr_state_bytes_entry {
  static constexpr const char* operation = "csr.plan";
  static constexpr const char* symbol = "csr_state_bytes";
  static constexpr const char* names[] = {"state"};
  static Object run(const Call& call) {
    PyObject* const state = call.argument(0);
    if (!PyCapsule_IsValid(state, kCapsule))
      return none_object();
    return whole_number(state_in(Object::borrow(state))->bytes());
  }
};

// Called by the plan when the values of its matrix have changed.
struct csr_update_entry {
  static constexpr const char* operation = "csr.plan";
  static constexpr const char* symbol = "csr_update";
  static constexpr const char* names[] = {"A", "state"};
  static Object run(const Call& call) {
    const CsrArgument argument(call, 0);
    const auto state = state_in(Object::borrow(call.argument(1)));
    const int computed = computed_in(call, 0);
    if (argument.values().type_number != computed)
      update_stored(call, argument, computed, state);
    else
      argument.with_arrays(
          [&](auto A) { update_state<typename decltype(A)::Value>(call, A, state); });
    return none_object();
  }
};

struct csr_diagonal_entry {
  static constexpr const char* operation = "csr.diagonal";
  static constexpr const char* symbol = "csr_diagonal";
  static constexpr const char* names[] = {"A", "d"};
  static Object run(const Call& call) {
    const CsrArgument argument(call, 0);
    argument.with_arrays([&](auto A) {
      using T = typename decltype(A)::Value;
      Extent length{std::min(A.m, A.n)};
      T* const d = call.contiguous<T>(1, length);
      const i64 n = length;
      call.submit(A.nnz(), [=](int threads) {
        const int parts = A.nnz() < kSerialElements ? 1 : threads;
        for_parts(parts, [&](int part) {
          const Share rows(n, part, parts);
          for (i64 i = rows.begin; i < rows.end; ++i) {
            T sum(0);
            for (auto e = A.indptr[i]; e < A.indptr[i + 1]; ++e)
              if (A.indices[e] == i)
                sum += A.data[e];
            d[i] = sum;
          }
        });
      });
    });
    return none_object();
  }
};

} // namespace

void add_csr_entries(PyObject* module) {
  add_entries<csr_spmv_entry, planned_spmv_entry, csr_product_entry, csr_state_entry,
              csr_state_bytes_entry, csr_update_entry, csr_diagonal_entry>(module);
}

} // namespace wl
