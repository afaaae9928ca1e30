"""Once with many rows, so that threads, vectors and several blocks have their turn."""

from __future__ import annotations

import numpy as np
import pytest

import wollemi as wl
from wollemi.core import operations  # noqa: F401  fills the table
from wollemi.core.operation import OPERATIONS, Operation

from ..rare import COMPILED_BY_PROGRAM, dtype_compiled, index_compiled
from .awkward import VALUE_DTYPES, Block
from .calls import REFERENCE, Argument, Call, make, numbers
from .equality import assert_equals_reference, require_kernel

ROWS = 100_003
#: Many blocks of a GPU, and more than the omp backend gives to one thread (kSerialElements). The
#: reference goes from row to row in Python for some of them, several times for the tolerance.
ROWS_OF_MAPS = 16_411
#: Rows with many entries, for operations over entries.
ROWS_OF_ENTRIES = 6_007
MAPS = [o for o in OPERATIONS if o.is_map]
ONE = Block("one", 1, alpha=0.75, beta=-1.25)
THREE = Block("three", 3, alpha=0.75, beta=-1.25, gap=1, stopped=(1,))

#: Groups of operations that the reference computes from row to row in Python: one of each group is
#: tested by default, since the same text cuts the rows into parts for all.
ROW_BY_ROW = {"parilut": "parilut.scaling", "ilu": "ilu.join", "rows": "rows.count_blocks"}


def _marks(operation: Operation) -> tuple[pytest.MarkDecorator, ...]:
    group, _, _ = operation.name.partition(".")
    tested = ROW_BY_ROW.get(group, operation.name)
    return () if operation.name == tested else (pytest.mark.rare,)


#: Operations over the rows of a matrix have no columns for several vectors.
IN_BLOCKS = [
    pytest.param(o, block, id=f"{o.name}-{block}", marks=_marks(o))
    for o in MAPS
    for block in ((ONE,) if o.over[1] == "1" else (ONE, THREE))
]


def rows_of(operation: Operation) -> int:
    """Return how many rows an operation is called with here."""
    return ROWS_OF_ENTRIES if operation.over == ("e", "1") else ROWS_OF_MAPS


@pytest.mark.parametrize(("operation", "block"), IN_BLOCKS)
def test_map_operation_on_many_rows(
    executor: wl.Executor, rng: np.random.Generator, operation: Operation, block: Block
) -> None:
    require_kernel(executor, operation)
    dtype, index = dtype_compiled(operation), index_compiled(operation)
    if operation.step is None and executor.backend not in COMPILED_BY_PROGRAM:
        # written by hand, and compiled in all dtypes
        dtype = "complex64" if "complex64" in operation.dtypes else "float32"
    call = make(operation, block, rows_of(operation), None, dtype, index, rng)
    assert_equals_reference(call, executor, rng)


@pytest.mark.parametrize("operation", [o for o in MAPS if o.adds_up], ids=lambda o: o.name)
def test_sums_repeat_bit_for_bit(
    executor: wl.Executor, rng: np.random.Generator, operation: Operation
) -> None:
    require_kernel(executor, operation)
    dtype, index = dtype_compiled(operation), index_compiled(operation)
    call = make(operation, THREE, ROWS_OF_MAPS, None, dtype, index, rng)
    first, second = call.run(executor), call.run(executor)
    assert all(first[name].tobytes() == second[name].tobytes() for name in first)


def _big_csr(rng: np.random.Generator, dtype: str, index: str) -> wl.Csr:
    """Rows of 0 to 8 entries, and two of 20 000."""
    lengths = rng.integers(0, 9, ROWS)
    lengths[[5, ROWS // 2]] = 20_000
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(index)
    indices = rng.integers(0, ROWS, int(indptr[-1])).astype(index)
    data = numbers(rng, indices.shape, dtype)
    return wl.Csr._from_arrays(REFERENCE, (ROWS, ROWS), data, indices, indptr)


@pytest.mark.parametrize("block", [ONE, THREE], ids=str)
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", VALUE_DTYPES)
def test_csr_spmv_on_many_rows(
    executor: wl.Executor, rng: np.random.Generator, dtype: str, index: str, block: Block
) -> None:
    operation = OPERATIONS["csr.spmv"]
    A = _big_csr(rng, dtype, index)
    arguments = (
        A,
        numbers(rng, (ROWS, block.columns), dtype),
        numbers(rng, (ROWS, block.columns), dtype),
        block.alpha,
        block.beta,
    )
    call = Call(
        operation,
        tuple(
            Argument(p, a, block.gap) for p, a in zip(operation.parameters, arguments, strict=True)
        ),
        {"k": block.columns, "m": ROWS, "n": ROWS},
    )
    assert_equals_reference(call, executor, rng)
