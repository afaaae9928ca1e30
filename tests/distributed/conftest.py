"""Systems that groups of executors share, and the groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl

KINDS = ("reference", "omp:1")
SIZES = (1, 2, 3, 5)


def line(n: int, far: int = 0) -> Any:
    """Return a diagonally dominant matrix that is not symmetric where ``far`` is given."""
    A = sp.diags_array([-1.0, 2.6, -1.0], offsets=[-1, 0, 1], shape=(n, n)).tocsr()
    if far:
        A = (A + sp.diags_array([-0.3], offsets=[far], shape=(n, n))).tocsr()
    return A


def scattered(n: int, seed: int = 3) -> Any:
    """Return a dominant matrix in which nearly every row needs rows of every member."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, n), density=5 / n, rng=rng).tocsr()
    return (A + sp.diags_array(abs(A).sum(axis=1) + 1.0)).tocsr()


def blocks(n: int) -> Any:
    """Return a matrix in which no row needs another one's column."""
    return sp.diags_array(np.linspace(1.0, 3.0, n)).tocsr()


def grid(n: int, contrast: float = 1.0) -> Any:
    """Return diffusion on n^2 cells, with a square in the middle that conducts more."""
    cells = np.ones((n, n))
    cells[n // 4 : n // 2, n // 4 : n // 2] = contrast
    rows: list[Any] = []
    number = np.arange(n * n).reshape(n, n)
    for a, b, ka, kb in (
        (number[1:], number[:-1], cells[1:], cells[:-1]),
        (number[:, 1:], number[:, :-1], cells[:, 1:], cells[:, :-1]),
    ):
        k = (2 * ka * kb / (ka + kb)).ravel()
        rows.append(sp.coo_array((k, (a.ravel(), b.ravel())), shape=(n * n, n * n)))
    L: Any = sum(rows[1:], rows[0])
    L = L + L.T
    return (sp.diags_array(L.sum(axis=1) + 1e-3) - L).tocsr()


def by_rows(S: Any, kind: str) -> Any:
    """Return a matrix of one executor with products as sums of rows, as in a part's transpose.

    The first products of a ``.T`` go by columns on ``omp``, in another order where rows are added
    up by lanes.
    """
    return wl.Csr(sp.csr_array(S), executor=kind)


SYSTEMS = {
    "line": line(37),
    "far": line(41, 17),
    "all-boundary": scattered(40),
    "no-ghosts": blocks(30),
    "three-rows": line(3),
    "one-row": line(1),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """The executor that every member of a group is."""
    name: str = request.param
    return name


@pytest.fixture(params=SYSTEMS)
def matrix(request: pytest.FixtureRequest) -> Any:
    """A matrix of SciPy."""
    return SYSTEMS[request.param]


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers, the same in every test."""
    return np.random.default_rng(11)
