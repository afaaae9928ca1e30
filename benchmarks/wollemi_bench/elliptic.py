"""Elliptic systems, symmetric and not, that multigrid and other preconditioners are measured on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

import wollemi as wl

from .cases import case


class Problem(NamedTuple):
    """A matrix with 32-bit indices, and where its nodes are if they have several unknowns."""

    matrix: sp.csr_array
    points: np.ndarray | None = None

    @property
    def modes(self) -> np.ndarray | None:
        """The rigid body modes of an elastic body."""
        return None if self.points is None else wl.rigid_body_modes(self.points)


def _grid(n: int) -> np.ndarray:
    return np.arange(n**3, dtype=np.int32).reshape(n, n, n)


def faces(k: Sequence[np.ndarray]) -> sp.csr_array:
    """Return finite volumes on cells with conductivities by axis, fixed values at the boundary."""
    shape = k[0].shape
    number = _grid(shape[0])
    diagonal, parts = np.zeros(shape), []
    for axis, along in enumerate(k):
        K, N, D = (np.moveaxis(a, axis, 0) for a in (along, number, diagonal))
        t = 2 * K[1:] * K[:-1] / (K[1:] + K[:-1])
        D[1:] += t
        D[:-1] += t
        D[0] += 2 * K[0]
        D[-1] += 2 * K[-1]
        parts.append(
            sp.coo_array((-t.ravel(), (N[1:].ravel(), N[:-1].ravel())), (number.size,) * 2)
        )
    lower = sum(parts[1:], parts[0]).tocsr()
    return sp.csr_array(lower + lower.T + sp.diags_array(diagonal.ravel()))


def cube(n: int, x: float = 1.0, y: float = 1.0, z: float = 1.0) -> sp.csr_array:
    """Return diffusion with one conductivity along each axis."""
    return faces([np.full((n, n, n), float(k)) for k in (x, y, z)])


def layers(n: int, contrast: float) -> sp.csr_array:
    """Return diffusion with a conductivity drawn for each cell, log-uniform."""
    k = contrast ** np.random.default_rng(0).random((n, n, n))
    return faces([k, k, k])


def boxes(n: int, contrast: float) -> sp.csr_array:
    """Return diffusion with sixty boxes that conduct well or badly."""
    rng, k = np.random.default_rng(0), np.ones((n, n, n))
    for _ in range(60):
        a, s = rng.integers(0, n, 3), rng.integers(2, n // 4, 3)
        inside = tuple(slice(first, first + length) for first, length in zip(a, s, strict=True))
        k[inside] = contrast if rng.random() < 0.5 else contrast**-0.5
    return faces([k, k, k])


def rotated(n: int, weak: float) -> sp.csr_array:
    """Return bilinear elements of a diffusion that is weak along a direction of 30 degrees."""
    from pyamg.gallery import diffusion_stencil_2d, stencil_grid

    stencil = diffusion_stencil_2d(epsilon=weak, theta=np.pi / 6, type="FE")
    return sp.csr_array(stencil_grid(stencil, (n, n)).tocsr())


def transported(n: int, peclet: float, recirculating: bool) -> sp.csr_array:
    """Return diffusion and convection on the unit cube by first-order upwind differences.

    The wind blows one way, or in closed loops in each plane.
    """
    h = 1.0 / (n + 1)
    x, y, z = np.meshgrid(*[np.arange(1, n + 1) * h] * 3, indexing="ij")
    one = np.ones_like(x)
    wind = (one, 0.7 * one, 0.3 * one)
    if recirculating:
        wind = (4 * x * (x - 1) * (1 - 2 * y), -4 * y * (y - 1) * (1 - 2 * x), 0 * z)
    number, diagonal = _grid(n), np.full((n, n, n), 6.0)
    rows, columns, values = [number.ravel()], [number.ravel()], [diagonal]
    for axis, along in enumerate(wind):
        w = peclet * h * along
        diagonal += np.abs(w)
        W, N = (np.moveaxis(a, axis, 0) for a in (w, number))
        rows += [N[:-1].ravel(), N[1:].ravel()]
        columns += [N[1:].ravel(), N[:-1].ravel()]
        values += [-1.0 - np.maximum(-W[:-1], 0), -1.0 - np.maximum(W[1:], 0)]
    data = np.concatenate([part.ravel() for part in values])
    places = (np.concatenate(rows), np.concatenate(columns))
    return sp.csr_array(sp.coo_array((data, places), shape=(n**3, n**3)))


def _stiffness(poisson: float) -> np.ndarray:
    """Return the stiffness of a trilinear cube of size 1 and Young's modulus 1, 24 x 24."""
    corners = np.array(list(np.ndindex(2, 2, 2)))
    shear, dilation = 0.5 / (1 + poisson), poisson / ((1 + poisson) * (1 - 2 * poisson))
    made = np.zeros((8, 3, 8, 3))
    for at in 0.5 + (corners - 0.5) / np.sqrt(3):  # Gauss's points, each of weight 1 / 8
        parts = np.where(corners == 1, at, 1 - at)
        slopes = np.where(corners == 1, 1.0, -1.0)
        for axis in range(3):
            slopes[:, axis] *= np.delete(parts, axis, 1).prod(1)
        inner = slopes @ slopes.T
        made += shear * np.einsum("ab,ij->aibj", inner, np.eye(3))
        made += shear * np.einsum("aj,bi->aibj", slopes, slopes)
        made += dilation * np.einsum("ai,bj->aibj", slopes, slopes)
    return made.reshape(24, 24) / 8


