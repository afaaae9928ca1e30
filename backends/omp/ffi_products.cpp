// Handlers of XLA's foreign function interface: compiled programs of JAX call products without
// Python. The operands and the result are XLA's memory.
#include "omp/ffi_pattern.hpp"

#include <cstring>
#include <vector>

#include "omp/capsule.hpp"
#include "omp/batched_operands.hpp"
#include "omp/entries.hpp"

namespace wl {

namespace {

StoredType stored_type(const XLA_FFI_Buffer& buffer) {
  switch (buffer.dtype) {
  case XLA_FFI_DataType_F16:
    return StoredType::float16;
  case XLA_FFI_DataType_BF16:
    return StoredType::bfloat16;
  case XLA_FFI_DataType_F32:
    return StoredType::float32;
  case XLA_FFI_DataType_F64:
    return StoredType::float64;
  default:
    throw FfiError("expected values of float16, bfloat16, float32 or float64");
  }
}

// The arrays of a call after the arrays of the pattern: blocks[b,...], of as many blocks as the
// result or of one block for all.
class Operands {
public:
  explicit Operands(const FfiCall& call)
      : call_(call), first_(pattern_operands(call)), type_(stored_type(call.result())) {}

  i64 count() const { return call_.operands() - first_; }
  i64 blocks() const { return call_.result().dims[0]; }
  StoredType type() const { return type_; }

  StoredBatch dense(i64 at) const { return batch(checked(at, 3)); }
  i64 columns(i64 at) const { return checked(at, 3).dims[2]; }
  StoredBatch numbers(i64 at) const { return batch(checked(at, 2)); }
  StoredBatch result(i64 rank) const {
    if (call_.result().rank != rank)
      throw FfiError("expected a result of " + std::to_string(rank) + " dimensions");
    return batch(call_.result());
  }

private:
  const FfiCall& call_;
  const i64 first_;
  const StoredType type_;

  const XLA_FFI_Buffer& checked(i64 at, i64 rank) const {
    const XLA_FFI_Buffer& buffer = call_.operand(first_ + at);
    if (buffer.rank != rank || stored_type(buffer) != type_ ||
        (buffer.dims[0] != 1 && buffer.dims[0] != blocks()))
      throw FfiError("operand " + std::to_string(at) + ": expected " + std::to_string(rank) +
                     " dimensions, the dtype of the result, and one block or " +
                     std::to_string(blocks()));
    return buffer;
  }

  static StoredBatch batch(const XLA_FFI_Buffer& buffer) {
    const i64 ld = buffer.rank == 3 ? buffer.dims[2] : 0;
    const i64 step = buffer.dims[0] == 1 ? 0 : buffer.dims[1] * (buffer.rank == 3 ? ld : 1);
    return {buffer.data, step, ld};
  }
};

i64 bytes_of_type(StoredType type) {
  switch (type) {
  case StoredType::float64:
    return 8;
  case StoredType::float32:
    return 4;
  default:
    return 2;
  }
}

// Values in the order of a transpose, during a product with it.
class InOrder {
public:
  InOrder(StoredBatch values, StoredType type, i64 blocks, const FfiPattern& pattern)
      : values_(values) {
    if (pattern.order == nullptr)
      return;
    const i64 nnz = pattern.arrays.nnz, there = values.step == 0 ? 1 : blocks;
    memory_ = std::make_unique<std::byte[]>(there * nnz * bytes_of_type(type));
    with_stored(type, pattern.arrays, [&](auto value, auto A) {
      using S = decltype(value);
      const auto* const order = static_cast<const typename decltype(A)::Index*>(pattern.order);
      for (i64 b = 0; b < there; ++b) {
        const S* const from = static_cast<const S*>(values.data) + b * values.step;
        S* const to = reinterpret_cast<S*>(memory_.get()) + b * nnz;
        constexpr i64 together = 4096;
        for_each_near((nnz + together - 1) / together, threads_for(nnz, 1, pattern.threads),
                      [&](i64 piece) {
                        const i64 end = std::min(nnz, (piece + 1) * together);
                        for (i64 e = piece * together; e < end; ++e)
                          to[e] = from[order[e]];
                      });
      }
    });
    values_ = {memory_.get(), there == 1 ? 0 : nnz, 0};
  }

