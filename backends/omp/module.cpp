// The native module of one instruction-set level, and all that needs pybind11.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstring>
#include <memory>
#include <stdexcept>

#include "call.hpp"
#include "stored.hpp"
#include "tape.hpp"
#include "team.hpp"

namespace py = pybind11;

namespace wl {

void add_generated_entries(PyObject* module);
void add_csr_entries(PyObject* module);
void add_by_columns_entries(PyObject* module);
void add_format_entries(PyObject* module);
void add_structure_entries(PyObject* module);

void add_lane_plan_entries(PyObject* module);
void add_pattern_plan_entries(PyObject* module);
void add_spmm_entries(PyObject* module);
void add_sddmm_entries(PyObject* module);
void add_fusedmm_entries(PyObject* module);
void add_fusedmm_backward_entries(PyObject* module);
void add_mask_product_entries(PyObject* module);
void add_rowwise_entries(PyObject* module);
void add_additive_attention_entries(PyObject* module);

const Context* context_of(PyObject* executor) {
  static const Name name("_context");
  const Object held = Call::member(executor, name);
  return py::handle(held.get()).cast<const Context*>(); // the executor keeps it alive
}

// The numbers of dtypes that packages add to NumPy begin here.
constexpr int kFirstUserType = 256;

static bool is_bfloat16(PyObject* scalar_type) {
  const char* const name = reinterpret_cast<PyTypeObject*>(scalar_type)->tp_name;
  return std::strstr(name, "bfloat16") != nullptr;
}

bool view_array(PyObject* object, ArrayView& view) {
  constexpr int aligned = 0x0100, writeable = 0x0400; // bits of NumPy's flags
  // Not static: the first call gives up the GIL, and whoever has it then would wait for the guard.
  PyTypeObject* const array_type = py::detail::npy_api::get().PyArray_Type_;
  if (!PyObject_TypeCheck(object, array_type))
    return false;
  const auto* const a = py::detail::array_proxy(object);
  const auto* const descriptor = py::detail::array_descriptor_proxy(a->descr);
  view.data = reinterpret_cast<std::byte*>(a->data);
  view.ndim = a->nd;
  view.shape = a->dimensions;
  view.strides = a->strides;
  view.type_number = descriptor->type_num;
  if (view.type_number >= kFirstUserType && is_bfloat16(descriptor->typeobj))
    view.type_number = detail::BFLOAT16;
  view.writeable = (a->flags & writeable) != 0;
  view.aligned = (a->flags & aligned) != 0;
  view.native = descriptor->byteorder != '>';
  return true;
}

std::string dtype_name(int type_number) {
  if (type_number == detail::BFLOAT16)
    return "bfloat16";
  return std::string(py::str(py::dtype(type_number)));
}

Object new_array(int type_number, i64 size, void** data) {
  const bool is_int64 = type_number == detail::LONG_LONG;
  try {
    py::array array(is_int64 ? py::dtype::of<std::int64_t>() : py::dtype(type_number), size);
    *data = array.mutable_data();
    return Object::steal(array.release().ptr());
  } catch (py::error_already_set& error) { // no memory
    error.restore();
    throw_python_error();
  }
}

namespace {

// What a function throws, as pybind11 passes it on.
template <class Function>
auto passing_errors(Function&& function) {
  try {
    return function();
  } catch (const PythonError&) {
    throw py::error_already_set();
  }
}

void add_tape(py::module_& module) {
  py::class_<Context, std::shared_ptr<Context>>(module, "Context", py::module_local(),
                                                "The number of threads that kernels work with.")
      .def(py::init<int>(), py::arg("threads"))
      .def_property_readonly("threads", &Context::threads);

  py::class_<Tape>(module, "Tape", py::module_local(), "A recorded iteration.")
      .def(py::init<std::shared_ptr<Context>>(), py::arg("context"))
      .def(
          "record",
          [](Tape& tape, const py::function& body) {
            passing_errors([&] { tape.record(body.ptr()); });
          },
          py::arg("body"), "Call body; what it submits is kept and not run.")
      .def(
          "run",
          [](const Tape& tape, const py::array_t<i32, py::array::c_style>& running, i64 limit) {
            return passing_errors([&] { return tape.run(running.data(), limit); });
          },
          py::arg("running").noconvert(), py::arg("limit"),
          "Replay until running[0] is 0 or limit times; return how many times.")
      .def("__len__", &Tape::size);

  module.def(
      "record_call",
      [](const py::function& function, const py::tuple& arguments) {
        if (recording() == nullptr)
          throw std::runtime_error("no tape is being recorded");
        recording()->append_call(function.ptr(), arguments.ptr());
      },
      py::arg("function"), py::arg("arguments"),
      "Append a call of Python to the tape that this thread records.");
  module.def(
      "recording", [] { return recording() != nullptr; }, "Whether this thread records a tape.");
}

} // namespace

} // namespace wl

PYBIND11_MODULE(WOLLEMI_NATIVE_MODULE, module) {
  module.doc() = "Kernels on the cores of this machine; wollemi.backends.omp has the Python side.";
  wl::watch_forks();
  wl::passing_errors([] { wl::remember_main_thread(); });
  py::detail::npy_api::get(); // once, where no other thread can wait for it
  wl::add_tape(module);
  wl::add_generated_entries(module.ptr());
  wl::add_csr_entries(module.ptr());
  wl::add_lane_plan_entries(module.ptr());
  wl::add_by_columns_entries(module.ptr());
  wl::add_pattern_plan_entries(module.ptr());
  wl::add_spmm_entries(module.ptr());
  wl::add_sddmm_entries(module.ptr());
  wl::add_fusedmm_entries(module.ptr());
  wl::add_fusedmm_backward_entries(module.ptr());
  wl::add_mask_product_entries(module.ptr());
  wl::add_rowwise_entries(module.ptr());
  wl::add_additive_attention_entries(module.ptr());
  wl::add_format_entries(module.ptr());
  wl::add_structure_entries(module.ptr());
}
