"""The matrices that are measured: seeded generators, and files.

A case is named by a string: ``stencil7:100``, ``rmat:18,4000000``, or the path of a matrix file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from ..core import io
from ..core.errors import InvalidArgument

Csr = sp.csr_array
SEED = 20260101

#: R-MAT's probabilities of the four quadrants, those of Graph500.
RMAT = (0.57, 0.19, 0.19, 0.05)


@dataclass(frozen=True)
class Case:
    """A named matrix, made when asked for.

    Attributes
    ----------
    name : str
        What records call it.
    build : callable
        Makes it.
    family : str
        The generator's name, or "" for a file.
    """

    name: str
    build: Callable[[], Csr]
    family: str = ""

    def matrix(self, dtype: str = "float64") -> Csr:
        """Return the matrix with values of ``dtype``; a complex matrix stays complex."""
        made: Any = self.build()
        wanted = np.result_type(dtype, np.complex64) if made.dtype.kind == "c" else np.dtype(dtype)
        return cast(Csr, made.astype(wanted))


def _compressed(matrix: Any) -> Csr:
    """Return sorted CSR with 32-bit indices where they suffice."""
    made = sp.csr_array(matrix)
    made.sum_duplicates()
    if max(made.nnz, *made.shape) <= np.iinfo(np.int32).max:
        made.indices, made.indptr = made.indices.astype(np.int32), made.indptr.astype(np.int32)
    return made


def _line(n: int) -> Any:
    """Return the neighbours on a line of n points, each point its own too."""
    return sp.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(n, n))


def _star(n: int, dimensions: int) -> Csr:
    """Return the Laplacian that couples a point to its neighbours along the axes."""
    laplacian: Any = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    return _compressed(reduce(lambda a, b: sp.kronsum(a, b), [laplacian] * dimensions))


def _box(n: int, dimensions: int) -> Csr:
    """Return the operator that couples a point to all its neighbours, diagonal ones too."""
    neighbours = reduce(lambda a, b: sp.csr_array(sp.kron(a, b)), [_line(n)] * dimensions)
    return _compressed(3.0**dimensions * sp.eye_array(n**dimensions) - neighbours)


def stencil5(n: int) -> Csr:
    """Return Poisson's equation on n x n points."""
    return _star(n, 2)


def stencil7(n: int) -> Csr:
    """Return Poisson's equation on n x n x n points."""
    return _star(n, 3)


def stencil9(n: int) -> Csr:
    """Return bilinear elements on n x n points."""
    return _box(n, 2)


def stencil27(n: int) -> Csr:
    """Return trilinear elements on n x n x n points."""
    return _box(n, 3)


def fem(n: int) -> Csr:
    """Return the 27-point stencil with three unknowns on each of n x n x n points."""
    coupling = np.array([[2.0, 0.5, 0.25], [0.5, 2.0, 0.5], [0.25, 0.5, 2.0]])
    return _compressed(sp.kron(stencil27(n), coupling))


