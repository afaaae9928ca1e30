#include "omp/tape.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>

namespace wl {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::duration<double> kBetweenSignalChecks(0.05);

// Reading the clock costs 25 ns, which a small iteration would notice: it is read after a number of
// iterations that follows their speed.
class SignalCheck {
public:
  void after_iteration() {
    if (++since_ < stride_)
      return;
    const std::chrono::duration<double> elapsed = Clock::now() - last_;
    if (elapsed < kBetweenSignalChecks) {
      stride_ += std::max<i64>(1, stride_ / 4);
      return;
    }
    stride_ = std::max<i64>(1, since_ / 4);
    since_ = 0;
    released_.reset();
    if (PyErr_CheckSignals() != 0)
      throw_python_error();
    released_.emplace();
    last_ = Clock::now();
  }

private:
  std::optional<ReleasedGil> released_{std::in_place};
  Clock::time_point last_ = Clock::now();
  i64 since_ = 0, stride_ = 1;
};

class Recording {
public:
  explicit Recording(Tape* tape) {
    if (recording() != nullptr)
      throw std::runtime_error("a tape is being recorded already");
    recording() = tape;
  }
  ~Recording() { recording() = nullptr; }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
};

} // namespace

void Tape::record(PyObject* body) {
  const Recording on(this);
  const Object nothing = Object::steal(PyObject_CallNoArgs(body));
  if (nothing.get() == nullptr)
    throw_python_error();
}

void Tape::append_call(PyObject* function, PyObject* arguments) {
  const auto call = [function, arguments](int) {
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyObject* const result = PyObject_CallObject(function, arguments);
    Py_XDECREF(result);
    PyGILState_Release(gil);
    if (result == nullptr)
      throw_python_error(); // its indicator stays with this thread
  };
  append(Work(&call, work_kind<std::remove_const_t<decltype(call)>>),
         {Object::borrow(function), Object::borrow(arguments)});
}

i64 Tape::run(const i32* running, i64 limit) const {
  const int threads = context_->threads();
  SignalCheck signals; // holds the GIL released
  const Interruption interruption;
  i64 done = 0;
  for (; done < limit && *static_cast<const volatile i32*>(running) != 0; ++done) {
    for (const Work& step : steps_) {
      step(threads);
      interruption.end(); // the next step may call Python
    }
    signals.after_iteration();
  }
  return done;
}

i64 Tape::replay(const i32* running, i64 limit) const {
  i64 done = 0;
  for (; done < limit && *static_cast<const volatile i32*>(running) != 0; ++done)
    replay_once();
  return done;
}

void Tape::replay_once() const {
  const int threads = context_->threads();
  for (const Work& step : steps_)
    step(threads);
}

} // namespace wl
