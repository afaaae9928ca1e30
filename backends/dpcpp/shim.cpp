// Features that dpctl lacks, as plain C functions: compile source text at run time, launch the
// kernels of the result, and launch a recorded list repeatedly without Python.
//
// shim.py builds it on the user's machine, with any C++17 compiler and the SYCL headers. It uses a
// few functions of Python's stable ABI, so one build serves all versions of Python.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <sycl/sycl.hpp>
#include <vector>

#include "cpu/find_patterns.hpp"
#include "dpcpp/opencl_programs.hpp"

extern "C" {
int Py_IsInitialized();
int PyGILState_Ensure();
void PyGILState_Release(int);
void Py_DecRef(void*);
int PyCapsule_IsValid(void*, const char*);
void* PyCapsule_GetPointer(void*, const char*);
}

namespace {

namespace exp = sycl::ext::oneapi::experimental;
using bundle = sycl::kernel_bundle<sycl::bundle_state::executable>;

// The last error of this thread, and its kind.
enum failure : int { FINE = 0, FAILED = 1, OUT_OF_MEMORY = 2, REFUSED = 3 };
thread_local std::string last_error;

failure fail(failure kind, const std::string& message) {
  last_error = message;
  return kind;
}

failure fail(const sycl::exception& error) {
  const bool memory = error.code() == sycl::errc::memory_allocation;
  return fail(memory ? OUT_OF_MEMORY : FAILED, error.what());
}

// Errors of a device while no thread was waiting, kept until they are read.
class late_errors {
public:
  void keep(const std::string& message) {
    const std::lock_guard<std::mutex> lock(mutex_);
    message_ += (message_.empty() ? "" : "; ") + message;
    any_ = true;
  }
  void raise() {
    if (!any_)
      return;
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::string message = std::move(message_);
    message_.clear();
    any_ = false;
    throw std::runtime_error(message);
  }

private:
  std::atomic<bool> any_{false};
  std::mutex mutex_;
  std::string message_;
};

// A queue in addition to dpctl's queue. dpctl's has no handler of asynchronous errors: without a
// handler they end the process.
struct place {
  sycl::queue queue;
  std::shared_ptr<late_errors> late;
  // Held while a thread submits. When threads submitted to the CPU driver at the same time, solves
  // of one solver did not converge, and some ended the process.
  std::mutex submitting;

  explicit place(const sycl::queue& like) : late(std::make_shared<late_errors>()) {
    const auto handler = [kept = late](const sycl::exception_list& list) {
      for (const std::exception_ptr& one : list)
        try {
          std::rethrow_exception(one);
        } catch (const std::exception& error) {
          kept->keep(error.what());
        } catch (...) {
          kept->keep("an exception of no known kind");
        }
    };
    queue = sycl::queue(like.get_context(), like.get_device(), handler,
                        sycl::property_list{sycl::property::queue::in_order()});
  }

  void wait() {
    queue.wait_and_throw();
    late->raise();
  }
};

template <class Body>
int guarded(const Body& body) {
  try {
    body();
    return FINE;
  } catch (const sycl::exception& error) {
    return fail(error);
  } catch (const std::bad_alloc&) {
    return fail(OUT_OF_MEMORY, "the host is out of memory");
  } catch (const std::exception& error) {
    return fail(FAILED, error.what());
  }
}

// A program that was compiled, or loaded from its machine code.
struct program {
  std::optional<bundle> compiled;
  std::optional<wl::opencl_programs> loaded;

