#include <Python.h>

#include "omp/interruption.hpp"

#include <algorithm>
#include <utility>

#include "omp/call.hpp"
#include "omp/crowding.hpp"

namespace wl {

namespace {

constexpr i64 kBetweenLooks = 50'000'000; // nanoseconds

// Reading the clock costs 25 ns, which loops of short pieces would feel.
constexpr i64 kBetweenClocks = 5'000'000;
constexpr int kLongestStride = 16;

std::atomic<unsigned long> main_thread{0};

} // namespace

Belonging& belonging() {
  thread_local Belonging here;
  return here;
}

Interruption::Interruption()
    : on_main_thread_(PyThread_get_thread_ident() == main_thread.load(std::memory_order_relaxed)),
      outer_(belonging().interruption) {
  // A handler's own products are not interrupted: it may be called anywhere in another.
  if (!on_main_thread_ || belonging().handlers > 0)
    return;
  belonging().interruption = this;
  belonging().called_it = true;
}

Interruption::~Interruption() {
  if (belonging().interruption != this)
    return;
  belonging().interruption = outer_;
  belonging().called_it = outer_ != nullptr;
}

void Interruption::look() {
  if (++calls_ < stride_ || has_come())
    return;
  calls_ = 0;
  const i64 now = now_in_ns(), before = std::exchange(clock_, now);
  if (before == 0) {
    last_ = now;
    return;
  }
  stride_ = now - before < kBetweenClocks ? std::min(2 * stride_, kLongestStride) : 1;
  if (now - last_ < kBetweenLooks)
    return;
  Belonging& here = belonging();
  if (here.handlers > 0)
    return;
  ++here.handlers;
  const PyGILState_STATE gil = PyGILState_Ensure();
  if (PyErr_CheckSignals() != 0)
    has_come_.store(true, std::memory_order_relaxed);
  PyGILState_Release(gil);
  --here.handlers;
  last_ = clock_ = now_in_ns();
}

void remember_main_thread() {
  const Object threading = Object::steal(PyImport_ImportModule("threading"));
  if (threading.get() == nullptr)
    throw_python_error();
  const Object thread = Object::steal(PyObject_CallMethod(threading.get(), "main_thread", nullptr));
  if (thread.get() == nullptr)
    throw_python_error();
  static const Name ident("ident");
  const Object number = Call::member(thread.get(), ident);
  main_thread = PyLong_AsUnsignedLong(number.get());
}

void this_is_the_main_thread() { main_thread = PyThread_get_thread_ident(); }

} // namespace wl
