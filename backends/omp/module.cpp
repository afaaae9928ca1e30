// The native module of one instruction-set level, and all that needs pybind11.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "omp/batch_lanes.hpp"
#include "omp/call.hpp"
#include "omp/rank_memory.hpp"
#include "omp/stored.hpp"
#include "omp/tape.hpp"
#include "omp/team.hpp"

namespace py = pybind11;

namespace wl {

void add_generated_entries(PyObject* module);
void add_csr_entries(PyObject* module);
void add_by_columns_entries(PyObject* module);
void add_format_entries(PyObject* module);
void add_structure_entries(PyObject* module);
void add_function_entries(PyObject* module);
void add_interleaved_entries(PyObject* module);
void add_memory_entries(PyObject* module);
void add_text_entries(PyObject* module);
void add_argument_entries(PyObject* module);
void add_batch_direct_entries(PyObject* module);

void add_lane_plan_entries(PyObject* module);
void add_pattern_plan_entries(PyObject* module);
void add_spmm_entries(PyObject* module);
void add_sddmm_entries(PyObject* module);
void add_edge_function_entries(PyObject* module);
void add_step_program_entries(PyObject* module);
void add_library_entries(PyObject* module);
void add_fusedmm_entries(PyObject* module);
void add_fusedmm_backward_entries(PyObject* module);
void add_mask_product_entries(PyObject* module);
void add_rowwise_entries(PyObject* module);
void add_ffi_entries(PyObject* module);
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
  // Not static: the first call gives up the GIL, and the next holder of the GIL would wait for the
  // guard.
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

// Exceptions of a function, as pybind11 passes them on.
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
          py::arg("body"), "Call body; its submissions are kept and not run.")
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

// Where the elements of an array are; the elements of operands are only read.
template <class T>
T* data_of(const py::handle& object, const char* name) {
  const py::array array(py::reinterpret_borrow<py::array>(object.attr(name)));
  return static_cast<T*>(const_cast<void*>(array.data()));
}

BatchMember member_of(const py::handle& object) {
  const auto tape = [&](const char* name) -> const Tape* {
    const py::object held = object.attr(name);
    return held.is_none() ? nullptr : held.cast<const Tape*>();
  };
  const py::object status = object.attr("status"), flags = object.attr("flags");
  BatchMember m{};
  m.refresh = tape("refresh");
  m.measure = tape("measure");
  m.restart = tape("restart");
  m.iterate = tape("iterate");
  m.finish = tape("finish");
  m.judge = tape("judge");
  m.values = data_of<std::byte>(object, "values");
  m.b = data_of<std::byte>(object, "b");
  m.x = data_of<std::byte>(object, "x");
  if (!flags.is_none()) {
    m.flags = data_of<i64>(object, "flags");
    m.flag_count = py::array(flags).size();
  }
  m.stop = data_of<u8>(status, "stop");
  m.running = data_of<i32>(status, "running");
  m.iterations = data_of<i64>(status, "iterations");
  m.threshold = data_of<void>(status, "threshold");
  m.norm = data_of<void>(status, "norm");
  m.first = data_of<void>(status, "first");
  m.truth = data_of<void>(status, "true");
  m.largest = data_of<void>(status, "largest");
  m.cycle = object.attr("cycle").cast<i64>();
  m.progress = object.attr("progress").cast<double>();
  return m;
}

BatchSystems systems_of(const py::handle& object) {
  const auto row_bytes = [&](const char* name) {
    const py::array array(py::reinterpret_borrow<py::array>(object.attr(name)));
    return static_cast<i64>(array.shape(1)) * static_cast<i64>(array.itemsize());
  };
  BatchSystems s{};
  s.count = py::array(object.attr("codes")).size();
  s.matrix = data_of<i64>(object, "matrix");
  s.values = data_of<std::byte>(object, "values");
  s.value_bytes = row_bytes("values");
  s.b = data_of<std::byte>(object, "b");
  s.x = data_of<std::byte>(object, "x");
  s.vector_bytes = row_bytes("x");
  s.relative = data_of<double>(object, "relative");
  s.absolute = data_of<double>(object, "absolute");
  s.limit = object.attr("limit").cast<i64>();
  s.least = object.attr("least").cast<double>();
  s.most = object.attr("most").cast<double>();
  s.least_norm = object.attr("least_norm").cast<double>();
  s.codes = data_of<u8>(object, "codes");
  s.iterations = data_of<i64>(object, "iterations");
  s.norms = data_of<double>(object, "norms");
  s.thresholds = data_of<double>(object, "thresholds");
  return s;
}

