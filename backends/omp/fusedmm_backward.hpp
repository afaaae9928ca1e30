// The gradients of E_i = sum_j f(s_ij) D_j, s_ij = alpha <C_i, B_j> [values_ij], in two passes.
//
// The first pass goes by rows. It samples the scores of a row and the gradients of the weights
// <G_i, D_j> together, applies f and its derivative while they are in the first-level cache, and
// adds up the row of the gradient of C from rows of B that are in the cache too. It stores two
// numbers per entry for the second pass. The second pass goes by columns and adds up the gradients
// of B and D. So no two threads write the same memory, and the sums have a fixed order.
//
// If the forward product stored the logarithms of the totals of a softmax, weights need no sum over
// the row, and the mean of their gradients is <G_i, E_i> (Dao 2023, FlashAttention-2): a row that
// is cut is then sampled once, not twice.
//
// GPUs sample again in the second pass (Dao 2023, FlashAttention-2), which would cost two more
// products for each entry. Here two stored numbers are cheap, because blocks are processed one
// after the other and use the same memory.
#pragma once

#include "omp/fusedmm.hpp"

namespace wl {

template <class S, class Pattern>
struct FusedmmBackward {
  using T = computed_t<S>;
  i64 m, n, k, p;
  Pattern pattern;
  const S* values;            // nullptr where only the pattern counts
  mat<const S> C, B, D, G, E; // E where log_totals are known
  const T* log_totals;        // or nullptr
  S* of_values;               // gradients: nullptr if not needed
  mat<S> of_C, of_B, of_D;
  T alpha;
  Edge edge;

  // Whether results of the forward product replace sums over rows. An E with 16 bits is rounded,
  // and the means of gradients computed from it would be too: for rows of a few entries their error
  // is five times as large.
  bool knows_rows() const { return log_totals && sizeof(S) == sizeof(T); }
  bool derives_scores() const { return of_values || of_C.data || of_B.data; }
};

// The softmax of a row and its derivative need these values of the whole row: the largest score,
// and the sums of the exponentials relative to it and of their products with the weights'
// gradients.
template <class T>
struct SoftmaxRow {
  T largest, total, product;

  T base() const { return largest == -std::numeric_limits<T>::infinity() ? T(0) : largest; }

  // Merges the results of the parts of a row.
  template <class PartAt>
  static SoftmaxRow merged(i64 first, i64 last, const PartAt& part_at) {
    T common = -std::numeric_limits<T>::infinity();
    for (i64 i = first; i < last; ++i)
      common = std::max(common, part_at(i).largest);
    long_sum<T> total{}, product{};
    for (i64 i = first; i < last; ++i) {
      const SoftmaxRow part = part_at(i);
      const T factor = part.largest == common ? T(1) : RowSum<T>::exp(part.largest - common);
      total.add(factor * part.total);
      product.add(factor * part.product);
    }
    return {common, total.value(), product.value()};
  }
};

// The entries of a row, or of a part of it, during the computation.
template <class T>
struct RowEntries {
  i64 count;
  T *dots, *s, *d; // <C_i, B_j>; scores, then weights; the weights' gradients, then the scores'

  static i64 whole_registers(i64 count) {
    constexpr i64 L = kLanesOf<T>;
    return (count + L - 1) / L * L;
  }

  // Turns the scores into exponentials, and returns the values of the row. Padding does not
  // contribute: its scores are minus infinity, and its gradients 0.
  SoftmaxRow<T> exponentials() const {
    constexpr int L = kLanesOf<T>;
    SoftmaxRow<T> row{largest_score(s, count), T(0), T(0)};
    const T base = row.base();
    row.total = sum_of_registers<T>(count, [&](i64 e) {
      const wide<T> power = exp_of<T, L>(load<T>(s + e) - base);
      save<T>(s + e, power);
      return power;
    });
    row.product =
        sum_of_registers<T>(count, [&](i64 e) { return load<T>(s + e) * load<T>(d + e); });
    return row;
  }

  void powers(T base) const {
    constexpr int L = kLanesOf<T>;
    for (i64 e = 0; e < count; e += L)
      save<T>(s + e, exp_of<T, L>(load<T>(s + e) - base));
  }

  void softmax_gradient(const SoftmaxRow<T>& row) const {
    constexpr int L = kLanesOf<T>;
    const T share = share_of_total(row.total), mean = row.product * share;
    for (i64 e = 0; e < count; e += L) {
      const wide<T> weight = share * load<T>(s + e);
      save<T>(s + e, weight);
      save<T>(d + e, weight * (load<T>(d + e) - mean));
    }
  }

