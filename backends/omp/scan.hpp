// Sums of all that came before. See wollemi.core.operations.scan.
#pragma once

#include <vector>

#include "omp/parallel.hpp"

namespace wl {

template <class I>
struct scan_pointers {
  const I* lengths;
  I* indptr;
  i64 m, p;

  void operator()(int threads) const {
    const int parts = m < kSerialElements ? 1 : threads;
    std::vector<I> before(parts + 1, I(0));
    if (parts > 1) {
      for_parts(parts, [&](int part) {
        const Share share(m, part, parts);
        for (i64 i = share.begin; i < share.end; ++i)
          before[part + 1] += lengths[i];
      });
      for (int part = 0; part < parts; ++part)
        before[part + 1] += before[part];
    }
    indptr[0] = 0;
    for_parts(parts, [&](int part) {
      const Share share(m, part, parts);
      I sum = before[part];
      for (i64 i = share.begin; i < share.end; ++i)
        indptr[i + 1] = sum += lengths[i];
    });
  }
};

} // namespace wl
