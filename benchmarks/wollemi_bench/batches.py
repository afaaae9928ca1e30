"""``wollemi bench suite batches``: many systems of one pattern, compared with other ways.

Sizes are from Ginkgo's papers: chemistry of 22, 54 and 144 rows that are nearly dense, and a
collision operator of 992 rows with 9 points; stencils and tridiagonal systems join them. The other
ways are one block-diagonal system, a loop over wollemi's solver, a loop over SciPy's ``spsolve``,
and on CUDA ``cupy.linalg.solve`` of dense matrices. Loops solve a sample, and their time is scaled
to all systems.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import wollemi as wl
from wollemi.core.executor import Executor

HostArray = np.ndarray[Any, Any]

#: The true residual of every system, relative to the norm of its right-hand side.
RTOL = 1e-10
#: The seed of values and right-hand sides.
SEED = 7
#: Calls of which the median counts.
ROUNDS = 5
#: Systems that a loop solves, and that a block-diagonal matrix holds, at most.
LOOPED, BLOCKS = 100, 2000
#: Bytes of dense matrices that are compared at most.
DENSE_BYTES = 4 * 2**30


@dataclass(frozen=True)
class Family:
    """Systems of one pattern.

    Attributes
    ----------
    name : str
        Of the row in the table.
    pattern : SciPy sparse array, shape (n, n)
        Its entries are the pattern.
    count : int
        Systems at scale 1.
    method : {"bicgstab", "cg", "direct"}
        That solves them; Krylov solvers have Jacobi.
    """

    name: str
    pattern: sp.csr_array
    count: int
    method: str


def families() -> Iterator[Family]:
    """Yield the families of the suite."""
    rng = np.random.default_rng(SEED)
    for name, n, entries, count in (
        ("drm19", 22, 438, 65536), ("gri30", 54, 2500, 65536), ("isooctane", 144, 6135, 10000),
    ):  # fmt: skip
        pattern = _random_pattern(n, entries, rng)
        yield Family(f"{name}, {n} rows", pattern, count, "bicgstab")
        yield Family(f"{name}, {n} rows", pattern, count, "direct")
    collision = _neighbors(31, 32, corners=True)
    yield Family("collision, 992 rows", collision, 10000, "bicgstab")
    yield Family("stencil, 512 rows", _neighbors(16, 32, corners=False), 4096, "cg")
    line = sp.csr_array(sp.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(64, 64)))
    yield Family("tridiagonal, 64 rows", line, 1_000_000, "direct")


def _random_pattern(n: int, entries: int, rng: np.random.Generator) -> sp.csr_array:
    inside = rng.random((n, n)) < (entries - n) / (n * n - n)
    np.fill_diagonal(inside, True)
    return sp.csr_array(inside.astype(np.float64))


def _neighbors(rows: int, columns: int, *, corners: bool) -> sp.csr_array:
    one, other = (
        sp.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(k, k)) for k in (rows, columns)
    )
    product = sp.kron(one, other) if corners else sp.kronsum(other, one)
    made = sp.csr_array(product)
    made.sort_indices()
    return made


def values_of(family: Family, count: int) -> HostArray:
    """Return values of all matrices, shape (count, nnz): the diagonals dominate."""
    rng = np.random.default_rng(SEED)
    S = family.pattern
    n = S.shape[0]
    rows = np.repeat(np.arange(n), np.diff(S.indptr))
    diagonal = np.flatnonzero(rows == S.indices)
    if family.method == "cg":  # a Hermitian stencil with another shift in each system
        data = np.full((count, S.nnz), -1.0)
        data[:, diagonal] = 4.0 + rng.uniform(0.01, 0.2, (count, 1))
        return data
    data = rng.uniform(-1.0, 1.0, (count, S.nnz))
    length = S.nnz / n
    data[:, diagonal] = 0.0
    sums = np.add.reduceat(np.abs(data), S.indptr[:-1], axis=1)
    # Without dominance a few of a million tridiagonal matrices are so close to singular that their
    # systems are solved one by one, which takes most of the time.
    iterated = family.method != "direct" and length < 12
    dominance = rng.uniform(0.8, 1.2, (count, 1)) if iterated else 1.0
    data[:, diagonal] = dominance * sums + 0.1
    return data


@dataclass(frozen=True)
class Measured:
    """The times of one family, in seconds for all systems; NaN where a way was not taken."""

    family: Family
    count: int
    setup: float
    batch: float
    converged: float
    iterations: tuple[int, float, int]
    block_diagonal: float
    own_loop: float
    scipy_loop: float
    dense: float


def solver_of(family: Family, A: Any) -> Any:
    """Return the solver of a matrix or of a batch."""
    if family.method == "direct":
        return wl.solvers.Direct(A, rtol=RTOL)
    kind = wl.solvers.Cg if family.method == "cg" else wl.solvers.Bicgstab
    return kind(A, M="jacobi", rtol=RTOL)


def median_of(call: Callable[[], Any], on: Executor) -> float:
    """Return the median time of some calls after one for one-time work."""
    call()
    times = []
    for _ in range(ROUNDS):
        on.synchronize()
        began = time.perf_counter()
        call()
        on.synchronize()
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def measured(family: Family, on: Executor, scale: int) -> Measured:
    """Solve a family by all ways."""
    S, count = family.pattern, max(4, family.count // scale)
    n, data = S.shape[0], values_of(family, count)
    b = np.random.default_rng(SEED + 1).standard_normal((count, n))
    there, rights = on.from_host(data), on.from_host(b)
    A = wl.Csr((there, S.indices, S.indptr), shape=(n, n), executor=on)
    solver = solver_of(family, A)

    def renewed() -> Any:
        A.update_values(there)
        solver.update()
        return solver.solve(rights)

    result = renewed()
    with_values = median_of(renewed, on)
    solved = median_of(lambda: solver.solve(rights), on)
    counts = result.iterations
    return Measured(
        family, count, with_values, solved, float(result.converged.mean()),
        (int(counts.min()), float(counts.mean()), int(counts.max())),
        _block_diagonal(family, on, data, b), _own_loop(family, on, data, b),
        _scipy_loop(S, data, b), _dense(S, on, data, b),
    )  # fmt: skip


def _member(S: sp.csr_array, data: HostArray, k: int) -> sp.csr_array:
    return sp.csr_array((data[k], S.indices, S.indptr), shape=S.shape)


def _block_diagonal(family: Family, on: Executor, data: HostArray, b: HostArray) -> float:
    """Return the time of one system that holds all, scaled from a part of them."""
    if family.method == "direct":
        return np.nan  # its factors have no kernel for blocks
    count = min(len(data), BLOCKS)
    blocks = [_member(family.pattern, data, k) for k in range(count)]
    A = wl.Csr(sp.csr_array(sp.block_diag(blocks, format="csr")), executor=on)
    solver = solver_of(family, A)
    right = on.from_host(b[:count].ravel())
    return median_of(lambda: solver.solve(right), on) * len(data) / count


def _own_loop(family: Family, on: Executor, data: HostArray, b: HostArray) -> float:
    """Return the time of a loop over one solver with new values, scaled from a sample."""
    count = min(len(data), LOOPED)
    A = wl.Csr(_member(family.pattern, data, 0), executor=on)
    solver = solver_of(family, A)

    def loop() -> None:
        for k in range(count):
            A.update_values(data[k])
            solver.update()
            solver.solve(b[k])

    return median_of(loop, on) * len(data) / count


def _scipy_loop(S: sp.csr_array, data: HostArray, b: HostArray) -> float:
    """Return the time of a loop over SciPy's ``spsolve``, scaled from a sample."""
    count = min(len(data), LOOPED)
    matrices = [sp.csc_matrix(_member(S, data, k)) for k in range(count)]
    began = time.perf_counter()
    for matrix, right in zip(matrices, b, strict=False):
        spla.spsolve(matrix, right)
    return (time.perf_counter() - began) * len(data) / count


