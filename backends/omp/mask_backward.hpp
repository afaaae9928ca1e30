// The gradients of fusedmm for rows of consecutive columns.
//
// The second pass reads results of the first pass for each entry. So both passes process a panel of
// rows at a time, with entries that fit in the second-level cache; sums of columns are kept from
// one panel to the next. One thread adds up each sum, row after row.
#pragma once

#include "omp/fusedmm_backward.hpp"

namespace wl {

// The number of entries of a panel, unless one row has more: half a megabyte of float32. On two
// threads of a Zen 4 (2026-11-24), least of three runs, causal attention of 2048 with four heads of
// 64 takes: 2^14 65, 2^15 61, 2^16 60, 2^17 63 ms. With windows of 32 to 256 the size has no
// effect.
constexpr i64 kMaskPanel = i64(1) << 16;
// Columns that a thread processes at a time in the second pass: the results of adjacent columns
// share cache lines.
constexpr i64 kMaskColumns = 16;

// The first and the last row, and that behind it, of the columns of a mask.
template <class I>
struct ColumnEnds {
  const I *first, *last;
};

template <class S, class I>
class MaskGradients : RowGradients<S, Intervals<I>> {
  using Base = RowGradients<S, Intervals<I>>;
  using Base::C_, Base::G_, Base::inner_, Base::kGathered, Base::L, Base::o_, Base::outer_,
      Base::threads_;
  using typename Base::T;

  const ColumnEnds<I> ends_;
  Kept<T>* const kept_; // of a panel
  const i64 of_B_, of_D_, width_, pitch_;
  T* const sums_; // of columns

public:
  MaskGradients(const FusedmmBackward<S, Intervals<I>>& o, const ColumnEnds<I>& ends, Kept<T>* kept,
                int threads)
      : Base(o, threads), ends_(ends), kept_(kept), of_B_(o.of_B.data ? inner_ * L : 0),
        of_D_(o.of_D.data ? outer_ * L : 0), width_(of_B_ + of_D_),
        pitch_(PieceSum<T>::size(width_)), sums_(workspace<T>(4, o.n * pitch_)) {}

  void run() {
    const i64* const ptr = o_.pattern.ptr;
    for (i64 top = 0, bottom = 0; top < o_.m; top = bottom) {
      do
        ++bottom;
      while (bottom < o_.m && ptr[bottom + 1] - ptr[top] <= kMaskPanel);
      go_by_rows(top, bottom);
      if (width_ > 0)
        go_by_columns(top, bottom);
    }
    for (i64 column = 0; column < o_.n; ++column)
      if (ends_.first[column] >= ends_.last[column])
        this->finish_column(column, nullptr, of_B_, of_D_);
  }

private:
  // Rows or columns with enough entries together to make a turn worth its time.
  static i64 together(i64 entries, i64 count, i64 fewest) {
    const i64 mean = entries / std::max(count, i64(1));
    return std::max(fewest, kFewestPartEntries / (mean + kPartRowCost));
  }

  void go_by_rows(i64 top, i64 bottom) const {
    const i64* const ptr = o_.pattern.ptr;
    const i64 rows = bottom - top, entries = ptr[bottom] - ptr[top];
    for_each_in_turn(rows, together(entries, rows, 1), threads_, [&](i64 at) {
      const i64 row = top + at, begin = ptr[row], end = ptr[row + 1];
      const i64 width = inner_ * L;
      const PieceSum<T> sum(workspace<T>(5, PieceSum<T>::size(width)), width);
      if (begin < end) {
        const RowEntries<T> entries = this->sample(row, begin, end);
        this->derive(row, entries, nullptr);
        Base::store(entries, begin, kept_ + (begin - ptr[top]));
        if (o_.of_C.data)
          this->sum_of_row(row, begin, entries, sum);
      }
      if (o_.of_C.data)
        this->finish(begin < end ? sum.value() : nullptr, o_.k, &o_.of_C(row, 0));
    });
  }

  void go_by_columns(i64 top, i64 bottom) const {
    const i64* const ptr = o_.pattern.ptr;
    const I* const first = o_.pattern.first;
    const i64 left = first[top];
    const i64 columns = first[bottom - 1] + ptr[bottom] - ptr[bottom - 1] - left;
    const i64 share = together(ptr[bottom] - ptr[top], columns, kMaskColumns);
    for_each_in_turn(columns, share, threads_, [&](i64 at) {
      const i64 column = left + at, begin = ends_.first[column], end = ends_.last[column];
      const i64 last = std::min(end, bottom);
      const PieceSum<T> sum(sums_ + column * pitch_, width_);
      if (begin >= top)
        sum.clear();
      for (i64 row = std::max(begin, top); row < last; row += kGathered) {
        const i64 count = std::min(kGathered, last - row);
        sum.before(count);
        T weights[kGathered], scores[kGathered];
        for (i64 e = 0; e < count; ++e) {
          const i64 i = row + e;
          const Kept<T> kept = kept_[ptr[i] - ptr[top] + column - first[i]];
          weights[e] = kept.weight;
          scores[e] = kept.score;
        }
        if (of_B_)
          add_rows<8>(C_, Neighbours{row}, scores, count, i64(0), of_B_, sum.piece());
        if (of_D_)
          add_rows<8>(G_, Neighbours{row}, weights, count, i64(0), of_D_, sum.piece() + of_B_);
      }
      if (begin < end && end <= bottom)
        this->finish_column(column, sum.value(), of_B_, of_D_);
    });
  }
};

} // namespace wl
