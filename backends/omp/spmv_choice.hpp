// Which SpMV kernel suits a matrix, from the lengths of its rows. A matrix for which pack_patterns
// says yes takes the pattern kernel before this is asked.
#pragma once

#include "spmv_common.hpp"

namespace wl {

struct RowStatistics {
  i64 rows;
  i64 entries;
  double mean;
  double deviation;
  i64 longest;
  double empty_share;
};

// SELL takes 0.95 of CSR's time on R-MAT (deviation / mean 7; 0.90 built for AVX2), 0.93 on the
// 5-point stencil, and 1.06 and 1.37 on 27 and 7 points (all three below 0.2), where it also costs
// a copy of the matrix. Nothing between was measured.
constexpr double kSellDeviation = 1.0;

// A row of SELL belongs to one thread: a longer one would keep the others waiting for more than
// SELL gains. CSR cuts it. The longest row of the R-MAT case has 0.4 % of the entries; the bound is
// an estimate.
constexpr double kSellLongestShare = 0.02;

// Packing costs about 13 products (R-MAT, one thread); where a product stays serial there is little
// to gain.
inline const char* choose_spmv(const RowStatistics& s) {
  const bool irregular = s.deviation > kSellDeviation * s.mean;
  const bool splits_evenly = s.longest <= kSellLongestShare * s.entries;
  return s.entries >= kSerialEntries && irregular && splits_evenly ? "sellp" : "csr";
}

} // namespace wl
