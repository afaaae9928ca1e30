"""Functions of all that is in a row: softmax of samples, and the largest rows of a dense matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....core.executor import Array
from ...unified.wrappers import SimtKernel
from . import declarations as ml
from .adapter import Adapter, AddressedOperand

if TYPE_CHECKING:
    from ....core.formats.csr import Csr
    from ..types import LaunchOperand

#: Blocks of a batch that a group of lanes goes through side by side; the same in ``edge.hpp``.
SIDE_BY_SIDE = 4
#: Lanes that share a row of a dense operand at most, and vectors of a lane.
MOST_LANES, MOST_VECTORS = 32, 2


def weigh(on: Adapter, A: Csr, edge: str, samples: Array, log_totals: Array | None = None) -> None:
    """Make weights of the stored samples of each row; logarithms of totals are of a softmax.

    Samples of a block are neighbours; blocks may be any distance apart.
    """
    _by_edges(on, ml.edge_rows, A, edge, (samples,), *on.of_rows(log_totals))


def weigh_gradients(on: Adapter, A: Csr, edge: str, weights: Array, gradients: Array) -> None:
    """Turn gradients of weights into gradients of samples."""
    _by_edges(on, ml.edge_gradients, A, edge, (weights, gradients))


def _by_edges(
    on: Adapter,
    kernel: SimtKernel,
    A: Csr,
    edge: str,
    samples: tuple[Array, ...],
    *rest: LaunchOperand,
) -> None:
    """Launch a kernel that goes over the stored samples of each row; the last array changes."""
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
    """Launch a kernel that goes over the entries of each row for some columns at a time.

    Parameters
    ----------
    on : Adapter
        The device.
    kernel : SimtKernel
        ``csr_spmm_max`` or ``csr_spmm_where_equal``.
    A : Csr
        The pattern.
    *operands : array, shape (b, m or n, k)
        The last one is the result.
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
    """Return how many lanes share a row of ``count`` vectors, and the vectors of each lane.

    Examples
    --------
    >>> shape_of(1), shape_of(5), shape_of(64), shape_of(1000)
    ((1, 1), (8, 1), (32, 2), (32, 2))
    """
    lanes = 1
    while lanes < min(count, MOST_LANES):
        lanes *= 2
    return lanes, min(-(-count // lanes), MOST_VECTORS)
