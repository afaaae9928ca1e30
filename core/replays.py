"""Whether the recorded operations of a user's operator do all the work of its calls.

Solvers record the operations that an operator runs and replay them without Python. Work of array
functions is not among them: a replay would leave it out, and no error would say so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .dtypes import is_complex, real_dtype
from .program import record

if TYPE_CHECKING:
    from .linop import LinOp

#: The largest difference between a replay and a call, in units of rounding of the largest element:
#: atomic sums have no fixed order.
ROUNDINGS = 1e4

#: Random numbers of a vector, which are repeated: a prime, so that no plane of a grid is another.
#: For 64 million unknowns, numbers of their own took seconds.
SAMPLE = 1_000_003


def sample_vector(rng: np.random.Generator, n: int, dtype: np.dtype[Any]) -> np.ndarray:
    """Return a column of random numbers, shape (n, 1)."""
    count = min(n, SAMPLE)
    made = rng.standard_normal(count)
    if is_complex(dtype):
        made = made + 1j * rng.standard_normal(count)
    return np.resize(made.astype(dtype), (n, 1))


def agrees(replayed: np.ndarray, called: np.ndarray) -> bool:
    """Return whether two results of the same work are equal up to rounding."""
    largest = float(np.max(np.abs(called), initial=0.0))
    limit = ROUNDINGS * float(np.finfo(real_dtype(called.dtype)).eps) * largest
    if not np.isfinite(largest):
        return True
    return bool(np.max(np.abs(replayed - called), initial=0.0) <= limit)


def replays_as_called(operator: LinOp) -> bool:
    """Return whether a replay of the recorded operations of an operator equals a call.

    Members of a group wait for each other in a call: there the recorded operations are only
    searched for one that writes the result.

    Parameters
    ----------
    operator : LinOp
        It is called twice, recorded once and replayed once.
    """
    executor, dtype = operator.executor, operator.dtype
    x = executor.zeros((operator.local_columns, 1), dtype)
    y = executor.zeros((operator.local_rows, 1), dtype)
    alone = operator.partition is None
    if alone:
        operator._apply(x, y, 1.0, 0.0)  # makes the data that it keeps
    try:
        # Array functions see arrays that no operation has written yet.
        with np.errstate(all="ignore"):
            program = record(executor, lambda: operator._apply(x, y, 1.0, 0.0)).prepared()
    except Exception:  # of a function that these numbers do not suit; the call raised nothing
        return False
    if program.by_host or not any(executor.address(y) in program.writes(call) for call in program):
        return False
    if not alone:
        return True
    # Other numbers than recorded ones: results of array functions are constants in a recording.
    executor.copy_into(x, sample_vector(np.random.default_rng(0), x.shape[0], dtype))
    executor.copy_into(y, np.full(y.shape, np.nan, dtype))
    program.run()
    replayed = np.array(executor.to_host(y))
    operator._apply(x, y, 1.0, 0.0)
    return agrees(replayed, executor.to_host(y))
