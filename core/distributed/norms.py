"""Norms of distributed matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import real_dtype
from ..errors import InvalidArgument, UnsupportedOperation
from ..formats.norms import norm as local_norm

if TYPE_CHECKING:
    from .matrix import Csr


def norm(A: Csr, ord: Any, axis: int | None) -> Any:
    """Return a norm of a whole matrix from the rows of the members; collective.

    Row and column sums are bitwise equal to the sums on one executor. The Frobenius norm is the
    norm of the members' norms.
    """
    if axis is not None:
        raise UnsupportedOperation(
            "norm: a group has norms of whole matrices, not of each row or column; take "
            "scipy.sparse.linalg.norm(A.to_local(), axis=...)"
        )
    if 0 in A.shape and ord not in (None, "fro", "f"):
        raise InvalidArgument(f"norm: a matrix of shape {A.shape} has no norm of order {ord}")
    if ord in (1, -1):
        return norm(A.T, np.inf * ord, None)
    links: Any = A.executor.links
    real = real_dtype(A.dtype)
    if ord in (np.inf, -np.inf):
        none = 0.0 if ord > 0 else np.inf
        found = links.all(float(local_norm(A.extended, ord)) if A.local_rows else none)
        return real.type(max(found) if ord > 0 else min(found))
    return real.type(math.hypot(*links.all(float(local_norm(A.extended)))))
