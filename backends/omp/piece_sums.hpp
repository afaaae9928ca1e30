// Sums of many numbers, or of many rows of numbers, that are held in float32: see long_sums.hpp.
#pragma once

#include <algorithm>

#include "omp/operand.hpp"
#include "unified/long_sums.hpp"

namespace wl {

// The sum of term(e), whole registers of T, for the registers that hold the numbers [0, count).
template <class T, class Term>
T sum_of_registers(i64 count, const Term& term) {
  constexpr i64 L = kLanesOf<T>, piece = PIECE_OF_SUM * L;
  const auto sum_to = [&](i64 begin, i64 end) {
    wide<T> sum{};
    for (i64 e = begin; e < end; e += L)
      sum += term(e);
    return sum;
  };
  if (!sums_in_pieces<T> || count <= piece)
    return sum_of<T, L>(sum_to(0, count));
  long_sum<wide<T>> total{};
  for (i64 begin = 0; begin < count; begin += piece)
    total.add(sum_to(begin, std::min(begin + piece, count)));
  return sum_of<T, L>(total.value());
}

// A sum of rows of `width` numbers, which are whole registers, in the memory of a caller. Rows are
// added to `piece()`, after before(count) has said how many follow. A piece that is full joins the
// sum of pieces, with the rounding errors.
template <class T>
class PieceSum {
  static constexpr bool kInPieces = sums_in_pieces<T>;
  static constexpr i64 L = kLanesOf<T>;
  T* const memory_;
  const i64 width_;

  T* high() const { return memory_ + width_; }
  T* low() const { return memory_ + 2 * width_; }
  T& held() const { return memory_[3 * width_]; }       // rows of the piece
  T& joined() const { return memory_[3 * width_ + 1]; } // pieces that have joined

  void join() const {
    const bool is_first = joined() == T(0);
    for (i64 j = 0; j < width_; j += L) {
      const wide<T> part = load<T>(piece() + j);
      long_sum<wide<T>> sum{part, wide<T>{}};
      if (!is_first) {
        sum = {load<T>(high() + j), load<T>(low() + j)};
        sum.add(part);
      }
      save<T>(high() + j, sum.high);
      save<T>(low() + j, sum.low);
      save<T>(piece() + j, wide<T>{});
    }
    joined() = T(1);
    held() = T(0);
  }

public:
  static constexpr i64 whole_registers(i64 count) { return (count + L - 1) / L * L; }
  // Numbers that a sum needs.
  static constexpr i64 size(i64 width) { return kInPieces ? 3 * width + L : width; }

  PieceSum(T* memory, i64 width) : memory_(memory), width_(width) {}

  T* piece() const { return memory_; }

  void clear() const {
    std::fill_n(memory_, width_, T(0));
    if constexpr (kInPieces)
      held() = joined() = T(0);
  }

  void before(i64 count) const {
    if constexpr (kInPieces) {
      if (held() + T(count) > T(PIECE_OF_SUM) && held() > T(0))
        join();
      held() += T(count);
    }
  }

  void scale(T factor) const {
    const auto scale_part = [&](T* part) {
      for (i64 j = 0; j < width_; j += L)
        save<T>(part + j, factor * load<T>(part + j));
    };
    scale_part(piece());
    if constexpr (kInPieces)
      if (joined() != T(0)) {
        scale_part(high());
        scale_part(low());
      }
  }

  // Makes the sum of all rows of the piece. No row may be added behind.
  void finish() const {
    if constexpr (kInPieces)
      if (joined() != T(0)) {
        join();
        for (i64 j = 0; j < width_; j += L)
          save<T>(piece() + j, long_sum<wide<T>>{load<T>(high() + j), load<T>(low() + j)}.value());
      }
  }
  const T* value() const {
    finish();
    return piece();
  }

  // Adds `factor` times another sum of as many numbers, of many rows.
  void merge(const PieceSum& other, T factor = T(1)) const {
    const T* const its = other.value();
    before(PIECE_OF_SUM);
    for (i64 j = 0; j < width_; j += L)
      save<T>(piece() + j, load<T>(piece() + j) + factor * load<T>(its + j));
  }
};

// A sum of `count` numbers that holds zeros, in a buffer of the workspace.
template <class T>
PieceSum<T> cleared_sum(int buffer, i64 count) {
  const i64 width = PieceSum<T>::whole_registers(count);
  const PieceSum<T> sum(workspace<T>(buffer, PieceSum<T>::size(width)), width);
  sum.clear();
  return sum;
}

} // namespace wl
