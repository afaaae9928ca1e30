"""Preconditioners of random matrices are finite or refused, linear, and alike everywhere."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import wollemi as wl
from wollemi.core.errors import WollemiError
from wollemi.solvers.registry import OWN_PRECONDITIONERS

from .batch import Target
from .expressions import DTYPES, EXECUTORS

#: Preconditioners that need an argument.
WITH_ARGUMENTS = {"additive", "blockschwarz", "multigrid", "multiplicative"}

NAMES = (
    *(name for name in OWN_PRECONDITIONERS if name not in WITH_ARGUMENTS),
    "blockjacobi:size=4", "blockjacobi:size=3,storage=float32",
    "blockjacobi:size=3,storage=adaptive", "sor:backward=True,colors=True", "ssor:colors=True",
    "ilu:level=1", "ilu:match=True", "ilu:order=rcm", "ilu:factor_sweeps=3,apply=jacobi:3",
    "ilu:apply=isai:1", "ic:apply=isai:1", "ilut:factor_sweeps=3", "polynomial:kind=neumann",
    "blockschwarz:blocks=2", "amg:coarse_rows=4", "amg:kind=aggregation,coarse_rows=4",
    "amg:coarse_rows=4,dtype=float32",
    "amg:coarse_rows=4,smoother=ssor",
)  # fmt: skip

#: Hermitian for a Hermitian matrix, on every executor.
HERMITIAN = (
    "jacobi", "blockjacobi", "ssor", "ic", "ict", "fsai", "polynomial", "chebyshev",
)  # fmt: skip

#: Diagonals dominate in the first two; any diagonal may stand in the others.
STRUCTURES = ("hermitian", "dominant", "empty row", "any", "grid")


@st.composite
def setups(draw: st.DrawFn) -> tuple[Any, ...]:
    """Return the name of a preconditioner and the parts of a matrix."""
    dtype = draw(st.sampled_from(DTYPES))
    widest = 37 if np.finfo(dtype).maxexp < 1000 else 300
    exponent = draw(st.one_of(st.just(0), st.integers(-widest, widest)))
    n = draw(st.sampled_from((1, 2, 3, 5, 8, 17, 30)))
    seed = draw(st.integers(0, 2**32 - 1))
    structure = draw(st.sampled_from(STRUCTURES))
    return draw(st.sampled_from(NAMES)), structure, n, dtype, exponent, seed


def matrix_of(structure: str, n: int, dtype: str, exponent: int, seed: int) -> np.ndarray:
    """Return a dense matrix."""
    rng = np.random.default_rng(seed)
    if structure == "grid":
        m = max(int(n**0.5), 1)
        line = 2 * np.eye(m) - np.eye(m, k=1) - np.eye(m, k=-1)
        D = np.kron(line, np.eye(m)) + np.kron(np.eye(m), line)
    else:
        D = rng.standard_normal((n, n)) * (rng.random((n, n)) < rng.uniform(0.05, 0.6))
        if dtype.startswith("complex"):
            D = D + 1j * rng.standard_normal((n, n)) * (D != 0)
    if structure == "hermitian":
        D = D + D.conj().T
    if structure in ("hermitian", "dominant", "empty row"):
        np.fill_diagonal(D, np.abs(D).sum(axis=1) + rng.uniform(0.1, 1))
    if structure == "empty row":
        D[int(rng.integers(n))] = 0
    return (D * 10.0**exponent).astype(dtype)


def _made(D: np.ndarray, name: str, where: str) -> Any:
    """Return a preconditioner, or None if it is refused by name."""
    try:
        return wl.solvers.Gmres(wl.Csr(D, executor=where), M=name).M
    except WollemiError:
        return None


def _same(found: np.ndarray, expected: np.ndarray, tolerance: float, said: str) -> None:
    far = float(np.abs(found - expected).max())
    assert far <= tolerance * float(np.abs(expected).max()), f"{said}: off by {far}"


def check(example: tuple[Any, ...], folder: Path) -> None:
    """Compare with the matrix that the preconditioner makes of the identity."""
    name, structure, n, dtype, exponent, seed = example
    D = matrix_of(structure, n, dtype, exponent, seed)
    n = D.shape[0]
    eye, ones = np.eye(n, dtype=dtype), np.ones(n, dtype)
    coarse = np.finfo(dtype).bits == 32 or "float32" in name or "storage" in name
    tolerance = 1e-3 if coarse else 1e-8
    if name.startswith("polynomial") and structure == "dominant":
        tolerance = max(tolerance, 1e-4)  # bounds are eigenvalues, which may be defective
    made = [_made(D, name, where) for where in dict.fromkeys((EXECUTORS[0], EXECUTORS[-1]))]
    tame = structure in ("hermitian", "dominant", "grid") and exponent == 0
    asks_more = structure == "dominant" and name.startswith(("ic", "fsai"))  # a Hermitian matrix
    assert not tame or asks_more or None not in made, "a dominant diagonal is refused"
    known: list[np.ndarray] = []
    for M in made:
        if M is None:
            continue
        assert np.all(np.isfinite(np.asarray(M @ ones))), "M @ 1 is not finite"
        E = np.asarray(M @ eye)
        if not tame:
            continue
        known.append(E)
        _same(np.asarray(pickle.loads(pickle.dumps(M)) @ eye), E, tolerance, "pickle")
        if not name.startswith(("l1jacobi", "amg")):
            _same(np.asarray(M.H @ eye), E.conj().T, 10 * tolerance, "adjoint")
        if structure == "hermitian" and name.partition(":")[0] in HERMITIAN:
            _same(E, E.conj().T, 10 * tolerance, "Hermitian")
        x = np.random.default_rng(seed).standard_normal((n, 2)).astype(dtype)
        _same(np.asarray(M @ x), E @ x, 1e2 * tolerance, "linear")
        M.update()
        _same(np.asarray(M @ eye), E, tolerance, "update with the same values")
        M.update(wl.Csr(2 * D, executor=M.executor))
        _same(np.asarray(M @ eye), E / 2, tolerance, "update with twice the values")
    if len(known) == 2 and "blockjacobi" not in name:
        _same(known[0], known[1], 10 * tolerance, "executors")


TARGET = Target("preconditioners", setups(), check)
