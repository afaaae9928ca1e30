"""Incomplete LU and Cholesky factorizations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ...core.errors import InvalidArgument, UnsupportedOperation
from ...core.formats import Csr, Diagonal, Matrix
from ...core.formats.triangular import segments, substitute
from ...core.lazy import Temporary
from ...core.operations import triangular, vector
from .base import Preconditioner, update_all
from .factors import Factors, Widened, factorized, is_bounded, row_of_entries
from .isai import inverted_triangle, pattern_of_inverse
from .reordering import Reordering, checked_order
from .sweeps import solve_by_sweeps

if TYPE_CHECKING:
    from ...core.executor import Array, Executor
    from ...core.linop import LinOp

#: Sweeps that make the factors where rows are not gone through one by one.
SWEEPS = 3

#: Sweeps that apply a triangle there.
APPLIED_SWEEPS = 3


class Ilu(Preconditioner):
    """Incomplete LU factors on the pattern of the matrix, or with the fill of one elimination.

    Parameters
    ----------
    A : matrix, shape (n, n)
        Any square matrix.
    level : {0, 1}
        Whether the factors have the pattern of ``A``, or also what one elimination fills in.
    sweeps : int or "exact", optional
        How the factors are made: row by row (``"exact"``, on ``reference`` and ``omp``, and the
        default there) or by that many sweeps over all entries at once (anywhere; 3 by default on
        devices).
    apply : str, optional
        How a triangle is solved with: ``"exact"`` substitution (level by level on devices; the
        default on ``reference`` and ``omp``), ``"sweeps:3"``, three products with it (the default
        on devices), or ``"isai:1"``, one product with an approximate inverse on the pattern of that
        power of the triangle.

    match : bool
        Whether rows are first permuted, and both sides scaled, so that the diagonal has the largest
        product (:func:`wollemi.reorder.matching`): for matrices with zeros on the diagonal.
    order : {"rcm", "amd", "nd"}, optional
        A symmetric order of rows and columns that is taken before (:mod:`wollemi.reorder`).

    Raises
    ------
    InvalidMatrix
        If no pivots can be found.
    UnsupportedOperation
        If ``sweeps="exact"`` is asked for where there is no kernel for it.
    InvalidArgument
        If an option is out of its range.

    Notes
    -----
    The matrix is scaled to a diagonal of modulus 1 first. A pivot that is too small has the whole
    factorization repeated with a multiple of the diagonal added, as ``M.notes`` says.

    References
    ----------
    Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., SIAM 2003, algorithm 10.4;
    E. Chow and A. Patel, Fine-grained parallel incomplete LU factorization, SIAM J. Sci. Comput.
    37 (2015), for the sweeps; H. Anzt, E. Chow and J. Dongarra, Iterative sparse triangular
    solves for preconditioning, Euro-Par 2015, for those that apply; H. Anzt et al., Incomplete
    sparse approximate inverses for parallel preconditioning, Parallel Computing 71 (2018).

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0, 0.0], [1.0, 4.0, 1.0], [0.0, 1.0, 4.0]]))
    >>> M = wl.preconditioners.Ilu(A)
    >>> A @ (M @ np.ones(3))
    array([1., 1., 1.])
    """

    parts = ("lower", "upper", "pivots", "left", "right")

    #: Whether the upper factor is made the adjoint of the lower one.
    hermitian: ClassVar[bool] = False

    lower: Csr
    upper: Csr
    pivots: Diagonal
    #: What scales from both sides: the matrix to a diagonal of modulus 1, and ``match``.
    left: Diagonal
    right: Diagonal
    #: Rows and columns in another order, if one was asked for.
    reordering: Reordering | None = None
    #: For ``apply="isai"``: the approximate inverses with pivots and scaling in them.
    inverses: tuple[Csr, Csr] | None = None
    #: For ``apply="exact"``: both triangles, and the diagonals that take the place of pivots and
    #: scaling when they are substituted with.
    triangles: tuple[Csr, Csr, Diagonal, Diagonal] | None = None
    _widened: Widened | None = None

    def __init__(
        self,
        A: Any,
        level: int = 0,
        sweeps: int | str | None = None,
        apply: str | None = None,
        match: bool = False,
        order: str | None = None,
        *,
        executor: Executor | str | None = None,
    ) -> None:
        if level not in (0, 1):
            raise InvalidArgument(f"level: expected 0 or 1, got {level!r}")
        self.level = int(level)
        self._asked = (sweeps, apply)
        self.match, self.order = checked_order(match, order, type(self).__name__)
        super().__init__(A, executor=executor)

    # ---- set-up

    def _setup(self, A: Matrix) -> None:
        self._choose(*self._asked)
        S: Csr = A.asformat("csr").without_duplicates()
        if self.match or self.order is not None:
            self.reordering = Reordering(S, self.match, self.order)
            S = self.reordering.matrix(S)
        self._widened = Widened(S, self.level, self.sweeps is None)
        self._take(self._factorized(S))
        self.inverses = self._inverted() if self.applied[0] == "isai" else None
        self._prepare()

    def _refresh(self, A: Matrix) -> None:
        """Factorize again; the places of entries and the order of sweeps are kept."""
        S: Csr = A.asformat("csr").without_duplicates()
        if self.reordering is not None:
            S = self.reordering.matrix(S)
        if self._widened is None or not self._widened.fits(S):
            self._widened = Widened(S, self.level, self.sweeps is None)
        before = {name: getattr(self, name) for name in self.parts}
        inverses, triangles = self.inverses, self.triangles
        ones = self.__dict__.get("_ones")
        self._take(self._factorized(S))
        self.triangles = None
        alike = all(getattr(self, name).nnz == part.nnz for name, part in before.items())
        if alike:
            self.lower, self.upper = (
                before[name]._with_data(getattr(self, name).data) for name in ("lower", "upper")
            )
        self._prepare()
        if not alike or (self.triangles is None) != (triangles is None):
            self.inverses = self._inverted() if inverses else None
            return  # another pattern: recorded loops of solvers are made again
        self.inverses = self._inverted(inverses) if inverses else None
        replaced = [(part, getattr(self, name)) for name, part in before.items()]
        replaced += list(zip(inverses or (), self.inverses or (), strict=True))
        replaced += list(zip(triangles or (), self.triangles or (), strict=True))
        update_all(replaced)  # the recorded loops of solvers go on with these arrays
        self.__dict__.update(before, inverses=inverses, triangles=triangles)
        if ones is not None:
            self._ones = ones  # the loops read it, too

    def _factorized(self, S: Csr) -> Factors:
        assert self._widened is not None
        widened = self._widened.of(S)
        who = type(self).__name__
        found = factorized(widened, self._widened, self.sweeps, self.hermitian, who)
        self._note(widened, found)
        return found

    def _take(self, found: Factors) -> None:
        self.lower, self.upper, self.pivots, self.left = found[:4]
        self.right = self.left._with_data(self.left.data)
        if self.reordering is not None:
            self.left = self.left._with_data(self.left.data * self.reordering.left)
            self.right = self.right._with_data(self.right.data * self.reordering.right)

    def _inverted(self, patterns: tuple[Csr, Csr] | None = None) -> tuple[Csr, Csr]:
        """Return approximate inverses of the triangles: one product each applies them."""
        made = []
        for at, (N, upper) in enumerate(((self.lower, False), (self.upper, True))):
            pattern = patterns[at] if patterns else pattern_of_inverse(N, self.applied[1])
            data = inverted_triangle(N, pattern, upper=upper)
            rows, columns = row_of_entries(pattern), pattern.indices
            if upper:
                data = data * self.right.data[rows]
            else:
                data = self.pivots.data[rows] * data * self.left.data[columns]
            made.append(pattern._with_data(data))
        return made[0], made[1]

    def _prepare(self) -> None:
        """Find levels, which an application that is being recorded could not do."""
        if self.applied[0] == "exact":
            segments(self.lower, upper=False)
            segments(self.upper, upper=True)
            self._ones = self.executor.xp.ones(self.lower.shape[0], dtype=self.dtype)
            if self.triangles is None:
                self.triangles = self._joined()

    def _joined(self) -> tuple[Csr, Csr, Diagonal, Diagonal] | None:
        """Return the triangles with pivots and scaling in them, which saves three products.

        None if a number would leave the range of the dtype.
        """
        left, right, pivots = (d.data for d in (self.left, self.right, self.pivots))
        lower, upper, xp = self.lower, self.upper, self.executor.xp
        rows = row_of_entries(lower)
        with np.errstate(all="ignore"):
            first = pivots * left
            below = lower.data / (pivots[lower.indices] * left[rows])
            above = upper.data / right[upper.indices]
        for made, given in ((first, pivots), (below, lower.data), (above, upper.data)):
            lost = int(xp.count_nonzero(made)) != int(xp.count_nonzero(given))
            if lost or not is_bounded(xp, made, np.inf):
                return None
        return (
            lower._with_data(below),
            upper._with_data(above),
            self.pivots._with_data(first),
            self.right._with_data(right),
        )

    def _note(self, S: Csr, found: Factors) -> None:
        name = type(self).__name__.lower()
        if self.reordering is not None:
            self.notes += self.reordering.notes
        made = "row by row" if self.sweeps is None else f"by sweeps, {self.sweeps} of them"
        self.notes.append(f"{name}({self.level}): {S.nnz} entries, made {made}")
        if found.shift:
            self.notes.append(
                f"{name}: pivots were too small: {found.shift:g} times the diagonal was added"
            )
        if found.change > 0.1:
            self.notes.append(
                f"{name}: the last sweep changed the factors by {found.change:.0%}: they are far "
                "from those that elimination gives"
            )

    def _choose(self, sweeps: int | str | None, apply: str | None) -> None:
        by_rows = self.executor.supports(triangular.factorize)
        if sweeps is None:
            sweeps = "exact" if by_rows else SWEEPS
        self.sweeps = None if sweeps == "exact" else checked_count(sweeps, "sweeps")
        self.applied = checked_application(apply, by_rows)
        if not by_rows and self.sweeps is None:
            raise UnsupportedOperation(
                f'{type(self).__name__}: sweeps="exact" makes factors row by row, which '
                f"{self.executor.name} has no kernel for: use sweeps={SWEEPS}"
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
        """Apply the factors in their own order."""
        (n, k), executor, dtype = x.shape, self.executor, self.dtype
        run = executor.run
        first, *_ = self._temporaries
        if self.triangles is not None and alpha == 1 and beta == 0:
            self._substitute(x, y)
            return
        with first.block(executor, n, k, dtype) as t:
            if self.triangles is not None:
                self._substitute(x, t)
                run(vector.axpby, t, y, alpha, beta)
                return
            if self.inverses is not None:
                self.inverses[0]._apply(x, t, 1.0, 0.0)
                self.inverses[1]._apply(t, y, alpha, beta)
                return
            run(vector.scale_rows, self.left.data, x, t, 1.0, 0.0)
            self._half(self.lower, t, upper=False)
            run(vector.scale_rows, self.pivots.data, t, t, 1.0, 0.0)
            self._half(self.upper, t, upper=True)
            run(vector.scale_rows, self.right.data, t, y, alpha, beta)

    def _substitute(self, x: Array, y: Array) -> None:
        """Set ``y`` to the solution of both triangles, by what :meth:`_joined` made."""
        assert self.triangles is not None
        lower, upper, first, second = self.triangles
        self.executor.run(vector.axpby, x, y, 1.0, 0.0)
        substitute(lower, first.data, y, upper=False, factor=1.0)
        substitute(upper, second.data, y, upper=True, factor=1.0)

    def _half(self, N: Csr, b: Array, *, upper: bool) -> None:
        """Solve ``(I - N) z = b`` in ``b``, exactly or by sweeps ``z = b + N z``."""
        if self.applied[0] == "exact":
            substitute(N, self._ones, b, upper=upper, factor=1.0)
            return
        (n, k), (_, second, third, *_) = b.shape, self._temporaries
        with (
            second.block(self.executor, n, k, self.dtype) as z,
            third.block(self.executor, n, k, self.dtype) as free,
        ):
            solve_by_sweeps(N, self.applied[1], b, z, free)

    # ---- moving

    def _remade(self, change: Callable[[LinOp], LinOp]) -> Self:
        made = self._changed(change)
        if made.triangles is not None:
            alike = made.executor == self.executor and made.dtype == self.dtype
            # a private copy shares the arrays, which new values overwrite
            parts = tuple(change(part) for part in made.triangles) if alike else None
            made.triangles = parts  # type: ignore[assignment]
        made._prepare()
        return made

    def _changed(self, change: Callable[[LinOp], LinOp]) -> Self:
        """Return a copy whose parts were changed, before it is prepared."""
        made = super()._remade(change)
        if self.inverses is not None:
            made.inverses = tuple(change(part) for part in self.inverses)  # type: ignore[assignment]
        if made.executor != self.executor:
            made._widened = None
            if self.reordering is not None:
                made.reordering = self.reordering.to(made.executor)
        if made.reordering is not None and made.dtype != self.dtype:
            made.reordering = made.reordering.astype(made.dtype)
        made._choose(*self._asked)
        if made.applied != self.applied:  # another executor has another default
            made.inverses = made._inverted() if made.applied[0] == "isai" else None
        return made

    def __getstate__(self) -> dict[str, Any]:
        state = {**self.__dict__, "_widened": None}  # found again when values change
        state.pop("_ones", None)
        state["triangles"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()

    @property
    def T(self) -> Self:
        """The factors of the transpose."""
        return self._turned(lambda part: part.transpose())

    @property
    def H(self) -> Self:
        """The factors of the conjugate transpose."""
        return self._turned(lambda part: part.transpose().conj())

    def _turned(self, turn: Callable[[Any], Any]) -> Self:
        made = self._changed(lambda part: turn(part))
        made.lower, made.upper = made.upper, made.lower
        made.left, made.right = made.right, made.left
        if made.inverses is not None:
            made.inverses = made.inverses[::-1]
        if made.reordering is not None:
            made.reordering = made.reordering.transposed()
        made._widened = made.triangles = None
        made._prepare()
        return made


class Ic(Ilu):
    """Incomplete Cholesky factors: those of :class:`Ilu` with the lower one the upper's adjoint.

    Fit for CG: the preconditioner is Hermitian positive definite.

    Parameters
    ----------
    A : matrix, shape (n, n)
        Hermitian positive definite; the part above the diagonal is read.
    level, sweeps, apply, order, executor
        As for :class:`Ilu`; ``match`` is refused, which would not keep the matrix Hermitian.

    Raises
    ------
    InvalidMatrix
        If no positive pivots can be found.

    Notes
    -----
    The factors are ``U^H D U`` with a unit diagonal: the two halves that sweeps make are not each
    other's adjoints before they have converged, and CG fails with those.

    References
    ----------
    J. A. Meijerink and H. A. van der Vorst, An iterative solution method for linear systems of
    which the coefficient matrix is a symmetric M-matrix, Math. Comp. 31 (1977); T. A. Manteuffel,
    An incomplete factorization technique for positive definite linear systems, Math. Comp. 34
    (1980), for what is added to the diagonal.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0, 0.0], [1.0, 4.0, 1.0], [0.0, 1.0, 4.0]]))
    >>> wl.solvers.Cg(A, M="ic").solve(np.ones(3)).iterations
    1
    """

    hermitian = True


def temporaries() -> tuple[Temporary, ...]:
    """Return the blocks that an application takes."""
    return tuple(Temporary() for _ in range(5))


def checked_application(apply: str | None, by_rows: bool) -> tuple[str, int]:
    """Return how triangles are applied, and the number of sweeps or the power.

    Raises
    ------
    InvalidArgument
        If that is not a way.
    """
    if apply is None:
        apply = "exact" if by_rows else f"sweeps:{APPLIED_SWEEPS}"
    kind, _, count = str(apply).partition(":")
    if kind not in ("exact", "sweeps", "isai") or (kind == "exact" and count):
        raise InvalidArgument(f'apply: expected "exact", "sweeps:3" or "isai:1", got {apply!r}')
    if kind == "exact":
        return kind, 0
    return kind, checked_count(count or (APPLIED_SWEEPS if kind == "sweeps" else 1), "apply")


def checked_count(value: Any, name: str) -> int:
    """Return a number of sweeps, or a power; raises InvalidArgument if it is none."""
    try:
        count = int(value)
    except (TypeError, ValueError):
        count = 0
    if count < 1 or (isinstance(value, float) and value % 1):
        raise InvalidArgument(f"{name}: expected an integer of at least 1, got {value!r}")
    return count
