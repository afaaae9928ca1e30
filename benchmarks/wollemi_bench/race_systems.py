"""Systems of the suite races: model problems of growing size, and files of real matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from . import elliptic
from .cases import SEED, case

#: Rows of the smallest matrix of a folder that takes part.
LEAST = 100


#: The family of real matrices.
FILES = "files"


@dataclass(frozen=True)
class RaceSystem:
    """A system that every library solves to the same true residual.

    Attributes
    ----------
    family, name : str
        Its kind of problem, and its name in records.
    make : callable
        Returns the matrix.
    definite : bool or None
        Whether the matrix is symmetric and positive definite; None if it is symmetric alone.
    rtol : float
        The relative residual to reach.
    """

    family: str
    name: str
    make: Callable[[], sp.csr_array]
    definite: bool | None = True
    rtol: float = 1e-8

    def matrix(self) -> sp.csr_array:
        """Return the matrix in float64 with 32-bit indices where they suffice."""
        made = sp.csr_array(self.make()).astype(np.float64)
        made.sort_indices()
        if made.nnz < 2**31:
            made.indices = made.indices.astype(np.int32, copy=False)
            made.indptr = made.indptr.astype(np.int32, copy=False)
        return made

    def right_side(self, S: sp.csr_array) -> np.ndarray[Any, Any]:
        """Return the seeded right-hand side.

        For a file it is a product with the matrix, since some of these matrices are singular.
        """
        drawn = np.random.default_rng(SEED).standard_normal(S.shape[0])
        return np.asarray(S @ drawn) if self.family == FILES else drawn


def plane(n: int) -> sp.csr_array:
    """Return the 5-point stencil on n x n points, made row by row without temporary copies.

    Examples
    --------
    >>> from wollemi_bench.race_systems import plane
    >>> plane(2).toarray()[0].tolist()
    [4.0, -1.0, -1.0, 0.0]
    """
    rows = n * n
    i, j = np.divmod(np.arange(rows, dtype=np.int32), np.int32(n))
    inside = np.stack([i > 0, j > 0, np.ones(rows, bool), j < n - 1, i < n - 1], axis=1)
    steps = np.array([-n, -1, 0, 1, n], np.int32)
    columns = (np.arange(rows, dtype=np.int32)[:, None] + steps)[inside]
    values = np.broadcast_to(np.array([-1.0, -1.0, 4.0, -1.0, -1.0]), inside.shape)[inside]
    pointers = np.zeros(rows + 1, np.int32)
    np.cumsum(inside.sum(axis=1), out=pointers[1:])
    return sp.csr_array((values, columns, pointers), shape=(rows, rows))


def systems(scale: int = 1) -> Iterator[RaceSystem]:
    """Yield the model problems, the largest last: a run that is cut short has most of them.

    Parameters
    ----------
    scale : int
        The number of unknowns is divided by this.
    """

    def side(n: int, axes: int) -> int:
        return max(round(n / scale ** (1 / axes)), 12)

    def on_plane(n: int) -> RaceSystem:
        m = side(n, 2)
        return RaceSystem("Poisson, plane", f"Poisson {m}^2", partial(plane, m), rtol=1e-6)

    def in_space(n: int) -> RaceSystem:
        m = side(n, 3)
        return RaceSystem("Poisson, space", f"Poisson {m}^3", case(f"stencil7:{m}").matrix)

    yield from map(in_space, (64, 100, 128))
    yield on_plane(1000)
    m = side(100, 3)
    yield RaceSystem("jumps", f"boxes 1e6, {m}^3", partial(elliptic.boxes, m, 1e6))
    yield RaceSystem("anisotropy", f"anisotropic 1e-3, {m}^3", partial(elliptic.cube, m, z=1e-3))
    yield RaceSystem("27 points", f"27 points, {m}^3", case(f"stencil27:{m}").matrix)
    blown = partial(elliptic.transported, m, 100.0, recirculating=False)
    yield RaceSystem("convection", f"convection Pe 100, {m}^3", blown, definite=False)
    yield in_space(200)
    yield on_plane(4000)


def files(folder: Path) -> Iterator[RaceSystem]:
    """Yield the square real matrices of a folder that have 100 rows or more."""
    from .solve_table import square_systems

    for name, A, _ in square_systems(folder):
        S = A.to_scipy()
        if S.shape[0] < LEAST or S.dtype.kind != "f":
            continue
        yield RaceSystem(FILES, name, partial(_same, S), definite=definite(S))


def definite(S: sp.csr_array) -> bool | None:
    """Return whether a matrix is symmetric and positive definite; None: symmetric, not definite.

    The pivots of a factorization without exchanges of rows have the signs of the eigenvalues
    (Sylvester's law of inertia).
    """
    if abs(S - S.T).max() > 1e-14 * abs(S).max():
        return False
    if not S.diagonal().min() > 0:
        return None
    try:
        factors = splu(
            sp.csc_array(S),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    except RuntimeError:  # exactly singular
        return None
    in_order = np.array_equal(factors.perm_r, factors.perm_c)
    return True if in_order and factors.U.diagonal().min() > 0 else None


def _same(S: sp.csr_array) -> sp.csr_array:
    return S