  // The gradient of softmax if the logarithm of the row's total and the mean are known.
  void softmax_gradient(T log_total, T mean) const {
    constexpr int L = kLanesOf<T>;
    for (i64 e = 0; e < count; e += L) {
      const wide<T> weight = exp_of<T, L>(load<T>(s + e) - log_total);
      save<T>(s + e, weight);
      save<T>(d + e, weight * (load<T>(d + e) - mean));
    }
  }

  void sigmoid_gradient() const {
    constexpr int L = kLanesOf<T>;
    for (i64 e = 0; e < count; e += L) {
      const wide<T> x = load<T>(s + e), zero{};
      const wide<T> small = exp_of<T, L>(x < zero ? x : -x);
      const wide<T> weight = (x < zero ? small : zero + T(1)) / (small + T(1));
      save<T>(s + e, weight);
      save<T>(d + e, load<T>(d + e) * weight * (T(1) - weight));
    }
  }
};

// The results of the first pass for an entry, stored together: the second pass reads entries in any
// order.
template <class T>
struct Kept {
  T weight, score; // f(s), and alpha times the gradient of <C_i, B_j>
};

template <class T, class Columns>
using AllDots = void (*)(const T* row, i64 registers, const Operand<T>& with, Columns columns,
                         i64 count, T* sums);

// One function for each number of registers: the products of C and B, and the products of G and D,
// may have different ones.
template <class T, class Columns>
AllDots<T, Columns> all_dots_of(i64 registers) {
  AllDots<T, Columns> found = nullptr;
  with_registers(registers, [&](auto held) {
    found = [](const T* row, i64 registers, const Operand<T>& with, Columns columns, i64 count,
               T* sums) {
      HeldRow<T, decltype(held)::value>(row, registers).all_dots(with, columns, count, sums);
    };
  });
  return found;
}

// The operands of both passes, and the work on the entries of a row, or of a part of it.
template <class S, class Pattern>
class RowGradients {
protected:
  using T = computed_t<S>;
  using Columns = decltype(Pattern().columns(0));
  static constexpr i64 L = kLanesOf<T>;
  // Weights that are gathered at a time in the second pass.
  static constexpr i64 kGathered = 256;

  const FusedmmBackward<S, Pattern>& o_;
  const int threads_;
  const Operand<T> C_, B_, D_, G_, E_;
  const i64 inner_, outer_; // registers of a row of C and B, of D and G
  const AllDots<T, Columns> inner_dots_, outer_dots_;

  RowGradients(const FusedmmBackward<S, Pattern>& o, int threads)
      : o_(o), threads_(threads), C_(operand(o.C, o.m, o.k, 0)), B_(operand(o.B, o.n, o.k, 1)),
        D_(operand(o.D, o.n, o.p, 3)), G_(operand(o.G, o.m, o.p, 6)),
        E_(o.knows_rows() ? operand(o.E, o.m, o.p, 8) : Operand<T>{nullptr, 0}),
        inner_((o.k + L - 1) / L), outer_((o.p + L - 1) / L),
        inner_dots_(all_dots_of<T, Columns>(inner_)), outer_dots_(all_dots_of<T, Columns>(outer_)) {
  }

  Operand<T> operand(const mat<const S>& from, i64 rows, i64 columns, int buffer) const {
    return whole_registers<T>(from, rows, columns, o_.pattern.ptr[o_.m], buffer, threads_);
  }

  // The scores of entries, and the gradients of their weights.
  RowEntries<T> sample(i64 row, i64 begin, i64 end) const {
    const i64 length = RowEntries<T>::whole_registers(end - begin);
    T* const memory = workspace<T>(7, 3 * length);
    const RowEntries<T> entries{end - begin, memory, memory + length, memory + 2 * length};
    const Columns columns = o_.pattern.columns(row) + begin;
    inner_dots_(C_.row(row), inner_, B_, columns, entries.count, entries.dots);
    if (o_.derives_scores())
      outer_dots_(G_.row(row), outer_, D_, columns, entries.count, entries.d);
    else
      std::fill_n(entries.d, entries.count, T(0));
    for (i64 e = 0; e < entries.count; e += L)
      save<T>(entries.s + e, o_.alpha * load<T>(entries.dots + e));
    if (o_.values)
      for (i64 e = 0; e < entries.count; ++e)
        entries.s[e] *= static_cast<T>(widen(o_.values[begin + e]));
    for (i64 e = entries.count; e < length; ++e) {
      entries.s[e] = -std::numeric_limits<T>::infinity();
      entries.d[e] = T(0);
    }
    return entries;
  }

