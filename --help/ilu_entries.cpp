// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/ilu.hpp"

namespace wl {

namespace {

// diagonal_i = the entry of row i that is in column i, or the first after it; below_i and above_i = how many entries are before and after column i; missing = how many rows have no diagonal entry, lower and upper = the sums of below and above; rows are sorted
struct ilu_locate_entry {
  static constexpr const char* operation = "ilu.locate";
  static constexpr const char* symbol = "ilu_locate";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "diagonal",
      "below",
      "above",
      "missing",
      "lower",
      "upper",
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
      Extent m, z, of_1{1};
      const ilu_locate<I> body{
          call.contiguous<const I>(0, m),
          call.contiguous<const I>(1, m),
          call.contiguous<const I>(2, z),
          call.contiguous<I>(3, m),
          call.contiguous<I>(4, m),
          call.contiguous<I>(5, m),
          call.contiguous<i64>(6, of_1),
          call.contiguous<i64>(7, of_1),
          call.contiguous<i64>(8, of_1),
      };
      call.submit(m * 1, Map<ilu_locate<I>, ilu_locate_entry>(body, m, 1));
    });
    return none_object();
  }
};

// row i of the new pattern has length_i entries of indices, from first_i on
struct ilu_part_entry {
  static constexpr const char* operation = "ilu.part";
  static constexpr const char* symbol = "ilu_part";
  static constexpr const char* names[] = {
      "first",
      "length",
      "indices",
      "target",
      "new_indices",
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
      Extent m, z, p, w;
      const ilu_part<I> body{
          call.contiguous<const I>(0, m),
          call.contiguous<const I>(1, m),
          call.contiguous<const I>(2, z),
          call.contiguous<const I>(3, p),
          call.contiguous<I>(4, w),
      };
      call.submit(m * 1, Map<ilu_part<I>, ilu_part_entry>(body, m, 1));
    });
    return none_object();
  }
};

// v_e = a_ij scale_i scale_j for the entry e of the pattern at (i, j), 0 where the matrix has none, and shift phase_i more on the diagonal; outside = how many entries of the matrix the pattern has not; rows of both are sorted
struct ilu_scale_entry {
  static constexpr const char* operation = "ilu.scale";
  static constexpr const char* symbol = "ilu_scale";
  static constexpr const char* names[] = {
      "a_begin",
      "a_end",
      "a_indices",
      "a",
      "begin",
      "end",
      "indices",
      "scale",
      "phase",
      "shift",
      "v",
      "outside",
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
        Extent m, y, z, of_1{1};
        const ilu_scale<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, y),
            call.contiguous<const T>(3, y),
            call.contiguous<const I>(4, m),
            call.contiguous<const I>(5, m),
            call.contiguous<const I>(6, z),
            call.contiguous<const T>(7, m),
            call.contiguous<const T>(8, m),
            call.scalar<real_t<T>>(9),
            call.contiguous<T>(10, z),
            call.contiguous<i64>(11, of_1),
        };
        call.submit(m * 1, Map<ilu_scale<T, I>, ilu_scale_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// v_e = a_ij / a_jj below the diagonal, a_ij elsewhere
struct ilu_guess_entry {
  static constexpr const char* operation = "ilu.guess";
  static constexpr const char* symbol = "ilu_guess";
  static constexpr const char* names[] = {
      "rows",
      "indices",
      "diagonal",
      "a",
      "v",
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
        Extent e, n;
        const ilu_guess<T, I> body{
            call.contiguous<const I>(0, e),
            call.contiguous<const I>(1, e),
            call.contiguous<const I>(2, n),
            call.contiguous<const T>(3, e),
            call.contiguous<T>(4, e),
        };
        call.submit(e * 1, Map<ilu_guess<T, I>, ilu_guess_entry>(body, e, 1));
      });
    });
    return none_object();
  }
};

