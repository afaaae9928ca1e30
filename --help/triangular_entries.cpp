// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "omp/triangular.hpp"

namespace wl {

namespace {

// v = the factors of v on its pattern, the unit diagonal of the lower one left out; rows are sorted and have a diagonal entrywith its position in diagonal
struct triangular_factorize_entry {
  static constexpr const char* operation = "triangular.factorize";
  static constexpr const char* symbol = "triangular_factorize";
  static constexpr const char* names[] = {
      "indptr",
      "indices",
      "diagonal",
      "v",
  };
  static Object run(const Call& call) {
    with_value_type(call, names[3], call.array(3), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent p, e, n;
        const triangular_factorize<T, I> body{
            call.contiguous<const I>(0, p),
            call.contiguous<const I>(1, e),
            call.contiguous<const I>(2, n),
            call.contiguous<T>(3, e),
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

// level_i = 1 + the largest level_j over the entries (i, j) with j < i, or j > i if upper; 0 without any
struct triangular_levels_entry {
  static constexpr const char* operation = "triangular.levels";
  static constexpr const char* symbol = "triangular_levels";
  static constexpr const char* names[] = {
      "indptr",
      "indices",
      "upper",
      "level",
  };
  static Object run(const Call& call) {
    with_index_type(call, names[0], call.array(0), [&](auto index) {
      using I = decltype(index);
      Extent p, e, n;
      const triangular_levels<I> body{
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

// x_i = inverse_i (x_i + factor sum_(j < i) data_ij x_j), j > i if upper, for i in rows, of which none needs another one
struct triangular_level_entry {
  static constexpr const char* operation = "triangular.level";
  static constexpr const char* symbol = "triangular_level";
  static constexpr const char* names[] = {
      "rows",
      "indptr",
      "indices",
      "data",
      "inverse",
      "factor",
      "upper",
      "x",
  };
  static constexpr bool by_row = true;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[3], call.array(3), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent m, p, e, n, k;
        const triangular_level<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, p),
            call.contiguous<const I>(2, e),
            call.contiguous<const T>(3, e),
            call.contiguous<const T>(4, n),
            call.scalar<T>(5),
            call.scalar<i64>(6),
            call.block<T>(7, n, k),
        };
        call.submit(m * k, Map<triangular_level<T, I>, triangular_level_entry>(body, m, k));
      });
    });
    return none_object();
  }
};

// x_i = inverse_i (x_i + factor sum_(j < i) data_ij x_j), j > i if upper, for i in rows, one after the other; rows[bounds[l]:bounds[l+1]] need none of each other but consecutive ones, in their order
struct triangular_substitute_entry {
  static constexpr const char* operation = "triangular.substitute";
  static constexpr const char* symbol = "triangular_substitute";
  static constexpr const char* names[] = {
      "rows",
      "bounds",
      "indptr",
      "indices",
      "data",
      "inverse",
      "factor",
      "upper",
      "x",
  };
  static Object run(const Call& call) {
    with_value_type(call, names[4], call.array(4), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent m, b, p, e, n, k;
        const triangular_substitute<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, b),
            call.contiguous<const I>(2, p),
            call.contiguous<const I>(3, e),
            call.contiguous<const T>(4, e),
            call.contiguous<const T>(5, n),
            call.scalar<T>(6),
            call.scalar<i64>(7),
            call.block<T>(8, n, k),
            i64(m),
            i64(b),
            i64(p),
            i64(e),
            i64(n),
            i64(k),
        };
        call.submit(i64(std::min(1e18, (1. + i64(m)) * (1. + i64(b)) * (1. + i64(p)) * (1. + i64(e)) * (1. + i64(n)) * (1. + i64(k)))), body);
      });
    });
    return none_object();
  }
};

// x_i = inverse_i (x_i + factor sum_(j < i) data_ij x_j), j > i if upper, for all i, in blocks of rows begin to end, counted from the last one if upper; blocks of a lane (from starts[l] on) follow one another, each after the first needed of lane of
struct triangular_lanes_entry {
  static constexpr const char* operation = "triangular.lanes";
  static constexpr const char* symbol = "triangular_lanes";
  static constexpr const char* names[] = {
      "starts",
      "begin",
      "end",
      "waits",
      "of",
      "needed",
      "indptr",
      "indices",
      "data",
      "inverse",
      "factor",
      "upper",
      "x",
  };
  static Object run(const Call& call) {
    with_value_type(call, names[8], call.array(8), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent l, b, a, w, p, e, n, k;
        const triangular_lanes<T, I> body{
            call.contiguous<const I>(0, l),
            call.contiguous<const I>(1, b),
            call.contiguous<const I>(2, b),
            call.contiguous<const I>(3, a),
            call.contiguous<const I>(4, w),
            call.contiguous<const I>(5, w),
            call.contiguous<const I>(6, p),
            call.contiguous<const I>(7, e),
            call.contiguous<const T>(8, e),
            call.contiguous<const T>(9, n),
            call.scalar<T>(10),
            call.scalar<i64>(11),
            call.block<T>(12, n, k),
            i64(l),
            i64(b),
            i64(a),
            i64(w),
            i64(p),
            i64(e),
            i64(n),
            i64(k),
        };
        call.submit(i64(std::min(1e18, (1. + i64(l)) * (1. + i64(b)) * (1. + i64(a)) * (1. + i64(w)) * (1. + i64(p)) * (1. + i64(e)) * (1. + i64(n)) * (1. + i64(k)))), body);
      });
    });
    return none_object();
  }
};

// the factors of a with unit lower ones: row i has its entries from fill i on in lower and from (fill + 1) i on in upper, the pivot first; an entry smaller than drop times the row's norm is dropped, and all but the fill largest of each half; rows are sorted, have a diagonal entry and no duplicates
struct triangular_threshold_entry {
  static constexpr const char* operation = "triangular.threshold";
  static constexpr const char* symbol = "triangular_threshold";
  static constexpr const char* names[] = {
      "indptr",
      "indices",
      "a",
      "drop",
      "fill",
      "lower_length",
      "lower_indices",
      "lower",
      "upper_length",
      "upper_indices",
      "upper",
  };
  static Object run(const Call& call) {
    with_value_type(call, names[2], call.array(2), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent p, e, n, l, u;
        const triangular_threshold<T, I> body{
            call.contiguous<const I>(0, p),
            call.contiguous<const I>(1, e),
            call.contiguous<const T>(2, e),
            call.scalar<real_t<T>>(3),
            call.scalar<i64>(4),
            call.contiguous<I>(5, n),
            call.contiguous<I>(6, l),
            call.contiguous<T>(7, l),
            call.contiguous<I>(8, n),
            call.contiguous<I>(9, u),
            call.contiguous<T>(10, u),
            i64(p),
            i64(e),
            i64(n),
            i64(l),
            i64(u),
        };
        call.submit(i64(std::min(1e18, (1. + i64(p)) * (1. + i64(e)) * (1. + i64(n)) * (1. + i64(l)) * (1. + i64(u)))), body);
      });
    });
    return none_object();
  }
};

} // namespace

void add_triangular_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<triangular_factorize_entry>("triangular_factorize", nullptr),
      method<triangular_levels_entry>("triangular_levels", nullptr),
      method<triangular_level_entry>("triangular_level", nullptr),
      method<triangular_substitute_entry>("triangular_substitute", nullptr),
      method<triangular_lanes_entry>("triangular_lanes", nullptr),
      method<triangular_threshold_entry>("triangular_threshold", nullptr),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
