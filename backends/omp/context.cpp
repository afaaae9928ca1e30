#include "omp/context.hpp"

namespace wl {

Tape*& recording() {
  thread_local Tape* tape = nullptr;
  return tape;
}

} // namespace wl
