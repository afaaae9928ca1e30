// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/parilut.hpp"

namespace wl {

namespace {

// scale_i = 1 / sqrt(|a_ii|) and phase_i = a_ii / |a_ii|, 1 where that is 0; bad = how many entries are not finite
struct parilut_scaling_entry {
  static constexpr const char* operation = "parilut.scaling";
  static constexpr const char* symbol = "parilut_scaling";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "scale",
      "phase",
      "bad",
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
        const parilut_scaling<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<T>(4, m),
            call.contiguous<T>(5, m),
            call.contiguous<i64>(6, of_1),
        };
        call.submit(m * 1, Map<parilut_scaling<T, I>, parilut_scaling_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// d_i = a_ii, 0 where there is none, least_i = drop times the Euclidean norm of row i
struct parilut_measure_entry {
  static constexpr const char* operation = "parilut.measure";
  static constexpr const char* symbol = "parilut_measure";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "drop",
      "d",
      "least",
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
        Extent m, z;
        const parilut_measure<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.scalar<real_t<T>>(4),
            call.contiguous<T>(5, m),
            call.contiguous<real_t<T>>(6, m),
        };
        call.submit(m * 1, Map<parilut_measure<T, I>, parilut_measure_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// a_i = d_i + shift phase_i, inverse_i = 1 / a_i
struct parilut_shifted_entry {
  static constexpr const char* operation = "parilut.shifted";
  static constexpr const char* symbol = "parilut_shifted";
  static constexpr const char* names[] = {
      "d",
      "phase",
      "shift",
      "a",
      "inverse",
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
      Extent m;
      const parilut_shifted<T> body{
          call.contiguous<const T>(0, m),
          call.contiguous<const T>(1, m),
          call.scalar<real_t<T>>(2),
          call.contiguous<T>(3, m),
          call.contiguous<T>(4, m),
      };
      call.submit(m * 1, Map<parilut_shifted<T>, parilut_shifted_entry>(body, m, 1));
    });
    return none_object();
  }
};

// result_e = sign x_e d_j for the entry e of column j, or its conjugate
struct parilut_scale_columns_entry {
  static constexpr const char* operation = "parilut.scale_columns";
  static constexpr const char* symbol = "parilut_scale_columns";
  static constexpr const char* names[] = {
      "indices",
      "values",
      "d",
      "sign",
      "conjugated",
      "result",
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
    with_value_type(call, names[1], call.array(1), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent e, n;
        const parilut_scale_columns<T, I> body{
            call.contiguous<const I>(0, e),
            call.contiguous<const T>(1, e),
            call.contiguous<const T>(2, n),
            call.scalar<real_t<T>>(3),
            call.scalar<i64>(4),
            call.contiguous<T>(5, e),
        };
        call.submit(e * 1, Map<parilut_scale_columns<T, I>, parilut_scale_columns_entry>(body, e, 1));
      });
    });
    return none_object();
  }
};

// count = how many values are not below largest in size, or not above smallest, or if of_real their real parts are not; NaN is neither
struct parilut_unfit_entry {
  static constexpr const char* operation = "parilut.unfit";
  static constexpr const char* symbol = "parilut_unfit";
  static constexpr const char* names[] = {
      "values",
      "smallest",
      "largest",
      "of_real",
      "count",
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
      Extent e, of_1{1};
      const parilut_unfit<T> body{
          call.contiguous<const T>(0, e),
          call.scalar<real_t<T>>(1),
          call.scalar<real_t<T>>(2),
          call.scalar<i64>(3),
          call.contiguous<i64>(4, of_1),
      };
      call.submit(e * 1, Map<parilut_unfit<T>, parilut_unfit_entry>(body, e, 1));
    });
    return none_object();
  }
};

// count = how many values moved by more than limit
struct parilut_moved_entry {
  static constexpr const char* operation = "parilut.moved";
  static constexpr const char* symbol = "parilut_moved";
  static constexpr const char* names[] = {
      "values",
      "before",
      "limit",
      "count",
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
      Extent e, of_1{1};
      const parilut_moved<T> body{
          call.contiguous<const T>(0, e),
          call.contiguous<const T>(1, e),
          call.scalar<real_t<T>>(2),
          call.contiguous<i64>(3, of_1),
      };
      call.submit(e * 1, Map<parilut_moved<T>, parilut_moved_entry>(body, e, 1));
    });
    return none_object();
  }
};

