"""Convert petsc4py matrices to matrices and operators, sharing PETSc's memory where possible.

petsc4py returns only copies of compressed rows. Functions of PETSc's library return the arrays
themselves; this module calls them through ctypes in the library that petsc4py has loaded.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import finalize

import numpy as np

from ..core.errors import InvalidMatrix, MissingPackage, UnsupportedOperation
from ..core.formats.csr import Csr
from ..core.formats.dense import Dense
from ..core.linop import LinOp
from ..core.operator_conversions import as_linop

if TYPE_CHECKING:
    from collections.abc import Callable

    from petsc4py.PETSc import Mat, Vec

    from ..core.executor import Executor, HostArray

#: Matrix types that PETSc converts to CSR, without the prefixes for the number of processes.
_CONVERTED = ("baij", "sbaij", "sell", "nest", "is", "maij", "constantdiagonal")


class CsrArrays(NamedTuple):
    """CSR arrays in PETSc's memory."""

    data: np.ndarray[Any, Any]
    indices: np.ndarray[Any, Any]
    indptr: np.ndarray[Any, Any]


class Reference:
    """A reference to a PETSc object, which keeps it alive.

    petsc4py's own object is not such a reference: after ``mat.destroy()`` it refers to nothing.
    """

    def __init__(self, thing: Mat) -> None:
        self.handle: int = thing.handle
        _check(_library().PetscObjectReference(ctypes.c_void_p(self.handle)))
        finalize(self, _release, self.handle).atexit = False


def _release(handle: int) -> None:
    if not petsc().Sys.isFinalized():
        _library().PetscObjectDereference(ctypes.c_void_p(handle))


class _Memory:
    """Exposes a PETSc array to NumPy, and keeps its owner alive as long as the NumPy array."""

    def __init__(self, owner: Reference, address: int, length: int, dtype: np.dtype[Any]) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "data": (address, False),
            "shape": (length,),
            "typestr": dtype.str,
            "version": 3,
        }


def petsc() -> Any:
    """Return the module ``petsc4py.PETSc``.

    Raises
    ------
    MissingPackage
        If petsc4py cannot be imported.
    """
    try:
        from petsc4py import PETSc
    except ImportError as error:
        raise MissingPackage(
            f"wollemi.interop.petsc needs petsc4py ({error}): pip install petsc petsc4py, or "
            "apt-get install python3-petsc4py with PETSC_DIR set and NumPy below 2",
            name="petsc4py",
        ) from None
    return PETSc


def from_petsc(mat: Mat, *, executor: Executor | str | None = None) -> LinOp:
    """Convert a petsc4py matrix to a matrix or an operator.

    Parameters
    ----------
    mat : petsc4py.PETSc.Mat
        An assembled matrix that has all rows on this process.
    executor : Executor or str, optional
        The executor of the result; the default executor by default.

    Returns
    -------
    Csr
        For the type ``aij``: on executors of the host the matrix shares PETSc's memory, on devices
        it is a copy. For ``baij``, ``sbaij``, ``sell``, ``nest`` and ``is``: a copy.
    Dense
        For the type ``dense``: a copy.
    LinearOperator
        For other types (``shell``, ``python``, ``mffd``, ``composite``): an operator that calls
        PETSc's products.

    Raises
    ------
    If the matrix is not assembled, or if other processes have rows.
        If the matrix is not assembled, or other processes have rows.
    MissingPackage
        If petsc4py cannot be imported.

    Notes
    -----
    A shared matrix keeps the PETSc matrix alive. After PETSc has changed values in place, call
    ``A.update_values(A.data)`` on the shared matrix. The pattern must not change while the shared
    matrix exists, because PETSc then frees the arrays.

    Examples
    --------
    ``A = wl.from_petsc(mat); wl.solve(A, b.array)`` solves a PETSc system.
    """
    _require_local(mat)
    kind = str(mat.getType())
    if kind.startswith("mpiaij"):  # with one process, the diagonal block has all columns
        return from_petsc(mat.getDiagonalBlock(), executor=executor)
    kind = kind.removeprefix("seq").removeprefix("mpi")
    if kind.startswith("aij"):
        return _sharing(mat, executor)
    if kind.startswith("dense"):
        return Dense(np.ascontiguousarray(mat.getDenseArray(readonly=True)), executor=executor)
    if kind.startswith(_CONVERTED):
        return _sharing(mat.convert("seqaij", out=petsc().Mat()), executor)
    return as_linop(_operator(mat), executor)


