"""Schwarz methods on one executor: overlapping blocks of rows, with a solver for each."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.deprecation import OldOptions
from ...core.errors import InvalidArgument
from ...core.factors import whole_number
from ...core.formats import Csr, Matrix
from ...core.lazy import Temporary
from ...core.linop import LinOp
from ..driver.as_preconditioner import as_preconditioner
from .base import Transposable, savepoint
from .names import preconditioner

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from ...core.executor import Array, Executor

#: Default number of rows of a block.
ROWS_OF_BLOCK = 1024


class BlockSchwarz(Transposable):
    """Overlapping blocks of rows, with another preconditioner or a direct solver for each.

    Parameters
    ----------
    A : matrix, shape (n, n)
        Any square matrix. Blocks consist of adjacent rows: reorder the matrix first, for example by
        :func:`wollemi.reorder.nested_dissection` or ``rcm``, to make them compact.
    blocks : int, optional
        Number of blocks; by default one for every 1024 rows.
    overlap : int
        Number of layers of adjacent rows in the pattern that are added to a block.
    inner : str, Settings
        The solver within a block, by name or settings: a preconditioner, or
        ``wl.solvers.Direct()``. It is built for the block diagonal matrix of all blocks.
    restricted : bool
        Whether each row uses the solution of its own block (restricted), which takes fewer
        iterations, or the sum of all solutions. The sum is Hermitian if ``A`` and ``inner`` are, as
        CG needs.

    Raises
    ------
    InvalidArgument
        If an option is out of its range, or ``inner`` is no preconditioner.
    InvalidMatrix
        If ``inner`` cannot be built.

    Notes
    -----
    All blocks form one matrix, so that set-up and application treat them in parallel. Their
    positions are found on the host. If a group of executors shares a matrix, use :class:`Schwarz`,
    with one block for each member.

    References
    ----------
    X.-C. Cai and M. Sarkis, A restricted additive Schwarz preconditioner for general sparse linear
    systems, SIAM J. Sci. Comput. 21 (1999).

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(2.5 * np.eye(8) - np.eye(8, k=1) - np.eye(8, k=-1))
    >>> M = wl.preconditioners.BlockSchwarz(A, blocks=2, overlap=1, inner="ilu")
    >>> wl.solvers.Gmres(A, M=M, rtol=1e-10).solve(np.ones(8)).converged
    True
    """

    parts = ("blocks_matrix", "local_inverse", "spread", "sum")

    #: All blocks in one block diagonal matrix, its solver, and the operators that restrict rows to
    #: the blocks and prolongate them.
    blocks_matrix: Csr
    local_inverse: LinOp
    spread: Csr
    sum: Csr
    _places: Array | None
    _refreshed: object = None

    old_options = OldOptions(
        since="0.3",
        removal="0.5",
        positions=(
            "blocks",
            "overlap",
            "inner",
            "restricted",
        ),
        renamed={"local": "inner"},
    )

    def __init__(
        self,
        A: Any,
        *,
        blocks: int | None = None,
        overlap: int = 1,
        inner: Any = "ilu",
        restricted: bool = True,
        executor: Executor | str | None = None,
    ) -> None:
        self.blocks = None if blocks is None else whole_number(blocks, "blocks", 1)
        self.overlap = whole_number(overlap, "overlap")
        self.inner, self.restricted = inner, bool(restricted)
        super().__init__(A, executor=executor)

    # ---- set-up

    def _setup(self, A: Matrix) -> None:
        executor = self.executor
        S: Csr = A.asformat("csr").without_duplicates()
        pattern, rows, own, count = _overlapping(S, self.blocks, self.overlap)
        self._places = executor.from_host(pattern.data.astype(np.int64) - 1)
        index = S.index_dtype
        self.blocks_matrix = Csr._from_arrays(
            executor,
            pattern.shape,
            S.data[self._places],
            executor.from_host(pattern.indices.astype(index)),
            executor.from_host(pattern.indptr.astype(index)),
        )
        self.spread, self.sum = _there_and_back(S, rows, own, self.restricted)
        self.local_inverse = self._make_local_inverse()
        self.notes.append(
            f"schwarz: {count} blocks, {rows.size - A.shape[0]} rows in more than one of them"
        )
        self.notes += getattr(self.local_inverse, "notes", [])
        self._temporaries = Temporary(), Temporary()

    def _make_local_inverse(self) -> LinOp:
        made = preconditioner(self.inner, self.blocks_matrix)
        if made is None or not hasattr(made, "_apply"):
            raise InvalidArgument(
                f"inner: expected the name or the settings of a preconditioner or a solver, got "
                f"{self.inner!r}"
            )
        return as_preconditioner(made, self.blocks_matrix)

    def _refresh(self, A: Matrix) -> None:
        """Update to new values; the positions of the blocks are kept, and local solvers updated."""
        S: Csr = A.asformat("csr").without_duplicates()
        if self._places is None:
            self._setup(S)
            return
        restore = savepoint([self.blocks_matrix, self.local_inverse])
        try:
            self.blocks_matrix.update_values(S.data[self._places])
            self.local_inverse.update()  # type: ignore[attr-defined]
            self._require_finite()
        except BaseException:  # also Ctrl-C: a failed update leaves no partial changes
            restore()
            raise
        self.notes += getattr(self.local_inverse, "notes", [])
        self._refreshed = object()  # loops with constants of the local inverse are recorded again

    # ---- applying

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        rows, k = self.blocks_matrix.shape[0], x.shape[1]
        first, second = self._temporaries
        with (
            first.block(self.executor, rows, k, self.dtype) as t,
            second.block(self.executor, rows, k, self.dtype) as z,
        ):
            self.spread._apply(x, t, 1.0, 0.0)
            self.local_inverse._apply(t, z, 1.0, 0.0)
            self.sum._apply(z, y, alpha, beta)

    # ---- moving

    def _remade(self, change: Callable[[LinOp], LinOp]) -> Self:
        result = super()._remade(change)
        if result.executor != self.executor:
            result._places = None
        return result

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_places": None}  # recomputed when values change

    def _turned(self, turn: Callable[[LinOp], LinOp]) -> Self:
        result = self._remade(turn)
        result.spread, result.sum = result.sum, result.spread
        result._places = None
        return result


def _overlapping(
    S: Csr, blocks: int | None, overlap: int
) -> tuple[Any, np.ndarray[Any, Any], np.ndarray[Any, Any], int]:
    """Return the positions of all blocks' entries, their rows, own rows, and number of blocks.

    The values of the position matrix are positions plus 1, so that none is 0.
    """
    from scipy.sparse import block_diag, csr_array

    n = S.shape[0]
    count = min(max(-(-n // ROWS_OF_BLOCK), 1) if blocks is None else blocks, max(n, 1))
    indptr, indices = (np.asarray(S.executor.to_host(a)) for a in (S.indptr, S.indices))
    numbers = csr_array((np.arange(1.0, indices.size + 1), indices, indptr), shape=S.shape)
    cuts = np.linspace(0, n, count + 1).astype(np.int64)
    parts, rows, own = [], [], []
    for begin, end in pairwise(cuts.tolist()):
        inside = np.zeros(n, bool)
        inside[begin:end] = True
        for _ in range(overlap):
            inside[numbers[np.flatnonzero(inside)].indices] = True
        (mine,) = np.nonzero(inside)
        parts.append(numbers[mine][:, mine])
        rows.append(mine)
        own.append((mine >= begin) & (mine < end))
    whole = csr_array(block_diag(parts, format="csr")) if n else numbers
    whole.sort_indices()
    return whole, np.concatenate(rows), np.concatenate(own), count


def _there_and_back(
    S: Csr, rows: np.ndarray[Any, Any], is_own_row: np.ndarray[Any, Any], restricted: bool
) -> tuple[Csr, Csr]:
    """Return the operator that restricts a vector to all blocks, and the prolongation."""
    from scipy.sparse import csr_array

    count, n = rows.size, S.shape[0]
    there = csr_array((np.ones(count, S.dtype), rows, np.arange(count + 1)), shape=(count, n))
    (kept,) = np.nonzero(is_own_row) if restricted else (np.arange(count),)
    entries = np.ones(kept.size, S.dtype), (rows[kept], kept)
    back = csr_array(entries, shape=(n, count))
    return tuple(Csr(M, executor=S.executor) for M in (there, back))  # type: ignore[return-value]
