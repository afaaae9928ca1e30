// Launches that may begin before the previous launch has ended (programmatic dependent launch,
// compute capability 9.0): a block is scheduled on its multiprocessor and waits there.
#pragma once

namespace wl {

#if defined(WL_LOCKSTEP)
inline void let_next_launch_begin() {}
inline void wait_for_launch_before() {}
#else
// The blocks of the next launch may start as soon as all blocks of this launch have executed this
// instruction.
WL_DEVICE void let_next_launch_begin() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
// Waits until the previous launch has ended and all its writes are visible. In a launch that is not
// dependent it does nothing.
WL_DEVICE void wait_for_launch_before() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
#endif

} // namespace wl
