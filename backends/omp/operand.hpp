// Dense operands in the layout of the kernels of spmm, sddmm and fusedmm: rows of whole registers
// of the type of the computation.
#pragma once

#include <algorithm>

#include "omp/huge.hpp"
#include "omp/parallel.hpp"
#include "omp/wide.hpp"

namespace wl {

// The type of sums of a stored type.
template <class S>
struct computed_in {
  using type = real_t<S>;
};
template <>
struct computed_in<half> {
  using type = float;
};
template <>
struct computed_in<bfloat> {
  using type = float;
};
template <class S>
using computed_t = typename computed_in<S>::type;

// Memory that a thread keeps between calls, because new pages cost more than the computation on
// them. Memory that is read at random is faster on huge pages from a few hundred kilobytes on; Huge
// uses them from two pages on. A product in a signal handler, which may run in the middle of
// another product, has its own memory.
template <class T>
T* workspace(int which, i64 count) {
  constexpr int kBuffers = 9;
  constexpr i64 kHugeFrom = i64(1) << 18;
  thread_local Huge<T> buffers[2][kBuffers];
  Huge<T>& buffer = buffers[belonging().handlers > 0 ? 1 : 0][which];
  if (static_cast<i64>(buffer.size()) < count) {
    constexpr i64 item = sizeof(T);
    const i64 bytes =
        count * item < kHugeFrom ? count * item : std::max(count * item, i64(2 * kHugePage));
    buffer = Huge<T>(); // the old buffer is freed before the new one is allocated
    buffer = Huge<T>(static_cast<std::size_t>((bytes + item - 1) / item));
  }
  return buffer.data();
}

// A view of rows of whole registers; reading beyond the columns that were asked for gives numbers,
// not faults.
template <class T>
struct Operand {
  const T* data;
  i64 ld;
  const T* row(i64 i) const { return data + i * ld; }
};

// Copies columns [first, first + columns) of (rows, ...) `from`, widened and padded with zeros to
// `width`.
template <class T, class S>
Operand<T> pack(const S* from, i64 ld, i64 rows, i64 columns, i64 width, T* to, int threads) {
  const int parts = rows * width > kSerialElements ? threads : 1;
  for_parts(parts, [&](int part) {
    const Share share(rows, part, parts);
    for (i64 i = share.begin; i < share.end; ++i) {
      const S* const source = from + i * ld;
      T* const target = to + i * width;
      for (i64 c = 0; c < columns; ++c)
        target[c] = widen(source[c]);
      for (i64 c = columns; c < width; ++c)
        target[c] = T(0);
    }
  });
  return {to, width};
}

} // namespace wl