def _require_local(mat: Mat) -> None:
    """Raise InvalidMatrix unless a matrix is assembled and this process has all rows."""
    if mat.getComm().getSize() > 1:
        raise InvalidMatrix(
            f"a matrix of PETSc over {mat.getComm().getSize()} processes has rows elsewhere: "
            "use a block of it, mat.getDiagonalBlock(); as a preconditioner, -pc_type bjacobi "
            "or asm with -sub_pc_type python"
        )
    if not mat.isAssembled():
        raise InvalidMatrix("the matrix of PETSc is not assembled: call mat.assemble() first")


def _sharing(mat: Mat, executor: Executor | str | None) -> Csr:
    arrays = csr_arrays(mat)
    return Csr(tuple(arrays), shape=tuple(mat.getSize()), executor=executor, copy=False)


def csr_arrays(mat: Mat) -> CsrArrays:
    """Return the CSR arrays of a sequential ``aij`` matrix, in PETSc's memory."""
    PETSc, library = petsc(), _library()
    owner = Reference(mat)
    integer, numbers = np.dtype(PETSc.IntType), np.dtype(PETSc.ScalarType)
    handle = ctypes.c_void_p(mat.handle)
    rows, found = _integer_type()(), ctypes.c_int()
    indptr, indices, values = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    shape = (_integer_type()(0), ctypes.c_int(0), ctypes.c_int(0))
    pattern = tuple(map(ctypes.byref, (rows, indptr, indices, found)))
    _check(library.MatGetRowIJ(handle, *shape, *pattern))
    if not found:
        raise UnsupportedOperation(
            f"PETSc gives no compressed rows of a matrix of type {mat.getType()}: convert it, "
            'mat.convert("aij")'
        )
    begins = np.asarray(_Memory(owner, indptr.value or 0, rows.value + 1, integer))
    nnz = int(begins[-1])
    columns = _array(owner, indices.value, nnz, integer)
    _check(library.MatRestoreRowIJ(handle, *shape, *pattern))
    _check(library.MatSeqAIJGetArrayRead(handle, ctypes.byref(values)))
    data = _array(owner, values.value, nnz, numbers)
    _check(library.MatSeqAIJRestoreArrayRead(handle, ctypes.byref(values)))
    return CsrArrays(data, columns, begins)


def _array(
    owner: Reference, address: int | None, length: int, dtype: np.dtype[Any]
) -> np.ndarray[Any, Any]:
    if not length or address is None:
        return np.empty(0, dtype)
    return np.asarray(_Memory(owner, address, length, dtype))


def pattern_version(mat: Mat) -> int:
    """Return a number that changes whenever the pattern of a PETSc matrix changes."""
    state = ctypes.c_int64()
    _check(_library().MatGetNonzeroState(ctypes.c_void_p(mat.handle), ctypes.byref(state)))
    return int(state.value)


@cache
def _library() -> ctypes.CDLL:
    """Return the PETSc library that petsc4py uses; its functions may call back into Python."""
    return ctypes.PyDLL(petsc().__file__)


@cache
def _integer_type() -> type[ctypes.c_int32 | ctypes.c_int64]:
    return ctypes.c_int32 if np.dtype(petsc().IntType).itemsize == 4 else ctypes.c_int64


def _check(code: int) -> None:
    if code:
        raise petsc().Error(code)


def _operator(mat: Mat) -> Any:
    """Return a PETSc matrix's products as a SciPy operator."""
    right, left = mat.createVecs()
    return vector_map(mat.getSize(), right, left, mat.mult, mat.multHermitian)


def vector_map(
    shape: tuple[int, int],
    right: Vec,
    left: Vec,
    forward: Callable[[Vec, Vec], None],
    adjoint: Callable[[Vec, Vec], None] | None = None,
) -> Any:
    """Return a SciPy operator made of functions on two PETSc vectors that overwrite the second one.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns.
    right, left : petsc4py.PETSc.Vec
        Work vectors with the length of a row and of a column.
    forward, adjoint : callable
        The map from ``right`` to ``left``, and its conjugate transpose.
    """
    from scipy.sparse.linalg import LinearOperator

    def image(
        function: Callable[[Vec, Vec], None], source: Vec, target: Vec, x: HostArray
    ) -> HostArray:
        source.setArray(np.ravel(x))
        function(source, target)
        return target.getArray(readonly=True).copy()

    return LinearOperator(
        shape,
        matvec=lambda x: image(forward, right, left, x),
        rmatvec=None if adjoint is None else lambda y: image(adjoint, left, right, y),
        dtype=np.dtype(petsc().ScalarType),
    )
