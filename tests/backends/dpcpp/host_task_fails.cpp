// Work of a queue that fails while no thread waits for it, as a fault on a device does.
#include <stdexcept>
#include <sycl/sycl.hpp>

extern "C" void submit_failure(void* queue) {
  static_cast<sycl::queue*>(queue)->submit([](sycl::handler& handler) {
    handler.host_task([] { throw std::runtime_error("the task ran into a wall"); });
  });
}
