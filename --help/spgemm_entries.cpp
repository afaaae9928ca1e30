// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/spgemm.hpp"

namespace wl {

namespace {

// lengths_i = how many columns row i of the product has, total = their sum
struct spgemm_count_entry {
  static constexpr const char* operation = "spgemm.count";
  static constexpr const char* symbol = "spgemm_count";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "other_indptr",
      "other_indices",
      "other_values",
      "lengths",
      "total",
  };
  static constexpr bool by_row = true;
  static constexpr bool one_column = true;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F&, i64) {
    return true;
  }
  template <class F>
  static void set_unit(F&) {
  }
  static Object run(const Call& call) {
    with_value_type(call, names[3], call.array(3), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent m, z, q, y, of_1{1};
        const spgemm_count<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<const I>(4, q),
            call.contiguous<const I>(5, y),
            call.contiguous<const T>(6, y),
            call.contiguous<I>(7, m),
            call.contiguous<i64>(8, of_1),
        };
        call.submit(m * 1, Map<spgemm_count<T, I>, spgemm_count_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// row i of the new matrix is that of the product, sorted; cancellations stay
struct spgemm_fill_entry {
  static constexpr const char* operation = "spgemm.fill";
  static constexpr const char* symbol = "spgemm_fill";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "other_indptr",
      "other_indices",
      "other_values",
      "target",
      "new_indices",
      "new_values",
  };
  static constexpr bool by_row = true;
  static constexpr bool one_column = true;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F&, i64) {
    return true;
  }
  template <class F>
  static void set_unit(F&) {
  }
  static Object run(const Call& call) {
    with_value_type(call, names[3], call.array(3), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent m, z, q, y, p, w;
        const spgemm_fill<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<const I>(4, q),
            call.contiguous<const I>(5, y),
            call.contiguous<const T>(6, y),
            call.contiguous<const I>(7, p),
            call.contiguous<I>(8, w),
            call.contiguous<T>(9, w),
        };
        call.submit(m * 1, Map<spgemm_fill<T, I>, spgemm_fill_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// new_values = the values of the product with sorted columns places_e for target_i <= e < target_(i+1)
struct spgemm_refill_entry {
  static constexpr const char* operation = "spgemm.refill";
  static constexpr const char* symbol = "spgemm_refill";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "other_indptr",
      "other_indices",
      "other_values",
      "target",
      "places",
      "new_values",
  };
  static constexpr bool by_row = true;
  static constexpr bool one_column = true;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F&, i64) {
    return true;
  }
  template <class F>
  static void set_unit(F&) {
  }
  static Object run(const Call& call) {
    with_value_type(call, names[3], call.array(3), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent m, z, q, y, p, w;
        const spgemm_refill<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<const I>(4, q),
            call.contiguous<const I>(5, y),
            call.contiguous<const T>(6, y),
            call.contiguous<const I>(7, p),
            call.contiguous<const I>(8, w),
            call.contiguous<T>(9, w),
        };
        call.submit(m * 1, Map<spgemm_refill<T, I>, spgemm_refill_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

} // namespace

void add_spgemm_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<spgemm_count_entry>("spgemm_count", nullptr),
      method<spgemm_fill_entry>("spgemm_fill", nullptr),
      method<spgemm_refill_entry>("spgemm_refill", nullptr),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
