// The arguments of one call from Python, read in place: pybind11's casts cost 130 ns for an array,
// and these a few ns. pybind11's headers add seconds to the compilation of every file that includes
// them, so that only call.cpp does.
#pragma once

#include <Python.h>

#include <cstddef>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>

#include "omp/context.hpp"
#include "omp/interruption.hpp"
#include "omp/slots.hpp"
#include "unified/status.hpp"

namespace wl {

// A reference to a Python object.
class Object {
public:
  Object() = default;
  static Object steal(PyObject* object) { return Object(object); }
  static Object borrow(PyObject* object) {
    Py_XINCREF(object);
    return Object(object);
  }
  Object(Object&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Object(const Object& other) : object_(other.object_) { Py_XINCREF(object_); }
  Object& operator=(Object other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Object() { Py_XDECREF(object_); }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }

private:
  explicit Object(PyObject* object) : object_(object) {}
  PyObject* object_ = nullptr;
};

// The name of a member, made into a Python string once.
struct Name {
  const char* text;
  PyObject* const object;
  explicit Name(const char* name) : text(name), object(PyUnicode_InternFromString(name)) {}
};

// Other Python threads run while this object exists.
struct ReleasedGil {
  PyThreadState* const state = PyEval_SaveThread();
  ReleasedGil() = default;
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;
  ~ReleasedGil() { PyEval_RestoreThread(state); }
};

// One dimension of a signature: bound by the first array that has it, compared with the others.
struct Extent {
  i64 value = -1;
  operator i64() const { return value; }
};

// An array before its dtype is a C++ type.
struct ArrayView {
  std::byte* data;
  int ndim;
  const Py_ssize_t* shape;
  const Py_ssize_t* strides;
  int type_number;
  bool writeable, aligned, native;
};

namespace detail {

// The type numbers of NumPy's C API, the same in its versions 1 and 2.
enum type_number {
  UINT8 = 2,
  INT32 = 5,
  LONG = 7,
  LONG_LONG = 9,
  FLOAT32 = 11,
  FLOAT64 = 12,
  COMPLEX64 = 14,
  COMPLEX128 = 15
};

template <class T>
constexpr int number_of = -1;
template <>
inline constexpr int number_of<u8> = UINT8;
template <>
inline constexpr int number_of<i32> = INT32;
template <>
inline constexpr int number_of<i64> = LONG_LONG;
template <>
inline constexpr int number_of<float> = FLOAT32;
template <>
inline constexpr int number_of<double> = FLOAT64;
template <>
inline constexpr int number_of<complex<float>> = COMPLEX64;
template <>
inline constexpr int number_of<complex<double>> = COMPLEX128;

template <class T>
struct element {
  using type = T;
  static constexpr bool is_const = false;
};
template <class T>
struct element<const T> {
  using type = T;
  static constexpr bool is_const = true;
};

} // namespace detail

// Defined in module.cpp. The data that an executor keeps alive; NumPy's array of an object, false
// if it is no array; the name of a dtype; a new array and the address of its elements.
const Context* context_of(PyObject* executor);
bool view_array(PyObject* object, ArrayView& view);
std::string dtype_name(int type_number);
Object new_array(int type_number, i64 size, void** data);

class Call {
public:
  // `arguments` begins with the executor; `names` are the names of the arguments after it.
  Call(const char* operation, const char* const* names, PyObject* const* arguments,
       Py_ssize_t count, Half half);

  const Context& context() const { return *context_; }
  PyObject* argument(int at) const { return arguments_[at + 1]; }
  const char* name(int at) const { return names_[at]; }

  // A member of an argument, such as the indices of a matrix.
  Object member(int at, const Name& name) const { return member(argument(at), name); }
  static Object member(PyObject* object, const Name& name);

  ArrayView array(int at) const { return array(argument(at), names_[at]); }
  ArrayView array(PyObject* object, const char* name) const;

