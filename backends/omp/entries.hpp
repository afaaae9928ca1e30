// Functions by which a file adds its entries to the module.
#pragma once

#include "omp/call.hpp"

namespace wl {

template <class... Entries>
void add_entries(PyObject* module) {
  static PyMethodDef methods[] = {method<Entries>()..., {nullptr, nullptr, 0, nullptr}};
  add_methods(module, methods);
}

} // namespace wl
