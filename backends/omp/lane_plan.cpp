// The entry for the schedules of a triangle over threads.
#include "omp/lane_plan.hpp"

#include <algorithm>

#include "omp/entries.hpp"

namespace wl {

namespace {

template <class I>
NewArray<I> array_of(const std::vector<I>& numbers) {
  NewArray<I> array(static_cast<i64>(numbers.size()));
  std::copy(numbers.begin(), numbers.end(), array.data);
  return array;
}

// The lanes of a triangle as arrays: starts, begin, end, waits, of, needed. None if one thread is
// to compute it.
struct lane_plan_entry {
  static constexpr const char* operation = "triangular.plan_lanes";
  static constexpr const char* symbol = "plan_lanes";
  static constexpr const char* names[] = {"indptr", "indices", "upper"};
  static Object run(const Call& call) {
    return with_index_type(call, names[0], call.array(0), [&](auto index) {
      using I = decltype(index);
      Extent pointers, entries;
      const I* const indptr = call.contiguous<const I>(0, pointers);
      const I* const indices = call.contiguous<const I>(1, entries);
      const bool upper = call.integer(call.argument(2)) != 0;
      const auto plan = call.compute(
          [&](int threads) { return plan_lanes(indptr, indices, pointers - 1, upper, threads); });
      if (plan.starts.empty())
        return none_object();
      return tuple_of(array_of(plan.starts), array_of(plan.begin), array_of(plan.end),
                      array_of(plan.waits), array_of(plan.of), array_of(plan.needed));
    });
  }
};

} // namespace

void add_lane_plan_entries(PyObject* module) { add_entries<lane_plan_entry>(module); }

} // namespace wl
