"""Successive over-relaxation: one sweep, or one forward and one backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ...core.deprecation import OldOptions
from ...core.errors import InvalidArgument, InvalidMatrix
from ...core.formats import Csr, Diagonal, Matrix
from ...core.formats.arithmetic import add
from ...core.formats.permuting import permuted
from ...core.formats.triangular import host_of, prepare_substitution, segments, substitute
from ...core.lazy import Temporary
from ...core.operations import ordering, triangular, vector
from ...core.small_values import unflushed, values_times
from .base import Transposable, adjoint, transposed, update_all
from .jacobi import inverse_diagonal

if TYPE_CHECKING:
    from ...core.executor import Array, Executor
    from ...core.linop import LinOp


class Sor(Transposable):
    """One sweep of successive over-relaxation; Gauss-Seidel for ``omega=1``.

    Parameters
    ----------
    A : matrix, shape (n, n)
        A matrix without zeros on its diagonal.
    omega : float
        Relaxation factor, between 0 and 2.
    colors : bool, optional
        Whether rows are processed color by color, all rows of a color in parallel. The default is
        True on devices, and False on ``reference`` and ``omp``, which process rows in sequence.
    backward : bool
        Whether the sweep goes from the last row to the first.

    Raises
    ------
    InvalidMatrix
        If the diagonal has a zero, or the matrix NaN or Inf.
    InvalidArgument
        If an option is out of its range.

    Notes
    -----
    It applies ``(D / omega + L)^-1``, where ``L`` is the lower triangle in the order of the sweep.
    Colors change this order, so that iterations differ between executors unless ``colors`` is
    given. Colors are computed on the host. It is not Hermitian: CG needs :class:`Ssor`.

    References
    ----------
    Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., SIAM 2003, sections 4.1 and 12.4.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[2.0, 1.0], [1.0, 4.0]]))
    >>> wl.preconditioners.Sor(A, colors=False) @ np.array([2.0, 5.0])
    array([1., 1.])
    """

    parts: ClassVar[tuple[str, ...]] = ("matrix", "inverse")
    _turns = (transposed, adjoint)

    #: The matrix in the order of the sweep, and ``omega`` times the inverse of its diagonal.
    matrix: Csr
    inverse: Diagonal
    #: The permutation of the rows by colors and its inverse; None for the original order.
    orders: tuple[Array, Array] | None
    _places: Array | None

    old_options = OldOptions(
        since="0.3",
        removal="0.5",
        positions=(
            "omega",
            "colors",
            "backward",
        ),
    )

    def __init__(
        self,
        A: Any,
        *,
        omega: float = 1.0,
        colors: bool | None = None,
        backward: bool = False,
        executor: Executor | str | None = None,
    ) -> None:
        self._check(omega, colors)
        self.backward = bool(backward)
        super().__init__(A, executor=executor)

    def _check(self, omega: Any, colors: Any) -> None:
        number = isinstance(omega, (int, float, np.integer, np.floating))
        if not number or not 0 < omega < 2:
            raise InvalidArgument(f"omega: expected a number between 0 and 2, got {omega!r}")
        if colors not in (None, True, False):
            raise InvalidArgument(f"colors: expected True, False or None, got {colors!r}")
        self.omega, self.colors = float(omega), colors

    # ---- set-up

    def _setup(self, A: Matrix) -> None:
        S = self._checked_entries(A)
        by_color = self.colors
        if by_color is None:
            by_color = not self.executor.supports(triangular.factorize)
        self.orders, self._places = None, None
        if by_color:
            self.orders = _by_colors(S)
            self.matrix, self._places = permuted(S, self.orders[0], self.orders[0])
            self.notes.append(f"{self._name}: {_levels(self.matrix)} levels of rows by colors")
        else:
            self.matrix = S._with_data(self.executor.copy(S.data))
        self.inverse = self._inverse(self.matrix)
        self._weigh()
        self._prepare()

    def _refresh(self, A: Matrix) -> None:
        """Update to new values; the row order is kept."""
        S = self._checked_entries(A)
        if self.orders is None:
            reordered = S
        elif self._places is None:
            reordered, self._places = permuted(S, self.orders[0], self.orders[0])
        else:
            reordered = self.matrix._with_data(S.data[self._places])
        update_all(self._replaced(reordered, self._inverse(reordered)), self._require_finite)

    def _weigh(self) -> None:
        """Compute further parts from the inverse diagonal; a single sweep has none."""

    def _replaced(self, matrix: Csr, inverse: Diagonal) -> list[tuple[Matrix, Matrix]]:
        """Return each part with the matrix that provides its new values."""
        return [(self.matrix, matrix), (self.inverse, inverse)]

    def _checked_entries(self, A: Matrix) -> Csr:
        S: Csr = A.asformat("csr").without_duplicates()
        if not bool(S.executor.xp.all(S.executor.xp.isfinite(S.data))):
            raise InvalidMatrix(f"{type(self).__name__}: the matrix has NaN or Inf")
        return S

    def _inverse(self, S: Csr) -> Diagonal:
        inverse = inverse_diagonal(S, type(self).__name__)
        return Diagonal._from_arrays(
            S.executor, S.shape, values_times(S.executor, inverse.data, self.omega)
        )

    @property
    def _name(self) -> str:
        return type(self).__name__.lower()

    def _prepare(self) -> None:
        """Compute levels: this cannot be done during a recording."""
        prepare_substitution(self.matrix, upper=self.backward)
        self._temporary = Temporary()

    # ---- applying

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        n, k = x.shape
        with self._temporary.block(self.executor, n, k, self.dtype) as t:
            self._copy(x, t, 0, 1.0, 0.0)
            self._sweep(t)
            self._copy(t, y, 1, alpha, beta)

    def _copy(self, x: Array, y: Array, letter: int, alpha: complex, beta: complex) -> None:
        """Set ``y = alpha P x + beta y``, into the order of the sweep or back."""
        if self.orders is None:
            self.executor.run(vector.axpby, x, y, alpha, beta)
        else:
            self.executor.run(vector.gather, self.orders[letter], x, y, alpha, beta)

    def _sweep(self, t: Array) -> None:
        substitute(self.matrix, self.inverse.data, t, upper=self.backward)

    # ---- moving

    def _remade(self, change: Callable[[LinOp], LinOp]) -> Self:
        copy = super()._remade(change)
        if copy.executor != self.executor:
            copy._places = None
            if self.orders is not None:
                first, second = (self.executor.to_host(order) for order in self.orders)
                copy.orders = copy.executor.from_host(first), copy.executor.from_host(second)
        copy._prepare()
        return copy

    def __getstate__(self) -> dict[str, Any]:
        orders = self.orders
        if orders is not None:
            first, second = (np.asarray(self.executor.to_host(order)) for order in orders)
            orders = first, second
        return {**self.__dict__, "orders": orders, "_places": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.orders is not None:
            first, second = self.orders
            self.orders = self.executor.from_host(first), self.executor.from_host(second)
        self._prepare()

    def _turned(self, turn: Callable[[Any], Any]) -> Self:
        copy = self._copied()
        copy.backward = not self.backward
        copy = copy._remade(turn)
        copy._places = None
        return copy


class Ssor(Sor):
    """A forward and a backward sweep: symmetric over-relaxation.

    It is suitable for CG if the matrix is Hermitian positive definite, for any ``omega``.

    Parameters
    ----------
    A : matrix, shape (n, n)
        A matrix without zeros on its diagonal.
    omega, colors, executor
        As for :class:`Sor`.

    Raises
    ------
    InvalidMatrix
        If the diagonal has a zero, or the matrix NaN or Inf.
    InvalidArgument
        If an option is out of its range.

    Notes
    -----
    It applies ``(D / omega + U)^-1 (2 - omega) / omega D (D / omega + L)^-1``.

    References
    ----------
    Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., SIAM 2003, section 10.2.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0, 0.0], [1.0, 4.0, 1.0], [0.0, 1.0, 4.0]]))
    >>> wl.solvers.Cg(A, M="ssor:omega=1.1", rtol=1e-10).solve(np.ones(3)).converged
    True
    """

    parts = (*Sor.parts, "weights")

    #: ``(2 - omega) / omega`` times the diagonal.
    weights: Diagonal

    old_options = OldOptions(
        since="0.3",
        removal="0.5",
        positions=(
            "omega",
            "colors",
        ),
    )

    def __init__(
        self,
        A: Any,
        *,
        omega: float = 1.0,
        colors: bool | None = None,
        executor: Executor | str | None = None,
    ) -> None:
        super().__init__(A, omega=omega, colors=colors, executor=executor)

    def _prepare(self) -> None:
        super()._prepare()
        prepare_substitution(self.matrix, upper=not self.backward)

    def _weigh(self) -> None:
        self.weights = self._weights_of(self.inverse)

    def _weights_of(self, inverse: Diagonal) -> Diagonal:
        # with omega / d for the inverse, (2 - omega) / omega d is (2 - omega) divided by it
        data = unflushed(inverse.executor, lambda d: (2.0 - self.omega) / d, inverse.data)
        return Diagonal._from_arrays(inverse.executor, inverse.shape, data)

    def _replaced(self, matrix: Csr, inverse: Diagonal) -> list[tuple[Matrix, Matrix]]:
        return [*super()._replaced(matrix, inverse), (self.weights, self._weights_of(inverse))]

    def _sweep(self, t: Array) -> None:
        inverse = self.inverse.data
        substitute(self.matrix, inverse, t, upper=False)
        self.executor.run(vector.scale_rows, self.weights.data, t, t, 1.0, 0.0)
        substitute(self.matrix, inverse, t, upper=True)


def _by_colors(S: Csr) -> tuple[Array, Array]:
    """Return the permutation of rows by colors, stable within each color, and its inverse."""
    executor, dtype = S.executor, S.index_dtype
    symmetric = _symmetrized(S)
    indptr, indices = (
        np.asarray(executor.to_host(a)) for a in (symmetric.indptr, symmetric.indices)
    )
    color = np.empty(S.shape[0], dtype)
    host_of(executor, ordering.colors).run(ordering.colors, indptr, indices, color)
    order = np.argsort(color, kind="stable").astype(dtype)
    inverse = np.empty_like(order)
    inverse[order] = np.arange(order.size, dtype=dtype)
    return executor.from_host(order), executor.from_host(inverse)


def _symmetrized(S: Csr) -> Csr:
    """Return a matrix with the pattern of S and of its transpose."""
    return add(S, S.transpose(), 1.0, 0.0)


def _levels(A: Csr) -> int:
    return sum(
        1 if bounds is None else int(bounds.shape[0]) - 1 for _, bounds in segments(A, upper=False)
    )
