// The entry for functors of other packages, which are functions of shared libraries.
#include "omp/library.hpp"

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "omp/capsule.hpp"
#include "omp/program_text.hpp"

namespace wl {

namespace {

constexpr const char* kCapsule = "library function";

// The kind of an argument.
enum class LibraryKind : u8 { BLOCK, ARRAY, REAL, COMPLEX, INTEGER, STATUS };

const std::unordered_map<std::string_view, LibraryKind> kKinds = {
    {"block", LibraryKind::BLOCK},     {"array", LibraryKind::ARRAY},
    {"real", LibraryKind::REAL},       {"complex", LibraryKind::COMPLEX},
    {"integer", LibraryKind::INTEGER}, {"status", LibraryKind::STATUS},
};

struct LibraryParameter {
  LibraryKind kind;
  i64 item; // bytes of an element
};

// An axis of an argument; for argument -1 a number.
struct LibraryExtent {
  int argument;
  i64 axis;
};

struct LibraryOperation {
  std::string operation;
  std::vector<std::string> words;
  std::vector<const char*> names; // "function", then the names of the parameters
  std::vector<LibraryParameter> parameters;
  LibraryExtent rows, columns;
  bool is_double; // real numbers of the values
  LibraryFunction function;
};

// The arguments of a call, bound. Python has compared them with the signature.
class LibraryWork {
public:
  LibraryWork(std::shared_ptr<const LibraryOperation> operation, const Call& call)
      : operation_(std::move(operation)) {
    for (std::size_t at = 0; at < operation_->parameters.size(); ++at)
      values_.push_back(value_of(call, static_cast<int>(at) + 1, operation_->parameters[at]));
    rows_ = extent_of(call, operation_->rows);
    Extent columns;
    columns.value = columns_ = extent_of(call, operation_->columns);
    slots_ = operation_->is_double ? call.slots<double>(columns) : call.slots<float>(columns);
  }

  i64 elements() const { return rows_ * columns_; }

  void operator()(int threads) const {
    const LibraryCall made{values_.data(), status_, rows_, columns_, slots_};
    operation_->function(&made, threads);
  }

private:
  std::shared_ptr<const LibraryOperation> operation_;
  std::vector<LibraryValue> values_;
  status_of<std::byte> status_{};
  i64 rows_ = 0, columns_ = 0;
  Slots slots_;

  static i64 extent_of(const Call& call, LibraryExtent where) {
    return where.argument < 0 ? where.axis : call.array(where.argument + 1).shape[where.axis];
  }

  template <class R>
  void read_status(const Call& call, int at) {
    Extent columns;
    const status_of<R> read = call.status<R>(at, columns);
    status_ = {read.stop,
               read.iterations,
               reinterpret_cast<std::byte*>(read.norm),
               reinterpret_cast<const std::byte*>(read.threshold),
               reinterpret_cast<std::byte*>(read.history),
               read.running,
               read.capacity,
               read.k};
  }

  LibraryValue value_of(const Call& call, int at, LibraryParameter parameter) {
    LibraryValue value{};
    switch (parameter.kind) {
    case LibraryKind::BLOCK: {
      const ArrayView a = call.array(at);
      value.data = a.data;
      value.ld = a.shape[0] > 1 ? a.strides[0] / parameter.item : a.shape[1];
      break;
    }
    case LibraryKind::ARRAY:
      value.data = call.array(at).data;
      break;
    case LibraryKind::REAL:
      value.re = call.scalar<double>(at);
      break;
    case LibraryKind::COMPLEX: {
      const auto number = call.scalar<complex<double>>(at);
      value.re = number.re, value.im = number.im;
      break;
    }
    case LibraryKind::INTEGER:
      value.whole = call.integer(call.argument(at));
      break;
    default:
      operation_->is_double ? read_status<double>(call, at) : read_status<float>(call, at);
    }
    return value;
  }
};

Object run(const Call& call) {
  const LibraryWork work(held_in<const LibraryOperation>(kCapsule, call.argument(0)), call);
  call.submit(work.elements(), work);
  return none_object();
}

// run_library(executor, function, *arguments), or a half of it with its slots as one more argument.
template <Half HALF>
PyObject* run_library(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count < 2) {
    PyErr_SetString(PyExc_TypeError,
                    "run_library takes an executor, a function and the arguments of its operation");
    return nullptr;
  }
  try {
    const LibraryOperation& made = *held_in<const LibraryOperation>(kCapsule, arguments[1]);
    return run_entry(made.operation.c_str(), made.names.data(), made.names.size(), &run, arguments,
                     count, HALF);
  } catch (const PythonError&) {
    return nullptr;
  }
}

LibraryExtent extent_in(std::string_view words) {
  const int argument = static_cast<int>(integer_of(next_of(words, ' ')));
  return {argument, integer_of(words)};
}

std::shared_ptr<LibraryOperation> parsed(const char* const* texts) {
  auto made = std::make_shared<LibraryOperation>();
  made->operation = texts[0];
  made->words.push_back("function");
  for (std::string_view rest(texts[1]); !rest.empty();)
    made->words.emplace_back(next_of(rest, ' '));
  for (const std::string& word : made->words)
    made->names.push_back(word.c_str());
  std::string_view rest(texts[2]);
  for (std::string_view items = next_of(rest, ';'); !items.empty();) {
    std::string_view item = next_of(items, ',');
    const auto kind = kKinds.find(next_of(item, ' '));
    if (kind == kKinds.end())
      refuse_program("an argument is of no kind");
    made->parameters.push_back({kind->second, integer_of(item)});
  }
  made->rows = extent_in(next_of(rest, ';'));
  made->columns = extent_in(next_of(rest, ';'));
  made->is_double = integer_of(rest) == static_cast<i64>(sizeof(double));
  return made;
}

// library_function(operation, names, text, begin, address): the last two are addresses.
PyObject* library_function(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  constexpr int kTexts = 3, kAll = 5;
  if (count != kAll) {
    PyErr_SetString(PyExc_TypeError, "library_function takes three texts and two addresses");
    return nullptr;
  }
  const char* texts[kTexts];
  for (int at = 0; at < kTexts; ++at) {
    texts[at] = PyUnicode_AsUTF8(arguments[at]);
    if (texts[at] == nullptr)
      return nullptr;
  }
  void* const begin = PyLong_AsVoidPtr(arguments[kTexts]);
  void* const address = PyLong_AsVoidPtr(arguments[kTexts + 1]);
  if (begin == nullptr || address == nullptr) {
    if (PyErr_Occurred() == nullptr)
      PyErr_SetString(PyExc_ValueError, "library_function: an address is 0");
    return nullptr;
  }
  try {
    const auto made = parsed(texts);
    reinterpret_cast<LibraryBegin>(begin)(&run_parts);
    made->function = reinterpret_cast<LibraryFunction>(address);
    return capsule_of<const LibraryOperation>(kCapsule, made).release();
  } catch (const PythonError&) {
    // the indicator is set
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

} // namespace

void add_library_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method_of("library_function", library_function),
      method_of("run_library", run_library<Half::WHOLE>),
      method_of("run_library_visiting", run_library<Half::VISITING>),
      method_of("run_library_finishing", run_library<Half::FINISHING>),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
