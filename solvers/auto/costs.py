"""The estimated time of parts of a solve: products, iterations, set-ups and factorizations.

The rates are rough, one set for each kind of executor. Observations of attempts correct them: all
estimates for a matrix are scaled by the observed time of iterations over the estimated one.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, log2
from typing import TYPE_CHECKING

from ...core.operations import triangular
from .structure import NARROW, Structure

if TYPE_CHECKING:
    from ...core.linop import LinOp

#: Bytes that the factors of a direct solver may take.
FACTOR_BYTES = 2**32

#: Rows up to which a dense factorization is compared with a sparse one.
DENSE_ROWS = 4000


@dataclass(frozen=True)
class Rates:
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


#: Two threads of an EPYC and one H100, 27 November 2026: grids of 100 to 1e6 unknowns.
HOST = Rates(
    launch=3e-6, entry=0.25e-9, row=0.5e-9, call=6e-4, bounds=1e-3, degree=0.8, triangle=1.5e-9,
    factor=28e-9, matched=150e-9, hierarchy=3e-3, level=130e-9, cycle=6e-5, smoothed=5.5e-9,
    direct=1e-3, small=4e-7,
)  # fmt: skip
DEVICE = Rates(
    launch=6e-6, entry=6e-12, row=3.5e-11, call=4.5e-3, bounds=1.4e-2, degree=0.4, triangle=1e-10,
    factor=3e-9, matched=80e-9, hierarchy=2e-2, level=8e-9, cycle=1.2e-4, smoothed=1.6e-10,
    direct=2.5e-3, small=1.2e-6,
)  # fmt: skip

#: Seconds of an entry of the matrix while it is ordered, of an entry of the factors and of an
#: operation, by SuperLU on one core.
ORDERED, FILLED, OPERATION = 0.2e-6, 25e-9, 1.5e-10

#: Seconds of an operation of LAPACK's factorization of a dense matrix.
DENSE_OPERATION = 5e-11

#: The same of a narrow band.
BAND_OPERATION = 3e-10


def rates_of(A: LinOp) -> Rates:
    """Return the rates of the executor of a matrix: exact factors are made on the host."""
    return HOST if A.executor.supports(triangular.factorize) else DEVICE


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


def fill_of(structure: Structure) -> Fill:
    """Return the estimated factors of a pattern, of the cheapest kind that fits it.

    Notes
    -----
    Sparse factors come from nested dissection of a pattern; the rows of separators follow from the
    number of levels and its dimension (A. George, Nested dissection of a regular finite element
    mesh, SIAM J. Numer. Anal. 10, 1973): ``20 n s`` operations in the plane and ``12 n s^1.5`` in
    space for short rows, fitted to SuperLU's counts for grids and elasticity. George, Nested
    dissection of a regular finite element mesh, SIAM J. Numer. Anal. 10, 1973): ``20 n s``
    operations in the plane and ``12 n s^1.5`` in space for short rows, fitted to SuperLU's counts
    for grids and elasticity.
    """
    n = max(structure.rows, 1)
    kinds = [_sparse(structure)]
    if max(structure.lower, structure.upper) <= NARROW:
        kinds.append(_banded(structure))
    if n <= DENSE_ROWS:
        operations = 2 / 3 * n**3
        kinds.append(Fill(n * n, operations, 1e-4 + DENSE_OPERATION * operations, "dense"))
    return min(kinds, key=lambda fill: fill.seconds)


def _sparse(structure: Structure) -> Fill:
    n, dimension = max(structure.rows, 1), structure.dimension
    if structure.is_triangular:
        return Fill(structure.entries, structure.entries, 1e-3 + ORDERED * structure.entries)
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
    seconds = 1e-3 + ORDERED * structure.entries + FILLED * entries + OPERATION * operations
    return Fill(entries, operations, seconds)


def _banded(structure: Structure) -> Fill:
    n, lower, upper = structure.rows, structure.lower, structure.upper
    entries = float(n) * (2 * lower + upper + 1)
    operations = 2.0 * n * lower * (lower + upper + 1)
    seconds = 5e-4 + 25e-9 * structure.entries + 4e-9 * entries + BAND_OPERATION * operations
    return Fill(entries, operations, seconds, "banded")


def logarithms(rtol: float) -> float:
    """Return the natural logarithm of the reduction that a tolerance asks for, with twice over."""
    return log(2.0 / min(max(rtol, 1e-16), 0.5))
