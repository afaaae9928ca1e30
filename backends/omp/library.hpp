// A functor of another package as a function of a shared library, which the machine's compiler
// makes: the arguments of a call. Both sides are compiled from this file, and the key of the
// library has its text.
#pragma once

#include <cstddef>

#include "omp/loop.hpp"
#include "omp/slots.hpp"
#include "unified/status.hpp"

namespace wl {

// An argument: an array and the distance of its rows, or a number.
struct LibraryValue {
  void* data;
  i64 ld;
  double re, im;
  i64 whole;
};

struct LibraryCall {
  const LibraryValue* values; // in the order of the signature
  status_of<std::byte> status;
  i64 rows, columns;
  Slots slots;
};

// Does the work of an operation on up to `threads` threads.
using LibraryFunction = void (*)(const LibraryCall* call, int threads);

// Gives a library the loop of the native module; called before any function.
using LibraryBegin = void (*)(void (*run_parts)(const Loop&));

// The status with the type of its numbers.
template <class T>
status_of<T> typed_status(const status_of<std::byte>& s) {
  using R = real_t<T>;
  return {s.stop,
          s.iterations,
          reinterpret_cast<R*>(s.norm),
          reinterpret_cast<const R*>(s.threshold),
          reinterpret_cast<R*>(s.history),
          s.running,
          s.capacity,
          s.k};
}

} // namespace wl