  // T[n,k]: adjacent columns, any distance between rows.
  template <class T>
  mat<T> block(int at, Extent& rows, Extent& columns) const {
    mat<std::byte> read{};
    read_block(at, kind_of<T>(), rows, columns, read);
    return {reinterpret_cast<T*>(read.data), read.ld};
  }

  // An array without gaps in any number of dimensions.
  template <class T, class... Extents>
  T* contiguous(int at, Extents&... extents) const {
    return bound<T>(argument(at), names_[at], extents...);
  }

  // An array of a matrix, which keeps it.
  template <class T, class... Extents>
  T* member_array(const Object& object, const char* name, Extents&&... extents) const {
    return bound<T>(object.get(), name, extents...);
  }

  template <class T>
  T scalar(int at) const {
    if constexpr (same<T, real_t<T>>::value) {
      return static_cast<T>(real_scalar(at));
    } else {
      const complex<double> value = complex_scalar(at);
      return {static_cast<real_t<T>>(value.re), static_cast<real_t<T>>(value.im)};
    }
  }

  i64 integer(PyObject* object) const;
  std::string text(int at) const;

  template <class T>
  status_of<T> status(int at, Extent& columns) const {
    using R = real_t<T>;
    const status_of<std::byte> read = read_status(at, kind_of<R>(), columns);
    return {read.stop,
            read.iterations,
            reinterpret_cast<R*>(read.norm),
            reinterpret_cast<const R*>(read.threshold),
            reinterpret_cast<R*>(read.history),
            read.running,
            read.capacity,
            read.k};
  }

  // Where the sums are between the halves of an operation, which is the last argument of a half.
  template <class R>
  Slots slots(Extent& columns) const {
    if (half_ == Half::WHOLE)
      return {};
    Extent words;
    return {half_, bound<R>(arguments_[count_ - 1], "slots", words, columns)};
  }

  // Runs `work(threads)`, or appends it to the tape that is being recorded. The GIL is released if
  // there are enough `elements` for other threads to gain from it.
  template <class W>
  void submit(i64 elements, const W& work) const {
    submit_any(elements, &work, work_kind<W>);
  }

  // For entries that return new arrays: runs `work(threads)` without the GIL, and never on a tape.
  template <class W>
  auto compute(W&& work) const {
    refuse_recording();
    return at_once(work);
  }

  // Runs `work(threads)` without the GIL; Ctrl-C ends it.
  template <class W>
  auto at_once(W&& work) const {
    const ReleasedGil released;
    const Interruption interruption;
    if constexpr (std::is_void_v<decltype(work(1))>) {
      work(context_->threads());
      interruption.end();
    } else {
      auto result = work(context_->threads());
      interruption.end();
      return result;
    }
  }

  [[noreturn]] void fail(const char* name, const std::string& what) const;
  [[noreturn]] void fail_dtype(const char* name, const ArrayView& got, const char* expected) const;

private:
  // The required properties of an array. Most of the time of an entry is spent reading its
  // arguments, and most of this code is shared: as little as possible is a template.
  struct Kind {
    int type_number;
    std::size_t item;
    bool writes;
  };
  template <class T>
  static constexpr Kind kind_of() {
    using U = typename detail::element<T>::type;
    return {detail::number_of<U>, sizeof(U), !detail::element<T>::is_const};
  }

  // The number of elements up to which the GIL is kept: a few microseconds of work.
  static constexpr i64 kHoldsGil = 4096;

  const char* operation_;
  const char* const* names_;
  PyObject* const* arguments_;
  Py_ssize_t count_;
  const Context* context_;
  Half half_;

  template <class T, class... Extents>
  T* bound(PyObject* object, const char* name, Extents&... extents) const {
    Extent* const shape[] = {&extents...};
    return reinterpret_cast<T*>(
        read_contiguous(object, name, kind_of<T>(), shape, sizeof...(Extents)));
  }

