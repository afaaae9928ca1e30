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

#: The name of the direct solver among the methods.
DIRECT = "direct"

#: The identity of the iterations of a candidate: method, class, preconditioner and options.
CandidateKey = tuple[object, ...]

#: The engine with a known order of the rows.
SUPERLU = "superlu"

#: Iterations of CG with multigrid: of scalar elliptic equations, of systems with the constant of
#: each unknown and with rigid body modes as near null space, and of other matrices, for a residual
#: of 1e-8.
CYCLES = {"elliptic": 11.0, "blocks": 35.0, "modes": 16.0, "other": 120.0}

#: Iterations of CG for the levels of a search in breadth and the logarithm of the reduction: 880
#: for 299 + 299 levels in the plane, 184 for 147 in space.
FOR_LEVELS = 0.075

#: The factors of that for matrices that are not known to be diffusion, and for nodes with several
#: unknowns.
UNKNOWN, OF_BLOCKS = 3.0, 5.0

#: The same for the indefinite matrices of waves: MINRES takes 1070 iterations where CG takes 290
#: for diffusion on the same grid, and 230 of 145 on a smaller one.
OF_WAVES = 5.0

#: The factor of the expected iterations where a coefficient jumps: 1627 for 285 with jumps
#: over six magnitudes, 1104 for 285 of a random walker, 2404 for 570 on a larger image.
OF_JUMPS = 4.0

#: The third quartile of sums of rows off the diagonal over the diagonal from which on the diagonal
#: of a matrix that is not Hermitian is weak, the least largest one, and the factor of the expected
#: iterations: BiCGSTAB breaks down for bands of random numbers (15 or more); power flows have 1.3.
WEAK, WEAK_ROW, OF_WEAK = 5.0, 20.0, 6.0

#: How many times as many iterations are expected without a matching where rows are out of order:
#: few of these solves converge.
UNMATCHED = 10.0

#: Without a preconditioner, the iterations grow with the range of the diagonal: by its fourth root
#: over the first number, and by the second one at most. MINRES ends after 19840 iterations without
#: success for 1e8, where a hundred would be expected.
FEW_MAGNITUDES, MOST_UNSCALED = 10.0, 20.0

#: Iterations with incomplete factors in relation to iterations with Jacobi.
BY_FACTORS = 0.38

#: The least factor of that for matrices of which the large entries form lines.
OF_LINES = 0.15

#: Iterations with factors that are exact, or nearly so.
EXACT = 4.0

#: The same for matrices with eigenvalues of both signs, for which incomplete factors are poor, but
#: for zeros on the diagonal: 113 for 134 expected with matched rows of a KKT system.
OF_INDEFINITE = 6.0

#: The power of the slowness of methods with Jacobi with which iterations with factors of matched
#: rows grow.
OF_MATCHED = 0.5

#: Iterations of BiCGSTAB relative to CG for the same levels.
BICGSTAB = 0.6

#: The time of one iteration of a method relative to CG's, without preconditioner.
RELATIVE = {"cg": 1.0, "fcg": 1.1, "minres": 1.1, "bicgstab": 2.0, "cgs": 2.0, "gmres": 2.5}

#: Applications of a preconditioner in one iteration.
APPLICATIONS = {"bicgstab": 2, "cgs": 2}

#: The degree of polynomials of the matrix.
DEGREE = 4

#: Entries of a row up to which a matrix of unknown structure counts as a grid in the plane, and
#: levels of such a grid and of one in space for the root of its rows.
OF_PLANE, PLANE_LEVELS, SPACE_LEVELS = 6.0, 2.0, 3.0

#: Entries of a row up to which diffusion counts as that along a line.
OF_LINE = 3.0

#: Rows up to which devices run all iterations of CG in one kernel, which ends before multigrid is
#: set up.
ONE_KERNEL_ROWS = 40**3


