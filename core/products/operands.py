"""Dense operands and results of the machine-learning kernels.

Internally every operand is a native batch of blocks ``(b, rows, columns)`` with adjacent columns.
This module converts users' arguments to batches, and results to the shape of the arguments.
"""

from __future__ import annotations

from functools import cache
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..dtypes import ML_DTYPES, is_narrow, name_of, stored_dtype
from ..errors import InvalidArgument, InvalidMatrix, ShapeMismatch, UnsupportedDtype
from ..executor import Array, Executor
from ..formats import Coo, Csr, Matrix
from ..formats.convert import rows_of
from ..formats.mask import refuse_without_entries
from ..operands import OutputTarget, as_batch, is_host, native, to_host
from ..small_values import as_dtype
from .tensors import is_pattern, is_tensor

#: The names of the dense operands of ``sddmm`` and ``fusedmm`` in messages: the parameter, and the
#: operand of attention that it is.
QUERIES, KEYS, SUMMED = "C (queries)", "B (keys)", "D (values)"

#: A function that returns the dtype of an array.
_DTYPE = attrgetter("dtype")


def as_csr(A: object) -> Csr:
    """Return ``A`` as a Csr; matrices of other libraries are converted as in ``wl.Csr``.

    Raises
    ------
    UnsupportedOperation
        If it is a mask, since its entries would need the memory that a mask saves.
    InvalidMatrix
        If it is not a sparse matrix.
    """
    if isinstance(A, Csr):
        return A
    refuse_without_entries(A)
    if isinstance(A, Coo):
        return rows_of(A)  # keep duplicates: values= may address each
    if isinstance(A, Matrix):
        return A.asformat("csr")
    if is_pattern(A):
        indptr, indices = (to_host(part) for part in (A.indptr, A.indices))
        return Csr((np.ones(indices.size), indices, indptr), shape=A.shape)
    if hasattr(A, "tocsr") or "sparse" in str(getattr(A, "layout", "")) or is_dense_mask(A):
        return Csr(A)
    remedy = edge_list_remedy(A) or "make it a wl.Csr"
    raise InvalidMatrix(f"A: expected a sparse matrix, got {type(A).__name__}; {remedy}")


def is_dense_mask(A: object) -> bool:
    """Return whether ``A`` is a dense boolean array of NumPy or PyTorch, which means a pattern.

    Examples
    --------
    >>> is_dense_mask(np.eye(2, dtype=bool)), is_dense_mask(np.eye(2))
    (True, False)
    """
    if not (isinstance(A, np.ndarray) or is_tensor(A)):
        return False
    dense = "strided" in str(getattr(A, "layout", "strided"))
    return dense and len(getattr(A, "shape", ())) == 2 and "bool" in str(_DTYPE(A))


def edge_list_remedy(A: object) -> str:
    """Return the remedy for a list of edges of shape (edges, 2), or "" for other objects.

    Examples
    --------
    >>> edge_list_remedy(np.array([[0, 1], [1, 2], [2, 0]]))
    'a list of edges has the shape (2, edges), sources and targets: pass its transpose'
    >>> edge_list_remedy(np.eye(2))
    ''
    """
    shape = tuple(getattr(A, "shape", ()))
    if len(shape) != 2 or shape[1] != 2 or "int" not in str(_DTYPE(A)):
        return ""
    return "a list of edges has the shape (2, edges), sources and targets: pass its transpose"


def rows_of_operand(B: ArrayLike) -> int:
    """Return the number of rows of a dense operand; 0 for a number."""
    shape = np.shape(B)
    return int(shape[-2 if len(shape) > 1 else -1]) if shape else 0


