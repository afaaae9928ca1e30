"""Diffusion with a variable coefficient on n x n x n cells: layers, boxes, stretched cells."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

Coefficients = np.ndarray[tuple[int, int, int], np.dtype[np.float64]]


def diffusion(along: tuple[Coefficients, Coefficients, Coefficients]) -> sp.csr_array:
    """Return finite volumes on n^3 cells with zero around them.

    ``along`` are the coefficients of the cells for each direction; a face has the harmonic mean of
    its two cells, a face of the boundary twice the coefficient of its cell.
    """
    shape = along[0].shape
    cells = np.arange(along[0].size).reshape(shape)
    diagonal = np.zeros(shape)
    ends: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for axis, coefficient in enumerate(along):
        k, number = np.moveaxis(coefficient, axis, 0), np.moveaxis(cells, axis, 0)
        total = np.moveaxis(diagonal, axis, 0)  # a view: sums land in the diagonal
        face = 2 * k[1:] * k[:-1] / (k[1:] + k[:-1])
        total[1:] += face
        total[:-1] += face
        total[0] += 2 * k[0]
        total[-1] += 2 * k[-1]
        ends.append((number[1:].ravel(), number[:-1].ravel(), -face.ravel()))
    rows, columns, values = (np.concatenate(part) for part in zip(*ends, strict=True))
    lower = sp.coo_array((values, (rows, columns)), (cells.size, cells.size))
    return sp.csr_array(lower + lower.T + sp.diags_array(diagonal.ravel()))


def layers(n: int, contrast: float, seed: int = 0) -> sp.csr_array:
    """Return cells with coefficients drawn from 1 to ``contrast``, evenly in the logarithm."""
    k = contrast ** np.random.default_rng(seed).random((n, n, n))
    return diffusion((k, k, k))


def with_boxes(n: int, contrast: float, seed: int = 0, count: int = 60) -> sp.csr_array:
    """Return boxes of ``contrast`` or its inverse root in cells of coefficient 1."""
    rng = np.random.default_rng(seed)
    k = np.ones((n, n, n))
    for _ in range(count):
        corner, size = rng.integers(0, n, 3), rng.integers(2, n // 4, 3)
        inside = tuple(slice(a, a + s) for a, s in zip(corner, size, strict=True))
        k[inside] = contrast if rng.random() < 0.5 else contrast**-0.5
    return diffusion((k, k, k))


def stretched(n: int, ratio: float) -> sp.csr_array:
    """Return cells with a coefficient in the third direction that is ``ratio`` of the others."""
    one = np.ones((n, n, n))
    return diffusion((one, one, one * ratio))
