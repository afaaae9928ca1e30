"""The steps of GMRES with a basis of a lower precision, held against the reference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from wollemi.core.dtypes import storage_dtype
from wollemi.core.executor import Executor
from wollemi.core.operations import gmres

from .awkward import BLOCKS, Block
from .calls import REFERENCE, Call, make

#: All that read or write a basis.
OPERATIONS = (
    gmres.start, gmres.project, gmres.subtract, gmres.reproject, gmres.resubtract, gmres.append,
    gmres.extend, gmres.combine,
)  # fmt: skip

#: One column and several, with gaps and stopped columns; rows around the widths of registers.
CASES: tuple[tuple[Block, int], ...] = (
    (BLOCKS[0], 257),
    (BLOCKS[2], 65),
    (BLOCKS[5], 33),
    (BLOCKS[9], 17),
    (BLOCKS[7], 1),
)


def compressed(call: Call, stored: str) -> Call:
    """Return a call with its basis stored in another dtype."""

    def lower(argument: Any) -> Any:
        if argument.parameter.kind != "S":
            return argument
        value = argument.value
        dtype = storage_dtype(stored, value.dtype)
        scaled = value * value.dtype.type(gmres.unit_of(stored))
        return replace(argument, value=scaled.astype(dtype))

    return replace(call, arguments=tuple(map(lower, call.arguments)))


def compare(on: Executor, pair: tuple[str, str], rng: np.random.Generator) -> None:
    """Compare every operation that reads or writes a basis with the reference."""
    dtype, stored = pair
    for operation in OPERATIONS:
        for block, rows in CASES:
            call = make(operation, block, rows, None, dtype, "int32", rng)
            call = compressed(call, stored)
            want, got = call.run(REFERENCE), call.run(on)
            assert got.keys() == want.keys()
            for name, expected in want.items():
                rounded = name in ("basis", "v")
                assert_near(f"{operation.name}: {name}", got[name], expected, rounded, pair)


#: Relative to the largest number of a block; sums have a few hundred terms.
UNITS = 2000


def assert_near(name: str, have: Any, want: Any, rounded: bool, pair: tuple[str, str]) -> None:
    """Fail unless two arrays differ by rounding at most; NaN stands where NaN does."""
    assert have.dtype == want.dtype, name
    if have.dtype.kind in "iu":
        np.testing.assert_array_equal(have, want, err_msg=name)
        return
    unit = {"float32": 1e-7, "complex64": 1e-7, "float16": 1e-3, "bfloat16": 1e-2}[pair[1]]
    have, want = (a.astype(np.complex128) for a in (have, want))
    np.testing.assert_array_equal(np.isnan(have), np.isnan(want), err_msg=name)
    have, want = np.nan_to_num(have), np.nan_to_num(want)
    if rounded:  # where the number before it differs in the last digit it may go to the other side
        assert (abs(have - want) <= unit * abs(want)).all(), name
        assert (have != want).sum() <= 1 + have.size // 50, name
    else:
        eps = np.finfo(pair[0]).eps
        assert (abs(have - want) <= UNITS * eps * abs(want).max(initial=0)).all(), name
