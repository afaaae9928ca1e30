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

from wollemi.backends.simt import kernels as simt
from wollemi.backends.unified import wrappers

HERE = Path(__file__).parent
BUILT = HERE.parents[2] / "build" / "lockstep"
# -O0 because places in the text are told apart by their addresses; see lockstep.hpp.
FLAGS = (
    "-O0",
    "-std=c++17",
    "-shared",
    "-fPIC",
    "-Wall",
    "-Werror",
    "-Wno-unknown-pragmas",  # unroll
    f"-I{HERE}",
    '-DWL_LOCKSTEP_HEADER="lockstep.hpp"',
)


class WaveError(AssertionError):
    """The emulated wave did what no GPU would forgive."""


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
        What its file is called.
    """

    def __init__(self, source: str, name: str) -> None:
        self.name = name
        self._library = ctypes.CDLL(str(built(source, name, HERE / "lockstep.hpp", FLAGS)))
        self._library.lockstep_error.restype = ctypes.c_char_p

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
            The order of what has no order: bit 0 reverses lanes, 1 waves, 2 blocks.

        Raises
        ------
        WaveError
            If lanes did not meet where they have to.
        """
        self._library.lockstep_schedule(schedule)
        getattr(self._library, symbol)(ctypes.c_int(blocks), *arguments)
        error = self._library.lockstep_error().decode()
        if error:
            raise WaveError(f"{symbol} in {self.name}, schedule {schedule}: {error}")


def built(source: str, name: str, header: Path, flags: Sequence[str]) -> Path:
    """Return the library of a source, made by whichever process needs it first.

    Parameters
    ----------
    source : str
        The whole program.
    name : str
        What its file is called.
    header : Path
        What the program includes and does not hold.
    flags : sequence of str
        Of the compiler.
    """
    command = [str(compiler()), *flags]
    if "clang" not in command[0]:
        # Else g++ makes what is static in an inline function one for all libraries of a process:
        # the memory that a block shares, which has another size in each of them.
        command.append("-fno-gnu-unique")
    text = "\0".join([source, header.read_text(encoding="utf-8"), *command, _version()])
    BUILT.mkdir(parents=True, exist_ok=True)
    stem = BUILT / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    library = stem.with_suffix(".so")
    with stem.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            cpp = stem.with_suffix(".cpp")
            cpp.write_text(source, encoding="utf-8")
            unfinished = stem.with_suffix(".part")
            command += [str(cpp), "-o", str(unfinished)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise AssertionError(f"{' '.join(command)}\n{done.stderr[:4000]}")
            unfinished.rename(library)
    return library


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
    headers = ["map_simt.hpp", *(f"{group}.hpp" for group in groups)]
    source = wrappers.program("LOCKSTEP", headers, texts, warp=warp)
    return Library(source, f"maps-{value}-{warp}")


@cache
def simt_library(block: int, value: str, index: str, warp: int) -> Library:
    """Return all kernels of ``backends/simt`` with blocks of one size, for these dtypes."""
    kernels = [kernel for kernel in simt.simt_kernels() if kernel.block == block]
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
    """Return a kernel whose declaration lists no constants, for some of them."""
    text = wrappers.simt_wrapper(kernel, value, index, **constants)
    source = wrappers.program("LOCKSTEP", [kernel.header], [text], warp=warp, block=kernel.block)
    return Library(source, f"{kernel.symbol(value, index, **constants)}-{warp}")
