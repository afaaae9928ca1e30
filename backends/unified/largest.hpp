// The largest entries of rows. See wollemi.core.operations.coarsen.
#pragma once
#include "unified/coarsen_rows.hpp"

namespace wl {

template <class T, class I>
struct coarsen_count_largest {
  const I *begin, *end;
  const T* values;
  i64 width;
  I* lengths;
  i64* total;
  WL_COUNT(total);

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    const i64 length = end[i] - begin[i];
    return lengths[i] = I(length < width ? length : width);
  }
};

// The largest of several entries, at most `width`; of equal entries the first ones.
template <class R, class I>
struct largest_entries {
  // A row is read once for up to this number of entries; for more it is read once for each.
  static constexpr int kMost = 8;

  R sizes[kMost]; // in decreasing order
  I at[kMost];
  int width, count;

  WL_DEVICE explicit largest_entries(int most) : width(most), count(0) {}

  WL_DEVICE void offer(R size, I e) {
    if (count == width && !(size > sizes[width - 1]))
      return;
    int place = count < width ? count++ : width - 1;
    for (; place > 0 && size > sizes[place - 1]; --place)
      sizes[place] = sizes[place - 1], at[place] = at[place - 1];
    sizes[place] = size, at[place] = e;
  }
  // Sorts them in the order of the row.
  WL_DEVICE void by_entry() {
    for (int next = 1; next < count; ++next) {
      const I e = at[next];
      int place = next;
      for (; place > 0 && at[place - 1] > e; --place)
        at[place] = at[place - 1];
      at[place] = e;
    }
  }
};

template <class T, class I>
struct coarsen_largest {
  const I *begin, *end, *indices;
  const T* values;
  i64 width;
  const I* target;
  I* new_indices;
  T* new_values;
  WL_NO_SUM;

  WL_DEVICE sum operator()(i64 i, i64, const column_state&) const {
    const I first = begin[i], beyond = end[i];
    I to = target[i];
    if (beyond - first <= width)
      for (I e = first; e < beyond; ++e)
        put(to++, e, T(1));
    else if (width <= largest_entries<real_t<T>, I>::kMost)
      keep_few(first, beyond, to);
    else
      keep_many(first, beyond, to);
    return {};
  }

private:
  WL_DEVICE void put(I to, I e, T factor) const {
    new_indices[to] = indices[e];
    new_values[to] = values[e] * factor;
  }
  WL_DEVICE static T factor_of(T whole, T part) {
    return size_of(part) > real_t<T>(1e-3) * size_of(whole) ? whole / part : T(1);
  }
  WL_DEVICE void keep_few(I first, I beyond, I to) const {
    largest_entries<real_t<T>, I> kept(static_cast<int>(width));
    T whole(0), part(0);
    for (I e = first; e < beyond; ++e) {
      whole += values[e];
      kept.offer(size_of(values[e]), e);
    }
    kept.by_entry();
    for (int place = 0; place < kept.count; ++place)
      part += values[kept.at[place]];
    const T factor = factor_of(whole, part);
    for (int place = 0; place < kept.count; ++place)
      put(to + place, kept.at[place], factor);
  }
  WL_DEVICE void keep_many(I first, I beyond, I to) const {
    // The last selected entry, by size, then by position; the initial value precedes all entries.
    real_t<T> least(-1);
    I last = beyond;
    for (i64 round = 0; round < width; ++round) {
      real_t<T> best(-1);
      I at = beyond;
      for (I e = first; e < beyond; ++e) {
        const real_t<T> s = size_of(values[e]);
        if ((round == 0 || s < least || (s == least && e > last)) && s > best)
          best = s, at = e;
      }
      least = best, last = at;
    }
    T whole(0), part(0);
    for (I e = first; e < beyond; ++e) {
      whole += values[e];
      if (is_kept(e, least, last))
        part += values[e];
    }
    const T factor = factor_of(whole, part);
    for (I e = first; e < beyond; ++e)
      if (is_kept(e, least, last))
        put(to++, e, factor);
  }
  WL_DEVICE bool is_kept(I e, real_t<T> least, I last) const {
    const real_t<T> s = size_of(values[e]);
    return s > least || (s == least && e <= last);
  }
};

} // namespace wl