  [[nodiscard]] sycl::kernel kernel(const std::string& name, std::size_t arguments) const {
    return loaded ? loaded->kernel(name, arguments) : bundle(*compiled).ext_oneapi_get_kernel(name);
  }
};

// A kernel and the layout of its arguments: one slot of eight bytes each, and a letter for its type
// (P pointer, q and i integers, d and f floating-point numbers).
struct kernel {
  sycl::kernel function;
  std::string kinds;
};

struct launch {
  const kernel* what;
  std::size_t blocks, block;
  std::vector<std::uint64_t> slots;
};

// Launches in their order. If there are many repetitions, they become a graph of several
// repetitions.
struct recorded {
  std::vector<launch> launches;
  std::unique_ptr<exp::command_graph<exp::graph_state::executable>> graph;
  bool tried = false;
};

// Repetitions in a graph: in the best of five runs on a loaded CPU device a graph of 8 repetitions
// reduced the time of a launch from 5.3 to 3.1 microseconds; a graph of one repetition has no
// effect.
constexpr int REPETITIONS = 8;

template <class V>
V value_in(const std::uint64_t& slot) {
  return *reinterpret_cast<const V*>(&slot);
}

void command(sycl::handler& handler, const kernel& k, std::size_t blocks, std::size_t block,
             const std::uint64_t* slots) {
  for (std::size_t i = 0; i < k.kinds.size(); ++i) {
    const int at = static_cast<int>(i);
    switch (k.kinds[i]) {
    case 'P':
      handler.set_arg(at, value_in<void*>(slots[i]));
      break;
    case 'q':
      handler.set_arg(at, value_in<std::int64_t>(slots[i]));
      break;
    case 'i':
      handler.set_arg(at, value_in<std::int32_t>(slots[i]));
      break;
    case 'd':
      handler.set_arg(at, value_in<double>(slots[i]));
      break;
    default:
      handler.set_arg(at, value_in<float>(slots[i]));
    }
  }
  handler.parallel_for(sycl::nd_range<1>(blocks * block, block), k.function);
}

void command(sycl::handler& handler, const launch& l) {
  command(handler, *l.what, l.blocks, l.block, l.slots.data());
}

// Graphs are an extension that not every device has; without them the launches are submitted one by
// one. Devices of OpenCL have none here: Intel's runtime 2026.2 for CPUs keeps memory for each run
// of a graph until the process ends, a gigabyte for 100,000 iterations of CG, and launches in a
// graph are no faster.
void try_graph(sycl::queue& queue, recorded& record) {
  record.tried = true;
  if (queue.get_backend() == sycl::backend::opencl ||
      !queue.get_device().has(sycl::aspect::ext_oneapi_limited_graph))
    return;
  try {
    exp::command_graph<exp::graph_state::modifiable> graph(queue.get_context(), queue.get_device());
    std::vector<exp::node> last;
    for (int i = 0; i < REPETITIONS; ++i)
      for (const launch& l : record.launches) {
        const auto body = [&](sycl::handler& handler) { command(handler, l); };
        last = {last.empty() ? graph.add(body)
                             : graph.add(body, exp::property::node::depends_on(last.front()))};
      }
    record.graph =
        std::make_unique<exp::command_graph<exp::graph_state::executable>>(graph.finalize());
  } catch (const sycl::exception&) {
    record.graph.reset();
  }
}

place& place_at(void* address) { return *static_cast<place*>(address); }

} // namespace

