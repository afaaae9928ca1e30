#include "omp/call.hpp"

#include <algorithm>
#include <new>
#include <stdexcept>

#include "omp/tape.hpp"

namespace wl {

namespace {

[[noreturn]] void throw_type_error(const std::string& message) {
  PyErr_SetString(PyExc_TypeError, message.c_str());
  throw_python_error();
}

// Without a stream: a process may hold several C++ runtimes with different locales.
std::string shape_of(const ArrayView& a) {
  std::string text = "(";
  for (int axis = 0; axis < a.ndim; ++axis)
    text += (axis ? ", " : "") + std::to_string(a.shape[axis]);
  return text + (a.ndim == 1 ? ",)" : ")");
}

} // namespace

Call::Call(const char* operation, const char* const* names, PyObject* const* arguments,
           Py_ssize_t count, Half half)
    : operation_(operation), names_(names), arguments_(arguments), count_(count),
      context_(context_of(arguments[0])), half_(half) {}

Object Call::member(PyObject* object, const Name& name) {
  PyObject* const found = PyObject_GetAttr(object, name.object);
  if (found == nullptr)
    throw_python_error();
  return Object::steal(found);
}

ArrayView Call::array(PyObject* object, const char* name) const {
  ArrayView view{};
  if (!view_array(object, view))
    fail(name, std::string("expected a NumPy array, got ") + Py_TYPE(object)->tp_name);
  if (!view.native)
    fail(name, "expected an array in the machine's byte order");
  if (!view.aligned)
    fail(name, "expected an aligned array; copy it");
  return view;
}

double Call::real_scalar(int at) const {
  const double value = PyFloat_AsDouble(argument(at));
  if (value == -1.0 && PyErr_Occurred())
    throw_python_error();
  return value;
}

complex<double> Call::complex_scalar(int at) const {
  const Py_complex value = PyComplex_AsCComplex(argument(at));
  if (value.real == -1.0 && PyErr_Occurred())
    throw_python_error();
  return {value.real, value.imag};
}

i64 Call::integer(PyObject* object) const {
  const i64 value = PyLong_AsLongLong(object);
  if (value == -1 && PyErr_Occurred())
    throw_python_error();
  return value;
}

std::string Call::text(int at) const {
  const char* const utf8 = PyUnicode_AsUTF8(argument(at));
  if (utf8 == nullptr)
    throw_python_error();
  return utf8;
}

void Call::read_block(int at, Kind kind, Extent& rows, Extent& columns,
                      mat<std::byte>& read) const {
  const char* const name = names_[at];
  const ArrayView a = array(argument(at), name);
  require(a, name, kind.type_number, 2, kind.writes);
  bind(name, a, 0, rows);
  bind(name, a, 1, columns);
  read = {a.data, row_stride(a, kind.item, name)};
}

std::byte* Call::read_contiguous(PyObject* object, const char* name, Kind kind,
                                 Extent* const* shape, int ndim) const {
  const ArrayView a = array(object, name);
  require(a, name, kind.type_number, ndim, kind.writes);
  for (int axis = 0; axis < ndim; ++axis)
    bind(name, a, axis, *shape[axis]);
  require_contiguous(a, kind.item, name);
  return a.data;
}

status_of<std::byte> Call::read_status(int at, Kind real, Extent& columns) const {
  static const Name stop("stop"), iterations("iterations"), norm("norm"), threshold("threshold"),
      history("history"), running("running");
  Extent capacity, one{1};
  // The status keeps its arrays.
  const auto field = [&](const Name& name, Kind kind, auto&... extents) {
    Extent* const shape[] = {&extents...};
    const Object held = member(at, name);
    return read_contiguous(held.get(), name.text, kind, shape, sizeof...(extents));
  };
  status_of<std::byte> s{};
  s.stop = reinterpret_cast<u8*>(field(stop, kind_of<u8>(), columns));
  s.iterations = reinterpret_cast<i64*>(field(iterations, kind_of<i64>(), columns));
  s.norm = field(norm, real, columns);
  s.threshold = field(threshold, real, columns);
  s.history = field(history, real, capacity, columns);
  s.running = reinterpret_cast<i32*>(field(running, kind_of<i32>(), one));
  s.capacity = capacity;
  s.k = columns;
  return s;
}

void Call::submit_any(i64 elements, const void* work, const WorkKind& kind) const {
  if (recording() != nullptr)
    append(Work(work, kind));
  else if (elements < kHoldsGil)
    kind.run(work, context_->threads());
  else
    at_once([&](int threads) { kind.run(work, threads); });
}

void Call::append(Work work) const {
  std::vector<Object> arguments;
  for (Py_ssize_t i = 0; i < count_; ++i)
    arguments.push_back(Object::borrow(arguments_[i]));
  recording()->append(std::move(work), std::move(arguments));
}

void Call::refuse_recording() const {
  if (recording() != nullptr)
    throw std::runtime_error(std::string(operation_) +
                             " returns new arrays and cannot be part of a recorded iteration");
}

void Call::require(const ArrayView& a, const char* name, int type_number, int ndim,
                   bool writes) const {
  const bool same_type = a.type_number == type_number ||
                         (type_number == detail::LONG_LONG && a.type_number == detail::LONG);
  if (!same_type)
    fail_dtype(name, a, dtype_name(type_number).c_str());
  if (a.ndim != ndim)
    fail(name, "expected " + std::to_string(ndim) + " dimensions, got shape " + shape_of(a));
  if (writes && !a.writeable)
    fail(name, "is written to, but the array is read-only");
}

void Call::require_contiguous(const ArrayView& a, std::size_t item, const char* name) const {
  if (std::find(a.shape, a.shape + a.ndim, 0) != a.shape + a.ndim)
    return;
  auto stride = static_cast<Py_ssize_t>(item);
  for (int axis = a.ndim - 1; axis >= 0; --axis) {
    if (a.shape[axis] != 1 && a.strides[axis] != stride)
      fail(name, "expected a contiguous array");
    stride *= a.shape[axis];
  }
}

i64 Call::row_stride(const ArrayView& a, std::size_t item_size, const char* name) const {
  const auto item = static_cast<Py_ssize_t>(item_size);
  const Py_ssize_t rows = a.shape[0], columns = a.shape[1];
  if (rows == 0 || columns == 0)
    return columns;
  const bool neighbours = columns == 1 || a.strides[1] == item;
  const bool apart = rows == 1 || (a.strides[0] >= columns * item && a.strides[0] % item == 0);
  if (!neighbours || !apart)
    fail(name, "expected adjacent columns and rows that do not overlap");
  return rows == 1 ? columns : a.strides[0] / item;
}

void Call::bind(const char* name, const ArrayView& a, int axis, Extent& extent) const {
  if (extent.value < 0)
    extent.value = a.shape[axis];
  else if (extent.value != a.shape[axis])
    fail_extent(name, a, axis, extent.value);
}

void Call::fail(const char* name, const std::string& what) const {
  throw_type_error(std::string(operation_) + ": " + name + ": " + what);
}

void Call::fail_dtype(const char* name, const ArrayView& got, const char* expected) const {
  fail(name, std::string("expected dtype ") + expected + ", got " + dtype_name(got.type_number));
}

void Call::fail_extent(const char* name, const ArrayView& got, int axis, i64 expected) const {
  fail(name, "expected " + std::to_string(expected) + " along axis " + std::to_string(axis) +
                 " as in the arguments before it, got shape " + shape_of(got));
}

PyObject* run_entry(const char* operation, const char* const* names, std::size_t name_count,
                    Object (*run)(const Call&), PyObject* const* arguments, Py_ssize_t count,
                    Half half) noexcept {
  try {
    const auto expected = static_cast<Py_ssize_t>(name_count) + (half == Half::WHOLE ? 0 : 1);
    if (count != expected + 1)
      throw_type_error(std::string(operation) + " takes an executor and " +
                       std::to_string(expected) + " arguments, got " + std::to_string(count));
    return run(Call(operation, names, arguments, count, half)).release();
  } catch (const PythonError&) {
    // the indicator is set
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::overflow_error& error) {
    PyErr_SetString(PyExc_OverflowError, error.what());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

void add_methods(PyObject* module, PyMethodDef* methods) {
  if (PyModule_AddFunctions(module, methods) != 0)
    throw_python_error();
}

} // namespace wl