@dataclass(frozen=True)
class Candidate:
    """One method with its preconditioner, and its expected cost.

    Parameters
    ----------
    method : str
        The solver's name, or ``"direct"``.
    M : preconditioner
        As a solver takes it.
    label : str
        The preconditioner's name in notes and tables; "" for none.
    options : mapping
        Of the solver, such as ``restart``.
    setup, per_iteration, iterations : float
        Estimated seconds of the set-up and of an iteration, and how many iterations are expected.
    limit : int, optional
        Iterations at most, if it is not to have the whole budget.
    patient : bool
        Whether it ends early where another candidate is expected to be done sooner.
    repeated : bool
        Whether it may have the whole budget later although the residual does not fall fast enough.
    optional : bool
        Whether the next candidate is tried where the preconditioner cannot be made of the matrix.
    extended : bool
        Whether it goes on with the whole budget at once if the residual falls fast enough.
    needs_definite : bool
        Whether it is left out if CG found that the matrix is not positive definite.
    needs_indefinite : bool
        Whether it is left out until CG has found that.
    kind : type, optional
        The class of the solver, where ``method`` is not the name of one of the package.
    trusted : bool
        Whether the number of iterations follows from a property of the matrix.
    alike : float
        The power of the observed slowness of other methods with which its iterations grow: 1 where
        they grow with the iterations of CG with Jacobi, 0 where they do not.
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
        """The common key of two candidates with the same iterations."""
        M = repr(self.M) if isinstance(self.M, Settings) else id(self.M)
        return self.method, self.kind, M, *sorted(self.options.items())

    @property
    def expected(self) -> float:
        """The expected seconds from the set-up to the solution."""
        return self.seconds(1.0)

    def seconds(self, slowness: float) -> float:
        """Return the expected seconds if methods of the same kind were slower than expected.

        Parameters
        ----------
        slowness : float
            The iterations that an earlier attempt turned out to need over its expected ones.
        """
        return self.setup + slowness**self.alike * self.iterations * self.per_iteration

    @property
    def name(self) -> str:
        """Its name in notes."""
        return f"{self.method} with {self.label}" if self.label else self.method


class Candidates:
    """Makes candidates for one matrix with their estimated costs.

    Parameters
    ----------
    A : matrix
        The matrix.
    properties : Properties
        Its properties.
    rtol : float
        The tolerance.
    columns : int
        Right-hand sides.
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
        found = self.properties
        weak = found.dominance
        levels = self._guessed_levels()
        if found.has_structure and found.structure.dimension < UNRELIABLE:
            levels = float(found.structure.levels)
        by_levels = FOR_LEVELS * levels * self.reduction * factor
        if found.block_size > 1:
            by_levels *= OF_BLOCKS
        elif not found.looks_diffusive:
            by_levels *= OF_WAVES if found.facts.negative_for_constants else UNKNOWN
        most = 20.0 * self.n
        if weak < 1:
            condition = (1 + weak) / (1 - weak)
            most = min(most, max(0.5 * sqrt(condition) * self.reduction, 3.0))
        if by_levels < most and self.jumps:
            by_levels *= OF_JUMPS
        if self.has_weak_diagonal:
            by_levels *= OF_WEAK
        return min(max(by_levels, 10.0), most)

    @property
    def jumps(self) -> bool:
        """Whether the entries look as if a coefficient jumps."""
        constant = self.properties.facts.constant_diagonal
        return self.on_host and not constant and self.properties.sample.jumps

    @property
    def has_weak_diagonal(self) -> bool:
        """Whether rows of a matrix that is not Hermitian are much larger than their diagonal."""
        found = self.properties
        if found.facts.hermitian or not self.on_host or not found.dominance > WEAK_ROW:
            return False
        return found.sample.weakness > WEAK

    @property
    def is_along_a_line(self) -> bool:
        """Whether the matrix is like that of diffusion along a line, or a ring."""
        return self.nnz <= OF_LINE * self.n and self.properties.looks_diffusive

    @property
    def unscaled(self) -> float:
        """How many times as many iterations are expected without a preconditioner.

        It is 1 where Jacobi can be one.
        """
        if not self.properties.facts.not_invertible:
            return 1.0
        times = self.properties.range_of_diagonal**0.25
        return min(max(times / FEW_MAGNITUDES, 1.0), MOST_UNSCALED)

    def _guessed_levels(self) -> float:
        """Return the levels of a grid with this number of rows, in space if its rows are long."""
        if self.is_along_a_line:
            return float(self.n)
        in_space = self.properties.looks_diffusive and self.nnz > OF_PLANE * self.n
        return SPACE_LEVELS * cbrt(self.n) if in_space else PLANE_LEVELS * sqrt(self.n)

    @property
    def _is_mesh(self) -> bool:
        """Whether the levels of the pattern say how many iterations diffusion takes."""
        found = self.properties
        known = not found.has_structure or found.structure.dimension < UNRELIABLE
        return known and found.looks_diffusive

    def _per_iteration(self, method: str, apply: float = 0.0) -> float:
        times = APPLICATIONS.get(method, 1)
        many = 0.5 + 0.5 * self.columns
        return RELATIVE[method] * self.iteration + times * apply * many

    # ---- candidates

    def jacobi(self, method: str, M: Any, **more: Any) -> Candidate:
        """Return a method with Jacobi, or with nothing."""
        factor = BICGSTAB if method in ("bicgstab", "cgs") else 1.0
        if M is None:
            factor *= self.unscaled
        if self.properties.is_out_of_order:
            factor *= UNMATCHED
        plain = M is None or _is(M, Jacobi)
        if method == "cg" and plain and self.on_host:  # a launch for a few scalars is not free
            more["kind"] = EstimatingCg
        made = {"label": "jacobi" if M is not None and plain else "",
                "options": self._options(method)} | more  # fmt: skip
        return Candidate(
            method, M, setup=self.rates.call, per_iteration=self._per_iteration(method),
            iterations=self.jacobi_iterations(factor),
            trusted=self._is_mesh and not self.jumps, alike=1.0, **made,
        )  # fmt: skip

    def factors(self, method: str, *, match: bool = False, **more: Any) -> Candidate:
        """Return a method with incomplete factors; a polynomial of the matrix for CG on devices."""
        rates = self.rates
        if method == "cg" and not self.on_host:
            M, label = Settings(Polynomial, {"degree": DEGREE}), "polynomial"
            setup, apply = rates.call + rates.bounds, DEGREE * rates.degree * self.iteration
        else:
            kind = Ic if method == "cg" else Ilu
            M = Settings(kind, {"match": True} if match else {})
            label = kind.__name__.lower() + (":match" if match else "")
            setup = (rates.matched if match else rates.factor) * self.nnz + 2 * rates.call
            apply = rates.triangle * self.nnz
        factor = (BICGSTAB if method == "bicgstab" else 1.0) * BY_FACTORS
        if self.on_host and self.properties.looks_diffusive and not self.jumps:
            # factors without fill of uncoupled lines are exact
            factor *= min(max(2.0 * (1.0 - self.properties.sample.lines), OF_LINES), 1.0)
        facts = self.properties.facts
        if facts.hermitian and method != "cg" and not facts.not_invertible:  # it is indefinite
            factor *= OF_INDEFINITE
        exact = self.on_host and self.is_along_a_line  # there is no fill
        alike = 0.0 if exact else OF_MATCHED if match else 1.0
        iterations = EXACT if exact else self.jacobi_iterations(factor)
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
            CYCLES[kind] * self.reduction / 19.1, patient=True, optional=True,
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