def _dense(S: sp.csr_array, on: Executor, data: HostArray, b: HostArray) -> float:
    """Return the time of the batched LU of the vendor, by CuPy, of dense matrices."""
    n, xp = S.shape[0], on.xp
    if on.backend != "cuda" or n > 200 or 8 * n * n * len(data) > DENSE_BYTES:
        return np.nan
    dense = xp.zeros((len(data), n * n))
    rows = np.repeat(np.arange(n), np.diff(S.indptr))
    dense[:, on.from_host(rows * n + S.indices)] = on.from_host(data)
    rights = on.from_host(b)[..., None]
    matrices = dense.reshape(-1, n, n)
    return median_of(lambda: xp.linalg.solve(matrices, rights), on)


def page(found: Iterable[Measured], title: str) -> str:
    """Return a page of Markdown with a row for each family."""
    lines = [
        f"# {title}",
        "",
        f"float64, true relative residual {RTOL:g}. Times in ms for all systems; other ways as",
        "multiples of the batch's time. `wollemi bench suite batches` makes this page.",
        "",
        "| systems | count | method | iterations | converged | batch | with new values | "
        "block diagonal | our loop | spsolve | dense LU |",
        "| --- | --: | --- | --- | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for m in found:
        least, mean, most = m.iterations
        others = [m.block_diagonal, m.own_loop, m.scipy_loop, m.dense]
        ratios = [f"{other / m.batch:.3g}" if np.isfinite(other) else "" for other in others]
        lines.append(
            f"| {m.family.name} | {m.count:,} | {m.family.method} | {least}, {mean:.1f}, {most} | "
            f"{m.converged:.2%} | {1e3 * m.batch:.3g} | {1e3 * m.setup:.3g} | "
            f"{' | '.join(ratios)} |"
        )
    return "\n".join(lines) + "\n"


def run(on: Executor, scale: int, minutes: float | None) -> Iterator[Measured]:
    """Yield the times of each family, until the time is spent."""
    began = time.perf_counter()
    for family in families():
        if minutes is not None and time.perf_counter() - began > 60 * minutes:
            return
        yield measured(family, on, scale)
