"""The candidates for a square system: methods with preconditioners, and their expected costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import cbrt, sqrt
from typing import TYPE_CHECKING, Any

from ...core.formats import Matrix
from ...core.settings import Settings
from ..preconditioners import Ic, Ilu, Jacobi, Polynomial
from .costs import Fill, SolveConstants, is_on_host, logarithms, rates_of
from .estimating import EstimatingCg
from .structure import UNRELIABLE

if TYPE_CHECKING:
    from .properties import Properties

#: The name of the direct solver in ``method``.
DIRECT = "direct"

#: Identifies the iterations of a candidate: method, class, preconditioner and options.
CandidateKey = tuple[object, ...]

#: The direct engine that accepts a given row ordering.
SUPERLU = "superlu"

#: Expected iterations of CG with multigrid for a residual reduction to 1e-8, by the kind of matrix:
#: scalar elliptic equations; systems with one constant per unknown of a node as near null space;
#: systems with rigid body modes as near null space; other matrices.
MULTIGRID_ITERATIONS = {"elliptic": 11.0, "blocks": 35.0, "modes": 16.0, "other": 120.0}

#: Expected iterations of CG per level of a breadth-first search and per unit of the natural
#: logarithm of the residual reduction. Measured: 880 iterations for 299 + 299 levels in 2D, 184 for
#: 147 levels in 3D.
ITERATIONS_PER_LEVEL = 0.075

#: Factors of the expected iterations for matrices that do not look like diffusion
#: (FACTOR_OF_UNKNOWN), and for nodes with several unknowns (FACTOR_OF_BLOCKS).
FACTOR_OF_UNKNOWN, FACTOR_OF_BLOCKS = 3.0, 5.0

#: The same factor for indefinite matrices of wave problems. Measured: MINRES takes 1070 iterations
#: where CG takes 290 for diffusion on the same grid, and 230 where CG takes 145 on a smaller grid.
FACTOR_OF_WAVES = 5.0

#: Factor of the expected iterations for a jumping coefficient. Measured: 1627 iterations for 285
#: expected ones with jumps over six orders of magnitude, 1104 for 285 for a random walker, 2404 for
#: 570 on a larger image.
FACTOR_OF_JUMPS = 4.0

#: The diagonal of a non-Hermitian matrix is weak if the ratio of a row's off-diagonal sum to its
#: diagonal entry exceeds WEAK_ROW for the largest row and WEAK_QUARTILE for the third quartile of
#: the rows. The expected iterations then grow by the factor FACTOR_OF_WEAK. BiCGSTAB breaks down
#: for bands of random numbers (ratio 15 or more); power flow matrices have 1.3.
WEAK_QUARTILE, WEAK_ROW, FACTOR_OF_WEAK = 5.0, 20.0, 6.0

#: Factor of the expected iterations without a matching if rows are out of order: few of these
#: solves converge.
FACTOR_OF_UNMATCHED = 10.0

#: Without a preconditioner, multiply the expected iterations by the fourth root of the range of the
#: diagonal, divided by FEW_MAGNITUDES; at least by 1, at most by MOST_UNSCALED. Measured for a
#: range of 1e8: MINRES stops without success after 19840 iterations, where about a hundred would be
#: expected.
FEW_MAGNITUDES, MOST_UNSCALED = 10.0, 20.0

#: Ratio of the iterations with incomplete factors to the iterations with Jacobi.
RATIO_OF_FACTORS_TO_JACOBI = 0.38

#: Lower bound of the additional factor for matrices with lines of large entries.
LEAST_FACTOR_OF_LINES = 0.15

#: Expected iterations with incomplete factors that are exact, or nearly so.
ITERATIONS_OF_EXACT = 4.0

#: Factor of the expected iterations with incomplete factors for a Hermitian indefinite matrix
#: without zeros on the diagonal: its incomplete factors are poor. With zeros on the diagonal and
#: matched rows the estimate needs no such factor: a KKT system took 113 iterations where 134 were
#: expected.
FACTOR_OF_INDEFINITE = 6.0

#: Iterations with incomplete factors of matched rows grow with this power of the observed slowness
#: of methods with Jacobi.
EXPONENT_OF_MATCHED = 0.5

#: Ratio of the iterations of BiCGSTAB to the iterations of CG for the same number of levels.
RATIO_OF_BICGSTAB_TO_CG = 0.6

#: Time of one iteration of each method relative to CG, without a preconditioner.
TIME_RELATIVE_TO_CG = {
    "cg": 1.0,
    "fcg": 1.1,
    "minres": 1.1,
    "bicgstab": 2.0,
    "cgs": 2.0,
    "gmres": 2.5,
}

#: Applications of the preconditioner in one iteration; 1 for methods not listed.
APPLICATIONS = {"bicgstab": 2, "cgs": 2}

#: Degree of the polynomial preconditioner.
POLYNOMIAL_DEGREE = 4

#: Without a structural analysis, a diffusive matrix with more than ENTRIES_OF_PLANE entries per row
#: counts as a 3D grid, any other matrix as a 2D grid. The number of levels is estimated as
#: PLANE_LEVELS * sqrt(n) or SPACE_LEVELS * cbrt(n) for n rows.
ENTRIES_OF_PLANE, PLANE_LEVELS, SPACE_LEVELS = 6.0, 2.0, 3.0

#: A diffusive matrix with at most this many entries per row counts as one-dimensional.
ENTRIES_OF_LINE = 3.0

#: Below this number of rows, devices run all iterations of CG in one kernel, which finishes before
#: multigrid is set up.
ONE_KERNEL_ROWS = 40**3


@dataclass(frozen=True)
class Candidate:
    """One method with its preconditioner, and its expected cost.

    Parameters
    ----------
    method : str
        Name of the solver, or ``"direct"``.
    M : preconditioner
        The preconditioner, as the solver accepts it.
    label : str
        The preconditioner's name in notes and tables; "" for none.
    options : mapping
        Options of the solver, such as ``restart``.
    setup, per_iteration, iterations : float
        Estimated seconds of the set-up and of one iteration, and the expected number of iterations.
    limit : int, optional
        Iteration limit; None allows the whole budget of an attempt.
    patient : bool
        Whether an attempt ends early when another candidate is expected to finish sooner.
    repeated : bool
        Whether the candidate may be tried again with the whole budget although its residual did not
        fall fast enough.
    optional : bool
        Whether the next candidate is tried if the preconditioner cannot be built for the matrix.
    extended : bool
        Whether an attempt at its limit continues at once with the whole budget if the residual
        falls fast enough.
    needs_definite : bool
        Whether the candidate is skipped once CG has found that the matrix is not positive definite.
    needs_indefinite : bool
        Whether the candidate is skipped until CG has found that.
    kind : type, optional
        The class of the solver, if ``method`` does not name a solver of the package.
    trusted : bool
        Whether the number of iterations follows from a property of the matrix.
    alike : float
        The expected iterations grow with the observed slowness of other methods to this power: 1 if
        they grow like the iterations of CG with Jacobi, 0 if they are independent of them.
    """

    method: str
    M: Any = None
    label: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    setup: float = 0.0
    per_iteration: float = 0.0
    iterations: float = 0.0
    limit: int | None = None
    patient: bool = False
    repeated: bool = True
    optional: bool = False
    extended: bool = True
    needs_definite: bool = False
    needs_indefinite: bool = False
    kind: type | None = None
    trusted: bool = False
    alike: float = 0.0

    @cached_property
    def key(self) -> CandidateKey:
        """Key that is equal for candidates with the same iterations."""
        M = repr(self.M) if isinstance(self.M, Settings) else id(self.M)
        return self.method, self.kind, M, *sorted(self.options.items())

    @property
    def expected(self) -> float:
        """The expected seconds from the set-up to the solution."""
        return self.seconds(1.0)

    def seconds(self, slowness: float) -> float:
        """Return the expected seconds, corrected by the observed slowness of similar methods.

        Parameters
        ----------
        slowness : float
            Ratio of the iterations that an earlier attempt needed to its expected iterations.
        """
        return self.setup + slowness**self.alike * self.iterations * self.per_iteration

    @property
    def name(self) -> str:
        """The name of the candidate in notes."""
        return f"{self.method} with {self.label}" if self.label else self.method


class Candidates:
    """Creates candidates for one matrix with their estimated costs.

    Parameters
    ----------
    A : matrix
        The matrix.
    properties : Properties
        Its properties.
    rtol : float
        The tolerance.
    columns : int
        Number of right-hand sides.
    restart : int
        The cycle length of GMRES.
    """

    def __init__(
        self, A: Matrix, properties: Properties, rtol: float, columns: int, restart: int
    ) -> None:
        self.A, self.properties, self.columns, self.restart = A, properties, columns, restart
        self.rates: SolveConstants = rates_of(A)
        self.on_host = is_on_host(A)
        self.reduction = logarithms(rtol)
        self.n, self.nnz = max(A.shape[0], 1), int(A.nnz)

    # ---- estimates

    @property
    def iteration(self) -> float:
        """Seconds of an iteration of CG with Jacobi."""
        moved = self.rates.entry * self.nnz + self.rates.row * self.n
        return self.rates.launch + moved * (0.5 + 0.5 * self.columns)

    def jacobi_iterations(self, factor: float = 1.0) -> float:
        """Return the expected iterations of CG with Jacobi, times a factor of the method."""
        properties = self.properties
        weak = properties.dominance
        levels = self._guessed_levels()
        if properties.has_structure and properties.structure.dimension < UNRELIABLE:
            levels = float(properties.structure.levels)
        by_levels = ITERATIONS_PER_LEVEL * levels * self.reduction * factor
        if properties.block_size > 1:
            by_levels *= FACTOR_OF_BLOCKS
        elif not properties.looks_diffusive:
            by_levels *= (
                FACTOR_OF_WAVES if properties.facts.negative_for_constants else FACTOR_OF_UNKNOWN
            )
        most = 20.0 * self.n
        if weak < 1:
            condition = (1 + weak) / (1 - weak)
            most = min(most, max(0.5 * sqrt(condition) * self.reduction, 3.0))
        if by_levels < most and self.jumps:
            by_levels *= FACTOR_OF_JUMPS
        if self.has_weak_diagonal:
            by_levels *= FACTOR_OF_WEAK
        return min(max(by_levels, 10.0), most)

    @property
    def jumps(self) -> bool:
        """Whether the entries suggest a coefficient with jumps.

        A small matrix on a device is solved before a sample of its rows reaches the host.
        """
        if self.properties.facts.constant_diagonal or self.A.partition is not None:
            return False
        large = self.n >= ONE_KERNEL_ROWS and self.properties.looks_diffusive
        return (self.on_host or large) and self.properties.sample.jumps

    @property
    def has_weak_diagonal(self) -> bool:
        """Whether off-diagonal row sums of a non-Hermitian matrix far exceed the diagonal."""
        properties = self.properties
        if properties.facts.hermitian or not self.on_host or not properties.dominance > WEAK_ROW:
            return False
        return properties.sample.weakness > WEAK_QUARTILE

    @property
    def is_along_a_line(self) -> bool:
        """Whether the matrix resembles diffusion along a line or a ring."""
        return self.nnz <= ENTRIES_OF_LINE * self.n and self.properties.looks_diffusive

    @property
    def unscaled(self) -> float:
        """Factor of the expected iterations without a preconditioner.

        It is 1 if the whole diagonal is invertible, so that Jacobi applies.
        """
        if not self.properties.facts.not_invertible:
            return 1.0
        times = self.properties.range_of_diagonal**0.25
        return min(max(times / FEW_MAGNITUDES, 1.0), MOST_UNSCALED)

    def _guessed_levels(self) -> float:
        """Return the levels of a grid with this number of rows; long rows suggest a 3D grid."""
        if self.is_along_a_line:
            return float(self.n)
        in_space = self.properties.looks_diffusive and self.nnz > ENTRIES_OF_PLANE * self.n
        return SPACE_LEVELS * cbrt(self.n) if in_space else PLANE_LEVELS * sqrt(self.n)

    @property
    def _is_mesh(self) -> bool:
        """Whether the number of levels predicts the iterations, as it does for diffusion."""
        properties = self.properties
        known = not properties.has_structure or properties.structure.dimension < UNRELIABLE
        return known and properties.looks_diffusive

    def _per_iteration(self, method: str, apply: float = 0.0) -> float:
        times = APPLICATIONS.get(method, 1)
        many = 0.5 + 0.5 * self.columns
        return TIME_RELATIVE_TO_CG[method] * self.iteration + times * apply * many

    # ---- candidates

    def jacobi(self, method: str, M: Any, **more: Any) -> Candidate:
        """Return a method with Jacobi, or without a preconditioner."""
        factor = RATIO_OF_BICGSTAB_TO_CG if method in ("bicgstab", "cgs") else 1.0
        if M is None:
            factor *= self.unscaled
        if self.properties.is_out_of_order:
            factor *= FACTOR_OF_UNMATCHED
        plain = M is None or _is(M, Jacobi)
        if method == "cg" and plain and self.on_host:  # a launch for a few scalars is not free
            more["kind"] = EstimatingCg
        defaults = {"label": "jacobi" if M is not None and plain else "",
                "options": self._options(method)} | more  # fmt: skip
        return Candidate(
            method, M, setup=self.rates.call, per_iteration=self._per_iteration(method),
            iterations=self.jacobi_iterations(factor),
            trusted=self._is_mesh and not self.jumps, alike=1.0, **defaults,
        )  # fmt: skip

    def factors(self, method: str, *, match: bool = False, **more: Any) -> Candidate:
        """Return a method with incomplete factors, or CG on devices with a polynomial."""
        rates = self.rates
        if method == "cg" and not self.on_host:
            M, label = Settings(Polynomial, {"degree": POLYNOMIAL_DEGREE}), "polynomial"
            setup, apply = (
                rates.call + rates.bounds,
                POLYNOMIAL_DEGREE * rates.degree * self.iteration,
            )
        else:
            kind = Ic if method == "cg" else Ilu
            M = Settings(kind, {"match": True} if match else {})
            label = kind.__name__.lower() + (":match" if match else "")
            setup = (rates.matched if match else rates.factor) * self.nnz + 2 * rates.call
            apply = rates.triangle * self.nnz
        factor = (
            RATIO_OF_BICGSTAB_TO_CG if method == "bicgstab" else 1.0
        ) * RATIO_OF_FACTORS_TO_JACOBI
        if self.on_host and self.properties.looks_diffusive and not self.jumps:
            # incomplete factors of uncoupled lines are exact
            factor *= min(
                max(2.0 * (1.0 - self.properties.sample.lines), LEAST_FACTOR_OF_LINES), 1.0
            )
        facts = self.properties.facts
        if facts.hermitian and method != "cg" and not facts.not_invertible:  # it is indefinite
            factor *= FACTOR_OF_INDEFINITE
        exact = self.on_host and self.is_along_a_line  # the exact factors have no fill-in
        alike = 0.0 if exact else EXPONENT_OF_MATCHED if match else 1.0
        iterations = ITERATIONS_OF_EXACT if exact else self.jacobi_iterations(factor)
        return Candidate(
            method, M, label, self._options(method), setup, self._per_iteration(method, apply),
            iterations, patient=True, optional=True, alike=alike, **more,
        )  # fmt: skip

    def multigrid(self, method: str, M: Settings, kind: str, **more: Any) -> Candidate:
        """Return a method with algebraic multigrid."""
        rates = self.rates
        by_aggregates = kind in ("blocks", "modes")
        wide = 1.6 if self.nnz > 6 * self.n and not by_aggregates else 1.0
        setup = rates.hierarchy + wide * rates.level * self.nnz + rates.call
        apply = rates.cycle + (0.45 if by_aggregates else wide) * rates.smoothed * self.nnz
        return Candidate(
            method, M, "amg", self._options(method), setup, self._per_iteration(method, apply),
            MULTIGRID_ITERATIONS[kind] * self.reduction / 19.1, patient=True, optional=True,
            trusted=kind != "other", **more,
        )  # fmt: skip

    def direct(self, fill: Fill) -> Candidate:
        """Return the direct solver."""
        solve = 4e-9 * fill.entries * self.columns
        options = {} if fill.engine == "auto" else {"engine": fill.engine}
        if fill.ordering is not None and self.on_host:
            options = {"engine": SUPERLU, "ordering": fill.ordering}
        label = "" if fill.engine == "auto" else fill.engine
        return Candidate(DIRECT, None, label, options, fill.seconds, solve, 2.0)

    def _options(self, method: str) -> dict[str, Any]:
        return {"restart": self.restart} if method in ("gmres", "fgmres") else {}


def _is(M: Any, kind: type) -> bool:
    return isinstance(M, kind) or (isinstance(M, Settings) and M.kind is kind)
