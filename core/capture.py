"""Captures of work by a user: which public calls are recorded, and how others are refused.

A graph (a CUDA graph) records the work that is submitted to a stream and repeats it later, with the
same kernels on the same memory. Work of the host is not in it. A public call that can be recorded
says so by :meth:`Executor.submit`; every other call is refused before it submits anything. Within
such a call, a part that is made once and kept, a plan or a transposed pattern, is refused too: it
would be filled when the graph is replayed, and used before.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from .errors import CaptureRefused

#: The groups of operations, and operations, that make kept data: structures and factors.
PREPARES = frozenset(
    {
        "coarsen", "facts", "ilu", "isai", "ordering", "parilu", "parilut", "rows", "scan",
        "spgemm", "summary", "coo.to_csr", "csr.add", "csr.diagonal", "csr.matmul",
        "csr.matmul_values", "csr.plan", "csr.sort", "csr.sum_duplicates", "csr.transpose",
        "triangular.factorize", "triangular.levels", "triangular.threshold",
    }
)  # fmt: skip

#: Reasons for which calls cannot be recorded.
ALLOCATES = "it allocates memory that a replay would not allocate"
COPIES = "it copies an array"
FROM_HOST = "it copies an array of the host, which a replay would not do"
TO_HOST = "it reads numbers back to the host, which a replay would not do"
MAKES = "it makes a matrix, which a replay would not do"
CHANGES = "it gives new values to copies that products have prepared, which a replay would not do"
SOLVES = (
    "the host decides when a solve ends; made before the capture, solver.recorded(b, out=x) is one "
    "that can be recorded"
)

_LISTED = "docs/machine-learning.md lists the calls that can be recorded (CUDA graphs)"


class _Current(threading.local):
    call: str | None = None


_CURRENT = _Current()


@contextmanager
def recorded_call(name: str) -> Iterator[None]:
    """Have this thread's work be that of a public call that is recorded."""
    _CURRENT.call = name
    try:
        yield
    finally:
        _CURRENT.call = None


def prepares(operation: str) -> bool:
    """Return whether an operation makes kept data.

    Examples
    --------
    >>> prepares("csr.transpose"), prepares("rows.take"), prepares("csr.spmv")
    (True, True, False)
    """
    return operation in PREPARES or operation.partition(".")[0] in PREPARES


def refuse_making(part: str) -> None:
    """Raise CaptureRefused if this thread's work is recorded: ``part`` would be kept unfilled."""
    if _CURRENT.call is not None:
        raise CaptureRefused(
            f"{_CURRENT.call}: the stream is being captured, and the first call makes objects that "
            f"are kept ({part}). Make this call once before the capture, with operands of the same "
            "shapes, dtypes and layouts"
        )


def refused(reason: str) -> CaptureRefused:
    """Return the error of a call that a graph cannot record; the reason is a sentence's end."""
    name = _CURRENT.call or public_call()
    return CaptureRefused(
        f"{name}: the stream is being captured, and {reason}. Make this call before the capture "
        f"and use its result there; {_LISTED}"
    )


def public_call() -> str:
    """Return the name of the call by which the stack entered this package."""
    frame, name = sys._getframe(1), "this call"
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if module.startswith("wollemi."):
            found = frame.f_code.co_qualname
            owner = frame.f_locals.get("self")
            method = frame.f_code.co_name
            if "<locals>" in found and owner is None and name != "this call":
                frame = frame.f_back  # type: ignore[assignment]
                continue  # a decorator around the call
            name = found if owner is None else f"{type(owner).__name__}.{method}"
        elif name != "this call" and not module.startswith("torch."):
            break  # PyTorch calls the kernels of operators
        frame = frame.f_back  # type: ignore[assignment]
    return name
