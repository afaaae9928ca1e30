// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/ordering.hpp"

namespace wl {

namespace {

// column_i = the column of row i in a maximum matching of rows with a sum of costs that is least, -1 of a row without one; the duals are u_i + v_j <= cost_ij, equal where i and j are matched; costs are real and finite
struct ordering_matching_entry {
  static constexpr const char* operation = "ordering.matching";
  static constexpr const char* symbol = "ordering_matching";
  static constexpr const char* names[] = {
      "indptr",
      "indices",
      "cost",
      "column",
      "u",
      "v",
  };
  static Object run(const Call& call) {
    with_value_type(call, names[2], call.array(2), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent p, e, n;
        const ordering_matching<T, I> body{
            call.contiguous<const I>(0, p),
            call.contiguous<const I>(1, e),
            call.contiguous<const T>(2, e),
            call.contiguous<I>(3, n),
            call.contiguous<T>(4, n),
            call.contiguous<T>(5, n),
            i64(p),
            i64(e),
            i64(n),
        };
        call.submit(p * e * n, body);
      });
    });
    return none_object();
  }
};

// color_i = the smallest one that no row j < i has of which (i, j) is an entry; the pattern is symmetric
struct ordering_colors_entry {
  static constexpr const char* operation = "ordering.colors";
  static constexpr const char* symbol = "ordering_colors";
  static constexpr const char* names[] = {
      "indptr",
      "indices",
      "color",
  };
  static Object run(const Call& call) {
    with_index_type(call, names[0], call.array(0), [&](auto index) {
      using I = decltype(index);
      Extent p, e, n;
      const ordering_colors<I> body{
          call.contiguous<const I>(0, p),
          call.contiguous<const I>(1, e),
          call.contiguous<I>(2, n),
          i64(p),
          i64(e),
          i64(n),
      };
      call.submit(p * e * n, body);
    });
    return none_object();
  }
};

// of the Cholesky factor of a symmetric pattern with rows eliminated in an order: entries = those of its columns with the diagonal, operations = the sum of the squares of their numbers; counting ends at the first row after which there are more entries than most
struct ordering_fill_entry {
  static constexpr const char* operation = "ordering.fill";
  static constexpr const char* symbol = "ordering_fill";
  static constexpr const char* names[] = {
      "indptr",
      "indices",
      "order",
      "most",
      "entries",
      "operations",
  };
  static Object run(const Call& call) {
    with_index_type(call, names[0], call.array(0), [&](auto index) {
      using I = decltype(index);
      Extent p, e, n, of_1{1};
      const ordering_fill<I> body{
          call.contiguous<const I>(0, p),
          call.contiguous<const I>(1, e),
          call.contiguous<const I>(2, n),
          call.scalar<i64>(3),
          call.contiguous<i64>(4, of_1),
          call.contiguous<i64>(5, of_1),
          i64(p),
          i64(e),
          i64(n),
      };
      call.submit(p * e * n, body);
    });
    return none_object();
  }
};

// level_i = the steps of the shortest way from row start to row i over entries, through rows whose level is -1 at first; others keep theirs
struct ordering_search_entry {
  static constexpr const char* operation = "ordering.search";
  static constexpr const char* symbol = "ordering_search";
  static constexpr const char* names[] = {
      "indptr",
      "indices",
      "start",
      "level",
  };
  static Object run(const Call& call) {
    with_index_type(call, names[0], call.array(0), [&](auto index) {
      using I = decltype(index);
      Extent p, e, n;
      const ordering_search<I> body{
          call.contiguous<const I>(0, p),
          call.contiguous<const I>(1, e),
          call.scalar<i64>(2),
          call.contiguous<I>(3, n),
          i64(p),
          i64(e),
          i64(n),
      };
      call.submit(p * e * n, body);
    });
    return none_object();
  }
};

// row and column = orders in which each row of a square pattern without duplicates has its last entry on the diagonal, so that the matrix is lower triangular; found = how many rows could be placed: all if there are such orders
struct ordering_substitution_entry {
  static constexpr const char* operation = "ordering.substitution";
  static constexpr const char* symbol = "ordering_substitution";
  static constexpr const char* names[] = {
      "indptr",
      "indices",
      "row",
      "column",
      "found",
  };
  static Object run(const Call& call) {
    with_index_type(call, names[0], call.array(0), [&](auto index) {
      using I = decltype(index);
      Extent p, e, n, of_1{1};
      const ordering_substitution<I> body{
          call.contiguous<const I>(0, p),
          call.contiguous<const I>(1, e),
          call.contiguous<I>(2, n),
          call.contiguous<I>(3, n),
          call.contiguous<i64>(4, of_1),
          i64(p),
          i64(e),
          i64(n),
      };
      call.submit(p * e * n, body);
    });
    return none_object();
  }
};

} // namespace

void add_ordering_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<ordering_matching_entry>("ordering_matching", nullptr),
      method<ordering_colors_entry>("ordering_colors", nullptr),
      method<ordering_fill_entry>("ordering_fill", nullptr),
      method<ordering_search_entry>("ordering_search", nullptr),
      method<ordering_substitution_entry>("ordering_substitution", nullptr),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
