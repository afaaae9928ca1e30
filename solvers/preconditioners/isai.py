"""Incomplete sparse approximate inverses: set-up and application in parallel over all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.deprecation import OldOptions
from ...core.dtypes import is_complex
from ...core.errors import InvalidMatrix
from ...core.factors import whole_number
from ...core.formats import Csr, Matrix
from ...core.formats.arithmetic import add, matmul
from ...core.formats.rowwise import with_index_dtype
from ...core.lazy import Temporary
from ...core.operations import isai
from ...core.small_values import as_dtype, entry_products, not_flushed
from .base import (
    Preconditioner,
    RecordedRefresh,
    Transposable,
    adjoint,
    require_finite,
    transposed,
    update_all,
)
from .factors import identity, row_of_entries, selected_entries

if TYPE_CHECKING:
    from ...core.executor import Array, Executor

#: Upper bound of the entries in a row of the inverse: the small systems cost its cube.
MOST_ENTRIES = 64

#: Upper bound in bytes of the small systems that are solved together.
WORK_BYTES = 1 << 27


class Isai(Transposable):
    """An approximate inverse of the matrix on the pattern of one of its powers.

    Row ``i`` of ``M`` satisfies ``(M A)_ij = 1 if i == j else 0`` for all ``j`` in its pattern: a
    small system for each row. Set-up and application run in parallel over all rows, on every
    executor.

    Parameters
    ----------
    A : matrix, shape (n, n)
        Any square matrix.
    power : int
        The pattern of ``A ** power`` and the diagonal: more entries, fewer iterations.

    Raises
    ------
    InvalidMatrix
        If the matrix has NaN or Inf.
    InvalidArgument
        If ``power`` is not at least 1.

    Notes
    -----
    A row keeps at most its 64 largest entries. If the small system of a row is singular, the row is
    taken from Jacobi or the identity, and ``notes`` count such rows. The inverse of a Hermitian
    matrix is not Hermitian in general; :class:`Fsai` is, for CG.

    References
    ----------
    H. Anzt, T. K. Huckle, J. Braeckle and J. Dongarra, Incomplete sparse approximate inverses for
    parallel preconditioning, Parallel Computing 71 (2018).

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0], [2.0, 3.0]]))
    >>> A @ (wl.preconditioners.Isai(A) @ np.ones(2))
    array([1., 1.])
    """

    parts = ("inverse",)
    _turns = (transposed, adjoint)

    inverse: Csr
    #: Whether no row was truncated to its largest entries.
    _has_all_entries: bool

    old_options = OldOptions(since="0.3", removal="0.5", positions=("power",))

    def __init__(self, A: Any, *, power: int = 1, executor: Executor | str | None = None) -> None:
        self.power = whole_number(power, "power", 1)
        super().__init__(A, executor=executor)

    def _setup(self, A: Matrix) -> None:
        S = _checked(A, "Isai")
        pattern, shortened = _shortened(powers(S, self.power))
        data, singular = inverted_rows(S, pattern)
        self.inverse = pattern._with_data(data)
        self._has_all_entries = not shortened
        self._note(pattern, shortened, singular)

    def _refresh(self, A: Matrix) -> None:
        """Solve the small systems again; the pattern is kept."""
        data, singular = inverted_rows(_checked(A, "Isai"), self.inverse)
        require_finite(self.inverse._with_data(data), "Isai")
        self.inverse.update_values(data)
        self._note(self.inverse, 0, singular)

    @property
    def _follows_exactly(self) -> bool:
        return self._has_all_entries

    def _recorded_refresh(self, A: Matrix) -> RecordedRefresh | None:
        """Return the operations that solve all small systems again, in place."""
        inverse = self.inverse
        if not self._has_all_entries or inverse.plan.algorithm.copies:
            return None
        if not isinstance(A, Csr) or A.dtype != self.dtype:
            return None
        if A.without_duplicates().data is not A.data or not A.shape[0]:
            return None
        solve = RecordedRows(A, inverse, inverse.data)
        return RecordedRefresh(solve.run, solve.failures)

    def _note(self, pattern: Csr, shortened: int, singular: int) -> None:
        self.notes += inverse_notes("isai", pattern.nnz, shortened, singular)

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        self.inverse._apply(x, y, alpha, beta)


class Fsai(Preconditioner):
    """A factorized approximate inverse ``G^H G`` of a Hermitian positive definite matrix.

    ``G`` is lower triangular and approximates the inverse of the Cholesky factor, on the pattern of
    the lower triangle of a power of the matrix. It is suitable for CG.

    Parameters
    ----------
    A : matrix, shape (n, n)
        Hermitian positive definite.
    power : int
        ``G`` has the pattern of the lower triangle of ``A ** power``.

    Raises
    ------
    InvalidMatrix
        If the matrix turns out not to be positive definite, or has NaN or Inf.
    InvalidArgument
        If ``power`` is not at least 1.

    References
    ----------
    L. Yu. Kolotilina and A. Yu. Yeremin, Factorized sparse approximate inverse preconditionings I,
    SIAM J. Matrix Anal. Appl. 14 (1993).

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0], [1.0, 4.0]]))
    >>> wl.solvers.Cg(A, M="fsai").solve(np.array([1.0, 2.0])).iterations
    1
    """

    parts = ("factor", "adjoint")

    factor: Csr
    adjoint: Csr

    old_options = OldOptions(since="0.3", removal="0.5", positions=("power",))

    def __init__(self, A: Any, *, power: int = 1, executor: Executor | str | None = None) -> None:
        self.power = whole_number(power, "power", 1)
        super().__init__(A, executor=executor)

    def _setup(self, A: Matrix) -> None:
        S = _checked(A, "Fsai")
        whole = powers(S, self.power)
        below = whole.indices <= row_of_entries(whole)
        pattern, shortened = _shortened(selected_entries(whole, below, whole.data))
        self.factor = pattern._with_data(self._rows(S, pattern))
        self.adjoint = _adjoint(self.factor)
        self.notes += inverse_notes("fsai", pattern.nnz, shortened, 0)
        self._temporary = Temporary()

    def _refresh(self, A: Matrix) -> None:
        """Solve the small systems again; the pattern is kept."""
        data = self._rows(_checked(A, "Fsai"), self.factor)
        adjoint = _adjoint(self.factor._with_data(data))
        made = (self.factor, self.factor._with_data(data)), (self.adjoint, adjoint)
        update_all(made, self._require_finite)
        self.notes += inverse_notes("fsai", self.factor.nnz, 0, 0)

    def _rows(self, S: Csr, pattern: Csr) -> Array:
        """Return the rows of G: rows of the inverse, divided by the root of their diagonal."""
        xp = S.executor.xp
        data, singular = inverted_rows(S, pattern)
        rows = row_of_entries(pattern)
        own = not_flushed(S.executor, data[rows == pattern.indices])
        real = xp.real(own)
        fine = xp.isfinite(real) & (real > 0)
        if is_complex(S.dtype):
            fine = fine & (xp.abs(xp.imag(own)) <= 1e3 * np.finfo(S.dtype).eps * xp.abs(real))
        if singular or not bool(xp.all(fine)):
            raise InvalidMatrix(
                "Fsai: the matrix is not Hermitian positive definite: use Isai, with gmres or "
                "bicgstab"
            )
        scale = as_dtype(S.executor, 1.0 / xp.sqrt(real), S.dtype)
        return entry_products(S.executor, data, scale[rows])

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        n, k = x.shape
        with self._temporary.block(self.executor, n, k, self.dtype) as t:
            self.factor._apply(x, t, 1.0, 0.0)
            self.adjoint._apply(t, y, alpha, beta)

    @property
    def T(self) -> Fsai:
        """The inverse of the transpose: the conjugate."""
        return self._remade(_conjugate) if is_complex(self.dtype) else self

    @property
    def H(self) -> Fsai:
        """The inverse of the conjugate transpose: the same."""
        return self


# ---- patterns


def powers(S: Csr, power: int) -> Csr:
    """Return a matrix with the pattern of a power, sorted and with its diagonal.

    Its values come from the matrix, and are positive elsewhere.
    """
    xp = S.executor.xp
    whole = add(S, identity(S), 1.0, 0.0)
    pattern = whole._with_data(xp.ones(whole.nnz, dtype=S.dtype))
    wide = pattern
    for _ in range(power - 1):
        wide = matmul(wide, pattern)
        wide = wide._with_data(xp.ones(wide.nnz, dtype=S.dtype))
    return whole if power == 1 else add(wide, whole, 0.0, 1.0)


def _checked(A: Matrix, caller: str) -> Csr:
    S: Csr = A.asformat("csr").without_duplicates()
    if not bool(S.executor.xp.all(S.executor.xp.isfinite(S.data))):
        raise InvalidMatrix(f"{caller}: the matrix has NaN or Inf")
    return S


def _shortened(A: Csr) -> tuple[Csr, int]:
    """Return a pattern with the largest entries of each row, and the number of shortened rows."""
    xp = A.executor.xp
    lengths = A.indptr[1:] - A.indptr[:-1]
    long = int(xp.sum(lengths > MOST_ENTRIES)) if A.shape[0] else 0
    if not long:
        return A, 0
    rows = row_of_entries(A)
    size = xp.where(rows == A.indices, np.inf, xp.abs(not_flushed(A.executor, A.data)))
    order = xp.argsort(-size, kind="stable")
    order = order[xp.argsort(rows[order], kind="stable")]
    rank = xp.arange(A.nnz, dtype=np.int64) - A.indptr[rows[order]]
    keep = xp.zeros(A.nnz, dtype=bool)
    keep[order] = rank < MOST_ENTRIES
    return selected_entries(A, keep, A.data), long


def inverse_notes(name: str, entries: int, shortened: int, singular: int) -> list[str]:
    """Return the notes on an approximate inverse."""
    notes = [f"{name}: {entries} entries"]
    if shortened:
        notes.append(f"{name}: {shortened} rows have their {MOST_ENTRIES} largest entries alone")
    if singular:
        notes.append(
            f"{name}: the systems of {singular} rows have no inverse: the diagonal's is used"
        )
    return notes


def _conjugate(part: Any) -> Any:
    """Return the conjugate of a factor."""
    return part.conj()


def _adjoint(G: Csr) -> Csr:
    made: Csr = G.transpose()
    return made.conj() if is_complex(G.dtype) else made


# ---- rows of inverses


def inverted_rows(S: Csr, pattern: Csr) -> tuple[Array, int]:
    """Return the values of an approximate inverse on a pattern, and the rows that have none.

    Parameters
    ----------
    S : Csr, shape (n, n)
        Rows sorted, without duplicates.
    pattern : Csr, shape (n, n)
        Rows sorted, with their diagonal.
    """
    executor = S.executor
    w = executor.allocate((pattern.nnz,), S.dtype)
    singular, total = executor.zeros((1,), np.int64), 0
    pattern = with_index_dtype(pattern, S.index_dtype)
    S = with_index_dtype(S, pattern.index_dtype)
    lengths = np.diff(np.asarray(executor.to_host(pattern.indptr)))
    classes = np.ceil(np.log2(np.maximum(lengths, 1)))
    for size in np.unique(classes):
        rows = np.flatnonzero(classes == size).astype(S.index_dtype)
        width = int(lengths[rows].max())
        together = max(1, WORK_BYTES // (S.dtype.itemsize * width * (width + 1)))
        for begin in range(0, rows.size, together):
            part = executor.from_host(rows[begin : begin + together])
            count = int(part.shape[0])
            work = executor.zeros((width * (width + 1) * count,), S.dtype)
            arrays = (part, pattern.indptr, pattern.indices, S.indptr, S.indices, S.data)
            executor.run(isai.general, *arrays, width, count, work, w, singular)
            total += int(executor.to_host(singular)[0])
    return w, total


class RecordedRows:
    """The small systems of all rows, solved by operations of the executor alone.

    Parameters
    ----------
    S : Csr, shape (n, n)
        Rows sorted, without duplicates; its values change between two runs.
    pattern : Csr, shape (n, n)
        Rows sorted, with their diagonal.
    w : array, shape (nnz,)
        The values on the pattern.

    Attributes
    ----------
    failures : array of int64
        Counts of rows without an inverse. Further tests distinguish NaN from singular systems.
    """

    def __init__(self, S: Csr, pattern: Csr, w: Array) -> None:
        executor = self.executor = S.executor
        typed = with_index_dtype(pattern, S.index_dtype)
        typed_S = with_index_dtype(S, typed.index_dtype)
        lengths = np.diff(np.asarray(executor.to_host(typed.indptr)))
        classes = np.ceil(np.log2(np.maximum(lengths, 1)))
        sizes = np.unique(classes)
        self.failures = executor.zeros((sizes.size,), np.int64)
        arrays = (typed.indptr, typed.indices, typed_S.indptr, typed_S.indices, S.data)
        self.calls: list[tuple[Any, ...]] = []
        for k, size in enumerate(sizes):
            rows = np.flatnonzero(classes == size).astype(typed_S.index_dtype)
            width, count = int(lengths[rows].max()), int(rows.size)
            work = executor.zeros((width * (width + 1) * count,), S.dtype)
            part = executor.from_host(rows)
            self.calls.append((part, *arrays, width, count, work, w, self.failures[k : k + 1]))

    def run(self) -> None:
        """Solve the systems for the current values."""
        for call in self.calls:
            self.executor.run(isai.general, *call)


def pattern_of_inverse(N: Csr, power: int) -> Csr:
    """Return the pattern of an approximate inverse of ``I - N``, with zeros for values."""
    made = powers(N, power)
    return made._with_data(N.executor.zeros((made.nnz,), N.dtype))


def inverted_triangle(N: Csr, pattern: Csr, *, upper: bool) -> Array:
    """Return the inverse of ``I - N`` on a pattern, for ``N`` strictly triangular."""
    executor = N.executor
    w = executor.allocate((pattern.nnz,), N.dtype)
    pattern = with_index_dtype(pattern, N.index_dtype)
    N = with_index_dtype(N, pattern.index_dtype)
    rows = executor.xp.arange(N.shape[0], dtype=N.index_dtype)
    arrays = (rows, pattern.indptr, pattern.indices, N.indptr, N.indices, N.data)
    executor.run(isai.triangle, *arrays, int(upper), w)
    return w
