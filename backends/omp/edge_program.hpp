// Programs of edge functions, run for some entries of a row at a time.
//
// A program is a list of instructions without branches (core/edge_functions/program.py). Each one
// is a loop over the entries of a chunk, which the compiler makes vector instructions of, so that
// the choice of the instruction costs little for an entry.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "omp/stored_products.hpp"
#include "omp/wide.hpp"

namespace wl {

// Entries of a chunk.
constexpr i64 kProgramChunk = 32;

enum class EdgeCode {
  score,
  row,
  column,
  number,
  of_row,
  of_column,
  of_entry,
  add,
  sub,
  mul,
  div,
  floordiv,
  mod,
  minimum,
  maximum,
  lt,
  le,
  gt,
  ge,
  eq,
  ne,
  both,
  either,
  opposite,
  where,
  neg,
  cast,
  abs,
  exp,
  log,
  log1p,
  tanh,
  sqrt,
  sin,
  cos
};

struct EdgeInstruction {
  EdgeCode code;
  bool is_index; // the result, or the operands of a comparison, are integers
  i64 parts[3];
  double number;
};

struct EdgeProgramText {
  std::vector<EdgeInstruction> instructions;
  std::vector<i64> outputs;
  bool is_softmax = false;
  i64 rows = 0, columns = 0, entries = 0; // numbers of inputs of each kind

  // The program of a text; throws std::invalid_argument if the text is no program.
  static std::shared_ptr<const EdgeProgramText> parse(const std::string& text);
};

// A program with the inputs of one block of a batch.
template <class T>
class EdgeProgram {
public:
  EdgeProgram(const EdgeProgramText& text, mat<const T> rows, mat<const T> columns,
              mat<const T> entries)
      : text_(text), rows_(rows), columns_(columns), entries_(entries) {}

  // Numbers that a thread needs.
  i64 registers() const { return i64(text_.instructions.size()) * kProgramChunk * kWords; }

