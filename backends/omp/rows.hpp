// Launchers for functors of unified/rows.hpp that count and copy some entries of each row: where
// the rows follow one another in memory, all of them are one stream of entries.
#pragma once

#include "omp/kept_entries.hpp"
#include "omp/map.hpp"
#include "omp/row_cuts.hpp"
#include "unified/rows.hpp"

namespace wl {

namespace detail {

// A functor that visits row by row, also if its own launcher does not.
template <class F>
struct ByRows : F {
  explicit ByRows(const F& functor) : F(functor) {}
};

// Calls use(holds) with the comparison of a code.
template <class Use>
struct GivenComparison {
  using sum = none;
  const Use& use;
  template <class Holds>
  sum of_row(i64, Holds holds) const {
    return use(holds), sum{};
  }
};

template <class T, class Use>
void with_holds(i64 comparison, const Use& use) {
  with_comparison<T>(comparison, GivenComparison<Use>{use}, 0);
}

// with_words(f, begin, end, told, use) calls use(word_of) with a function that tells which entries
// of the rows [begin, end) the functor keeps, in words. `told` becomes false where only a visit of
// each row tells that; words from then on are 0.

template <class F, class T, class Use>
void with_number_words(const F& f, const T* values, const Use& use) {
  with_holds<T>(f.comparison, [&](auto holds) {
    use([=, number = f.number](i64 first, i64 count) {
      return kept_word(first, count, [=](i64 e) { return holds(values[e], number); });
    });
  });
}

// Two matrices with the same columns in these rows.
template <class F, class T, class Use>
void with_pair_words(const F& f, const T* values, i64 begin, i64 end, bool& told, const Use& use) {
  const auto *const own = f.indices, *const other = f.other_indices;
  const i64 apart = i64(f.other_begin[begin]) - i64(f.begin[begin]);
  i64 differ = 0;
#pragma omp simd reduction(| : differ)
  for (i64 i = begin; i < end; ++i)
    differ |= (i64(f.other_end[i]) - i64(f.end[i])) ^ apart;
  told = differ == 0 && f.other_end == f.other_begin + 1;
  if (!told)
    return;
  const bool shared = own == other && apart == 0;
  const T* const other_values = f.other_values + apart;
  with_holds<T>(f.comparison, [&](auto holds) {
    use([=, &told](i64 first, i64 count) -> std::uint64_t {
      if (!shared && told) {
        auto unlike = own[first] ^ other[first + apart];
#pragma omp simd reduction(| : unlike)
        for (i64 e = first; e < first + count; ++e)
          unlike |= own[e] ^ other[e + apart];
        told = unlike == 0;
      }
      if (!told)
        return 0;
      return kept_word(first, count, [=](i64 e) { return holds(values[e], other_values[e]); });
    });
  });
}

template <class F, class Use>
void with_between_words(const F& f, const Use& use) {
  use([indices = f.indices, low = f.first, high = f.last - 1](i64 first, i64 count) {
    return kept_word(first, count,
                     [=](i64 e) { return column_within(indices[e], 0, low, high) >= 0; });
  });
}

template <class T, class I, class Use>
void with_words(const rows_count_compared_number<T, I>& f, i64, i64, bool&, const Use& use) {
  with_number_words(f, f.values, use);
}
template <class T, class I, class Use>
void with_words(const rows_compare_number<T, I>& f, i64, i64, bool&, const Use& use) {
  with_number_words(f, f.values, use);
}
template <class T, class I, class Use>
void with_words(const rows_count_compared<T, I>& f, i64 begin, i64 end, bool& told,
                const Use& use) {
  with_pair_words(f, f.values, begin, end, told, use);
}
template <class T, class I, class Use>
void with_words(const rows_compare<T, I>& f, i64 begin, i64 end, bool& told, const Use& use) {
  with_pair_words(f, f.values, begin, end, told, use);
}
template <class T, class I, class Use>
void with_words(const rows_count_nonzeros<T, I>& f, i64, i64, bool&, const Use& use) {
  use([values = f.values](i64 first, i64 count) {
    return kept_word(first, count, [=](i64 e) { return values[e] != T(0); });
  });
}
template <class T, class I, class Use>
void with_words(const rows_drop_zeros<T, I>& f, i64, i64, bool&, const Use& use) {
  use([values = f.values](i64 first, i64 count) {
    return kept_word(first, count, [=](i64 e) { return values[e] != T(0); });
  });
}

template <class I, class Use>
void with_words(const rows_count_between<I>& f, i64, i64, bool&, const Use& use) {
  with_between_words(f, use);
}
template <class T, class I, class Use>
void with_words(const rows_between<T, I>& f, i64, i64, bool&, const Use& use) {
  with_between_words(f, use);
}

// store_entry(f, to, e) copies an entry, or writes the entry of the new matrix in its place.

template <class T, class I>
void store_entry(const rows_compare_number<T, I>& f, i64 to, i64 e) {
  f.new_indices[to] = f.indices[e];
}
template <class T, class I>
void store_entry(const rows_compare<T, I>& f, i64 to, i64 e) {
  f.new_indices[to] = f.indices[e];
}
template <class T, class I>
void store_entry(const rows_drop_zeros<T, I>& f, i64 to, i64 e) {
  f.new_indices[to] = f.indices[e];
  f.new_values[to] = f.values[e];
}

template <class T, class I>
void store_entry(const rows_between<T, I>& f, i64 to, i64 e) {
  f.new_indices[to] = I(f.indices[e] - f.first);
  f.new_values[to] = f.values[e];
}

// A launcher that gives each part whole rows with an equal share of the entries.
template <class F, class Strides>
struct Stream {
  F functor;
  i64 rows;

