// The instructions of backends/cuda/products/counting_barriers.hpp, as machine.cpp carries them
// out.
#pragma once
#include "cuda/products/mma_instructions.hpp"

namespace wl {

constexpr int BARRIER_BYTES = 8;

WL_DEVICE void barrier_init(u32 barrier, u32 arrivals) {
  lockstep::counting_init(barrier, int(arrivals));
}
WL_DEVICE void arrive(u32 barrier) { lockstep::counting_arrive(barrier, 0); }
WL_DEVICE void arrive_when_copied(u32 barrier) { lockstep::arrive_when_copied(barrier); }
WL_DEVICE bool has_turned(u32 barrier, u32 parity) {
  return lockstep::counting_turned(barrier, parity);
}
WL_DEVICE void wait_for(u32 barrier, u32 parity) { lockstep::counting_wait(barrier, parity); }

} // namespace wl