class DenseOperand:
    """A dense operand as kernels read it, with the data to return a result in its form.

    Parameters
    ----------
    executor : Executor
        The executor on which it must be.
    given : array, shape (rows, k), (b, rows, k) or, where vectors are taken, (rows,)
        The user's array.
    rows : int
        The required number of rows.
    label : str
        Name of the operand in messages.
    """

    def __init__(
        self,
        executor: Executor,
        array_like: ArrayLike,
        rows: int,
        label: str,
        *,
        vector: bool = False,
    ) -> None:
        self.label = label
        array = self._take(executor, array_like)
        self.ndim = dimensions = array.ndim
        allowed = (1, 2, 3) if vector else (2, 3)
        axis = 1 if dimensions == 3 else 0
        if dimensions not in allowed or array.shape[axis] != rows:
            forms = f"({rows},), " * vector + f"({rows}, k) or (b, {rows}, k)"
            raise ShapeMismatch(f"{label}: expected shape {forms}, got {tuple(array.shape)}")
        if dimensions == 1:
            array = array[:, None]
        self.batch = array if dimensions == 3 else as_batch(array)

    def _take(self, executor: Executor, array_like: ArrayLike) -> Array:
        owned = executor.owns(array_like)
        self.from_host = not owned and is_host(array_like)
        if owned and (type(array_like) is np.ndarray or not isinstance(array_like, np.ndarray)):
            return array_like
        return _native(executor, array_like, self.label)

    @property
    def columns(self) -> int:
        """The number of columns of each block."""
        return int(self.batch.shape[2])

    def cast(self, executor: Executor, dtype: np.dtype[Any], blocks: int) -> Array:
        """Return the batch in ``dtype`` with adjacent columns; one block applies to all."""
        batch = as_dtype(executor, self.batch, dtype)
        if not _has_layout(batch, dtype.itemsize):
            batch = executor.copy(batch)
        return batch if batch.shape[0] == blocks else self._for_all(executor, batch, blocks)

    def _for_all(self, executor: Executor, batch: Array, blocks: int) -> Array:
        """Return one block as a batch of equal blocks, without a copy."""
        if batch.shape[0] != 1:
            raise ShapeMismatch(
                f"{self.label}: expected {blocks} blocks or one, got {batch.shape[0]}"
            )
        return executor.xp.broadcast_to(batch, (blocks, *batch.shape[1:]))


class Values(DenseOperand):
    """Values of the entries of a matrix, or of a batch of matrices with one pattern.

    Parameters
    ----------
    executor : Executor
        The executor on which they must be.
    given : array, shape (nnz,) or (b, nnz)
        The user's array.
    count : int
        Number of entries.
    """

    def __init__(self, executor: Executor, array_like: ArrayLike, count: int) -> None:
        self.label = "values"
        array = self._take(executor, array_like)
        if array.ndim not in (1, 2) or array.shape[-1] != count:
            raise ShapeMismatch(
                f"values: expected shape ({count},) or (b, {count}), got {tuple(array.shape)}"
            )
        self.ndim = array.ndim + 1  # as for an operand with one column
        self.batch = array if array.ndim == 2 else as_batch(array)

    def cast(self, executor: Executor, dtype: np.dtype[Any], blocks: int) -> Array:
        """Return the values in ``dtype``, shape ``(blocks, nnz)``; one block applies to all."""
        batch = as_dtype(executor, self.batch, dtype)
        if batch.shape[1] > 1 and batch.strides[1] != dtype.itemsize:
            batch = executor.copy(batch)
        return batch if batch.shape[0] == blocks else self._for_all(executor, batch, blocks)


def _has_layout(block: Array, item: int) -> bool:
    """Return whether kernels accept blocks: adjacent columns, any stride between rows.

    Kernels treat one column as a vector, whose rows must be in ascending order without overlap.
    """
    rows, columns = block.shape[-2:]
    if columns > 1:
        return bool(block.strides[-1] == item)
    step = block.strides[-2]
    return bool(rows <= 1 or columns == 0 or (step >= item and step % item == 0))


