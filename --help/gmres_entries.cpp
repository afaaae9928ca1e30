// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/stored.hpp"
#include "omp/gmres.hpp"

namespace wl {

namespace {

// v = basis_0 = r / |r| (0 where not running), g = (|r|, 0, ...), count = 0, step = 0; |r| is the status's norm
struct gmres_start_entry {
  static constexpr const char* operation = "gmres.start";
  static constexpr const char* symbol = "gmres_start";
  static constexpr const char* names[] = {
      "r",
      "v",
      "basis",
      "g",
      "count",
      "step",
      "status",
  };
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      with_storage_type<T>(call, names[2], call.array(2), [&](auto storage) {
        using S = decltype(storage);
        Extent n, k, s, of_1{1};
        const gmres_start<T, S> body{
            call.block<const T>(0, n, k),
            call.block<T>(1, n, k),
            call.contiguous<S>(2, s, n, k),
            call.block<T>(3, s, k),
            call.contiguous<i64>(4, k),
            call.contiguous<i64>(5, of_1),
            call.status<T>(6, k),
            i64(n),
            i64(k),
            i64(s),
        };
        call.submit(n * k * s, body);
      });
    });
    return none_object();
  }
};

// h_i = <basis_i, w> for i <= j; before = |w|
struct gmres_project_entry {
  static constexpr const char* operation = "gmres.project";
  static constexpr const char* symbol = "gmres_project";
  static constexpr const char* names[] = {
      "basis",
      "w",
      "h",
      "before",
      "step",
      "status",
  };
  static Object run(const Call& call) {
    with_value_type(call, names[1], call.array(1), [&](auto value) {
      using T = decltype(value);
      with_storage_type<T>(call, names[0], call.array(0), [&](auto storage) {
        using S = decltype(storage);
        Extent s, n, k, of_1{1};
        const gmres_project<T, S> body{
            call.contiguous<const S>(0, s, n, k),
            call.block<const T>(1, n, k),
            call.block<T>(2, s, k),
            call.contiguous<real_t<T>>(3, k),
            call.contiguous<const i64>(4, of_1),
            call.status<T>(5, k),
            i64(s),
            i64(n),
            i64(k),
        };
        call.submit(s * n * k, body);
      });
    });
    return none_object();
  }
};

// w -= sum_i h_i basis_i for i <= j; after = |w|
struct gmres_subtract_entry {
  static constexpr const char* operation = "gmres.subtract";
  static constexpr const char* symbol = "gmres_subtract";
  static constexpr const char* names[] = {
      "basis",
      "w",
      "h",
      "after",
      "step",
      "status",
  };
  static Object run(const Call& call) {
    with_value_type(call, names[1], call.array(1), [&](auto value) {
      using T = decltype(value);
      with_storage_type<T>(call, names[0], call.array(0), [&](auto storage) {
        using S = decltype(storage);
        Extent s, n, k, of_1{1};
        const gmres_subtract<T, S> body{
            call.contiguous<const S>(0, s, n, k),
            call.block<T>(1, n, k),
            call.block<const T>(2, s, k),
            call.contiguous<real_t<T>>(3, k),
            call.contiguous<const i64>(4, of_1),
            call.status<T>(5, k),
            i64(s),
            i64(n),
            i64(k),
        };
        call.submit(s * n * k, body);
      });
    });
    return none_object();
  }
};

// where after < 0.1 before: correction_i = <basis_i, w> for i <= j
struct gmres_reproject_entry {
  static constexpr const char* operation = "gmres.reproject";
  static constexpr const char* symbol = "gmres_reproject";
  static constexpr const char* names[] = {
      "basis",
      "w",
      "correction",
      "before",
      "after",
      "step",
      "status",
  };
  static Object run(const Call& call) {
    with_value_type(call, names[1], call.array(1), [&](auto value) {
      using T = decltype(value);
      with_storage_type<T>(call, names[0], call.array(0), [&](auto storage) {
        using S = decltype(storage);
        Extent s, n, k, of_1{1};
        const gmres_reproject<T, S> body{
            call.contiguous<const S>(0, s, n, k),
            call.block<const T>(1, n, k),
            call.block<T>(2, s, k),
            call.contiguous<const real_t<T>>(3, k),
            call.contiguous<const real_t<T>>(4, k),
            call.contiguous<const i64>(5, of_1),
            call.status<T>(6, k),
            i64(s),
            i64(n),
            i64(k),
        };
        call.submit(s * n * k, body);
      });
    });
    return none_object();
  }
};

// where after < 0.1 before: w -= sum_i correction_i basis_i, h += correction, after = |w|
struct gmres_resubtract_entry {
  static constexpr const char* operation = "gmres.resubtract";
  static constexpr const char* symbol = "gmres_resubtract";
  static constexpr const char* names[] = {
      "basis",
      "w",
      "h",
      "correction",
      "before",
      "after",
      "step",
      "status",
  };
  static Object run(const Call& call) {
    with_value_type(call, names[1], call.array(1), [&](auto value) {
      using T = decltype(value);
      with_storage_type<T>(call, names[0], call.array(0), [&](auto storage) {
        using S = decltype(storage);
        Extent s, n, k, of_1{1};
        const gmres_resubtract<T, S> body{
            call.contiguous<const S>(0, s, n, k),
            call.block<T>(1, n, k),
            call.block<T>(2, s, k),
            call.block<const T>(3, s, k),
            call.contiguous<const real_t<T>>(4, k),
            call.contiguous<real_t<T>>(5, k),
            call.contiguous<const i64>(6, of_1),
            call.status<T>(7, k),
            i64(s),
            i64(n),
            i64(k),
        };
        call.submit(s * n * k, body);
      });
    });
    return none_object();
  }
};

