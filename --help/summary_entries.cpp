// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/summary.hpp"

namespace wl {

namespace {

// counts = entries with a column not above that of the one before in their row; entries that are not finite; 1 if the matrix differs from its conjugate transpose as in facts.mirrored; values of the diagonal without a finite inverse, with a positive real part, and equal to the first one; rows that coarsen.balanced counts. bound = the maximum of coarsen.radius. With entries of the first two kinds only these two counts are set
struct summary_square_entry {
  static constexpr const char* operation = "summary.square";
  static constexpr const char* symbol = "summary_square";
  static constexpr const char* names[] = {
      "indptr",
      "indices",
      "values",
      "least",
      "most",
      "counts",
      "bound",
  };
  static Object run(const Call& call) {
    with_value_type(call, names[2], call.array(2), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent p, e, of_1{1}, of_7{7};
        const summary_square<T, I> body{
            call.contiguous<const I>(0, p),
            call.contiguous<const I>(1, e),
            call.contiguous<const T>(2, e),
            call.scalar<real_t<T>>(3),
            call.scalar<real_t<T>>(4),
            call.contiguous<i64>(5, of_7),
            call.contiguous<real_t<T>>(6, of_1),
            i64(p),
            i64(e),
        };
        call.submit(p * e, body);
      });
    });
    return none_object();
  }
};

} // namespace

void add_summary_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<summary_square_entry>("summary_square", nullptr),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
