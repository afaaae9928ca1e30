// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "omp/rows.hpp"

namespace wl {

namespace {

// falls and repeats = how often in a row the next column is smaller, and is the same
struct rows_examine_entry {
  static constexpr const char* operation = "rows.examine";
  static constexpr const char* symbol = "rows_examine";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "falls",
      "repeats",
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
      const rows_examine<I> body{
          call.contiguous<const I>(0, m),
          call.contiguous<const I>(1, m),
          call.contiguous<const I>(2, z),
          call.contiguous<i64>(3, of_1),
          call.contiguous<i64>(4, of_1),
      };
      call.submit(m * 1, Map<rows_examine<I>, rows_examine_entry>(body, m, 1));
    });
    return none_object();
  }
};

// falls = how many rows end before they begin
struct rows_falls_entry {
  static constexpr const char* operation = "rows.falls";
  static constexpr const char* symbol = "rows_falls";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "falls",
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
      const rows_falls<I> body{
          call.contiguous<const I>(0, m),
          call.contiguous<const I>(1, m),
          call.contiguous<i64>(2, of_1),
      };
      call.submit(m * 1, Map<rows_falls<I>, rows_falls_entry>(body, m, 1));
    });
    return none_object();
  }
};

// lengths_i = how many entries of row i are not 0 (NaN is not), total = their sum
struct rows_count_nonzeros_entry {
  static constexpr const char* operation = "rows.count_nonzeros";
  static constexpr const char* symbol = "rows_count_nonzeros";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "values",
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
    with_value_type(call, names[2], call.array(2), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent m, z, of_1{1};
        const rows_count_nonzeros<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const T>(2, z),
            call.contiguous<I>(3, m),
            call.contiguous<i64>(4, of_1),
        };
        call.submit(m * 1, Map<rows_count_nonzeros<T, I>, rows_count_nonzeros_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// y_i = the sum of the entries of row i
struct rows_total_entry {
  static constexpr const char* operation = "rows.total";
  static constexpr const char* symbol = "rows_total";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "values",
      "y",
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
        Extent m, z;
        const rows_total<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const T>(2, z),
            call.contiguous<T>(3, m),
        };
        call.submit(m * 1, Map<rows_total<T, I>, rows_total_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// y_i = the largest entry of row i, of a row with fewer than width entries 0 or more; NaN if any is; complex ones by real part, then imaginary part
struct rows_largest_entry {
  static constexpr const char* operation = "rows.largest";
  static constexpr const char* symbol = "rows_largest";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "values",
      "width",
      "y",
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
        Extent m, z;
        const rows_largest<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const T>(2, z),
            call.scalar<i64>(3),
            call.contiguous<T>(4, m),
        };
        call.submit(m * 1, Map<rows_largest<T, I>, rows_largest_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// y_i = the smallest entry of row i, of a row with fewer than width entries 0 or less; NaN if any is; complex ones by real part, then imaginary part
struct rows_smallest_entry {
  static constexpr const char* operation = "rows.smallest";
  static constexpr const char* symbol = "rows_smallest";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "values",
      "width",
      "y",
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
        Extent m, z;
        const rows_smallest<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const T>(2, z),
            call.scalar<i64>(3),
            call.contiguous<T>(4, m),
        };
        call.submit(m * 1, Map<rows_smallest<T, I>, rows_smallest_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// d_i = the sum of the entries of row i in column i + offset
struct rows_diagonal_entry {
  static constexpr const char* operation = "rows.diagonal";
  static constexpr const char* symbol = "rows_diagonal";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "offset",
      "d",
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
        const rows_diagonal<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.scalar<i64>(4),
            call.contiguous<T>(5, m),
        };
        call.submit(m * 1, Map<rows_diagonal<T, I>, rows_diagonal_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// values_e = given_i for the entries e of row i in column i + offset, stored = how many there are
struct rows_set_diagonal_entry {
  static constexpr const char* operation = "rows.set_diagonal";
  static constexpr const char* symbol = "rows_set_diagonal";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "given",
      "offset",
      "values",
      "stored",
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
        const rows_set_diagonal<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, m),
            call.scalar<i64>(4),
            call.contiguous<T>(5, z),
            call.contiguous<i64>(6, of_1),
        };
        call.submit(m * 1, Map<rows_set_diagonal<T, I>, rows_set_diagonal_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// result_e = values_e dense_(row_step i + column_step j) for the entry e at (i, j)
struct rows_scale_entry {
  static constexpr const char* operation = "rows.scale";
  static constexpr const char* symbol = "rows_scale";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "dense",
      "row_step",
      "column_step",
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
    with_value_type(call, names[3], call.array(3), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent m, z, w;
        const rows_scale<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<const T>(4, w),
            call.scalar<i64>(5),
            call.scalar<i64>(6),
            call.contiguous<T>(7, z),
        };
        call.submit(m * 1, Map<rows_scale<T, I>, rows_scale_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// longest = how many entries the longest row has
struct rows_longest_entry {
  static constexpr const char* operation = "rows.longest";
  static constexpr const char* symbol = "rows_longest";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "longest",
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
      const rows_longest<I> body{
          call.contiguous<const I>(0, m),
          call.contiguous<const I>(1, m),
          call.contiguous<i64>(2, of_1),
      };
      call.submit(m * 1, Map<rows_longest<I>, rows_longest_entry>(body, m, 1));
    });
    return none_object();
  }
};

// row_e = i for the entries e of row i
struct rows_number_entry {
  static constexpr const char* operation = "rows.number";
  static constexpr const char* symbol = "rows_number";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "row",
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
      Extent m, z;
      const rows_number<I> body{
          call.contiguous<const I>(0, m),
          call.contiguous<const I>(1, m),
          call.contiguous<I>(2, z),
      };
      call.submit(m * 1, Map<rows_number<I>, rows_number_entry>(body, m, 1));
    });
    return none_object();
  }
};

// lengths_i = how many entries row rows_i has, total = their sum
struct rows_lengths_entry {
  static constexpr const char* operation = "rows.lengths";
  static constexpr const char* symbol = "rows_lengths";
  static constexpr const char* names[] = {
      "rows",
      "indptr",
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
      Extent m, q, of_1{1};
      const rows_lengths<I> body{
          call.contiguous<const I>(0, m),
          call.contiguous<const I>(1, q),
          call.contiguous<I>(2, m),
          call.contiguous<i64>(3, of_1),
      };
      call.submit(m * 1, Map<rows_lengths<I>, rows_lengths_entry>(body, m, 1));
    });
    return none_object();
  }
};

