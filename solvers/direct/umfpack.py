"""The engine UMFPACK of SuiteSparse: multifrontal LU factors, through its C library."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any
from weakref import finalize

import numpy as np

from ...core.errors import InvalidMatrix
from .engine import Engine, EngineFactors, LogDeterminant, singular
from .shared_library import columns_of, pointer, shared_library

if TYPE_CHECKING:
    from ...core.executor import Array
    from ...core.formats import Csr

#: Lengths of UMFPACK's parameter and result arrays, and indices in them (umfpack.h).
_CONTROL, _INFO = 20, 90
_ORDERING, _REFINEMENT, _RCOND = 10, 7, 67

_SINGULAR, _OUT_OF_MEMORY = 1, -1

#: The argument ``sys`` of its solve: A x = b, A^T x = b, A^H x = b.
_SYSTEMS = {"N": 0, "T": 2, "H": 1}

_ORDERINGS = {"CHOLMOD": 0, "AMD": 1, "METIS": 3, "BEST": 4, "NONE": 5}


class Umfpack(Engine):
    """UMFPACK: unsymmetric multifrontal LU with partial pivoting, in double precision.

    The shared library ``umfpack`` is installed by ``apt install libsuitesparse-dev`` or
    ``conda install suitesparse``. Matrices of float32 are factorized in float64.

    References
    ----------
    T. A. Davis, Algorithm 832: UMFPACK V4.3, ACM Trans. Math. Softw. 30 (2004).
    """

    name = "umfpack"
    library = "UMFPACK of SuiteSparse"
    licence = "GPL-2.0-or-later"
    orderings = tuple(_ORDERINGS)
    shared = ("umfpack", "apt install libsuitesparse-dev")

    _symbolic: _Handle | None = None

    @property
    def follows_exactly(self) -> bool:
        """True: the analysis does not depend on values."""
        return True

    def analyse(self, A: Csr) -> None:
        """Compute the ordering of the columns and the frontal matrices."""
        n, arrays = A.shape[0], columns_of(A, np.int64)
        call = _Calls(arrays[2].dtype.kind == "c")
        control = self._control(call)
        symbolic = ctypes.c_void_p()
        # without the values: the analysis is valid for all values of the pattern
        values = [None] * (2 if call.is_complex else 1)
        status = call(
            "symbolic", n, n, *arrays[:2], *values, ctypes.byref(symbolic), control, None
        )  # fmt: skip
        _check(status)
        self._symbolic = _Handle(call, "free_symbolic", symbolic)

    def factorize(self, A: Csr) -> EngineFactors:
        """Factorize with the analysis of the pattern."""
        assert self._symbolic is not None
        arrays, call = columns_of(A, np.int64), self._symbolic.call
        numeric, info = ctypes.c_void_p(), np.zeros(_INFO)
        imaginary = [None] if call.is_complex else []
        status = call(
            "numeric", *arrays, *imaginary, self._symbolic.value, ctypes.byref(numeric),
            self._control(call), info,
        )  # fmt: skip
        handle = _Handle(call, "free_numeric", numeric)
        _check(status)
        return UmfpackFactors(handle, arrays, float(info[_RCOND]))

    def _control(self, call: _Calls) -> np.ndarray[Any, Any]:
        control = np.zeros(_CONTROL)
        call("defaults", control)
        control[_REFINEMENT] = 0  # the caller refines, and judges by the true residual
        if self.ordering is not None:
            control[_ORDERING] = _ORDERINGS[self.ordering]
        return control


class UmfpackFactors(EngineFactors):
    """The numeric object of UMFPACK, and the matrix, which its solve needs again."""

    def __init__(self, numeric: _Handle, arrays: tuple[Any, ...], rcond: float) -> None:
        self.numeric, self.arrays = numeric, arrays
        counts = np.zeros(5, np.int64)
        numeric.call("get_lunz", *(counts[i : i + 1] for i in range(5)), numeric.value)
        self.nnz = int(counts[0] + counts[1])
        self.notes = [f"direct: umfpack estimates 1 / condition as {rcond:.1e}"]

    def solve(self, b: Array, transposed: str) -> Array:
        """Return the solution of a block of right-hand sides, column by column."""
        call = self.numeric.call
        columns = np.asfortranarray(b, self.arrays[2].dtype)
        solved = np.empty_like(columns)
        imaginary: list[Any] = [None] if call.is_complex else []
        for c in range(b.shape[1]):
            status = call(
                "solve", _SYSTEMS[transposed], *self.arrays, *imaginary, solved[:, c], *imaginary,
                columns[:, c], *imaginary, self.numeric.value, None, None,
            )  # fmt: skip
            _check(status)
        return np.ascontiguousarray(solved, b.dtype)

    def log_determinant(self) -> LogDeterminant:
        """Return the determinant; UMFPACK returns it as ``mantissa * 10^exponent``."""
        call = self.numeric.call
        mantissa, exponent = np.zeros(2), np.zeros(1)
        parts = [mantissa, None] if call.is_complex else [mantissa]
        _check(call("get_determinant", *parts, exponent, self.numeric.value, None))
        value = complex(*mantissa) if call.is_complex else float(mantissa[0])
        size = abs(value)
        return LogDeterminant(value / size, float(np.log(size) + exponent[0] * np.log(10.0)))


class _Calls:
    """Functions of UMFPACK for 64-bit indices, real (``dl``) or complex (``zl``)."""

    def __init__(self, is_complex: bool) -> None:
        self.is_complex = is_complex
        self.prefix = "umfpack_zl_" if is_complex else "umfpack_dl_"

    def __call__(self, function: str, *arguments: Any) -> int:
        """Call a function; arrays are passed by address, numbers as 64-bit integers."""
        library = shared_library("umfpack")
        given = [
            pointer(a)
            if a is None or isinstance(a, np.ndarray)
            else ctypes.c_int64(a)
            if isinstance(a, int)
            else a
            for a in arguments
        ]
        # umfpack_*_solve has an int for its first argument and a long for all sizes: on 64 bits
        # both are passed in a register alike
        return int(getattr(library, self.prefix + function)(*given))


class _Handle:
    """An object of UMFPACK that is freed with this one."""

    def __init__(self, call: _Calls, free: str, value: ctypes.c_void_p) -> None:
        self.call, self.value = call, value
        finalize(self, _free, call, free, value)


def _free(call: _Calls, function: str, value: ctypes.c_void_p) -> None:
    if value:
        call(function, ctypes.byref(value))


def _check(status: int) -> None:
    if status == _SINGULAR:
        raise singular("UMFPACK met a pivot of zero")
    if status == _OUT_OF_MEMORY:
        raise InvalidMatrix("Direct: the factors do not fit into memory; use an iterative solver")
    if status != 0:
        raise InvalidMatrix(f"Direct: UMFPACK failed with status {status} (umfpack.h names it)")
