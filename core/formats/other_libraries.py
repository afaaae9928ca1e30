"""Conversion of other libraries' matrices (SciPy, CuPy, PyTorch, arrays) to wollemi matrices.

Objects of other libraries are recognized by their attributes, so no other library is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..assembled import Assembled
from ..dtypes import held_dtype
from ..errors import InvalidMatrix, UnsupportedOperation
from ..executor import Executor
from ..libraries import matrix_handler, tensor_handler
from ..linop import LinOp
from ..operands import aligned, home, is_host, to_host
from . import given
from .base import Matrix
from .bsr import Bsr
from .coo import Coo
from .csc import Csc
from .csr import Csr
from .dense import dense_of
from .given import as_held, checked_shape, is_of_scipy, place
from .sparse_vector import SparseVector

_COMPRESSED: dict[str, type[Csr] | type[Csc]] = {"csr": Csr, "csc": Csc}


def is_sparse(arg: object) -> bool:
    """Return whether ``arg`` is a sparse matrix of wollemi, SciPy, CuPy or PyTorch."""
    known = isinstance(arg, LinOp) or hasattr(arg, "tocsr") or matrix_handler(arg) is not None
    return known or _has_entries_of_library(arg)


#: Methods by which matrices of libraries provide their entries: petsc4py, sparse arrays of Python
#: libraries, DOLFINx.
_CONVERSIONS = ("getValuesCSR", "to_coo", "to_scipy")


def _has_entries_of_library(arg: Any) -> bool:
    """Return whether :func:`entries_of_library` can convert an object."""
    module = type(arg).__module__.partition(".")[0]
    if module == "networkx" or any(hasattr(arg, name) for name in _CONVERSIONS):
        return True
    return module == "pandas" and hasattr(getattr(arg, "sparse", None), "to_coo")


def entries_of_library(arg: Any) -> Any:
    """Return a graph, or a library's matrix without ``tocsr``, as a SciPy matrix, or None.

    A networkx graph gives its adjacency matrix, a sparse data frame or series of pandas its values,
    and a matrix of PETSc or DOLFINx the rows on this process.
    """
    if hasattr(arg, "tocsr") or not _has_entries_of_library(arg):
        return None
    module = type(arg).__module__.partition(".")[0]
    if module == "networkx":
        return sys.modules["networkx"].to_scipy_sparse_array(arg)
    if hasattr(arg, "getValuesCSR") and hasattr(arg, "getSize"):
        return _from_petsc(arg)
    if hasattr(arg, "to_scipy"):
        return arg.to_scipy()
    made = (arg if hasattr(arg, "to_coo") else arg.sparse).to_coo()
    return made[0] if isinstance(made, tuple) else made


def _from_petsc(arg: Any) -> Any:
    """Return the entries of a petsc4py matrix; all its rows must be on this process.

    Raises
    ------
    InvalidMatrix
        If other processes own rows.
    """
    from scipy.sparse import csr_array

    indptr, indices, data = arg.getValuesCSR()
    rows, columns = arg.getSize()
    if len(indptr) - 1 != rows:
        raise InvalidMatrix(
            f"a matrix of PETSc with {rows} rows has {len(indptr) - 1} of them on this process: "
            "wl.distribute takes the rows of each process"
        )
    return csr_array((data, indices, indptr), shape=(rows, columns))


def matrix_from(arg: Any, executor: Executor | str | None = None, *, copy: bool = True) -> Matrix:
    """Return ``arg`` as a matrix in the format that is closest to its own.

    The arrays of sparse matrices are copied, except that ``copy=False`` allows compressed rows and
    columns to be shared. A dense array may be shared, because the next conversion makes a new one.

    Parameters
    ----------
    arg : matrix of wollemi, SciPy, CuPy, PyTorch or JAX, graph, or dense array
        The matrix. PyTorch Geometric's ``EdgeIndex`` and DGL's graphs give the adjacency matrix in
        the convention of these libraries: ones, with sources as rows and targets as columns.
    executor : Executor or str, optional
        The target; by default the executor of a device array, or the default executor for host
        data.
    copy : bool
        Whether the arrays of compressed rows and columns must be copied.
    """
    if isinstance(arg, Matrix):
        return arg if executor is None else arg.to(executor)
    if isinstance(arg, SparseVector):
        return arg.row if executor is None else arg.row.to(executor)
    if isinstance(arg, LinOp):
        return matrix_from(_entries_of(arg), executor)
    if is_of_scipy(arg):  # the most frequent case; no handler is needed
        return _from_scipy_like(arg, executor, copy)
    handler = matrix_handler(arg)
    if handler is not None:
        return handler.matrix_from(arg, executor, copy)
    entries = entries_of_library(arg)
    if entries is not None:
        return matrix_from(entries, executor, copy=copy)
    if hasattr(arg, "tocsr"):
        return _from_scipy_like(arg, executor, copy)
    refuse_matrices_within(arg)
    if isinstance(arg, tuple):
        raise InvalidMatrix(_forms_of_tuples(arg))
    return dense_of(arg, executor)


def refuse_matrices_within(arg: object) -> None:
    """Raise InvalidMatrix for a sequence of matrices, or a sequence of rows of blocks."""
    if isinstance(arg, (list, tuple)) and (said := _about_matrices_within(arg)):
        raise InvalidMatrix(said)


def _about_matrices_within(arg: Sequence[Any]) -> str:
    """Return the message about a sequence of matrices or of rows of blocks, otherwise ""."""
    first = next((part for part in arg if part is not None), None)
    if isinstance(first, (list, tuple)):
        inner = next((part for part in first if part is not None), None)
        if _is_matrix(inner):
            return "lists of matrices are blocks: wl.sparse.block_array(blocks) joins them"
    if not _is_matrix(first):
        return ""
    return (
        f"a {type(arg).__name__} of {len(arg)} matrices is no matrix: wl.stack(matrices) makes a "
        "batch of matrices of one pattern, and wl.batch(matrices) one of several patterns"
    )


def _is_matrix(part: object) -> bool:
    return isinstance(part, LinOp) or hasattr(part, "tocsr")


def _forms_of_tuples(arg: tuple[Any, ...]) -> str:
    """Return the message about a tuple that does not describe a matrix."""
    message = (
        f"a tuple of {len(arg)} does not describe this matrix; tuples are (data, indices, "
        "indptr) for Csr, Csc and Bsr, (data, (row, col)) for Csr, Csc and Coo"
    )
    if all(isinstance(part, (int, np.integer)) for part in arg):
        message += (
            "; sparse arrays are 1-D and 2-D: wl.Csr(([], ([], [])), shape=(m, n)) and "
            "wl.SparseVector((n,)) are zeros"
        )
    return message


def _entries_of(operator: LinOp) -> Matrix:
    if isinstance(operator, Assembled):
        return operator.tocsr()
    if operator.partition is not None and hasattr(operator, "to_local"):
        raise UnsupportedOperation(
            "a group shares this matrix, and no member has all its entries: A.to_local(), which "
            "all ranks ask for, returns them as a SciPy array"
        )
    raise UnsupportedOperation(
        f"a {type(operator).__name__}{operator._no_entries} has no entries to make a matrix of: it "
        "is known by its products with vectors alone; A.to_dense() applies it to every unit vector"
    )


def matrix_beside(executor: Executor, arg: Any) -> Matrix | None:
    """Return another library's sparse matrix as a wollemi matrix, or None if it is none.

    Host matrices are copied to ``executor``; device matrices stay on their device.
    """
    if not is_sparse(arg):
        return None
    return matrix_from(arg, None if home(getattr(arg, "data", None)) else executor)


def native_array(executor: Executor, array: Any, dtype: Any, copy: bool) -> Any:
    """Return any library's array in the form in which a matrix of ``executor`` stores it."""
    if executor.owns(array):
        return as_held(executor, array, dtype, copy=copy)
    adopted = None if is_host(array) else executor.adopt(array)
    if adopted is not None:
        readable = aligned(executor, adopted)
        return as_held(executor, readable, dtype, copy=copy and readable is adopted)
    host = np.ascontiguousarray(_to_host(array))
    there = executor.from_host(host)
    if isinstance(there, np.ndarray):  # it may still share the library's memory
        return as_held(executor, there, dtype, copy=copy)
    return there if dtype is None else there.astype(dtype, copy=False)


