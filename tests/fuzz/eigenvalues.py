"""Random Hermitian matrices and pencils of every scale: claimed pairs are pairs of LAPACK."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from hypothesis import strategies as st

import wollemi as wl
from wollemi.core.errors import WollemiError

from .batch import Target
from .expressions import EXECUTORS

Numbers = np.ndarray[Any, Any]

DTYPES = ("float32", "float64", "complex64", "complex128")
SPECTRA = ("random", "few", "graded", "cluster", "rank", "graph", "grid", "diagonal", "zero", "one")
SOLVERS = ("lobpcg", "lanczos", "shifted", "singular")
MODES = ("normal", "normal", "buckling", "cayley")
METRICS = ("none", "none", "mass", "diagonal", "dense")
PRECONDITIONERS = ("none", "none", "jacobi", "low rank", "indefinite", "zero", "inverse")
STARTS = ("none", "none", "dependent", "extreme", "exact")
TOLERANCES = (0.0, 1e-10, 1e-6, 1e-3)

#: Powers of two of the matrices; powers beyond the range of a dtype are clipped.
EXPONENTS = st.one_of(st.just(0), st.integers(-1000, 1000), st.integers(-130, 130))

#: The limit of rounding that the documentation promises, in units of the precision.
ROUNDING = 256


class Example(NamedTuple):
    """An eigenvalue problem; the seed says the random numbers."""

    executor: str
    solver: str
    dtype: str
    spectrum: str
    n: int
    k: int
    seed: int
    a: int
    b: int
    metric: str
    rtol: float
    which: str
    mode: str
    preconditioner: str
    start: str
    constraints: int


@st.composite
def problems(draw: st.DrawFn) -> Example:
    """Return a problem."""
    n = draw(st.one_of(st.integers(1, 8), st.integers(1, 40)))
    solver = draw(st.sampled_from(SOLVERS))
    which = {"lobpcg": ("SA", "LA"), "singular": ("LM", "SM")}.get(
        solver, ("LM", "SM", "LA", "SA", "BE")
    )
    return Example(
        draw(st.sampled_from(EXECUTORS)),
        solver,
        draw(st.sampled_from(DTYPES)),
        draw(st.sampled_from(SPECTRA)),
        n,
        draw(st.one_of(st.integers(1, min(n, 4)), st.integers(1, n))),
        draw(st.integers(0, 1 << 30)),
        draw(EXPONENTS),
        draw(EXPONENTS),
        draw(st.sampled_from(METRICS)),
        draw(st.sampled_from(TOLERANCES)),
        draw(st.sampled_from(which)),
        draw(st.sampled_from(MODES)),
        draw(st.sampled_from(PRECONDITIONERS)),
        draw(st.sampled_from(STARTS)),
        draw(st.sampled_from((0, 0, 1, 2))),
    )


# ---- matrices


def _spectrum(kind: str, n: int, rng: np.random.Generator) -> Numbers:
    made: dict[str, Any] = {
        "random": lambda: rng.standard_normal(n),
        "few": lambda: rng.choice([-1.0, 0.5, 2.0], n),
        "graded": lambda: 10.0 ** np.linspace(0, -12, n) * rng.choice([-1.0, 1.0, 1.0], n),
        "cluster": lambda: 1 + 1e-9 * rng.standard_normal(n) * (rng.random(n) < 0.7),
        "rank": lambda: np.r_[np.zeros(n // 2), 1 + rng.random(n - n // 2)],
        "diagonal": lambda: rng.integers(-4, 5, n).astype(float),
        "zero": lambda: np.zeros(n),
        "one": lambda: np.full(n, 3.0),
    }
    return np.asarray(made[kind]())


def _graph(kind: str, n: int, rng: np.random.Generator) -> Numbers:
    if kind == "grid":
        edges = [(i, (i + 1) % n) for i in range(n)] + [(i, i + 6) for i in range(n - 6)]
    else:
        edges = [(int(i), int(j)) for i, j in rng.integers(0, n, (n, 2))]
    L = np.zeros((n, n))
    for i, j in edges:
        if i != j:
            L[[i, j], [j, i]] -= 1.0
            L[[i, j], [i, j]] += 1.0
    return L


def _unitary(n: int, is_complex: bool, rng: np.random.Generator) -> Numbers:
    G = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if is_complex else 0)
    return np.asarray(np.linalg.qr(G)[0])


def _hermitian(example: Example, rng: np.random.Generator) -> Numbers:
    is_complex = example.dtype.startswith("complex")
    if example.spectrum in ("graph", "grid"):
        D = _graph(example.spectrum, example.n, rng).astype(complex if is_complex else float)
        if is_complex:
            phase = np.exp(1j * np.arange(example.n))
            D = phase[:, None] * D * phase.conj()
    else:
        values = _spectrum(example.spectrum, example.n, rng)
        if example.spectrum in ("diagonal", "zero"):
            D = np.diag(values)
        else:
            Q = _unitary(example.n, is_complex, rng)
            D = (Q * values) @ Q.conj().T
    return 0.5 * (D + D.conj().T)


def _metric(example: Example, rng: np.random.Generator) -> Numbers | None:
    n = example.n
    if example.metric == "none":
        return None
    if example.metric == "mass":
        return np.asarray((4 * np.eye(n) + np.eye(n, k=1) + np.eye(n, k=-1)) / 6)
    if example.metric == "diagonal":
        return np.diag(10.0 ** -np.linspace(0, 4, n))
    Q = _unitary(n, example.dtype.startswith("complex"), rng)
    B = (Q * (1 + rng.random(n))) @ Q.conj().T
    return np.asarray(0.5 * (B + B.conj().T))


def _stored(D: Numbers, exponent: int, dtype: str) -> tuple[Numbers, Numbers, int]:
    """Return ``2**exponent D`` in a dtype, the same unscaled in double precision, the exponent."""
    limits = np.finfo(dtype)
    exponent = int(np.clip(exponent, limits.minexp + 2, limits.maxexp - 12))
    D = D.astype(dtype)
    wide = np.complex128 if D.dtype.kind == "c" else np.float64
    scaled = (D.astype(wide) * 2.0 ** (exponent // 2) * 2.0 ** (exponent - exponent // 2)).astype(
        dtype
    )
    exact = scaled.astype(wide) * 2.0 ** (-(exponent // 2)) * 2.0 ** (exponent // 2 - exponent)
    return scaled, exact, exponent


# ---- solves


class Problem(NamedTuple):
    """The matrices as they are given and, without their powers of two, in double precision."""

    A: Numbers
    B: Numbers | None
    exact_A: Numbers
    exact_B: Numbers | None
    a: int
    b: int


def _eigenvectors(problem: Problem) -> Numbers:
    return np.asarray(scipy.linalg.eigh(problem.exact_A, problem.exact_B)[1])


def _start(example: Example, problem: Problem, rng: np.random.Generator) -> Any:
    n, k = example.n, example.k
    if example.start == "none":
        return None
    X = rng.standard_normal((n, k)).astype(problem.A.dtype)
    if example.start == "dependent":
        X[:, k // 2 :] = X[:, :1]
    elif example.start == "extreme":
        X = X * X.dtype.type(1e-30 if example.seed % 2 else 1e30)
    else:
        X = _eigenvectors(problem)[:, :k].astype(X.dtype)
    return X


def _preconditioner(example: Example, problem: Problem, A: Any) -> Any:
    n = example.n
    if example.preconditioner == "none":
        return None
    if example.preconditioner == "jacobi":
        return "jacobi" if np.all(np.diag(problem.A)) else None
    diagonal = {
        "low rank": np.r_[1.0, np.zeros(n - 1)],
        "indefinite": np.where(np.arange(n) % 2, 1.0, -1.0),
        "zero": np.zeros(n),
        "inverse": None,
    }[example.preconditioner]
    if diagonal is None:
        try:
            return wl.solvers.Direct(A)
        except WollemiError:
            return None
    return wl.Diagonal(diagonal.astype(problem.A.dtype), executor=A.executor)


def _solved(example: Example, problem: Problem, rng: np.random.Generator) -> Any:
    """Solve; None where the input is refused with reason."""
    A = wl.Csr(problem.A, executor=example.executor)
    B = None if problem.B is None else wl.Csr(problem.B, executor=example.executor)
    options: dict[str, Any] = {"k": example.k, "rtol": example.rtol, "maxiter": 150}
    start = _start(example, problem, rng)
    vector = None if start is None else start[:, 0]
    if example.solver == "singular":
        return wl.solvers.SingularValues(A, which=example.which, **options).solve(vector)
    if example.solver == "lobpcg":
        M = _preconditioner(example, problem, A)
        count = min(example.constraints, example.n - example.k)
        Y = _eigenvectors(problem)[:, :count].astype(problem.A.dtype) if count else None
        solver = wl.solvers.Lobpcg(A, M, B=B, largest=example.which == "LA", **options)
        return solver.solve(start, Y=Y)
    options["which"] = example.which
    if example.solver == "shifted":
        near = np.linalg.eigvalsh(problem.exact_A)
        sigma = float(rng.choice(near)) + float(rng.choice([0.0, 1e-3, 0.3]))
        sigma = float(np.ldexp(sigma, problem.a - problem.b * (B is not None)))
        mode = example.mode if sigma else "normal"
        options |= {"sigma": sigma, "mode": mode}
        if not np.isfinite(sigma):
            return None
    return wl.solvers.Lanczos(A, B=B, **options).solve(vector)


# ---- claims


def _check_pairs(example: Example, problem: Problem, result: Any) -> None:
    """Every pair that is claimed has a small residual, computed in double precision."""
    claimed = [c for c, stop in enumerate(result.stops) if stop.name == "CONVERGED"]
    if not claimed:
        return
    eps = float(np.finfo(example.dtype).eps)
    A, B = problem.exact_A, problem.exact_B
    plain = example.solver == "shifted" and example.mode == "buckling"
    with np.errstate(over="ignore"):
        X = np.asarray(result.eigenvectors)[:, claimed]
        X = X.astype(np.complex128 if X.dtype.kind == "c" else np.float64)
        values = np.ldexp(
            result.eigenvalues[claimed], (problem.b if B is not None else 0) - problem.a
        )
    if B is not None:
        lengths = np.sqrt(np.abs(np.sum(X.conj() * (B @ X), axis=0)))
        expected = 1.0 if plain else 2.0 ** (-problem.b / 2)
        if not plain:
            np.testing.assert_allclose(lengths, expected, rtol=50 * eps**0.5)
            X = X / expected
    BX = X if B is None else B @ X
    size_A, size_B = np.abs(A).sum(1).max(), 1.0 if B is None else np.abs(B).sum(1).max()
    R = A @ X - BX * values
    limits = np.maximum(
        example.rtol * np.abs(values) * np.linalg.norm(BX, axis=0),
        ROUNDING * eps * (size_A + np.abs(values) * size_B) * np.linalg.norm(X, axis=0),
    )
    norms = np.linalg.norm(R, axis=0)
    assert np.all(norms <= 1.1 * limits), f"residuals {norms} above {limits}"
    if not plain:
        G = X.conj().T @ BX
        rounding = 2 * ROUNDING * eps * size_B * np.linalg.norm(X, axis=0).max() ** 2
        deviation = np.abs(G - np.eye(len(claimed))).max()
        assert deviation <= max(2 * eps**0.5, rounding), f"not orthonormal by {deviation}"
    if len(claimed) == len(result.stops):
        in_B = np.sqrt(np.abs(np.sum(X.conj() * BX, axis=0)))
        _check_wanted(example, problem, values, limits / in_B)


def _check_wanted(example: Example, problem: Problem, values: Numbers, limits: Numbers) -> None:
    """The values are the wanted ones of LAPACK; Lanczos may leave copies of an eigenvalue out."""
    exact = scipy.linalg.eigvalsh(problem.exact_A, problem.exact_B)
    least = 1.0 if problem.exact_B is None else float(np.linalg.eigvalsh(problem.exact_B)[0])
    close = 4 * float(np.max(limits)) / least**0.5 + 1e-12 * float(np.abs(exact).max())
    nearest = np.abs(values[:, None] - exact).min(axis=1)
    assert np.all(nearest <= close), f"{values} are no eigenvalues"
    start = example.start in ("exact", "dependent")
    if example.solver == "shifted" or start or example.constraints or example.which == "BE":
        return
    rank = {"SA": exact, "LA": -exact, "LM": -np.abs(exact), "SM": np.abs(exact)}[example.which]
    found = {"SA": values, "LA": -values, "LM": -np.abs(values), "SM": np.abs(values)}
    rank, got = np.sort(rank), np.sort(found[example.which])
    if example.solver == "lanczos":
        rank = rank[np.r_[True, np.diff(rank) > close]]
        rank = np.r_[rank, np.full(len(got), np.inf)]
    assert np.all(got <= rank[: len(got)] + close), f"unwanted {got}, {rank}"


def _check_triplets(example: Example, problem: Problem, result: Any) -> None:
    claimed = [c for c, stop in enumerate(result.stops) if stop.name == "CONVERGED"]
    eps = float(np.finfo(example.dtype).eps)
    A = problem.exact_A
    u, vh = np.asarray(result.u)[:, claimed], np.asarray(result.vt)[claimed]
    s = np.ldexp(result.s[claimed], -problem.a)
    wide = np.complex128 if u.dtype.kind == "c" else np.float64
    u, v = u.astype(wide), vh.conj().T.astype(wide)
    norms = np.hypot(
        np.linalg.norm(A @ v - u * s, axis=0), np.linalg.norm(A.conj().T @ u - v * s, axis=0)
    )
    limits = np.maximum(example.rtol * s, ROUNDING * eps * np.linalg.norm(A, 2))
    assert np.all(norms <= 1.1 * limits), f"residuals {norms} above {limits}"
    for block in (u, v):
        G = block.conj().T @ block
        assert np.abs(G - np.eye(len(claimed))).max(initial=0) <= 2 * eps**0.5


def check(example: Example, folder: Path) -> None:
    """Solve a problem; compare with LAPACK."""
    example = Example(*example)
    rng = np.random.default_rng(example.seed)
    D, E = _hermitian(example, rng), _metric(example, rng)
    if example.solver == "singular":
        E = None
    if example.solver == "shifted" and example.mode == "buckling":
        D = D + (0.1 - min(float(np.linalg.eigvalsh(D)[0]), 0.0)) * np.eye(example.n)
    A, exact_A, a = _stored(D, example.a, example.dtype)
    B, exact_B, b = (None, None, 0) if E is None else _stored(E, example.b, example.dtype)
    problem = Problem(A, B, exact_A, exact_B, a, b)
    result = _solved(example, problem, rng)
    if result is None:
        return
    if example.solver == "singular":
        _check_triplets(example, problem, result)
    else:
        _check_pairs(example, problem, result)


TARGET = Target("eigenvalues", problems(), check)
