// Objects of C++ that Python holds, each in a capsule with the name of its kind.
#pragma once

#include <memory>
#include <utility>

#include "omp/call.hpp"

namespace wl {

// A capsule that owns a share of the object. The name is not copied.
template <class T>
Object capsule_of(const char* name, std::shared_ptr<T> object) {
  using Held = std::shared_ptr<T>;
  auto held = std::make_unique<Held>(std::move(object));
  PyObject* const capsule = PyCapsule_New(held.get(), name, [](PyObject* self) {
    delete static_cast<Held*>(PyCapsule_GetPointer(self, PyCapsule_GetName(self)));
  });
  if (capsule == nullptr)
    throw_python_error();
  held.release();
  return Object::steal(capsule);
}

// The object that a capsule of that name shares.
template <class T>
const std::shared_ptr<T>& held_in(const char* name, PyObject* capsule) {
  void* const held = PyCapsule_GetPointer(capsule, name);
  if (held == nullptr)
    throw_python_error();
  return *static_cast<const std::shared_ptr<T>*>(held);
}

} // namespace wl
