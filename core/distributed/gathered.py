"""Operators of small matrices that every member of a group applies to whole vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..errors import UnsupportedOperation
from ..lazy import Temporary
from ..linop import LinOp
from ..operations import vector
from . import halo as exchange
from .halo import Halo, index_dtype

if TYPE_CHECKING:
    from ..executor import Array, Executor
    from .matrix import Csr


class Gathered(LinOp):
    """An operator on whole vectors that every member applies redundantly.

    An application gathers the vector on every member. Each member does the whole work and keeps its
    own rows of the result. This suits operators that are so small that distributing the work costs
    more than repeating it: the coarse levels of multigrid.

    Parameters
    ----------
    A : wollemi.distributed.Csr, shape (n, n)
        The matrix whose partition the vectors have.
    inner : LinOp, shape (n, n)
        The operator on this member's executor, the same on all members.
    """

    def __init__(self, A: Csr, inner: LinOp) -> None:
        links: Any = A.executor.links
        partition, rank = A.partition, links.rank
        self.executor, self.inner = A.executor, inner
        self.shape, self.dtype = inner.shape, inner.dtype
        self._partition, own = partition, partition.count(rank)
        counts = np.diff(partition.offsets)
        everything = [np.arange(own if r != rank else 0) for r in range(links.size)]
        self._halo = Halo(
            A.executor, everything, [int(c) if r != rank else 0 for r, c in enumerate(counts)], own
        )
        self._halo.idle, self._fuses = links.size == 1, links.fuses
        kind = index_dtype(self.shape[0])
        # The gathered vector contains the member's own rows first, then the rows of others.
        first = int(partition.offsets[rank])
        order = np.arange(self.shape[0], dtype=kind)
        order[first : first + own] -= first
        order[:first] += own
        if partition.numbers is not None:
            order = order[partition.places(np.arange(self.shape[0]))]
        self._order = self.executor.from_host(order)
        self._rows = self.executor.from_host(partition.rows(rank).astype(kind))
        self._begin()

    def _begin(self) -> None:
        self._temporaries = tuple(Temporary() for _ in range(4))

    @property
    def partition(self) -> Any:
        """The partition of the rows."""
        return self._partition

    @property
    def local_rows(self) -> int:
        """The number of rows of this member."""
        return int(self._rows.size)

    @property
    def nbytes(self) -> int:
        """The size of the operator on this member in bytes."""
        return int(getattr(self.inner, "nbytes", 0))

    @property
    def resident(self) -> bool:
        """Whether applying consists of executor operations alone."""
        return self.inner.resident

    @property
    def varies(self) -> bool:
        """Whether applying is not a fixed linear map."""
        return self.inner.varies

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        (n, k), all_rows, run = x.shape, self.shape[0], self.executor.run
        first, second, third, fourth = self._temporaries
        executor, halo, dtype = self.executor, self._halo, self.dtype
        with (
            first.block(executor, all_rows, k, dtype) as gathered,
            second.block(executor, all_rows, k, dtype) as whole,
            third.block(executor, all_rows, k, dtype) as solved,
            fourth.block(executor, halo.packed, k, dtype) as packed,
        ):
            pushes = not halo.idle and self._fuses
            sends = not halo.idle and not pushes
            if sends:
                if halo.packed:
                    run(vector.gather, halo.send_index, x, packed, 1.0, 0.0)
                run(exchange.send, halo, packed, gathered[n:])
            if n:
                run(vector.axpby, x, gathered[:n], 1.0, 0.0)
            if pushes:
                run(exchange.push, halo, x, gathered[n:])
            if sends:
                run(exchange.receive, halo, gathered[n:])
            run(vector.gather, self._order, gathered, whole, 1.0, 0.0)
            self.inner._apply(whole, solved, 1.0, 0.0)
            if n:
                run(vector.gather, self._rows, solved, y, alpha, beta)

    def _with_inner(self, change: Callable[[LinOp], LinOp]) -> Self:
        result = type(self).__new__(type(self))
        result.__dict__.update(self.__dict__)
        result.inner = change(self.inner)
        result.dtype = result.inner.dtype
        result._begin()
        return result

    @property
    def T(self) -> Self:
        """The transpose."""
        return self._with_inner(lambda inner: inner.T)

    @property
    def H(self) -> Self:
        """The conjugate transpose."""
        return self._with_inner(lambda inner: inner.H)

    def astype(self, dtype: Any) -> Self:
        """Return this operator computing in ``dtype``; itself if it does already."""
        if np.dtype(dtype) == self.dtype:
            return self
        return self._with_inner(lambda inner: inner.astype(dtype))

    def to(self, executor: Executor | str) -> LinOp:
        """Return this operator; it cannot leave its group.

        Raises
        ------
        UnsupportedOperation
            If another executor is requested.
        """
        if executor == self.executor:
            return self
        raise UnsupportedOperation(
            "an operator that a group shares does not move to another executor"
        )

    def _private(self) -> Self:
        return self._with_inner(lambda inner: inner._private())
