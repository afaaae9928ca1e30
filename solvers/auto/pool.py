"""The pool of candidates for a matrix: repeatedly take the cheapest remaining one."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from ...core.settings import Settings
from ..preconditioners import Amg
from ..preconditioners.multigrid import rigid_body_modes
from .candidates import DIRECT, ONE_KERNEL_ROWS, Candidate, CandidateKey, Candidates
from .costs import least_of_factors
from .facts import ROWS_OF_A_SMALL_SYSTEM

if TYPE_CHECKING:
    from ...core.formats import Matrix
    from .properties import Properties

#: Lower bound of the iteration limit of a first candidate.
LEAST_ITERATIONS = 100

#: Time limit of a first candidate that is not stopped by time, as a multiple of the estimated time
#: to factorize a small matrix. TIMES_OF_SMALL_FACTORS is for small matrices, TIMES_OF_LARGE_FACTORS
#: for larger ones, for which this estimate is too low.
TIMES_OF_SMALL_FACTORS, TIMES_OF_LARGE_FACTORS = 0.6, 2.4

#: Iteration limit of a first candidate on a device if multigrid suits the matrix, as a multiple of
#: the expected iterations. A coefficient that jumps in a small part of the domain, where a sample
#: has no rows, takes 2,889 iterations instead of 430; anisotropy takes 531.
TIMES_OF_EXPECTED_ON_DEVICE = 2.0

#: Large entries form lines if the two largest entries of a row have more than this share of the
#: off-diagonal sum.
SHARE_OF_LINES = 0.95

#: Guessed time of a factorization, as a multiple of the time to count the entries of its factors,
#: before they are counted.
TIMES_OF_COUNTING = 3.0

#: Count the entries of the factors before a candidate starts only if this takes less than this
#: fraction of the candidate's expected time.
COUNTING_PART = 0.5

#: Seconds of the structural analysis: a constant, and per entry of the matrix.
SECONDS_OF_ANALYSIS, SECONDS_PER_ENTRY = 2e-4, 7e-9

#: Prefer another candidate to the first one (such as CG with Jacobi) only if its expected time is
#: below this fraction.
PREFERRED_PART = 0.8

#: Create the other candidates before the first one starts if its expected time exceeds this
#: multiple of the time of the structural analysis.
TIMES_AT_ONCE = 4.0

#: Skip the first candidate for a matrix that is not small if a factorization, by the estimate for
#: small matrices, takes less than this fraction of its expected time.
HOPELESS_PART = 0.33

#: The same fraction as PREFERRED_PART for small matrices on a device, where calls take most of the
#: time.
PREFERRED_PART_ON_DEVICE = 0.6

#: Iteration limit of CG with multigrid if the pattern is not analyzed.
ITERATIONS_WITHOUT_PATTERN = 150

#: Iterations without a preconditioner that show whether the replaced diagonal values slow down
#: Jacobi.
PROBING_ITERATIONS = 30

#: Try multigrid for more than this many rows even if the matrix resembles no known problem class.
ROWS_OF_OTHERS = 5000


class Pool:
    """The candidates that are likely to succeed, with their expected times.

    Parameters
    ----------
    A : matrix
        The matrix.
    properties : Properties
        Its properties.
    make : Candidates
        Creates the candidates with their estimates.
    first : Candidate
        The candidate with the cheapest set-up.
    direct : bool
        Whether the direct solver is allowed.
    """

    def __init__(
        self,
        A: Matrix,
        properties: Properties,
        make: Candidates,
        first: Candidate,
        *,
        direct: bool,
    ) -> None:
        self.A, self.properties, self.make, self.first = A, properties, make, first
        self.allows_direct = direct
        #: Ratio of the iterations that an attempt needs, by its residual, to its expected
        #: iterations.
        self.slowness = 1.0
        self._taken: set[CandidateKey] = set()
        self._small_matrix = A.shape[0] < ROWS_OF_A_SMALL_SYSTEM
        self.looked = self.ready = self.is_second = False
        #: Whether the first candidate asks for the others after some iterations. Residuals of
        #: BiCGSTAB are erratic: for a small matrix, the first ones are not conclusive.
        steady = first.method in ("cg", "minres")
        self.asks = make.on_host and (steady or not self._small_matrix)
        self._estimate_first()
        self.candidates = [self.first, *self.early_multigrid]
        #: Whether the first candidate is skipped for another one.
        self.hopeless = self._is_hopeless()
        # BiCGSTAB with Jacobi is quick for a triangular matrix without zeros on the diagonal
        self.substitutes = direct and bool(properties.facts.not_invertible)
        self.substitutes = self.substitutes and properties.is_triangular
        known = properties.has_structure or properties.hints.any_stated
        if known or self.hopeless or self.substitutes or self._is_worth_all():
            self.prepare()

    def _estimate_first(self) -> None:
        candidate, asks = self.first, self.asks
        self.first = self.make.jacobi(
            candidate.method,
            candidate.M,
            label=candidate.label,
            options=candidate.options,
            patient=asks,
        )
        if not asks:
            self.first = replace(self.first, limit=self._limit(self.first))

    def _is_hopeless(self) -> bool:
        """Return whether a factorization clearly beats a first candidate that no clock stops.

        The estimate is made for small matrices; for a larger matrix, the required advantage is
        larger.
        """
        if not self.allows_direct or (self.asks and not self._small_matrix):
            return False
        times = HOPELESS_PART
        if self._small_matrix:
            times = PREFERRED_PART if self.make.on_host else PREFERRED_PART_ON_DEVICE
        return self._small().expected < times * self.seconds(self.first)

    def _is_worth_all(self) -> bool:
        """Return whether the other candidates are created before the first one starts.

        They are created if rows are out of order, if the diagonal has zeros and varies over orders
        of magnitude, and for diffusion along a line: it takes as many iterations as the matrix has
        rows, while its incomplete factors are exact.
        """
        if not self.asks:
            return False
        slow = self.first.expected > TIMES_AT_ONCE * self.seconds_of_structure
        if not slow:
            return False
        unscaled = self.first.M is None and self.make.unscaled > 1
        return unscaled or self.properties.is_out_of_order or self.make.is_along_a_line

    def _limit(self, first: Candidate) -> int:
        """Return the iteration limit of a first candidate that is not stopped by time."""
        times = TIMES_OF_SMALL_FACTORS if self._small_matrix else TIMES_OF_LARGE_FACTORS
        limit = max(int(times * self._small().expected / first.per_iteration), LEAST_ITERATIONS)
        if first.trusted and self.early_multigrid:
            limit = max(int(TIMES_OF_EXPECTED_ON_DEVICE * first.iterations), LEAST_ITERATIONS)
        whole = first.options.get("restart", 0) >= self.A.shape[0]
        return max(limit, 2 * self.A.shape[0]) if whole else limit

    @cached_property
    def early_multigrid(self) -> list[Candidate]:
        """Return multigrid for diffusion on a device, where no clock stops CG."""
        if self.make.on_host or self.A.shape[0] < ONE_KERNEL_ROWS:
            return []
        facts = self.properties.facts
        suits = facts.may_be_definite and self.properties.looks_diffusive
        candidates = self._multigrid("cg") if suits else []
        return [replace(c, patient=False, limit=ITERATIONS_WITHOUT_PATTERN) for c in candidates]

    @property
    def has_early_multigrid(self) -> bool:
        """Whether multigrid may come next without a structural analysis, which the host makes."""
        return not self.ready and any(each.key not in self._taken for each in self.early_multigrid)

    def prepare(self) -> None:
        """Create the other candidates; analyze the structure if the matrix is not small."""
        if self.ready:
            return
        self.ready, self.looked = True, self.substitutes or not self._small_matrix
        if self.looked:
            _ = self.properties.structure
            if not self.is_second:
                self._estimate_first()
        self.candidates = [self.first, *self._others()]
        if self.allows_direct:
            self.candidates.append(self._direct() if self.looked else self._small())

    @property
    def has_lines(self) -> bool:
        """Whether large entries form lines: the levels then do not predict the iterations."""
        return self.make.on_host and self.properties.sample.lines > SHARE_OF_LINES

    def least_without_structure(self) -> float:
        """Return the expected seconds of the cheapest other candidate, without the structure.

        The structural analysis takes as long as some iterations. The estimate for a direct solver
        assumes little fill-in.
        """
        if self._small_matrix and self.allows_direct:
            return self.least_of_small()
        other = min((self.seconds(c) for c in self._others()), default=float("inf"))
        factors = least_of_factors(self.A.nnz) if self.allows_direct else float("inf")
        return min(other, factors)

    @property
    def seconds_of_structure(self) -> float:
        """The estimated seconds of the structural analysis."""
        return SECONDS_OF_ANALYSIS + SECONDS_PER_ENTRY * self.A.nnz

    def least_of_small(self) -> float:
        """Return the expected seconds to factorize a small matrix, infinity for other matrices."""
        if self._small_matrix and self.allows_direct:
            return self._small().expected
        return float("inf")

    def yields(self) -> bool:
        """Return whether another candidate is clearly better than the first one."""
        left = self._left(indefinite=False)
        return any(c is not self.first and self._clearly_better(c) for c in left)

    def _count(self, seconds: float) -> None:
        # with more entries than this, the factorization takes longer than ``seconds``
        self.properties.count_fill(4.0 * seconds / 25e-9 + 20.0 * self.A.nnz)

    def _direct(self) -> Candidate:
        """Return the direct solver; its time is a guess until the fill-in is known."""
        counting = self.properties.counting_seconds
        if counting:
            guess = TIMES_OF_COUNTING * counting
            return Candidate(DIRECT, setup=guess, per_iteration=0.05 * guess, iterations=2)
        return self.make.direct(self.properties.fill)

    def _small(self) -> Candidate:
        """Return the direct solver for a small matrix, without an estimate of its fill-in."""
        solved = self.make.rates.direct + self.make.rates.small * self.A.nnz
        return Candidate(DIRECT, setup=solved, per_iteration=0.1 * solved, iterations=1)

    def _others(self) -> list[Candidate]:
        facts, make = self.properties.facts, self.make
        candidates: list[Candidate] = []
        definite = facts.may_be_definite
        if definite:
            minres = make.jacobi("minres", self.first.M, patient=True, needs_indefinite=True)
            candidates += [*self._multigrid("cg"), make.factors("cg", needs_definite=True), minres]
        elif not facts.hermitian and not (make.on_host and self.properties.sample.units_vary):
            candidates += self._multigrid("gmres")  # multigrid adds rows: their units must agree
        if self._has_replaced_diagonal:
            candidates.append(self._probe())
        if not facts.not_invertible:
            candidates.append(make.factors("bicgstab", needs_indefinite=definite))
        return [*candidates, make.factors("gmres", match=True, needs_indefinite=definite)]

    @property
    def _has_replaced_diagonal(self) -> bool:
        """Whether Jacobi replaces some zero diagonal values by 1, perhaps of another unit."""
        properties = self.properties
        replaced = bool(properties.facts.not_invertible) and self.first.M is not None
        return replaced and not properties.facts.hermitian and not properties.is_out_of_order

    @property
    def has_quick_probe(self) -> bool:
        """Whether the next candidate is the first method without a preconditioner.

        It takes less time than the structural analysis.
        """
        waits = bool(self._taken) and not self.ready and len(self.candidates) == 1
        return waits and self._has_replaced_diagonal

    def _taken_probe(self) -> Candidate:
        self.candidates.append(self._probe())
        self._taken.add(self.candidates[-1].key)
        return self.candidates[-1]

    def _probe(self) -> Candidate:
        """Return the first method without a preconditioner, limited to a few iterations."""
        probe = self.make.jacobi(self.first.method, None)
        return replace(probe, iterations=PROBING_ITERATIONS, limit=PROBING_ITERATIONS, alike=0.0)

    def _multigrid(self, method: str) -> list[Candidate]:
        facts, hints = self.properties.facts, self.properties.hints
        definite = method == "cg"
        modes = hints.near_null
        if modes is None and hints.coordinates is not None:
            modes = rigid_body_modes(hints.coordinates)
        size = self.properties.block_size
        if modes is not None:
            options = {"near_null": modes} | ({"block_size": size} if size > 1 else {})
            kind = "modes"
        elif size > 1:
            options, kind = {"block_size": size}, "blocks"
        elif self.properties.looks_diffusive:
            options, kind = {}, "elliptic"
        elif facts.rows > ROWS_OF_OTHERS and definite:
            options, kind = {}, "other"
        else:
            return []
        candidate = self.make.multigrid(
            method, Settings(Amg, options), kind, needs_definite=definite
        )
        return [candidate]

    # ---- in turn

    def take(
        self, *, indefinite: bool, over: Container[CandidateKey], spent: float
    ) -> Candidate | None:
        """Return the remaining candidate that is expected to finish first.

        Parameters
        ----------
        indefinite : bool
            Whether CG found that the matrix is not positive definite.
        over : container
            The keys of candidates to skip.
        spent : float
            Seconds that earlier attempts took.
        """
        if self._taken and indefinite and self.asks and not (self.ready or self.is_second):
            return self._minres()
        if self.has_quick_probe:
            return self._taken_probe()
        if self._taken and not self.has_early_multigrid:
            self.prepare()  # the first candidate failed
        left = [c for c in self._left(indefinite=indefinite) if c.key not in over]
        if not left:
            return None
        best = min(left, key=self.seconds)
        if self.first in left and not self._clearly_better(best):
            best = self.first
        if self._is_counted_before(best, left, spent):
            return self.take(indefinite=indefinite, over=over, spent=spent)
        self._taken.add(best.key)
        return best

    def about(self, candidate: Candidate) -> list[str]:
        """Return the note on a candidate that is taken instead of the first one."""
        if candidate is self.first:
            return []
        return [f"{candidate.name}: the estimate is lower than that of {self.first.name}"]

    def _is_counted_before(self, best: Candidate, left: list[Candidate], spent: float) -> bool:
        """Count the entries of the factors if that is worth its time; update their estimate."""
        direct = next((c for c in left if c.method == DIRECT), None)
        if direct is None or not self._is_worth_counting(best):
            return False
        others = [self.seconds(c) for c in left if c is not direct]
        self._count(max([spent, self.seconds(direct), *others]))
        self.candidates = [c for c in self.candidates if c is not direct] + [self._direct()]
        return True

    def _is_worth_counting(self, best: Candidate) -> bool:
        """Return whether to count the entries of the factors before the best candidate starts.

        They are counted if it is the direct solver itself, or a candidate with an uncertain number
        of iterations that takes longer than counting.
        """
        if best is self.first or not self.looked:
            return False
        counting = self.properties.counting_seconds
        if best.method == DIRECT or not counting:
            return counting > 0
        return not best.trusted and counting < COUNTING_PART * self.seconds(best)

    def _minres(self) -> Candidate:
        """Return MINRES instead of CG, which soon found that the matrix is indefinite."""
        self.is_second = True
        self.first = self.make.jacobi("minres", self.first.M, patient=True, needs_indefinite=True)
        self.candidates = [self.first]
        self._taken.add(self.first.key)
        return self.first

    def seconds(self, candidate: Candidate) -> float:
        """Return the expected seconds of a candidate, corrected by the observed slowness."""
        return candidate.seconds(self.slowness)

    def _fits(self, itemsize: int) -> bool:
        uncounted = bool(self.properties.counting_seconds)
        return uncounted or self.properties.fill.fits(itemsize)

    def _clearly_better(self, best: Candidate) -> bool:
        on_device = not self.make.on_host
        if on_device and self.A.shape[0] < ONE_KERNEL_ROWS and not self.hopeless:
            return False
        return self.seconds(best) < PREFERRED_PART * self.seconds(self.first)

    def cheapest(self, *, indefinite: bool) -> float:
        """Return the expected seconds of the cheapest remaining candidate."""
        if not self.has_early_multigrid:
            self.prepare()
        left = self._left(indefinite=indefinite)
        return min((self.seconds(c) for c in left), default=float("inf"))

    def _left(self, *, indefinite: bool) -> list[Candidate]:
        itemsize = self.A.dtype.itemsize
        return [
            c
            for c in self.candidates
            if c.key not in self._taken
            and not (c.needs_definite and indefinite)
            and not (c.needs_indefinite and not indefinite)
            and not (c.method == DIRECT and self.looked and not self._fits(itemsize))
        ]