// lengths_i = how many columns below i row i of at least one of three matrices has, total = their sum; rows are sorted, without duplicates
struct parilut_count_candidates_entry {
  static constexpr const char* operation = "parilut.count_candidates";
  static constexpr const char* symbol = "parilut_count_candidates";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "a_begin",
      "a_end",
      "a_indices",
      "p_begin",
      "p_end",
      "p_indices",
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
    with_index_type(call, names[0], call.array(0), [&](auto index) {
      using I = decltype(index);
      Extent m, z, y, w, of_1{1};
      const parilut_count_candidates<I> body{
          call.contiguous<const I>(0, m),
          call.contiguous<const I>(1, m),
          call.contiguous<const I>(2, z),
          call.contiguous<const I>(3, m),
          call.contiguous<const I>(4, m),
          call.contiguous<const I>(5, y),
          call.contiguous<const I>(6, m),
          call.contiguous<const I>(7, m),
          call.contiguous<const I>(8, w),
          call.contiguous<I>(9, m),
          call.contiguous<i64>(10, of_1),
      };
      call.submit(m * 1, Map<parilut_count_candidates<I>, parilut_count_candidates_entry>(body, m, 1));
    });
    return none_object();
  }
};

// row i of the new matrix has the columns that parilut.count_candidates counts: the value of the first matrix, or a less p where it has none
struct parilut_candidates_entry {
  static constexpr const char* operation = "parilut.candidates";
  static constexpr const char* symbol = "parilut_candidates";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "a_begin",
      "a_end",
      "a_indices",
      "a_values",
      "p_begin",
      "p_end",
      "p_indices",
      "p_values",
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
        Extent m, z, y, w, p, r;
        const parilut_candidates<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<const I>(4, m),
            call.contiguous<const I>(5, m),
            call.contiguous<const I>(6, y),
            call.contiguous<const T>(7, y),
            call.contiguous<const I>(8, m),
            call.contiguous<const I>(9, m),
            call.contiguous<const I>(10, w),
            call.contiguous<const T>(11, w),
            call.contiguous<const I>(12, p),
            call.contiguous<I>(13, r),
            call.contiguous<T>(14, r),
        };
        call.submit(m * 1, Map<parilut_candidates<T, I>, parilut_candidates_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// next_ij = a_ij - sum_(k < j) x_ik y_jk inverse_k for the entries below the diagonal, in rows that are sorted; y is other, or its conjugate
struct parilut_sweep_entry {
  static constexpr const char* operation = "parilut.sweep";
  static constexpr const char* symbol = "parilut_sweep";
  static constexpr const char* names[] = {
      "rows",
      "indices",
      "indptr",
      "x",
      "other_indptr",
      "other_indices",
      "other",
      "inverse",
      "a_indptr",
      "a_indices",
      "a",
      "conjugated",
      "next",
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
        Extent e, p, q, y, n, z;
        const parilut_sweep<T, I> body{
            call.contiguous<const I>(0, e),
            call.contiguous<const I>(1, e),
            call.contiguous<const I>(2, p),
            call.contiguous<const T>(3, e),
            call.contiguous<const I>(4, q),
            call.contiguous<const I>(5, y),
            call.contiguous<const T>(6, y),
            call.contiguous<const T>(7, n),
            call.contiguous<const I>(8, q),
            call.contiguous<const I>(9, z),
            call.contiguous<const T>(10, z),
            call.scalar<i64>(11),
            call.contiguous<T>(12, e),
        };
        call.submit(e * 1, Map<parilut_sweep<T, I>, parilut_sweep_entry>(body, e, 1));
      });
    });
    return none_object();
  }
};