LaneArray lane_array_of(const py::handle& object) {
  const py::array lanes(py::reinterpret_borrow<py::array>(object.attr("lanes")));
  LaneArray array{};
  if (!object.attr("one").is_none())
    array.one = data_of<std::byte>(object, "one");
  array.lanes = data_of<std::byte>(object, "lanes");
  array.rows = lanes.ndim() > 1 ? static_cast<i64>(lanes.shape(0)) : 1;
  array.item = static_cast<i64>(lanes.itemsize());
  array.leaves = object.attr("leaves").cast<bool>();
  return array;
}

BatchLanes lanes_of(const py::handle& object) {
  BatchLanes l{};
  l.iterate = object.attr("iterate").cast<const Tape*>();
  l.width = object.attr("width").cast<i64>();
  l.values = lane_array_of(object.attr("values"));
  const py::list arrays = object.attr("arrays");
  for (const py::handle& array : arrays)
    l.arrays.push_back(lane_array_of(array));
  const py::object status = object.attr("status");
  l.stop = data_of<u8>(status, "stop");
  l.running = data_of<i32>(status, "running");
  return l;
}

void add_batch(py::module_& module) {
  module.def(
      "solve_systems",
      [](const py::list& members, const py::list& lanes, const py::object& systems,
         bool of_double) {
        std::vector<BatchMember> all;
        for (const py::handle& member : members)
          all.push_back(member_of(member));
        std::vector<BatchLanes> all_lanes;
        for (const py::handle& of_member : lanes)
          all_lanes.push_back(lanes_of(of_member));
        const BatchSystems data = systems_of(systems);
        passing_errors([&] {
          const ReleasedGil released;
          const Interruption interruption;
          if (of_double)
            solve_systems<double>(all, all_lanes, data);
          else
            solve_systems<float>(all, all_lanes, data);
          interruption.end();
        });
      },
      py::arg("members"), py::arg("lanes"), py::arg("systems"), py::arg("of_double"),
      "Solve many systems by the tapes of one for each thread, and lanes where it has them.");
}

// Runs a step now, or when the tape that is being recorded is replayed; the tape keeps objects.
template <class Step>
void submit_step(Step step, std::vector<Object> kept) {
  passing_errors([&] {
    if (recording() != nullptr) {
      const auto work = [step](int) { step(); };
      recording()->append(Work(&work, work_kind<std::remove_const_t<decltype(work)>>),
                          std::move(kept));
      return;
    }
    const ReleasedGil released;
    step();
  });
}

u8* bytes_of(const py::array& array) { return static_cast<u8*>(const_cast<void*>(array.data())); }

