"""The tests of kernels see wrong kernels: mutants of the reference, one for each mistake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wollemi.backends.reference import ReferenceExecutor
from wollemi.core import operations  # noqa: F401  fills the table
from wollemi.core.operation import OPERATIONS, KernelTable, Operation
from wollemi.core.status import Status

from .awkward import Block
from .calls import REFERENCE, make
from .equality import assert_equals_reference, cases
from .tolerance import MANY, UNITS, allowed, epsilon

CASES: dict[str, list[Any]] = {}
for _case in cases():
    CASES.setdefault(_case.values[0].name, []).append(_case.values)


class Mutant(ReferenceExecutor):
    """The reference, with something done to every array that a kernel writes."""

    kernels = KernelTable("mutant")

    def __init__(self, mistake: Callable[[Any, Any], Any]) -> None:
        self._mistake = mistake

    @property
    def name(self) -> str:
        return "mutant"

    def run(self, operation: Operation, *arguments: Any) -> Any:
        written = [
            argument
            for parameter, argument in zip(operation.parameters, arguments, strict=True)
            if parameter.is_array and parameter.intent != "in" and parameter.kind in ("T", "R")
        ]
        before = [array.copy() for array in written]
        returned = REFERENCE.run(operation, *arguments)
        for array, old in zip(written, before, strict=True):
            array[...] = self._mistake(array, old)
        if isinstance(returned, tuple):
            return tuple(
                self._mistake(a, np.zeros_like(a)) if a.dtype.kind in "fc" else a for a in returned
            )
        for argument in arguments:
            if isinstance(argument, Status):
                argument.norm[...] = self._mistake(argument.norm, argument.norm)
        return returned


def inexact(array: Any, before: Any) -> Any:
    """Return values ten times beyond the tolerance; nothing is zero any more."""
    changed = (array * (1 + 10 * UNITS * epsilon(array.dtype))).astype(array.dtype)
    changed[changed == 0] = least(array.dtype)
    return changed


def least(dtype: np.dtype[Any]) -> float:
    """Return the smallest normal number of a dtype."""
    return 2.0**-126 if dtype.name == "bfloat16" else float(np.finfo(dtype).tiny)


def forgetful(array: Any, before: Any) -> Any:
    """Return the array without the last row that the kernel changes."""
    changed = array.copy()
    same = (array == before) | (np.isnan(array) & np.isnan(before))
    differs = ~same.all(axis=tuple(range(1, array.ndim)))
    rows = np.flatnonzero(differs)[-1:]
    changed[rows] = before[rows]
    return changed


def lazy(array: Any, before: Any) -> Any:
    """Return the old values."""
    return before


def poisoned(array: Any, before: Any) -> Any:
    """Return the array with NaN in its last row that has none: some leave their end unwritten."""
    changed = array.copy()
    numbers = ~np.isnan(array).any(axis=tuple(range(1, array.ndim)))
    changed[np.flatnonzero(numbers)[-1:]] = np.nan
    return changed


def is_caught(mistake: Callable[[Any, Any], Any], values: Any, rng: np.random.Generator) -> bool:
    operation, block, rows, pattern, dtype, index, variant = values
    call = make(operation, block, rows, pattern, dtype, index, rng, variant)
    try:
        assert_equals_reference(call, Mutant(mistake), rng)
    except AssertionError:
        return True
    return False


WRITING = [
    o
    for o in OPERATIONS
    if any(p.is_array and p.intent != "in" and p.kind in ("T", "R") for p in o.parameters)
]


@pytest.mark.parametrize("mistake", [inexact, forgetful, lazy, poisoned], ids=lambda m: m.__name__)
@pytest.mark.parametrize("operation", WRITING, ids=lambda o: o.name)
def test_a_mistake_is_caught_with_every_dtype(
    operation: Operation, mistake: Callable[[Any, Any], Any], rng: np.random.Generator
) -> None:
    for dtype in sorted(
        {values[4] for values in CASES[operation.name]}
    ):  # a set has no fixed order
        cases = [values for values in CASES[operation.name] if values[4] == dtype]
        assert any(is_caught(mistake, values, rng) for values in cases), dtype


def test_a_unit_of_many_inputs_is_no_mistake(rng: np.random.Generator) -> None:
    # of several thousand numbers without a common column, some moved little in two draws
    block = Block("one", 1, alpha=0.75, beta=-1.25)
    operation = OPERATIONS["coarsen.orthonormalize"]
    call = make(operation, block, MANY, None, "float64", "int64", rng)
    expected = call.run(REFERENCE)
    limits = allowed(call, expected, rng)

    def rounded(value: Any) -> Any:
        return value * (1 + epsilon(value.dtype) * rng.choice([-1, 1], value.shape))

    after = call.mapped(rounded).run(REFERENCE)
    for name, limit in limits.items():
        assert (np.abs(after[name] - expected[name]) <= limit).all(), name
