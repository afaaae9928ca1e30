// Entries of Matrix Market files, read by all threads.
#include <algorithm>
#include <cstring>
#include <vector>

#include "omp/entries.hpp"
#include "omp/parallel.hpp"
#include "omp/text_entries.hpp"

namespace wl {

namespace {

// Below this number of bytes one thread reads.
constexpr i64 kSerialBytes = 1 << 14;

struct text_entries_entry {
  static constexpr const char* operation = "read";
  static constexpr const char* symbol = "text_entries";
  static constexpr const char* names[] = {"text", "rows", "columns", "row", "col", "values"};

  // The number of lines, or None where one is not plain.
  static Object run(const Call& call) {
    char* text = nullptr;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(call.argument(0), &text, &size) < 0)
      throw_python_error();
    const i64 m = call.integer(call.argument(1)), n = call.integer(call.argument(2));
    return with_index_type(call, "row", call.array(3), [&](auto index) {
      using I = decltype(index);
      Extent entries, numbers;
      I* const row = call.contiguous<I>(3, entries);
      I* const col = call.contiguous<I>(4, entries);
      if (call.array(5).type_number == detail::number_of<double>) {
        double* const values = call.contiguous<double>(5, numbers);
        const int width = entries == 0 ? 0 : static_cast<int>(numbers / entries);
        return read(call, text, size, entries,
                    TextEntries<double, I>{m, n, row, col, values, width});
      }
      i64* const values = call.contiguous<i64>(5, entries);
      return read(call, text, size, entries, TextEntries<i64, I>{m, n, row, col, values, 1});
    });
  }

private:
  template <class Entries>
  static Object read(const Call& call, const char* text, i64 size, i64 most,
                     const Entries& entries) {
    if (size == 0 || text[size - 1] != '\n')
      return none_object();
    const i64 found = call.compute([&](int threads) {
      const int parts = size < kSerialBytes ? 1 : threads;
      std::vector<const char*> cuts(parts + 1, text + size);
      std::vector<i64> first(parts + 1, 0), plain(parts, 0);
      cuts[0] = text;
      for (int part = 1; part < parts; ++part) {
        const char* const from = std::max(cuts[part - 1], text + Share(size, part, parts).begin);
        const void* const line = std::memchr(from, '\n', text + size - from);
        cuts[part] = line == nullptr ? text + size : static_cast<const char*>(line) + 1;
      }
      for_parts(parts,
                [&](int part) { first[part + 1] = count_lines(cuts[part], cuts[part + 1]); });
      for (int part = 0; part < parts; ++part)
        first[part + 1] += first[part];
      if (first[parts] > most)
        return i64(-1);
      for_parts(parts, [&](int part) {
        plain[part] = entries.read(cuts[part], cuts[part + 1], first[part]);
      });
      for (int part = 0; part < parts; ++part)
        if (!plain[part])
          return i64(-1);
      return first[parts];
    });
    return found < 0 ? none_object() : whole_number(found);
  }
};

} // namespace

void add_text_entries(PyObject* module) { add_entries<text_entries_entry>(module); }

} // namespace wl