void add_rank_memory(py::module_& module) {
  using Bytes = py::array_t<u8, py::array::c_style>;
  py::class_<RankMemory, std::shared_ptr<RankMemory>>(module, "RankMemory", py::module_local(),
                                                      "Totals of ranks that share memory.")
      .def(py::init([](const Bytes& window, int rank, int size, const py::array_t<i64>& requests,
                       bool crowded, const py::function& look, const py::function& obey) {
             return std::make_shared<RankMemory>(bytes_of(window), rank, size, requests.data(),
                                                 crowded, Object::borrow(look.ptr()),
                                                 Object::borrow(obey.ptr()));
           }),
           py::arg("window").noconvert(), py::arg("rank"), py::arg("size"),
           py::arg("requests").noconvert(), py::arg("crowded"), py::arg("look"), py::arg("obey"),
           py::keep_alive<1, 2>(), py::keep_alive<1, 5>())
      .def_static("bytes", &RankMemory::bytes, py::arg("size"), "Return the bytes of a window.")
      .def_property_readonly_static("most", [](const py::object&) { return RankPost::kBytes; })
      .def(
          "total",
          [](const std::shared_ptr<RankMemory>& memory, const py::array& numbers, int kind) {
            const auto submit = [&](auto* place) {
              const auto count = static_cast<i64>(numbers.size());
              submit_step([=] { memory->total(place, count, RankTotal(kind)); },
                          {Object::borrow(numbers.ptr())});
            };
            u8* const place = bytes_of(numbers);
            if (numbers.itemsize() == sizeof(double))
              submit(reinterpret_cast<double*>(place));
            else
              submit(reinterpret_cast<float*>(place));
          },
          py::arg("numbers"), py::arg("kind"),
          "Replace float32 or float64 numbers by their sums, maxima or norms over the ranks.");

  py::class_<RankRows, std::shared_ptr<RankRows>>(module, "RankRows", py::module_local(),
                                                  "Rows that a rank exchanges with others.")
      .def(
          py::init([](std::shared_ptr<RankMemory> ranks, int rank, const py::object& mine,
                      i64 bytes, std::vector<int> targets,
                      const std::vector<std::array<i64, 3>>& sources, const py::function& connect) {
            std::vector<RankPart> parts;
            for (const auto& [from, place, size] : sources)
              parts.push_back({static_cast<int>(from), place, size});
            u8* const memory = mine.is_none() ? nullptr : bytes_of(mine.cast<Bytes>());
            return std::make_shared<RankRows>(std::move(ranks), rank, memory, bytes,
                                              std::move(targets), std::move(parts),
                                              Object::borrow(connect.ptr()));
          }),
          py::arg("ranks"), py::arg("rank"), py::arg("mine"), py::arg("bytes"), py::arg("targets"),
          py::arg("sources"), py::arg("connect"), py::keep_alive<1, 4>())
      .def_static("memory_bytes", &RankRows::memory_bytes, py::arg("size"), py::arg("packed"),
                  "Return the bytes of the memory of a rank that packs a number of bytes.")
      .def(
          "send",
          [](const std::shared_ptr<RankRows>& rows, const py::array& packed) {
            const u8* const place = bytes_of(packed);
            submit_step([rows, place] { rows->send(place); }, {Object::borrow(packed.ptr())});
          },
          py::arg("packed"))
      .def(
          "receive",
          [](const std::shared_ptr<RankRows>& rows, const py::array& ghosts) {
            u8* const place = bytes_of(ghosts);
            submit_step([rows, place] { rows->receive(place); }, {Object::borrow(ghosts.ptr())});
          },
          py::arg("ghosts"));
}

} // namespace

} // namespace wl

PYBIND11_MODULE(WOLLEMI_NATIVE_MODULE, module) {
  module.doc() = "Kernels on the cores of this machine; wollemi.backends.omp has the Python side.";
  wl::watch_forks();
  wl::passing_errors([] { wl::remember_main_thread(); });
  py::detail::npy_api::get(); // once, where no other thread can wait for it
  wl::add_tape(module);
  wl::add_batch(module);
  wl::add_rank_memory(module);
  wl::add_generated_entries(module.ptr());
  wl::add_csr_entries(module.ptr());
  wl::add_lane_plan_entries(module.ptr());
  wl::add_by_columns_entries(module.ptr());
  wl::add_pattern_plan_entries(module.ptr());
  wl::add_spmm_entries(module.ptr());
  wl::add_sddmm_entries(module.ptr());
  wl::add_edge_function_entries(module.ptr());
  wl::add_step_program_entries(module.ptr());
  wl::add_library_entries(module.ptr());
  wl::add_fusedmm_entries(module.ptr());
  wl::add_fusedmm_backward_entries(module.ptr());
  wl::add_mask_product_entries(module.ptr());
  wl::add_rowwise_entries(module.ptr());
  wl::add_ffi_entries(module.ptr());
  wl::add_additive_attention_entries(module.ptr());
  wl::add_format_entries(module.ptr());
  wl::add_structure_entries(module.ptr());
  wl::add_function_entries(module.ptr());
  wl::add_interleaved_entries(module.ptr());
  wl::add_memory_entries(module.ptr());
  wl::add_text_entries(module.ptr());
  wl::add_argument_entries(module.ptr());
  wl::add_batch_direct_entries(module.ptr());
}