def beam(n: int) -> Problem:
    """Return an elastic beam of n x n x 4 n cubes that is held at one end."""
    shape = (4 * n + 1, n + 1, n + 1)
    number = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    first = number[:-1, :-1, :-1].reshape(-1, 1)
    nodes = first + np.array([number[corner] for corner in np.ndindex(2, 2, 2)])
    unknowns = (3 * nodes[:, :, None] + np.arange(3)).reshape(-1, 24)
    data = np.broadcast_to(_stiffness(0.3) / n, (len(nodes), 24, 24))
    places = np.broadcast_arrays(unknowns[:, :, None], unknowns[:, None, :])
    whole = sp.coo_array((data.ravel(), tuple(p.ravel().astype(np.int32) for p in places)))
    points = np.stack(np.unravel_index(number.ravel(), shape), 1) / n
    held = shape[1] * shape[2]
    return Problem(sp.csr_array(whole.tocsr()[3 * held :, 3 * held :]), points[held:])


class System(NamedTuple):
    """The generator of a system, the points of its axis, which a scale divides, and its solver."""

    make: Callable[[int], sp.csr_array | Problem]
    n: int
    solver: str = "Cg"

    def problem(self, scale: int = 1) -> Problem:
        """Return the matrix, with the points of an axis divided."""
        made = self.make(max(self.n // scale, 8))
        return made if isinstance(made, Problem) else Problem(made)


#: Symmetric systems with one unknown a node, by name.
SCALAR = {
    "diffusion 32^3": System(cube, 32),
    "diffusion 64^3": System(cube, 64),
    "diffusion 100^3": System(cube, 100),
    "anisotropic 1e-3, 64^3": System(lambda n: cube(n, z=1e-3), 64),
    "layers 1e6, 64^3": System(lambda n: layers(n, 1e6), 64),
    "boxes 1e6, 64^3": System(lambda n: boxes(n, 1e6), 64),
    "27 points, 64^3": System(lambda n: case(f"stencil27:{n}").matrix(), 64),
    "rotated 1e-3, 400^2": System(lambda n: rotated(n, 1e-3), 400),
}

_BLOWN: dict[str, Callable[[int], sp.csr_array]] = {
    "convection Pe 100, 64^3": lambda n: transported(n, 100.0, recirculating=False),
    "recirculation Pe 1e4, 64^3": lambda n: transported(n, 1e4, recirculating=True),
}

#: All systems.
SYSTEMS = {
    **SCALAR,
    "elastic beam, 24,336 rows": System(beam, 12),
    **{
        f"{name}, {solver}": System(make, 64, solver)
        for name, make in _BLOWN.items()
        for solver in ("Bicgstab", "Fgmres")
    },
}

#: The systems that take minutes and gigabytes.
LARGE = {"diffusion 200^3": System(cube, 200)}