  // The mean of the gradients of a row's weights.
  T mean_of(i64 row) const {
    const T *const g = G_.row(row), *const e = E_.row(row);
    return sum_of_registers<T>(outer_ * L,
                               [=](i64 r) -> wide<T> { return load<T>(g + r) * load<T>(e + r); });
  }

  // Turns scores into weights and the gradients of the weights into the gradients of the scores.
  // For a part of a row, `known` holds the values of the whole row.
  void derive(i64 row, const RowEntries<T>& entries, const SoftmaxRow<T>* known) const {
    if (o_.edge == Edge::sigmoid) {
      entries.sigmoid_gradient();
    } else if (o_.edge == Edge::softmax && o_.knows_rows()) {
      entries.softmax_gradient(o_.log_totals[row], mean_of(row));
    } else if (o_.edge == Edge::softmax) {
      if (known)
        entries.powers(known->base());
      entries.softmax_gradient(known ? *known : entries.exponentials());
    }
  }

  // Stores in `d` the factors of rows of B, and in `kept` the data for the second pass.
  void store(const RowEntries<T>& entries, i64 begin, Kept<T>* kept) const {
    for (i64 e = 0; e < entries.count; e += L)
      save<T>(entries.d + e, o_.alpha * load<T>(entries.d + e));
    if (o_.of_values)
      for (i64 e = 0; e < entries.count; ++e)
        narrow(entries.d[e] * entries.dots[e], o_.of_values[begin + e]);
    if (o_.values)
      for (i64 e = 0; e < entries.count; ++e)
        entries.d[e] *= static_cast<T>(widen(o_.values[begin + e]));
    if (o_.of_B.data || o_.of_D.data)
      for (i64 e = 0; e < entries.count; ++e)
        kept[e] = {entries.s[e], entries.d[e]};
  }

  // Makes `sum` that of the gradient of C.
  void sum_of_row(i64 row, i64 begin, const RowEntries<T>& entries, const PieceSum<T>& sum) const {
    const Columns columns = o_.pattern.columns(row) + begin;
    sum.clear();
    for (i64 from = 0; from < entries.count; from += PIECE_OF_SUM) {
      const i64 count = std::min(PIECE_OF_SUM, entries.count - from);
      sum.before(count);
      add_rows<8>(B_, columns + from, entries.d + from, count, i64(0), inner_ * L, sum.piece());
    }
  }

  // Stores a sum, or zeros if there is none.
  static void finish(const T* sum, i64 columns, S* to) {
    for (i64 j = 0; j < columns; ++j)
      narrow(sum ? sum[j] : T(0), to[j]);
  }

  // Stores the gradients of B and D of a column: the first `of_B` and the next `of_D` numbers of a
  // sum; zeros without one.
  void finish_column(i64 column, const T* sum, i64 of_B, i64 of_D) const {
    if (of_B)
      finish(sum, o_.k, &o_.of_B(column, 0));
    if (of_D)
      finish(sum ? sum + of_B : nullptr, o_.p, &o_.of_D(column, 0));
  }
};

// The transpose of a pattern with listed entries, and the position of each entry in it.
template <class I>
struct Turned {
  const I *ptr, *rows, *order;
  const PatternPlan *by_rows, *by_columns;
};

template <class S, class I>
class FusedmmGradients : RowGradients<S, Listed<I>> {
  using Base = RowGradients<S, Listed<I>>;
  using Base::C_, Base::G_, Base::inner_, Base::kGathered, Base::L, Base::o_, Base::outer_,
      Base::threads_;
  using typename Base::T;
  // Entries by which the second pass prefetches results of the first: 0.95 of the time of R-MAT's
  // graphs.
  static constexpr i64 kAhead = 64;

  const Turned<I> turned_;
  Kept<T>* const kept_; // of all entries

public:
  FusedmmGradients(const FusedmmBackward<S, Listed<I>>& o, const Turned<I>& turned, Kept<T>* kept,
                   int threads)
      : Base(o, threads), turned_(turned), kept_(kept) {}