extern "C" {

const char* wl_error() { return last_error.c_str(); }

// An in-order queue for the context and the device of another one; null if there is none.
void* wl_place(const void* queue) {
  try {
    return new place(*static_cast<const sycl::queue*>(queue));
  } catch (const std::exception& error) {
    fail(FAILED, error.what());
    return nullptr;
  }
}

void* wl_queue(void* at) { return &place_at(at).queue; }

// Whether the device can access the memory at an address.
int wl_reaches(void* at, const void* address) {
  return sycl::get_pointer_type(address, place_at(at).queue.get_context()) !=
         sycl::usm::alloc::unknown;
}

// Null if the source does not compile; the error is then the compiler's log.
void* wl_build(void* at, const char* source, const char* const* options, int count) {
  std::string log;
  try {
    auto text = exp::create_kernel_bundle_from_source(place_at(at).queue.get_context(),
                                                      exp::source_language::sycl, source);
    const std::vector<std::string> list(options, options + count);
    return new program{
        exp::build(text, exp::properties{exp::build_options{list}, exp::save_log{&log}}), {}};
  } catch (const std::exception& error) {
    fail(REFUSED, std::string(error.what()) + log);
    return nullptr;
  }
}

// The machine code of a compiled program; null where drivers give none.
std::string* wl_code_new(const void* compiled) {
  try {
    const bundle& b = *static_cast<const program*>(compiled)->compiled;
    if (!wl::opencl_programs::possible(b.get_context()))
      return nullptr;
    return new std::string(wl::opencl_programs(b).machine_code());
  } catch (const std::exception& error) {
    fail(FAILED, error.what());
    return nullptr;
  }
}

std::size_t wl_code_size(const std::string* code) { return code->size(); }

const char* wl_code_bytes(const std::string* code) { return code->data(); }

void wl_code_free(const std::string* code) { delete code; }

// A program from its machine code; null if the driver refuses it.
void* wl_load(void* at, const char* code, std::size_t size) {
  try {
    const sycl::context context = place_at(at).queue.get_context();
    return new program{{}, wl::opencl_programs(context, code, size)};
  } catch (const std::exception& error) {
    fail(REFUSED, error.what());
    return nullptr;
  }
}

// Whether machine code of programs can be taken from the driver of a queue.
int wl_has_code(void* at) {
  return wl::opencl_programs::possible(place_at(at).queue.get_context());
}

void* wl_kernel(const void* from, const char* name, const char* kinds) {
  try {
    const std::string layout = kinds;
    return new kernel{static_cast<const program*>(from)->kernel(name, layout.size()), layout};
  } catch (const std::exception& error) {
    fail(FAILED, error.what());
    return nullptr;
  }
}

int wl_launch(void* at, const void* what, std::size_t blocks, std::size_t block,
              const std::uint64_t* slots) {
  return guarded([&] {
    place_at(at).late->raise();
    const std::lock_guard<std::mutex> lock(place_at(at).submitting);
    // without an event: no thread waits for a single kernel of an in-order queue
    exp::submit(place_at(at).queue, [&](sycl::handler& handler) {
      command(handler, *static_cast<const kernel*>(what), blocks, block, slots);
    });
  });
}

void* wl_record_new() { return new recorded; }

void wl_record_free(void* record) { delete static_cast<recorded*>(record); }

void wl_record_add(void* record, const void* what, std::size_t blocks, std::size_t block,
                   const std::uint64_t* slots) {
  const auto* k = static_cast<const kernel*>(what);
  static_cast<recorded*>(record)->launches.push_back(
      {k, blocks, block, {slots, slots + k->kinds.size()}});
}

// Submits the record `times` times, then copies `bytes` from the device and waits for them.
int wl_record_run(void* at, void* record, int times, const void* from, void* to,
                  std::size_t bytes) {
  return guarded([&] {
    sycl::queue& q = place_at(at).queue;
    auto& r = *static_cast<recorded*>(record);
    std::unique_lock<std::mutex> lock(place_at(at).submitting);
    if (times >= REPETITIONS && !r.tried)
      try_graph(q, r);
    for (; r.graph && times >= REPETITIONS; times -= REPETITIONS)
      q.ext_oneapi_graph(*r.graph);
    for (; times > 0; --times)
      for (const launch& l : r.launches)
        exp::submit(q, [&](sycl::handler& handler) { command(handler, l); });
    q.memcpy(to, from, bytes);
    lock.unlock();
    place_at(at).wait();
  });
}

// Whether the record has become a graph.
int wl_record_is_graph(const void* record) {
  return static_cast<const recorded*>(record)->graph != nullptr;
}

int wl_copy(void* at, void* to, const void* from, std::size_t bytes) {
  return guarded([&] {
    {
      const std::lock_guard<std::mutex> lock(place_at(at).submitting);
      place_at(at).queue.memcpy(to, from, bytes);
    }
    place_at(at).wait();
  });
}

// Copies pieces one after the other to `to`, each to the next multiple of 16 bytes, and waits once
// for all.
int wl_gather(void* at, char* to, const void* const* pieces, const std::size_t* bytes, int count) {
  return guarded([&] {
    std::unique_lock<std::mutex> lock(place_at(at).submitting);
    for (int i = 0; i < count; to += (bytes[i] + 15) / 16 * 16, ++i)
      if (bytes[i] > 0)
        place_at(at).queue.memcpy(to, pieces[i], bytes[i]);
    lock.unlock();
    place_at(at).wait();
  });
}

int wl_wait(void* at) {
  return guarded([&] { place_at(at).wait(); });
}

// The patterns of the rows of a matrix with arrays on the host. They come with indices as wide as
// the matrix's and are copied with 32 bits.
struct found_patterns {
  std::vector<std::int32_t> run_end, run_pattern, pattern_ptr, offsets;
};

// Sets `found`; null if patterns would not reduce the time.
int wl_patterns_new(std::int64_t rows, const void* indptr, const void* indices, int bytes,
                    found_patterns** found) {
  *found = nullptr;
  const auto find = [&](auto index) {
    using I = decltype(index);
    wl::RowPatterns<I> p;
    if (wl::pack_patterns(static_cast<I>(rows), static_cast<const I*>(indptr),
                          static_cast<const I*>(indices), p))
      *found = new found_patterns{{p.run_end.begin(), p.run_end.end()},
                                  std::move(p.run_pattern),
                                  std::move(p.pattern_ptr),
                                  {p.offsets.begin(), p.offsets.end()}};
  };
  return guarded([&] { bytes == 4 ? find(std::int32_t()) : find(std::int64_t()); });
}

void wl_patterns_sizes(const found_patterns* p, std::int64_t* sizes) {
  sizes[0] = static_cast<std::int64_t>(p->run_end.size());
  sizes[1] = static_cast<std::int64_t>(p->pattern_ptr.size());
  sizes[2] = static_cast<std::int64_t>(p->offsets.size());
}

// Copies the arrays, one after the other, and frees them.
void wl_patterns_take(found_patterns* p, std::int32_t* to) {
  for (const auto* array : {&p->run_end, &p->run_pattern, &p->pattern_ptr, &p->offsets})
    to = std::copy(array->begin(), array->end(), to);
  delete p;
}

// The functions that DLPack requires of a producer; see dlpack.py for the structures. This is not
// Python code because it runs while an error is set: consumers drop the capsule when they refuse
// it.
struct dlpack_tensor {
  void* data;
  std::int32_t device_type, device_id, ndim;
  std::uint8_t code, bits;
  std::uint16_t lanes;
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
};

struct dlpack_managed {
  dlpack_tensor tensor;
  void* context;
  void (*deleter)(dlpack_managed*);
};

struct dlpack_versioned {
  std::uint32_t major, minor;
  void* context;
  void (*deleter)(dlpack_versioned*);
};

static void release(void* object) {
  if (!Py_IsInitialized())
    return;
  const int state = PyGILState_Ensure();
  Py_DecRef(object);
  PyGILState_Release(state);
}

void wl_dlpack_delete(dlpack_managed* managed) { release(managed->context); }

void wl_dlpack_delete_versioned(dlpack_versioned* managed) { release(managed->context); }

// The destructor of a capsule: releases an array that no consumer took.
void wl_dlpack_unused(void* capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor")) {
    auto* const managed = static_cast<dlpack_managed*>(PyCapsule_GetPointer(capsule, "dltensor"));
    managed->deleter(managed);
  } else if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    auto* const managed =
        static_cast<dlpack_versioned*>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
    managed->deleter(managed);
  }
}

} // extern "C"
