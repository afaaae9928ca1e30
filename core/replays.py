"""Tests whether the recorded operations of a user-defined operator reproduce its calls.

Solvers record the operations that an operator runs and replay them without Python. A recording does
not contain the work of array functions: a replay would omit it without an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .dtypes import is_complex, real_dtype
from .program import record

if TYPE_CHECKING:
    from .linop import LinOp

#: Allowed difference between a replay and a call, in units of the dtype's machine epsilon times the
#: largest element. It is not smaller because atomic sums have no fixed order.
ROUNDINGS = 1e4

#: Number of distinct random numbers of a test vector, which repeats them. It is prime, so that no
#: two planes of a grid are equal. Generating 64 million distinct numbers took seconds.
SAMPLE = 1_000_003


def sample_vector(rng: np.random.Generator, n: int, dtype: np.dtype[Any]) -> np.ndarray:
    """Return a column of random numbers, shape (n, 1)."""
    count = min(n, SAMPLE)
    made = rng.standard_normal(count)
    if is_complex(dtype):
        made = made + 1j * rng.standard_normal(count)
    return np.resize(made.astype(dtype), (n, 1))


def agrees(replayed: np.ndarray, called: np.ndarray) -> bool:
    """Return whether two results of the same work agree up to rounding."""
    largest = float(np.max(np.abs(called), initial=0.0))
    limit = ROUNDINGS * float(np.finfo(real_dtype(called.dtype)).eps) * largest
    if not np.isfinite(largest):
        return True
    return bool(np.max(np.abs(replayed - called), initial=0.0) <= limit)


def replays_as_called(operator: LinOp) -> bool:
    """Return whether a replay of an operator's recorded operations equals a call.

    On members of a group a call must wait for the other members. There the function only checks
    that a recorded operation writes the result.

    Parameters
    ----------
    operator : LinOp
        The operator; it is called twice, recorded once and replayed once.
    """
    executor, dtype = operator.executor, operator.dtype
    x = executor.zeros((operator.local_columns, 1), dtype)
    y = executor.zeros((operator.local_rows, 1), dtype)
    alone = operator.partition is None
    if alone:
        operator._apply(x, y, 1.0, 0.0)  # the first call makes data that it keeps
    try:
        # Array functions now read arrays that no operation has written yet.
        with np.errstate(all="ignore"):
            program = record(executor, lambda: operator._apply(x, y, 1.0, 0.0)).prepared()
    except Exception:  # the function fails on such numbers; the call succeeded
        return False
    if program.by_host or not any(executor.address(y) in program.writes(call) for call in program):
        return False
    if not alone:
        return True
    # Use other numbers than the recording: results of array functions are constants in it.
    executor.copy_into(x, sample_vector(np.random.default_rng(0), x.shape[0], dtype))
    executor.copy_into(y, np.full(y.shape, np.nan, dtype))
    program.run()
    replayed = np.array(executor.to_host(y))
    operator._apply(x, y, 1.0, 0.0)
    return agrees(replayed, executor.to_host(y))
