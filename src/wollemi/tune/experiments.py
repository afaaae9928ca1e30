"""The measurements to which constants of devices are fitted.

An experiment creates its own systems and matrices. The same code runs on every executor: it names
classes and algorithms, never a device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..core.executor import Executor
from ..core.formats import Csr
from ..core.operations import triangular
from ..solvers.direct import Direct
from ..solvers.krylov.cg import Cg
from ..solvers.preconditioners import Amg, Ic, Ilu, Jacobi
from .timing import combination, line, seconds_of

Fitted = Mapping[str, float]


class Experiment(NamedTuple):
    """A measurement, and the constants that it determines.

    Attributes
    ----------
    name : str
        Its name in the file; an experiment is not repeated once its constants are stored.
    section : str
        The section of the constants.
    description : str
        The measured calls, in one line.
    measure : callable
        Takes an executor and the number of unknowns of large systems; returns constants by name.
    suits : callable
        Returns whether an executor has the necessary kernels.
    """

    name: str
    section: str
    description: str
    measure: Callable[[Executor, int], Fitted]
    suits: Callable[[Executor], bool] = lambda executor: True


def grid(rows: int) -> Any:
    """Return the slightly shifted 5-point Laplacian on a square grid of about ``rows`` points."""
    side = max(int(np.sqrt(rows)), 2)
    one = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    eye = sp.eye_array(side)
    return sp.csr_array(sp.kron(one, eye) + sp.kron(eye, one) + 0.01 * sp.eye_array(side * side))


def band(rows: int, width: int) -> Any:
    """Return a diagonally dominant symmetric band with up to ``2 width + 1`` entries per row."""
    offsets = range(-width, width + 1)
    values = [2.0 * width + 1.0 if offset == 0 else -1.0 for offset in offsets]
    return sp.csr_array(sp.diags_array(values, offsets=list(offsets), shape=(rows, rows)))


def _iteration_seconds(executor: Executor, S: Any) -> tuple[float, float]:
    """Return the seconds per iteration of CG, and per call of CG without iterations."""
    A = Csr(S, executor=executor)
    b = executor.from_host(np.random.default_rng(1).standard_normal(S.shape[0]))
    short, long = 4, 24
    solvers = [Cg(A, rtol=1e-300, maxiter=count) for count in (short, long)]
    first, second = (seconds_of(executor, partial(made.solve, b)) for made in solvers)
    each = max(second - first, 0.0) / (long - short)
    whole = seconds_of(executor, lambda: Cg(A, Jacobi(A), maxiter=short).solve(b))
    return max(each, 1e-9), max(whole - short * each, 1e-7)


def iterations(executor: Executor, rows: int) -> Fitted:
    """Return the time of a CG iteration, in seconds per launch, entry and row."""
    shapes = [(100, 1), (400, 1), (rows // 10, 1), (rows, 1), (rows // 4, 8), (rows // 10, 13)]
    systems = [band(max(count, 100), width) for count, width in shapes]
    times, calls = zip(*(_iteration_seconds(executor, S) for S in systems), strict=True)
    table = [[1.0, float(S.nnz), float(S.shape[0])] for S in systems]
    launch, entry, row = combination(table, times)
    return {"launch": launch, "entry": entry, "row": row, "call": float(calls[0])}


def factors(executor: Executor, rows: int) -> Fitted:
    """Return the seconds per entry for set-up and application of incomplete factors."""
    S = grid(rows)
    A = Csr(S, executor=executor)
    b = executor.from_host(np.random.default_rng(2).standard_normal((S.shape[0], 1)))
    set_up = seconds_of(executor, lambda: Ilu(A))
    matched = seconds_of(executor, lambda: Ilu(A, match=True))
    M = Ic(A)
    apply = seconds_of(executor, lambda: M.apply(b))
    nnz = float(S.nnz)
    return {"factor": set_up / nnz, "matched": matched / nnz, "triangle": apply / nnz}


def multigrid(executor: Executor, rows: int) -> Fitted:
    """Return the seconds for set-up and application of multigrid."""
    systems = [grid(max(count, 400)) for count in (rows // 50, rows // 5, rows)]
    set_ups, cycles = [], []
    for S in systems:
        A = Csr(S, executor=executor)
        b = executor.from_host(np.random.default_rng(3).standard_normal((S.shape[0], 1)))
        set_ups.append(seconds_of(executor, partial(Amg, A)))
        M = Amg(A)
        cycles.append(seconds_of(executor, partial(M.apply, b)))
    entries = [float(S.nnz) for S in systems]
    hierarchy, level = line(entries, set_ups)
    cycle, smoothed = line(entries, cycles)
    return {"hierarchy": hierarchy, "level": level, "cycle": cycle, "smoothed": smoothed}


def small_systems(executor: Executor, rows: int) -> Fitted:
    """Return the seconds for factoring small matrices and for solving with the factors."""
    systems = [grid(count) for count in (100, 400, 1_600)]
    times = []
    for S in systems:
        A = Csr(S, executor=executor)
        b = executor.from_host(np.ones(S.shape[0]))
        times.append(seconds_of(executor, partial(_solved_directly, A, b)))
    direct, small = line([float(S.nnz) for S in systems], times)
    return {"direct": direct, "small": small}


def _solved_directly(A: Csr, b: Any) -> Any:
    return Direct(A).solve(b)


def exact_factors(executor: Executor, rows: int) -> Fitted:
    """Return the seconds per operation of factoring dense matrices and narrow bands."""
    sizes = (150, 300, 600)
    made = [Csr(sp.csr_array(np.tri(n) + np.tri(n).T + n * np.eye(n))) for n in sizes]
    full = [seconds_of(A.executor, partial(Direct, A, engine="dense")) for A in made]
    _, dense = combination([[float(n) ** 2, 2 / 3 * float(n) ** 3] for n in sizes], full)
    rows, width = max(rows // 10, 1_000), 8
    narrow = Csr(band(rows, width))
    banded = seconds_of(narrow.executor, lambda: Direct(narrow, engine="banded"))
    operations = 2.0 * rows * width * (2 * width + 1)
    known = 5e-4 + 25e-9 * narrow.nnz + 4e-9 * rows * (3 * width + 1)
    return {
        "dense_operation": dense,
        "band_operation": max(banded - known, 0.1 * banded) / operations,
    }


def uneven(rows: int, mean: float) -> Any:
    """Return a matrix with lognormal row lengths and columns near the diagonal."""
    rng = np.random.default_rng(int(mean))
    lengths = np.clip(rng.lognormal(np.log(mean) - 0.32, 0.8, rows).astype(int), 1, rows)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    row = np.repeat(np.arange(rows), lengths)
    indices = (row + rng.integers(-500, 500, row.size)) % rows
    S = sp.csr_array((rng.random(row.size), indices, indptr), shape=(rows, rows))
    S.sum_duplicates()
    return S


def sliced_rows(executor: Executor, rows: int) -> Fitted:
    """Return the cost of row ends, by rows and in slices, in units of an entry by rows."""
    means: list[float] = []
    by_rows: list[float] = []
    sliced: list[float] = []
    for mean in (4.0, 8.0, 16.0, 32.0):
        S = uneven(max(rows // int(mean), 2_000), mean)
        A = Csr(S, executor=executor)
        x = executor.from_host(np.ones(S.shape[0]))
        means.append(S.nnz / S.shape[0])
        for name, times in (("row-blocks", by_rows), ("sell", sliced)):
            named = A.with_kernel(name)
            spent = seconds_of(executor, partial(named.__matmul__, x))
            times.append(spent / S.shape[0])
    row_end, entry = line(means, by_rows)
    sliced_row_end, sliced_entry = line(means, sliced)
    if entry <= 0:
        return {}
    return {
        "row_end": row_end / entry,
        "sliced_entry": sliced_entry / entry,
        "sliced_row_end": sliced_row_end / entry,
    }


def _has(*names: str) -> Callable[[Executor], bool]:
    """Return whether an executor has matrix-vector algorithms with these names."""
    return lambda executor: set(names) <= set(executor.algorithms.names("spmv"))


def packed_gains(executor: Executor, rows: int) -> Fitted:
    """Return the bandwidth of products, and the speedup of packed copies beyond fewer bytes."""
    spread = np.random.default_rng(5).integers(0, rows, (rows, 8))
    spread.sort(axis=1)
    indptr = np.arange(rows + 1) * 8
    far = sp.csr_array((np.ones(rows * 8), spread.ravel(), indptr), shape=(rows, rows))
    near = band(rows, 10)
    times = {
        (label, name): _product_seconds(executor, S, name)
        for label, S, names in (("far", far, ("stream", "sell")), ("near", near, _UNPACKED))
        for name in names
    }
    moved = {label: 12.0 * S.nnz + 4.0 * rows + 16.0 * rows for label, S in _labelled(far, near)}
    packed_near = 10.0 * near.nnz + 17.0 * rows
    fastest = min(times["near", name] for name in _UNPACKED[:-1])
    ratio = moved["near"] / packed_near
    return {
        "bandwidth": moved["near"] / (fastest * 1e6),
        "slices_gain": times["far", "stream"] / times["far", "sell"],
        "near_gain": fastest / times["near", "sell-near"] / ratio,
    }


_UNPACKED = ("csr-adaptive", "subwarp", "sell-near")


def _labelled(far: Any, near: Any) -> list[tuple[str, Any]]:
    return [("far", far), ("near", near)]


def _product_seconds(executor: Executor, S: Any, kernel: str) -> float:
    A = Csr(S, executor=executor).with_kernel(kernel)
    x = executor.from_host(np.ones(S.shape[1]))
    return seconds_of(executor, lambda: A @ x)


def _is_processor(executor: Executor) -> bool:
    return executor.supports(triangular.factorize)


#: The experiments, in the order in which they run.
EXPERIMENTS = (
    Experiment("iterations", "solve", "iterations of CG", iterations),
    Experiment("factors", "solve", "incomplete factors", factors),
    Experiment("multigrid", "solve", "algebraic multigrid", multigrid),
    Experiment("small systems", "solve", "exact factors of small systems", small_systems),
    Experiment("exact factors", "factor", "dense and banded factors", exact_factors, _is_processor),
    Experiment(
        "sliced rows",
        "sell",
        "products by rows and slices",
        sliced_rows,
        _has("row-blocks", "sell"),
    ),
    Experiment(
        "packed gains",
        "spmv",
        "products of packed copies",
        packed_gains,
        _has("stream", "csr-adaptive", "subwarp", "sell", "sell-near"),
    ),
)
