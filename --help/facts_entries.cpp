// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/facts.hpp"

namespace wl {

namespace {

// inverse_i = 1 / d_i, or the replacement where that or d_i is not finite; replaced counts these, positive the values with a positive real part
struct facts_diagonal_entry {
  static constexpr const char* operation = "facts.diagonal";
  static constexpr const char* symbol = "facts_diagonal";
  static constexpr const char* names[] = {
      "d",
      "inverse",
      "replacement",
      "replaced",
      "positive",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.d.ld == ld && f.inverse.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.d.ld = f.inverse.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const facts_diagonal<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.scalar<T>(2),
          call.contiguous<i64>(3, k),
          call.contiguous<i64>(4, k),
      };
      call.submit(n * k, Map<facts_diagonal<T>, facts_diagonal_entry>(body, n, k));
    });
    return none_object();
  }
};

// equal counts the values that equal the first one
struct facts_repeated_entry {
  static constexpr const char* operation = "facts.repeated";
  static constexpr const char* symbol = "facts_repeated";
  static constexpr const char* names[] = {
      "d",
      "equal",
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
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent m, of_1{1};
      const facts_repeated<T> body{
          call.contiguous<const T>(0, m),
          call.contiguous<i64>(1, of_1),
      };
      call.submit(m * 1, Map<facts_repeated<T>, facts_repeated_entry>(body, m, 1));
    });
    return none_object();
  }
};

// of the entries of a square matrix by compressed rows: disorder counts entries with a column not above that of the one before in their row; without any, mismatch counts those that are not the conjugate of their mirror image to 8 eps (zeros are as good as missing), else it is -1
struct facts_symmetry_entry {
  static constexpr const char* operation = "facts.symmetry";
  static constexpr const char* symbol = "facts_symmetry";
  static constexpr const char* names[] = {
      "data",
      "indices",
      "indptr",
      "rows",
      "disorder",
      "mismatch",
  };
  static constexpr bool by_row = true;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.data.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.data.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[1], call.array(1), [&](auto index) {
        using I = decltype(index);
        Extent n, k, p;
        const facts_symmetry<T, I> body{
            call.block<const T>(0, n, k),
            call.contiguous<const I>(1, n),
            call.contiguous<const I>(2, p),
            call.scalar<i64>(3),
            call.contiguous<i64>(4, k),
            call.contiguous<i64>(5, k),
        };
        call.submit(n * k, Map<facts_symmetry<T, I>, facts_symmetry_entry>(body, n, k));
      });
    });
    return none_object();
  }
};

// the mismatch of facts.symmetry, a row at a time: for short rows, which are sorted and without duplicates
struct facts_mirrored_entry {
  static constexpr const char* operation = "facts.mirrored";
  static constexpr const char* symbol = "facts_mirrored";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "mismatch",
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
        Extent m, z, of_1{1};
        const facts_mirrored<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<i64>(4, of_1),
        };
        call.submit(m * 1, Map<facts_mirrored<T, I>, facts_mirrored_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// low and high = the smallest and the largest of the indices, 0 and -1 if there are none
struct facts_bounds_entry {
  static constexpr const char* operation = "facts.bounds";
  static constexpr const char* symbol = "facts_bounds";
  static constexpr const char* names[] = {
      "indices",
      "low",
      "high",
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
    with_index_type(call, names[0], call.array(0), [&](auto index) {
      using I = decltype(index);
      Extent m, of_1{1};
      const facts_bounds<I> body{
          call.contiguous<const I>(0, m),
          call.contiguous<i64>(1, of_1),
          call.contiguous<i64>(2, of_1),
      };
      call.submit(m * 1, Map<facts_bounds<I>, facts_bounds_entry>(body, m, 1));
    });
    return none_object();
  }
};

} // namespace

void add_facts_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<facts_diagonal_entry>("facts_diagonal", nullptr),
      method<facts_repeated_entry>("facts_repeated", nullptr),
      method<facts_symmetry_entry>("facts_symmetry", nullptr),
      method<facts_mirrored_entry>("facts_mirrored", nullptr),
      method<facts_bounds_entry>("facts_bounds", nullptr),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
