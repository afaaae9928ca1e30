"""The coarsest level: a dense inverse, or any solver."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.errors import InvalidArgument, InvalidMatrix
from ....core.formats import Dense, Matrix
from ....core.linop import LinOp
from ....core.settings import Settings

#: Rows of a coarsest level that is inverted as a dense matrix: the inverse of 4096 rows has 16 M
#: values and takes seconds.
LARGEST_DENSE = 4096


def coarsest_solver(A: Matrix, asked: Any) -> LinOp:
    """Return the operator that solves on the coarsest level.

    Parameters
    ----------
    A : Matrix
        Of the coarsest level.
    asked : {"dense"} or Settings or callable
        What ``coarsest=`` says: the dense inverse, settings of a solver or a preconditioner, or a
        function of ``A`` that makes one.
    """
    if asked == "dense":
        return dense_inverse(A)
    if isinstance(asked, Settings):
        made = asked.on(A)
    elif callable(asked) and not isinstance(asked, LinOp):
        made = asked(A)
    else:
        made = asked
    if not isinstance(made, LinOp) or made.shape != A.shape:
        raise InvalidArgument(
            'coarsest: expected "dense", settings such as Direct(), or a function of the '
            f"{A.shape[0]}x{A.shape[0]} matrix that makes a solver; got {asked!r}"
        )
    return made


def dense_inverse(A: Matrix) -> Dense:
    """Return the inverse of a small matrix, or its pseudo-inverse if it has none.

    The host computes it, in double precision: executors get the same inverse bit for bit.

    Raises
    ------
    InvalidArgument
        If the matrix is too large.
    InvalidMatrix
        If it has values that are not finite.
    """
    n = A.shape[0]
    if n > LARGEST_DENSE:
        raise InvalidArgument(
            f"the coarsest level has {n} rows, and a dense inverse at most {LARGEST_DENSE}: add "
            "levels, or choose a solver for it, such as coarsest=wl.solvers.Direct()"
        )
    host = A.asformat("csr").to_scipy().toarray()
    inverse = inverted(host)
    return Dense._from_arrays(
        A.executor, A.shape, A.executor.from_host(np.ascontiguousarray(inverse.astype(A.dtype)))
    )


def inverted(S: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the inverse of a matrix scaled to a diagonal of 1, or its pseudo-inverse, unscaled.

    A matrix whose condition number is beyond its dtype is singular: that of a problem with
    Neumann's conditions, for instance.
    """
    if S.shape[0] == 0:
        return S
    if not np.all(np.isfinite(S)):
        raise InvalidMatrix("the coarsest level has NaN or Inf")
    eps = np.finfo(S.dtype).eps
    wide = S.astype(np.complex128 if S.dtype.kind == "c" else np.float64)
    d = np.abs(np.diagonal(wide))
    scale = 1.0 / np.sqrt(np.where(d > 0, d, 1.0))
    scaled = scale[:, None] * wide * scale
    limit = 10 * S.shape[0] * float(eps)
    try:
        inverse = np.linalg.inv(scaled)
        size = np.abs(scaled).sum(axis=1).max() * np.abs(inverse).sum(axis=1).max()
        fit = np.isfinite(size) and size * limit < 1
    except np.linalg.LinAlgError:
        fit = False
    if not fit:
        inverse = np.linalg.pinv(scaled, rcond=limit, hermitian=bool(_is_hermitian(scaled, eps)))
    return np.asarray(scale[:, None] * inverse * scale)


def _is_hermitian(S: np.ndarray[Any, Any], eps: float) -> Any:
    return np.abs(S - S.conj().T).max() <= 64 * eps * np.abs(S).max()