  // Runs the instructions for `count` entries of a row, the first of which is number `entry` of
  // the pattern. Results stay in `memory`, which has room for registers().
  template <class Columns>
  void run(T* memory, i64 row, Columns columns, i64 entry, i64 count, const T* score) const {
    const i64 n = (count + kLanesOf<T> - 1) / kLanesOf<T> * kLanesOf<T>;
    for (std::size_t at = 0; at < text_.instructions.size(); ++at) {
      const EdgeInstruction& one = text_.instructions[at];
      T* const to = result(memory, at);
      const T *a = result(memory, one.parts[0]), *b = result(memory, one.parts[1]);
      const T* const c = result(memory, one.parts[2]);
      const auto each = [=](auto f) {
        for (i64 e = 0; e < n; ++e)
          to[e] = f(a[e], b[e]);
      };
      const auto each_index = [=](auto f) {
        i64* const made = integers(to);
        const i64 *x = integers(a), *y = integers(b);
        for (i64 e = 0; e < n; ++e)
          made[e] = f(x[e], y[e]);
      };
      const auto either_type = [&](auto f) { one.is_index ? each_index(f) : each(f); };
      const auto compare = [=](auto f) {
        if (!one.is_index) {
          for (i64 e = 0; e < n; ++e)
            to[e] = f(a[e], b[e]) ? T(1) : T(0);
          return;
        }
        const i64 *x = integers(a), *y = integers(b);
        for (i64 e = 0; e < n; ++e)
          to[e] = f(x[e], y[e]) ? T(1) : T(0);
      };
      const auto load_some = [=](auto f) {
        for (i64 e = 0; e < count; ++e)
          to[e] = f(e);
        std::fill(to + count, to + n, T(0));
      };
      const i64 input = i64(one.number);
      switch (one.code) {
      case EdgeCode::score:
        load_some([=](i64 e) { return score[e]; });
        break;
      case EdgeCode::row:
        std::fill_n(integers(to), n, row);
        break;
      case EdgeCode::column:
        for (i64 e = 0; e < n; ++e)
          integers(to)[e] = e < count ? i64(columns[e]) : 0;
        break;
      case EdgeCode::number:
        if (one.is_index)
          std::fill_n(integers(to), n, i64(one.number));
        else
          std::fill_n(to, n, T(one.number));
        break;
      case EdgeCode::of_row:
        std::fill_n(to, n, rows_(input, row));
        break;
      case EdgeCode::of_column:
        load_some([=](i64 e) { return columns_(input, columns[e]); });
        break;
      case EdgeCode::of_entry:
        load_some([=](i64 e) { return entries_(input, entry + e); });
        break;
      case EdgeCode::add:
        either_type([](auto x, auto y) { return x + y; });
        break;
      case EdgeCode::sub:
        either_type([](auto x, auto y) { return x - y; });
        break;
      case EdgeCode::mul:
        either_type([](auto x, auto y) { return x * y; });
        break;
      case EdgeCode::div:
        each([](T x, T y) { return x / y; });
        break;
      case EdgeCode::floordiv:
        each_index([](i64 x, i64 y) { return x / y - (x % y < 0); });
        break;
      case EdgeCode::mod:
        each_index([](i64 x, i64 y) { return x % y + (x % y < 0 ? y : 0); });
        break;
      case EdgeCode::minimum:
        either_type([](auto x, auto y) { return x < y || x != x ? x : y; });
        break;
      case EdgeCode::maximum:
        either_type([](auto x, auto y) { return x > y || x != x ? x : y; });
        break;
      case EdgeCode::lt:
        compare([](auto x, auto y) { return x < y; });
        break;
      case EdgeCode::le:
        compare([](auto x, auto y) { return x <= y; });
        break;
      case EdgeCode::gt:
        compare([](auto x, auto y) { return x > y; });
        break;
      case EdgeCode::ge:
        compare([](auto x, auto y) { return x >= y; });
        break;
      case EdgeCode::eq:
        compare([](auto x, auto y) { return x == y; });
        break;
      case EdgeCode::ne:
        compare([](auto x, auto y) { return x != y; });
        break;
      case EdgeCode::both:
        each([](T x, T y) { return x * y; });
        break;
      case EdgeCode::either:
        each([](T x, T y) { return x > y ? x : y; });
        break;
      case EdgeCode::opposite:
        each([](T x, T) { return T(1) - x; });
        break;
      case EdgeCode::where:
        if (one.is_index)
          for (i64 e = 0; e < n; ++e)
            integers(to)[e] = a[e] != T(0) ? integers(b)[e] : integers(c)[e];
        else
          for (i64 e = 0; e < n; ++e)
            to[e] = a[e] != T(0) ? b[e] : c[e];
        break;
      case EdgeCode::neg:
        either_type([](auto x, auto) { return -x; });
        break;
      case EdgeCode::cast:
        for (i64 e = 0; e < n; ++e)
          to[e] = T(integers(a)[e]);
        break;
      case EdgeCode::abs:
        either_type([](auto x, auto) { return x < 0 ? -x : x; });
        break;
      case EdgeCode::exp:
        for (i64 e = 0; e < n; e += kLanesOf<T>)
          save<T>(to + e, exp_of<T, kLanesOf<T>>(load<T>(a + e)));
        break;
      case EdgeCode::log:
        load_some([=](i64 e) { return std::log(a[e]); });
        break;
      case EdgeCode::log1p:
        load_some([=](i64 e) { return std::log1p(a[e]); });
        break;
      case EdgeCode::tanh:
        load_some([=](i64 e) { return std::tanh(a[e]); });
        break;
      case EdgeCode::sqrt:
        load_some([=](i64 e) { return std::sqrt(a[e]); });
        break;
      case EdgeCode::sin:
        load_some([=](i64 e) { return std::sin(a[e]); });
        break;
      case EdgeCode::cos:
        load_some([=](i64 e) { return std::cos(a[e]); });
        break;
      }
    }
  }

  // Output number `number` of the last run.
  const T* output(const T* memory, i64 number) const {
    return result(memory, text_.outputs[number]);
  }

  i64 outputs() const { return i64(text_.outputs.size()); }

private:
  // A result may be an integer of 64 bits for each entry.
  static constexpr i64 kWords = sizeof(i64) / sizeof(T);

  const EdgeProgramText& text_;
  mat<const T> rows_, columns_, entries_;

  template <class P>
  static P* result(P* memory, i64 at) {
    return memory + at * kProgramChunk * kWords;
  }
  static i64* integers(T* values) { return reinterpret_cast<i64*>(values); }
  static const i64* integers(const T* values) { return reinterpret_cast<const i64*>(values); }
};

} // namespace wl
