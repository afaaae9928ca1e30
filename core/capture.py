"""Captures by a user: which public calls can be recorded, and how other calls are refused.

A graph (a CUDA graph) records the work that is submitted to a stream, and replays it later: the
same kernels on the same memory. It does not contain work of the host. A public call that can be
recorded announces this by :meth:`Executor.submit`; every other call is refused before it submits
work. Within a recorded call, data that are made once and kept (a plan, a transposed pattern) are
refused too: only the replay would fill them, but later calls would use them before.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from .errors import CaptureRefused

#: The operations, and groups of operations, that make data to keep: structures and factors.
PREPARES = frozenset(
    {
        "coarsen", "facts", "ilu", "isai", "ordering", "parilu", "parilut", "rows", "scan",
        "spgemm", "summary", "coo.to_csr", "csr.add", "csr.diagonal", "csr.matmul",
        "csr.matmul_values", "csr.plan", "csr.sort", "csr.sum_duplicates", "csr.transpose",
        "triangular.factorize", "triangular.levels", "triangular.threshold",
    }
)  # fmt: skip

#: The reasons why calls cannot be recorded.
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
    """Treat this thread's work within the block as a public call that can be recorded."""
    _CURRENT.call = name
    try:
        yield
    finally:
        _CURRENT.call = None


def prepares(operation: str) -> bool:
    """Return whether an operation makes data to keep.

    Examples
    --------
    >>> prepares("csr.transpose"), prepares("rows.take"), prepares("csr.spmv")
    (True, True, False)
    """
    return operation in PREPARES or operation.partition(".")[0] in PREPARES


def refuse_making(part: str) -> None:
    """Raise CaptureRefused if this thread's work is recorded: ``part`` would stay unfilled."""
    if _CURRENT.call is not None:
        raise CaptureRefused(
            f"{_CURRENT.call}: the stream is being captured, and the first call makes objects that "
            f"are kept ({part}). Make this call once before the capture, with operands of the same "
            "shapes, dtypes and layouts"
        )


def refused(reason: str) -> CaptureRefused:
    """Return the error for a call that a graph cannot record; ``reason`` ends its sentence."""
    name = _CURRENT.call or public_call()
    return CaptureRefused(
        f"{name}: the stream is being captured, and {reason}. Make this call before the capture "
        f"and use its result there; {_LISTED}"
    )


def public_call() -> str:
    """Return the name of the public call through which the stack entered this package."""
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
