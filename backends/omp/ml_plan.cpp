// Plans of patterns, made once for a matrix.
#include "omp/batched_operands.hpp"
#include "omp/entries.hpp"

namespace wl {

namespace {

Object plan_object(PatternPlan plan) {
  return capsule_of<const PatternPlan>(kPlanCapsule,
                                       std::make_shared<PatternPlan>(std::move(plan)));
}

// The plan of a partition: "balanced", "even", or "panels" of some columns of a balanced one, with
// their columns in 16 bits if they are "packed-panels". None if panels do not suit the matrix: its
// rows must be sorted and none of them long.
struct pattern_plan_entry {
  static constexpr const char* operation = "csr.ml_plan";
  static constexpr const char* symbol = "pattern_plan";
  static constexpr const char* names[] = {"A", "partition", "width"};
  static Object run(const Call& call) {
    const std::string partition = call.text(1);
    const i64 width = call.integer(call.argument(2));
    return with_pattern_type(call, 0, [&](auto index) {
      using I = decltype(index);
      const PatternArgument<I> A(call, 0);
      PatternPlan plan;
      const bool made = call.compute([&](int) {
        if (partition == "even")
          plan = even_plan(A.indptr, A.m);
        else if (partition == "balanced")
          plan = balanced_plan(A.indptr, A.m);
        else {
          plan = balanced_plan(A.indptr, A.m, panel_part_entries(A.nnz, A.n));
          return add_panels(plan, A.indptr, A.indices, A.n, width, partition == "packed-panels");
        }
        return true;
      });
      return made ? plan_object(std::move(plan)) : none_object();
    });
  }
};

// The bytes of a plan; None for another object.
struct pattern_plan_bytes_entry {
  static constexpr const char* operation = "csr.ml_plan";
  static constexpr const char* symbol = "pattern_plan_bytes";
  static constexpr const char* names[] = {"plan"};
  static Object run(const Call& call) {
    PyObject* const plan = call.argument(0);
    if (!PyCapsule_IsValid(plan, kPlanCapsule))
      return none_object();
    return whole_number(held_in<const PatternPlan>(kPlanCapsule, plan)->bytes());
  }
};

// Equal shares of the entries of rows that begin where `ptr` says.
struct mask_plan_entry {
  static constexpr const char* operation = "mask.plan";
  static constexpr const char* symbol = "mask_plan";
  static constexpr const char* names[] = {"ptr"};
  static Object run(const Call& call) {
    Extent starts;
    const i64* const ptr = call.contiguous<const i64>(0, starts);
    return plan_object(balanced_plan(ptr, starts - 1));
  }
};

} // namespace

void add_pattern_plan_entries(PyObject* module) {
  add_entries<pattern_plan_entry, pattern_plan_bytes_entry, mask_plan_entry>(module);
}

} // namespace wl
