// Copies of large arrays on several threads, which also share the faults of new pages.
#include <cstring>

#include "omp/entries.hpp"
#include "omp/parallel.hpp"

namespace wl {

namespace {

struct BytesCopied {
  const u8* source;
  u8* target;
  i64 size;

  void operator()(int threads) const {
    for_parts(threads, [&](int part) {
      const Share share(size, part, threads);
      std::memcpy(target + share.begin, source + share.begin, share.end - share.begin);
    });
  }
};

struct memory_copy_entry {
  static constexpr const char* operation = "memory.copy";
  static constexpr const char* symbol = "memory_copy";
  static constexpr const char* names[] = {"source", "target"};
  static Object run(const Call& call) {
    Extent size;
    const u8* const source = call.contiguous<const u8>(0, size);
    u8* const target = call.contiguous<u8>(1, size);
    call.submit(size, BytesCopied{source, target, size});
    return none_object();
  }
};

} // namespace

void add_memory_entries(PyObject* module) { add_entries<memory_copy_entry>(module); }

} // namespace wl
