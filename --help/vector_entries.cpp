// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/vector.hpp"

namespace wl {

namespace {

// y = value
struct vector_fill_entry {
  static constexpr const char* operation = "vector.fill";
  static constexpr const char* symbol = "vector_fill";
  static constexpr const char* names[] = {
      "y",
      "value",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.y.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.y.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const vector_fill<T> body{
          call.block<T>(0, n, k),
          call.scalar<T>(1),
      };
      call.submit(n * k, Map<vector_fill<T>, vector_fill_entry>(body, n, k));
    });
    return none_object();
  }
};

// y = alpha x + beta y; beta = 0 does not read y
struct vector_axpby_entry {
  static constexpr const char* operation = "vector.axpby";
  static constexpr const char* symbol = "vector_axpby";
  static constexpr const char* names[] = {
      "x",
      "y",
      "alpha",
      "beta",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x.ld == ld && f.y.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x.ld = f.y.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const vector_axpby<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.scalar<T>(2),
          call.scalar<T>(3),
      };
      call.submit(n * k, Map<vector_axpby<T>, vector_axpby_entry>(body, n, k));
    });
    return none_object();
  }
};

// y_i = alpha d_i x_i + beta y_i; beta = 0 does not read y
struct vector_scale_rows_entry {
  static constexpr const char* operation = "vector.scale_rows";
  static constexpr const char* symbol = "vector_scale_rows";
  static constexpr const char* names[] = {
      "d",
      "x",
      "y",
      "alpha",
      "beta",
  };
  static constexpr bool by_row = true;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x.ld == ld && f.y.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x.ld = f.y.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const vector_scale_rows<T> body{
          call.contiguous<const T>(0, n),
          call.block<const T>(1, n, k),
          call.block<T>(2, n, k),
          call.scalar<T>(3),
          call.scalar<T>(4),
      };
      call.submit(n * k, Map<vector_scale_rows<T>, vector_scale_rows_entry>(body, n, k));
    });
    return none_object();
  }
};

// y_i = d_i (x_i + y_i)
struct vector_scaled_sum_entry {
  static constexpr const char* operation = "vector.scaled_sum";
  static constexpr const char* symbol = "vector_scaled_sum";
  static constexpr const char* names[] = {
      "d",
      "x",
      "y",
  };
  static constexpr bool by_row = true;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x.ld == ld && f.y.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x.ld = f.y.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const vector_scaled_sum<T> body{
          call.contiguous<const T>(0, n),
          call.block<const T>(1, n, k),
          call.block<T>(2, n, k),
      };
      call.submit(n * k, Map<vector_scaled_sum<T>, vector_scaled_sum_entry>(body, n, k));
    });
    return none_object();
  }
};

// y_i = alpha x_index(i) + beta y_i; beta = 0 does not read y
struct vector_gather_entry {
  static constexpr const char* operation = "vector.gather";
  static constexpr const char* symbol = "vector_gather";
  static constexpr const char* names[] = {
      "index",
      "x",
      "y",
      "alpha",
      "beta",
  };
  static constexpr bool by_row = true;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = false;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x.ld == ld && f.y.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x.ld = f.y.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[1], call.array(1), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent m, n, k;
        const vector_gather<T, I> body{
            call.contiguous<const I>(0, m),
            call.block<const T>(1, n, k),
            call.block<T>(2, m, k),
            call.scalar<T>(3),
            call.scalar<T>(4),
        };
        call.submit(m * k, Map<vector_gather<T, I>, vector_gather_entry>(body, m, k));
      });
    });
    return none_object();
  }
};

