"""Block Jacobi: the inverses of diagonal blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.deprecation import OldOptions
from ...core.errors import InvalidMatrix
from ...core.factors import whole_number
from ...core.formats import Bsr, Csr, Matrix
from ...core.linop import LinOp
from .base import RecordedRefresh, Transposable, require_finite
from .block_storage import DiagonalBlocks, stored_by_condition
from .factors import row_of_entries
from .isai import RecordedRows

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...core.executor import Array, Executor

#: Upper bound of the rows of a block: the inverse of a larger block costs more than it saves.
LARGEST = 32

#: The value of ``storage`` that selects a precision for each block by its condition number.
ADAPTIVE = "adaptive"


class BlockJacobi(Transposable):
    """The inverses of square diagonal blocks.

    Parameters
    ----------
    A : matrix, shape (n, n)
        A matrix of any format.
    size : int, optional
        Upper bound of the rows of a block, up to 32. Adjacent rows with one pattern (for instance
        the unknowns of a node) form a block; adjacent blocks are merged up to this size. By default
        they are not merged; a ``Bsr`` with square blocks keeps its own.
    storage : {"adaptive"} or dtype, optional
        The storage dtype of the inverses, if it is lower than the precision in which they are
        computed and applied: a dtype such as ``"float32"`` for all, or for each block the lowest of
        float16, bfloat16 and float32 that keeps two digits of its inverse, by its condition number.
        By default, they are not rounded.

    Raises
    ------
    InvalidMatrix
        If a block has no inverse (the message names its first row), or if the matrix has NaN or
        Inf.
    InvalidArgument
        If ``size`` is not between 1 and 32.
    UnsupportedDtype
        If values of the matrix's dtype are not stored in ``storage``.

    Notes
    -----
    The inverses form a matrix: ``Bsr`` if all blocks have the same size, else ``Csr``. It is
    Hermitian positive definite if ``A`` is. With ``storage``, it is a sum of CSR matrices, one for
    each dtype, each multiplied by its blocks; ``bfloat16`` needs the package ml_dtypes.

    References
    ----------
    Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., SIAM 2003, section 12.2; E. Chow
    and J. Scott, On the use of iterative methods and blocking for solving sparse triangular systems
    in incomplete factorization preconditioning, RAL-P-2016-006, for blocks from the pattern; H.
    Anzt, J. Dongarra, G. Flegar, N. J. Higham and E. S. Quintana-Orti, Adaptive precision in
    block-Jacobi preconditioning for iterative sparse linear system solvers, Concurr. Comput. Pract.
    Exp. 31 (2019), for ``storage="adaptive"``.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 4.0]]))
    >>> wl.preconditioners.BlockJacobi(A) @ np.array([3.0, 3.0, 4.0])
    array([1., 1., 1.])
    """

    parts = ("inverse",)
    over_groups = "block"

    inverse: LinOp
    _starts: np.ndarray[Any, Any]

    old_options = OldOptions(
        since="0.3",
        removal="0.5",
        positions=(
            "size",
            "storage",
        ),
    )

    def __init__(
        self,
        A: Any,
        *,
        size: int | None = None,
        storage: Any = None,
        executor: Executor | str | None = None,
    ) -> None:
        self.size = None if size is None else whole_number(size, "size", 1, LARGEST)
        self.storage = storage
        super().__init__(A, executor=executor)

    #: Positions of the blocks' entries; None after a move, until they are needed.
    _gathers: Gathers | None

    def _setup(self, A: Matrix) -> None:
        S: Csr = A.asformat("csr").without_duplicates()
        self._starts = _blocks(A, S, self.size)
        self._gathers = Gathers.of(S, self._starts)
        sizes = np.diff(self._starts)
        if sizes.size:
            self.notes.append(
                f"block jacobi: {sizes.size} blocks of {sizes.min()} to {sizes.max()} rows"
            )
        self.inverse = self._inverses(S)

    def _refresh(self, A: Matrix) -> None:
        """Invert the blocks of the new values; their positions are kept."""
        S: Csr = A.asformat("csr").without_duplicates()
        if self._gathers is None or not self._gathers.fits(S):
            self._gathers = Gathers.of(S, self._starts)
        made, old = self._inverses(S), self.inverse
        require_finite(made, "BlockJacobi")
        together = isinstance(made, Matrix) and isinstance(old, Matrix)
        if together and made.data.dtype == old.data.dtype:  # type: ignore[attr-defined]
            old.update_values(made.data)  # type: ignore[attr-defined]
        else:  # the precision of blocks may have changed
            self.inverse = made

    @property
    def _follows_exactly(self) -> bool:
        return True

    def _recorded_refresh(self, A: Matrix) -> RecordedRefresh | None:
        """Return the operations that invert all blocks in place: a small system for each row."""
        inverse, starts = self.inverse, self._starts
        if not isinstance(A, Csr) or A.dtype != self.dtype or self.storage is not None:
            return None
        if A.without_duplicates().data is not A.data or not isinstance(inverse, (Bsr, Csr)):
            return None
        if isinstance(inverse, Csr) and inverse.plan.algorithm.copies:
            return None
        executor, sizes = A.executor, np.diff(starts)
        lengths = np.repeat(sizes, sizes)
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        first = np.repeat(np.repeat(starts[:-1], sizes), lengths)
        columns = first + np.arange(indptr[-1]) - np.repeat(indptr[:-1], lengths)
        arrays = (executor.from_host(a.astype(A.index_dtype)) for a in (columns, indptr))
        values = inverse.data.reshape(-1)
        solve = RecordedRows(A, Csr._from_arrays(executor, A.shape, values, *arrays), values)
        return RecordedRefresh(solve.run, solve.failures)

    def _inverses(self, S: Csr) -> LinOp:
        assert self._gathers is not None
        result, blocks = _inverted(S, self._starts, self._gathers, by_rows=self.storage is not None)
        if self.storage is None or not isinstance(result, Csr):
            return result
        if not isinstance(self.storage, str) or self.storage != ADAPTIVE:
            return result.stored(self.storage)
        stored, note = stored_by_condition(result, blocks, self._starts)
        self.notes.append(note)
        return stored

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        self.inverse._apply(x, y, alpha, beta)

    def _remade(self, change: Callable[[LinOp], LinOp]) -> BlockJacobi:
        result = super()._remade(change)
        result._gathers = None  # the positions belong to the old matrix on its executor
        return result

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_gathers": None}  # recomputed when values change


# ---- the positions of the blocks


def _blocks(A: Matrix, S: Csr, size: int | None) -> np.ndarray[Any, Any]:
    """Return the first rows of all blocks, and the number of rows."""
    n = A.shape[0]
    if n == 0:
        return np.zeros(1, np.int64)
    if isinstance(A, Bsr) and A.blocksize[0] == A.blocksize[1] <= LARGEST:
        natural = np.arange(0, n + 1, A.blocksize[0])
    else:
        natural = _runs(_like_the_next(S), n)
    return natural if size is None else _joined(natural, size)


def _like_the_next(S: Csr) -> np.ndarray[Any, Any]:
    """Return on the host, for each row but the last, whether the next row has its pattern."""
    n = S.shape[0]
    if n < 2:
        return np.zeros(0, bool)
    executor, xp = S.executor, S.executor.xp
    lengths = S.indptr[1:] - S.indptr[:-1]
    alike = lengths[1:] == lengths[:-1]
    rows = row_of_entries(S)
    # the entry below each entry, if the next row has the same length; the last rows have none
    last = max(S.nnz - 1, 0)
    below = xp.minimum(xp.arange(S.nnz, dtype=np.int64) + lengths[rows], last)
    differs = (S.indices != S.indices[below]).astype(np.int64)
    counts = xp.concatenate([xp.zeros(1, dtype=np.int64), xp.cumsum(differs)])
    in_row = counts[S.indptr[1:]] - counts[S.indptr[:-1]]
    return np.asarray(executor.to_host(alike & (in_row[:-1] == 0) & (lengths[:-1] > 0)))


def _runs(like_the_next: np.ndarray[Any, Any], n: int) -> np.ndarray[Any, Any]:
    """Return the first rows of runs with one pattern, cut into pieces of at most 32 rows."""
    begins = np.flatnonzero(np.concatenate([[True], ~like_the_next]))
    ends = np.append(begins[1:], n)
    if np.all(ends - begins <= LARGEST):
        return np.append(begins, n)
    pieces = [np.arange(begin, end, LARGEST) for begin, end in zip(begins, ends, strict=True)]
    return np.append(np.concatenate(pieces), n)


def _joined(starts: np.ndarray[Any, Any], size: int) -> np.ndarray[Any, Any]:
    """Return blocks that are merged, or cut, to at most ``size`` rows."""
    joined = [0]
    for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        if end - joined[-1] <= size:
            continue
        if begin > joined[-1]:
            joined.append(begin)
        while end - joined[-1] > size:  # a block is larger than requested
            joined.append(joined[-1] + size)
    return np.array([*joined, starts[-1]])


# ---- their inverses


class BlockGather(NamedTuple):
    """Blocks of one size: their indices, and the positions of their entries."""

    which: np.ndarray[Any, Any]
    entries: Array
    places: Array


class Gathers(NamedTuple):
    """The positions of the entries of all blocks, by size, and the pattern they belong to."""

    indptr: Array
    indices: Array
    by_size: dict[int, BlockGather]

    @classmethod
    def of(cls, S: Csr, starts: np.ndarray[Any, Any]) -> Gathers:
        """Find the positions for a matrix without duplicates and blocks with these first rows."""
        executor, xp = S.executor, S.executor.xp
        sizes = np.diff(starts)
        rows = row_of_entries(S)
        block_of_row = executor.from_host(np.repeat(np.arange(sizes.size), sizes))
        first = executor.from_host(starts)
        inside = xp.flatnonzero(block_of_row[rows] == block_of_row[S.indices])
        rows, columns = rows[inside], S.indices[inside]
        blocks = block_of_row[rows]
        found = {}
        for size in np.unique(sizes).tolist():
            which = np.flatnonzero(sizes == size)
            place = executor.from_host(_places(which, sizes.size))
            mine = place[blocks] >= 0
            b = blocks[mine]
            places = (place[b] * size + rows[mine] - first[b]) * size + columns[mine] - first[b]
            found[size] = BlockGather(which, inside[mine], places)
        return cls(S.indptr, S.indices, found)

    def fits(self, S: Csr) -> bool:
        """Return whether a matrix on the same executor has the pattern of these positions."""
        xp = S.executor.xp
        mine, others = (self.indptr, self.indices), (S.indptr, S.indices)
        return all(
            a is b or (a.shape == b.shape and bool(xp.all(a == b)))
            for a, b in zip(mine, others, strict=True)
        )


def _inverted(
    S: Csr, starts: np.ndarray[Any, Any], gathers: Gathers, *, by_rows: bool
) -> tuple[Matrix, dict[int, DiagonalBlocks]]:
    """Return the inverses of the blocks as a matrix, and by size as dense arrays.

    The matrix is ``Bsr`` if all blocks have one size, unless ``Csr`` was requested.
    """
    executor, xp = S.executor, S.executor.xp
    sizes = np.diff(starts)
    if not bool(xp.all(xp.isfinite(S.data))):
        raise InvalidMatrix("BlockJacobi: the matrix has NaN or Inf")
    made: dict[int, DiagonalBlocks] = {}
    for size, (which, entries, places) in gathers.by_size.items():
        dense = xp.zeros((which.size, size, size), dtype=S.dtype)
        dense.reshape(-1)[places] = S.data[entries]
        made[size] = DiagonalBlocks(which, dense, _inverse(xp, executor, dense, starts[which]))
    if len(made) == 1 and sizes.size and not by_rows:
        size, (_, _, inverse) = next(iter(made.items()))
        if size > 1:
            numbers = xp.arange(sizes.size + 1, dtype=S.index_dtype)
            return Bsr._from_arrays(executor, S.shape, inverse, numbers[:-1], numbers), made
    return _by_rows(S, starts, sizes, made), made


def _places(which: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
    place = np.full(count, -1)
    place[which] = np.arange(which.size)
    return place


def _inverse(xp: Any, executor: Executor, dense: Array, first_rows: np.ndarray[Any, Any]) -> Array:
    """Return the inverses of blocks of one size."""
    try:
        inverse = xp.linalg.inv(dense)
        if bool(xp.all(xp.isfinite(inverse))):
            return inverse
    except np.linalg.LinAlgError:
        pass
    host = np.asarray(executor.to_host(dense))
    ranks = np.linalg.matrix_rank(host)
    worst = int(np.argmin(ranks))
    raise InvalidMatrix(
        f"BlockJacobi: the block of {host.shape[1]} rows from row {first_rows[worst]} on has no "
        "inverse: choose another size, or another preconditioner"
    )


def _by_rows(
    S: Csr,
    starts: np.ndarray[Any, Any],
    sizes: np.ndarray[Any, Any],
    blocks_by_size: dict[int, DiagonalBlocks],
) -> Csr:
    """Return blocks of several sizes as a CSR matrix, block after block."""
    executor, xp = S.executor, S.executor.xp
    offsets = np.concatenate([[0], np.cumsum(sizes.astype(np.int64) ** 2)])
    data = xp.zeros(int(offsets[-1]), dtype=S.dtype)
    for size, (which, _, inverse) in blocks_by_size.items():
        at = executor.from_host(offsets[which][:, None] + np.arange(size * size))
        data[at.reshape(-1)] = inverse.reshape(-1)
    lengths = np.repeat(sizes, sizes)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(S.index_dtype)
    begins = np.repeat(starts[:-1], sizes)  # the first column of every row
    within = np.arange(indptr[-1]) - np.repeat(indptr[:-1], lengths)
    indices = (np.repeat(begins, lengths) + within).astype(S.index_dtype)
    return Csr._from_arrays(
        executor, S.shape, data, executor.from_host(indices), executor.from_host(indptr)
    )
