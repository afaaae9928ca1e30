"""Square systems of every scale: a solver claims only solutions that long doubles confirm."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import wollemi as wl
from wollemi.core.errors import WollemiError

from .batch import Target

#: Where; others by ``WOLLEMI_TEST_EXECUTORS=dpcpp:cpu``.
EXECUTORS = tuple(os.environ.get("WOLLEMI_TEST_EXECUTORS", "reference,omp:1").split(","))
DTYPES = ("float32", "float64", "complex64", "complex128")
SOLVERS = (
    "Bicg", "Bicgstab", "BlockCg", "Cg", "Cgs", "Chebyshev", "Direct", "Fcg", "Fgmres",
    "Gcrotmk", "Gmres", "Idr", "Ir", "Lgmres", "Minres", "PipeCg", "Qmr", "Tfqmr", "solve",
)  # fmt: skip
KINDS = ("definite", "general", "rows", "singular", "inconsistent", "inverse")

#: Roundings of the residual in double precision that a claim may be wrong by, in units of
#: ``eps |A| |x|``.
ROUNDINGS = 8


def exponents(dtype: str) -> st.SearchStrategy[int]:
    """Return powers of ten in the range of a dtype."""
    most = 300 if dtype in ("float64", "complex128") else 37
    return st.one_of(st.just(0), st.integers(-most, most))


@st.composite
def systems(draw: st.DrawFn) -> tuple[Any, ...]:
    """Return a solver, the seed of a system, and its scales."""
    dtype = draw(st.sampled_from(DTYPES))
    return (
        draw(st.sampled_from(EXECUTORS)),
        draw(st.sampled_from(SOLVERS)),
        draw(st.sampled_from(KINDS)),
        dtype,
        draw(st.integers(0, 2**32 - 1)),
        draw(exponents(dtype)),
        draw(exponents(dtype)),
        draw(st.one_of(st.none(), exponents(dtype))),
        draw(st.sampled_from((1, 1, 3))),
        draw(st.sampled_from((1e-3, 1e-5, 1e-6, 1e-8, 1e-12))),
    )


def random_numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:  # type: ignore[type-arg]
    """Return normal numbers, complex ones for a complex dtype."""
    made = rng.standard_normal(shape)
    return made + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else made


def scaled(values: np.ndarray, exponent: int, dtype: str) -> np.ndarray:  # type: ignore[type-arg]
    """Return values times a power of ten, rounded to a dtype."""
    wide = np.clongdouble if np.iscomplexobj(values) else np.longdouble
    return (values.astype(wide) * np.longdouble(10) ** exponent).astype(dtype)


def matrix(rng: np.random.Generator, kind: str, dtype: str) -> np.ndarray:  # type: ignore[type-arg]
    """Return a small matrix of a kind, of ordinary size."""
    n = int(rng.integers(1, 13))
    D = random_numbers(rng, (n, n), dtype) * (rng.random((n, n)) < 0.6)
    if kind == "definite":
        return np.asarray(D @ D.conj().T + np.eye(n))
    if kind in ("singular", "inconsistent"):
        D[:, -1] = D[:, 0]
        return np.asarray(D)
    if kind == "rows":
        D = D + 3 * np.eye(n)
        return np.asarray(10.0 ** rng.uniform(-4, 4, n)[:, None] * D)
    return np.asarray(D + 3 * np.eye(n))


def wide(array: Any) -> np.ndarray:  # type: ignore[type-arg]
    """Return an array of long doubles."""
    array = np.asarray(array)
    return array.astype(np.clongdouble if np.iscomplexobj(array) else np.longdouble)


def norm(v: np.ndarray) -> Any:  # type: ignore[type-arg]
    """Return the norm of each column of long doubles."""
    return np.sqrt(np.sum(np.abs(v) ** 2, axis=0))


def check(example: tuple[Any, ...], folder: Path) -> None:
    """Solve, and compute the residual of each claim in long doubles."""
    where, solver, kind, dtype, seed, of_A, of_b, of_x0, k, rtol = example
    rng = np.random.default_rng(seed)
    D = scaled(matrix(rng, kind, dtype), of_A, dtype)
    n = len(D)
    b = random_numbers(rng, (n, k), dtype)
    if kind == "singular":
        b = np.asarray(wide(D) @ wide(b) / max(np.abs(wide(D)).max(), np.longdouble("1e-4000")))
    b = scaled(b, of_b, dtype)
    x0 = None if of_x0 is None else scaled(random_numbers(rng, (n, k), dtype), of_x0, dtype)
    if not all(np.all(np.isfinite(a)) for a in (D, b) + (() if x0 is None else (x0,))):
        return
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        A = wl.Csr(D, executor=where)
        try:
            M = np.linalg.inv(D) if kind == "inverse" else None
            if M is not None and not np.all(np.isfinite(M)):
                M = None
            if solver == "solve":
                result = wl.solve(A, b, rtol=rtol, x0=x0, maxiter=60)
            elif solver == "Direct":
                result = wl.solvers.Direct(A, rtol=rtol).solve(b, x0)
            else:
                P = None if M is None else wl.Dense(M, executor=where)
                made = getattr(wl.solvers, solver)(A, P, rtol=rtol, maxiter=60)
                result = made.solve(b, x0)
        except (WollemiError, np.linalg.LinAlgError):
            return
    confirm(D, b, result, rtol)


def confirm(D: Any, b: Any, result: Any, rtol: float) -> None:
    """Fail if a column is claimed and long doubles do not confirm it."""
    x = np.asarray(result.x).reshape(b.shape[0] if D.shape[0] == D.shape[1] else D.shape[1], -1)
    A, y, right = wide(D), wide(x), wide(b)
    eps = np.finfo(np.float64).eps
    rounding = ROUNDINGS * eps * norm(np.abs(A) @ np.abs(y))
    residual = norm(right - A @ y)
    tiny = np.longdouble(np.finfo(D.dtype).smallest_subnormal) * len(b)
    for c, stop in enumerate(result.stops):
        assert np.all(np.isfinite(x[:, c])), f"x is not finite: {result.stops[c].name}"
        if stop == wl.core.status.Stop.CONVERGED and not hasattr(result, "rules"):
            allowed = 1.001 * np.longdouble(rtol) * norm(right)[c] + rounding[c] + tiny
            assert residual[c] <= allowed, (
                f"claimed {rtol}: {residual[c] / norm(right)[c]:.3g} of |b|"
            )


TARGET = Target("scales", systems(), check)