// applies the earlier rotations to (h, after), makes the j-th, applies it to g; count = j + 1; observes |g_(j+1)|; after <= eps before is taken as 0: the space is exhausted
struct gmres_rotate_entry {
  static constexpr const char* operation = "gmres.rotate";
  static constexpr const char* symbol = "gmres_rotate";
  static constexpr const char* names[] = {
      "h",
      "after",
      "before",
      "hessenberg",
      "cosine",
      "sine",
      "g",
      "count",
      "step",
      "status",
  };
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent s, k, of_1{1};
      const gmres_rotate<T> body{
          call.block<const T>(0, s, k),
          call.contiguous<real_t<T>>(1, k),
          call.contiguous<const real_t<T>>(2, k),
          call.contiguous<T>(3, s, s, k),
          call.block<real_t<T>>(4, s, k),
          call.block<T>(5, s, k),
          call.block<T>(6, s, k),
          call.contiguous<i64>(7, k),
          call.contiguous<const i64>(8, of_1),
          call.status<T>(9, k),
          i64(s),
          i64(k),
      };
      call.submit(s * k, body);
    });
    return none_object();
  }
};

// v = basis_(j+1) = w / after (0 where after is 0); step = j + 1
struct gmres_append_entry {
  static constexpr const char* operation = "gmres.append";
  static constexpr const char* symbol = "gmres_append";
  static constexpr const char* names[] = {
      "w",
      "after",
      "v",
      "basis",
      "step",
      "status",
  };
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      with_storage_type<T>(call, names[3], call.array(3), [&](auto storage) {
        using S = decltype(storage);
        Extent n, k, s, of_1{1};
        const gmres_append<T, S> body{
            call.block<const T>(0, n, k),
            call.contiguous<const real_t<T>>(1, k),
            call.block<T>(2, n, k),
            call.contiguous<S>(3, s, n, k),
            call.contiguous<i64>(4, of_1),
            call.status<T>(5, k),
            i64(n),
            i64(k),
            i64(s),
        };
        call.submit(n * k * s, body);
      });
    });
    return none_object();
  }
};

// z = extra_(j-first) / size_(j-first) where j >= first and that size is not 0; basis_j = z
struct gmres_augment_entry {
  static constexpr const char* operation = "gmres.augment";
  static constexpr const char* symbol = "gmres_augment";
  static constexpr const char* names[] = {
      "z",
      "extra",
      "size",
      "first",
      "basis",
      "step",
      "status",
  };
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent n, k, l, s, of_1{1};
      const gmres_augment<T> body{
          call.block<T>(0, n, k),
          call.contiguous<const T>(1, l, n, k),
          call.block<const real_t<T>>(2, l, k),
          call.scalar<i64>(3),
          call.contiguous<T>(4, s, n, k),
          call.contiguous<const i64>(5, of_1),
          call.status<T>(6, k),
          i64(n),
          i64(k),
          i64(l),
          i64(s),
      };
      call.submit(n * k * l * s, body);
    });
    return none_object();
  }
};

// y = the solution of the upper triangle of count rows, 0 beyond it and for zero pivots; of 1, 2, 4, ... fewer rows where the rounding of the product, eps | |H| |y| |, exceeds the rest of g and they leave less, both added up
struct gmres_solve_entry {
  static constexpr const char* operation = "gmres.solve";
  static constexpr const char* symbol = "gmres_solve";
  static constexpr const char* names[] = {
      "hessenberg",
      "g",
      "count",
      "y",
  };
  static Object run(const Call& call) {
    with_value_type(call, names[0], call.array(0), [&](auto value) {
      using T = decltype(value);
      Extent s, k;
      const gmres_solve<T> body{
          call.contiguous<const T>(0, s, s, k),
          call.block<const T>(1, s, k),
          call.contiguous<const i64>(2, k),
          call.block<T>(3, s, k),
          i64(s),
          i64(k),
      };
      call.submit(s * k, body);
    });
    return none_object();
  }
};

// u = sum_i y_i basis_i for i < count
struct gmres_combine_entry {
  static constexpr const char* operation = "gmres.combine";
  static constexpr const char* symbol = "gmres_combine";
  static constexpr const char* names[] = {
      "basis",
      "y",
      "count",
      "u",
  };
  static Object run(const Call& call) {
    with_value_type(call, names[1], call.array(1), [&](auto value) {
      using T = decltype(value);
      with_storage_type<T>(call, names[0], call.array(0), [&](auto storage) {
        using S = decltype(storage);
        Extent s, n, k;
        const gmres_combine<T, S> body{
            call.contiguous<const S>(0, s, n, k),
            call.block<const T>(1, s, k),
            call.contiguous<const i64>(2, k),
            call.block<T>(3, n, k),
            i64(s),
            i64(n),
            i64(k),
        };
        call.submit(s * n * k, body);
      });
    });
    return none_object();
  }
};

} // namespace

void add_gmres_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<gmres_start_entry>("gmres_start", nullptr),
      method<gmres_project_entry>("gmres_project", nullptr),
      method<gmres_subtract_entry>("gmres_subtract", nullptr),
      method<gmres_reproject_entry>("gmres_reproject", nullptr),
      method<gmres_resubtract_entry>("gmres_resubtract", nullptr),
      method<gmres_rotate_entry>("gmres_rotate", nullptr),
      method<gmres_append_entry>("gmres_append", nullptr),
      method<gmres_augment_entry>("gmres_augment", nullptr),
      method<gmres_solve_entry>("gmres_solve", nullptr),
      method<gmres_combine_entry>("gmres_combine", nullptr),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
