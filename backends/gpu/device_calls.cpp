// The handler of XLA's foreign function interface for GPUs: it repeats kernel launches on other
// arrays, on XLA's stream. The first call with a layout of arrays goes to Python, which computes
// the result and returns the launches, if the computation consisted only of launches. Otherwise
// every call goes to Python.
#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "omp/ffi_call.hpp"
#include "omp/ffi_names.hpp"

namespace py = pybind11;

namespace wl {

namespace {

using i64 = std::int64_t;

// cuLaunchKernel and hipModuleLaunchKernel. Their address comes from Python: nothing is linked.
using LaunchFunction = int (*)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                               unsigned block_x, unsigned block_y, unsigned block_z,
                               unsigned shared, void* stream, void** arguments, void** extra);

// An argument that is an address: `offset` bytes behind the beginning of an array.
struct Place {
  std::size_t argument, array;
  i64 offset;
};

struct Launch {
  void* function;
  unsigned grid, block, shared;
  std::vector<std::uint64_t> arguments; // one slot of 8 bytes for each
  std::vector<Place> places;
};

// The values besides the addresses that determine the launches: the device, the remainders of the
// addresses, and which arrays are equal.
using Layout = std::vector<std::uint32_t>;

struct Known {
  Layout layout;
  std::vector<Launch> launches;
};

// One call in a compiled program.
class DeviceCall {
public:
  DeviceCall(py::object compute, i64 launch, unsigned alignment)
      : compute_(std::move(compute)), launch_(reinterpret_cast<LaunchFunction>(launch)),
        alignment_(alignment) {}
  // XLA may end a call on a thread of its own: the GIL is taken, and no member is left to be
  // released after it. Once Python has ended, its objects stay.
  ~DeviceCall() {
    py::handle compute = compute_.release(), owners = owners_.release();
    if (Py_IsInitialized() == 0)
      return;
    const py::gil_scoped_acquire gil;
    compute.dec_ref();
    owners.dec_ref();
  }
  DeviceCall(const DeviceCall&) = delete;
  DeviceCall& operator=(const DeviceCall&) = delete;

  void run(int device, void* stream, const std::vector<std::uintptr_t>& addresses) {
    const Layout layout = layout_of(device, addresses);
    if (const auto known = known_for(layout)) {
      for (const Launch& launch : known->launches)
        repeat(launch, stream, addresses);
      return;
    }
    const py::gil_scoped_acquire gil;
    py::tuple places(addresses.size());
    for (std::size_t i = 0; i < addresses.size(); ++i)
      places[i] = py::int_(addresses[i]);
    const py::object made =
        compute_(device, py::int_(reinterpret_cast<std::uintptr_t>(stream)), places);
    if (!made.is_none())
      remember(layout, made);
  }

  std::size_t known() const {
    const std::lock_guard<std::mutex> guard(mutex_);
    return known_.size();
  }

private:
  static constexpr std::size_t kMostLayouts = 16;

  py::object compute_;
  py::list owners_; // of the memory that launches use
  const LaunchFunction launch_;
  const unsigned alignment_;
  std::vector<std::shared_ptr<const Known>> known_;
  mutable std::mutex mutex_;

  Layout layout_of(int device, const std::vector<std::uintptr_t>& addresses) const {
    Layout layout{static_cast<std::uint32_t>(device)};
    for (const std::uintptr_t address : addresses) {
      layout.push_back(static_cast<std::uint32_t>(address % alignment_));
      const auto first = std::find(addresses.begin(), addresses.end(), address);
      layout.push_back(static_cast<std::uint32_t>(first - addresses.begin()));
    }
    return layout;
  }

  std::shared_ptr<const Known> known_for(const Layout& layout) const {
    const std::lock_guard<std::mutex> guard(mutex_);
    for (const auto& known : known_)
      if (known->layout == layout)
        return known;
    return nullptr;
  }