// value_c = sum_i conj(x_ic) y_ic
struct vector_dot_entry {
  static constexpr const char* operation = "vector.dot";
  static constexpr const char* symbol = "vector_dot";
  static constexpr const char* names[] = {
      "x",
      "y",
      "value",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x.ld == ld && f.y.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x.ld = f.y.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const vector_dot<T> body{
          call.block<const T>(0, n, k),
          call.block<const T>(1, n, k),
          call.contiguous<T>(2, k),
      };
      call.submit(n * k, Map<vector_dot<T>, vector_dot_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// value_c = sqrt(sum_i |x_ic|^2)
struct vector_norm_entry {
  static constexpr const char* operation = "vector.norm";
  static constexpr const char* symbol = "vector_norm";
  static constexpr const char* names[] = {
      "x",
      "value",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const vector_norm<T> body{
          call.block<const T>(0, n, k),
          call.contiguous<real_t<T>>(1, k),
      };
      call.submit(n * k, Map<vector_norm<T>, vector_norm_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// value_c = max_i |x_ic|, NaN if any is NaN
struct vector_largest_entry {
  static constexpr const char* operation = "vector.largest";
  static constexpr const char* symbol = "vector_largest";
  static constexpr const char* names[] = {
      "x",
      "value",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const vector_largest<T> body{
          call.block<const T>(0, n, k),
          call.contiguous<real_t<T>>(1, k),
      };
      call.submit(n * k, Map<vector_largest<T>, vector_largest_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// x = 0, first_c = norm_c = |r_c|, threshold_c = max(relative_c |r_c|, absolute_c); a column halts where its norm meets that, or is not between least_c and most_c
struct vector_enter_entry {
  static constexpr const char* operation = "vector.enter";
  static constexpr const char* symbol = "vector_enter";
  static constexpr const char* names[] = {
      "r",
      "x",
      "relative",
      "absolute",
      "least",
      "most",
      "first",
      "threshold",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.r.ld == ld && f.x.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.r.ld = f.x.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const vector_enter<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.contiguous<const real_t<T>>(2, k),
          call.contiguous<const real_t<T>>(3, k),
          call.contiguous<const real_t<T>>(4, k),
          call.contiguous<const real_t<T>>(5, k),
          call.contiguous<real_t<T>>(6, k),
          call.contiguous<real_t<T>>(7, k),
          call.status<T>(8, k),
      };
      call.submit(n * k, Map<vector_enter<T>, vector_enter_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// kept = x, best = the status's norm in running columns with a norm below best
struct vector_keep_entry {
  static constexpr const char* operation = "vector.keep";
  static constexpr const char* symbol = "vector_keep";
  static constexpr const char* names[] = {
      "x",
      "kept",
      "best",
      "status",
  };
  static constexpr bool by_row = false;
  static constexpr bool one_column = false;
  static constexpr bool has_halves = true;
  template <class F>
  static bool have(const F& f, i64 ld) {
    return f.x.ld == ld && f.kept.ld == ld;
  }
  template <class F>
  static void set_unit(F& f) {
    f.x.ld = f.kept.ld = 1;
  }
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const vector_keep<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.contiguous<real_t<T>>(2, k),
          call.status<T>(3, k),
      };
      call.submit(n * k, Map<vector_keep<T>, vector_keep_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

} // namespace

void add_vector_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<vector_fill_entry>("vector_fill", nullptr),
      method<vector_axpby_entry>("vector_axpby", nullptr),
      method<vector_scale_rows_entry>("vector_scale_rows", nullptr),
      method<vector_scaled_sum_entry>("vector_scaled_sum", nullptr),
      method<vector_gather_entry>("vector_gather", nullptr),
      method<vector_dot_entry>("vector_dot", nullptr),
      method<vector_dot_entry, Half::VISITING>("vector_dot_visiting", nullptr),
      method<vector_dot_entry, Half::FINISHING>("vector_dot_finishing", nullptr),
      method<vector_norm_entry>("vector_norm", nullptr),
      method<vector_norm_entry, Half::VISITING>("vector_norm_visiting", nullptr),
      method<vector_norm_entry, Half::FINISHING>("vector_norm_finishing", nullptr),
      method<vector_largest_entry>("vector_largest", nullptr),
      method<vector_largest_entry, Half::VISITING>("vector_largest_visiting", nullptr),
      method<vector_largest_entry, Half::FINISHING>("vector_largest_finishing", nullptr),
      method<vector_enter_entry>("vector_enter", nullptr),
      method<vector_enter_entry, Half::VISITING>("vector_enter_visiting", nullptr),
      method<vector_enter_entry, Half::FINISHING>("vector_enter_finishing", nullptr),
      method<vector_keep_entry>("vector_keep", nullptr),
      method<vector_keep_entry, Half::VISITING>("vector_keep_visiting", nullptr),
      method<vector_keep_entry, Half::FINISHING>("vector_keep_finishing", nullptr),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
