// The instruction-set level of this processor, so that Python loads the matching native module. A
// module of its own, built with baseline flags: it must run on processors that do not have the
// level. Python's own interface is enough for one function, and takes no time to compile.
#include <Python.h>

namespace {

#if defined(__x86_64__)

// Older compilers do not know the levels by name, so these are the members of each level that
// __builtin_cpu_supports names everywhere; it also checks that the operating system saves the wider
// registers.
bool has_v2() { return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt"); }

bool has_v3() {
  return has_v2() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}

bool has_v4() {
  return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

const char* level() {
  __builtin_cpu_init();
  return has_v4() ? "v4" : has_v3() ? "v3" : has_v2() ? "v2" : "generic";
}

#else

const char* level() { return "generic"; }

#endif

PyObject* level_of(PyObject*, PyObject*) { return PyUnicode_FromString(level()); }

PyMethodDef functions[] = {
    {"level", level_of, METH_NOARGS,
     "Highest x86-64 level of this processor: 'v4', 'v3', 'v2', else 'generic'."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    "_cpu",
    "Which native module this processor can run.",
    0,
    functions,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
};

} // namespace

PyMODINIT_FUNC PyInit__cpu() { return PyModule_Create(&module); }
