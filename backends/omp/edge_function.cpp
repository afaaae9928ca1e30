// The entries of csr.fusedmm_traced, mask.fusedmm_traced and csr.edge_function.
#include "omp/edge_program.hpp"
#include "omp/fusedmm.hpp"
#include "omp/batched_operands.hpp"
#include "omp/entries.hpp"

namespace wl {

namespace {

// The inputs of a program in all blocks of a batch.
template <class T>
struct EdgeInputs {
  Batch<const T> rows{nullptr, 0, 0}, columns{nullptr, 0, 0}, entries{nullptr, 0, 0};

  EdgeProgram<T> of_block(const EdgeProgramText& text, i64 b) const {
    const auto block = [b](const Batch<const T>& all) {
      return all.data ? all[b] : mat<const T>{nullptr, 0};
    };
    return {text, block(rows), block(columns), block(entries)};
  }
};

// Reads inputs of which the program has `asked`.
template <class T>
Batch<const T> inputs_at(const Call& call, int at, Extent& count, i64 asked, Extent length) {
  Extent kinds{asked};
  if (asked > 0 && call.argument(at) == Py_None)
    call.fail(call.name(at), "the function needs " + std::to_string(asked) + ", got None");
  if (asked == 0)
    return {nullptr, 0, 0};
  return BatchReader(call).optional_blocks<const T>(at, count, kinds, length);
}

std::shared_ptr<const EdgeProgramText> program_at(const Call& call, int at) {
  return EdgeProgramText::parse(call.text(at));
}

// A product of every block.
template <class S, class Pattern>
struct TracedWork {
  using T = computed_t<S>;
  i64 m, n, nnz, blocks, inner, columns;
  Pattern pattern;
  Batch<const S> values, C, B, D;
  Batch<S> E;
  Batch<T> log_totals;
  T alpha;
  std::shared_ptr<const EdgeProgramText> text;
  EdgeInputs<T> inputs;
  std::shared_ptr<const PatternPlan> plan;

  void operator()(int threads) const {
    const bool same_operand =
        B.data == D.data && B.step == D.step && B.ld == D.ld && inner == columns;
    const Edge edge = text->is_softmax ? Edge::softmax : Edge::identity;
    for (i64 i = 0; i < blocks; ++i) {
      const S* const given = values.data ? values[i].data : nullptr;
      T* const totals = log_totals.data ? log_totals[i].data : nullptr;
      const EdgeProgram<T> function = inputs.of_block(*text, i);
      const Fusedmm<S, Pattern> o{
          m,    n,    inner,  columns, pattern, given,        C[i],       B[i],
          D[i], E[i], totals, alpha,   edge,    same_operand, plan.get(), &function};
      fusedmm(o, threads_for(nnz, inner + columns, threads));
    }
  }
};

struct traced_entry {
  static constexpr const char* operation = "csr.fusedmm_traced";
  static constexpr const char* symbol = "fusedmm_traced";
  static constexpr const char* names[] = {"A",       "values",     "C",          "B", "D",
                                          "of_rows", "of_columns", "of_entries", "E", "log_totals",
                                          "alpha",   "function",   "plan"};
  static Object run(const Call& call) {
    const BatchReader read(call);
    const auto text = program_at(call, 11);
    with_real_pattern(call, 2, [&](auto value, auto A) {
      using S = decltype(value);
      using T = computed_t<S>;
      Extent count, m{A.m}, n{A.n}, k, p;
      const Batch<const S> C = read.blocks<const S>(2, count, m, k);
      const Batch<const S> B = read.blocks<const S>(3, count, n, k);
      const Batch<const S> D = read.blocks<const S>(4, count, n, p);
      const EdgeInputs<T> inputs{inputs_at<T>(call, 5, count, text->rows, m),
                                 inputs_at<T>(call, 6, count, text->columns, n),
                                 inputs_at<T>(call, 7, count, text->entries, Extent{A.nnz})};
      const Batch<S> E = read.blocks<S>(8, count, m, p);
      const Batch<const S> values = read.optional_values<const S>(1, count, A.nnz);
      const Batch<T> log_totals = read.optional_values<T>(9, count, A.m);
      const TracedWork<S, Listed<typename decltype(A)::Index>> work{A.m,
                                                                    A.n,
                                                                    A.nnz,
                                                                    count,
                                                                    k,
                                                                    p,
                                                                    {A.indptr, A.indices},
                                                                    values,
                                                                    C,
                                                                    B,
                                                                    D,
                                                                    E,
                                                                    log_totals,
                                                                    call.scalar<T>(10),
                                                                    text,
                                                                    inputs,
                                                                    A.plan(call, 12)};
      call.submit(A.nnz * (k + p + 1) * count, [work](int threads) { work(threads); });
    });
    return none_object();
  }
};

struct mask_traced_entry {
  static constexpr const char* operation = "mask.fusedmm_traced";
  static constexpr const char* symbol = "mask_traced";
  static constexpr const char* names[] = {"ptr",        "first",   "C",          "B",
                                          "D",          "of_rows", "of_columns", "E",
                                          "log_totals", "alpha",   "function",   "plan"};
  static Object run(const Call& call) {
    const BatchReader read(call);
    const auto text = program_at(call, 10);
    with_real_type(call, "C", call.array(2), [&](auto value) {
      with_index_type(call, "first", call.array(1), [&](auto index) {
        using S = decltype(value);
        using I = decltype(index);
        using T = computed_t<S>;
        Extent starts;
        const i64* const ptr = call.contiguous<const i64>(0, starts);
        Extent count, m{starts - 1}, n, k, p;
        const i64 nnz = ptr[m];
        if (text->entries > 0)
          call.fail("function", "a mask lists no entries, and it reads numbers of them");
        const Intervals<I> pattern{ptr, call.contiguous<const I>(1, m)};
        const Batch<const S> C = read.blocks<const S>(2, count, m, k);
        const Batch<const S> B = read.blocks<const S>(3, count, n, k);
        const Batch<const S> D = read.blocks<const S>(4, count, n, p);
        const EdgeInputs<T> inputs{inputs_at<T>(call, 5, count, text->rows, m),
                                   inputs_at<T>(call, 6, count, text->columns, n)};
        const Batch<S> E = read.blocks<S>(7, count, m, p);
        const Batch<T> log_totals = read.optional_values<T>(8, count, m);
        const TracedWork<S, Intervals<I>> work{m,
                                               n,
                                               nnz,
                                               count,
                                               k,
                                               p,
                                               pattern,
                                               {nullptr, 0, 0},
                                               C,
                                               B,
                                               D,
                                               E,
                                               log_totals,
                                               call.scalar<T>(9),
                                               text,
                                               inputs,
                                               plan_at(call, 11, m, nnz)};
        call.submit(nnz * (k + p + 1) * count, [work](int threads) { work(threads); });
      });
    });
    return none_object();
  }
};

// The outputs of a program for stored scores.
template <class S, class I>
struct EdgeFunctionWork {
  using T = computed_t<S>;
  PatternArrays<I> A;
  i64 blocks;
  Batch<const S> scores;
  Batch<S> results;
  std::shared_ptr<const EdgeProgramText> text;
  EdgeInputs<T> inputs;
  std::shared_ptr<const PatternPlan> plan;

