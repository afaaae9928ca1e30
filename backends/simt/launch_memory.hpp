// The shared memory of a block that its launch allocates. Only the executor of CUDA allocates any.
#pragma once
#include "simt/lanes.hpp"

namespace wl {

#if defined(WL_CUDA)
WL_DEVICE u8* launch_memory() {
  extern __shared__ __align__(16) u8 of_launch[];
  return of_launch;
}
#else
WL_DEVICE u8* launch_memory() { return nullptr; }
#endif

} // namespace wl
