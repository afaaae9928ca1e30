"""``python -m tests.fuzz.many_systems cuda 100000 --seed 0``: large batches with bad members.

Batches of seeds below ``len(CASES)`` are of fixed kinds, later ones of random kinds. Each batch has
one pattern and thousands of members, one in twenty with a fault. No claim may be false by the
residual in double precision, a claimed solution is as near to LAPACK's as the condition allows, and
the members without faults have the bits of a batch of them alone.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any, NamedTuple

import numpy as np

from .batches import DTYPES, FAULTS, PATTERNS, Example, random_numbers, solved, spoil, structure

Numbers = np.ndarray[Any, Any]

#: One member in so many has a fault.
ONE_IN = 20

#: Kinds of batches: method, pattern, preconditioner, rows, dtype and tolerance.
CASES = (
    ("direct", "dense", None, 22, "float64", 1e-10),
    ("direct", "sparse", None, 54, "float64", 1e-10),
    ("direct", "tridiagonal", None, 64, "float64", 1e-10),
    ("direct", "band", None, 40, "float64", 1e-10),
    ("direct", "dense", None, 12, "complex64", 1e-3),
    ("cg", "tridiagonal", "jacobi", 40, "float64", 1e-9),
    ("bicgstab", "dense", "jacobi", 22, "float64", 1e-9),
    ("bicgstab", "band", "jacobi", 33, "complex128", 1e-8),
    ("minres", "band", None, 30, "float64", 1e-8),
    ("idr", "sparse", "jacobi", 25, "float32", 1e-3),
    ("gmres", "sparse", "jacobi", 25, "float64", 1e-9),
)

#: Of random batches.
SOLVERS = (
    "direct", "direct", "cg", "fcg", "bicgstab", "cgs", "tfqmr", "minres", "idr", "gmres", "qmr",
)  # fmt: skip
PRECONDITIONERS = (None, "jacobi", "jacobi", "ilu", "blockjacobi", "isai")
SINGLE, DOUBLE = (1e-2, 1e-4), (1e-3, 1e-8, 1e-10, 1e-13)


class Counts(NamedTuple):
    """The systems of a batch, the claims, and the members with faults."""

    systems: int
    claimed: int
    bad: int


def matrices(example: Example, rng: np.random.Generator, stored: Numbers) -> Numbers:
    """Return dense members with a random shift of the diagonal, a third of them singular nearly."""
    shape = (example.count, example.n, example.n)
    a = random_numbers(rng, shape, example.dtype) * stored
    if example.kind in ("cg", "minres"):
        a = (a + np.swapaxes(a, 1, 2).conj()) * (stored & stored.T)
    shift = rng.choice([0.0, 4.0, 12.0], example.count)
    return (a + shift[:, None, None] * np.diag(np.diag(stored))).astype(example.dtype)


def run(example: Example) -> Counts:
    """Solve a batch and one without the bad members; fail on a false claim or another bit."""
    rng = np.random.default_rng(example.seed)
    stored = structure(example, rng)
    a, b = (
        matrices(example, rng, stored),
        random_numbers(rng, (example.count, example.n), example.dtype),
    )
    bad = np.sort(rng.choice(example.count, example.count // ONE_IN, replace=False))
    for k in bad.tolist():
        spoil(a, b, k, str(rng.choice(FAULTS)), rng)
    result = solved(example, a[:, stored], stored, b, None)
    claimed = check_claims(example, a, b, result)
    good = np.setdiff1d(np.arange(example.count), bad)
    part = replace_count(example, good.size)
    clean = solved(part, a[good][:, stored], stored, b[good], None)
    np.testing.assert_array_equal(clean.x, result.x[good])
    np.testing.assert_array_equal(clean.stops, result.stops[good])
    return Counts(example.count, claimed, bad.size)


def replace_count(example: Example, count: int) -> Example:
    """Return an example with another number of members."""
    return example._replace(count=count)


def check_claims(example: Example, a: Numbers, b: Numbers, result: Any) -> int:
    """Fail on a claim that is false; return how many claims there are."""
    claims = np.flatnonzero(result.converged)
    wide = np.complex128 if np.dtype(example.dtype).kind == "c" else np.float64
    A, x, right = a[claims].astype(wide), result.x[claims].astype(wide), b[claims].astype(wide)
    largest = np.maximum(np.abs(A).max(axis=(1, 2)), np.abs(right).max(axis=1))
    scale = 2.0 ** -np.floor(np.log2(np.where(largest > 0, largest, 1.0)))
    with np.errstate(all="ignore"):
        given = A, right
        A, right = A * scale[:, None, None], right * scale[:, None]
        terms = np.einsum("kij,kj->ki", np.abs(A), np.abs(x)) + np.abs(right)
        norm = np.linalg.norm(right - np.einsum("kij,kj->ki", A, x), axis=1)
        rounding = (example.n + 2) * 2.3e-16 * np.linalg.norm(terms, axis=1)
        rounding[~np.isfinite(rounding)] = 0  # sizes of complex numbers at the end of the range
        threshold = example.rtol * np.linalg.norm(right, axis=1)
    false = ~(norm <= 1.001 * threshold + rounding)
    assert not false.any(), (example, claims[false], norm[false], threshold[false])
    if example.kind == "direct":
        _compare_with_lapack(*given, x, np.finfo(example.dtype).eps)
        usable = np.isfinite(a).all(axis=(1, 2)) & np.isfinite(b).all(axis=1)
        open_ = np.setdiff1d(np.flatnonzero(usable), claims)
        for k in open_.tolist():
            with np.errstate(all="ignore"):
                condition = np.linalg.cond(a[k].astype(wide))
            if result.reason[k].startswith("out of range"):
                continue
            # the residual of a stable method, relative to the right-hand side, is at most this
            reached = condition * np.finfo(example.dtype).eps * example.n
            assert not reached < min(1e-3, example.rtol), (example, k)
    return int(claims.size)


def _compare_with_lapack(a: Numbers, b: Numbers, x: Numbers, epsilon: float) -> None:
    """Fail where a solution is farther from LAPACK's than the condition allows."""
    with np.errstate(all="ignore"):
        sizes = [np.abs(a).max(axis=(1, 2)), np.abs(b).max(axis=1)]
        of_a, of_b = (2.0 ** -np.floor(np.log2(np.where(s > 0, s, 1.0))) for s in sizes)
        a, b = a * of_a[:, None, None], b * of_b[:, None]
        x = x / of_a[:, None] * of_b[:, None]
        condition = np.linalg.cond(a)
        sound = np.flatnonzero(condition * epsilon * a.shape[1] < 1e-3)
        exact = np.linalg.solve(a[sound], b[sound][..., None])[..., 0]
        error = np.linalg.norm(x[sound] - exact, axis=1)
        bound = 100 * a.shape[1] * condition[sound] * epsilon * np.linalg.norm(exact, axis=1)
        far = error > bound  # not where numbers overflow
    assert not far.any(), (sound[far], error[far])


