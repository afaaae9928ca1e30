// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/values.hpp"

namespace wl {

namespace {

// y = |x|
struct values_magnitude_entry {
  static constexpr const char* operation = "values.magnitude";
  static constexpr const char* symbol = "values_magnitude";
  static constexpr const char* names[] = {
      "x",
      "y",
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
      const values_magnitude<T> body{
          call.block<const T>(0, n, k),
          call.block<real_t<T>>(1, n, k),
      };
      call.submit(n * k, Map<values_magnitude<T>, values_magnitude_entry>(body, n, k));
    });
    return none_object();
  }
};

// y = the real part of x
struct values_real_entry {
  static constexpr const char* operation = "values.real";
  static constexpr const char* symbol = "values_real";
  static constexpr const char* names[] = {
      "x",
      "y",
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
      const values_real<T> body{
          call.block<const T>(0, n, k),
          call.block<real_t<T>>(1, n, k),
      };
      call.submit(n * k, Map<values_real<T>, values_real_entry>(body, n, k));
    });
    return none_object();
  }
};

// y = the imaginary part of x
struct values_imaginary_entry {
  static constexpr const char* operation = "values.imaginary";
  static constexpr const char* symbol = "values_imaginary";
  static constexpr const char* names[] = {
      "x",
      "y",
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
      const values_imaginary<T> body{
          call.block<const T>(0, n, k),
          call.block<real_t<T>>(1, n, k),
      };
      call.submit(n * k, Map<values_imaginary<T>, values_imaginary_entry>(body, n, k));
    });
    return none_object();
  }
};

// y = x to the exponent
struct values_power_entry {
  static constexpr const char* operation = "values.power";
  static constexpr const char* symbol = "values_power";
  static constexpr const char* names[] = {
      "x",
      "y",
      "exponent",
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
      const values_power<T> body{
          call.block<const T>(0, n, k),
          call.block<T>(1, n, k),
          call.scalar<T>(2),
      };
      call.submit(n * k, Map<values_power<T>, values_power_entry>(body, n, k));
    });
    return none_object();
  }
};

// value_c = the sum of all x_ic
struct values_total_entry {
  static constexpr const char* operation = "values.total";
  static constexpr const char* symbol = "values_total";
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
      const values_total<T> body{
          call.block<const T>(0, n, k),
          call.contiguous<T>(1, k),
      };
      call.submit(n * k, Map<values_total<T>, values_total_entry>(body, n, k, call.slots<real_t<T>>(k)));
    });
    return none_object();
  }
};

// value_c = the largest x_ic, 0 if there is none, NaN if any is; complex ones by real part, then imaginary part
struct values_largest_entry {
  static constexpr const char* operation = "values.largest";
  static constexpr const char* symbol = "values_largest";
  static constexpr const char* names[] = {
      "x",
      "value",
  };
  static constexpr bool by_row = false;
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
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const values_largest<T> body{
          call.block<const T>(0, n, k),
          call.contiguous<T>(1, k),
      };
      call.submit(n * k, Map<values_largest<T>, values_largest_entry>(body, n, k));
    });
    return none_object();
  }
};

// value_c = the smallest x_ic, 0 if there is none, NaN if any is; complex ones by real part, then imaginary part
struct values_smallest_entry {
  static constexpr const char* operation = "values.smallest";
  static constexpr const char* symbol = "values_smallest";
  static constexpr const char* names[] = {
      "x",
      "value",
  };
  static constexpr bool by_row = false;
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
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k;
      const values_smallest<T> body{
          call.block<const T>(0, n, k),
          call.contiguous<T>(1, k),
      };
      call.submit(n * k, Map<values_smallest<T>, values_smallest_entry>(body, n, k));
    });
    return none_object();
  }
};

} // namespace

void add_values_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<values_magnitude_entry>("values_magnitude", nullptr),
      method<values_real_entry>("values_real", nullptr),
      method<values_imaginary_entry>("values_imaginary", nullptr),
      method<values_power_entry>("values_power", nullptr),
      method<values_total_entry>("values_total", nullptr),
      method<values_total_entry, Half::VISITING>("values_total_visiting", nullptr),
      method<values_total_entry, Half::FINISHING>("values_total_finishing", nullptr),
      method<values_largest_entry>("values_largest", nullptr),
      method<values_smallest_entry>("values_smallest", nullptr),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
