// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/scan.hpp"

namespace wl {

namespace {

// indptr_0 = 0, indptr_(i + 1) = indptr_i + lengths_i
struct scan_pointers_entry {
  static constexpr const char* operation = "scan.pointers";
  static constexpr const char* symbol = "scan_pointers";
  static constexpr const char* names[] = {
      "lengths",
      "indptr",
  };
  static Object run(const Call& call) {
    with_index_type(call, names[0], call.array(0), [&](auto index) {
      using I = decltype(index);
      Extent m, p;
      const scan_pointers<I> body{
          call.contiguous<const I>(0, m),
          call.contiguous<I>(1, p),
          i64(m),
          i64(p),
      };
      call.submit(m * p, body);
    });
    return none_object();
  }
};

} // namespace

void add_scan_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<scan_pointers_entry>("scan_pointers", nullptr),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