  StoredBatch values() const { return values_; }

private:
  StoredBatch values_;
  std::unique_ptr<std::byte[]> memory_;
};

// Numbers of entries that only fill up the result are 0.
void clear_rest(const FfiCall& call, const FfiPattern& pattern) {
  const XLA_FFI_Buffer& out = call.result();
  const i64 rest = out.dims[1] - pattern.arrays.nnz, item = bytes_of_type(stored_type(out));
  for (i64 b = 0; rest > 0 && b < out.dims[0]; ++b)
    std::memset(static_cast<std::byte*>(out.data) + (b * out.dims[1] + pattern.arrays.nnz) * item,
                0, rest * item);
}

void require(i64 got, i64 expected, const char* name) {
  if (got != expected)
    throw FfiError(std::string(name) + ": expected " + std::to_string(expected) + ", got " +
                   std::to_string(got));
}

void spmm_of_call(const FfiCall& call) {
  const auto pattern = pattern_of(call, Rows::cut, call.integer("transposed") != 0);
  const Operands given(call);
  require(call.result().dims[1], pattern->arrays.m, "rows of the result");
  const InOrder weights(given.numbers(0), given.type(), given.blocks(), *pattern);
  compute(StoredSpmm{given.type(), pattern->arrays, pattern->plan.get(), pattern->by_reduction,
                     given.blocks(), given.columns(1), weights.values(), given.dense(1),
                     given.result(3)},
          pattern->threads);
}

void sddmm_of_call(const FfiCall& call) {
  const auto pattern = pattern_of(call, Rows::cut, false);
  const Operands given(call);
  compute(StoredSddmm{given.type(), pattern->arrays, pattern->plan.get(), given.blocks(),
                      given.columns(0), given.dense(0), given.dense(1), given.result(2)},
          pattern->threads);
  clear_rest(call, *pattern);
}

void fusedmm_of_call(const FfiCall& call) {
  const auto pattern = pattern_of(call, Rows::cut, false);
  const Operands given(call);
  const i64 first = given.count() == 4 ? 1 : 0; // values come before the dense operands
  const std::string edge = call.text("edge");
  const StoredBatch values = first == 1 ? given.numbers(0) : StoredBatch{nullptr, 0, 0};
  require(call.result().dims[1], pattern->arrays.m, "rows of the result");
  compute(StoredFusedmm{given.type(), pattern->arrays, pattern->plan.get(), given.blocks(),
                        given.columns(first), given.columns(first + 2), values, given.dense(first),
                        given.dense(first + 1), given.dense(first + 2), given.result(3),
                        call.real("alpha"), edge.c_str()},
          pattern->threads);
}

void softmax_of_call(const FfiCall& call) {
  const auto pattern = pattern_of(call, Rows::whole, false);
  const Operands given(call);
  compute(StoredSoftmax{given.type(), pattern->arrays, pattern->plan.get(), given.blocks(),
                        given.numbers(0), given.result(2)},
          pattern->threads);
  clear_rest(call, *pattern);
}

void row_sum_of_call(const FfiCall& call) {
  const auto pattern = pattern_of(call, Rows::whole, false);
  const Operands given(call);
  require(call.result().dims[1], pattern->arrays.m, "rows of the result");
  compute(StoredRowSum{given.type(), pattern->arrays, pattern->plan.get(), given.blocks(),
                       given.numbers(0), given.result(2)},
          pattern->threads);
}

void contract_of_call(const FfiCall& call) {
  const auto pattern = pattern_of(call, Rows::whole, false);
  if (pattern->order == nullptr)
    throw FfiError("a contraction has the places of its first factors with its pattern");
  const Operands given(call);
  require(call.result().dims[1], pattern->arrays.m, "rows of the result");
  compute(StoredContraction{given.type(), pattern->arrays, pattern->order, pattern->plan.get(),
                            given.blocks(), given.numbers(0), given.numbers(1), given.result(2)},
          pattern->threads);
}

void spread_of_call(const FfiCall& call) {
  const auto pattern = pattern_of(call, Rows::whole, false);
  const Operands given(call);
  compute(StoredSpread{given.type(), pattern->arrays, pattern->plan.get(), given.blocks(),
                       given.numbers(0), given.result(2)},
          pattern->threads);
  clear_rest(call, *pattern);
}

struct Handler {
  const char* name;
  XLA_FFI_Handler* function;
};

constexpr Handler kHandlers[] = {
    {"wollemi_spmm", ffi_handler<spmm_of_call>},
    {"wollemi_sddmm", ffi_handler<sddmm_of_call>},
    {"wollemi_fusedmm", ffi_handler<fusedmm_of_call>},
    {"wollemi_softmax", ffi_handler<softmax_of_call>},
    {"wollemi_row_sum", ffi_handler<row_sum_of_call>},
    {"wollemi_contract", ffi_handler<contract_of_call>},
    {"wollemi_spread", ffi_handler<spread_of_call>},
};

constexpr const char* kPatternCapsule = "wollemi.FfiPattern";

// A pattern bound to compiled programs, and the Python objects that own its arrays.
struct BoundPattern {
  FfiPattern pattern;
  std::vector<Object> owners;
};

// The last owner may be a call that XLA runs on a thread of its own, without the GIL. Once Python
// has ended, its objects stay.
std::shared_ptr<BoundPattern> new_bound_pattern() {
  return {new BoundPattern, [](BoundPattern* bound) {
            if (Py_IsInitialized() == 0)
              return;
            const PyGILState_STATE gil = PyGILState_Ensure();
            delete bound;
            PyGILState_Release(gil);
          }};
}

// Binds a matrix's pattern with its plan; `order` belongs to a transpose, or is None. Returns the
// number by which programs name it, and its owner.
struct ffi_pattern_entry {
  static constexpr const char* operation = "ffi.pattern";
  static constexpr const char* symbol = "ffi_pattern";
  static constexpr const char* names[] = {"A", "order", "plan", "lanes"};
  static Object run(const Call& call) {
    static const Name of_indptr("indptr"), of_indices("indices");
    auto bound = new_bound_pattern();
    with_pattern_type(call, 0, [&](auto index) {
      using I = decltype(index);
      const PatternArgument<I> A(call, 0);
      FfiPattern& made = bound->pattern;
      made.arrays = {A.m, A.n, A.nnz, A.indptr, A.indices, sizeof(I) == sizeof(i64)};
      if (call.argument(1) != Py_None)
        made.order = PatternArgument<I>::array(call, 1, A.nnz);
      made.plan = A.plan(call, 2);
      made.by_reduction = call.text(3) == "entries";
      made.threads = call.context().threads();
    });
    bound->owners.push_back(call.member(0, of_indptr));
    bound->owners.push_back(call.member(0, of_indices));
    bound->owners.push_back(Object::borrow(call.argument(1)));
    const i64 name = name_pattern({bound, &bound->pattern});
    const Object number = whole_number(name);
    const Object owner = capsule_of(kPatternCapsule, std::move(bound));
    PyObject* const both = PyTuple_Pack(2, number.get(), owner.get());
    if (both == nullptr)
      throw_python_error();
    return Object::steal(both);
  }
};

// A function or an object as Python passes it to XLA.
Object address_capsule(const void* address) {
  PyObject* const capsule = PyCapsule_New(const_cast<void*>(address), nullptr, nullptr);
  if (capsule == nullptr)
    throw_python_error();
  return Object::steal(capsule);
}

Object pair_of(const char* first, const void* one, const char* second, const void* other) {
  const Object a = address_capsule(one), b = address_capsule(other);
  PyObject* const made = Py_BuildValue("{s:O,s:O}", first, a.get(), second, b.get());
  if (made == nullptr)
    throw_python_error();
  return Object::steal(made);
}

// Names of handlers, each with a dictionary of its stages.
struct ffi_handlers_entry {
  static constexpr const char* operation = "ffi.handlers";
  static constexpr const char* symbol = "ffi_handlers";
  static constexpr const char* names[] = {"handlers"};
  static Object run(const Call& call) {
    XLA_FFI_Handler* const instantiate = ffi_instantiate<owner_of>;
    for (const Handler& handler : kHandlers) {
      const Object stages = pair_of("instantiate", reinterpret_cast<const void*>(instantiate),
                                    "execute", reinterpret_cast<const void*>(handler.function));
      if (PyDict_SetItemString(call.argument(0), handler.name, stages.get()) != 0)
        throw_python_error();
    }
    return pair_of("type_id", &FfiOwner::id, "type_info", &FfiOwner::info);
  }
};

} // namespace

void add_ffi_entries(PyObject* module) {
  add_entries<ffi_pattern_entry, ffi_handlers_entry>(module);
}

} // namespace wl