def circuit(n: int) -> Csr:
    """Return a circuit: n nodes with a few wires each, and four rails that touch a tenth."""
    rng = np.random.default_rng(SEED)
    wires = rng.integers(0, n, (2, 2 * n))
    rails = [np.full(n // 10 + 1, rail) for rail in rng.integers(0, n, 4)]
    i = np.concatenate([wires[0], *rails])
    j = np.concatenate([wires[1], rng.integers(0, n, i.size - wires.shape[1])])
    g = sp.coo_array((rng.uniform(0.1, 1.0, i.size), (i, j)), shape=(n, n)).tocsr()
    g = g + g.T
    return _compressed(sp.diags_array(g.sum(axis=1) + 0.01) - g)


def rmat(scale: int, entries: int) -> Csr:
    """Return a power-law graph of 2^scale nodes (R-MAT) with that many distinct edges."""
    rng = np.random.default_rng(SEED)
    _, b, c, d = RMAT
    keys = np.empty(0, np.int64)
    while keys.size < entries:
        drawn = np.zeros((2, entries), np.int64)
        for _ in range(scale):
            u = rng.random(entries)
            drawn[0] = 2 * drawn[0] + (u < c + d)  # the lower quadrants
            drawn[1] = 2 * drawn[1] + ((u < d) | (u >= 1 - b))  # the right ones
        keys = np.unique(np.concatenate([keys, (drawn[0] << scale) + drawn[1]]))
        if entries > 1 << (2 * scale):
            raise InvalidArgument(f"rmat: 2^{scale} nodes have no {entries} distinct edges")
    keys = np.sort(rng.permutation(keys)[:entries])
    rows, columns = keys >> scale, keys & ((1 << scale) - 1)
    n = 1 << scale
    return _compressed(sp.coo_array((rng.random(entries), (rows, columns)), shape=(n, n)))


def uniform(rows: int, columns: int, entries: int) -> Csr:
    """Return entries anywhere with equal chance; about that many."""
    rng = np.random.default_rng(SEED)
    where = (rng.integers(0, rows, entries), rng.integers(0, columns, entries))
    return _compressed(sp.coo_array((rng.random(entries), where), shape=(rows, columns)))


def pruned(rows: int, columns: int, percent: int) -> Csr:
    """Return a layer of a network whose smallest weights, so many percent, were set to zero.

    Rows and columns have scales of their own and the threshold is global, so lengths vary.
    """
    rng = np.random.default_rng(SEED)
    weights = rng.standard_normal((rows, columns))
    weights *= rng.lognormal(0.0, 0.4, (rows, 1)) * rng.lognormal(0.0, 0.4, (1, columns))
    weights[np.abs(weights) < np.percentile(np.abs(weights), percent)] = 0.0
    return _compressed(weights)


def weights(rows: int, columns: int, percent: int) -> Csr:
    """Return weights of which so many percent, anywhere with equal chance, are zero."""
    rng = np.random.default_rng(SEED)
    parts = []
    for start in range(0, rows, 1024):
        block = rng.standard_normal((min(1024, rows - start), columns), np.float32)
        block[100 * rng.random(block.shape, np.float32) < percent] = 0.0
        parts.append(sp.csr_array(block))
    return _compressed(sp.vstack(parts, format="csr"))


def hypersparse(rows: int, entries: int) -> Csr:
    """Return far fewer entries than rows: most rows are empty."""
    return uniform(rows, rows, entries)


@dataclass(frozen=True)
class Generator:
    """A family of cases.

    Attributes
    ----------
    build : callable
        Takes as many integers as ``default`` has.
    default : tuple of int
        The sizes of the family's usual case.
    """

    build: Callable[..., Csr]
    default: tuple[int, ...]

    @property
    def summary(self) -> str:
        """What it is, in a sentence."""
        return (self.build.__doc__ or "").partition("\n")[0].removeprefix("Return ")


CASES = {
    "stencil5": Generator(stencil5, (1000,)),
    "stencil7": Generator(stencil7, (100,)),
    "stencil9": Generator(stencil9, (1000,)),
    "stencil27": Generator(stencil27, (80,)),
    "fem": Generator(fem, (30,)),
    "circuit": Generator(circuit, (500_000,)),
    "rmat": Generator(rmat, (18, 4_000_000)),
    "uniform": Generator(uniform, (500_000, 500_000, 5_000_000)),
    "pruned": Generator(pruned, (2048, 2048, 90)),
    "weights": Generator(weights, (4096, 4096, 90)),
    "hypersparse": Generator(hypersparse, (4_000_000, 1_000_000)),
}


def case(name: str) -> Case:
    """Return the case called ``name``.

    Parameters
    ----------
    name : str
        A family (``stencil7``), a family and its sizes (``stencil7:100``), or a matrix file.

    Raises
    ------
    InvalidArgument
        If it is neither.

    Examples
    --------
    >>> from wollemi.bench import case
    >>> case("stencil5:10").matrix().shape
    (100, 100)
    """
    family, _, sizes = name.partition(":")
    generator = CASES.get(family)
    if generator is None:
        if name.endswith((".mtx", ".gz", ".npz", ".smtx")):
            return Case(name, lambda: _compressed(io.read(name, executor="reference").to_scipy()))
        known = ", ".join(CASES)
        raise InvalidArgument(f"no case is called {name!r}; known: {known}, and matrix files")
    try:
        numbers = tuple(int(word) for word in sizes.split(",")) if sizes else generator.default
    except ValueError:
        numbers = ()
    if len(numbers) != len(generator.default) or min(numbers) < 1:
        example = ",".join(map(str, generator.default))
        raise InvalidArgument(f"case {name!r}: expected sizes as in {family}:{example}")
    name = f"{family}:{','.join(map(str, numbers))}"
    return Case(name, lambda: generator.build(*numbers), family)