  status_of<std::byte> read_status(int at, Kind real, Extent& columns) const;
  void read_block(int at, Kind kind, Extent& rows, Extent& columns, mat<std::byte>& read) const;
  std::byte* read_contiguous(PyObject* object, const char* name, Kind kind, Extent* const* shape,
                             int ndim) const;
  void bind(const char* name, const ArrayView& a, int axis, Extent& extent) const;
  void submit_any(i64 elements, const void* work, const WorkKind& kind) const;
  void append(Work work) const;
  void refuse_recording() const;
  double real_scalar(int at) const;
  complex<double> complex_scalar(int at) const;
  void require(const ArrayView& a, const char* name, int type_number, int ndim, bool writes) const;
  void require_contiguous(const ArrayView& a, std::size_t item, const char* name) const;
  i64 row_stride(const ArrayView& a, std::size_t item, const char* name) const;
  [[noreturn]] void fail_extent(const char* name, const ArrayView& got, int axis,
                                i64 expected) const;
};

// Calls `body(T())` with the value type of an array.
template <class Body>
auto with_value_type(const Call& call, const char* name, const ArrayView& a, Body&& body) {
  switch (a.type_number) {
  case detail::FLOAT32:
    return body(float());
  case detail::FLOAT64:
    return body(double());
  case detail::COMPLEX64:
    return body(complex<float>());
  case detail::COMPLEX128:
    return body(complex<double>());
  default:
    call.fail_dtype(name, a, "float32, float64, complex64 or complex128");
  }
}

// Calls `body(I())` with the index type of an array.
template <class Body>
auto with_index_type(const Call& call, const char* name, const ArrayView& a, Body&& body) {
  switch (a.type_number) {
  case detail::INT32:
    return body(i32());
  case detail::LONG:
  case detail::LONG_LONG:
    return body(i64());
  default:
    call.fail_dtype(name, a, "int32 or int64");
  }
}

// Runs an operation for Python: C++ exceptions become Python's.
PyObject* run_entry(const char* operation, const char* const* names, std::size_t name_count,
                    Object (*run)(const Call&), PyObject* const* arguments, Py_ssize_t count,
                    Half half) noexcept;

// An operation, or half of it, as Python calls it. `Entry` has the operation's name, the names of
// its arguments after the executor, and `static Object run(const Call&)`; a half has the slots as
// one more argument. The docstring of a step's entry says which text of its functor it was built
// from.
template <class Entry, Half HALF = Half::WHOLE>
PyMethodDef method(const char* symbol = Entry::symbol, const char* text = nullptr) {
  const auto call = [](PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    return run_entry(Entry::operation, Entry::names, std::size(Entry::names), &Entry::run,
                     arguments, count, HALF);
  };
  PyObject* (*const function)(PyObject*, PyObject* const*, Py_ssize_t) = call;
  return {symbol, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function)), METH_FASTCALL,
          text};
}

// A new one-dimensional array of NumPy and the address of its elements.
template <class T>
struct NewArray {
  Object object;
  T* data;
  explicit NewArray(i64 size) {
    void* elements = nullptr;
    object = new_array(detail::number_of<T>, size, &elements);
    data = static_cast<T*>(elements);
  }
};

template <class... Arrays>
Object tuple_of(const Arrays&... arrays) {
  PyObject* const tuple = PyTuple_Pack(sizeof...(arrays), arrays.object.get()...);
  if (tuple == nullptr)
    throw_python_error();
  return Object::steal(tuple);
}

inline Object none_object() { return Object::borrow(Py_None); }

inline Object whole_number(i64 value) {
  PyObject* const made = PyLong_FromLongLong(value);
  if (made == nullptr)
    throw_python_error();
  return Object::steal(made);
}

// The entry of a function that takes its arguments as an array.
inline PyMethodDef method_of(const char* name,
                             PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function)), METH_FASTCALL,
          nullptr};
}

// Adds operations to the module; `methods` ends with an empty entry and is never freed.
void add_methods(PyObject* module, PyMethodDef* methods);

} // namespace wl
