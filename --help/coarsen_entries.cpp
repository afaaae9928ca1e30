// Made by backends/omp/generate.py from the declarations of operations; changes are lost.
#include "omp/call.hpp"
#include "omp/map.hpp"
#include "unified/coarsen.hpp"

namespace wl {

namespace {

// y_i = sum_j |a_ij|, with |a| = |re a| + |im a|
struct coarsen_absolute_sums_entry {
  static constexpr const char* operation = "coarsen.absolute_sums";
  static constexpr const char* symbol = "coarsen_absolute_sums";
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
        const coarsen_absolute_sums<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const T>(2, z),
            call.contiguous<real_t<T>>(3, m),
        };
        call.submit(m * 1, Map<coarsen_absolute_sums<T, I>, coarsen_absolute_sums_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// inverse_i = 1 / sum_j |a_ij| with the sign (phase) of a_ii; 0 where the sum is 0 or not finite, and bad = the number of such rows
struct coarsen_invert_sums_entry {
  static constexpr const char* operation = "coarsen.invert_sums";
  static constexpr const char* symbol = "coarsen_invert_sums";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "inverse",
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
        const coarsen_invert_sums<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<T>(4, m),
            call.contiguous<i64>(5, of_1),
        };
        call.submit(m * 1, Map<coarsen_invert_sums<T, I>, coarsen_invert_sums_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// y_i = sum_j |a_ij| / |a_ii|, the maximum bounds the eigenvalues of D^-1 A; 0 where a_ii = 0
struct coarsen_radius_entry {
  static constexpr const char* operation = "coarsen.radius";
  static constexpr const char* symbol = "coarsen_radius";
  static constexpr const char* names[] = {
      "begin",
      "end",
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
    with_value_type(call, names[3], call.array(3), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent m, z;
        const coarsen_radius<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<real_t<T>>(4, m),
        };
        call.submit(m * 1, Map<coarsen_radius<T, I>, coarsen_radius_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// balanced = how many rows have Re a_ii > 0, least Re a_ii <= s <= most Re a_ii with s = -Re sum_{j != i} a_ij, and positive terms a_ij that are at most half of the negative ones
struct coarsen_balanced_entry {
  static constexpr const char* operation = "coarsen.balanced";
  static constexpr const char* symbol = "coarsen_balanced";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "least",
      "most",
      "balanced",
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
        const coarsen_balanced<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.scalar<real_t<T>>(4),
            call.scalar<real_t<T>>(5),
            call.contiguous<i64>(6, of_1),
        };
        call.submit(m * 1, Map<coarsen_balanced<T, I>, coarsen_balanced_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// x_i = hash(first + i) / 2^31 - 1: the same numbers between -1 and 1 on all executors
struct coarsen_start_entry {
  static constexpr const char* operation = "coarsen.start";
  static constexpr const char* symbol = "coarsen_start";
  static constexpr const char* names[] = {
      "first",
      "x",
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
      Extent m;
      const coarsen_start<T> body{
          call.scalar<i64>(0),
          call.contiguous<T>(1, m),
      };
      call.submit(m * 1, Map<coarsen_start<T>, coarsen_start_entry>(body, m, 1));
    });
    return none_object();
  }
};

// y_i = sum_j a_ij x_j / a_ii, 0 where a_ii = 0: a step of the power method for D^-1 A
struct coarsen_power_entry {
  static constexpr const char* operation = "coarsen.power";
  static constexpr const char* symbol = "coarsen_power";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "x",
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
    with_value_type(call, names[3], call.array(3), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent m, z, c;
        const coarsen_power<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<const T>(4, c),
            call.contiguous<T>(5, m),
        };
        call.submit(m * 1, Map<coarsen_power<T, I>, coarsen_power_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// lengths_i = how many entries off the diagonal with s_ij > 0 and s_ij >= theta max_k s_ik, where s_ij = -Re(a_ij conj(a_ii)) row i has, total = their sum
struct coarsen_count_strong_entry {
  static constexpr const char* operation = "coarsen.count_strong";
  static constexpr const char* symbol = "coarsen_count_strong";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "theta",
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
        const coarsen_count_strong<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.scalar<real_t<T>>(4),
            call.contiguous<I>(5, m),
            call.contiguous<i64>(6, of_1),
        };
        call.submit(m * 1, Map<coarsen_count_strong<T, I>, coarsen_count_strong_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// row i of the new matrix has its entries off the diagonal with s_ij > 0 and s_ij >= theta max_k s_ik, where s_ij = -Re(a_ij conj(a_ii))
struct coarsen_strong_entry {
  static constexpr const char* operation = "coarsen.strong";
  static constexpr const char* symbol = "coarsen_strong";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "theta",
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
        const coarsen_strong<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.scalar<real_t<T>>(4),
            call.contiguous<const I>(5, p),
            call.contiguous<I>(6, w),
            call.contiguous<T>(7, w),
        };
        call.submit(m * 1, Map<coarsen_strong<T, I>, coarsen_strong_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// lengths_i = how many entries off the diagonal with |a_ij| > 0 and |a_ij|^2 >= theta^2 |a_ii| |a_jj| row i has, total = their sum; d is the diagonal
struct coarsen_count_coupled_entry {
  static constexpr const char* operation = "coarsen.count_coupled";
  static constexpr const char* symbol = "coarsen_count_coupled";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "d",
      "theta",
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
        const coarsen_count_coupled<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<const T>(4, m),
            call.scalar<real_t<T>>(5),
            call.contiguous<I>(6, m),
            call.contiguous<i64>(7, of_1),
        };
        call.submit(m * 1, Map<coarsen_count_coupled<T, I>, coarsen_count_coupled_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// row i of the new matrix has its entries off the diagonal with |a_ij| > 0 and |a_ij|^2 >= theta^2 |a_ii| |a_jj|
struct coarsen_coupled_entry {
  static constexpr const char* operation = "coarsen.coupled";
  static constexpr const char* symbol = "coarsen_coupled";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "d",
      "theta",
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
        const coarsen_coupled<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<const T>(4, m),
            call.scalar<real_t<T>>(5),
            call.contiguous<const I>(6, p),
            call.contiguous<I>(7, w),
            call.contiguous<T>(8, w),
        };
        call.submit(m * 1, Map<coarsen_coupled<T, I>, coarsen_coupled_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// lengths_i = how many blocks of size x size the rows i size ... i size + size - 1 have entries in, total = their sum; rows are sorted
struct coarsen_count_nodes_entry {
  static constexpr const char* operation = "coarsen.count_nodes";
  static constexpr const char* symbol = "coarsen_count_nodes";
  static constexpr const char* names[] = {
      "indptr",
      "indices",
      "values",
      "size",
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
        Extent q, z, m, of_1{1};
        const coarsen_count_nodes<T, I> body{
            call.contiguous<const I>(0, q),
            call.contiguous<const I>(1, z),
            call.contiguous<const T>(2, z),
            call.scalar<i64>(3),
            call.contiguous<I>(4, m),
            call.contiguous<i64>(5, of_1),
        };
        call.submit(m * 1, Map<coarsen_count_nodes<T, I>, coarsen_count_nodes_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// row i of the new matrix has the Frobenius norms of the blocks of these rows
struct coarsen_nodes_entry {
  static constexpr const char* operation = "coarsen.nodes";
  static constexpr const char* symbol = "coarsen_nodes";
  static constexpr const char* names[] = {
      "indptr",
      "indices",
      "values",
      "size",
      "lengths",
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
    with_value_type(call, names[2], call.array(2), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent q, z, m, p, w;
        const coarsen_nodes<T, I> body{
            call.contiguous<const I>(0, q),
            call.contiguous<const I>(1, z),
            call.contiguous<const T>(2, z),
            call.scalar<i64>(3),
            call.contiguous<const I>(4, m),
            call.contiguous<const I>(5, p),
            call.contiguous<I>(6, w),
            call.contiguous<T>(7, w),
        };
        call.submit(m * 1, Map<coarsen_nodes<T, I>, coarsen_nodes_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// key_i = (end_i - begin_i) 2^32 + hash(first + i), all different; state_i = 0, or -1 of an empty row; undecided = how many are 0
struct coarsen_rank_entry {
  static constexpr const char* operation = "coarsen.rank";
  static constexpr const char* symbol = "coarsen_rank";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "first",
      "key",
      "state",
      "undecided",
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
      const coarsen_rank<I> body{
          call.contiguous<const I>(0, m),
          call.contiguous<const I>(1, m),
          call.scalar<i64>(2),
          call.contiguous<i64>(3, m),
          call.contiguous<i32>(4, m),
          call.contiguous<i64>(5, of_1),
      };
      call.submit(m * 1, Map<coarsen_rank<I>, coarsen_rank_entry>(body, m, 1));
    });
    return none_object();
  }
};

// next_i = 1 if state_i = 0 and no j of row i of both patterns with state_j = 0 has a larger key, else state_i
struct coarsen_select_entry {
  static constexpr const char* operation = "coarsen.select";
  static constexpr const char* symbol = "coarsen_select";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "other_begin",
      "other_end",
      "other_indices",
      "key",
      "state",
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
    with_index_type(call, names[0], call.array(0), [&](auto index) {
      using I = decltype(index);
      Extent m, z, y, c;
      const coarsen_select<I> body{
          call.contiguous<const I>(0, m),
          call.contiguous<const I>(1, m),
          call.contiguous<const I>(2, z),
          call.contiguous<const I>(3, m),
          call.contiguous<const I>(4, m),
          call.contiguous<const I>(5, y),
          call.contiguous<const i64>(6, c),
          call.contiguous<const i32>(7, c),
          call.contiguous<i32>(8, m),
      };
      call.submit(m * 1, Map<coarsen_select<I>, coarsen_select_entry>(body, m, 1));
    });
    return none_object();
  }
};

// next_i = -1 if state_i = 0 and state_j = 1 for a j of row i, else state_i; undecided = how many are 0
struct coarsen_reject_entry {
  static constexpr const char* operation = "coarsen.reject";
  static constexpr const char* symbol = "coarsen_reject";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "state",
      "next",
      "undecided",
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
      Extent m, z, c, of_1{1};
      const coarsen_reject<I> body{
          call.contiguous<const I>(0, m),
          call.contiguous<const I>(1, m),
          call.contiguous<const I>(2, z),
          call.contiguous<const i32>(3, c),
          call.contiguous<i32>(4, m),
          call.contiguous<i64>(5, of_1),
      };
      call.submit(m * 1, Map<coarsen_reject<I>, coarsen_reject_entry>(body, m, 1));
    });
    return none_object();
  }
};

// lengths_i = 1 if state_i = 1, else 0; total = their sum
struct coarsen_chosen_entry {
  static constexpr const char* operation = "coarsen.chosen";
  static constexpr const char* symbol = "coarsen_chosen";
  static constexpr const char* names[] = {
      "state",
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
    with_index_type(call, names[1], call.array(1), [&](auto index) {
      using I = decltype(index);
      Extent m, of_1{1};
      const coarsen_chosen<I> body{
          call.contiguous<const i32>(0, m),
          call.contiguous<I>(1, m),
          call.contiguous<i64>(2, of_1),
      };
      call.submit(m * 1, Map<coarsen_chosen<I>, coarsen_chosen_entry>(body, m, 1));
    });
    return none_object();
  }
};

// lengths_i = 1 for a coarse row i, else how many entries it has in coarse columns; total = their sum
struct coarsen_count_nearest_entry {
  static constexpr const char* operation = "coarsen.count_nearest";
  static constexpr const char* symbol = "coarsen_count_nearest";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "state",
      "number",
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
        Extent m, z, c, p, of_1{1};
        const coarsen_count_nearest<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<const i32>(4, c),
            call.contiguous<const I>(5, p),
            call.contiguous<I>(6, m),
            call.contiguous<i64>(7, of_1),
        };
        call.submit(m * 1, Map<coarsen_count_nearest<T, I>, coarsen_count_nearest_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// row i of the new matrix is the unit vector of number_i for a coarse i, else the entries a_ij in coarse columns, at number_j, divided by their sum
struct coarsen_nearest_entry {
  static constexpr const char* operation = "coarsen.nearest";
  static constexpr const char* symbol = "coarsen_nearest";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "state",
      "number",
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
        Extent m, z, c, p, t, w;
        const coarsen_nearest<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<const i32>(4, c),
            call.contiguous<const I>(5, p),
            call.contiguous<const I>(6, t),
            call.contiguous<I>(7, w),
            call.contiguous<T>(8, w),
        };
        call.submit(m * 1, Map<coarsen_nearest<T, I>, coarsen_nearest_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// lengths_i = 1 for a coarse row i, else how many strong columns j it has with near_j < near_(j+1); total = their sum
struct coarsen_count_weights_entry {
  static constexpr const char* operation = "coarsen.count_weights";
  static constexpr const char* symbol = "coarsen_count_weights";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "strong_begin",
      "strong_end",
      "strong_indices",
      "state",
      "near",
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
        Extent m, z, y, p, of_1{1};
        const coarsen_count_weights<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<const I>(4, m),
            call.contiguous<const I>(5, m),
            call.contiguous<const I>(6, y),
            call.contiguous<const i32>(7, m),
            call.contiguous<const I>(8, p),
            call.contiguous<I>(9, m),
            call.contiguous<i64>(10, of_1),
        };
        call.submit(m * 1, Map<coarsen_count_weights<T, I>, coarsen_count_weights_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// row i of the new matrix is the unit vector of a coarse i, else -a_ij / (the sum of all other entries of the row) for strong columns j with near_j < near_(j+1); a sum below 1e-8 |a_ii| (1e-5 in float32) is replaced by a_ii
struct coarsen_weights_entry {
  static constexpr const char* operation = "coarsen.weights";
  static constexpr const char* symbol = "coarsen_weights";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "strong_begin",
      "strong_end",
      "strong_indices",
      "state",
      "near",
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
        Extent m, z, y, p, t, w;
        const coarsen_weights<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<const I>(4, m),
            call.contiguous<const I>(5, m),
            call.contiguous<const I>(6, y),
            call.contiguous<const i32>(7, m),
            call.contiguous<const I>(8, p),
            call.contiguous<const I>(9, t),
            call.contiguous<I>(10, w),
            call.contiguous<T>(11, w),
        };
        call.submit(m * 1, Map<coarsen_weights<T, I>, coarsen_weights_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// lengths_i = the number of entries of row i, width at most; total = their sum
struct coarsen_count_largest_entry {
  static constexpr const char* operation = "coarsen.count_largest";
  static constexpr const char* symbol = "coarsen_count_largest";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "values",
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
    with_value_type(call, names[2], call.array(2), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[0], call.array(0), [&](auto index) {
        using I = decltype(index);
        Extent m, z, of_1{1};
        const coarsen_count_largest<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const T>(2, z),
            call.scalar<i64>(3),
            call.contiguous<I>(4, m),
            call.contiguous<i64>(5, of_1),
        };
        call.submit(m * 1, Map<coarsen_count_largest<T, I>, coarsen_count_largest_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// row i of the new matrix has the largest |re a| + |im a| of row i, width at most and the first of equal ones, times a number that keeps the sum of the row
struct coarsen_largest_entry {
  static constexpr const char* operation = "coarsen.largest";
  static constexpr const char* symbol = "coarsen_largest";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
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
        Extent m, z, p, w;
        const coarsen_largest<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.scalar<i64>(4),
            call.contiguous<const I>(5, p),
            call.contiguous<I>(6, w),
            call.contiguous<T>(7, w),
        };
        call.submit(m * 1, Map<coarsen_largest<T, I>, coarsen_largest_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// next_i = the largest of key_i and key_j for j of row i
struct coarsen_spread_entry {
  static constexpr const char* operation = "coarsen.spread";
  static constexpr const char* symbol = "coarsen_spread";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "key",
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
    with_index_type(call, names[0], call.array(0), [&](auto index) {
      using I = decltype(index);
      Extent m, z;
      const coarsen_spread<I> body{
          call.contiguous<const I>(0, m),
          call.contiguous<const I>(1, m),
          call.contiguous<const I>(2, z),
          call.contiguous<const i64>(3, m),
          call.contiguous<i64>(4, m),
      };
      call.submit(m * 1, Map<coarsen_spread<I>, coarsen_spread_entry>(body, m, 1));
    });
    return none_object();
  }
};

// keys are s 2^40 + hash with s = 2 for roots, 1 for undecided rows, 0 for others: an undecided row becomes a root if spread_i = key_i, and no root if spread_i is a root's; undecided = how many are left
struct coarsen_decide_entry {
  static constexpr const char* operation = "coarsen.decide";
  static constexpr const char* symbol = "coarsen_decide";
  static constexpr const char* names[] = {
      "key",
      "spread",
      "next",
      "undecided",
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
    Extent m, of_1{1};
    const coarsen_decide<> body{
        call.contiguous<const i64>(0, m),
        call.contiguous<const i64>(1, m),
        call.contiguous<i64>(2, m),
        call.contiguous<i64>(3, of_1),
    };
    call.submit(m * 1, Map<coarsen_decide<>, coarsen_decide_entry>(body, m, 1));
    return none_object();
  }
};

// next_i = label_i if >= 0, else the label of the column with largest |a_ij| among columns with a label >= 0, the first of equal ones, or -1; total = how many are -1
struct coarsen_join_entry {
  static constexpr const char* operation = "coarsen.join";
  static constexpr const char* symbol = "coarsen_join";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "indices",
      "values",
      "label",
      "next",
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
        const coarsen_join<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.contiguous<const T>(3, z),
            call.contiguous<const i64>(4, m),
            call.contiguous<i64>(5, m),
            call.contiguous<i64>(6, of_1),
        };
        call.submit(m * 1, Map<coarsen_join<T, I>, coarsen_join_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// key_i = hash(i) + 2^40, or hash(i) of an empty row; undecided = how many rows are not empty
struct coarsen_open_keys_entry {
  static constexpr const char* operation = "coarsen.open_keys";
  static constexpr const char* symbol = "coarsen_open_keys";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "key",
      "undecided",
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
      const coarsen_open_keys<I> body{
          call.contiguous<const I>(0, m),
          call.contiguous<const I>(1, m),
          call.contiguous<i64>(2, m),
          call.contiguous<i64>(3, of_1),
      };
      call.submit(m * 1, Map<coarsen_open_keys<I>, coarsen_open_keys_entry>(body, m, 1));
    });
    return none_object();
  }
};

// lengths_i = 1 if key_i is a root's, else 0; total = their sum
struct coarsen_roots_entry {
  static constexpr const char* operation = "coarsen.roots";
  static constexpr const char* symbol = "coarsen_roots";
  static constexpr const char* names[] = {
      "key",
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
    Extent m, of_1{1};
    const coarsen_roots<> body{
        call.contiguous<const i64>(0, m),
        call.contiguous<i64>(1, m),
        call.contiguous<i64>(2, of_1),
    };
    call.submit(m * 1, Map<coarsen_roots<>, coarsen_roots_entry>(body, m, 1));
    return none_object();
  }
};

// label_i = number_i where lengths_i is not 0, else -1
struct coarsen_label_entry {
  static constexpr const char* operation = "coarsen.label";
  static constexpr const char* symbol = "coarsen_label";
  static constexpr const char* names[] = {
      "lengths",
      "number",
      "label",
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
    Extent m, p;
    const coarsen_label<> body{
        call.contiguous<const i64>(0, m),
        call.contiguous<const i64>(1, p),
        call.contiguous<i64>(2, m),
    };
    call.submit(m * 1, Map<coarsen_label<>, coarsen_label_entry>(body, m, 1));
    return none_object();
  }
};

// unknown_i = label_(i / size): the aggregate of each unknown of nodes of size unknowns
struct coarsen_unknowns_entry {
  static constexpr const char* operation = "coarsen.unknowns";
  static constexpr const char* symbol = "coarsen_unknowns";
  static constexpr const char* names[] = {
      "label",
      "size",
      "unknown",
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
    Extent b, m;
    const coarsen_unknowns<> body{
        call.contiguous<const i64>(0, b),
        call.scalar<i64>(1),
        call.contiguous<i64>(2, m),
    };
    call.submit(m * 1, Map<coarsen_unknowns<>, coarsen_unknowns_entry>(body, m, 1));
    return none_object();
  }
};

// lengths_i = columns where label_i >= 0, else 0; total = their sum
struct coarsen_count_basis_entry {
  static constexpr const char* operation = "coarsen.count_basis";
  static constexpr const char* symbol = "coarsen_count_basis";
  static constexpr const char* names[] = {
      "label",
      "columns",
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
      with_index_type(call, names[3], call.array(3), [&](auto index) {
        using I = decltype(index);
        Extent m, w, of_1{1};
        const coarsen_count_basis<T, I> body{
            call.contiguous<const i64>(0, m),
            call.scalar<i64>(1),
            call.contiguous<const T>(2, w),
            call.contiguous<I>(3, m),
            call.contiguous<i64>(4, of_1),
        };
        call.submit(m * 1, Map<coarsen_count_basis<T, I>, coarsen_count_basis_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// row i of the new matrix has values_(i columns + j) at label_i columns + j
struct coarsen_basis_entry {
  static constexpr const char* operation = "coarsen.basis";
  static constexpr const char* symbol = "coarsen_basis";
  static constexpr const char* names[] = {
      "label",
      "columns",
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
    with_value_type(call, names[2], call.array(2), [&](auto value) {
      using T = decltype(value);
      with_index_type(call, names[3], call.array(3), [&](auto index) {
        using I = decltype(index);
        Extent m, w, p, v;
        const coarsen_basis<T, I> body{
            call.contiguous<const i64>(0, m),
            call.scalar<i64>(1),
            call.contiguous<const T>(2, w),
            call.contiguous<const I>(3, p),
            call.contiguous<I>(4, v),
            call.contiguous<T>(5, v),
        };
        call.submit(m * 1, Map<coarsen_basis<T, I>, coarsen_basis_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

// Gram-Schmidt in the rows of given of the nodes members[begin_i:end_i], each of size rows of length columns: basis there = Q, coarse (columns x columns) of aggregate i = R; columns that depend on those before are 0
struct coarsen_orthonormalize_entry {
  static constexpr const char* operation = "coarsen.orthonormalize";
  static constexpr const char* symbol = "coarsen_orthonormalize";
  static constexpr const char* names[] = {
      "begin",
      "end",
      "members",
      "size",
      "columns",
      "given",
      "basis",
      "coarse",
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
        Extent m, z, w, y;
        const coarsen_orthonormalize<T, I> body{
            call.contiguous<const I>(0, m),
            call.contiguous<const I>(1, m),
            call.contiguous<const I>(2, z),
            call.scalar<i64>(3),
            call.scalar<i64>(4),
            call.contiguous<const T>(5, w),
            call.contiguous<T>(6, w),
            call.contiguous<T>(7, y),
        };
        call.submit(m * 1, Map<coarsen_orthonormalize<T, I>, coarsen_orthonormalize_entry>(body, m, 1));
      });
    });
    return none_object();
  }
};

} // namespace

void add_coarsen_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method<coarsen_absolute_sums_entry>("coarsen_absolute_sums", nullptr),
      method<coarsen_invert_sums_entry>("coarsen_invert_sums", nullptr),
      method<coarsen_radius_entry>("coarsen_radius", nullptr),
      method<coarsen_balanced_entry>("coarsen_balanced", nullptr),
      method<coarsen_start_entry>("coarsen_start", nullptr),
      method<coarsen_power_entry>("coarsen_power", nullptr),
      method<coarsen_count_strong_entry>("coarsen_count_strong", nullptr),
      method<coarsen_strong_entry>("coarsen_strong", nullptr),
      method<coarsen_count_coupled_entry>("coarsen_count_coupled", nullptr),
      method<coarsen_coupled_entry>("coarsen_coupled", nullptr),
      method<coarsen_count_nodes_entry>("coarsen_count_nodes", nullptr),
      method<coarsen_nodes_entry>("coarsen_nodes", nullptr),
      method<coarsen_rank_entry>("coarsen_rank", nullptr),
      method<coarsen_select_entry>("coarsen_select", nullptr),
      method<coarsen_reject_entry>("coarsen_reject", nullptr),
      method<coarsen_chosen_entry>("coarsen_chosen", nullptr),
      method<coarsen_count_nearest_entry>("coarsen_count_nearest", nullptr),
      method<coarsen_nearest_entry>("coarsen_nearest", nullptr),
      method<coarsen_count_weights_entry>("coarsen_count_weights", nullptr),
      method<coarsen_weights_entry>("coarsen_weights", nullptr),
      method<coarsen_count_largest_entry>("coarsen_count_largest", nullptr),
      method<coarsen_largest_entry>("coarsen_largest", nullptr),
      method<coarsen_spread_entry>("coarsen_spread", nullptr),
      method<coarsen_decide_entry>("coarsen_decide", nullptr),
      method<coarsen_join_entry>("coarsen_join", nullptr),
      method<coarsen_open_keys_entry>("coarsen_open_keys", nullptr),
      method<coarsen_roots_entry>("coarsen_roots", nullptr),
      method<coarsen_label_entry>("coarsen_label", nullptr),
      method<coarsen_unknowns_entry>("coarsen_unknowns", nullptr),
      method<coarsen_count_basis_entry>("coarsen_count_basis", nullptr),
      method<coarsen_basis_entry>("coarsen_basis", nullptr),
      method<coarsen_orthonormalize_entry>("coarsen_orthonormalize", nullptr),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