// row i of the new matrix is row rows_i, its entries in their order
struct rows_take_entry {
  static constexpr const char* operation = "rows.take";
  static constexpr const char* symbol = "rows_take";
  static constexpr const char* names[] = {
      "rows",
      "indptr",
      "indices",
      "values",
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
        Extent m, q, z, p, w;
        const rows_take<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, q),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<const I>(4, p),
            call.contiguous<I>(5, w),
            call.contiguous<T>(6, w),
        };
        call.submit(m * 1, Map<rows_take<T, I>, rows_take_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// row i of the new matrix has the entries of row i that are not 0, in their order
struct rows_drop_zeros_entry {
  static constexpr const char* operation = "rows.drop_zeros";
  static constexpr const char* symbol = "rows_drop_zeros";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
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
        Extent m, z, p, w;
        const rows_drop_zeros<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<const I>(4, p),
            call.contiguous<I>(5, w),
            call.contiguous<T>(6, w),
        };
        call.submit(m * 1, Map<rows_drop_zeros<T, I>, rows_drop_zeros_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// lengths_i = how many entry-wise products of two sorted rows without duplicates are not 0, total = their sum; an entry that meets none is multiplied by 0
struct rows_count_products_entry {
  static constexpr const char* operation = "rows.count_products";
  static constexpr const char* symbol = "rows_count_products";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "other_begin",
      "other_end",
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
        Extent m, z, y, of_1{1};
        const rows_count_products<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<const I>(4, m),
            call.contiguous<const I>(5, m),
            call.contiguous<const I>(6, y),
            call.contiguous<const T>(7, y),
            call.contiguous<I>(8, m),
            call.contiguous<i64>(9, of_1),
        };
        call.submit(m * 1, Map<rows_count_products<T, I>, rows_count_products_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// row i of the new matrix has the products that rows.count_products counts, by column
struct rows_multiply_entry {
  static constexpr const char* operation = "rows.multiply";
  static constexpr const char* symbol = "rows_multiply";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "other_begin",
      "other_end",
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
        Extent m, z, y, p, w;
        const rows_multiply<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<const I>(4, m),
            call.contiguous<const I>(5, m),
            call.contiguous<const I>(6, y),
            call.contiguous<const T>(7, y),
            call.contiguous<const I>(8, p),
            call.contiguous<I>(9, w),
            call.contiguous<T>(10, w),
        };
        call.submit(m * 1, Map<rows_multiply<T, I>, rows_multiply_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// lengths_i = how many columns row i of one or of both matrices has, total = their sum; rows are sorted, without duplicates
struct rows_count_union_entry {
  static constexpr const char* operation = "rows.count_union";
  static constexpr const char* symbol = "rows_count_union";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "other_begin",
      "other_end",
      "other_indices",
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
      Extent m, z, y, of_1{1};
      const rows_count_union<I> body{
          call.contiguous<const I>(0, m),
          call.contiguous<const I>(1, m),
          call.contiguous<const I>(2, z),
          call.contiguous<const I>(3, m),
          call.contiguous<const I>(4, m),
          call.contiguous<const I>(5, y),
          call.contiguous<I>(6, m),
          call.contiguous<i64>(7, of_1),
      };
      call.submit(m * 1, Map<rows_count_union<I>, rows_count_union_entry>(body, m, 1));
    });
    return none_object();
  }
};

// row i of the new matrix has the columns that rows.count_union counts: alpha times the value of one plus beta times that of the other, no term for a missing entry; products are rounded
struct rows_add_entry {
  static constexpr const char* operation = "rows.add";
  static constexpr const char* symbol = "rows_add";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "other_begin",
      "other_end",
      "other_indices",
      "other_values",
      "alpha",
      "beta",
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
        Extent m, z, y, p, w;
        const rows_add<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<const I>(4, m),
            call.contiguous<const I>(5, m),
            call.contiguous<const I>(6, y),
            call.contiguous<const T>(7, y),
            call.scalar<T>(8),
            call.scalar<T>(9),
            call.contiguous<const I>(10, p),
            call.contiguous<I>(11, w),
            call.contiguous<T>(12, w),
        };
        call.submit(m * 1, Map<rows_add<T, I>, rows_add_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// row i of the new matrix has the columns that rows.count_union counts; first and second = the number of the entry of each matrix in this column, -1 if it has none
struct rows_merge_entry {
  static constexpr const char* operation = "rows.merge";
  static constexpr const char* symbol = "rows_merge";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "other_begin",
      "other_end",
      "other_indices",
      "target",
      "new_indices",
      "first",
      "second",
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
      Extent m, z, y, p, w;
      const rows_merge<I> body{
          call.contiguous<const I>(0, m),
          call.contiguous<const I>(1, m),
          call.contiguous<const I>(2, z),
          call.contiguous<const I>(3, m),
          call.contiguous<const I>(4, m),
          call.contiguous<const I>(5, y),
          call.contiguous<const I>(6, p),
          call.contiguous<I>(7, w),
          call.contiguous<I>(8, w),
          call.contiguous<I>(9, w),
      };
      call.submit(m * 1, Map<rows_merge<I>, rows_merge_entry>(body, m, 1));
    });
    return none_object();
  }
};

