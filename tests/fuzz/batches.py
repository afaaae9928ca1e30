"""Random batches with bad members: no false claim, and the bits of the other members stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import wollemi as wl
from wollemi.core.status import Stop

from .batch import Target

Numbers = np.ndarray[Any, Any]

EXECUTORS = ("reference", "omp:1", "omp:2", "omp:2")
DTYPES = ("float32", "float64", "complex64", "complex128")
KINDS = (
    "direct", "direct", "auto", "cg", "fcg", "bicgstab", "cgs", "tfqmr", "minres", "idr", "gmres",
    "qmr",
)  # fmt: skip
PATTERNS = ("tridiagonal", "band", "sparse", "dense", "diagonal", "empty row")
PRECONDITIONERS = (None, "jacobi", "jacobi", "ilu", "blockjacobi")
ORDERS = ("plain", "fortran", "reversed", "broadcast", "one")
FAULTS = ("nan", "infinity", "zero", "zero row", "equal rows", "tiny", "huge", "rows", "side", "b")
TOLERANCES = (1e-1, 1e-3, 1e-6, 1e-10, 1e-14)


class Example(NamedTuple):
    """A batch; the seed says the random numbers, ``bad`` the members with faults."""

    executor: str
    dtype: str
    kind: str
    pattern: str
    M: str | None
    n: int
    count: int
    seed: int
    order: str
    bad: tuple[tuple[int, str], ...]
    started: bool
    rtol: float


@st.composite
def batches(draw: st.DrawFn) -> Example:
    """Return a batch."""
    count = draw(st.integers(1, 60))
    faults = st.tuples(st.integers(0, count - 1), st.sampled_from(FAULTS))
    return Example(
        draw(st.sampled_from(EXECUTORS)),
        draw(st.sampled_from(DTYPES)),
        draw(st.sampled_from(KINDS)),
        draw(st.sampled_from(PATTERNS)),
        draw(st.sampled_from(PRECONDITIONERS)),
        draw(st.one_of(st.integers(1, 6), st.integers(1, 40))),
        count,
        draw(st.integers(0, 1 << 30)),
        draw(st.sampled_from(ORDERS)),
        tuple(dict(draw(st.lists(faults, max_size=4))).items()),
        draw(st.booleans()),
        draw(st.sampled_from(TOLERANCES)),
    )


def random_numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Numbers:
    """Return normal numbers."""
    made = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        made = made + 1j * rng.standard_normal(shape)
    return made.astype(dtype)


def structure(example: Example, rng: np.random.Generator) -> Numbers:
    """Return where entries are stored."""
    n = example.n
    apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    stored: Numbers = {
        "tridiagonal": apart <= 1,
        "band": apart <= 3,
        "dense": apart >= 0,
        "diagonal": apart == 0,
    }.get(example.pattern, (apart == 0) | (rng.random((n, n)) < 0.2))
    if example.pattern == "empty row":
        stored = stored.copy()
        stored[rng.integers(n)] = False
    return stored


def spoil(a: Numbers, b: Numbers, k: int, fault: str, rng: np.random.Generator) -> None:
    """Give member ``k`` of dense matrices and sides a fault; no new entry appears."""
    n = b.shape[1]
    i, j = rng.integers(n, size=2)
    tiny, huge = np.finfo(a.dtype).tiny, np.finfo(a.dtype).max
    with np.errstate(all="ignore"):
        if fault in ("nan", "infinity"):
            rows, columns = np.nonzero(a[k])
            if rows.size:
                at = rng.integers(rows.size)
                a[k, rows[at], columns[at]] = np.nan if fault == "nan" else np.inf
        elif fault == "zero":
            a[k] = 0
        elif fault == "zero row":
            a[k, i] = 0
        elif fault == "equal rows" and n > 1:
            both = (a[k, i] != 0) & (a[k, j] != 0)
            a[k, i] = np.where(both, a[k, j], 0)
        elif fault == "tiny":
            a[k] *= tiny * 2.0 ** rng.integers(-10, 40)
        elif fault == "huge":
            a[k] *= huge ** rng.choice([0.25, 0.5, 0.9])
        elif fault == "rows":
            a[k] *= (10.0 ** rng.uniform(-12, 12, n)).astype(a.real.dtype)[:, None]
        elif fault == "side":
            b[k] = 0
        elif fault == "b":
            b[k, i] = rng.choice([np.nan, np.inf])


def arranged(b: Numbers, order: str) -> Numbers:
    """Return right-hand sides with other strides."""
    if order == "fortran":
        return np.asfortranarray(b)
    if order == "reversed":
        return np.ascontiguousarray(b[:, ::-1])[:, ::-1]
    return b


def solved(example: Example, data: Numbers, stored: Numbers, b: Numbers, x0: Any) -> Any:
    """Return the result for values of this pattern."""
    n = example.n
    indptr = np.concatenate([[0], np.cumsum(stored.sum(axis=1))]).astype(np.int32)
    indices = np.nonzero(stored)[1].astype(np.int32)
    A = wl.Csr((data, indices, indptr), shape=(n, n), executor=example.executor)
    settings = {"rtol": example.rtol}
    if example.kind == "direct":
        return wl.solvers.Direct(A, **settings).solve(b, x0)
    if example.kind == "auto":
        return wl.solve(A, b, x0, maxiter=60, **settings)
    kind = getattr(wl.solvers, example.kind.capitalize())
    M = example.M
    if example.kind == "minres" and M not in (None, "jacobi"):
        M = "jacobi"
    return kind(A, M=M, maxiter=60, **settings).solve(b, x0)


def check(example: Example, folder: Path) -> None:
    """Fail on a false claim, and where a bad member changes another one."""
    rng = np.random.default_rng(example.seed)
    n, count = example.n, example.count
    stored = structure(example, rng)
    a = random_numbers(rng, (count, n, n), example.dtype) * stored
    if example.kind in ("cg", "fcg", "minres") or rng.random() < 0.3:
        a = (a + np.swapaxes(a, 1, 2).conj()) * (stored & stored.T)
    a += np.diag(np.diag(stored) * rng.choice([0.0, 2.0, 10.0])).astype(a.dtype)
    b = random_numbers(rng, (count, n), example.dtype)
    if example.order in ("broadcast", "one"):
        b = np.repeat(b[:1], count, axis=0)
    x0 = random_numbers(rng, (count, n), example.dtype) if example.started else None
    bad = {k: fault for k, fault in example.bad}
    if example.order in ("broadcast", "one"):
        bad = {k: fault for k, fault in bad.items() if fault not in ("side", "b")}
    for k, fault in bad.items():
        spoil(a, b, k, fault, rng)
    sides = arranged(b, example.order)
    if example.order == "broadcast":
        sides = np.broadcast_to(b[0], b.shape)
    result = solved(example, a[:, stored], stored, b[0] if example.order == "one" else sides, x0)
    judge(example, a, b, result)
    good = np.setdiff1d(np.arange(count), list(bad))
    if bad and good.size and example.kind != "auto":  # its method follows from some of the members
        start = None if x0 is None else x0[good]
        right = b[0] if example.order == "one" else b[good]
        clean = solved(example, a[good][:, stored], stored, right, start)
        np.testing.assert_array_equal(clean.x, result.x[good])
        np.testing.assert_array_equal(clean.stops, result.stops[good])


def judge(example: Example, a: Numbers, b: Numbers, result: Any) -> None:
    """Fail on a claim that the residual in double precision does not meet."""
    wide = np.complex128 if np.dtype(example.dtype).kind == "c" else np.float64
    x = result.x.astype(wide)
    assert np.all(np.isfinite(x)) and all(len(reason) > 10 for reason in result.reason)
    assert result.converged.shape == (example.count,)
    for k in np.flatnonzero(result.converged):
        matrix, right = a[k].astype(wide), b[k].astype(wide)
        largest = max(np.abs(matrix).max(initial=0), np.abs(right).max(initial=0))
        scale = 1.0 if largest == 0 else 2.0 ** -np.floor(np.log2(largest))
        with np.errstate(all="ignore"):
            terms = np.abs(matrix * scale) @ np.abs(x[k]) + np.abs(right * scale)
            norm = np.linalg.norm(right * scale - (matrix * scale) @ x[k])
            rounding = (example.n + 2) * 2.3e-16 * np.linalg.norm(terms)
            threshold = example.rtol * np.linalg.norm(right * scale)
        assert norm <= 1.001 * threshold + rounding, (k, norm, threshold, result.reason[k])
    if example.kind != "direct":
        return
    epsilon = float(np.finfo(example.dtype).eps)
    for k in np.flatnonzero(~result.converged):
        fine = np.all(np.isfinite(a[k])) and np.all(np.isfinite(b[k]))
        if not fine or example.rtol < 1e4 * epsilon or result.stops[k] == Stop.OUT_OF_RANGE:
            continue
        with np.errstate(all="ignore"):
            condition = np.linalg.cond(a[k].astype(wide))
        # the residual of a stable method, relative to the right-hand side, is at most this
        reached = condition * epsilon * example.n
        assert not reached < min(1e-3, example.rtol), (k, condition, result.reason[k])


TARGET = Target("batches", batches(), check)
