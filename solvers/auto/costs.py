"""Time estimates for the parts of a solve: products, iterations, set-ups and factorizations.

The rates are rough and belong to the device (:mod:`wollemi.core.devices`). Attempts correct them:
all estimates for a matrix are multiplied by the ratio of observed to estimated iteration time.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, log2
from typing import TYPE_CHECKING, NamedTuple

from ...core.devices import of_host
from ...core.operations import triangular
from .structure import NARROW, Structure

if TYPE_CHECKING:
    from ...core.linop import LinOp

#: Upper bound in bytes of the factors of a direct solver.
FACTOR_BYTES = 2**32

#: Entries of factors with little fill-in, per entry of the matrix.
LITTLE_FILL = 2.0

#: Seconds to find the triangular ordering of a matrix and to solve with it: a constant, and per
#: entry.
SUBSTITUTION_CALL, SUBSTITUTION_ENTRY = 4e-4, 6e-8

#: Compare dense with sparse factorizations up to this number of rows.
DENSE_ROWS = 4000


class SolveConstants(NamedTuple):
    """Seconds that parts of a solve take, for values of 8 bytes.

    Attributes
    ----------
    launch : float
        One iteration of a system so small that only launches count.
    entry, row : float
        Per matrix entry, and per row (all vectors together), in an iteration of CG.
    call : float
        One call of a solver, from its set-up to its result.
    bounds : float
        Additional cost of bounds on a spectrum.
    degree : float
        One product of a polynomial preconditioner, in units of CG iterations.
    triangle : float
        Per matrix entry, in an application of incomplete factors.
    factor : float
        Per matrix entry, when incomplete factors are computed.
    matched : float
        The same with a preceding matching of rows to columns.
    hierarchy, level : float
        Setting up a multigrid hierarchy: a constant, and per matrix entry.
    cycle, smoothed : float
        Applying multigrid: a constant, and per matrix entry.
    direct, small : float
        Factorizing a small matrix and solving with it: a constant, and per matrix entry.
    """

    launch: float
    entry: float
    row: float
    call: float
    bounds: float
    degree: float
    triangle: float
    factor: float
    matched: float
    hierarchy: float
    level: float
    cycle: float
    smoothed: float
    direct: float
    small: float


class FactorConstants(NamedTuple):
    """Seconds of exact factorizations, on one core of the host.

    Attributes
    ----------
    ordered : float
        Per matrix entry, for the ordering.
    filled, operation : float
        Per entry of the factors, and per floating-point operation, of SuperLU.
    dense_operation : float
        Per floating-point operation of LAPACK's factorization of a dense matrix.
    band_operation : float
        Per floating-point operation of the factorization of a narrow band.
    """

    ordered: float
    filled: float
    operation: float
    dense_operation: float
    band_operation: float


def factor_constants() -> FactorConstants:
    """Return the constants of exact factors on this processor."""
    return of_host().of(FactorConstants)


def rates_of(A: LinOp) -> SolveConstants:
    """Return the rates of the device of a matrix."""
    return A.executor.constants.of(SolveConstants)


def is_on_host(A: LinOp) -> bool:
    """Return whether the executor of a matrix is a processor, which factorizes matrices itself."""
    return A.executor.supports(triangular.factorize)


@dataclass(frozen=True)
class Fill:
    """The estimated factors of a direct solver.

    Attributes
    ----------
    entries, operations : float
        Entries of the factors, and floating-point operations of the factorization.
    seconds : float
        Time of analysis and factorization.
    engine : str
        The engine that fits the structure, ``"auto"`` for sparse factors.
    ordering : str, optional
        The row ordering that the estimate assumes.
    """

    entries: float
    operations: float
    seconds: float
    engine: str = "auto"
    ordering: str | None = None

    def fits(self, itemsize: int) -> bool:
        """Return whether the factors are likely to fit into memory."""
        return self.entries * (itemsize + 4) <= FACTOR_BYTES


def fill_of(structure: Structure, rules: FactorConstants | None = None) -> Fill:
    """Estimate the factors of a pattern, for the cheapest suitable kind of factorization.

    Notes
    -----
    The estimate for sparse factors assumes nested dissection. The size ``s`` of separators follows
    from the number of levels and the dimension of the pattern (A. George, Nested dissection of a
    regular finite element mesh, SIAM J. Numer. Anal. 10, 1973): ``20 n s`` operations in 2D and
    ``12 n s^1.5`` in 3D for short rows, fitted to SuperLU's counts for grids and elasticity.
    """
    n = max(structure.rows, 1)
    rules = rules or factor_constants()
    if structure.is_triangular:
        seconds = SUBSTITUTION_CALL + SUBSTITUTION_ENTRY * structure.entries
        return Fill(structure.entries, structure.entries, seconds, "substitution")
    kinds = [_sparse(structure, rules)]
    if max(structure.lower, structure.upper) <= NARROW:
        kinds.append(_banded(structure, rules))
    if n <= DENSE_ROWS:
        operations = 2 / 3 * n**3
        kinds.append(Fill(n * n, operations, 1e-4 + rules.dense_operation * operations, "dense"))
    return min(kinds, key=lambda fill: fill.seconds)


def _sparse(structure: Structure, rules: FactorConstants) -> Fill:
    n, dimension = max(structure.rows, 1), structure.dimension
    separator = max(min(dimension * structure.reach, n), 2.0)
    exponent = min(max(3.0 - dimension / max(dimension - 1.0, 0.5), 1.0), 2.0)
    if dimension >= 3.5:
        exponent = 2.0
    longer = max(structure.row_length / 5.0, 0.4)
    constant = 20.0 if exponent < 1.3 else 12.0
    operations = min(constant * longer * n * separator**exponent, 2 / 3 * float(n) ** 3)
    plane = 6.0 * log2(separator) * longer**0.7
    entries = n * max(plane, 0.5 * separator ** (2 * (exponent - 1.0)), structure.row_length)
    entries = min(entries, float(n) * n)
    seconds = (
        1e-3
        + rules.ordered * structure.entries
        + rules.filled * entries
        + rules.operation * operations
    )
    return Fill(entries, operations, seconds)


def _banded(structure: Structure, rules: FactorConstants) -> Fill:
    n, lower, upper = structure.rows, structure.lower, structure.upper
    entries = float(n) * (2 * lower + upper + 1)
    operations = 2.0 * n * lower * (lower + upper + 1)
    seconds = 5e-4 + 25e-9 * structure.entries + 4e-9 * entries + rules.band_operation * operations
    return Fill(entries, operations, seconds, "banded")


def least_of_factors(entries: int) -> float:
    """Return the seconds to factorize a matrix of this many entries with little fill-in."""
    rules = factor_constants()
    return 1e-3 + (rules.ordered + LITTLE_FILL * rules.filled) * entries


def logarithms(rtol: float) -> float:
    """Return the natural logarithm of twice the residual reduction that ``rtol`` asks for."""
    return log(2.0 / min(max(rtol, 1e-16), 0.5))
