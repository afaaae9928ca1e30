"""Seeded systems of many classes, for which ``wl.solve`` chooses a solver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

Csr = sp.csr_array
Rng = np.random.Generator


@dataclass(frozen=True)
class System:
    """A system with its class: ``A x = b`` to a relative residual of ``rtol``."""

    kind: str
    name: str
    A: Csr
    b: np.ndarray[Any, Any]
    rtol: float


def line(n: int) -> Any:
    """Return the second difference on n points."""
    return sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))


def plane(n: int, across: float = 1.0) -> Csr:
    """Return the 5-point stencil, weaker in one direction."""
    return sp.csr_array(sp.kronsum(line(n), across * line(n)))


def space(n: int) -> Csr:
    """Return the 7-point stencil."""
    return sp.csr_array(sp.kronsum(sp.kronsum(line(n), line(n)), line(n)))


def _grid_edges(n: int) -> np.ndarray[Any, Any]:
    index = np.arange(n * n).reshape(n, n)
    right = np.stack([index[:, :-1].ravel(), index[:, 1:].ravel()])
    down = np.stack([index[:-1].ravel(), index[1:].ravel()])
    return np.concatenate([right, down], axis=1)


def weighted(edges: np.ndarray[Any, Any], weights: Any, n: int) -> Csr:
    """Return the Laplacian of a weighted graph."""
    half = sp.coo_array((weights, (edges[0], edges[1])), shape=(n, n))
    both = sp.csr_array(half + half.T)
    return sp.csr_array(sp.diags_array(both.sum(axis=1)) - both)


def poisson(rng: Rng, n: int) -> Csr:
    """Return a Poisson equation in the plane of about n unknowns."""
    return plane(round(n**0.5))


def poisson_in_space(rng: Rng, n: int) -> Csr:
    """Return a Poisson equation in space."""
    return space(round(n ** (1 / 3)))


def jumps(rng: Rng, n: int) -> Csr:
    """Return diffusion with coefficients between 1e-3 and 1e3 in random cells."""
    m = round(n**0.5)
    cells = 10.0 ** rng.uniform(-3, 3, (m // 8 + 1, m // 8 + 1))
    field = np.kron(cells, np.ones((8, 8)))[:m, :m].ravel()
    edges = _grid_edges(m)
    weights = 2 / (1 / field[edges[0]] + 1 / field[edges[1]])
    boundary = np.zeros(m * m)
    boundary[:m] = field[:m]
    return sp.csr_array(weighted(edges, weights, m * m) + sp.diags_array(boundary))


def anisotropy(rng: Rng, n: int) -> Csr:
    """Return diffusion that is weaker in one direction."""
    return plane(round(n**0.5), 10.0 ** rng.uniform(-4, -2))


def elasticity(rng: Rng, n: int) -> Csr:
    """Return plane strain by bilinear elements on a beam that is fixed at one end."""
    height = max(round((n / 8) ** 0.5), 2)
    length = max(n // (2 * height), 4)
    element = _element(0.3)
    i, j = np.meshgrid(np.arange(length), np.arange(height), indexing="ij")
    first = (i * (height + 1) + j).ravel()
    nodes = np.stack([first, first + height + 1, first + height + 2, first + 1], axis=1)
    unknowns = np.stack([2 * nodes, 2 * nodes + 1], axis=2).reshape(-1, 8)
    size = 2 * (length + 1) * (height + 1)
    rows, columns = np.repeat(unknowns, 8, axis=1).ravel(), np.tile(unknowns, (1, 8)).ravel()
    values = np.tile(element.ravel(), length * height)
    A = sp.csr_array(sp.coo_array((values, (rows, columns)), shape=(size, size)))
    free = A[2 * (height + 1) :][:, 2 * (height + 1) :]
    return sp.csr_array((free + free.T) / 2)


def _element(poisson_ratio: float) -> np.ndarray[Any, Any]:
    """Return the stiffness of a square bilinear element in plane strain."""
    nu = poisson_ratio
    lame, shear = nu / ((1 + nu) * (1 - 2 * nu)), 0.5 / (1 + nu)
    D = np.diag([lame + 2 * shear, lame + 2 * shear, shear])
    D[0, 1] = D[1, 0] = lame
    K = np.zeros((8, 8))
    corner_x, corner_y = np.array([-1, 1, 1, -1]), np.array([-1, -1, 1, 1])
    for x in (-(3**-0.5), 3**-0.5):
        for y in (-(3**-0.5), 3**-0.5):
            dx, dy = corner_x * (1 + y * corner_y) / 2, corner_y * (1 + x * corner_x) / 2
            B = np.zeros((3, 8))
            B[0, 0::2], B[1, 1::2], B[2, 0::2], B[2, 1::2] = dx, dy, dy, dx
            K += B.T @ D @ B / 4
    return K


def helmholtz(rng: Rng, n: int) -> Csr:
    """Return a Helmholtz equation with about 20 points a wave length."""
    m = round(n**0.5)
    shift = (2 * np.pi / rng.uniform(15, 30)) ** 2
    return sp.csr_array(plane(m) - shift * sp.eye_array(m * m))


def convection(rng: Rng, n: int) -> Csr:
    """Return convection and diffusion in the plane, upwind."""
    m = round(n**0.5)
    made: list[Any] = [
        sp.diags_array([-1.0 - c, 2.0 + c, -1.0], offsets=[-1, 0, 1], shape=(m, m))
        for c in 10.0 ** rng.uniform(-2, 0.5, 2)
    ]
    return sp.csr_array(sp.kronsum(*made))


def saddle(rng: Rng, n: int) -> Csr:
    """Return diffusion with constraints: a symmetric matrix with a block of zeros."""
    A = poisson(rng, 3 * n // 4)
    rows, constraints = A.shape[0], max(n // 4, 2)
    B: Any = sp.random_array((constraints, rows), density=3 / rows, rng=rng)
    B = sp.csr_array(B + sp.eye_array(constraints, rows))
    return sp.csr_array(sp.block_array([[A, B.T], [B, None]]))


def circuit(rng: Rng, n: int) -> Csr:
    """Return a network of resistors with a few nodes of many neighbours and controlled sources."""
    parent = np.array([rng.integers(max(i - 50, 0), i) for i in range(1, n)])
    edges = np.stack([np.arange(1, n), parent])
    more = rng.integers(0, n, (2, n // 10))
    hubs = np.stack([rng.integers(0, n, n // 20), rng.integers(0, 5, n // 20)])
    edges = np.concatenate([edges, more, hubs], axis=1)
    edges = edges[:, edges[0] != edges[1]]
    L = weighted(edges, 10.0 ** rng.uniform(-3, 1, edges.shape[1]), n)
    control = sp.coo_array(
        (0.1 * rng.standard_normal(n // 50), rng.integers(0, n, (2, n // 50))), shape=(n, n)
    )
    return sp.csr_array(L + 1e-4 * sp.eye_array(n) + control)


def graph(rng: Rng, n: int) -> Csr:
    """Return the shifted Laplacian of a random graph with some nodes of many neighbours."""
    edges = np.stack([rng.integers(0, n, 4 * n), (n * rng.random(4 * n) ** 3).astype(np.int64)])
    edges = edges[:, edges[0] != edges[1]]
    L = weighted(edges, np.ones(edges.shape[1]), n)
    return sp.csr_array(L + 0.01 * sp.eye_array(n))


def markov(rng: Rng, n: int) -> Csr:
    """Return I - 0.95 P for a random walk, as in PageRank."""
    links = sp.coo_array((np.ones(6 * n), rng.integers(0, n, (2, 6 * n))), shape=(n, n)).tocsr()
    links = sp.csr_array(links + sp.eye_array(n))
    P = links.T @ sp.diags_array(1 / links.sum(axis=1))
    return sp.csr_array(sp.eye_array(n) - 0.95 * P)


def optimal(rng: Rng, n: int) -> Csr:
    """Return a KKT matrix of an interior point method, with a diagonal over many magnitudes."""
    rows = 2 * n // 3
    H = sp.diags_array(10.0 ** rng.uniform(-4, 4, rows))
    J: Any = sp.random_array((n - rows, rows), density=4 / rows, rng=rng)
    J = sp.csr_array(J + sp.eye_array(n - rows, rows))
    return sp.csr_array(sp.block_array([[H, J.T], [J, None]]))


def walker(rng: Rng, n: int) -> Csr:
    """Return the matrix of a random walker on a noisy image with some labelled points."""
    m = round(n**0.5)
    image = np.zeros((m, m))
    image[m // 4 : m // 2, m // 4 : 3 * m // 4] = 1.0
    image = (image + 0.3 * rng.standard_normal((m, m))).ravel()
    edges = _grid_edges(m)
    steps = (image[edges[0]] - image[edges[1]]) ** 2
    L = weighted(edges, np.exp(-9 * steps / image.std()) + 1e-6, m * m)
    free = np.setdiff1d(np.arange(m * m), rng.choice(m * m, 20, replace=False))
    return sp.csr_array(L[free][:, free])


def power_flow(rng: Rng, n: int) -> Csr:
    """Return a Jacobian like that of a power flow: two unknowns a bus, a sparse network."""
    buses = n // 2
    parent = np.array([rng.integers(max(i - 20, 0), i) for i in range(1, buses)])
    edges = np.concatenate(
        [np.stack([np.arange(1, buses), parent]), rng.integers(0, buses, (2, buses // 3))], axis=1
    )
    edges = edges[:, edges[0] != edges[1]]
    ground = sp.diags_array(0.05 * rng.random(buses))
    B = weighted(edges, rng.uniform(1, 10, edges.shape[1]), buses) + ground
    G = weighted(edges, rng.uniform(0.1, 1, edges.shape[1]), buses) + ground
    turn = sp.diags_array(1 + 0.05 * rng.standard_normal(buses))
    return sp.csr_array(sp.block_array([[turn @ B, G], [-1 * G, B @ turn]]))


#: The classes with their generators and sizes; sizes of costly classes end earlier.
CLASSES: dict[str, tuple[Callable[[Rng, int], Csr], tuple[int, ...]]] = {
    "Poisson, plane": (poisson, (100, 2500, 40_000, 250_000)),
    "Poisson, space": (poisson_in_space, (125, 8000, 64_000, 250_000)),
    "coefficient jumps": (jumps, (2500, 40_000, 160_000)),
    "anisotropy": (anisotropy, (2500, 40_000, 160_000)),
    "elasticity": (elasticity, (500, 8000, 40_000)),
    "Helmholtz": (helmholtz, (900, 10_000, 40_000)),
    "convection": (convection, (900, 10_000, 90_000)),
    "saddle points": (saddle, (400, 4000, 16_000)),
    "circuits": (circuit, (500, 5000, 50_000)),
    "graph Laplacians": (graph, (500, 5000, 50_000)),
    "Markov chains": (markov, (500, 10_000, 100_000)),
    "KKT": (optimal, (300, 3000, 15_000)),
    "random walkers": (walker, (2500, 40_000, 160_000)),
    "power flow": (power_flow, (400, 4000, 40_000)),
}


def systems(seed: int, scale: int = 1) -> Iterator[System]:
    """Yield systems of all classes; sizes are divided by ``scale``."""
    for place, (kind, (make, sizes)) in enumerate(CLASSES.items()):
        for size in sizes:
            rng = np.random.default_rng((seed, place, size))
            A = make(rng, max(size // scale, 60))
            b = rng.standard_normal(A.shape[0])
            yield System(kind, f"{kind}, {A.shape[0]}", A, b, 1e-8)
