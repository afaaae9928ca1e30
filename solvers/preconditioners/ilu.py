"""Incomplete LU and Cholesky factorizations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ...core.deprecation import OldOptions
from ...core.dtypes import is_complex
from ...core.errors import InvalidArgument, UnsupportedOperation
from ...core.formats import Csr, Diagonal, Matrix
from ...core.formats.triangular import prepare_substitution, substitute
from ...core.operations import ilu, triangular, vector
from ...core.small_values import entry_products
from .application import checked_application, checked_count, temporaries
from .base import RecordedRefresh, Transposable, adjoint, transposed
from .factor_pattern import FactorPattern
from .factors import (
    Elimination,
    Factorization,
    Factors,
    RecordedElimination,
    eliminated,
    row_of_entries,
    scaled,
    write_scaled,
    write_triangles,
)
from .isai import inverted_triangle, pattern_of_inverse
from .reordering import Reordering, checked_order
from .sweeps import solve_by_sweeps

if TYPE_CHECKING:
    from ...core.executor import Array, Executor
    from ...core.linop import LinOp

#: Default number of sweeps that compute the factors if rows are not eliminated in sequence.
SWEEPS = 3


class Ilu(Transposable):
    """Incomplete LU factors on the pattern of the matrix, or with fill-in of one elimination.

    Parameters
    ----------
    A : matrix, shape (n, n)
        Any square matrix.
    level : {0, 1}
        Level of fill-in: 0 for the pattern of ``A``, 1 to add the fill-in of one elimination.
    factor_sweeps : int or "exact", optional
        How the factors are computed: row by row (``"exact"``, on ``reference`` and ``omp``, where
        it is the default) or by this number of parallel sweeps over all entries (on every executor;
        3 by default on devices).
    apply : str, optional
        How triangular factors are applied: by ``"exact"`` substitution (level by level on devices;
        the default on ``reference`` and ``omp``), by ``"jacobi:3"``, three products (the default on
        devices), or by ``"isai:1"``, one product with an approximate inverse on the pattern of that
        power of the triangular factor.

    match : bool
        Whether rows are first permuted, and both sides scaled, to maximize the product of the
        diagonal (:func:`wollemi.reorder.matching`): for matrices with zeros on the diagonal.
    order : {"rcm", "amd", "nd"}, optional
        A symmetric permutation that is applied before the factorization (:mod:`wollemi.reorder`).

    Raises
    ------
    InvalidMatrix
        If no pivots can be found.
    UnsupportedOperation
        If ``factor_sweeps="exact"`` is requested, but the executor has no kernel for it.
    InvalidArgument
        If an option is out of its range.

    Notes
    -----
    The matrix is first scaled to a diagonal of modulus 1. If a pivot is too small, the whole
    factorization is repeated with a multiple of the diagonal added, as ``M.notes`` says.

    References
    ----------
    Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., SIAM 2003, algorithm 10.4;
    E. Chow and A. Patel, Fine-grained parallel incomplete LU factorization, SIAM J. Sci. Comput.
    37 (2015), for the sweeps; H. Anzt, E. Chow and J. Dongarra, Iterative sparse triangular solves
    for preconditioning, Euro-Par 2015, for the sweeps that apply; H. Anzt et al., Incomplete sparse
    approximate inverses for parallel preconditioning, Parallel Computing 71 (2018). Anzt et al.,
    Incomplete sparse approximate inverses for parallel preconditioning, Parallel Computing 71
    (2018).

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0, 0.0], [1.0, 4.0, 1.0], [0.0, 1.0, 4.0]]))
    >>> M = wl.preconditioners.Ilu(A)
    >>> A @ (M @ np.ones(3))
    array([1., 1., 1.])
    """

    parts = ("lower", "upper", "pivots", "left", "right")
    _turns = (transposed, adjoint)

    #: Whether the upper factor is the adjoint of the lower one.
    hermitian: ClassVar[bool] = False

    lower: Csr
    upper: Csr
    pivots: Diagonal
    #: The scaling from both sides, to a diagonal of modulus 1 and for ``match``.
    left: Diagonal
    right: Diagonal
    #: The permutation of rows and columns, if one was requested.
    reordering: Reordering | None = None
    #: For ``apply="isai"``: the approximate inverses, including pivots and scaling.
    inverses: tuple[Csr, Csr] | None = None
    #: Both triangular factors including pivots and scaling, and the remaining diagonals: for
    #: ``apply="exact"`` the divisors of rows, for sweeps the diagonal between the factors.
    triangles: tuple[Any, ...] | None = None
    #: The factorization that is reused for new values.
    _factorization: Factorization | None = None

    old_options = OldOptions(
        since="0.3",
        removal="0.5",
        positions=(
            "level",
            "factor_sweeps",
            "apply",
            "match",
            "order",
        ),
        renamed={"sweeps": "factor_sweeps"},
    )

    def __init__(
        self,
        A: Any,
        *,
        level: int = 0,
        factor_sweeps: int | str | None = None,
        apply: str | None = None,
        match: bool = False,
        order: str | None = None,
        executor: Executor | str | None = None,
    ) -> None:
        if level not in (0, 1):
            raise InvalidArgument(f"level: expected 0 or 1, got {level!r}")
        self.level = int(level)
        self._requested_options = (factor_sweeps, apply)
        self.match, self.order = checked_order(match, order, type(self).__name__)
        super().__init__(A, executor=executor)

    # ---- set-up

    def _setup(self, A: Matrix) -> None:
        self._choose(*self._requested_options)
        S: Csr = A.asformat("csr").without_duplicates()
        if self.match or self.order is not None:
            self.reordering = Reordering(S, self.match, self.order)
        self._make(S if self.reordering is None else self.reordering.matrix(S))

    def _make(self, S: Csr) -> None:
        """Rebuild all parts."""
        pattern = FactorPattern(S, self.level, self.sweeps is None, self.hermitian)
        made = self._eliminated(S, pattern)
        assert made is not None
        executor, n = S.executor, S.shape[0]
        lower, upper = pattern.triangles(S.dtype)
        pivots, left, right = (
            Diagonal._from_arrays(executor, S.shape, executor.allocate((n,), S.dtype))
            for _ in range(3)
        )
        self.lower, self.upper = lower, upper
        self.pivots, self.left, self.right = pivots, left, right
        self._factorization = Factorization(pattern, made)
        self._write(made, pattern)
        self.inverses = self._inverted() if self.applied[0] == "isai" else None
        self.triangles = None
        self._prepare()
        self._note(pattern.nnz, made)

    def _refresh(self, A: Matrix) -> None:
        """Factorize again into the existing arrays; data of the pattern are kept.

        A matching depends on values: it is recomputed, with all parts.
        """
        if self.match:
            self._setup(A)
            return
        S: Csr = A.asformat("csr").without_duplicates()
        if self.reordering is not None:
            S = self.reordering.matrix(S)
        kept = self._factorization
        fits = kept is not None and kept.pattern.fits(S)
        made = self._eliminated(S, kept.pattern) if kept is not None and fits else None
        if kept is None or made is None:
            self._make(S)  # another pattern: solvers record their loops again
            return
        before = self.triangles
        try:
            self._overwrite(made, kept.pattern)
            self._require_finite()
        except BaseException:  # also Ctrl-C: partial updates are useless
            self.triangles = before  # restored even if they are not used now
            self._overwrite(kept.elimination, kept.pattern)
            raise
        kept.elimination = made
        self._note(kept.pattern.nnz, made)

    @property
    def _follows_exactly(self) -> bool:
        return True

    def _recorded_refresh(self, A: Matrix) -> RecordedRefresh | None:
        """Return the operations that factorize by rows without a shift, in place."""
        kept, triangles = self._factorization, self.triangles
        by_rows = self.sweeps is None and self.applied[0] == "exact"
        if not by_rows or self.reordering is not None or kept is None or triangles is None:
            return None
        if not isinstance(A, Csr) or A.dtype != self.dtype or not kept.pattern.fits(A):
            return None
        if A.without_duplicates().data is not A.data:
            return None
        factorize = RecordedElimination(A, kept.pattern, self.hermitian)
        parts = (self.lower, self.upper, self.pivots, self.left, self.right)
        below, above, diagonal = triangles[:3]

        def body() -> None:
            made = factorize.run()
            self._write(made, kept.pattern)
            scaled(ilu.join, parts, below, above, diagonal, factorize.lost)

        return RecordedRefresh(body, factorize.failures)

    def _eliminated(self, S: Csr, pattern: FactorPattern) -> Elimination | None:
        return eliminated(S, pattern, self.sweeps, self.hermitian, type(self).__name__)

    def _overwrite(self, elimination: Elimination, pattern: FactorPattern) -> None:
        """Overwrite all arrays with new values: recorded solver loops use these arrays."""
        self._write(elimination, pattern)
        triangles = self.triangles
        if triangles is not None and self._join(triangles):
            triangles = None
        elif self.triangles is None and self.applied[0] != "isai":
            triangles = self._joined()
        if self.inverses is not None:
            new = self._inverted(self.inverses)
            for part, other in zip(self.inverses, new, strict=True):
                part.update_values(other.data)
        for part in (*self._operators(), *(self.triangles or ())):
            part._tell_sharers()
        self.triangles = triangles

    def _write(self, elimination: Elimination, pattern: FactorPattern) -> None:
        write_triangles(elimination, pattern, self.lower, self.upper, self.pivots)
        scale = elimination.scale.reshape(-1, 1)
        for part, side in ((self.left, "left"), (self.right, "right")):
            into = part.data.reshape(-1, 1)
            if self.reordering is None:
                self.executor.run(vector.axpby, scale, into, 1.0, 0.0)
            else:
                given = getattr(self.reordering, side)
                self.executor.run(vector.scale_rows, given, scale, into, 1.0, 0.0)

    def _take(self, factors: Factors) -> None:
        self.lower, self.upper, self.pivots, self.left = factors[:4]
        self.right = self.left._with_data(self.left.data)
        if self.reordering is not None:
            self.left = self.left._with_data(
                entry_products(self.executor, self.left.data, self.reordering.left)
            )
            self.right = self.right._with_data(
                entry_products(self.executor, self.right.data, self.reordering.right)
            )

    def _inverted(self, patterns: tuple[Csr, Csr] | None = None) -> tuple[Csr, Csr]:
        """Return approximate inverses of the triangular factors: one product applies each.

        In a Hermitian factorization, the inverse of the upper factor is the adjoint of the lower
        one's inverse: separate approximations by rows would not match.
        """
        first, second = patterns or (None, None)
        below = self._inverse_of(self.lower, first, upper=False)
        if self.hermitian:
            above = below.transpose()
            above = above.conj() if is_complex(self.dtype) else above
        else:
            above = self._inverse_of(self.upper, second, upper=True)
        lower = self.pivots.data[row_of_entries(below)] * below.data * self.left.data[below.indices]
        upper = above.data * self.right.data[row_of_entries(above)]
        return below._with_data(lower), above._with_data(upper)

    def _inverse_of(self, N: Csr, pattern: Csr | None, *, upper: bool) -> Csr:
        """Return the approximate inverse of a unit triangular matrix."""
        if pattern is None:
            pattern = pattern_of_inverse(N, self.applied[1])
        return pattern._with_data(inverted_triangle(N, pattern, upper=upper))

    def _prepare(self) -> None:
        """Compute levels and scale triangular factors: this cannot be done during a recording."""
        if self.applied[0] == "isai":
            return
        if self.applied[0] == "exact":
            prepare_substitution(self.lower, upper=False)
            prepare_substitution(self.upper, upper=True)
            self._ones = self.executor.xp.ones(self.lower.shape[0], dtype=self.dtype)
        if self.triangles is None:
            self.triangles = self._joined()

    def _joined(self) -> tuple[Any, ...] | None:
        """Return the triangular factors with pivots and scaling, which saves passes over vectors.

        None if a number would leave the range of the dtype.
        """
        triangles: tuple[Any, ...] = tuple(
            part._with_data(self.executor.allocate(part.data.shape, self.dtype))
            for part in (self.lower, self.upper, self.pivots)
        )
        if self.applied[0] == "exact":
            triangles = *triangles, self.right._with_data(self.right.data)
        return None if self._join(triangles) else triangles

    def _join(self, triangles: tuple[Any, ...]) -> int:
        """Write the triangular factors; return the number of values out of the dtype's range."""
        parts = (self.lower, self.upper, self.pivots, self.left, self.right)
        operation = ilu.join if self.applied[0] == "exact" else ilu.rescale
        return write_scaled(operation, parts, *triangles[:3])

    def _note(self, entries: int, elimination: Elimination) -> None:
        name = type(self).__name__.lower()
        if self.reordering is not None:
            self.notes += self.reordering.notes
        how = "row by row" if self.sweeps is None else f"by sweeps, {self.sweeps} of them"
        self.notes.append(f"{name}({self.level}): {entries} entries, made {how}")
        if elimination.shift:
            self.notes.append(
                f"{name}: pivots were too small: {elimination.shift:g} times the diagonal was added"
            )
        if elimination.change > 0.1:
            self.notes.append(
                f"{name}: the last sweep changed the factors by {elimination.change:.0%}: they are "
                "far from the factors that elimination gives"
            )

    def _choose(self, sweeps: int | str | None, apply: str | None) -> None:
        by_rows = self.executor.supports(triangular.factorize)
        if sweeps is None:
            sweeps = "exact" if by_rows else SWEEPS
        self.sweeps = None if sweeps == "exact" else checked_count(sweeps, "factor_sweeps")
        self.applied = checked_application(apply, by_rows)
        if not by_rows and self.sweeps is None:
            raise UnsupportedOperation(
                f'{type(self).__name__}: factor_sweeps="exact" makes factors row by row, which '
                f"{self.executor.name} has no kernel for: use factor_sweeps={SWEEPS}"
            )
        self._temporaries = temporaries()

    # ---- applying

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        if self.reordering is None:
            self._solve(x, y, alpha, beta)
            return
        (n, k), (*_, first, second) = x.shape, self._temporaries
        with (
            first.block(self.executor, n, k, self.dtype) as t,
            second.block(self.executor, n, k, self.dtype) as z,
        ):
            self.reordering.into(x, t)
            self._solve(t, z, 1.0, 0.0)
            self.reordering.out_of(z, y, alpha, beta)

    def _solve(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        """Apply the factors in their own row order."""
        (n, k), executor, dtype = x.shape, self.executor, self.dtype
        run = executor.run
        first, *_ = self._temporaries
        if self.triangles is not None and alpha == 1 and beta == 0:
            self._solve_triangles(x, y)
            return
        with first.block(executor, n, k, dtype) as t:
            if self.triangles is not None:
                self._solve_triangles(x, t)
                run(vector.axpby, t, y, alpha, beta)
                return
            if self.inverses is not None:
                self.inverses[0]._apply(x, t, 1.0, 0.0)
                self.inverses[1]._apply(t, y, alpha, beta)
                return
            run(vector.scale_rows, self.left.data, x, t, 1.0, 0.0)
            if self.applied[0] == "exact":
                substitute(self.lower, self._ones, t, upper=False, factor=1.0)
                run(vector.scale_rows, self.pivots.data, t, t, 1.0, 0.0)
                substitute(self.upper, self._ones, t, upper=True, factor=1.0)
            else:
                self._sweep(self.lower, self.upper, self.pivots, t, t)
            run(vector.scale_rows, self.right.data, t, y, alpha, beta)

    def _solve_triangles(self, x: Array, y: Array) -> None:
        """Set ``y`` to the solution with both factors, in the form of :meth:`_joined`."""
        assert self.triangles is not None
        lower, upper, *diagonals = self.triangles
        if self.applied[0] != "exact":
            self._sweep(lower, upper, diagonals[0], x, y)
            return
        self.executor.run(vector.axpby, x, y, 1.0, 0.0)
        substitute(lower, diagonals[0].data, y, upper=False, factor=1.0)
        substitute(upper, diagonals[1].data, y, upper=True, factor=1.0)

    def _sweep(self, lower: Csr, upper: Csr, between: Diagonal, x: Array, y: Array) -> None:
        """Solve with both unit factors by sweeps, with a diagonal between; ``y`` may be ``x``."""
        (n, k), (_, second, third, *_) = x.shape, self._temporaries
        with (
            second.block(self.executor, n, k, self.dtype) as z,
            third.block(self.executor, n, k, self.dtype) as free,
        ):
            solve_by_sweeps(lower, self.applied[1], x, z, free, between.data)
            solve_by_sweeps(upper, self.applied[1], z, y, free)

    # ---- moving

    def _remade(self, change: Callable[[LinOp], LinOp]) -> Self:
        result = self._changed(change)
        if result.triangles is not None:
            alike = result.executor == self.executor and result.dtype == self.dtype
            # a private copy shares the arrays, which updates overwrite
            result.triangles = tuple(map(change, result.triangles)) if alike else None
        result._prepare()
        return result

    def _changed(self, change: Callable[[LinOp], LinOp]) -> Self:
        """Return a copy with changed parts, before it is prepared."""
        result = super()._remade(change)
        if self.inverses is not None:
            result.inverses = tuple(change(part) for part in self.inverses)  # type: ignore[assignment]
        if result.executor != self.executor or result.dtype != self.dtype:
            result._factorization = None
        if result.executor != self.executor and self.reordering is not None:
            result.reordering = self.reordering.to(result.executor)
        if result.reordering is not None and result.dtype != self.dtype:
            result.reordering = result.reordering.astype(result.dtype)
        result._choose(*self._requested_options)
        if result.applied != self.applied:  # the default depends on the executor
            result.inverses = result._inverted() if result.applied[0] == "isai" else None
        return result

    def __getstate__(self) -> dict[str, Any]:
        state = {**self.__dict__, "_factorization": None}  # recomputed when values change
        state.pop("_ones", None)
        state["triangles"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()

    def _turned(self, turn: Callable[[Any], Any]) -> Self:
        result = self._changed(lambda part: turn(part))
        result.lower, result.upper = result.upper, result.lower
        result.left, result.right = result.right, result.left
        if result.inverses is not None:
            result.inverses = result.inverses[::-1]
        if result.reordering is not None:
            result.reordering = result.reordering.transposed()
        result._factorization = result.triangles = None
        result._prepare()
        return result


class Ic(Ilu):
    """Incomplete Cholesky factors: :class:`Ilu` with adjoint factors.

    Suitable for CG: the preconditioner is Hermitian positive definite.

    Parameters
    ----------
    A : matrix, shape (n, n)
        A Hermitian positive definite matrix; only its upper triangle is read.
    level, factor_sweeps, apply, order, executor
        As for :class:`Ilu`; ``match`` is refused: the permuted matrix would not be Hermitian.

    Raises
    ------
    InvalidMatrix
        If no positive pivots can be found.

    Notes
    -----
    The factors are ``U^H D U`` with a unit diagonal. Before convergence, the two parts of sweeps
    are not adjoint to each other, and CG would fail with such factors.

    References
    ----------
    J. A. Meijerink and H. A. van der Vorst, An iterative solution method for linear systems of
    which the coefficient matrix is a symmetric M-matrix, Math. Comp. 31 (1977); T. A. Manteuffel,
    An incomplete factorization technique for positive definite linear systems, Math. Comp. 34
    (1980), for the shift of the diagonal.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0, 0.0], [1.0, 4.0, 1.0], [0.0, 1.0, 4.0]]))
    >>> wl.solvers.Cg(A, M="ic").solve(np.ones(3)).iterations
    1
    """

    hermitian = True
