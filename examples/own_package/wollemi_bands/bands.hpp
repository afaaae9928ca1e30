// y = alpha A x + beta y for a matrix by bands. Entry (i, i + offsets[j]) is data(j, i).
#pragma once
#include "unified/step.hpp"

template <class T>
struct bands_product {        // the operation's name, with _ for the dot
  mat<const T> data;          // the arguments of the signature, in its order
  const i64* offsets;
  mat<const T> x;
  mat<T> y;
  T alpha, beta;
  i64 bands, columns;
  WL_NO_SUM;                  // no sums over the rows

  // One element of the result.
  WL_DEVICE sum operator()(i64 i, i64 c, const column_state&) const {
    T total(0);
    for (i64 j = 0; j < bands; ++j) {
      const i64 column = i + offsets[j];
      const T value = column >= 0 && column < columns ? data(j, i) : T(0);
      if (value != T(0))      // padding must not touch x
        total += value * x(column, c);
    }
    store(y(i, c), total, alpha, beta);      // beta == 0 does not read y
    return {};
  }
};
