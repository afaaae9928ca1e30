"""Sparse arrays of JAX as wollemi matrices; JAX is recognized by its attributes, not imported."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InvalidMatrix
from ..executor import Executor
from ..formats.base import checked_shape
from ..formats.csr import Csr


def is_jax_sparse(arg: object) -> bool:
    """Return whether ``arg`` is a ``BCOO`` or a ``BCSR`` of ``jax.experimental.sparse``."""
    return type(arg).__name__ in ("BCOO", "BCSR") and hasattr(arg, "n_batch")


def from_jax(arg: Any, executor: Executor | str | None = None) -> Csr:
    """Return the entries of a ``BCOO`` or a ``BCSR`` by compressed rows, in memory of their own.

    Entries of one position are added up. Padding of JAX, outside of the shape or after the last
    row, is left out.

    Raises
    ------
    InvalidMatrix
        If it has axes of a batch or dense ones.
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
        made = Csr(triple, shape=shape, executor=executor)
    else:
        inside = (indices < np.asarray(shape)).all(1)
        row, col = indices[inside].T
        made = Csr((data[inside], (row, col)), shape=shape, executor=executor)
    return made
