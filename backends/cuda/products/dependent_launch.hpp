// Launches that may begin before the previous launch has ended (programmatic dependent launch,
// compute capability 9.0): a block is scheduled on its multiprocessor, and waits there.
#pragma once

namespace wl {

#if defined(WL_LOCKSTEP)
inline void let_next_launch_begin() {}
inline void wait_for_launch_before() {}
#else
// The blocks of the next launch may come as soon as all blocks of this one have said so.
WL_DEVICE void let_next_launch_begin() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
// Waits until the launch before has ended and all that it wrote is there. Where that launch was
// waited for anyhow, it does nothing.
WL_DEVICE void wait_for_launch_before() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
#endif

} // namespace wl
