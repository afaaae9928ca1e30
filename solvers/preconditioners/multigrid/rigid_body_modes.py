"""Rigid body modes: the near null space of linear elasticity."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import real_dtype
from ....core.errors import InvalidArgument


def rigid_body_modes(coordinates: Any) -> np.ndarray[Any, Any]:
    """Return the rigid body modes of points: translations and rotations.

    They are the near null space of the equations of elasticity, for :class:`Amg`.

    Parameters
    ----------
    coordinates : array, shape (nodes, d)
        Positions of the nodes, in two or three dimensions.

    Returns
    -------
    array, shape (d * nodes, 3) or (d * nodes, 6)
        The modes; unknowns of a node are adjacent. Rotations are about the centroid of the points.
        Points on a line have one rotation less in three dimensions, since the rotation about that
        line moves no point; a single point has none.

    Raises
    ------
    InvalidArgument
        If the coordinates do not belong to points in two or three dimensions, or are not finite.

    Examples
    --------
    >>> import wollemi as wl
    >>> wl.rigid_body_modes([[0.0, 0.0], [2.0, 0.0]])
    array([[ 1.,  0.,  0.],
           [ 0.,  1., -1.],
           [ 1.,  0.,  0.],
           [ 0.,  1.,  1.]])
    """
    points = np.asarray(coordinates)
    if points.ndim != 2 or points.shape[1] not in (2, 3) or points.dtype.kind not in "fiu":
        raise InvalidArgument(
            f"coordinates: expected an array of shape (nodes, 2) or (nodes, 3), got shape "
            f"{points.shape} of {points.dtype}"
        )
    dtype = points.dtype if points.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    points = points.astype(dtype)
    if not np.all(np.isfinite(points)):
        raise InvalidArgument("coordinates: expected finite numbers, got NaN or Inf")
    nodes, d = points.shape
    if nodes:
        points = points - points.mean(axis=0)
    modes = np.zeros((nodes, d, d * (d + 1) // 2), real_dtype(dtype))
    modes[:, range(d), range(d)] = 1
    planes = [(0, 1)] if d == 2 else [(0, 1), (1, 2), (2, 0)]
    for number, (a, b) in enumerate(planes, start=d):
        modes[:, a, number] = 0 - points[:, b]
        modes[:, b, number] = points[:, a]
    columns = modes.reshape(nodes * d, modes.shape[2])
    return np.hstack([columns[:, :d], _independent(columns[:, d:])])


def _independent(rotations: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the rotations, or combinations of them without the ones that move no point."""
    if not len(rotations):
        return rotations
    _, sizes, directions = np.linalg.svd(np.linalg.qr(rotations, mode="r"))
    least = len(rotations) * np.finfo(rotations.dtype).eps * sizes.max(initial=0.0)
    moving = sizes > least
    return rotations if moving.all() else rotations @ directions[moving].T
