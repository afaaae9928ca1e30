// Programs of steps that are not compiled into the native module, such as a user's own.
//
// A program is a list of instructions without branches (step_program.py). Each one is a loop over
// the elements of a chunk, so that the selection of the instruction costs little per element. Sums
// are added up in the order of the compiled entries (map.hpp).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "unified/status.hpp"

namespace wl {

enum class StepCode : u8 {
  add,
  sub,
  mul,
  div,
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
  copy,
  square_root,
  conj,
  real,
  magnitude,
  finite,
  square,
  cast,
  add_product, // c + a b
  sub_product, // c - a b
  // Sums over the elements of a column.
  sum,
  sum_of_products, // conj(a) b
  sum_of_squares,
  largest,
  // Values of the columns.
  scalars,
  reals,
  flags,
  numbers,
  number,
  epsilon,
  threshold,
  total
};

constexpr bool is_fused(StepCode code) {
  return code == StepCode::add_product || code == StepCode::sub_product;
}

// Whether the value of a column may be operand number `at` as one value.
constexpr bool takes_single(StepCode code, int at) {
  if (code <= StepCode::div)
    return true;
  return at == 0 && (is_fused(code) || code == StepCode::copy);
}

enum class StepPlace : u8 { PARAMETER, ELEMENT, COLUMN };

struct StepOperand {
  StepPlace place = StepPlace::PARAMETER;
  int at = 0;
};

struct StepInstruction {
  StepCode code;
  bool is_complex; // the operands
  int to;          // a register; of a sum, its number
  int operands;
  StepOperand parts[3];
  double number;
  int squares; // the sum of the squares of the result, or -1
};

enum class StepKind : u8 { vectors, rows, scalars, reals, flags, numbers, status };
struct StepParameter {
  StepKind kind;
  bool writes;
  bool is_loaded = false; // by an instruction on elements
};

enum class StepSum : u8 { REAL, COMPLEX, LARGEST };

// The value of a register goes to a parameter.
struct StepStore {
  int parameter, from;
  std::vector<int> read_later; // parameters that are read after the register was computed
};

struct StepEvent {
  enum Kind : u8 { BEGIN, OBSERVE, HALT } kind;
  stop_code why;
  int from;
};

// A program for real or for complex values.
struct StepText {
  std::vector<StepParameter> parameters;
  std::vector<StepInstruction> elements, before, after;
  std::vector<StepStore> stores, finishing;
  std::vector<StepSum> sums;
  std::vector<StepEvent> events;
  int registers = 0, columns = 0; // registers of elements and of columns
  bool is_streamed = false;       // no two instructions read the same parameter

  // Throws std::invalid_argument if the text is no program.
  static StepText parse(const std::string& text);
};

// Both programs of a step, with the names that messages need.
struct StepProgram {
  std::string operation;
  std::vector<std::string> words;
  std::vector<const char*> names; // "program", then the names of the parameters
  StepText of_real, of_complex;
};

} // namespace wl
