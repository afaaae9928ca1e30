// Adjacent rows for each work-group, with equal work for all. Work-groups are one work-item.
#pragma once
#include "cpu/first_row.hpp"
#include "simt/scan.hpp"

static_assert(WL_BLOCK == 1, "this is for work-groups of one");

namespace wl {

// The rows of a work-group; before(row) is the work in the rows before one.
struct rows_of_work {
  i64 begin, end;

  template <class Before>
  WL_DEVICE rows_of_work(const item& it, i64 m, const Before& before)
      : begin(bound(it.block(), it.blocks(), m, before)),
        end(bound(it.block() + 1, it.blocks(), m, before)) {}

private:
  // The first row of a part; rows without work at the end belong to the last part.
  template <class Before>
  WL_DEVICE static i64 bound(i64 part, i64 parts, i64 m, const Before& before) {
    return part == parts ? m : first_row(m, part_begin(before(m), part, parts), before);
  }
};

} // namespace wl