  Stream(const F& f, i64 n, i64) : functor(f), rows(n) {}

  // Calls visit(part, begin, end) for the rows of each part; returns false, having called nothing,
  // where the rows do not follow one another.
  template <class Visit>
  bool for_rows(int parts, const Visit& visit) const {
    if (functor.end != functor.begin + 1)
      return false;
    const auto bounds = balanced_rows(functor.begin, Index(rows), parts);
    for_parts(parts, [&](int part) { visit(part, i64(bounds[part]), i64(bounds[part + 1])); });
    return true;
  }

  int parts_for(int threads) const { return rows < kSerialElements ? 1 : threads; }

  void visit_each(int threads) const {
    Map<ByRows<F>, Strides>(ByRows<F>(functor), rows, 1)(threads);
  }

private:
  using Index = std::decay_t<decltype(*F::begin)>;
};

template <class F, class Strides>
struct CountedStream : Stream<F, Strides> {
  using Stream<F, Strides>::Stream;

  void operator()(int threads) const {
    const F& f = this->functor;
    const int parts = this->parts_for(threads);
    Scratch<i64> totals(parts);
    i64* const total = totals.data();
    const bool done = this->for_rows(parts, [&](int part, i64 begin, i64 end) {
      bool told = true;
      with_words(f, begin, end, told, [&](const auto& word_of) {
        total[part] = count_kept(f.begin, begin, end, f.lengths, word_of);
      });
      if (told)
        return;
      total[part] = 0;
      for (i64 i = begin; i < end; ++i)
        total[part] += f(i, 0, {true});
    });
    if (!done)
      return this->visit_each(threads);
    for (int part = 1; part < parts; ++part)
      total[0] += total[part];
    f.finish(0, total[0]);
  }
};

template <class F, class Strides>
struct CopiedStream : Stream<F, Strides> {
  using Stream<F, Strides>::Stream;

  void operator()(int threads) const {
    const F& f = this->functor;
    const bool done = this->for_rows(this->parts_for(threads), [&](int, i64 begin, i64 end) {
      bool told = true;
      with_words(f, begin, end, told, [&](const auto& word_of) {
        copy_kept(f.begin[begin], begin < end ? f.end[end - 1] : f.begin[begin], f.target[begin],
                  word_of, [copy = f](i64 to, i64 e) { store_entry(copy, to, e); });
      });
      if (!told)
        for (i64 i = begin; i < end; ++i)
          f(i, 0, {true});
    });
    if (!done)
      this->visit_each(threads);
  }
};

} // namespace detail

template <class I, class Strides>
struct Map<rows_count_between<I>, Strides> : detail::CountedStream<rows_count_between<I>, Strides> {
  using detail::CountedStream<rows_count_between<I>, Strides>::CountedStream;
};

#define WL_LAUNCH(functor, launcher)                                                               \
  template <class T, class I, class Strides>                                                       \
  struct Map<functor<T, I>, Strides> : detail::launcher<functor<T, I>, Strides> {                  \
    using detail::launcher<functor<T, I>, Strides>::launcher;                                      \
  }

WL_LAUNCH(rows_count_compared_number, CountedStream);
WL_LAUNCH(rows_compare_number, CopiedStream);
WL_LAUNCH(rows_count_compared, CountedStream);
WL_LAUNCH(rows_compare, CopiedStream);
WL_LAUNCH(rows_count_nonzeros, CountedStream);
WL_LAUNCH(rows_drop_zeros, CopiedStream);
WL_LAUNCH(rows_between, CopiedStream);

#undef WL_LAUNCH

} // namespace wl