def example_of(executor: str, seed: int, count: int) -> Example:
    """Return the batch of a seed."""
    if seed < len(CASES):
        kind, pattern, M, n, dtype, rtol = CASES[seed]
        return Example(executor, dtype, kind, pattern, M, n, count, seed, "plain", (), False, rtol)
    rng = np.random.default_rng(seed)
    kind, pattern = str(rng.choice(SOLVERS)), str(rng.choice(PATTERNS))
    chosen = rng.choice(np.array(PRECONDITIONERS, object))
    if kind in ("cg", "fcg") and chosen == "ilu":
        chosen = "ic"
    if pattern == "empty row" and chosen in ("ilu", "ic", "isai"):
        chosen = None
    dtype = str(rng.choice(DTYPES))
    n = int(rng.integers(1, 6)) if rng.random() < 0.2 else int(rng.integers(6, 60))
    digits = SINGLE if dtype in ("float32", "complex64") else DOUBLE
    rtol = float(rng.choice(digits))
    return Example(executor, dtype, kind, pattern, chosen, n, count, seed, "plain", (), False, rtol)


def main() -> int:
    """Run batches until there are enough systems; tell the seeds of the ones that fail."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.many_systems", description=__doc__)
    parser.add_argument("executor")
    parser.add_argument("systems", type=int)
    parser.add_argument("--each", type=int, default=2500, help="systems of a batch")
    parser.add_argument("--seed", type=int, default=0, help="of the first batch")
    given = parser.parse_args()
    began, seed, failed = time.perf_counter(), given.seed, 0
    total = Counts(0, 0, 0)
    while total.systems < given.systems:
        example = example_of(given.executor, seed, given.each)
        try:
            found = run(example)
        except AssertionError as error:
            failed, found = failed + 1, Counts(given.each, 0, 0)
            print(f"--seed {seed}: {example}: {error}", flush=True)
        total = Counts(*(one + other for one, other in zip(total, found, strict=True)))
        seed += 1
    took = time.perf_counter() - began
    said = "none false, other members keep their bits" if not failed else f"{failed} batches failed"
    print(
        f"{given.executor}: {total.systems} systems ({total.bad} with faults) of seeds "
        f"{given.seed} to {seed - 1}, {total.claimed} claims, {said}; {took:.0f} s"
    )
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
