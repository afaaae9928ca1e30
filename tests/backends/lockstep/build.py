"""Kernel text to a library of this machine, where a wavefront of fibers runs it."""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from wollemi.backends.simt import kernels as simt
from wollemi.backends.unified import wrappers
from wollemi.core.cache import CodeCache
from wollemi.core.kernel_text import without_comments

from ..compiled import KEPT

HERE = Path(__file__).parent
BUILT = KEPT / "lockstep"
LIBRARIES = CodeCache("lockstep", ".so", folder=BUILT)
#: Where text for GPUs is looked for: words that only a GPU has are found in ``words`` first.
ROOTS = (HERE / "instructions", wrappers.ROOT)
COMMON = ("-std=c++17", "-shared", "-fPIC", "-Wall", "-Werror")
# -O0 because calls in the text are told apart by their addresses; see machine.hpp. Otherwise g++
# shares static variables of inline functions between all libraries of a process: the memory that a
# block shares, which has another size in each of them.
FLAGS = ("-O0", *COMMON, "-Wno-unknown-pragmas", '-DWL_LOCKSTEP_HEADER="machine.hpp"')
OF_GCC = ("-fno-gnu-unique",)
# A fortified longjmp knows of no other stack.
OF_MACHINE = ("-O2", *COMMON, "-U_FORTIFY_SOURCE")


class WaveError(AssertionError):
    """The emulated wave did something that no GPU allows."""


def compiler() -> str | None:
    """Return the path of the C++ compiler, or None."""
    return shutil.which(os.environ.get("CXX", "g++"))


class Library:
    """A compiled program.

    Parameters
    ----------
    source : str
        The whole program, of the dialect ``LOCKSTEP``.
    name : str
        The name of its file.
    """

    def __init__(self, source: str, name: str) -> None:
        self.name = name
        self._machine = machine()
        self._library = ctypes.CDLL(str(_library(source, name)))

    def run(self, symbol: str, blocks: int, *arguments: object, schedule: int = 0) -> None:
        """Run a kernel.

        Parameters
        ----------
        symbol : str
            The kernel.
        blocks : int
            How many blocks.
        arguments
            Values of ctypes.
        schedule : int
            The order of unordered work: bit 0 reverses lanes, 1 waves, 2 blocks. From 8 on, a
            random order of waves and of copies.

        Raises
        ------
        WaveError
            If work-items did not meet where they have to.
        """
        self._machine.lockstep_schedule(schedule)
        getattr(self._library, symbol)(ctypes.c_int(blocks), *arguments)
        error = self._machine.lockstep_error().decode()
        if error:
            raise WaveError(f"{symbol} in {self.name}, schedule {schedule}: {error}")


@cache
def machine() -> ctypes.CDLL:
    """Return the machine that runs programs: one for all of them, and compiled once."""
    found = ctypes.CDLL(str(_machine_path()))
    found.lockstep_error.restype = ctypes.c_char_p
    return found


@cache
def _machine_path() -> Path:
    source = (HERE / "machine.cpp").read_text(encoding="utf-8")
    return _built(source, "machine", OF_MACHINE)


def _library(source: str, name: str) -> Path:
    gcc = () if "clang" in str(compiler()) else OF_GCC
    return _built(source, name, [*FLAGS, *gcc], [str(_machine_path())])


def _built(source: str, name: str, flags: Sequence[str], needs: Sequence[str] = ()) -> Path:
    """Return the library of a source, made by whichever process needs it first."""
    command = [str(compiler()), *flags]
    # The path of this checkout is left out: the included text is a part of the key.
    key = "\0".join((without_comments(source), name, _header(), *command, *needs, _version()))

    def build(folder: Path) -> Path:
        cpp, library = folder / f"{name}.cpp", folder / "built.so"
        cpp.write_text(source, encoding="utf-8")
        asked = [*command, f"-I{HERE}", "-o", str(library), str(cpp), *needs]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(asked)}\n{done.stderr[:4000]}")
        return library

    LIBRARIES.folder()
    lock = BUILT / f"{hashlib.sha256(key.encode()).hexdigest()}.lock"
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        return LIBRARIES.library(key, build)


@cache
def _header() -> str:
    return without_comments((HERE / "machine.hpp").read_text(encoding="utf-8"))


@cache
def _version() -> str:
    command = [str(compiler()), "--version"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@cache
def map_library(value: str, warp: int) -> Library:
    """Return all map operations for a value dtype."""
    groups = wrappers.map_groups()
    texts = [
        wrappers.map_wrapper(operation, value, index)
        for group in groups
        for operation in wrappers.maps_of(group)
        for index in (("i4", "i8") if wrappers.needs_index(operation) else ("i4",))
    ]
    headers, functors = wrappers.functors_of(o for group in groups for o in wrappers.maps_of(group))
    headers = ["unified/map_simt.hpp", *headers]
    source = wrappers.program("LOCKSTEP", headers, [functors, *texts], warp=warp)
    return Library(source, f"maps-{value}-{warp}")


@cache
def functor_library(operation: Any, value: str, index: str, warp: int) -> Library:
    """Return the operation of another package."""
    source = wrappers.map_program("LOCKSTEP", [operation], value, index, warp=warp)
    return Library(source, f"functor-{operation.symbol}-{value}-{warp}")


@cache
def halves_library(operation: Any, value: str, index: str, warp: int) -> Library:
    """Return the two halves of a map operation."""
    source = wrappers.halves_program("LOCKSTEP", operation, value, index, warp=warp)
    return Library(source, f"halves-{operation.symbol}-{value}-{warp}")


@cache
def simt_library(block: int, value: str, index: str, warp: int) -> Library:
    """Return all kernels of ``backends/simt`` with blocks of one size, for these dtypes."""
    kernels = [
        kernel
        for kernel in simt.simt_kernels()
        if kernel.block == block and (kernel.converts or "_" not in value)
    ]
    texts = [
        wrappers.simt_wrapper(kernel, value, index, **constants)
        for kernel in kernels
        for constants in kernel.variants
        if constants.get("W", 1) <= warp  # type: ignore[operator]
    ]
    headers = dict.fromkeys(kernel.header for kernel in kernels)
    source = wrappers.program("LOCKSTEP", headers, texts, warp=warp, block=block)
    return Library(source, f"simt-{block}-{value}-{index}-{warp}")


@cache
def single_library(
    kernel: wrappers.SimtKernel, value: str, index: str, warp: int, **constants: int
) -> Library:
    """Return a kernel with a declaration without constants, for some of them."""
    text = wrappers.simt_wrapper(kernel, value, index, **constants)
    source = wrappers.program("LOCKSTEP", [kernel.header], [text], warp=warp, block=kernel.block)
    return Library(source, f"{kernel.symbol(value, index, **constants)}-{warp}")
