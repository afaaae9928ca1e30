"""How large operators are, which says how small a residual can be."""

from __future__ import annotations

import numpy as np

from ...core.formats import Matrix
from ...core.formats.norms import norm
from ...core.linop import LinOp

#: Residuals of pairs that are right to rounding, in units of the precision and the norm of A.
ROUNDING = 256.0

#: A matrix is singular but for rounding if its inverse makes random vectors longer than that of a
#: matrix whose smallest eigenvalue is this many times its rounding.
NEARLY_SINGULAR = 4.0


def size_of(A: LinOp | None) -> float:
    """Return a norm of a Hermitian operator: the largest sum of a row, or 0 if it is not known."""
    if A is None:
        return 1.0
    return float(norm(A, np.inf)) if isinstance(A, Matrix) and A.shape[0] else 0.0


def is_rounding(inverse: LinOp, size: float) -> bool:
    """Return whether an inverse is that of a singular matrix of a size, but for rounding."""
    n, executor = inverse.shape[0], inverse.executor
    if not n:
        return False
    random = np.random.default_rng(0).standard_normal((n, 1)).astype(inverse.dtype)
    y = executor.zeros((n, 1), inverse.dtype)
    inverse._apply(executor.from_host(random), y, 1.0, 0.0)
    grown = float(np.linalg.norm(executor.to_host(y))) / n**0.5
    eps = float(np.finfo(inverse.dtype).eps)
    return not grown * size * NEARLY_SINGULAR * eps <= 1.0