// lengths_i = how many entries of row i have a column j with numbers_j >= 0, total = their sum
struct rows_count_picked_entry {
  static constexpr const char* operation = "rows.count_picked";
  static constexpr const char* symbol = "rows_count_picked";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "numbers",
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
      Extent m, z, n, of_1{1};
      const rows_count_picked<I> body{
          call.contiguous<const I>(0, m),
          call.contiguous<const I>(1, m),
          call.contiguous<const I>(2, z),
          call.contiguous<const I>(3, n),
          call.contiguous<I>(4, m),
          call.contiguous<i64>(5, of_1),
      };
      call.submit(m * 1, Map<rows_count_picked<I>, rows_count_picked_entry>(body, m, 1));
    });
    return none_object();
  }
};

// row i of the new matrix has the entries that rows.count_picked counts, in their order, column j renamed to numbers_j
struct rows_pick_entry {
  static constexpr const char* operation = "rows.pick";
  static constexpr const char* symbol = "rows_pick";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "numbers",
      "values",
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
    with_value_type(call, names[4], call.array(4), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent m, z, n, p, w;
        const rows_pick<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const I>(3, n),
            call.contiguous<const T>(4, z),
            call.contiguous<const I>(5, p),
            call.contiguous<I>(6, w),
            call.contiguous<T>(7, w),
        };
        call.submit(m * 1, Map<rows_pick<T, I>, rows_pick_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// lengths_i = how many entries of row i have a column j with lower <= j < upper, total = their sum
struct rows_count_between_entry {
  static constexpr const char* operation = "rows.count_between";
  static constexpr const char* symbol = "rows_count_between";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "lower",
      "upper",
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
      Extent m, z, of_1{1};
      const rows_count_between<I> body{
          call.contiguous<const I>(0, m),
          call.contiguous<const I>(1, m),
          call.contiguous<const I>(2, z),
          call.scalar<i64>(3),
          call.scalar<i64>(4),
          call.contiguous<I>(5, m),
          call.contiguous<i64>(6, of_1),
      };
      call.submit(m * 1, Map<rows_count_between<I>, rows_count_between_entry>(body, m, 1));
    });
    return none_object();
  }
};

