"""Kernels whose warps do different things, as libraries of this machine; see ``machine.hpp``."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

from wollemi.backends.unified.wrappers import FOLDERS, SimtKernel, program, simt_wrapper

from ..lockstep.build import built

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
#: Words are found here before they are found where GPUs are told them.
TEXT = (HERE, *FOLDERS, ROOT / "backends" / "cuda")
FLAGS = (
    "-O2",
    "-std=c++17",
    "-shared",
    "-fPIC",
    "-Wall",
    "-Werror",
    "-Wno-unknown-pragmas",  # unroll
    "-Wno-maybe-uninitialized",  # of what a condition that is the same everywhere sets
    "-U_FORTIFY_SOURCE",  # which knows of no other stack
    f"-I{HERE}",
    '-DWL_LOCKSTEP_HEADER="machine.hpp"',
)


class Stuck(AssertionError):
    """The block did not come to its end."""


@cache
def _library(source: str, name: str) -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(built(source, name, HERE / "machine.hpp", FLAGS)))
    loaded.lockstep_error.restype = ctypes.c_char_p
    return loaded


def run(
    kernel: SimtKernel,
    value: str,
    blocks: int,
    arguments: tuple[object, ...],
    *,
    schedule: int = 0,
    **constants: int,
) -> None:
    """Run a kernel with int32 indices; a schedule of 1 lets fibers take turns the other way round.

    Raises
    ------
    Stuck
        If work-items wait for ever.
    """
    wrapper = simt_wrapper(kernel, value, "i4", **constants)
    source = program("LOCKSTEP", [kernel.header], [wrapper], block=kernel.block, folders=TEXT)
    library = _library(source, kernel.name)
    library.lockstep_schedule(schedule)
    getattr(library, kernel.symbol(value, "i4", **constants))(ctypes.c_int(blocks), *arguments)
    error = library.lockstep_error().decode()
    if error:
        raise Stuck(f"{kernel.name} {constants}, schedule {schedule}: {error}")
