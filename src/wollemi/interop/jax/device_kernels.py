"""GPU kernels for compiled JAX programs, as steps that a native handler may repeat.

Each kernel takes the pattern, native operands with a leading axis of blocks, and the result. Steps
that only launch kernels are repeated without Python; other steps run in Python at every call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...core.dtypes import is_narrow
from ...core.executor import Array
from ...core.foreign import Step
from ...core.formats import Csr
from ...core.operations import products as operations
from ...core.operations import vector

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ...core.executor import Executor
    from ...core.operation import Operation

#: ``kernel(A, operands, out, **options)`` returns the steps that compute a result.
DeviceKernel = Callable[..., Sequence[Step]]


def _for_all(on: Executor, x: Array, blocks: int) -> Array:
    return on.xp.broadcast_to(x, (blocks, *x.shape[1:]))


def _product(
    operation: Operation, A: Csr, arrays: Sequence[Array | None], *scalars: complex | str
) -> Step:
    arguments = (A, *arrays, *scalars)
    return lambda: A.executor.run_repeatably(operation, arguments, arrays) is not None


def _copied(on: Executor, source: Array, target: Array, order: Array | None = None) -> Step:
    """Return the step that copies the numbers of entries, in another order if one is given."""

    def copy() -> bool:
        if is_narrow(target.dtype):
            target[...] = source if order is None else on.xp.take(source, order, axis=1)
            return False
        for block, moved in zip(source[..., None], target[..., None], strict=True):
            if order is None:
                on.run(vector.axpby, block, moved, 1.0, 0.0)
            else:
                on.run(vector.gather, order, block, moved, 1.0, 0.0)
        return True

    return copy


def spmm(A: Csr, operands: Sequence[Array], out: Array, *, kernel: str) -> Sequence[Step]:
    """Multiply by ``A``."""
    values, B = (_for_all(A.executor, x, out.shape[0]) for x in operands)
    return [_product(operations.csr_spmm, A, [values, B, out], 1.0, 0.0, kernel)]


def transposed(A: Csr, operands: Sequence[Array], out: Array, *, kernel: str) -> Sequence[Step]:
    """Multiply by the transpose; first copy the values into its order."""
    pattern, order = A.transposed_pattern()
    values, B = operands
    moved = A.executor.allocate(values.shape, values.dtype)
    return [
        _copied(A.executor, values, moved, order),
        *spmm(pattern, (moved, B), out, kernel=kernel),
    ]


def sddmm(A: Csr, operands: Sequence[Array], out: Array, *, kernel: str) -> Sequence[Step]:
    """Compute dot products at the positions of the entries."""
    C, B = (_for_all(A.executor, x, out.shape[0]) for x in operands)
    return [_product(operations.csr_sddmm, A, [None, C, B, out], 1.0, 0.0, kernel)]


def fusedmm(
    A: Csr, operands: Sequence[Array], out: Array, *, edge: str, alpha: float, kernel: str
) -> Sequence[Step]:
    """Sample, apply the edge function, and multiply."""
    dense = [_for_all(A.executor, x, out.shape[0]) for x in operands]
    arrays = [*([None] * (4 - len(dense))), *dense, out]
    return [_product(operations.csr_fusedmm, A, arrays, alpha, edge, kernel)]


def row_sum(A: Csr, operands: Sequence[Array], out: Array) -> Sequence[Step]:
    """Sum each row's entries by a product with ones."""
    ones = _ones(A, A.shape[1], out.dtype)
    return spmm(A, (operands[0], ones), out[..., None], kernel="auto")


def spread(A: Csr, operands: Sequence[Array], out: Array) -> Sequence[Step]:
    """Copy each row's number to its entries, by sampling products with ones."""
    ones = _ones(A, A.shape[1], out.dtype)
    return sddmm(A, (operands[0][..., None], ones), out, kernel="auto")


def softmax(A: Csr, operands: Sequence[Array], out: Array) -> Sequence[Step]:
    """Replace scores by the softmax of each row."""

    def weigh() -> bool:
        A.executor.run(operations.csr_softmax, A, out)
        return True

    scores = _for_all(A.executor, operands[0], out.shape[0])
    return [_copied(A.executor, scores, out), weigh]


def apart(on: Executor, work: Callable[[], None]) -> Step:
    """Return the step that does work of the host and of many kernels on the usual stream.

    Solvers capture graphs, but not on another library's stream. The device finishes XLA's work
    before this work, and this work before the program continues.
    """

    def step() -> bool:
        on.synchronize()
        with on.on_stream(0):
            work()
            on.synchronize()
        return False

    return step


def _ones(A: Csr, count: int, dtype: DTypeLike) -> Array:
    ones = A.executor.from_host(np.ones((1, count, 1), np.float32))
    return ones.astype(dtype)
