"""Incomplete LU and Cholesky factorizations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ...core.errors import InvalidArgument, UnsupportedOperation
from ...core.formats import Csr, Diagonal, Matrix
from ...core.lazy import Temporary
from ...core.operations import triangular, vector
from .base import Preconditioner
from .factors import Factors, Pattern, factorized, pattern_of, widened

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
        How a triangle is solved with: ``"exact"`` substitution (on ``reference`` and ``omp``, and
        the default there) or ``"sweeps:3"``, three products with it (anywhere, and the default on
        devices).

    Raises
    ------
    InvalidMatrix
        If no pivots can be found.
    UnsupportedOperation
        If ``"exact"`` is asked for where there is no kernel for it.
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
    solves for preconditioning, Euro-Par 2015, for those that apply.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0, 0.0], [1.0, 4.0, 1.0], [0.0, 1.0, 4.0]]))
    >>> M = wl.preconditioners.Ilu(A)
    >>> A @ (M @ np.ones(3))
    array([1., 1., 1.])
    """

    parts = ("lower", "upper", "pivots", "scale")

    #: Whether the upper factor is made the adjoint of the lower one.
    hermitian: ClassVar[bool] = False

    lower: Csr
    upper: Csr
    pivots: Diagonal
    scale: Diagonal
    _pattern: Pattern | None

    def __init__(
        self,
        A: Any,
        level: int = 0,
        sweeps: int | str | None = None,
        apply: str | None = None,
        *,
        executor: Executor | str | None = None,
    ) -> None:
        if level not in (0, 1):
            raise InvalidArgument(f"level: expected 0 or 1, got {level!r}")
        self.level = int(level)
        self._asked = (sweeps, apply)
        super().__init__(A, executor=executor)

    # ---- set-up

    def _setup(self, A: Matrix) -> None:
        self._choose(*self._asked)
        S = widened(A, self.level)
        self._pattern = pattern_of(S)
        self._factorize(S)

    def _refresh(self, A: Matrix) -> None:
        """Factorize again; the places of entries and the order of sweeps are kept."""
        before = {name: getattr(self, name) for name in self.parts}
        S = widened(A, self.level)
        if self._pattern is None:
            self._pattern = pattern_of(S)
        self._factorize(S)
        for name, part in before.items():
            made = getattr(self, name)
            if made.nnz == part.nnz:  # the recorded loops of solvers go on with these arrays
                part.update_values(made.data)
                setattr(self, name, part)

    def _factorize(self, S: Csr) -> None:
        who = type(self).__name__
        assert self._pattern is not None
        found = factorized(S, self._pattern, self.sweeps, self.hermitian, who)
        self.lower, self.upper, self.pivots, self.scale = found[:4]
        self._note(S, found)

    def _note(self, S: Csr, found: Factors) -> None:
        name = type(self).__name__.lower()
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
        if apply is None:
            apply = "exact" if by_rows else f"sweeps:{APPLIED_SWEEPS}"
        self.sweeps = None if sweeps == "exact" else _count(sweeps, "sweeps")
        kind, _, count = str(apply).partition(":")
        if kind not in ("exact", "sweeps") or (kind == "exact" and count):
            raise InvalidArgument(f'apply: expected "exact" or "sweeps:3", got {apply!r}')
        self.applied_sweeps = None
        if kind == "sweeps":
            self.applied_sweeps = _count(count or APPLIED_SWEEPS, "apply")
        if not by_rows and (self.sweeps is None or self.applied_sweeps is None):
            raise UnsupportedOperation(
                f'{type(self).__name__}: "exact" goes from row to row, which {self.executor.name} '
                f'has no kernel for: use sweeps={SWEEPS} and apply="sweeps:{APPLIED_SWEEPS}"'
            )
        self._temporaries = tuple(Temporary() for _ in range(3))

    # ---- applying

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        (n, k), executor, dtype = x.shape, self.executor, self.dtype
        run = executor.run
        first, second, third = self._temporaries
        with first.block(executor, n, k, dtype) as t, second.block(executor, n, k, dtype) as z:
            run(vector.scale_rows, self.scale.data, x, t, 1.0, 0.0)
            if self.applied_sweeps is None:
                run(triangular.forward, *_arrays(self.lower), t)
                run(vector.scale_rows, self.pivots.data, t, z, 1.0, 0.0)
                run(triangular.backward, *_arrays(self.upper), z)
                run(vector.scale_rows, self.scale.data, z, y, alpha, beta)
                return
            with third.block(executor, n, k, dtype) as free:
                half, free = self._swept(self.lower, t, z, free)
                run(vector.scale_rows, self.pivots.data, half, t, 1.0, 0.0)
                whole, free = self._swept(self.upper, t, free, half)
                run(vector.scale_rows, self.scale.data, whole, y, alpha, beta)

    def _swept(self, N: Csr, b: Array, a: Array, free: Array) -> tuple[Array, Array]:
        """Solve ``(I - N) z = b`` by sweeps ``z = b + N z``; return z and the other array."""
        z = b
        for _ in range(self.applied_sweeps or 0):
            self.executor.run(vector.axpby, b, a, 1.0, 0.0)
            N._apply(z, a, 1.0, 1.0)
            z, a, free = a, free, a
        return z, a

    # ---- moving

    def _remade(self, change: Callable[[LinOp], LinOp]) -> Self:
        made = super()._remade(change)
        made._pattern = None if made.executor != self.executor else self._pattern
        made._choose(*self._asked)
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pattern": None}  # found again when values change

    @property
    def T(self) -> Self:
        """The factors of the transpose."""
        return self._turned(lambda part: part.transpose())

    @property
    def H(self) -> Self:
        """The factors of the conjugate transpose."""
        return self._turned(lambda part: part.transpose().conj())

    def _turned(self, turn: Callable[[Any], Any]) -> Self:
        made = self._remade(lambda part: turn(part))
        made.lower, made.upper = made.upper, made.lower
        return made


class Ic(Ilu):
    """Incomplete Cholesky factors: those of :class:`Ilu` with the lower one the upper's adjoint.

    Fit for CG: the preconditioner is Hermitian positive definite.

    Parameters
    ----------
    A : matrix, shape (n, n)
        Hermitian positive definite; the part above the diagonal is read.
    level, sweeps, apply, executor
        As for :class:`Ilu`.

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


def _arrays(A: Csr) -> tuple[Array, Array, Array]:
    return A.indptr, A.indices, A.data


def _count(value: Any, name: str) -> int:
    try:
        count = int(value)
    except (TypeError, ValueError):
        count = 0
    if count < 1 or (isinstance(value, float) and value % 1):
        raise InvalidArgument(f"{name}: expected a number of sweeps of at least 1, got {value!r}")
    return count
