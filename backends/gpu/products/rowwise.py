"""Functions of whole rows: softmax of samples, and the largest rows of a dense matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....core.executor import Array
from ...unified.wrappers import SimtKernel
from . import declarations as ml
from .adapter import Adapter, AddressedOperand

if TYPE_CHECKING:
    from ....core.formats.csr import Csr
    from ..types import LaunchOperand

#: Blocks of a batch that a group of lanes processes concurrently; the same in ``edge.hpp``.
SIDE_BY_SIDE = 4
#: Upper bounds of lanes per row of a dense operand and of vectors per lane.
MOST_LANES, MOST_VECTORS = 32, 2


def weigh(on: Adapter, A: Csr, edge: str, samples: Array, log_totals: Array | None = None) -> None:
    """Compute weights from the stored samples of each row; log-totals apply to a softmax.

    The samples of a block are contiguous; the stride of blocks is arbitrary.
    """
    _by_edges(on, ml.edge_rows, A, edge, (samples,), *on.of_rows(log_totals))


def weigh_gradients(on: Adapter, A: Csr, edge: str, weights: Array, gradients: Array) -> None:
    """Compute the gradients of samples from the gradients of weights."""
    _by_edges(on, ml.edge_gradients, A, edge, (weights, gradients))


def _by_edges(
    on: Adapter,
    kernel: SimtKernel,
    A: Csr,
    edge: str,
    samples: tuple[Array, ...],
    *rest: LaunchOperand,
) -> None:
    """Launch a kernel that processes each row's stored samples, and changes the last array."""
    batch, rows = samples[-1].shape[0], A.shape[0]
    if edge != "identity" and batch * rows:
        on.launch(
            kernel,
            rows * -(-batch // SIDE_BY_SIDE) * on.wave,
            (rows, batch, A.indptr, *sum((on.weights(s) for s in samples), ()), *rest),
            samples[-1].dtype,
            A.indices.dtype,
            EDGE=ml.EDGES[edge],
        )


def by_columns(on: Adapter, kernel: SimtKernel, A: Csr, *operands: Array) -> None:
    """Launch a kernel that processes each row's entries for some columns at a time.

    Parameters
    ----------
    on : Adapter
        The adapter of the device.
    kernel : SimtKernel
        ``csr_spmm_max`` or ``csr_spmm_where_equal``.
    A : Csr
        The pattern.
    *operands : array, shape (b, m or n, k)
        The operands, followed by the result.
    """
    batch, m, k = operands[-1].shape
    if not operands[-1].size:
        return
    places: list[AddressedOperand] = [on.operand(x) for x in operands]
    item = operands[-1].dtype.itemsize
    each = ml.elements(item, (k,), sum((place.places(item) for place in places), ()))
    lanes, vectors = shape_of(k // each)
    width = lanes * vectors * each
    tiles = -(-k // width)
    on.launch(
        kernel,
        m * batch * tiles * on.wave,
        (m, k, batch, A.indptr, A.indices, *sum(places, ())),
        operands[-1].dtype,
        A.indices.dtype,
        L=lanes,
        V=vectors,
        E=each,
        WHOLE=int(k % width == 0),
    )


def shape_of(count: int) -> tuple[int, int]:
    """Return the lanes per row of ``count`` vectors, and the vectors per lane.

    Examples
    --------
    >>> shape_of(1), shape_of(5), shape_of(64), shape_of(1000)
    ((1, 1), (8, 1), (32, 2), (32, 2))
    """
    lanes = 1
    while lanes < min(count, MOST_LANES):
        lanes *= 2
    return lanes, min(-(-count // lanes), MOST_VECTORS)
