"""A column that has stopped is left as it is, bit for bit, and does not disturb the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core import operations  # noqa: F401  fills the table
from wollemi.core.operation import OPERATIONS, Operation

from .awkward import VALUE_DTYPES, Block
from .calls import Argument, Call, make
from .equality import RARE, require_kernel

SIX = Block("six", 6, stopped=(0, 2, 5))
WITH_STATUS = [o for o in OPERATIONS if any(p.is_status for p in o.parameters)]
# Says of itself that it writes zeros there: the first product of a cycle must be defined.
WRITES_ALL_COLUMNS = {"gmres.start"}
KEEPING = [o for o in WITH_STATUS if o.name not in WRITES_ALL_COLUMNS]


def _filled(call: Call, garbage: float) -> Call:
    """Put ``garbage`` into the stopped columns of all arrays of values."""

    def fill(argument: Argument) -> Argument:
        if argument.parameter.kind not in ("T", "R") or argument.parameter.dims[-1:] != ("k",):
            return argument
        value = argument.value.copy()
        value[..., list(SIX.stopped)] = garbage
        return replace(argument, value=value)

    return replace(call, arguments=tuple(fill(a) for a in call.arguments))


def in_dtypes(given: list[Operation]) -> list[Any]:
    """Return operations with dtypes: steps leave columns alone by one rule, which two show."""
    return [
        pytest.param(
            o, dtype, id=f"{o.name}-{dtype}", marks=RARE if o.step and place not in (1, 2) else ()
        )
        for o in given
        for place, dtype in enumerate(VALUE_DTYPES)
    ]


@pytest.mark.parametrize("garbage", [np.nan, 7.25], ids=["NaN", "number"])
@pytest.mark.parametrize(("operation", "dtype"), in_dtypes(KEEPING))
def test_stopped_columns_keep_every_bit(
    executor: wl.Executor,
    rng: np.random.Generator,
    operation: Operation,
    dtype: str,
    garbage: float,
) -> None:
    require_kernel(executor, operation)
    call = _filled(make(operation, SIX, 33, None, dtype, "int32", rng), garbage)
    after = call.run(executor)
    stopped = list(SIX.stopped)
    for argument in call.arguments:
        name, value = argument.parameter.name, argument.value
        if argument.parameter.is_status:
            for member in ("stop", "iterations", "norm", "history"):
                kept = after[f"{name}.{member}"][..., stopped]
                assert kept.tobytes() == value[member][..., stopped].tobytes(), member
        elif argument.parameter.dims[-1:] == ("k",):
            assert after[name][..., stopped].tobytes() == value[..., stopped].tobytes(), name


@pytest.mark.parametrize(("operation", "dtype"), in_dtypes(WITH_STATUS))
def test_running_counts_the_columns_that_run(
    executor: wl.Executor, rng: np.random.Generator, operation: Operation, dtype: str
) -> None:
    require_kernel(executor, operation)
    after = make(operation, SIX, 33, None, dtype, "int32", rng).run(executor)
    assert after["status.running"][0] == np.count_nonzero(after["status.stop"] == 0)
