// Patterns that are operands are found again by their content: the addresses of XLA's buffers say
// nothing about it.
#include "omp/ffi_pattern.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "omp/ffi_names.hpp"

namespace wl {

namespace {

template <class I>
struct Transposed {
  std::vector<I> indptr, indices, order;

  // The entries sorted by columns; within a column they keep their order.
  Transposed(const I* from, const I* columns, i64 m, i64 n)
      : indptr(n + 1, 0), indices(from[m]), order(from[m]) {
    const i64 nnz = from[m];
    for (i64 e = 0; e < nnz; ++e)
      ++indptr[columns[e] + 1];
    for (i64 column = 0; column < n; ++column)
      indptr[column + 1] += indptr[column];
    std::vector<I> next(indptr.begin(), indptr.end() - 1);
    for (i64 row = 0; row < m; ++row)
      for (i64 e = from[row]; e < from[row + 1]; ++e) {
        const I at = next[columns[e]]++;
        indices[at] = static_cast<I>(row);
        order[at] = static_cast<I>(e);
      }
  }
};

// A copy of the arrays of a pattern, and its plans, made when they are first asked for.
class KeptPattern {
public:
  virtual ~KeptPattern() = default;
  virtual bool is_of(const StoredPattern& given) const = 0;
  virtual FfiPattern with_plan(Rows rows, bool transposed) = 0;
};

template <class I>
class Kept final : public KeptPattern {
public:
  explicit Kept(const StoredPattern& given)
      : m_(given.m), n_(given.n), indptr_(static_cast<const I*>(given.indptr),
                                          static_cast<const I*>(given.indptr) + given.m + 1),
        indices_(static_cast<const I*>(given.indices),
                 static_cast<const I*>(given.indices) + given.nnz) {}

  bool is_of(const StoredPattern& given) const override {
    return given.m == m_ && given.n == n_ && given.is_wide == (sizeof(I) == sizeof(i64)) &&
           given.nnz == static_cast<i64>(indices_.size()) &&
           std::memcmp(given.indptr, indptr_.data(), indptr_.size() * sizeof(I)) == 0 &&
           std::memcmp(given.indices, indices_.data(), indices_.size() * sizeof(I)) == 0;
  }

