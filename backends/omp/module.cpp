// The native module of one instruction-set level.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <memory>

#include "call.hpp"
#include "tape.hpp"

namespace py = pybind11;

namespace wl {

void add_generated_entries(PyObject* module);
void add_csr_entries(PyObject* module);
void add_format_entries(PyObject* module);
void add_structure_entries(PyObject* module);


void add_pattern_plan_entries(PyObject* module);
void add_spmm_entries(PyObject* module);
void add_sddmm_entries(PyObject* module);
void add_fusedmm_entries(PyObject* module);

namespace {

void add_tape(py::module_& module) {
  py::class_<Context, std::shared_ptr<Context>>(module, "Context", py::module_local(),
                                                "The number of threads that kernels work with.")
      .def(py::init<int>(), py::arg("threads"))
      .def_property_readonly("threads", &Context::asked)
      .def_property_readonly("threads_now", &Context::threads,
                             "1 in a forked child of a process that has used its threads.");

  py::class_<Tape>(module, "Tape", py::module_local(), "A recorded iteration.")
      .def(py::init<std::shared_ptr<Context>>(), py::arg("context"))
      .def("record", &Tape::record, py::arg("body"),
           "Call body; what it submits is kept and not run.")
      .def(
          "run",
          [](const Tape& tape, const py::array_t<i32, py::array::c_style>& running, i64 limit) {
            return tape.run(running.data(), limit);
          },
          py::arg("running").noconvert(), py::arg("limit"),
          "Replay until running[0] is 0 or limit times; return how many times.")
      .def("__len__", &Tape::size);

  module.def(
      "recording", [] { return recording() != nullptr; }, "Whether this thread records a tape.");
}

} // namespace

} // namespace wl

PYBIND11_MODULE(WOLLEMI_NATIVE_MODULE, module) {
  module.doc() = "Kernels on the cores of this machine; wollemi.backends.omp has the Python side.";
  wl::watch_forks();
  wl::add_tape(module);
  wl::add_generated_entries(module.ptr());
  wl::add_csr_entries(module.ptr());
  wl::add_pattern_plan_entries(module.ptr());
  wl::add_spmm_entries(module.ptr());
  wl::add_sddmm_entries(module.ptr());
  wl::add_fusedmm_entries(module.ptr());
  wl::add_format_entries(module.ptr());
  wl::add_structure_entries(module.ptr());
}