  void run() {
    go_by_rows();
    if (o_.of_B.data || o_.of_D.data)
      go_by_columns();
  }

private:
  void go_by_rows() {
    const PatternPlan& plan = *turned_.by_rows;
    const i64 width = inner_ * L, of_sum = PieceSum<T>::size(width);
    const i64 pitch = of_sum + std::max(L, i64(4));
    // For a part of a row that is cut: its sum of C's gradient, and its softmax values.
    T* const slots = workspace<T>(4, plan.slots * pitch);
    const auto known = [=](i64 slot) {
      return reinterpret_cast<SoftmaxRow<T>*>(slots + slot * pitch + of_sum);
    };
    const bool cut = plan.slots > 0 && o_.edge == Edge::softmax && !o_.knows_rows();
    if (cut) {
      plan.for_parts(threads_, [&](const Part& part) {
        if (part.slot >= 0)
          *known(part.slot) = this->sample(part.first, part.begin, part.end).exponentials();
      });
      for (const LongRow& row : plan.long_rows) {
        const SoftmaxRow<T> whole = SoftmaxRow<T>::merged(row.first_slot, row.last_slot,
                                                          [&](i64 slot) { return *known(slot); });
        for (i64 slot = row.first_slot; slot < row.last_slot; ++slot)
          *known(slot) = whole;
      }
    }

    plan.for_parts(threads_, [&](const Part& part) {
      const PieceSum<T> sum(part.slot >= 0 ? slots + part.slot * pitch : workspace<T>(5, of_sum),
                            width);
      plan.for_segments(
          part, o_.pattern.ptr,
          [&](i64 row, i64 begin, i64 end) {
            if (begin == end) {
              if (o_.of_C.data)
                this->finish(nullptr, o_.k, &o_.of_C(row, 0));
              return;
            }
            const RowEntries<T> entries = this->sample(row, begin, end);
            this->derive(row, entries, part.slot >= 0 ? known(part.slot) : nullptr);
            this->store(entries, begin, kept_ + begin);
            if (!o_.of_C.data)
              return;
            this->sum_of_row(row, begin, entries, sum);
            if (part.slot < 0)
              this->finish(sum.value(), o_.k, &o_.of_C(row, 0));
          },
          [](i64, i64) {});
    });
    if (o_.of_C.data)
      for (const LongRow& row : plan.long_rows)
        this->finish(merged(row, slots, pitch, width), o_.k, &o_.of_C(row.row, 0));
  }

  void go_by_columns() {
    const PatternPlan& plan = *turned_.by_columns;
    const i64 of_B = o_.of_B.data ? inner_ * L : 0, of_D = o_.of_D.data ? outer_ * L : 0;
    const i64 width = of_B + of_D, pitch = PieceSum<T>::size(width);
    T* const slots = workspace<T>(4, plan.slots * pitch);
    const auto add = [&](i64 begin, i64 count, T* sum) {
      T weights[kGathered], scores[kGathered];
      for (i64 e = 0; e < count; ++e) {
        __builtin_prefetch(kept_ + turned_.order[std::min(begin + e + kAhead, plan.entries - 1)]);
        const Kept<T> kept = kept_[turned_.order[begin + e]];
        weights[e] = kept.weight;
        scores[e] = kept.score;
      }
      const I* const rows = turned_.rows + begin;
      if (of_B)
        add_rows<8>(C_, rows, scores, count, i64(0), of_B, sum);
      if (of_D)
        add_rows<8>(G_, rows, weights, count, i64(0), of_D, sum + of_B);
    };
    plan.for_parts(threads_, [&](const Part& part) {
      const PieceSum<T> sum(part.slot >= 0 ? slots + part.slot * pitch : workspace<T>(5, pitch),
                            width);
      plan.for_segments(
          part, turned_.ptr,
          [&](i64 column, i64 begin, i64 end) {
            sum.clear();
            for (i64 from = begin; from < end; from += kGathered) {
              const i64 count = std::min(kGathered, end - from);
              sum.before(count);
              add(from, count, sum.piece());
            }
            if (part.slot < 0)
              this->finish_column(column, sum.value(), of_B, of_D);
          },
          [](i64, i64) {});
    });
    for (const LongRow& column : plan.long_rows)
      this->finish_column(column.row, merged(column, slots, pitch, width), of_B, of_D);
  }

  // The sum of the parts of a row.
  static const T* merged(const LongRow& cut, T* slots, i64 pitch, i64 width) {
    const PieceSum<T> sum(slots + cut.first_slot * pitch, width);
    for (i64 slot = cut.first_slot + 1; slot < cut.last_slot; ++slot)
      sum.merge(PieceSum<T>(slots + slot * pitch, width));
    return sum.value();
  }
};

} // namespace wl