  void operator()(int threads) const {
    const int used = threads_for(A.nnz, i64(text->instructions.size()), threads);
    for (i64 b = 0; b < blocks; ++b) {
      const EdgeProgram<T> function = inputs.of_block(*text, b);
      const S* const given = scores[b].data;
      const mat<S> made = results[b];
      plan->for_parts(used, [&](const Part& part) {
        T* const memory = workspace<T>(6, function.registers());
        const auto run = [&](i64 row, i64 begin, i64 end) {
          for (i64 from = begin; from < end; from += kProgramChunk) {
            const i64 count = std::min(kProgramChunk, end - from);
            T s[kProgramChunk];
            for (i64 e = 0; e < count; ++e)
              s[e] = widen(given[from + e]);
            function.run(memory, row, A.indices + from, from, count, s);
            for (i64 output = 0; output < function.outputs(); ++output) {
              const T* const numbers = function.output(memory, output);
              for (i64 e = 0; e < count; ++e)
                narrow(numbers[e], made(output, from + e));
            }
          }
        };
        if (part.slot >= 0) {
          run(part.first, part.begin, part.end);
          return;
        }
        for (i64 row = part.first; row < part.last; ++row)
          run(row, A.indptr[row], A.indptr[row + 1]);
      });
    }
  }
};

struct edge_function_entry {
  static constexpr const char* operation = "csr.edge_function";
  static constexpr const char* symbol = "edge_function";
  static constexpr const char* names[] = {"A",          "S", "of_rows",  "of_columns",
                                          "of_entries", "F", "function", "plan"};
  static Object run(const Call& call) {
    const BatchReader read(call);
    const auto text = program_at(call, 6);
    with_real_pattern(call, 1, [&](auto value, auto A) {
      using S = decltype(value);
      using T = computed_t<S>;
      Extent count, outputs{i64(text->outputs.size())}, entries{A.nnz};
      const Batch<const S> scores = read.values<const S>(1, count, entries);
      const EdgeInputs<T> inputs{inputs_at<T>(call, 2, count, text->rows, Extent{A.m}),
                                 inputs_at<T>(call, 3, count, text->columns, Extent{A.n}),
                                 inputs_at<T>(call, 4, count, text->entries, entries)};
      const Batch<S> results = read.blocks<S>(5, count, outputs, entries);
      const EdgeFunctionWork<S, typename decltype(A)::Index> work{
          A, count, scores, results, text, inputs, A.plan(call, 7)};
      call.submit(A.nnz * i64(text->instructions.size()) * count,
                  [work](int threads) { work(threads); });
    });
    return none_object();
  }
};

} // namespace

void add_edge_function_entries(PyObject* module) {
  add_entries<traced_entry, mask_traced_entry, edge_function_entry>(module);
}

} // namespace wl