  FfiPattern with_plan(Rows rows, bool transposed) override {
    const std::lock_guard<std::mutex> guard(mutex_);
    FfiPattern found;
    if (transposed && !transposed_)
      transposed_.emplace(indptr_.data(), indices_.data(), m_, n_);
    const I* const indptr = transposed ? transposed_->indptr.data() : indptr_.data();
    const I* const indices = transposed ? transposed_->indices.data() : indices_.data();
    const i64 m = transposed ? n_ : m_, n = transposed ? m_ : n_;
    found.arrays = {m, n, indptr[m], indptr, indices, sizeof(I) == sizeof(i64)};
    found.order = transposed ? transposed_->order.data() : nullptr;
    std::shared_ptr<const PatternPlan>& plan =
        plans_[transposed ? 1 : 0][rows == Rows::cut ? 0 : 1];
    if (plan == nullptr)
      plan = std::make_shared<const PatternPlan>(rows == Rows::cut ? balanced_plan(indptr, m)
                                                                   : even_plan(indptr, m));
    found.plan = plan;
    return found;
  }

private:
  const i64 m_, n_;
  const std::vector<I> indptr_, indices_;
  std::optional<Transposed<I>> transposed_;
  std::shared_ptr<const PatternPlan> plans_[2][2];
  std::mutex mutex_;
};

template <class I>
void check(const I* indptr, const I* indices, i64 m, i64 n, i64 capacity) {
  if (indptr[0] != 0)
    throw FfiError("InvalidMatrix: indptr[0] = " + std::to_string(indptr[0]) + ", expected 0");
  for (i64 row = 0; row < m; ++row)
    if (indptr[row + 1] < indptr[row] || indptr[row + 1] > capacity)
      throw FfiError("InvalidMatrix: indptr[" + std::to_string(row + 1) +
                     "] = " + std::to_string(indptr[row + 1]) + ", expected a number from indptr[" +
                     std::to_string(row) + "] to the number of indices, " +
                     std::to_string(capacity));
  for (i64 e = 0; e < indptr[m]; ++e)
    if (indices[e] < 0 || indices[e] >= n)
      throw FfiError("InvalidMatrix: indices[" + std::to_string(e) +
                     "] = " + std::to_string(indices[e]) + ", expected a column from 0 to " +
                     std::to_string(n - 1));
}

std::mutex recent_mutex;

std::deque<std::shared_ptr<KeptPattern>>& recent() {
  static std::deque<std::shared_ptr<KeptPattern>> patterns;
  return patterns;
}

template <class I>
std::shared_ptr<KeptPattern> kept_pattern(StoredPattern given, i64 capacity) {
  const I* const indptr = static_cast<const I*>(given.indptr);
  given.nnz = std::clamp<i64>(indptr[given.m], 0, capacity);
  std::vector<std::shared_ptr<KeptPattern>> candidates;
  {
    const std::lock_guard<std::mutex> guard(recent_mutex);
    candidates.assign(recent().rbegin(), recent().rend());
  }
  for (const auto& candidate : candidates)
    if (candidate->is_of(given))
      return candidate;
  check(indptr, static_cast<const I*>(given.indices), given.m, given.n, capacity);
  auto made = std::make_shared<Kept<I>>(given);
  const std::lock_guard<std::mutex> guard(recent_mutex);
  recent().push_back(made);
  if (recent().size() > kKeptPatterns)
    recent().pop_front();
  return made;
}

// A kept pattern is freed with the objects that were made from it.
struct Together {
  std::shared_ptr<KeptPattern> kept;
  FfiPattern pattern;
};

FfiNames<const FfiPattern>& names() {
  static FfiNames<const FfiPattern> patterns;
  return patterns;
}

std::shared_ptr<const FfiPattern> named_pattern(i64 name) {
  auto pattern = names().find(name);
  if (pattern == nullptr)
    throw FfiError("the pattern of this program is gone: it was compiled in another process, or "
                   "the program outlived its compilation; compile it again");
  return pattern;
}

} // namespace

i64 name_pattern(const std::shared_ptr<const FfiPattern>& pattern) { return names().name(pattern); }

std::shared_ptr<const void> owner_of(const FfiCall& call) {
  const i64 name = call.integer("pattern");
  if (name == 0)
    return nullptr;
  return named_pattern(name);
}

std::shared_ptr<const FfiPattern> pattern_of(const FfiCall& call, Rows rows, bool transposed) {
  const i64 name = call.integer("pattern");
  if (name != 0)
    return named_pattern(name);
  const XLA_FFI_Buffer &indptr = call.operand(0), &indices = call.operand(1);
  const bool is_wide = indptr.dtype == XLA_FFI_DataType_S64;
  if ((!is_wide && indptr.dtype != XLA_FFI_DataType_S32) || indices.dtype != indptr.dtype ||
      indptr.rank != 1 || indices.rank != 1 || indptr.dims[0] < 1)
    throw FfiError("InvalidMatrix: expected indptr and indices of one dimension, both int32 or "
                   "both int64");
  const StoredPattern given{
      indptr.dims[0] - 1, call.integer("columns"), 0, indptr.data, indices.data, is_wide};
  const i64 capacity = indices.dims[0];
  auto together = std::make_shared<Together>();
  together->kept =
      is_wide ? kept_pattern<i64>(given, capacity) : kept_pattern<i32>(given, capacity);
  together->pattern = together->kept->with_plan(rows, transposed);
  together->pattern.threads = static_cast<int>(call.integer("threads"));
  return {together, &together->pattern};
}

} // namespace wl
