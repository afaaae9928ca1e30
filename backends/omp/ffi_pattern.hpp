// Patterns as the handlers for XLA get them: bound to a compiled program, or as operands of a call.
#pragma once

#include <memory>

#include "omp/ffi_call.hpp"
#include "omp/stored_products.hpp"

namespace wl {

// A pattern and all that a product on it needs. A compiled program names it by a number.
struct FfiPattern {
  StoredPattern arrays{};
  // Where the entries are in the values of the operand; nullptr if they are in that order.
  const void* order = nullptr;
  std::shared_ptr<const PatternPlan> plan;
  bool by_reduction = false;
  int threads = 1;
};

// The number of patterns of earlier operands that are kept.
constexpr std::size_t kKeptPatterns = 16;

// Names a pattern for compiled programs until its owner is freed; see FfiNames.
i64 name_pattern(const std::shared_ptr<const FfiPattern>& pattern);

// Which plan an operation needs: of equal shares of entries, or of whole rows.
enum class Rows { cut, whole };

// The pattern of a call: the one that the attribute `pattern` names, or if that is 0, the one of
// the arrays that are the first two operands. Equal arrays give the same plan. `transposed` asks
// for that of the transpose; a bound pattern is transposed already.
std::shared_ptr<const FfiPattern> pattern_of(const FfiCall& call, Rows rows, bool transposed);

// The pattern that a call names, for its executable to keep; nullptr if it comes as operands.
std::shared_ptr<const void> owner_of(const FfiCall& call);

// The number of operands of the pattern.
inline i64 pattern_operands(const FfiCall& call) { return call.integer("pattern") == 0 ? 2 : 0; }

} // namespace wl