def _native(executor: Executor, array_like: ArrayLike, label: str) -> Array:
    if isinstance(array_like, np.ndarray) and is_narrow(array_like.dtype):
        return executor.from_host(array_like)  # NumPy does not treat bfloat16 as numeric
    return native(executor, array_like, label)


def common_type(label: str, *arrays: Array, real: bool = False) -> np.dtype[Any]:
    """Return the dtype in which an operation over ``arrays`` is computed.

    Raises
    ------
    UnsupportedDtype
        If an array is complex and the operation requires real numbers.
    """
    return _common_type(label, real, *map(_DTYPE, arrays))


@cache
def _common_type(label: str, real: bool, *dtypes_of_operands: np.dtype[Any]) -> np.dtype[Any]:
    dtypes = [stored_dtype(dtype) for dtype in dtypes_of_operands]
    if set(ML_DTYPES) <= {name_of(dtype) for dtype in dtypes}:
        dtype = np.dtype(np.float32)  # neither 16-bit dtype holds the other
        dtypes = [dtype, *(d for d in dtypes if not is_narrow(d))]
    dtype = stored_dtype(np.result_type(*dtypes))
    if real and dtype.kind == "c":
        raise UnsupportedDtype(
            f"{label} of {dtype} is not defined here; use real and imaginary parts"
        )
    return dtype


def blocks_of(*operands: DenseOperand) -> tuple[int, bool]:
    """Return the number of blocks of the operands, and whether any operand is a batch."""
    blocks, batched = 1, False
    for operand in operands:
        if operand.ndim == 3:
            batched, count = True, int(operand.batch.shape[0])
            if count != 1 and blocks not in (1, count):
                told = ", ".join(f"{o.label} has {o.batch.shape[0]}" for o in operands)
                raise ShapeMismatch(f"batches of different lengths: {told}")
            blocks = blocks if count == 1 else count
    return blocks, batched


class ProductResult:
    """The output of a kernel: the user's ``out`` if it can be written in place, or a new array.

    Parameters
    ----------
    executor : Executor
        The executor of the result.
    out : array or None
        The user's array.
    shape : tuple of int
        Shape of the result for the user.
    batch : tuple of int
        Shape of the result for kernels.
    dtype : numpy.dtype
        Dtype of the result.
    beta : number
        Factor of ``out``; with 0 it is not read.
    inputs : arrays
        Arrays that must not be overwritten before they are read.
    """

    def __init__(
        self,
        executor: Executor,
        out: Array | None,
        shape: tuple[int, ...],
        batch: tuple[int, ...],
        dtype: np.dtype[Any],
        beta: complex,
        *inputs: Array,
    ) -> None:
        self.executor, self.out, self.shape = executor, out, shape
        self.in_place = False
        if out is None:
            if beta != 0:
                raise InvalidArgument("beta needs an out to scale: pass out= or leave beta at 0")
            self.array = executor.allocate(batch, dtype)
            return
        self._user = OutputTarget(executor, out, shape)
        self._user.require(dtype)
        self.target = self._user.array
        free = not any(_overlap(self.target, i) for i in inputs)
        vector = len(shape) == len(batch) - 2
        rows = self.target[None] if len(shape) == 1 else self.target
        block = self.target[:, None] if vector else rows
        self.in_place = free and _has_layout(block, dtype.itemsize)
        array = self.target if self.in_place else executor.copy(self.target)
        if vector:
            array = array[:, None]
        self.array = array if array.ndim == len(batch) else array[None]

    def give(self, from_host: bool) -> Array:
        """Return the user's result after the kernel has run."""
        if self.out is None:
            array = self.array.reshape(self.shape)
            return self.executor.to_host(array) if from_host else array
        if not self.in_place:
            self.executor.copy_into(self.target, self.array.reshape(self.shape))
        self._user.finish()
        return self.out


def _overlap(a: Array, b: Array) -> bool:
    if a is b:
        return True
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.may_share_memory(a, b)
