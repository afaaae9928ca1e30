// Arrays that a matrix is made of, read once by all threads: their copies and their checks.
#include <algorithm>
#include <type_traits>
#include <vector>

#include "omp/call.hpp"
#include "omp/parallel.hpp"
#include "omp/row_lengths.hpp"

namespace wl {

namespace {

// Copies `source` and returns the largest number. Negative ones are larger than all others.
template <class I>
std::make_unsigned_t<I> copy_with_largest(const I* source, I* target, i64 count) {
  using Unsigned = std::make_unsigned_t<I>;
  Unsigned largest = 0;
  for (i64 at = 0; at < count; ++at) {
    target[at] = source[at];
    largest = std::max(largest, static_cast<Unsigned>(source[at]));
  }
  return largest;
}

struct indices_copy_entry {
  static constexpr const char* operation = "indices.copy";
  static constexpr const char* symbol = "indices_copy";
  static constexpr const char* names[] = {"source", "target"};

  // The largest index; -1 where one is negative.
  static Object run(const Call& call) {
    return with_index_type(call, "source", call.array(0), [&](auto index) {
      using I = decltype(index);
      Extent size;
      const I* const source = call.contiguous<const I>(0, size);
      I* const target = call.contiguous<I>(1, size);
      const i64 largest = call.compute([&](int threads) {
        const int parts = size < kSerialElements ? 1 : threads;
        std::vector<std::make_unsigned_t<I>> found(parts, 0);
        for_parts(parts, [&](int part) {
          const Share share(size, part, parts);
          found[part] = copy_with_largest(source + share.begin, target + share.begin,
                                          share.end - share.begin);
        });
        const I most = static_cast<I>(*std::max_element(found.begin(), found.end()));
        return std::max<i64>(most, -1);
      });
      return whole_number(largest);
    });
  }
};

struct row_lengths_entry {
  static constexpr const char* operation = "csr.plan";
  static constexpr const char* symbol = "row_lengths";
  static constexpr const char* names[] = {"indptr"};

  // The sum of squares, the largest length, and the number of rows with entries.
  static Object run(const Call& call) {
    return with_index_type(call, "indptr", call.array(0), [&](auto index) {
      using I = decltype(index);
      Extent pointers;
      const I* const indptr = call.contiguous<const I>(0, pointers);
      const i64 rows = pointers - 1;
      const RowLengths all = call.compute([&](int threads) {
        const int parts = rows < kSerialElements ? 1 : threads;
        std::vector<RowLengths> found(parts);
        for_parts(parts, [&](int part) {
          const Share share(rows, part, parts);
          found[part] = row_lengths(indptr, share.begin, share.end);
        });
        RowLengths sum;
        for (const RowLengths& one : found)
          sum.add(one);
        return sum;
      });
      return numbers(all.squares, all.longest, all.filled);
    });
  }

private:
  static Object numbers(i64 squares, i64 longest, i64 filled) {
    PyObject* const tuple =
        Py_BuildValue("LLL", static_cast<long long>(squares), static_cast<long long>(longest),
                      static_cast<long long>(filled));
    if (tuple == nullptr)
      throw_python_error();
    return Object::steal(tuple);
  }
};

} // namespace

void add_argument_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<indices_copy_entry>(),
      method<row_lengths_entry>(),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