// count = how many entries are not below largest in size, and how many pivots (or if of_real their real parts) are not above smallest; NaN is neither
struct ilu_unfit_entry {
  static constexpr const char* operation = "ilu.unfit";
  static constexpr const char* symbol = "ilu_unfit";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "diagonal",
      "v",
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
    with_value_type(call, names[3], call.array(3), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent m, z, of_1{1};
        const ilu_unfit<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, m),
            call.contiguous<const T>(3, z),
            call.scalar<real_t<T>>(4),
            call.scalar<real_t<T>>(5),
            call.scalar<i64>(6),
            call.contiguous<i64>(7, of_1),
        };
        call.submit(m * 1, Map<ilu_unfit<T, I>, ilu_unfit_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// upper = -v_ij / v_ii for the entries of row i after the diagonal, inverse_i = 1 / v_ii, of which if of_real the real part is stored
struct ilu_upper_entry {
  static constexpr const char* operation = "ilu.upper";
  static constexpr const char* symbol = "ilu_upper";
  static constexpr const char* names[] = {
      "diagonal",
      "end",
      "v",
      "target",
      "of_real",
      "upper",
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
    with_value_type(call, names[2], call.array(2), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent m, z, p, w;
        const ilu_upper<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const T>(2, z),
            call.contiguous<const I>(3, p),
            call.scalar<i64>(4),
            call.contiguous<T>(5, w),
            call.contiguous<T>(6, m),
        };
        call.submit(m * 1, Map<ilu_upper<T, I>, ilu_upper_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// lower = -v_ij for the entries of row i before the diagonal
struct ilu_lower_entry {
  static constexpr const char* operation = "ilu.lower";
  static constexpr const char* symbol = "ilu_lower";
  static constexpr const char* names[] = {
      "begin",
      "diagonal",
      "v",
      "target",
      "lower",
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
        Extent m, z, p, w;
        const ilu_lower<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const T>(2, z),
            call.contiguous<const I>(3, p),
            call.contiguous<T>(4, w),
        };
        call.submit(m * 1, Map<ilu_lower<T, I>, ilu_lower_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// lower_e = the conjugate of upper_places(e)
struct ilu_adjoint_entry {
  static constexpr const char* operation = "ilu.adjoint";
  static constexpr const char* symbol = "ilu_adjoint";
  static constexpr const char* names[] = {
      "places",
      "upper",
      "lower",
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
        Extent e, w;
        const ilu_adjoint<T, I> body{
            call.contiguous<const I>(0, e),
            call.contiguous<const T>(1, w),
            call.contiguous<T>(2, e),
        };
        call.submit(e * 1, Map<ilu_adjoint<T, I>, ilu_adjoint_entry>(body, e, 1));
      });
    });
    return none_object();
  }
};

// below_e = lower_ij / (inverse_j left_i), above_e = upper_ij / right_j, first_i = inverse_i left_i; lost = how many of these are not finite, or 0 where the other factor is not
struct ilu_join_entry {
  static constexpr const char* operation = "ilu.join";
  static constexpr const char* symbol = "ilu_join";
  static constexpr const char* names[] = {
      "lower_begin",
      "lower_end",
      "lower_indices",
      "lower",
      "upper_begin",
      "upper_end",
      "upper_indices",
      "upper",
      "inverse",
      "left",
      "right",
      "below",
      "above",
      "first",
      "lost",
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
        Extent m, y, z, of_1{1};
        const ilu_join<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, y),
            call.contiguous<const T>(3, y),
            call.contiguous<const I>(4, m),
            call.contiguous<const I>(5, m),
            call.contiguous<const I>(6, z),
            call.contiguous<const T>(7, z),
            call.contiguous<const T>(8, m),
            call.contiguous<const T>(9, m),
            call.contiguous<const T>(10, m),
            call.contiguous<T>(11, y),
            call.contiguous<T>(12, z),
            call.contiguous<T>(13, m),
            call.contiguous<i64>(14, of_1),
        };
        call.submit(m * 1, Map<ilu_join<T, I>, ilu_join_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// below_e = lower_ij left_j / left_i, above_e = upper_ij right_i / right_j, between_i = left_i inverse_i right_i; lost = how many of these are not finite, or 0 where the given ones are not
struct ilu_rescale_entry {
  static constexpr const char* operation = "ilu.rescale";
  static constexpr const char* symbol = "ilu_rescale";
  static constexpr const char* names[] = {
      "lower_begin",
      "lower_end",
      "lower_indices",
      "lower",
      "upper_begin",
      "upper_end",
      "upper_indices",
      "upper",
      "inverse",
      "left",
      "right",
      "below",
      "above",
      "between",
      "lost",
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
        Extent m, y, z, of_1{1};
        const ilu_rescale<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, y),
            call.contiguous<const T>(3, y),
            call.contiguous<const I>(4, m),
            call.contiguous<const I>(5, m),
            call.contiguous<const I>(6, z),
            call.contiguous<const T>(7, z),
            call.contiguous<const T>(8, m),
            call.contiguous<const T>(9, m),
            call.contiguous<const T>(10, m),
            call.contiguous<T>(11, y),
            call.contiguous<T>(12, z),
            call.contiguous<T>(13, m),
            call.contiguous<i64>(14, of_1),
        };
        call.submit(m * 1, Map<ilu_rescale<T, I>, ilu_rescale_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

} // namespace

void add_ilu_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<ilu_locate_entry>("ilu_locate", nullptr),
      method<ilu_part_entry>("ilu_part", nullptr),
      method<ilu_scale_entry>("ilu_scale", nullptr),
      method<ilu_guess_entry>("ilu_guess", nullptr),
      method<ilu_unfit_entry>("ilu_unfit", nullptr),
      method<ilu_upper_entry>("ilu_upper", nullptr),
      method<ilu_lower_entry>("ilu_lower", nullptr),
      method<ilu_adjoint_entry>("ilu_adjoint", nullptr),
      method<ilu_join_entry>("ilu_join", nullptr),
      method<ilu_rescale_entry>("ilu_rescale", nullptr),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
