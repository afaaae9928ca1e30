// Work-groups of CPU devices that are as wide as a vector register.
//
// The driver's compiler turns a work-group into one stream of vector instructions if its work-items
// do not communicate: sub-groups are emulated at up to 300 times the cost. Loops within a work-item
// stay scalar, because the compiler does not know that blocks do not overlap. So adjacent
// work-items process adjacent elements.
#pragma once
#include "simt/lanes.hpp"

namespace wl {

constexpr i64 LANES = WL_BLOCK;

WL_DEVICE i64 own_lane() { return i64(this_item::get_nd_item<1>().get_local_id(0)); }

// The rows of a work-group. They begin where a cache line does, if the block does.
struct rows_of {
  i64 begin, end;
  WL_DEVICE rows_of(const item& it, i64 n) {
    const i64 groups = (n + LANES - 1) / LANES;
    begin = groups * it.block() / it.blocks() * LANES;
    end = groups * (it.block() + 1) / it.blocks() * LANES;
    end = end < n ? end : n;
  }
};

} // namespace wl