// row i of the new matrix has the entries that rows.count_between counts, in their order, column j renamed to j - lower
struct rows_between_entry {
  static constexpr const char* operation = "rows.between";
  static constexpr const char* symbol = "rows_between";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "lower",
      "upper",
      "values",
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
    with_value_type(call, names[5], call.array(5), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent m, z, p, w;
        const rows_between<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.scalar<i64>(3),
            call.scalar<i64>(4),
            call.contiguous<const T>(5, z),
            call.contiguous<const I>(6, p),
            call.contiguous<I>(7, w),
            call.contiguous<T>(8, w),
        };
        call.submit(m * 1, Map<rows_between<T, I>, rows_between_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// lengths_i = how many entries of row i have a column j with lower <= j - i <= upper, total = their sum
struct rows_count_band_entry {
  static constexpr const char* operation = "rows.count_band";
  static constexpr const char* symbol = "rows_count_band";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "lower",
      "upper",
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
      Extent m, z, of_1{1};
      const rows_count_band<I> body{
          call.contiguous<const I>(0, m),
          call.contiguous<const I>(1, m),
          call.contiguous<const I>(2, z),
          call.scalar<i64>(3),
          call.scalar<i64>(4),
          call.contiguous<I>(5, m),
          call.contiguous<i64>(6, of_1),
      };
      call.submit(m * 1, Map<rows_count_band<I>, rows_count_band_entry>(body, m, 1));
    });
    return none_object();
  }
};

