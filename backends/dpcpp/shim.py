"""The C++ part of this backend: built at the first use, then loaded.

dpctl cannot compile SYCL C++ at run time and has Python's overhead for every launch. ``shim.cpp``
can compile, in a hundred lines over the SYCL headers. A wheel cannot contain it, because it must
match the installed runtime. The machine's own C++ compiler therefore builds it once per runtime
version, into the user's cache.
"""

from __future__ import annotations

import ctypes
import platform
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ...core.cache import CodeCache
from ...core.errors import DeviceError, ExecutorUnavailable, KernelCompileError, OutOfDeviceMemory
from ...core.kernel_text import without_comments
from ..cpu.compiler import find_compiler
from . import program_cache, runtime

SOURCE = Path(__file__).with_name("shim.cpp")

#: The headers of wollemi that ``shim.cpp`` includes.
HEADERS = (
    Path(__file__).parents[1] / "cpu" / "find_patterns.hpp",
    Path(__file__).with_name("opencl_programs.hpp"),
)

#: The purpose of the compiled library, for messages.
PURPOSE = "the link between Python and SYCL"

_OUT_OF_MEMORY = 2

_SIGNATURES: dict[str, tuple[object, Sequence[object]]] = {
    "wl_error": (ctypes.c_char_p, []),
    "wl_place": (ctypes.c_void_p, [ctypes.c_void_p]),
    "wl_queue": (ctypes.c_void_p, [ctypes.c_void_p]),
    "wl_reaches": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p]),
    "wl_build": (
        ctypes.c_void_p,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p), ctypes.c_int],
    ),
    "wl_has_code": (ctypes.c_int, [ctypes.c_void_p]),
    "wl_code_new": (ctypes.c_void_p, [ctypes.c_void_p]),
    "wl_code_size": (ctypes.c_size_t, [ctypes.c_void_p]),
    "wl_code_bytes": (ctypes.c_void_p, [ctypes.c_void_p]),
    "wl_code_free": (None, [ctypes.c_void_p]),
    "wl_load": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]),
    "wl_kernel": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]),
    "wl_launch": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_char_p],
    ),
    "wl_record_new": (ctypes.c_void_p, []),
    "wl_record_free": (None, [ctypes.c_void_p]),
    "wl_record_add": (
        None,
        [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_char_p],
    ),
    "wl_record_run": (
        ctypes.c_int,
        [
            ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int,
            ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
        ],
    ),
    "wl_record_is_graph": (ctypes.c_int, [ctypes.c_void_p]),
    "wl_copy": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t],
    ),
    "wl_gather": (
        ctypes.c_int,
        [
            ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p),
            ctypes.POINTER(ctypes.c_size_t), ctypes.c_int,
        ],
    ),
    "wl_patterns_new": (
        ctypes.c_int,
        [
            ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int,
            ctypes.POINTER(ctypes.c_void_p),
        ],
    ),
    "wl_patterns_sizes": (None, [ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64)]),
    "wl_patterns_take": (None, [ctypes.c_void_p, ctypes.c_void_p]),
    "wl_dlpack_delete": (None, [ctypes.c_void_p]),
    "wl_dlpack_delete_versioned": (None, [ctypes.c_void_p]),
    "wl_dlpack_unused": (None, [ctypes.c_void_p]),
    "wl_wait": (ctypes.c_int, [ctypes.c_void_p]),
}  # fmt: skip


#: Cache of the libraries that this machine's compiler has built.
LIBRARIES = CodeCache("dpcpp", ".so")


@cache
def shim() -> ctypes.CDLL:
    """Return the loaded library; build it if the cache does not contain it.

    Raises
    ------
    ExecutorUnavailable
        If it cannot be built without a compiler or headers; the message says how to install them.
    """
    library, include = runtime.library().resolve(), runtime.headers()
    texts = [without_comments(path.read_text(encoding="utf-8")) for path in (SOURCE, *HEADERS)]
    key = f"{''.join(texts)}{platform.machine()}{runtime.version()}"
    try:
        loaded = LIBRARIES.load_library(key, lambda folder: _build(library, include, folder))
    except OSError as error:
        raise ExecutorUnavailable(
            f"the link between Python and SYCL could not be written, or does not load ({error}); "
            "set WOLLEMI_CACHE_DIR to a folder in which programs may run"
        ) from error
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


def _build(library: Path, include: Path, folder: Path) -> Path:
    """Build the library in a folder and return its path."""
    compiler, result = find_compiler(PURPOSE), folder / "shim.so"
    command = [
        compiler, "-std=c++17", "-O2", "-fPIC", "-shared", "-w", str(SOURCE), f"-I{include}",
        f"-I{SOURCE.parents[1]}", str(library), f"-Wl,-rpath,{library.parent}", "-o", str(result),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ExecutorUnavailable(
            f"{compiler} could not build the link between Python and SYCL; it needs C++17 "
            f"(set CXX to another compiler).\n{' '.join(command)}\n{done.stderr[-4000:]}"
        )
    return result


def check(code: int, label: str) -> None:
    """Raise the error that the shim reported, if any.

    Raises
    ------
    OutOfDeviceMemory, DeviceError
        With SYCL's message.
    """
    if code == 0:
        return
    message = f"{label}: {last_error()}"
    raise OutOfDeviceMemory(message) if code == _OUT_OF_MEMORY else DeviceError(message)


def build_program(place: int, source: str, options: Sequence[str], label: str) -> int:
    """Compile a program for the context of a queue, and return its handle.

    Raises
    ------
    KernelCompileError
        If compilation fails; the message contains the compiler's log.
    """
    array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    program_cache.check()
    handle = shim().wl_build(place, source.encode(), array, len(options))
    if not handle:
        raise KernelCompileError(f"SYCL refused {label}:\n{last_error()}")
    program_cache.keep()
    return int(handle)


def last_error() -> str:
    """Return the last error message."""
    return (shim().wl_error() or b"").decode(errors="replace")


_new_capsule = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", ctypes.pythonapi))


def capsule(pointer: int, name: bytes, destructor: int | None = None) -> Any:
    """Return a Python capsule for a pointer; it does not copy the name, which must stay alive."""
    return _new_capsule(pointer, name, destructor)
