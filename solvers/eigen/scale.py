"""How large operators are, which says how small a residual can be."""

from __future__ import annotations

import numpy as np

from ...core.formats import Matrix
from ...core.formats.norms import norm
from ...core.linop import LinOp

#: Residuals of pairs that are right to rounding, in units of the precision and the norm of A.
ROUNDING = 256.0


def size_of(A: LinOp | None) -> float:
    """Return a norm of a Hermitian operator: the largest sum of a row, or 0 if it is not known."""
    if A is None:
        return 1.0
    return float(norm(A, np.inf)) if isinstance(A, Matrix) and A.shape[0] else 0.0
