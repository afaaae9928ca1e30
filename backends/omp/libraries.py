"""Compile functors of other packages for this machine's cores, at the first call.

The build of wollemi compiles its own functors. The functor of another package becomes a shared
library with the same launcher (``map.hpp``): the machine's C++ compiler builds it once per dtype
and stores it in the user's cache. The library has no threads of its own. It receives the address of
the native module's parallel loop, and so uses its threads and tapes.
"""

from __future__ import annotations

import ctypes
import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.cache import CodeCache
from ...core.dtypes import name_of
from ...core.errors import ExecutorUnavailable, KernelCompileError
from ...core.kernel_text import without_comments
from ...core.operation import Operation, Parameter
from ..cpu.compiler import find_compiler
from ..unified import program_text, wrappers
from ..unified.functors import strides
from ..unified.places import dtypes, places
from .level import level, native

if TYPE_CHECKING:
    from ...core.executor import Array, Executor

#: Cache of the libraries that this machine's compiler has built.
LIBRARIES = CodeCache("omp", ".so")

#: Compiler options. Without -ffast-math: NaN, infinity and the order of a sum are significant.
OPTIONS = (
    "-std=c++17", "-O3", "-fPIC", "-shared", "-fopenmp-simd", "-fno-math-errno",
    "-ffp-contract=fast", "-fvisibility=hidden",
)  # fmt: skip
#: Options per level, as in CMakeLists.txt.
LEVEL_OPTIONS = {
    "v2": ("-march=x86-64-v2",),
    "v3": ("-march=x86-64-v3",),
    "v4": ("-march=x86-64-v4", "-mprefer-vector-width=512"),
}

#: Codes of dtypes in the text of programs, by the dtypes' names.
CODES = {np.dtype(code).name: code for code in (*wrappers.VALUE_TYPES, *wrappers.INDEX_TYPES)}
_INTEGERS = ("i32", "i64", "int", "u8")
_REALS = {"f4": "float", "f8": "double", "c8": "float", "c16": "double"}


def visit(
    executor: Executor, operation: Operation, slots: Array, arguments: tuple[Any, ...]
) -> None:
    """Visit all elements, and store the sums of each column in slots."""
    function = function_for(operation, arguments)
    native().run_library_visiting(executor, function, *arguments, slots)


def finish(
    executor: Executor, operation: Operation, slots: Array, arguments: tuple[Any, ...]
) -> None:
    """Finish every column with the sums in the slots."""
    function = function_for(operation, arguments)
    native().run_library_finishing(executor, function, *arguments, slots)


def function_for(operation: Operation, arguments: tuple[Any, ...]) -> Any:
    """Return the native function of an operation for the dtypes of a call's arguments."""
    value, index = dtypes(operation, arguments)
    return _function(operation, CODES[name_of(value)], CODES[name_of(index)])


