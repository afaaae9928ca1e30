// Barriers in shared memory that count arrivals (mbarrier), from compute capability 8.0 on. The
// phases of a barrier have parities 0, 1, 0, ..; a thread that waits for a phase gives its parity.
#pragma once
#include "simt/packs.hpp"

namespace wl {

// Bytes of a barrier.
constexpr int BARRIER_BYTES = 8;

WL_DEVICE void barrier_init(u32 barrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
WL_DEVICE void arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// Arrives when all 16-byte copies that this thread has issued have completed.
WL_DEVICE void arrive_when_copied(u32 barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
// Whether the phase has ended.
WL_DEVICE bool has_turned(u32 barrier, u32 parity) {
  u32 done;
  asm volatile("{.reg .pred p;\n"
               " mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
               " selp.u32 %0, 1, 0, p;}"
               : "=r"(done)
               : "r"(barrier), "r"(parity)
               : "memory");
  return done != 0;
}
WL_DEVICE void wait_for(u32 barrier, u32 parity) {
#if __CUDA_ARCH__ >= 900
  u32 done = 0;
  // the hardware suspends the thread for a while before it reports that the phase has not ended
  while (!done)
    asm volatile("{.reg .pred p;\n"
                 " mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 " selp.u32 %0, 1, 0, p;}"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
#else
  while (!has_turned(barrier, parity)) {
  }
#endif
}

} // namespace wl
