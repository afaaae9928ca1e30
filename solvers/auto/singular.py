"""Signs that a square matrix is singular: zero or parallel rows and columns, and sums of zero.

Each sign is exact up to rounding. They are looked for after a method has converged that does not
find the shortest solution by itself, so that they cost a few products.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ...core.dtypes import real_dtype
from ...core.formats import Csr, Matrix
from .facts import SUM_SLACK
from .kept import kept_with

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[Any]

#: Rows of a matrix up to which it is looked at, and up to which rows are compared.
MOST_ROWS, MOST_COMPARED = 50_000, 5_000

#: Pairs of rows with nearly the same product that are compared, and units of rounding of products.
PAIRS, NEARLY = 32, 64.0


def why_singular(A: Matrix) -> str | None:
    """Return why a square matrix is singular, None if nothing says so; found once for its values.

    Parameters
    ----------
    A : matrix, shape (n, n)
        One of more than :data:`MOST_ROWS` rows is not looked at.
    """
    kept = kept_with(A)
    if kept.singular is None:
        looked_at = A.partition is None and 0 < A.shape[0] <= MOST_ROWS and A.dtype.kind in "fc"
        kept.singular = (_sign_of(kept.twin) or "") if looked_at else ""
    return kept.singular or None


def _sign_of(A: Matrix) -> str | None:
    n = A.shape[0]
    if A.nnz == 0:
        return "A is zero"
    probes = _probes(n, A.dtype)
    adjoint = cast(Matrix, A.H)
    for operator, one, many, total in (
        (A, "row", "rows", "A maps constants to zero"),
        (adjoint, "column", "columns", "the rows of A add up to zero"),
    ):
        image = A.executor.zeros((n, 3), A.dtype)
        operator._apply(A.executor.from_host(probes), image, 1.0, 0.0)
        found = np.asarray(A.executor.to_host(image))
        if np.any(~found[:, 1:].any(axis=1)):
            return f"A has a {one} of zeros"
        if float(np.abs(found[:, 0]).max()) <= _slack(A):
            return total
        if n <= MOST_COMPARED and _has_parallel(operator, found[:, 1:]):
            return f"A has parallel {many}"
    return None


def _probes(n: int, dtype: Any) -> Numbers:
    """Return constants, and two columns of numbers without a pattern."""
    rng = np.random.default_rng(n)
    probes = np.ones((n, 3), dtype)
    probes[:, 1:] = rng.uniform(0.5, 1.5, (n, 2))
    return probes


def _slack(A: Matrix) -> float:
    """Return the size up to which a sum of a row counts as zero."""
    rows: Csr = A.asformat("csr")
    data = np.asarray(A.executor.to_host(rows.data))
    eps = float(np.finfo(real_dtype(A.dtype)).eps)
    return SUM_SLACK * eps * max(A.nnz / A.shape[0], 1.0) * float(np.abs(data).max())


def _has_parallel(operator: Matrix, products: Numbers) -> bool:
    """Return whether two rows of an operator are multiples of each other.

    The quotients of their products with two vectors are equal then.
    """
    with np.errstate(all="ignore"):
        quotient = products[:, 0] / products[:, 1]
    order = np.lexsort((quotient.imag, quotient.real))
    sorted_ = quotient[order]
    eps = float(np.finfo(real_dtype(operator.dtype)).eps)
    with np.errstate(all="ignore"):
        near = np.abs(np.diff(sorted_)) <= NEARLY * eps * np.abs(sorted_[1:])
    places = np.flatnonzero(near)[:PAIRS]
    if not places.size:
        return False
    rows: Csr = operator.asformat("csr").without_duplicates()
    read = operator.executor.to_host_together(rows.indptr, rows.indices, rows.data)
    indptr, indices, data = (np.asarray(a) for a in read)

    def row(i: int) -> tuple[Numbers, Numbers]:
        part = slice(int(indptr[i]), int(indptr[i + 1]))
        kept = data[part] != 0
        return indices[part][kept], data[part][kept]

    for place in places:
        (columns, a), (others, b) = row(int(order[place])), row(int(order[place + 1]))
        if not np.array_equal(columns, others):
            continue
        largest = int(np.argmax(np.abs(a)))
        if np.all(np.abs(a * b[largest] - b * a[largest]) <= 8 * eps * np.abs(a * b[largest])):
            return True
    return False