@cache
def _function(operation: Operation, value: str, index: str) -> Any:
    library = compiled(operation, value, index)
    begin, function = (
        ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        for name in ("wl_begin", wrappers.map_symbol(operation, value, index))
    )
    names = " ".join(p.name for p in operation.parameters)
    text = ";".join(
        [
            ",".join(_reading(p, value, index) for p in operation.parameters),
            *(_extent(place) for place in places(operation).over),
            str(np.dtype(value).itemsize // (2 if value[0] == "c" else 1)),
        ]
    )
    return native().library_function(operation.name, names, text, begin, function)


def compile_functor(operation: Operation, value: str, index: str) -> ctypes.CDLL:
    """Compile the functor of an operation; ``value`` and ``index`` are names of dtypes."""
    return compiled(operation, CODES[value], CODES[index])


def compiled(operation: Operation, value: str, index: str = "i4") -> ctypes.CDLL:
    """Return the library of an operation for the given dtypes; build it if the cache lacks it.

    Parameters
    ----------
    operation : Operation
        An operation with a functor.
    value, index : str
        Codes of the dtypes: ``f8``, ``i4``.

    Raises
    ------
    ExecutorUnavailable
        If there is no C++ compiler, or if the library cannot be written or loaded.
    KernelCompileError
        If compilation fails; the message contains the compiler's log.
    """
    source = program(operation, value, index)
    options = (*OPTIONS, *LEVEL_OPTIONS.get(level(), ()))
    key = "\0".join([without_comments(source), *options, platform.machine(), platform.system()])
    try:
        return LIBRARIES.load_library(
            key, lambda folder: _build(operation, source, options, folder)
        )
    except OSError as error:
        raise ExecutorUnavailable(
            f"the kernel of {operation.name} could not be written, or does not load ({error}); "
            "set WOLLEMI_CACHE_DIR to a folder in which programs may run"
        ) from error


def _build(operation: Operation, source: str, options: tuple[str, ...], folder: Path) -> Path:
    compiler = find_compiler(f"the kernel of {operation.name} for CPUs")
    text, result = folder / "functor.cpp", folder / "functor.so"
    text.write_text(source, encoding="utf-8")
    command = [compiler, *options, str(text), "-o", str(result)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise KernelCompileError(
            f"{operation.name} does not compile for CPUs with {compiler}:\n{done.stderr[-4000:]}"
        )
    return result


def program(operation: Operation, value: str, index: str = "i4") -> str:
    """Return the source text of the library of an operation for the given dtypes."""
    headers, functor = wrappers.functors_of([operation])
    symbol = wrappers.map_symbol(operation, value, index)
    kind = wrappers.functor(operation, value, index)
    members = ", ".join(_member(at, p, value, index) for at, p in enumerate(operation.parameters))
    return (
        "#include <cstddef>\n#include <algorithm>\n#include <memory>\n#include <atomic>\n"
        + program_text.flatten("omp/map.hpp", "omp/library.hpp", *headers)
        + functor
        + f'#line 1 "library of {operation.name}"\n'
        + _BEGIN
        + _strides(operation, symbol)
        + f'extern "C" __attribute__((visibility("default"))) void {symbol}(\n'
        "    const wl::LibraryCall* call, int threads) {\n"
        "  const wl::LibraryValue* const v = call->values;\n"
        f"  const {kind} functor{{{members}}};\n"
        f"  wl::Map<{kind}, {symbol}_strides>(\n"
        "      functor, call->rows, call->columns, call->slots)(threads);\n"
        "  (void)v;\n}\n"
    )


#: The beginning of a library. It knows the native module's loop only by its address.
_BEGIN = """
namespace wl {
static void (*loop_of_module)(const Loop&);
void run_parts(const Loop& loop) { loop_of_module(loop); }
}
extern "C" __attribute__((visibility("default"))) void wl_begin(void (*loop)(const wl::Loop&)) {
  wl::loop_of_module = loop;
}
"""


def _strides(operation: Operation, symbol: str) -> str:
    """Return the text that describes row strides and halves to the launcher."""
    assert operation.over is not None
    blocks = any(p.is_block for p in operation.parameters)
    one = str(operation.over[1] == "1" and not blocks).lower()
    halves = str(operation.adds_up).lower()
    return strides(
        operation,
        symbol,
        f"static constexpr bool one_column = {one};",
        f"static constexpr bool has_halves = {halves};",
    )


def _member(at: int, parameter: Parameter, value: str, index: str) -> str:
    """Return the expression that converts an argument of a call to a member of the functor."""
    of = f"v[{at}]"
    if parameter.is_status:
        return f"wl::typed_status<{wrappers.VALUE_TYPES[value]}>(call->status)"
    kind = wrappers.element_type(parameter, value, index)
    if parameter.is_scalar:
        if parameter.kind == "T" and value[0] == "c":
            real = _REALS[value]
            return f"{kind}{{{real}({of}.re), {real}({of}.im)}}"
        return f"{kind}({of}.{'whole' if parameter.kind in _INTEGERS else 're'})"
    constness = "const " if parameter.intent == "in" else ""
    pointer = f"static_cast<{constness}{kind}*>({of}.data)"
    return f"{{{pointer}, {of}.ld}}" if parameter.is_block else pointer


def _reading(parameter: Parameter, value: str, index: str) -> str:
    """Return the words that tell the native module how to read an argument."""
    if parameter.is_status:
        return "status 0"
    if parameter.is_scalar:
        if parameter.kind in _INTEGERS:
            return "integer 0"
        return "complex 0" if parameter.kind == "T" and value[0] == "c" else "real 0"
    size = wrappers.element_bytes(parameter, value, index)
    return f"{'block' if parameter.is_block else 'array'} {size}"


def _extent(place: tuple[int, int] | int) -> str:
    return f"-1 {place}" if isinstance(place, int) else f"{place[0]} {place[1]}"
