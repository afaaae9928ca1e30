// A functor in two halves. Between them the sums of all members of a group are added up.
//
// `visiting` processes the elements and stores the sums of each column in slots, one real number
// per word: word w of column c is at slots[w * k + c]. `finishing` visits no elements and finishes
// each column with the sums from the slots. Both are functors for any launcher.
#pragma once
#include "unified/step.hpp"

namespace wl {

// Calls visit(x) for each real number of a sum, in order.
template <class V>
WL_DEVICE void each_number(float& x, const V& visit) {
  visit(x);
}
template <class V>
WL_DEVICE void each_number(double& x, const V& visit) {
  visit(x);
}
template <class R, class V>
WL_DEVICE void each_number(complex<R>& x, const V& visit) {
  visit(x.re);
  visit(x.im);
}
template <class R, class V>
WL_DEVICE void each_number(maximum<R>& x, const V& visit) {
  visit(x.value);
}
template <class S, class V>
WL_DEVICE auto each_number(S& sums, const V& visit) -> decltype(sums.each(visit)) {
  return sums.each(visit);
}

template <class F, class R>
struct visiting : F {
  R* slots;
  i64 columns;

  WL_DEVICE void finish(i64 c, typename F::sum total) const {
    i64 word = 0;
    each_number(total, [&](R& x) { slots[word++ * columns + c] = x; });
  }
};

template <class F, class R>
struct finishing : F {
  R* slots;
  i64 columns;

  WL_DEVICE typename F::sum operator()(i64, i64, const typename F::column_state&) const {
    return typename F::sum{};
  }
  WL_DEVICE void finish(i64 c, typename F::sum) const {
    typename F::sum total{};
    i64 word = 0;
    each_number(total, [&](R& x) { x = slots[word++ * columns + c]; });
    F::finish(c, total);
  }
};

} // namespace wl