def _to_host(array: Any) -> np.ndarray[Any, Any]:
    if str(getattr(array, "dtype", "")) == "torch.bfloat16":  # NumPy has no such dtype
        host: np.ndarray[Any, Any] = tensor_handler().numpy_of(array.cpu())
        return host
    return to_host(array)


def _from_scipy_like(arg: Any, executor: Executor | str | None, copy: bool) -> Matrix:
    if not hasattr(arg, "format") or not hasattr(arg, "data"):  # it converts to SciPy
        arg = arg.tocsr()
    if getattr(arg, "ndim", 2) != 2:
        raise InvalidMatrix(
            f"expected a matrix of 2 dimensions, got shape {arg.shape}; wl.SparseVector takes one"
        )
    shape = checked_shape(arg.shape)
    format = getattr(arg, "format", "")
    if format == "coo":
        if _is_host_matrix(arg):
            return Coo((arg.data, (arg.row, arg.col)), shape=shape, executor=executor)
        arg, format = arg.tocsr(), "csr"
    if format == "bsr":
        return Bsr((arg.data, arg.indices, arg.indptr), shape=shape, executor=executor)
    if format not in _COMPRESSED:
        arg, format = arg.tocsr(), "csr"
    if _is_host_matrix(arg):
        return _COMPRESSED[format](
            (arg.data, arg.indices, arg.indptr), shape=shape, executor=executor, copy=copy
        )
    # A device library guarantees valid matrices, and checks would read the arrays back.
    where = place(executor, arg.data)
    data = native_array(where, arg.data, held_dtype(arg.data.dtype), copy)
    indices, indptr = (native_array(where, a, None, copy) for a in (arg.indices, arg.indptr))
    return _COMPRESSED[format]._from_arrays(where, shape, data, indices, indptr)


def _is_host_matrix(arg: Any) -> bool:
    return isinstance(arg.data, (np.ndarray, memoryview))


given.is_sparse.provide(is_sparse)
given.matrix_of.provide(matrix_from)
