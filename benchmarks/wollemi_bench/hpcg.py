"""``wollemi bench hpcg``: an HPCG-like rating of conjugate gradients with multigrid.

HPCG 3.1 defines the problem, the cycle, the tests and the count of operations: a 27-point
stencil, a V-cycle over four levels with one symmetric Gauss-Seidel sweep before and after each
coarser level, and injection between them. The sweeps take the rows color by color. The number of
iterations is the one that reaches the residual of 50 iterations with sweeps in the order of the
rows, and the operations of 50 iterations are divided by its time. A tenth of the set-up is added to
each set of iterations.

It is no HPCG result: the time of the run is not half an hour, and no list accepts it.

References
----------
J. Dongarra, M. A. Heroux, P. Luszczek, A new metric for ranking high-performance computing systems,
National Science Review 3 (2016); the source of HPCG 3.1, ``ReportResults.cpp`` and ``TestCG.cpp``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import wollemi as wl
from wollemi.core.errors import InvalidArgument
from wollemi.core.executor import Array, Executor
from wollemi.core.formats import Csr
from wollemi.core.linop import LinOp
from wollemi.core.settings import Settings

from .report import Record

#: Levels of the cycle, and iterations of the reference.
LEVELS, REFERENCE = 4, 50

#: Most iterations of the method by colors, over the iterations of the reference.
MOST = 10

#: Entries of a row, and the values on the diagonal and beside it.
POINTS, DIAGONAL, BESIDE = 27, 26.0, -1.0

#: The part of the set-up that is added to each set of iterations.
PART_OF_SETUP = 0.1

#: The test of convergence: the factor of the diagonal, rows with diagonals of their own, the
#: tolerance, and iterations at most without the cycle and with it.
FACTOR, OWN_ROWS, TOLERANCE = 1e6, 9, 1e-12
FEW_ITERATIONS = (12, 2)

#: The largest relative difference of the residuals of two sets.
SAME = 1e-6

#: Points along each axis of the usual grid of a device and of a CPU.
DEVICE_POINTS, HOST_POINTS = 192, 32

#: Sets of iterations at least.
FEWEST_SETS = 3


@dataclass(frozen=True)
class GridLevel:
    """A level: the stencil and the injection of its points with even coordinates.

    Attributes
    ----------
    A : Csr, shape (n**3, n**3)
        The stencil.
    R : Csr, shape ((n // 2)**3, n**3), or None
        The injection; None of the coarsest level.
    """

    A: Csr
    R: Csr | None


@dataclass(frozen=True)
class Rating:
    """The outcome of a run.

    Attributes
    ----------
    points : int
        Along each axis of the finest grid.
    executor : str
        The name of the executor.
    rows, entries : int
        Of the finest level.
    gflops : float
        The rating: operations of 50 iterations over the time of a set, with a tenth of the set-up.
    gflops_without_setup : float
        The same without the set-up.
    iterations : int
        Iterations of a set.
    sets : list of float
        The seconds of each set.
    flops : int
        Operations of 50 iterations.
    problem_seconds, optimization_seconds : float
        The set-up: making the matrices, and colors, orders and plans.
    reference_residual : float
        The relative residual after 50 iterations of the reference.
    departures : (float, float)
        The departures from symmetry of the matrix and of the cycle, in units of rounding; at most 1
        is allowed.
    test_iterations : (int, int)
        Iterations of the test of convergence without the cycle and with it.
    spread : float
        The largest relative difference of the residuals of the sets.
    """

    points: int
    executor: str
    rows: int
    entries: int
    gflops: float
    gflops_without_setup: float
    iterations: int
    sets: list[float]
    flops: int
    problem_seconds: float
    optimization_seconds: float
    reference_residual: float
    departures: tuple[float, float]
    test_iterations: tuple[int, int]
    spread: float

    @property
    def troubles(self) -> list[str]:
        """The tests that failed, a sentence each."""
        found = []
        for operator, departure in zip(("matrix", "cycle"), self.departures, strict=True):
            if not departure < 1:
                found.append(f"the {operator} departs from symmetry by {departure:.1e} roundings")
        for name, count, most in zip(
            ("without", "with"), self.test_iterations, FEW_ITERATIONS, strict=True
        ):
            if count > most:
                found.append(f"CG {name} the cycle took {count} iterations in the test, not {most}")
        if not self.spread <= SAME:
            found.append(f"the residuals of the sets differ by {self.spread:.1e}")
        return found


def stencil(on: Executor, points: int) -> Csr:
    """Return the 27-point stencil on a cube, made where it lives.

    Examples
    --------
    >>> import wollemi as wl
    >>> from wollemi_bench.hpcg import stencil
    >>> A = stencil(wl.executor("reference"), 4)
    >>> A.shape, A.nnz, float(A.diagonal()[0])
    ((64, 64), 1000, 26.0)
    """
    xp = on.xp
    rows = points**3
    index = xp.arange(rows, dtype=np.int32)
    steps = xp.arange(-1, 2, dtype=np.int32)
    inside: Any = None
    for distance in (points * points, points, 1):
        place = (index // distance % points)[:, None] + steps
        fits = (place >= 0) & (place < points)
        inside = fits if inside is None else inside[..., None] & fits.reshape(-1, *_ones(inside), 3)
    inside = inside.reshape(rows, POINTS)
    offsets = steps[:, None, None] * (points * points) + steps[:, None] * points + steps
    columns = (index[:, None] + offsets.reshape(POINTS))[inside]
    values = xp.where(offsets.reshape(POINTS) == 0, DIAGONAL, BESIDE)
    data = xp.broadcast_to(values, inside.shape)[inside]
    indptr = xp.zeros(rows + 1, np.int32)
    indptr[1:] = xp.cumsum(inside.sum(axis=1), dtype=np.int32)
    return Csr((data, columns, indptr), (rows, rows), executor=on, copy=False)


def _ones(array: Any) -> tuple[int, ...]:
    return (1,) * (array.ndim - 1)


def injection(on: Executor, points: int) -> Csr:
    """Return the restriction to the points with even coordinates.

    Examples
    --------
    >>> import wollemi as wl
    >>> from wollemi_bench.hpcg import injection
    >>> injection(wl.executor("reference"), 4).indices.tolist()
    [0, 2, 8, 10, 32, 34, 40, 42]
    """
    xp = on.xp
    even = xp.arange(0, points, 2, dtype=np.int32)
    fine = even[:, None, None] * (points * points) + even[:, None] * points + even
    rows = int(fine.size)
    indptr = xp.arange(rows + 1, dtype=np.int32)
    shape = (rows, points**3)
    return Csr((xp.ones(rows), fine.reshape(rows), indptr), shape, executor=on, copy=False)


def levels_of(on: Executor, points: int) -> list[GridLevel]:
    """Return the levels, the finest first.

    Raises
    ------
    InvalidArgument
        If the points cannot be halved for each level.
    """
    if points < 2**LEVELS or points % 2 ** (LEVELS - 1):
        raise InvalidArgument(
            f"grid: expected a multiple of {2 ** (LEVELS - 1)} of at least {2**LEVELS} points for "
            f"{LEVELS} levels, got {points}"
        )
    made = []
    for level in range(LEVELS):
        n = points >> level
        last = level == LEVELS - 1
        made.append(GridLevel(stencil(on, n), None if last else injection(on, n)))
    return made


def cycle(levels: Sequence[GridLevel], *, colors: bool) -> LinOp:
    """Return the V-cycle: sweeps by colors, or in the order of the rows as in the reference."""
    sweep = Settings(wl.preconditioners.Ssor, {"colors": colors})
    given: list[Any] = [
        (level.A, level.R.transpose(), level.R) for level in levels if level.R is not None
    ]
    return wl.preconditioners.Multigrid.from_levels(
        [*given, levels[-1].A], smoother=sweep, coarsest=sweep
    )


def operations(levels: Sequence[GridLevel], iterations: int) -> int:
    """Return the floating-point operations of a set of iterations as HPCG counts them."""
    rows, entries = int(levels[0].A.shape[0]), [int(level.A.nnz) for level in levels]
    vectors = 2 * (3 * iterations + 1) * 2 * rows  # inner products, and updates
    products = (iterations + 1) * 2 * entries[0]
    # two symmetric sweeps and a residual; one sweep on the coarsest level
    sweeps = sum(10 * count for count in entries[:-1]) + 4 * entries[-1]
    return vectors + products + iterations * sweeps


def departure(operator: LinOp, norm: float, seed: int = 0) -> float:
    """Return ``|x' A y - y' A x|`` in units of its rounding; HPCG allows 1.

    Parameters
    ----------
    operator : LinOp
        The matrix or the cycle.
    norm : float
        Of the matrix, which HPCG takes for both.
    seed : int
        Of the vectors.
    """
    on, rng = operator.executor, np.random.default_rng(seed)
    x, y = (rng.random(operator.shape[0]) for _ in range(2))
    images = [np.asarray(on.to_host(operator @ on.from_host(vector))) for vector in (y, x)]
    difference = abs(float(x @ images[0]) - float(y @ images[1]))
    size = 2 * float(np.linalg.norm(x)) * norm * float(np.linalg.norm(y))
    return difference / (size * float(np.finfo(np.float64).eps))


def convergence(levels: Sequence[GridLevel]) -> tuple[int, int]:
    """Return the iterations of CG without and with the cycle where the diagonal is large.

    Nine rows have diagonals of their own, so that the matrix has ten clusters of eigenvalues.
    """
    finest = levels[0].A
    on = finest.executor
    factors = np.full(finest.shape[0], FACTOR)
    factors[:OWN_ROWS] *= np.arange(2.0, OWN_ROWS + 2)
    scaled = on.from_host(factors)
    b = (finest @ on.xp.ones(finest.shape[0])) * scaled
    diagonal = wl.Diagonal(finest.diagonal() * (scaled - 1.0), executor=on)
    A = (finest + diagonal.asformat("csr")).asformat("csr")
    changed = [GridLevel(A, levels[0].R), *levels[1:]]
    found = []
    for M in (None, cycle(changed, colors=True)):
        solver = wl.solvers.Cg(A, M, stop=wl.stop.Iterations(REFERENCE))
        found.append(_first_below(solver.solve(b).residuals, TOLERANCE) or REFERENCE)
    return found[0], found[1]


def _first_below(residuals: np.ndarray[Any, Any], tolerance: float) -> int | None:
    """Return after how many iterations the relative residual is small enough, None if never."""
    met = np.flatnonzero(residuals <= tolerance * residuals[0])
    return int(met[0]) if met.size else None


def iterations_to(A: Csr, M: LinOp, b: Array, tolerance: float) -> int:
    """Return the iterations of CG to a residual of the reference.

    Raises
    ------
    InvalidArgument
        If ten times the iterations of the reference do not suffice.
    """
    for most in (REFERENCE, MOST * REFERENCE):
        solver = wl.solvers.Cg(A, M, stop=wl.stop.Iterations(most))
        found = _first_below(solver.solve(b).residuals, tolerance)
        if found is not None:
            return found
    raise InvalidArgument(
        f"hpcg: {MOST * REFERENCE} iterations do not reach the residual {tolerance:.1e} of "
        f"{REFERENCE} iterations of the reference; take a larger grid"
    )


def _timed(on: Executor, function: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of a call until its work is done, and its result."""
    on.synchronize()
    began = time.perf_counter()
    made = function()
    on.synchronize()
    return time.perf_counter() - began, made


def rate(on: Executor, points: int, seconds: float = 10.0) -> Rating:
    """Return the rating of an executor.

    Parameters
    ----------
    on : Executor
        Where everything is computed.
    points : int
        Along each axis of the finest grid, a multiple of 8 of at least 16.
    seconds : float
        The time of the sets of iterations, about; three sets at least.

    Raises
    ------
    InvalidArgument
        If the grid does not fit.

    Examples
    --------
    >>> import wollemi as wl
    >>> from wollemi_bench.hpcg import rate
    >>> rating = rate(wl.executor("omp"), 16, 0.0)
    >>> rating.rows, rating.troubles, rating.iterations >= 50
    (4096, [], True)
    """
    if points > 2**LEVELS:
        levels_of(on, 2**LEVELS)  # compiles the programs of a device
    problem_seconds, levels = _timed(on, lambda: levels_of(on, points))
    A = levels[0].A
    b = A @ on.xp.ones(A.shape[0])
    reference = wl.solvers.Cg(
        A, cycle(levels, colors=False), stop=wl.stop.Iterations(REFERENCE)
    ).solve(b)
    tolerance = float(reference.residuals[-1] / reference.residuals[0])
    if points > 2**LEVELS:
        small = levels_of(on, 2**LEVELS)
        _ = cycle(small, colors=True) @ on.xp.ones(small[0].A.shape[0])
    optimization_seconds, M = _timed(on, lambda: cycle(levels, colors=True))
    iterations = iterations_to(A, M, b, tolerance)
    solver = wl.solvers.Cg(A, M, stop=wl.stop.Iterations(iterations))
    solver.solve(b)
    sets: list[float] = []
    norms: list[float] = []
    while len(sets) < FEWEST_SETS or sum(sets) < seconds:
        spent, result = _timed(on, lambda: solver.solve(b))
        sets.append(spent)
        norms.append(float(result.residuals[-1]))
    flops, each = operations(levels, REFERENCE), sum(sets) / len(sets)
    setup = PART_OF_SETUP * (problem_seconds + optimization_seconds)
    norm = 2 * DIAGONAL
    return Rating(
        points=points,
        executor=on.name,
        rows=int(A.shape[0]),
        entries=int(A.nnz),
        gflops=1e-9 * flops / (each + setup),
        gflops_without_setup=1e-9 * flops / each,
        iterations=iterations,
        sets=sets,
        flops=flops,
        problem_seconds=problem_seconds,
        optimization_seconds=optimization_seconds,
        reference_residual=tolerance,
        departures=(departure(A, norm), departure(M, norm)),
        test_iterations=convergence(levels),
        spread=(max(norms) - min(norms)) / max(norms) if max(norms) > 0 else 0.0,
    )


def record_of(rating: Rating) -> Record:
    """Return the rating as a record of a run."""
    low, median, high = (float(q) for q in np.percentile(rating.sets, (25, 50, 75)))
    return Record(
        benchmark="hpcg-like",
        case=f"27 points, {rating.points}^3",
        executor=rating.executor,
        format="csr",
        dtype="float64",
        rows=rating.rows,
        columns=rating.rows,
        entries=rating.entries,
        contender="wollemi",
        ours=True,
        seconds=median,
        low=low,
        high=high,
        samples=rating.sets,
        flops=rating.flops,
        trouble="wrong: " + "; ".join(rating.troubles) if rating.troubles else "",
        notes=[
            f"HPCG-like: {rating.gflops:.4g} GF/s with the set-up by HPCG's rule, "
            f"{rating.gflops_without_setup:.4g} without"
        ],
        suite="hpcg",
        setup_seconds=rating.problem_seconds + rating.optimization_seconds,
        iterations=rating.iterations,
        residual=rating.reference_residual,
        family="stencil27",
    )


def page(rating: Rating) -> str:
    """Return the rating as a table of Markdown."""
    matrix, sweep = rating.departures
    plain, cycled = rating.test_iterations
    lines = {
        "rating by HPCG's rule, GF/s": f"{rating.gflops:.4g}",
        "without the set-up, GF/s": f"{rating.gflops_without_setup:.4g}",
        f"iterations by colors for {REFERENCE} of the reference": str(rating.iterations),
        "relative residual": f"{rating.reference_residual:.3e}",
        "sets": str(len(rating.sets)),
        "seconds of a set, median": f"{float(np.median(rating.sets)):.4g}",
        "seconds of the problem, and of colors and plans": (
            f"{rating.problem_seconds:.4g}, {rating.optimization_seconds:.4g}"
        ),
        "departures from symmetry of matrix and cycle (below 1)": f"{matrix:.2g}, {sweep:.2g}",
        f"iterations of the test without and with the cycle (at most {FEW_ITERATIONS[0]}, "
        f"{FEW_ITERATIONS[1]})": f"{plain}, {cycled}",
        "spread of the residuals of the sets": f"{rating.spread:.1e}",
        "tests": "; ".join(rating.troubles) or "passed",
    }
    rows = "\n".join(f"| {name} | {value} |" for name, value in lines.items())
    title = f"HPCG-like: {rating.points}^3 unknowns, {rating.entries} entries, {rating.executor}"
    return f"### {title}\n\n| | |\n| --- | --- |\n{rows}\n"
