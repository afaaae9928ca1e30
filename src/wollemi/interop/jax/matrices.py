"""Convert sparse JAX arrays to matrices; attributes identify them, so JAX is not imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import InvalidMatrix
from ...core.executor import Executor
from ...core.formats.base import checked_shape
from ...core.formats.csr import Csr

if TYPE_CHECKING:
    from jax.experimental.sparse import BCOO, BCSR


def matrix_from(arg: BCOO | BCSR, executor: Executor | str | None, copy: bool) -> Csr:
    """Return the entries of a ``BCOO`` or a ``BCSR`` as a Csr matrix with its own memory.

    Duplicate entries are summed. JAX's padding, outside of the shape or after the last row, is
    dropped. The arrays are new, with and without ``copy``.

    Raises
    ------
    InvalidMatrix
        If the array has batch axes or dense axes.
    """
    if arg.n_batch or arg.n_dense or len(arg.shape) != 2:
        raise InvalidMatrix(
            f"a {type(arg).__name__} of shape {tuple(arg.shape)} with {arg.n_batch} axes of a "
            f"batch and {arg.n_dense} dense ones is no matrix; take one matrix of it"
        )
    shape = checked_shape(arg.shape)
    data, indices = np.asarray(arg.data), np.asarray(arg.indices)
    if type(arg).__name__ == "BCSR":
        indptr = np.asarray(arg.indptr)
        count = int(indptr[-1])
        triple = (data[:count], indices[:count], indptr)
        result = Csr(triple, shape=shape, executor=executor)
    else:
        inside = (indices < np.asarray(shape)).all(1)
        row, col = indices[inside].T
        result = Csr((data[inside], (row, col)), shape=shape, executor=executor)
    return result
