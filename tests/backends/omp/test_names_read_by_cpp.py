"""The names of Python's attributes that C++ reads exist: a rename would fail at run time only."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.omp.batch import SystemArrays
from wollemi.backends.omp.interleaved import LaneArray, Lanes
from wollemi.core.batch.systems import MemberPrograms
from wollemi.core.status import Status

OMP = Path(__file__).parents[3] / "backends" / "omp"


def matrix(format: str) -> Any:
    return wl.Csr(np.eye(2), executor="omp").asformat(format)


def rows() -> list[Any]:
    return [matrix("csr")]


def planned() -> list[Any]:
    A = matrix("csr")
    return [A, A.plan, A.dtype]


def formats() -> list[Any]:
    return [matrix(format) for format in ("coo", "ell", "sellp", "bsr", "dense")]


def function() -> list[Any]:
    return [wl.LinearOperator((2, 2), lambda x: x, executor="omp")]


def of_modules() -> list[Any]:
    return [wl.executor("omp"), MemberPrograms, SystemArrays, LaneArray, Lanes, Status]


#: The objects that the functions of each file read.
READ: dict[str, Callable[[], list[Any]]] = {
    "call.cpp": lambda: [Status],
    "csr.cpp": planned,
    "csr_arrays.hpp": rows,
    "ffi_products.cpp": rows,
    "formats.cpp": formats,
    "function.cpp": function,
    "interruption.cpp": lambda: [threading.current_thread()],
    "batched_operands.hpp": rows,
    "module.cpp": of_modules,
    "spmv_operands.hpp": rows,
    "structure.cpp": lambda: [matrix("coo")],
}


def names_in(file: str) -> set[str]:
    """Return the names of attributes that a file reads from objects of Python."""
    text = (OMP / file).read_text(encoding="utf-8")
    found = set(re.findall(r'\.attr\("(\w+)"\)|data_of<[^;]*?>\(\w+, "(\w+)"\)', text))
    constants = re.findall(r"static const Name ([^;]*);", text)
    return {a or b for a, b in found} | {n for c in constants for n in re.findall(r'"(\w+)"', c)}


def has(thing: Any, name: str) -> bool:
    """Return whether an object, or every object of a class, has an attribute."""
    kind = thing if isinstance(thing, type) else type(thing)
    declared = {n for base in kind.__mro__ for n in getattr(base, "__annotations__", {})}
    return hasattr(thing, name) or name in declared


def test_the_files_that_read_names_are_listed() -> None:
    reading = {file.name for file in OMP.glob("*.?pp") if names_in(file.name)}
    assert reading == set(READ)


@pytest.mark.parametrize("file", READ)
def test_objects_have_the_names_that_cpp_reads(file: str) -> None:
    objects = READ[file]()
    missing = [n for n in sorted(names_in(file)) if not any(has(o, n) for o in objects)]
    assert not missing, f"backends/omp/{file} reads names that no object has: {missing}"
