"""The estimated time of parts of a solve: products, iterations, set-ups and factorizations.

The rates are rough; :mod:`wollemi.core.devices` has the rates of each device. Observations of
attempts correct them: all estimates for a matrix are scaled by the observed time of iterations over
the estimated one.
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

#: Bytes that the factors of a direct solver may take.
FACTOR_BYTES = 2**32

#: Entries of factors with little fill, for an entry of the matrix.
LITTLE_FILL = 2.0

#: Seconds of orders in which a matrix is triangular and of its solve, and for each entry.
SUBSTITUTION_CALL, SUBSTITUTION_ENTRY = 4e-4, 6e-8

#: Rows up to which a dense factorization is compared with a sparse one.
DENSE_ROWS = 4000


class SolveConstants(NamedTuple):
    """Seconds of parts of the work, for values of 8 bytes.

    Attributes
    ----------
    launch : float
        Of one iteration of a system without work.
    entry, row : float
        Of an entry of the matrix and of a row of all vectors, in an iteration of CG.
    call : float
        Of a call of a solver, from its set-up to its result.
    bounds : float
        Of the bounds of a spectrum, in addition.
    degree : float
        Of a product of a polynomial, in iterations of CG.
    triangle : float
        Of an entry of the factors in an application of incomplete factors.
    factor : float
        Of an entry of the matrix when incomplete factors are made.
    matched : float
        The same with rows matched to columns first.
    hierarchy, level : float
        Of making a hierarchy of multigrid, and of an entry of the matrix in it.
    cycle, smoothed : float
        Of an application of multigrid, and of an entry of the matrix in it.
    direct, small : float
        Of the factors of a small matrix and their solve, and of an entry of the matrix in them.
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
    """Seconds of exact factors, which are made on one core of the host.

    Attributes
    ----------
    ordered : float
        Of an entry of the matrix while it is ordered.
    filled, operation : float
        Of an entry of the factors, and of an operation, by SuperLU.
    dense_operation : float
        Of an operation of LAPACK's factorization of a dense matrix.
    band_operation : float
        Of an operation of the factorization of a narrow band.
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
    """Return whether the executor of a matrix makes exact factors itself: it is a processor."""
    return A.executor.supports(triangular.factorize)


@dataclass(frozen=True)
class Fill:
    """The estimated factors of a direct solver.

    Attributes
    ----------
    entries, operations : float
        Of the factors, and of making them.
    seconds : float
        Of analysis and factorization.
    engine : str
        The engine that fits the structure, ``"auto"`` for sparse factors.
    ordering : str, optional
        The order of the engine that the estimate is for.
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
    """Return the estimated factors of a pattern, of the cheapest kind that fits it.

    Notes
    -----
    Sparse factors come from nested dissection of a pattern; the rows of separators follow from the
    number of levels and its dimension (A. George, Nested dissection of a regular finite element
    mesh, SIAM J. Numer. Anal. 10, 1973): ``20 n s`` operations in the plane and ``12 n s^1.5`` in
    space for short rows, fitted to SuperLU's counts for grids and elasticity.
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
    """Return the seconds of the factors of a matrix with this number of entries and little fill."""
    rules = factor_constants()
    return 1e-3 + (rules.ordered + LITTLE_FILL * rules.filled) * entries


def logarithms(rtol: float) -> float:
    """Return the natural logarithm of the reduction that a tolerance asks for, with twice over."""
    return log(2.0 / min(max(rtol, 1e-16), 0.5))