  // `made` is (launches, owner); a launch is (function, grid, block, shared, bytes of its
  // arguments, (argument, array, offset) of its addresses).
  void remember(const Layout& layout, const py::object& made) {
    auto known = std::make_shared<Known>();
    known->layout = layout;
    const py::tuple pair = made;
    for (const py::handle& each : pair[0]) {
      const py::tuple told = py::reinterpret_borrow<py::tuple>(each);
      Launch launch{reinterpret_cast<void*>(told[0].cast<std::uintptr_t>()),
                    told[1].cast<unsigned>(),
                    told[2].cast<unsigned>(),
                    told[3].cast<unsigned>(),
                    {},
                    {}};
      const std::string bytes = told[4].cast<py::bytes>();
      launch.arguments.resize(bytes.size() / sizeof(std::uint64_t));
      std::copy_n(bytes.data(), launch.arguments.size() * sizeof(std::uint64_t),
                  reinterpret_cast<char*>(launch.arguments.data()));
      for (const py::handle& place : told[5]) {
        const py::tuple at = py::reinterpret_borrow<py::tuple>(place);
        launch.places.push_back(
            {at[0].cast<std::size_t>(), at[1].cast<std::size_t>(), at[2].cast<i64>()});
      }
      known->launches.push_back(std::move(launch));
    }
    owners_.append(pair[1]);
    const std::lock_guard<std::mutex> guard(mutex_);
    if (known_.size() < kMostLayouts)
      known_.push_back(std::move(known));
  }

  void repeat(const Launch& launch, void* stream,
              const std::vector<std::uintptr_t>& addresses) const {
    thread_local std::vector<std::uint64_t> slots;
    thread_local std::vector<void*> pointers;
    slots = launch.arguments;
    for (const Place& place : launch.places)
      slots[place.argument] = addresses[place.array] + static_cast<std::uintptr_t>(place.offset);
    pointers.resize(slots.size());
    for (std::size_t i = 0; i < slots.size(); ++i)
      pointers[i] = &slots[i];
    const int failed = launch_(launch.function, launch.grid, 1, 1, launch.block, 1, 1,
                               launch.shared, stream, pointers.data(), nullptr);
    if (failed != 0)
      throw FfiError("the driver refused a launch with error " + std::to_string(failed));
  }
};

FfiNames<DeviceCall>& names() {
  static FfiNames<DeviceCall> calls;
  return calls;
}

i64 name_call(const std::shared_ptr<DeviceCall>& call) { return names().name(call); }

std::shared_ptr<DeviceCall> named_call(i64 name) {
  auto call = names().find(name);
  if (call == nullptr)
    throw FfiError("a kernel of this program is gone: the program was compiled in another process, "
                   "or it outlived its compilation; compile it again");
  return call;
}

void device_call(const FfiCall& call) {
  std::vector<std::uintptr_t> addresses;
  for (i64 i = 0; i < call.operands(); ++i)
    addresses.push_back(reinterpret_cast<std::uintptr_t>(call.operand(i).data));
  addresses.push_back(reinterpret_cast<std::uintptr_t>(call.result().data));
  try {
    named_call(call.integer("call"))->run(call.device(), call.stream(), addresses);
  } catch (const py::error_already_set& error) {
    const py::gil_scoped_acquire gil;
    throw FfiError(error.what());
  }
}

std::shared_ptr<const void> owner_of(const FfiCall& call) {
  return named_call(call.integer("call"));
}

} // namespace

} // namespace wl

PYBIND11_MODULE(_device_calls, module) {
  module.doc() = "The handler by which XLA's programs launch kernels of GPUs.";
  py::class_<wl::DeviceCall, std::shared_ptr<wl::DeviceCall>>(module, "DeviceCall",
                                                              "One call in a compiled program.")
      .def(py::init<py::object, std::int64_t, unsigned>(), py::arg("compute"), py::arg("launch"),
           py::arg("alignment"))
      .def_property_readonly("known", &wl::DeviceCall::known,
                             "How many layouts of arrays it has launches for.");
  module.def("name_call", &wl::name_call, py::arg("call"),
             "Return a number by which programs of this process name a call.");
  module.def(
      "handlers",
      [] {
        const auto capsule = [](const void* address) { return py::capsule(address); };
        py::dict stages, found, state;
        stages["instantiate"] =
            capsule(reinterpret_cast<const void*>(&wl::ffi_instantiate<wl::owner_of>));
        stages["execute"] =
            capsule(reinterpret_cast<const void*>(&wl::ffi_handler<wl::device_call>));
        found["wollemi_device"] = stages;
        state["type_id"] = capsule(&wl::FfiOwner::id);
        state["type_info"] = capsule(&wl::FfiOwner::info);
        return py::make_tuple(found, state);
      },
      "Return the handlers of XLA's foreign function interface by name, with their stages, and the "
      "type of the state that executables keep.");
}
