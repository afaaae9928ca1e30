// Shared-memory descriptors of tiles for wgmma: words of 64 bits; the lowest bits are the address
// in units of 16 bytes (PTX ISA, "Matrix descriptor").
#pragma once
#include "simt/narrow.hpp"

namespace wl {

// `next` and `below`: bytes between adjacent cores, or blocks of rows.
WL_DEVICE u64 descriptor_of(u32 address, u32 next, u32 below, u32 swizzle) {
  return u64((address & 0x3ffffu) >> 4) | u64(next >> 4) << 16 | u64(below >> 4) << 32 |
         u64(swizzle) << 62;
}

// The descriptor of a k16 x n tile of B: cores of 8 columns x 8 rows of 16 bits, 128 bytes each.
// The rows of a core are columns of B. The second half of k follows the first half; the next 8
// columns follow both halves.
WL_DEVICE u64 tile_descriptor(u32 address) { return descriptor_of(address, 128, 256, 0); }

// The descriptor of rows of DIM 16-bit numbers, stored as chunk_at in tile_rows.hpp describes:
// blocks of 8 rows of 64 numbers (or of 32, if there are no more), then the block of the next 64
// numbers, then the next 8 rows. The instruction, not the descriptor, tells whether the rows are
// rows of the product or the dimension that the product sums over.
template <int DIM>
WL_DEVICE u64 rows_descriptor(u32 address) {
  return descriptor_of(address, 1024, DIM * 16, DIM >= 64 ? 1 : 2);
}

} // namespace wl
