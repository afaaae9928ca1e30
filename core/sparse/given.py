"""Arguments and results of constructors: matrices of any library, format, dtype, executor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..assembled import Assembled
from ..capture import MAKES
from ..errors import InvalidArgument, InvalidMatrix
from ..executor import brought_together
from ..formats.base import Matrix
from ..formats.csr import Csr
from ..formats.dense import dense_of
from ..formats.rowwise import computed_dtype
from ..formats.sparse_vector import SparseVector
from ..linop import LinOp
from ..operands import is_array

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ..executor import Executor


def as_matrix(
    value: Any,
    caller: str,
    executor: Executor | str | None = None,
    dtype: np.dtype[Any] | None = None,
) -> Matrix:
    """Return any library's matrix, or a two-dimensional array, as a wollemi matrix.

    An expression of identities and permutations computes in ``dtype`` if it is given.

    Raises
    ------
    InvalidArgument
        If the argument is neither, or is an operator without entries.
    """
    if isinstance(value, Assembled):
        value = (value if dtype is None else value.astype(dtype)).tocsr()
    if isinstance(value, SparseVector):
        value = value.row
    if isinstance(value, Matrix):
        value.executor.refuse_capture(MAKES)
        return value if executor is None else value.to(executor)
    if isinstance(value, LinOp):
        raise InvalidArgument(
            f"{caller}: a {type(value).__name__}{value._no_entries} has no entries; give a matrix"
        )
    if hasattr(value, "tocsr") or hasattr(value, "layout"):
        return Csr(value, executor=executor)
    if is_array(value):
        result: Csr = dense_of(_two_dimensional(value), executor).asformat("csr")
        result.__dict__["_follows"] = executor is None
        return result
    raise InvalidArgument(f"{caller}: expected a matrix or an array, got {type(value).__name__}")


def _two_dimensional(value: Any) -> Any:
    """Return an array with two dimensions: numbers and vectors become a row."""
    array = value if hasattr(value, "ndim") else np.asarray(value)
    if array.ndim > 2:
        raise InvalidMatrix(f"expected a matrix, got an array of shape {tuple(array.shape)}")
    return array.reshape(1, -1) if array.ndim < 2 else array


def as_matrices(blocks: Any, caller: str, executor: Executor | str | None = None) -> list[Matrix]:
    """Return several matrices on their common executor, or on the requested one.

    The factors of expressions of identities are not rounded before they are combined with the other
    matrices.
    """
    blocks = [
        one if isinstance(one, Assembled) else as_matrix(one, caller, executor) for one in blocks
    ]
    if any(isinstance(one, Assembled) for one in blocks):
        joint = computed_dtype(*blocks)
        blocks = [as_matrix(one, caller, executor, joint) for one in blocks]
    made: list[Matrix] = blocks
    return list(brought_together(caller, *made)) if made else []


def finished(csr: Csr, format: str | None, dtype: DTypeLike | None = None, *made_of: LinOp) -> Any:
    """Return a result in the requested format (Csr by default) and dtype."""
    if made_of:
        csr = csr._following(*made_of)
    if dtype is not None:
        csr = csr.astype(dtype)
    result = csr if format is None else csr.asformat(format)
    if made_of and result is not csr:
        result._following(*made_of)
    return result


def without_home(matrix: Any, executor: Executor | str | None) -> Any:
    """Return a matrix made of numbers; without ``executor=`` it has no fixed executor."""
    matrix.__dict__["_follows"] = executor is None
    return matrix
