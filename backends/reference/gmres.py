"""The steps of the restarted generalized minimal residual method (GMRES), column by column.

Saad and Schultz, "GMRES: a generalized minimal residual algorithm for solving nonsymmetric linear
systems", SIAM J. Sci. Stat. Comput. 7 (1986), with classical Gram-Schmidt, which is repeated if it
lost digits, and the rotations of section 3.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.executor import Array, Executor
from ...core.operations import gmres as operations
from ...core.status import Status
from ...core.step.events import observe, running
from .sums import dots, squares
from .table import kernel


def keep(basis: Array, i: int, on: Array, v: Array) -> None:
    """Store columns of ``v`` as the ``i``-th vector; ``v`` becomes the stored values.

    Like the kernels, round 64-bit numbers to 32 bits before rounding to 16 bits.
    """
    if basis.dtype == v.dtype:
        basis[i][:, on] = v[:, on]
        return
    scaled = v[:, on] * v.dtype.type(operations.unit_of(basis.dtype.name))
    if basis.itemsize == 2:
        scaled = scaled.astype(np.float32)
    basis[i][:, on] = scaled.astype(basis.dtype)
    v[:, on] = stored(basis, i, v.dtype)[:, on]


def stored(basis: Array, i: int, dtype: np.dtype[Any]) -> Array:
    """Return the ``i``-th vector of a basis in the dtype of computation."""
    if basis.dtype == dtype:
        return basis[i]
    return basis[i].astype(dtype) / dtype.type(operations.unit_of(basis.dtype.name))


@kernel(operations.start)
def start(
    executor: Executor,
    r: Array,
    v: Array,
    basis: Array,
    g: Array,
    count: Array,
    step: Array,
    status: Status,
) -> None:
    """Set v = basis_0 = r / |r| (0 where not running), g = (|r|, 0, ...), count = 0, step = 0."""
    on = running(status)
    v[...] = 0
    v[:, on] = r[:, on] / status.norm[on]
    keep(basis, 0, np.arange(v.shape[1]), v)
    g[...] = 0
    g[0] = status.norm
    count[:] = 0
    step[0] = 0


@kernel(operations.project)
def project(
    executor: Executor,
    basis: Array,
    w: Array,
    h: Array,
    before: Array,
    step: Array,
    status: Status,
) -> None:
    """Set h_i = <basis_i, w> for i <= j; before = |w|."""
    on = running(status)
    before[on] = np.sqrt(squares(w[:, on]))
    for i in range(step[0] + 1):
        h[i, on] = dots(stored(basis, i, w.dtype)[:, on], w[:, on])


@kernel(operations.subtract)
def subtract(
    executor: Executor,
    basis: Array,
    w: Array,
    h: Array,
    after: Array,
    step: Array,
    status: Status,
) -> None:
    """Set w -= sum_i h_i basis_i for i <= j; after = |w|."""
    on = running(status)
    for i in range(step[0] + 1):
        w[:, on] -= h[i, on] * stored(basis, i, w.dtype)[:, on]
    after[on] = np.sqrt(squares(w[:, on]))


@kernel(operations.reproject)
def reproject(
    executor: Executor,
    basis: Array,
    w: Array,
    correction: Array,
    before: Array,
    after: Array,
    step: Array,
    status: Status,
) -> None:
    """Set correction_i = <basis_i, w> for i <= j where after < 0.1 before."""
    on = lost_digits(status, before, after)
    for i in range(step[0] + 1):
        correction[i, on] = dots(stored(basis, i, w.dtype)[:, on], w[:, on])


@kernel(operations.resubtract)
def resubtract(
    executor: Executor,
    basis: Array,
    w: Array,
    h: Array,
    correction: Array,
    before: Array,
    after: Array,
    step: Array,
    status: Status,
) -> None:
    """Where after < 0.1 before: w -= sum correction_i basis_i, h += correction, after = |w|."""
    on = lost_digits(status, before, after)
    for i in range(step[0] + 1):
        w[:, on] -= correction[i, on] * stored(basis, i, w.dtype)[:, on]
        h[i, on] += correction[i, on]
    after[on] = np.sqrt(squares(w[:, on]))


def lost_digits(status: Status, before: Array, after: Array) -> Array:
    """Return the running columns that need a second orthogonalization."""
    return np.flatnonzero(
        operations.LOSES_DIGITS({"status": status, "before": before, "after": after})
    )


def rotation(a: complex, b: float) -> tuple[float, complex]:
    """Return the real cosine and the sine that turn ``(a, b)``, b >= 0, into ``(something, 0)``."""
    if b == 0:
        return 1.0, 0.0
    if a == 0:
        return 0.0, 1.0
    length = np.hypot(abs(a), b)
    return abs(a) / length, (a / abs(a)) * (b / length)


def rotated(pair: Array, cosine: float, sine: complex) -> tuple[complex, complex]:
    """Apply a rotation to a pair of numbers."""
    above, below = pair
    return cosine * above + sine * below, cosine * below - np.conj(sine) * above


@kernel(operations.rotate)
def rotate(
    executor: Executor,
    h: Array,
    after: Array,
    before: Array,
    hessenberg: Array,
    cosine: Array,
    sine: Array,
    g: Array,
    count: Array,
    step: Array,
    status: Status,
) -> None:
    """Apply the earlier rotations to (h, after), compute the j-th one, and apply it to g."""
    on = running(status)
    j = step[0]
    after[on[after[on] <= np.finfo(after.dtype).eps * before[on]]] = 0
    for c in on:
        column = np.append(h[: j + 1, c], after[c])
        for i in range(j):
            column[i : i + 2] = rotated(column[i : i + 2], cosine[i, c], sine[i, c])
        cosine[j, c], sine[j, c] = rotation(column[j], after[c])
        column[j : j + 2] = rotated(column[j : j + 2], cosine[j, c], sine[j, c])
        hessenberg[: j + 1, j, c] = column[: j + 1]
        g[j : j + 2, c] = rotated(g[j : j + 2, c], cosine[j, c], sine[j, c])
    count[on] = j + 1
    observe(status, on, np.abs(g[j + 1, on]))


@kernel(operations.append)
def append(
    executor: Executor,
    w: Array,
    after: Array,
    v: Array,
    basis: Array,
    step: Array,
    status: Status,
) -> None:
    """Set v = basis_(j+1) = w / after (0 where after is 0); step = j + 1."""
    on = running(status)
    v[:, on] = np.where(after[on] == 0, 0, w[:, on] / after[on])
    keep(basis, step[0] + 1, on, v)
    step[0] += 1


@kernel(operations.augment)
def augment(
    executor: Executor,
    z: Array,
    extra: Array,
    size: Array,
    first: int,
    basis: Array,
    step: Array,
    status: Status,
) -> None:
    """Set z = extra_(j-first) / size_(j-first) where there is one; basis_j = z."""
    on, j = running(status), step[0]
    if j >= first:
        taken = on[size[j - first, on] != 0]
        z[:, taken] = extra[j - first][:, taken] / size[j - first, taken]
    basis[j][:, on] = z[:, on]


def triangle(R: Array, g: Array, rows: int) -> tuple[Array, float, float]:
    """Return the solution of the leading ``rows`` rows of ``R y = g``, and its expected residual.

    The expected residual is the norm of the residual of ``g`` and of the rounding in ``R y``. An
    unknown without a pivot is set to 0, and its row is ignored.
    """
    y = np.zeros(rows, g.dtype)
    left, sizes = (np.abs(g[rows:]) ** 2).sum(), 0.0
    for i in reversed(range(rows)):
        rest = g[i] - (R[i, i + 1 : rows] * y[i + 1 :]).sum()
        if R[i, i] == 0:
            left += abs(rest) ** 2
        else:
            y[i] = rest / R[i, i]
        sizes += (np.abs(R[i, i:rows]) * np.abs(y[i:])).sum() ** 2
    return y, float(np.sqrt(left)), float(np.finfo(y.dtype).eps * np.sqrt(sizes))


@kernel(operations.solve)
def solve(executor: Executor, hessenberg: Array, g: Array, count: Array, y: Array) -> None:
    """Set y = the solution of the leading count rows, or of fewer with a smaller residual.

    For singular and inconsistent systems the triangle becomes singular as well (Brown and Walker,
    GMRES on (nearly) singular systems, SIAM J. Matrix Anal. Appl. 18, 1997). The unknowns grow, and
    so does the rounding of ``A`` times them. Random singular systems of 3 to 60 unknowns ended with
    up to 276 times the least-squares residual; with this choice they end with up to 8 times, half
    of them with 1.00.
    """
    y[...] = 0
    for c, most in enumerate(count):
        fewer, least = 0, np.inf
        while True:
            rows = max(most - fewer, 0)
            found, left, rounding = triangle(hessenberg[:, :, c], g[: most + 1, c], rows)
            better = left + rounding < least
            if better:
                y[:rows, c], y[rows:, c] = found, 0
                least = left + rounding
            if rows == 0 or (fewer == 0 and rounding <= left) or (not better and fewer >= 2):
                break
            fewer = 2 * fewer or 1


@kernel(operations.combine)
def combine(executor: Executor, basis: Array, y: Array, count: Array, u: Array) -> None:
    """Set u = sum_i y_i basis_i for i < count."""
    u[...] = 0
    for i in range(basis.shape[0]):
        on = np.flatnonzero(i < count)
        u[:, on] += y[i, on] * stored(basis, i, u.dtype)[:, on]
