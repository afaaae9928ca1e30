"""Least squares of every scale: a claim meets a rule in long doubles, in the plain metric."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import wollemi as wl
from wollemi.core.errors import WollemiError
from wollemi.core.status import Stop

from .batch import Target
from .scales import DTYPES, EXECUTORS, exponents, norm, random_numbers, scaled, wide

#: By how much a rule may be missed: the norm of ``A`` is an estimate.
SLACK = 3.0
#: Roundings of the residuals, in units of the precision that they are made in.
ROUNDINGS = 32


@st.composite
def systems(draw: st.DrawFn) -> tuple[Any, ...]:
    """Return a solver, the seed of a system, and its scales."""
    dtype = draw(st.sampled_from(DTYPES))
    return (
        draw(st.sampled_from(EXECUTORS)),
        draw(st.sampled_from(("Lsmr", "Lsqr"))),
        draw(st.sampled_from((None, "columns", "singular"))),
        dtype,
        draw(st.integers(0, 2**32 - 1)),
        draw(exponents(dtype)),
        draw(exponents(dtype)),
        draw(st.one_of(st.none(), exponents(dtype))),
        draw(st.sampled_from((0.0, 0.0, 0.3))),
        draw(st.sampled_from((1e-4, 1e-6, 1e-9))),
    )


def check(example: tuple[Any, ...], folder: Path) -> None:
    """Solve, and look at the rules in long doubles."""
    where, solver, M, dtype, seed, of_A, of_b, of_x0, damp, tolerance = example
    rng = np.random.default_rng(seed)
    m, n = (int(extent) for extent in rng.integers(1, 12, 2))
    D = random_numbers(rng, (m, n), dtype) * (rng.random((m, n)) < 0.7)
    D = scaled(D * 10.0 ** rng.uniform(-2, 2, n), of_A, dtype)
    b = scaled(random_numbers(rng, (m, 1), dtype), of_b, dtype)[:, 0]
    x0 = None if of_x0 is None else scaled(random_numbers(rng, (n, 1), dtype), of_x0, dtype)[:, 0]
    if not all(np.all(np.isfinite(a)) for a in (D, b) + (() if x0 is None else (x0,))):
        return
    damp = damp * float(np.abs(D).max(initial=0.0))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        A = wl.Csr(D, executor=where)
        P: Any = M
        if M == "singular":
            P = wl.Diagonal((np.arange(n) > 0).astype(dtype), executor=where)
        try:
            made = getattr(wl.solvers, solver)(A, P, damp=damp, atol=tolerance, btol=tolerance)
            result = made.solve(b, x0)
        except WollemiError:
            return
    x = np.asarray(result.x)
    assert np.all(np.isfinite(x)), result.stops[0].name
    if result.stops[0] != Stop.CONVERGED:
        return
    # rules 4 and 5 claim the precision of the dtype where the tolerance is below it
    tolerance = max(tolerance, float(np.finfo(dtype).eps))
    W = wide(np.vstack([D, damp * np.eye(n)])) if damp else wide(D)
    start = np.zeros(n) if x0 is None else x0
    right = np.concatenate([wide(b), damp * wide(start)]) if damp else wide(b)
    eps = max(float(np.finfo(dtype).eps) ** 2, 2.0**-52)
    r = right - W @ wide(x)
    size = norm(np.abs(W).ravel())
    rounding = ROUNDINGS * eps * size * norm(wide(x))
    first = norm(r) <= SLACK * tolerance * (norm(wide(b)) + size * norm(wide(x))) + rounding
    normal = norm(W.conj().T @ r)
    second = normal <= SLACK * tolerance * two_norm(W) * norm(r) + 2 * size * rounding
    assert first or second, f"claimed by rule {result.rules[0]}; neither rule is met"


def two_norm(W: np.ndarray) -> Any:  # type: ignore[type-arg]
    """Return the largest singular value of a matrix of any scale."""
    size = np.abs(W).max(initial=np.longdouble(0))
    if size == 0:
        return size
    kind = np.complex128 if np.iscomplexobj(W) else np.float64
    return size * np.longdouble(np.linalg.norm((W / size).astype(kind), 2))


TARGET = Target("least_squares", systems(), check)
