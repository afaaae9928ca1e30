// The compiled function of a user's operator, called by loops without Python.
#include <vector>

#include "omp/entries.hpp"
#include "omp/spmv_operands.hpp"

namespace wl {

namespace {

using Function = void (*)(const void* x, void* y, i64 n, i64 m, void* data);

// y = alpha f(x) + beta y, column by column: functions take vectors without gaps.
template <class T>
struct ApplyFunction {
  Function function;
  void* data;
  i64 m, n;
  SpmvOperands<T> o;

  void operator()(int) const {
    const bool in_place = o.alpha == T(1) && o.beta == T(0);
    std::vector<T> from, to;
    for (i64 c = 0; c < o.k; ++c) {
      const T* x = o.x.data + c;
      if (o.x.ld != 1 && n > 1) {
        from.resize(n);
        for (i64 i = 0; i < n; ++i)
          from[i] = x[i * o.x.ld];
        x = from.data();
      }
      T* const y = o.y.data + c;
      if (in_place && (o.y.ld == 1 || m < 2)) {
        function(x, y, n, m, data);
        continue;
      }
      to.resize(m);
      function(x, to.data(), n, m, data);
      for (i64 i = 0; i < m; ++i) {
        T& target = y[i * o.y.ld];
        target = o.beta == T(0) ? o.alpha * to[i] : o.alpha * to[i] + o.beta * target;
      }
    }
  }
};

struct function_apply_entry {
  static constexpr const char* operation = "function.apply";
  static constexpr const char* symbol = "function_apply";
  static constexpr auto& names = kSpmvNames;

  static Object run(const Call& call) {
    static const Name address("address"), data("data_address");
    const auto function = reinterpret_cast<Function>(call.integer(call.member(0, address).get()));
    const auto held = reinterpret_cast<void*>(call.integer(call.member(0, data).get()));
    const Shape shape(call, 0);
    with_value_type(call, "x", call.array(1), [&](auto value) {
      using T = decltype(value);
      const SpmvOperands<T> o = spmv_operands<T>(call, shape.m, shape.n);
      call.submit(shape.m * o.k, ApplyFunction<T>{function, held, shape.m, shape.n, o});
    });
    return none_object();
  }
};

} // namespace

void add_function_entries(PyObject* module) { add_entries<function_apply_entry>(module); }

} // namespace wl
