"""Approximate inverses in a batch kernel: their operations, arrays and statements."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...core.operations import isai
from ...core.operations import matrix as products
from .operands import address

if TYPE_CHECKING:
    from ...core.program import Call

HEADER = "simt/one_inverse.hpp"

#: The name of the kernel's scratch array for small systems.
WORK = "work"

#: The arrays of an inversion, in the order of the kernel's parameters.
_ARRAYS = ("rows", "pointers", "columns", "indptr", "indices", "data", WORK, "w", "singular")


def is_inversion(call: Call) -> bool:
    """Return whether an operation computes rows of an approximate inverse."""
    return call.operation is isai.general


def named(call: Call) -> dict[str, Any]:
    """Return the arguments of an operation by parameter name."""
    return {parameter.name: argument for parameter, argument in call.named}


def inverses_of(programs: dict[str, list[Call]]) -> dict[int, Any]:
    """Return the values of the approximate inverses that programs compute, by address."""
    calls = (call for calls in programs.values() for call in calls if is_inversion(call))
    return {address(w): w for w in (named(call)["w"] for call in calls)}


def work_of(call: Call, block: int) -> int:
    """Return the number of scratch elements that a block needs for its small systems."""
    width = int(named(call)["width"])
    return width * (width + 1) * block


def is_product(call: Call) -> bool:
    """Return whether an operation multiplies by a matrix in CSR or block CSR format."""
    return call.operation in (products.csr_spmv, products.bsr_spmv)


def block_size(matrix: Any) -> int:
    """Return the size of the square blocks of a matrix, or 0 if it is stored by rows."""
    return 0 if matrix.format == "csr" else int(matrix.blocksize[0])


def inversion(call: Call, expression: Callable[[str, Any], str]) -> str:
    """Return the C++ statement that computes rows of an approximate inverse.

    Parameters
    ----------
    call : Call
        The operation.
    expression : callable
        Returns the C expression of an argument with a given name and value.
    """
    given = named(call)
    taken = ["it", str(int(given["rows"].size)), str(int(given["width"]))]
    taken += [expression(name, given[name]) for name in _ARRAYS]
    return f"wl::invert_rows({', '.join(taken)});\n"