// row i of the new matrix has the entries that rows.count_band counts, in their order
struct rows_band_entry {
  static constexpr const char* operation = "rows.band";
  static constexpr const char* symbol = "rows_band";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "lower",
      "upper",
      "values",
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
    with_value_type(call, names[5], call.array(5), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent m, z, p, w;
        const rows_band<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.scalar<i64>(3),
            call.scalar<i64>(4),
            call.contiguous<const T>(5, z),
            call.contiguous<const I>(6, p),
            call.contiguous<I>(7, w),
            call.contiguous<T>(8, w),
        };
        call.submit(m * 1, Map<rows_band<T, I>, rows_band_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// the entries of row i are copied to target_i and the following positions, offset added to their columns
struct rows_put_entry {
  static constexpr const char* operation = "rows.put";
  static constexpr const char* symbol = "rows_put";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "offset",
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
        Extent m, z, w;
        const rows_put<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.scalar<i64>(4),
            call.contiguous<const I>(5, m),
            call.contiguous<I>(6, w),
            call.contiguous<T>(7, w),
        };
        call.submit(m * 1, Map<rows_put<T, I>, rows_put_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// lengths_i = in how many columns two sorted rows without duplicates have values of which the comparison is true, missing ones being 0, and one of them is stored; total = their sum
struct rows_count_compared_entry {
  static constexpr const char* operation = "rows.count_compared";
  static constexpr const char* symbol = "rows_count_compared";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "other_begin",
      "other_end",
      "other_indices",
      "other_values",
      "comparison",
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
        Extent m, z, y, of_1{1};
        const rows_count_compared<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<const I>(4, m),
            call.contiguous<const I>(5, m),
            call.contiguous<const I>(6, y),
            call.contiguous<const T>(7, y),
            call.scalar<i64>(8),
            call.contiguous<I>(9, m),
            call.contiguous<i64>(10, of_1),
        };
        call.submit(m * 1, Map<rows_count_compared<T, I>, rows_count_compared_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// row i of the new pattern has the columns that rows.count_compared counts
struct rows_compare_entry {
  static constexpr const char* operation = "rows.compare";
  static constexpr const char* symbol = "rows_compare";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "other_begin",
      "other_end",
      "other_indices",
      "other_values",
      "comparison",
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
    with_value_type(call, names[3], call.array(3), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent m, z, y, p, w;
        const rows_compare<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<const I>(4, m),
            call.contiguous<const I>(5, m),
            call.contiguous<const I>(6, y),
            call.contiguous<const T>(7, y),
            call.scalar<i64>(8),
            call.contiguous<const I>(9, p),
            call.contiguous<I>(10, w),
        };
        call.submit(m * 1, Map<rows_compare<T, I>, rows_compare_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// lengths_i = in how many columns of two sorted rows without duplicates the larger value of the two (the smaller one if larger is 0) is not 0, missing ones being 0; total = their sum
struct rows_count_extremes_entry {
  static constexpr const char* operation = "rows.count_extremes";
  static constexpr const char* symbol = "rows_count_extremes";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "other_begin",
      "other_end",
      "other_indices",
      "other_values",
      "larger",
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
        Extent m, z, y, of_1{1};
        const rows_count_extremes<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<const I>(4, m),
            call.contiguous<const I>(5, m),
            call.contiguous<const I>(6, y),
            call.contiguous<const T>(7, y),
            call.scalar<i64>(8),
            call.contiguous<I>(9, m),
            call.contiguous<i64>(10, of_1),
        };
        call.submit(m * 1, Map<rows_count_extremes<T, I>, rows_count_extremes_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// row i of the new matrix has the values that rows.count_extremes counts, by column; NaN if any is; complex ones by real part, then imaginary part
struct rows_extremes_entry {
  static constexpr const char* operation = "rows.extremes";
  static constexpr const char* symbol = "rows_extremes";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "other_begin",
      "other_end",
      "other_indices",
      "other_values",
      "larger",
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
        Extent m, z, y, p, w;
        const rows_extremes<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<const I>(4, m),
            call.contiguous<const I>(5, m),
            call.contiguous<const I>(6, y),
            call.contiguous<const T>(7, y),
            call.scalar<i64>(8),
            call.contiguous<const I>(9, p),
            call.contiguous<I>(10, w),
            call.contiguous<T>(11, w),
        };
        call.submit(m * 1, Map<rows_extremes<T, I>, rows_extremes_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// y_i = the sum of the entries at (rows_i, columns_i) of a matrix with sorted rows
struct rows_at_entry {
  static constexpr const char* operation = "rows.at";
  static constexpr const char* symbol = "rows_at";
  static constexpr const char* names[] = {
      "rows",
      "columns",
      "indptr",
      "indices",
      "values",
      "y",
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
    with_value_type(call, names[4], call.array(4), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent m, q, z;
        const rows_at<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, q),
            call.contiguous<const I>(3, z),
            call.contiguous<const T>(4, z),
            call.contiguous<T>(5, m),
        };
        call.submit(m * 1, Map<rows_at<T, I>, rows_at_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// sums_i = the sum of x_f y_s with f = first_e and s = second_e over the entries e of row i
struct rows_contract_entry {
  static constexpr const char* operation = "rows.contract";
  static constexpr const char* symbol = "rows_contract";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "first",
      "second",
      "x",
      "y",
      "sums",
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
    with_value_type(call, names[4], call.array(4), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent m, z, p, q;
        const rows_contract<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const I>(3, z),
            call.contiguous<const T>(4, p),
            call.contiguous<const T>(5, q),
            call.contiguous<T>(6, m),
        };
        call.submit(m * 1, Map<rows_contract<T, I>, rows_contract_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// lengths_i = of how many entries of row i the comparison with a number is true, total = their sum
struct rows_count_compared_number_entry {
  static constexpr const char* operation = "rows.count_compared_number";
  static constexpr const char* symbol = "rows_count_compared_number";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "number",
      "comparison",
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
        const rows_count_compared_number<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.scalar<T>(4),
            call.scalar<i64>(5),
            call.contiguous<I>(6, m),
            call.contiguous<i64>(7, of_1),
        };
        call.submit(m * 1, Map<rows_count_compared_number<T, I>, rows_count_compared_number_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// row i of the new pattern has the columns of the entries that rows.count_compared_number counts
struct rows_compare_number_entry {
  static constexpr const char* operation = "rows.compare_number";
  static constexpr const char* symbol = "rows_compare_number";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "number",
      "comparison",
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
    with_value_type(call, names[3], call.array(3), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent m, z, p, w;
        const rows_compare_number<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.scalar<T>(4),
            call.scalar<i64>(5),
            call.contiguous<const I>(6, p),
            call.contiguous<I>(7, w),
        };
        call.submit(m * 1, Map<rows_compare_number<T, I>, rows_compare_number_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// row r of the new matrix has, from target_r on, the products of the entries of row r / other_rows with those of row r % other_rows of the other matrix, which has width columns
struct rows_kron_entry {
  static constexpr const char* operation = "rows.kron";
  static constexpr const char* symbol = "rows_kron";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "other_begin",
      "other_end",
      "other_indices",
      "other_values",
      "other_rows",
      "width",
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
        Extent m, z, q, y, r, w;
        const rows_kron<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<const I>(4, q),
            call.contiguous<const I>(5, q),
            call.contiguous<const I>(6, y),
            call.contiguous<const T>(7, y),
            call.scalar<i64>(8),
            call.scalar<i64>(9),
            call.contiguous<const I>(10, r),
            call.contiguous<I>(11, w),
            call.contiguous<T>(12, w),
        };
        call.submit(r * 1, Map<rows_kron<T, I>, rows_kron_entry>(body, r, 1));
      });
    });
    return none_object();
  }
};

// new_indptr = where the rows of rows.kron begin, and where the last one ends
struct rows_kron_pointers_entry {
  static constexpr const char* operation = "rows.kron_pointers";
  static constexpr const char* symbol = "rows_kron_pointers";
  static constexpr const char* names[] = {
      "indptr",
      "other_indptr",
      "other_rows",
      "new_indptr",
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
      Extent q, y, m;
      const rows_kron_pointers<I> body{
          call.contiguous<const I>(0, q),
          call.contiguous<const I>(1, y),
          call.scalar<i64>(2),
          call.contiguous<I>(3, m),
      };
      call.submit(m * 1, Map<rows_kron_pointers<I>, rows_kron_pointers_entry>(body, m, 1));
    });
    return none_object();
  }
};

// new_indptr = indptr + by
struct rows_shift_entry {
  static constexpr const char* operation = "rows.shift";
  static constexpr const char* symbol = "rows_shift";
  static constexpr const char* names[] = {
      "indptr",
      "by",
      "new_indptr",
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
      Extent m;
      const rows_shift<I> body{
          call.contiguous<const I>(0, m),
          call.scalar<i64>(1),
          call.contiguous<I>(2, m),
      };
      call.submit(m * 1, Map<rows_shift<I>, rows_shift_entry>(body, m, 1));
    });
    return none_object();
  }
};

// lengths_i = how many blocks of height x width have entries in rows i height to (i + 1) height of a matrix with sorted rows, total = their sum
struct rows_count_blocks_entry {
  static constexpr const char* operation = "rows.count_blocks";
  static constexpr const char* symbol = "rows_count_blocks";
  static constexpr const char* names[] = {
      "indptr",
      "indices",
      "height",
      "width",
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
      Extent q, z, m, of_1{1};
      const rows_count_blocks<I> body{
          call.contiguous<const I>(0, q),
          call.contiguous<const I>(1, z),
          call.scalar<i64>(2),
          call.scalar<i64>(3),
          call.contiguous<I>(4, m),
          call.contiguous<i64>(5, of_1),
      };
      call.submit(m * 1, Map<rows_count_blocks<I>, rows_count_blocks_entry>(body, m, 1));
    });
    return none_object();
  }
};

// block row i of the new matrix has the lengths_i blocks of rows.count_blocks, by column; new_values has height x width numbers of each, by rows; rows have no duplicates
struct rows_fill_blocks_entry {
  static constexpr const char* operation = "rows.fill_blocks";
  static constexpr const char* symbol = "rows_fill_blocks";
  static constexpr const char* names[] = {
      "lengths",
      "indptr",
      "indices",
      "values",
      "height",
      "width",
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
        Extent m, q, z, p, w, y;
        const rows_fill_blocks<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, q),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.scalar<i64>(4),
            call.scalar<i64>(5),
            call.contiguous<const I>(6, p),
            call.contiguous<I>(7, w),
            call.contiguous<T>(8, y),
        };
        call.submit(m * 1, Map<rows_fill_blocks<T, I>, rows_fill_blocks_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

} // namespace

void add_rows_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<rows_examine_entry>("rows_examine", nullptr),
      method<rows_falls_entry>("rows_falls", nullptr),
      method<rows_count_nonzeros_entry>("rows_count_nonzeros", nullptr),
      method<rows_total_entry>("rows_total", nullptr),
      method<rows_largest_entry>("rows_largest", nullptr),
      method<rows_smallest_entry>("rows_smallest", nullptr),
      method<rows_diagonal_entry>("rows_diagonal", nullptr),
      method<rows_set_diagonal_entry>("rows_set_diagonal", nullptr),
      method<rows_scale_entry>("rows_scale", nullptr),
      method<rows_longest_entry>("rows_longest", nullptr),
      method<rows_number_entry>("rows_number", nullptr),
      method<rows_lengths_entry>("rows_lengths", nullptr),
      method<rows_take_entry>("rows_take", nullptr),
      method<rows_drop_zeros_entry>("rows_drop_zeros", nullptr),
      method<rows_count_products_entry>("rows_count_products", nullptr),
      method<rows_multiply_entry>("rows_multiply", nullptr),
      method<rows_count_union_entry>("rows_count_union", nullptr),
      method<rows_add_entry>("rows_add", nullptr),
      method<rows_merge_entry>("rows_merge", nullptr),
      method<rows_count_picked_entry>("rows_count_picked", nullptr),
      method<rows_pick_entry>("rows_pick", nullptr),
      method<rows_count_between_entry>("rows_count_between", nullptr),
      method<rows_between_entry>("rows_between", nullptr),
      method<rows_count_band_entry>("rows_count_band", nullptr),
      method<rows_band_entry>("rows_band", nullptr),
      method<rows_put_entry>("rows_put", nullptr),
      method<rows_count_compared_entry>("rows_count_compared", nullptr),
      method<rows_compare_entry>("rows_compare", nullptr),
      method<rows_count_extremes_entry>("rows_count_extremes", nullptr),
      method<rows_extremes_entry>("rows_extremes", nullptr),
      method<rows_at_entry>("rows_at", nullptr),
      method<rows_contract_entry>("rows_contract", nullptr),
      method<rows_count_compared_number_entry>("rows_count_compared_number", nullptr),
      method<rows_compare_number_entry>("rows_compare_number", nullptr),
      method<rows_kron_entry>("rows_kron", nullptr),
      method<rows_kron_pointers_entry>("rows_kron_pointers", nullptr),
      method<rows_shift_entry>("rows_shift", nullptr),
      method<rows_count_blocks_entry>("rows_count_blocks", nullptr),
      method<rows_fill_blocks_entry>("rows_fill_blocks", nullptr),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
