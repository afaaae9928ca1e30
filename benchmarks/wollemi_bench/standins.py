"""Stand-ins for ten matrices of the SuiteSparse collection, with the statistics of their rows.

They are the matrices of Tsai, Cojean and Anzt, "Porting sparse linear algebra to Intel GPUs"
(2021). A stand-in has about the rows, the entries, the longest row and the kind of neighbourhood of
its model; where that is a discretization it is one of the same kind. Values are made so that every
solver has something to do: definite, and symmetric where the model is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp

from wollemi.core.errors import InvalidArgument

from .generators import SEED, Csr, compressed, stencil27

#: By how much the diagonal exceeds the other entries of its row or column together.
DOMINANCE = 1.001

#: The edges of a box that is cut into six tetrahedra (Kuhn), from its first corner.
EDGES = ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 0, 1), (0, 1, 1), (1, 1, 1))


@dataclass(frozen=True)
class Model:
    """The known properties of a matrix of the collection.

    Attributes
    ----------
    group : str
        Of the collection.
    rows, entries, longest : int
        Its rows, its entries (both triangles), and the entries of its longest row.
    make : callable
        Makes a stand-in of about ``rows`` rows.
    """

    group: str
    rows: int
    entries: int
    longest: int
    make: Callable[[Model, int], Csr]


def standin(text: str) -> Callable[[], Csr]:
    """Return the generator of the stand-in called ``name`` or ``name/divisor``.

    Raises
    ------
    InvalidArgument
        If there is none of that name, or the divisor is no positive integer.
    """
    name, _, divisor = text.partition("/")
    if name not in MODELS:
        raise InvalidArgument(f"no stand-in is called {name!r}; known: {', '.join(MODELS)}")
    if not (divisor or "1").isdecimal() or int(divisor or 1) < 1:
        raise InvalidArgument(f"like:{text}: expected a divisor of its rows as in like:{name}/8")
    model = MODELS[name]
    return partial(model.make, model, max(64, model.rows // int(divisor or 1)))


def _finished(rows: np.ndarray, columns: np.ndarray, n: int, symmetric: bool = True) -> Csr:
    """Return values on a pattern without diagonal: negative, and dominated by the diagonal."""
    rng = np.random.default_rng(SEED + 1)
    pattern = compressed(sp.coo_array((np.ones(rows.size, np.float32), (rows, columns)), (n, n)))
    pattern.setdiag(0)
    pattern.eliminate_zeros()
    A = pattern.astype(np.float64)
    A.data = -rng.uniform(0.1, 1.0, A.nnz)
    if symmetric:
        A = compressed((A + A.T) * 0.5)
    return _dominated(A)


def _dominated(A: Csr) -> Csr:
    sums = np.maximum(abs(A).sum(axis=1), abs(A).sum(axis=0))
    return compressed(A + sp.diags_array(DOMINANCE * sums + (sums == 0)))


def _circuit(model: Model, n: int, dense: int, reach: int) -> Csr:
    """Return nodes with few wires, most of them short, and ``dense`` rows and columns.

    The lengths of the dense ones fall from that of the model's longest row to some hundreds.
    """
    rng = np.random.default_rng(SEED)
    share = n / model.rows
    longest = min(n - 1, int(model.longest * share))
    lengths = np.geomspace(max(longest, 2), max(2.0, longest / 50), dense).astype(np.int64)
    wires = max(n, (int(model.entries * share) - n - 2 * int(lengths.sum())) // 2)
    i = rng.integers(0, n, wires)
    near = i + np.rint(rng.exponential(reach, wires) + 1).astype(np.int64)
    j = np.where(rng.random(wires) < 0.9, near % n, rng.integers(0, n, wires))
    rails = np.repeat(rng.choice(n, dense, replace=False), lengths)
    ends = np.concatenate([rng.choice(n, length, replace=False) for length in lengths])
    rows, columns = np.concatenate([i, rails]), np.concatenate([j, ends])
    return _finished(
        np.concatenate([rows, columns]), np.concatenate([columns, rows]), n, symmetric=False
    )


def _convection(model: Model, n: int) -> Csr:
    """Return convection and diffusion on a box by seven points, not symmetric."""
    side = max(3, round(n ** (1 / 3)))

    def line(wind: float) -> sp.dia_array:
        return sp.diags_array(
            [-1.0 - wind, 2.0, -1.0 + wind], offsets=[-1, 0, 1], shape=(side, side)
        )

    return compressed(sp.kronsum(sp.kronsum(line(0.3), line(0.2)), line(0.1)))


def _kkt(model: Model, n: int) -> Csr:
    """Return two diagonal blocks coupled by a 27-point stencil; unlike its model, definite."""
    side = max(3, round((n / 2) ** (1 / 3)))
    B = stencil27(side)  # symmetric
    return _dominated(compressed(sp.kron([[0.0, 1.0], [1.0, 0.0]], -B)))


def _triangles(model: Model, n: int) -> Csr:
    """Return linear elements on triangles: a lattice of which a fifth of the edges was flipped."""
    rng = np.random.default_rng(SEED)
    side = max(4, round(n**0.5))
    x, y = (part.ravel() for part in np.meshgrid(np.arange(side), np.arange(side)))
    node = y * side + x
    pairs = []
    for dx, dy in ((1, 0), (0, 1)):
        inside = (x + dx < side) & (y + dy < side)
        pairs.append((node[inside], (node + dy * side + dx)[inside]))
    inside = (x + 1 < side) & (y + 1 < side)
    corner = node[inside]
    flipped = rng.random(corner.size) < 0.2
    pairs.append((corner + flipped, corner + side + 1 - flipped))
    i, j = (np.concatenate(part) for part in zip(*pairs, strict=True))
    order = _shuffled(side * side, 2000, rng)
    return _finished(order[i], order[j], side * side, symmetric=True)


def _shuffled(n: int, window: int, rng: np.random.Generator) -> np.ndarray:
    """Return a numbering that is random within windows, as that of an unstructured mesh."""
    order: np.ndarray = np.argsort(np.arange(n) // window + rng.random(n), kind="stable")
    return order


def _curl_curl(model: Model, n: int) -> Csr:
    """Return edge elements: curl of curl on the edges of a box, thirteen entries a row."""
    side = max(3, round((n / 3) ** (1 / 3)))
    d = sp.diags_array([-1.0, 1.0], offsets=[0, 1], shape=(side, side))
    one = sp.eye_array(side)
    dx = sp.kron(sp.kron(one, one), d)
    dy = sp.kron(sp.kron(one, d), one)
    dz = sp.kron(sp.kron(d, one), one)
    curl = sp.block_array([[None, -dz, dy], [dz, None, -dx], [-dy, dx, None]]).tocsr()
    return compressed(curl.T @ curl + 0.01 * sp.eye_array(3 * side**3))


def _tetrahedra(model: Model, n: int, unknowns: int, heavy: float) -> Csr:
    """Return elements on tetrahedra with ``unknowns`` unknowns a node.

    The mesh is a lattice of boxes that are cut alike, less some edges, so that a node has the same
    mean number of neighbours as in the model; a share ``heavy`` of the nodes, where such a mesh is
    refined, has up to the model's most.
    """
    rng = np.random.default_rng(SEED)
    side = max(4, round((n / unknowns) ** (1 / 3)))
    count = side**3
    most = model.longest // unknowns
    node = np.arange(count)
    x, y, z = node % side, node // side % side, node // side**2
    centres = rng.choice(count, int(heavy * count), replace=False)
    degrees = rng.integers(most // 3, most - 2 * len(EDGES), centres.size)
    wanted = count * (model.entries / model.rows / unknowns - 1) / 2 - degrees.sum()
    whole = sum((side - a) * (side - b) * (side - c) for a, b, c in EDGES)
    rows, columns = [], []
    for a, b, c in EDGES:
        inside = (x + a < side) & (y + b < side) & (z + c < side)
        inside &= rng.random(count) < wanted / whole
        rows.append(node[inside])
        columns.append((node + a + side * (b + side * c))[inside])
    if centres.size:
        spread = max(2, round(most ** (1 / 3)))
        steps = rng.integers(-spread, spread + 1, (3, int(degrees.sum())))
        at = np.repeat(centres, degrees)
        far = at + steps[0] + side * (steps[1] + side * steps[2])
        inside = (far >= 0) & (far < count)
        rows.append(at[inside])
        columns.append(far[inside])
    i, j = np.concatenate(rows), np.concatenate(columns)
    graph = _finished(np.concatenate([i, j]), np.concatenate([j, i]), count)
    if unknowns == 1:
        return graph
    coupling = np.full((unknowns, unknowns), 0.2) + 0.8 * np.eye(unknowns)
    return compressed(sp.kron(graph, coupling))


#: Sizes as in the collection.
MODELS = {
    "rajat31": Model("Rajat", 4_690_002, 20_316_253, 1252, partial(_circuit, dense=40, reach=30)),
    "atmosmodj": Model("Bourchtein", 1_270_432, 8_814_880, 7, _convection),
    "nlpkkt160": Model("Schenk", 8_345_600, 225_422_112, 28, _kkt),
    "thermal2": Model("Schmid", 1_228_045, 8_580_313, 11, _triangles),
    "CurlCurl_4": Model("Bodendiek", 2_380_515, 26_515_867, 13, _curl_curl),
    "Bump_2911": Model(
        "Janna", 2_911_419, 127_729_899, 195, partial(_tetrahedra, unknowns=3, heavy=1e-3)
    ),
    "Cube_Coup_dt0": Model(
        "Janna", 2_164_760, 124_406_070, 68, partial(_tetrahedra, unknowns=4, heavy=0.0)
    ),
    "StocF-1465": Model(
        "Janna", 1_465_137, 21_005_389, 189, partial(_tetrahedra, unknowns=1, heavy=1e-3)
    ),
    "circuit5M": Model(
        "Freescale", 5_558_326, 59_524_291, 1_290_501, partial(_circuit, dense=12, reach=50)
    ),
    "FullChip": Model(
        "Freescale", 2_987_012, 26_621_983, 2_312_481, partial(_circuit, dense=8, reach=50)
    ),
}
