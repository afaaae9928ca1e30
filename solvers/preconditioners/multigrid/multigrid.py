"""Multigrid cycles as a preconditioner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ....core.described import facts_table, side_by_side
from ....core.dtypes import is_complex, is_exact, is_narrow, name_of, real_dtype, stored_dtype
from ....core.equivalents import OF_HIERARCHIES, OF_HIERARCHY_OPTIONS, OF_PRECONDITIONERS
from ....core.errors import InvalidArgument, InvalidMatrix, ShapeMismatch
from ....core.formats import Diagonal, Matrix
from ....core.formats.arithmetic import add
from ....core.formats.galerkin import Galerkin
from ....core.lazy import Temporary
from ....core.linop import LinOp
from ....core.operations import precision, vector
from ...driver.scaling import power_of_two
from ..base import Preconditioner, checks_put_off
from ..chebyshev import has_real_spectrum
from ..jacobi import count_without_inverse
from . import groups
from .coarsest import coarsest_solver
from .cycle import CYCLES, Walk
from .levels import Level, LevelMatrices, checked_levels
from .phases import Phases
from .plot import plot
from .report import Report, report_of
from .smoothers import settled, smoothers_of

if TYPE_CHECKING:
    from ....core.executor import Array, Executor


#: Numbers below two to this power are finite in float16, and so are their sums in a row.
FLOAT16_EXPONENT = 15

#: Matrices with largest values in this range are not scaled for float32.
SAFE_IN_FLOAT32 = (1e-18, 1e18)


class Multigrid(Preconditioner):
    """Multigrid cycles with given matrices and transfer operators.

    It is usually created by :meth:`from_levels` or :meth:`from_pyamg`; :class:`Amg` builds the
    levels itself.

    Parameters
    ----------
    A : matrix, shape (n, n)
        The operator of the finest level.
    levels : sequence of (A, P, R)
        The matrices of all levels, the finest first: the operator, the interpolation from the next
        level and the restriction to it. ``R`` is optional: the default is the adjoint of ``P``. The
        last level has ``A`` alone.
    smoother : str, Settings, callable, or a pair of these
        A preconditioner by name (``"chebyshev:degree=2"``, ``"l1jacobi"``, ``"jacobi"``,
        ``"blockjacobi"``, ``"ilu:factor_sweeps=2,apply=jacobi:2"``), its settings, or a function of
        a level's matrix that creates one. A pair smooths before and after the coarse level. If the
        matrix is Hermitian and a single smoother is not, its adjoint is used after the coarse
        level.
    cycle : {"V", "W", "F", "K"}
        The visits of coarse levels. K, with two iterations of flexible conjugate gradients on each
        level, varies between iterations: use it with ``Fcg``.
    sweeps : int or (int, int)
        Applications of the smoother before and after the coarse level.
    coarsest : {"dense"} or Settings or callable
        The solver of the coarsest level: its dense inverse (a pseudo-inverse if it is singular),
        settings of a solver, or a function of its matrix that creates one.
    dtype : dtype, optional
        The precision in which levels are stored and computed, such as ``"float32"`` with a float64
        solver; by default, the precision of the matrix. Columns are scaled so that small residuals
        do not leave the range. With ``"bfloat16"`` or ``"float16"``, the matrices of levels are
        stored in that dtype, and vectors and all computations use float32; for real matrices. The
        rounding error of a row of ``A`` or ``P`` is stored as an additional entry of the row, so
        that constant vectors are treated as in float32.
    executor : Executor or str, optional
        The executor of the preconditioner; by default, the matrix's.

    Raises
    ------
    ShapeMismatch
        If levels do not match; the message names the level.
    InvalidArgument
        If an option is out of its range.
    InvalidMatrix
        If a smoother cannot be built for a level.
    UnsupportedDtype
        If values of the matrix cannot be stored in ``dtype``: there are no complex 16-bit dtypes.

    Notes
    -----
    Applications consist of executor operations alone: Krylov loops record the whole cycle with
    their own operations, and on ``cuda`` it runs within the graph of the loop. Each Chebyshev step
    is a product and one pass over vectors.

    References
    ----------
    W. L. Briggs, V. E. Henson, S. F. McCormick, A Multigrid Tutorial, 2nd ed., SIAM 2000; U.
    Trottenberg, C. W. Oosterlee, A. Schueller, Multigrid, Academic Press 2001.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> n, m = 63, 31
    >>> A = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    >>> P = np.zeros((n, m))
    >>> for j in range(m):
    ...     P[2 * j : 2 * j + 3, j] = 0.5, 1.0, 0.5
    >>> M = wl.preconditioners.Multigrid.from_levels([(A, P), P.T @ A @ P])
    >>> wl.solvers.Cg(wl.Csr(A), M, rtol=1e-8).solve(np.ones(n)).iterations < 10
    True
    """

    parts = ()
    updates_in_place = False
    _replacements = OF_PRECONDITIONERS | OF_HIERARCHIES
    _other_options = MappingProxyType(OF_HIERARCHY_OPTIONS)

    levels: list[Level]
    coarsest: LinOp
    #: The scale of the matrices of levels.
    _unit: float
    #: The value of ``smoother=``, with the choices for the matrix.
    _settled: Any
    #: The checks of the smoothers, until the cycle is checked.
    _checks_of_smoothers: Sequence[Callable[[], None]] = ()
    #: Seconds of the last set-up, or of the last update, by phase.
    seconds: dict[str, float]
    #: Recompute the operators of coarser levels; created by the first update.
    _products: list[Galerkin] | None

    def __init__(
        self,
        A: Any,
        levels: Sequence[Any] = (),
        *,
        smoother: Any = "chebyshev",
        cycle: str = "V",
        sweeps: int | Sequence[int] = 1,
        coarsest: Any = "dense",
        dtype: Any = None,
        executor: Executor | str | None = None,
    ) -> None:
        self._user_levels = list(levels)
        self._set_options(smoother, cycle, sweeps, coarsest, dtype)
        super().__init__(A, executor=executor)

    def _set_options(
        self, smoother: Any, cycle: str, sweeps: Any, coarsest: Any, dtype: Any
    ) -> None:
        if cycle not in CYCLES:
            raise InvalidArgument(f"cycle: expected one of {', '.join(CYCLES)}, got {cycle!r}")
        self.smoother, self.cycle, self.coarse_solver = smoother, cycle, coarsest
        self.sweeps = _pair(sweeps)
        requested = None if dtype is None else stored_dtype(dtype)
        if requested is not None and is_exact(dtype):
            raise InvalidArgument(
                f"dtype: expected 'float16', 'bfloat16', 'float32' or 'float64', got {dtype!r}"
            )
        #: The storage dtype of the matrices of levels, if it is lower than the dtype of the
        #: computation.
        self.level_storage = None if requested is None or not is_narrow(requested) else requested
        self.level_dtype = requested if self.level_storage is None else np.dtype(np.float32)

    @classmethod
    def from_levels(cls, levels: Sequence[Any], **options: Any) -> Multigrid:
        """Return multigrid with the given levels.

        Parameters
        ----------
        levels : sequence of (A, P, R), (A, P) or A
            As for the class; SciPy's matrices and arrays are also accepted.
        **options
            As of the class.
        """
        levels_of_matrices = checked_levels(levels, options.pop("executor", None))
        multigrid: Multigrid = cls(levels_of_matrices[0].A, levels_of_matrices, **options)
        return multigrid

    @classmethod
    def from_pyamg(cls, hierarchy: Any, **options: Any) -> Multigrid:
        """Return multigrid with the levels of a ``pyamg`` hierarchy.

        Parameters
        ----------
        hierarchy : pyamg.MultilevelSolver
            The hierarchy. Its matrices are copied, its smoothers are not: select them by
            ``smoother=``.
        **options
            As of the class.

        Examples
        --------
        >>> import wollemi as wl
        >>> import pyamg                                                    # doctest: +SKIP
        >>> ml = pyamg.smoothed_aggregation_solver(S)                       # doctest: +SKIP
        >>> M = wl.preconditioners.Multigrid.from_pyamg(ml)                 # doctest: +SKIP
        """
        levels = getattr(hierarchy, "levels", None)
        if not levels or not hasattr(levels[0], "A"):
            raise InvalidArgument(
                "from_pyamg: expected a hierarchy of PyAMG, with .levels that have A, P and R; got "
                f"{type(hierarchy).__name__}"
            )
        listed = [(one.A, one.P, one.R) for one in levels[:-1]]
        # BSR matrices of PyAMG have blocks for its own kernels: CSR is multiplied here
        rows = [tuple(part.tocsr() for part in level) for level in listed]
        return cls.from_levels([*rows, levels[-1].A.tocsr()], **options)

    # ---- set-up

    def _setup(self, A: Matrix) -> None:
        self._products = None
        self.seconds = Phases()
        with A.executor.uncaptured():
            levels = self._hierarchy(A)
        self._build(levels)

    def _timed(self, phase: str) -> AbstractContextManager[None]:
        """Return a block of work of which the time counts for a phase."""
        assert isinstance(self.seconds, Phases)
        return self.seconds.timed(phase)

    def _hierarchy(self, A: Matrix) -> list[LevelMatrices]:
        """Return the matrices of all levels."""
        levels = checked_levels(self._user_levels or [A], A.executor)
        if levels[0].A.shape != A.shape:
            raise ShapeMismatch(
                f"levels: the first one has a matrix of {levels[0].A.shape[0]} rows, and A has "
                f"{A.shape[0]}"
            )
        return with_full_diagonals([levels[0]._replace(A=A), *levels[1:]])

    def _build(self, matrices: list[LevelMatrices]) -> None:
        """Build smoothers, the coarsest solver and the copies in the dtype of the levels."""
        # computed when a smoother needs it
        is_hermitian = cache(partial(has_real_spectrum, matrices[0].A))
        with self._timed("smoothers"):
            self._build_levels(matrices, is_hermitian)

    def _build_levels(
        self, matrices: list[LevelMatrices], is_hermitian: Callable[[], bool]
    ) -> None:
        A = matrices[0].A
        self._settled = settled(self.smoother, is_hermitian)
        inner = self._inner_dtype(A.dtype)
        self._unit = self._unit_of([level.A for level in matrices])
        if self._unit != 1:
            matrices = [
                level._replace(A=level.A.asformat("csr") * self._unit) for level in matrices
            ]
        self.levels = []
        with checks_put_off() as self._checks_of_smoothers:
            for matrix, P, R in matrices[:-1]:
                assert P is not None and R is not None
                smoothers = smoothers_of(matrix, self._settled, is_hermitian)
                level = Level(matrix, P, R, *smoothers).remade(lambda part: part.astype(inner))
                if self.level_storage is not None:
                    level = level.stored(self.level_storage)
                self.levels.append(level)
        with self._timed("coarsest"):
            self.coarsest = self._coarsest(matrices[-1].A).astype(inner)
        self._last = matrices[-1].A
        self._begin()

    def _require_finite(self) -> None:
        """Check the cycle, which applies all smoothers; if it fails, name the faulty one."""
        checks, self._checks_of_smoothers = self._checks_of_smoothers, ()
        try:
            super()._require_finite()
        except InvalidMatrix:
            for check in checks:
                check()
            raise
        if self.partition is not None or not self.resident:
            for check in checks:
                check()

    def _coarsest(self, A: Matrix) -> LinOp:
        """Return the solver of the coarsest level."""
        return coarsest_solver(A, self.coarse_solver)

    def _unit_of(self, matrices: Sequence[Matrix]) -> float:
        """Return the power of two by which the matrices of levels are scaled.

        For float16, which has few binades, it scales the largest value of all into the last one:
        then values down to 2^-29 of it keep their digits. For other dtypes below the matrix's, it
        is 1 unless values are extreme: then it scales the largest near 1.
        """
        half = self.level_storage is not None and name_of(self.level_storage) == "float16"
        finest = matrices[0]
        narrower = real_dtype(self._inner_dtype(finest.dtype)) != real_dtype(finest.dtype)
        if finest.partition is not None or not (half or narrower):
            return 1.0
        largest = max((largest_of(matrix) for matrix in matrices), default=0.0)
        if not 0 < largest < np.inf:
            return 1.0
        if not half:
            near = SAFE_IN_FLOAT32[0] <= largest <= SAFE_IN_FLOAT32[1]
            return 1.0 if near else power_of_two(largest)
        return float(2.0 ** (FLOAT16_EXPONENT - np.frexp(largest)[1]))

    def _inner_dtype(self, outer: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype of the levels: real or complex like the matrix."""
        if self.level_dtype is None:
            return np.dtype(outer)
        real = real_dtype(self.level_dtype)
        if real.itemsize > real_dtype(outer).itemsize:
            return np.dtype(outer)
        return np.result_type(real, np.complex64) if is_complex(outer) else real

    def _begin(self) -> None:
        """Allocate the data that applications share."""
        self._walk = Walk(self.levels, self.coarsest, self.cycle, self.sweeps)
        self._temporaries = tuple(Temporary() for _ in range(4))

    def _refresh(self, A: Matrix) -> None:
        """Set up again for new values of the finest matrix; the transfer operators are kept.

        The operators of coarser levels are ``R A P``.
        """
        self.seconds = Phases()
        with self._timed("products"):
            matrices = self._new_operators(A)
        self._build(with_full_diagonals(matrices))

    def _new_operators(self, A: Matrix) -> list[LevelMatrices]:
        """Return the matrices of all levels for new values of the finest one."""
        if self._products is None:
            transfers = ((level.P, level.R) for level in self.levels)
            self._products = [
                Galerkin(*(part.asformat("csr").astype(A.dtype) for part in pair))
                for pair in transfers
            ]
        matrices: list[LevelMatrices] = []
        for level, product in zip(self.levels, self._products, strict=True):
            matrices.append(LevelMatrices(A, level.P, level.R))
            A = product(A.asformat("csr").without_duplicates())
        return [*matrices, LevelMatrices(A)]

    # ---- applying

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        alpha = alpha * self._unit  # the levels belong to the scaled matrix
        if self.coarsest.dtype != self.dtype:
            self._apply_in_precision(x, y, alpha, beta)
        elif alpha == 1 and beta == 0:
            self._walk.solve(x, y)
        else:
            (n, k), run = x.shape, self.executor.run
            with self._temporaries[0].block(self.executor, n, k, self.dtype) as z:
                self._walk.solve(x, z)
                run(vector.axpby, z, y, alpha, beta)

    def _apply_in_precision(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        """Scale each column to a largest value of 1, and compute in the dtype of the levels."""
        (n, k), executor, run = x.shape, self.executor, self.executor.run
        first, second, third, _ = self._temporaries
        inner, real = self.coarsest.dtype, real_dtype(self.dtype)
        with (
            first.block(executor, 1, k, real) as scales,
            second.block(executor, n, k, inner) as b,
            third.block(executor, n, k, inner, self._walk.room(0)) as z,
        ):
            scale = scales.reshape(k)
            run(vector.largest, x, scale)
            run(precision.lower, x, scale, b)
            self._walk.solve(b, z)
            run(precision.raised, z, scale, y, alpha, beta)

    @property
    def resident(self) -> bool:
        """Whether applications consist of executor operations alone."""
        return self.coarsest.resident and all(level.resident for level in self.levels)

    @property
    def varies(self) -> bool:
        """Whether cycles are not one fixed linear map: K-cycles, and solvers within a cycle."""
        if self.coarsest.varies or any(level.varies for level in self.levels):
            return True
        # the coarsest level is solved directly: two levels have nothing to accelerate
        return self.cycle == "K" and len(self.levels) > 1

    # ---- moving

    def _remade(self, change: Callable[[LinOp], LinOp]) -> Self:
        """Return a copy with all parts changed; the precision of the levels is kept."""
        copy = super()._remade(change)
        copy._products = None
        inner = copy._inner_dtype(copy.dtype)

        def changed(part: LinOp) -> LinOp:
            return change(part).astype(inner)

        copy.levels = [level.remade(changed) for level in self.levels]
        copy.coarsest, copy._last = changed(self.coarsest), change(self._last)  # type: ignore[assignment]
        copy._begin()
        return copy

    @property
    def H(self) -> LinOp:
        """The adjoint; a Hermitian cycle returns itself."""
        return self._adjoint(lambda part: part.H)

    @property
    def T(self) -> LinOp:
        """The transpose."""
        return self._adjoint(lambda part: part.T)

    def _adjoint(self, turn: Callable[[LinOp], LinOp]) -> Self:
        """Exchange the smoothers before and after the coarse level."""
        adjoint = super()._remade(turn)
        adjoint._products = None
        adjoint.levels = [level.turned(turn) for level in self.levels]
        adjoint.coarsest, adjoint._last = turn(self.coarsest), turn(self._last)  # type: ignore[assignment]
        adjoint.sweeps = (self.sweeps[1], self.sweeps[0])
        adjoint._begin()
        return adjoint

    # reports for users

    def report(self) -> Report:
        """Return the properties of the levels: rows, entries, complexities, memory."""
        return report_of(self)

    def __str__(self) -> str:
        return str(self.report())

    def _repr_html_(self) -> str:
        """Return the card of a notebook: the options, and a row for each level."""
        return side_by_side(facts_table(type(self).__name__, self._facts()), self.report().html())

    def plot(self, **options: Any) -> Any:
        """Draw the pattern of every level's matrix; returns Matplotlib's figure.

        Needs Matplotlib: ``pip install "wollemi[plot]"``.
        """
        return plot(self, **options)


def largest_of(A: Matrix) -> float:
    """Return the largest absolute value of an entry; 0 if there is none."""
    if A.nnz == 0:
        return 0.0
    values = A.asformat("csr").data
    return float(abs(values).max())


def with_full_diagonals(levels: list[LevelMatrices]) -> list[LevelMatrices]:
    """Return levels with 1 where a diagonal of a coarse level was 0."""
    coarse = without_zeros([level.A for level in levels[1:]])
    below = (level._replace(A=A) for A, level in zip(coarse, levels[1:], strict=True))
    return [levels[0], *below]


def without_zeros(matrices: Sequence[Matrix]) -> list[Matrix]:
    """Return the matrices of coarse levels with 1 where a diagonal is 0; themselves if none is.

    If near null vectors are dependent within an aggregate, nothing is interpolated from some
    unknowns, and their rows are empty.
    """
    if not matrices:
        return []
    if matrices[0].partition is not None:
        return groups.without_empty_rows(matrices)  # type: ignore[arg-type, return-value]
    executor = matrices[0].executor
    counts = [executor.zeros((1,), np.int64) for _ in matrices]
    for A, count in zip(matrices, counts, strict=True):
        count_without_inverse(A, count)
    counts_on_host = executor.transfer(*counts).read()
    return [
        A if int(count[0]) == 0 else _with_full_diagonal(A)
        for A, count in zip(matrices, counts_on_host, strict=True)
    ]


def _with_full_diagonal(A: Matrix) -> Matrix:
    """Return a matrix with 1 where its diagonal is 0."""
    missing = A.executor.to_host(A.diagonal()) == 0
    return add(A, Diagonal(missing.astype(A.dtype), executor=A.executor), 1.0, 1.0)


def _pair(sweeps: Any) -> tuple[int, int]:
    pair = tuple(sweeps) if isinstance(sweeps, (tuple, list)) else (sweeps, sweeps)
    whole = all(isinstance(one, (int, np.integer)) and one >= 0 for one in pair)
    if len(pair) != 2 or not whole or sum(pair) == 0:
        raise InvalidArgument(
            f"sweeps: expected a number of sweeps or a pair (before, after), got {sweeps!r}"
        )
    return int(pair[0]), int(pair[1])
