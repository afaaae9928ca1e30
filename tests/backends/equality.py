"""Equal to the reference: the arguments of every operation, and the meaning of equality."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core import operations  # noqa: F401  fills the table
from wollemi.core.algorithm import Plan
from wollemi.core.operation import OPERATIONS, Operation

from .awkward import BLOCKS, INDEX_DTYPES, PATTERNS, ROWS
from .calls import REFERENCE, Call
from .tolerance import allowed, wide

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

#: A step has one of this number of inputs, in each dtype.
SHARES = 4
RARE = pytest.mark.rare


def cases() -> list[Any]:
    """Return the arguments of each operation.

    Every operation sees every value dtype with every index dtype, and every value dtype with every
    pattern (or number of rows); blocks are spread over them, each dtype starting at another one.
    The functors of steps are made by one rule: each step has its share of the inputs, and the other
    steps the rest; ``make test-all`` runs all of them.
    """
    found = []
    for number, operation in enumerate(OPERATIONS):
        patterns = (
            PATTERNS if any(p.is_matrix for p in operation.parameters) else [None] * len(ROWS)
        )
        for d, dtype in enumerate(dtypes_of(operation)):
            for i, pattern in enumerate(patterns):
                block = BLOCKS[i if pattern is None else (i + 3 * d) % len(BLOCKS)]
                rows = ROWS[(i + 3 * d) % len(ROWS)]
                index = INDEX_DTYPES[(i + d // 2) % 2]
                label = f"{operation.name}-{pattern or rows}-{block}-{dtype}-{index}"
                values = (operation, block, rows, pattern, dtype, index, i + d)
                rare = operation.step is not None and (i + d + number) % SHARES != 0
                found.append(pytest.param(*values, id=label, marks=RARE if rare else ()))
    return found


def dtypes_of(operation: Operation) -> list[str]:
    """Return the values of ``T``; NumPy has bfloat16 where the package for it is installed."""
    return [d for d in operation.dtypes if d != "bfloat16" or ml_dtypes is not None]


def require_kernel(executor: wl.Executor, operation: Operation) -> None:
    """Skip an operation without a kernel: that fails once, where kernels are counted."""
    if not executor.supports(operation):
        pytest.skip(f"{operation.name} has no kernel on {executor.name}")


def assert_equals_reference(
    call: Call, executor: wl.Executor, rng: np.random.Generator, units: float = 1
) -> None:
    """Fail unless ``executor`` and the reference leave and return the same."""
    expected, got = call.run(REFERENCE), call.run(executor)
    tolerance = allowed(call, expected, rng)
    assert got.keys() == expected.keys()
    for name, want in expected.items():
        have = got[name]
        if isinstance(want, Plan):
            assert have.statistics == want.statistics
            continue
        assert have.dtype == want.dtype, name
        assert have.shape == want.shape, name
        if name in tolerance:
            assert_near(name, wide(have), wide(want), units * tolerance[name])
        else:
            np.testing.assert_array_equal(have, want, err_msg=name)


def assert_near(name: str, have: Any, want: Any, tolerance: Any) -> None:
    """Fail unless two arrays differ by the tolerance at most, or are Inf or NaN in one element."""
    with np.errstate(invalid="ignore"):
        same = (have == want) | (np.isnan(have) & np.isnan(want))
        near = np.abs(have - want) <= tolerance
    far = ~(same | near)
    if far.any():
        place = tuple(int(i) for i in np.argwhere(far)[0])
        limit = np.broadcast_to(tolerance, want.shape)[place]
        raise AssertionError(
            f"{name}{list(place)}: got {have[place]}, expected {want[place]} +- {limit:.2g} "
            f"({np.count_nonzero(far)} of {want.size} differ)"
        )
