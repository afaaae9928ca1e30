"""Every operation, on every installed executor, has the results of the reference."""

from __future__ import annotations

import numpy as np
import pytest

import wollemi as wl
from wollemi.core import operations  # noqa: F401  fills the table
from wollemi.core.operation import OPERATIONS, Operation
from wollemi.core.unsupported import REASONS

from .awkward import Block, Pattern
from .calls import make
from .equality import assert_equals_reference, cases, require_kernel


@pytest.mark.parametrize("operation", list(OPERATIONS), ids=lambda o: o.name)
def test_every_operation_has_a_kernel_or_a_reason(
    operation: Operation, executor: wl.Executor
) -> None:
    known = REASONS.get(executor.backend, {})
    assert executor.supports(operation) != (operation.name in known)


def test_known_gaps_name_operations() -> None:
    names = {operation.name for operation in OPERATIONS}
    assert all(set(gaps) <= names for gaps in REASONS.values())


@pytest.mark.parametrize(
    ("operation", "block", "rows", "pattern", "dtype", "index", "variant"), cases()
)
def test_equals_the_reference(
    executor: wl.Executor,
    rng: np.random.Generator,
    operation: Operation,
    block: Block,
    rows: int,
    pattern: Pattern | None,
    dtype: str,
    index: str,
    variant: int,
) -> None:
    require_kernel(executor, operation)
    call = make(operation, block, rows, pattern, dtype, index, rng, variant)
    assert_equals_reference(call, executor, rng)