// d_i = a_i - sum_k x_ik y_ik inverse_k and next_i = 1 / d_i; rows are sorted, y is other, or its conjugate, and then d_i is real
struct parilut_pivots_entry {
  static constexpr const char* operation = "parilut.pivots";
  static constexpr const char* symbol = "parilut_pivots";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "other_begin",
      "other_end",
      "other_indices",
      "other",
      "a",
      "inverse",
      "conjugated",
      "d",
      "next",
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
        Extent m, z, y;
        const parilut_pivots<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<const I>(4, m),
            call.contiguous<const I>(5, m),
            call.contiguous<const I>(6, y),
            call.contiguous<const T>(7, y),
            call.contiguous<const T>(8, m),
            call.contiguous<const T>(9, m),
            call.scalar<i64>(10),
            call.contiguous<T>(11, m),
            call.contiguous<T>(12, m),
        };
        call.submit(m * 1, Map<parilut_pivots<T, I>, parilut_pivots_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// low = the largest of low + d 2^shift, 0 <= d < 8, that at least rank keys reach, reached = how many do, above = how many exceed it; the key of an entry is the bits of |x|, or if tie is not negative a hash of row and column where those are tie, and none elsewhere
struct parilut_narrow_entry {
  static constexpr const char* operation = "parilut.narrow";
  static constexpr const char* symbol = "parilut_narrow";
  static constexpr const char* names[] = {
      "rows",
      "indices",
      "values",
      "tie",
      "shift",
      "rank",
      "low",
      "reached",
      "above",
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
    with_value_type(call, names[2], call.array(2), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent e, of_1{1};
        const parilut_narrow<T, I> body{
            call.contiguous<const I>(0, e),
            call.contiguous<const I>(1, e),
            call.contiguous<const T>(2, e),
            call.contiguous<const i64>(3, of_1),
            call.scalar<i64>(4),
            call.scalar<i64>(5),
            call.contiguous<i64>(6, of_1),
            call.contiguous<i64>(7, of_1),
            call.contiguous<i64>(8, of_1),
        };
        call.submit(e * 1, Map<parilut_narrow<T, I>, parilut_narrow_entry>(body, e, 1));
      });
    });
    return none_object();
  }
};

// lengths_i = how many entries of row i are not 0, not smaller than least_i (least_j if of_column), and have |x| with bits above low, or equal to low and a hash of row and column of at least tie; total = their sum; NaN is above all
struct parilut_count_large_entry {
  static constexpr const char* operation = "parilut.count_large";
  static constexpr const char* symbol = "parilut_count_large";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "least",
      "of_column",
      "low",
      "tie",
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
        Extent m, z, of_1{1};
        const parilut_count_large<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<const real_t<T>>(4, m),
            call.scalar<i64>(5),
            call.contiguous<const i64>(6, of_1),
            call.contiguous<const i64>(7, of_1),
            call.contiguous<I>(8, m),
            call.contiguous<i64>(9, of_1),
        };
        call.submit(m * 1, Map<parilut_count_large<T, I>, parilut_count_large_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// row i of the new matrix has the entries that parilut.count_large counts, in their order
struct parilut_large_entry {
  static constexpr const char* operation = "parilut.large";
  static constexpr const char* symbol = "parilut_large";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "least",
      "of_column",
      "low",
      "tie",
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
        Extent m, z, p, r, of_1{1};
        const parilut_large<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<const real_t<T>>(4, m),
            call.scalar<i64>(5),
            call.contiguous<const i64>(6, of_1),
            call.contiguous<const i64>(7, of_1),
            call.contiguous<const I>(8, p),
            call.contiguous<I>(9, r),
            call.contiguous<T>(10, r),
        };
        call.submit(m * 1, Map<parilut_large<T, I>, parilut_large_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

} // namespace

void add_parilut_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<parilut_scaling_entry>("parilut_scaling", nullptr),
      method<parilut_measure_entry>("parilut_measure", nullptr),
      method<parilut_shifted_entry>("parilut_shifted", nullptr),
      method<parilut_scale_columns_entry>("parilut_scale_columns", nullptr),
      method<parilut_unfit_entry>("parilut_unfit", nullptr),
      method<parilut_moved_entry>("parilut_moved", nullptr),
      method<parilut_count_candidates_entry>("parilut_count_candidates", nullptr),
      method<parilut_candidates_entry>("parilut_candidates", nullptr),
      method<parilut_sweep_entry>("parilut_sweep", nullptr),
      method<parilut_pivots_entry>("parilut_pivots", nullptr),
      method<parilut_narrow_entry>("parilut_narrow", nullptr),
      method<parilut_count_large_entry>("parilut_count_large", nullptr),
      method<parilut_large_entry>("parilut_large", nullptr),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
