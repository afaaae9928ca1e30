"""Jacobi: the inverse of the diagonal."""

from __future__ import annotations

from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import InvalidArgument, InvalidMatrix
from ...core.formats import Diagonal, Matrix
from ...core.operations import facts
from ...core.operations import matrix as matrix_operations
from ...core.wording import named_rows
from .base import Preconditioner, RecordedRefresh

if TYPE_CHECKING:
    from ...core.executor import Array, Executor


class Jacobi(Preconditioner):
    """The inverse of the diagonal.

    Parameters
    ----------
    A : matrix, shape (n, n)
        A matrix of any format.
    replacement : number, optional
        The value of ``M`` where the diagonal has no inverse; ``notes`` count such rows. By default,
        such a diagonal is refused.

    Raises
    ------
    InvalidMatrix
        If the diagonal has a value without an inverse (a zero, one that is not finite, or one so
        small that its inverse overflows) and there is no replacement; names the row.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> wl.preconditioners.Jacobi(wl.Csr(np.array([[4.0, 1.0], [1.0, 2.0]]))) @ np.ones(2)
    array([0.25, 0.5 ])
    >>> A = wl.Csr(np.array([[4.0, 1.0], [1.0, 0.0]]))
    >>> M = wl.preconditioners.Jacobi(A, replacement=1.0)
    >>> M @ np.ones(2), M.notes
    (array([0.25, 1.  ]), ['1 value of the diagonal has no inverse: 1.0 is used there'])
    """

    parts = ("inverse",)
    over_groups = "block"

    inverse: Diagonal
    #: Number of diagonal values without an inverse.
    replaced: int

    def __init__(
        self,
        A: Any,
        *,
        replacement: float | complex | None = None,
        executor: Executor | str | None = None,
    ) -> None:
        number = isinstance(replacement, Number)
        if replacement is not None and not (number and 0 < abs(replacement) < np.inf):
            raise InvalidArgument(
                f"replacement: expected a finite number that is not 0, got {replacement!r}"
            )
        self.replacement = replacement
        super().__init__(A, executor=executor)

    def _setup(self, A: Matrix) -> None:
        if isinstance(self.replacement, complex) and A.dtype.kind != "c":
            raise InvalidArgument(
                f"replacement: {self.replacement} does not fit a {A.dtype} matrix"
            )
        self.inverse = self._inverted(A)

    def _refresh(self, A: Matrix) -> None:
        self.inverse.update_values(self._inverted(A).data)

    @property
    def _follows_exactly(self) -> bool:
        return True

    def _recorded_refresh(self, A: Matrix) -> RecordedRefresh | None:
        """Return the two operations that invert the diagonal in place."""
        if A.format != "csr" or A.dtype != self.dtype or not A.shape[0]:
            return None
        executor, n = A.executor, A.shape[0]
        d = executor.zeros((n,), A.dtype)
        replaced, positive = executor.zeros((1,), np.int64), executor.zeros((1,), np.int64)
        failures = executor.zeros((1,), np.int64) if self.replacement is not None else replaced
        missing = 1.0 if self.replacement is None else self.replacement
        columns = [array.reshape(n, 1) for array in (d, self.inverse.data)]

        def body() -> None:
            executor.run(matrix_operations.csr_diagonal, A, d)
            executor.run(facts.diagonal, *columns, missing, replaced, positive)

        return RecordedRefresh(body, failures)

    def _require_finite(self) -> None:
        """Do nothing: every value of the inverse was checked."""

    def _inverted(self, A: Matrix) -> Diagonal:
        inverse, self.replaced = inverted(A, "Jacobi", self.replacement)
        if self.replaced:
            some = "1 value" if self.replaced == 1 else f"{self.replaced} values"
            verb = "has" if self.replaced == 1 else "have"
            self.notes.append(
                f"{some} of the diagonal {verb} no inverse: {self.replacement} is used there"
            )
        return inverse

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        self.inverse._apply(x, y, alpha, beta)

    @property
    def _row_factors(self) -> Array | None:
        """The inverse of the diagonal, unless a subclass applies more than it."""
        return self.inverse._row_factors if type(self)._apply is Jacobi._apply else None

    @property
    def T(self) -> Jacobi:
        """The inverse of the transpose's diagonal: the same."""
        return self

    @property
    def H(self) -> Jacobi:
        """The inverse of the diagonal of the conjugate transpose."""
        return self._remade(lambda part: part.H)


def inverse_diagonal(A: Matrix, caller: str) -> Diagonal:
    """Return the inverse of the diagonal, computed on the matrix's executor.

    Raises
    ------
    InvalidMatrix
        If a value has no inverse; the message names ``caller``.
    """
    return inverted(A, caller, None)[0]


def count_without_inverse(
    A: Matrix, count: Array, replacement: complex = 1.0
) -> tuple[Array, Array]:
    """Return the diagonal and its inverse; count the values without one in ``count``."""
    executor, n = A.executor, A.local_rows
    d, inverse = A.diagonal(), executor.allocate((n,), A.dtype)
    if n:
        columns = (array.reshape(n, 1) for array in (d, inverse))
        positive = executor.zeros((1,), np.int64)
        executor.run(facts.diagonal, *columns, replacement, count, positive)
    return d, inverse


def inverted(A: Matrix, caller: str, replacement: complex | None) -> tuple[Diagonal, int]:
    """Return the inverse of the diagonal, and the number of replaced values.

    Raises
    ------
    InvalidMatrix
        If a value has no inverse and there is no replacement; the message names ``caller``.
    """
    executor, n = A.executor, A.local_rows
    replaced = executor.zeros((1,), np.int64)
    d, inverse = count_without_inverse(A, replaced, 1.0 if replacement is None else replacement)
    count = int(executor.to_host(replaced)[0])
    if replacement is None:
        require_inverse(A, caller, d, count)
    return Diagonal._from_arrays(executor, (n, n), inverse), count


def require_inverse(A: Matrix, caller: str, d: Array, count: int) -> None:
    """Raise InvalidMatrix, which names ``caller``, if diagonal values have no inverse.

    Parameters
    ----------
    d : array
        The diagonal of ``A``.
    count : int
        Number of its values without an inverse.
    """
    if count:
        values = A.executor.to_host(d)  # copied in full, to name the rows
        with np.errstate(all="ignore"):
            bad = np.flatnonzero(~(np.isfinite(values) & np.isfinite(1 / values)))
        rows = named_rows(bad.tolist())
        raise InvalidMatrix(
            f"{caller}: the diagonal has {values[bad[0]]} in {rows}; reorder the matrix or use "
            "another preconditioner, such as Jacobi(replacement=1.0)"
        )
