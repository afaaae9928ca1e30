"""The engine PARDISO of Intel's MKL: multithreaded LU and L D L^H, through its C library."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any
from weakref import finalize

import numpy as np

from ...core.errors import InvalidMatrix
from .engine import Engine, EngineFactors, singular
from .shared_library import pointer, shared_library

if TYPE_CHECKING:
    from ...core.executor import Array
    from ...core.formats import Csr

#: Matrix types, real and complex: general, and Hermitian indefinite.
_GENERAL = {"f": 11, "c": 13}
_HERMITIAN = {"f": -2, "c": -4}

#: Codes of PARDISO's phases.
_ANALYSE, _FACTORIZE, _SOLVE, _FREE = 11, 22, 33, -1

#: Number of factors of one pattern that a handle holds: the solver's factors, the factors of its
#: next values, and factors that transposed solvers still use.
_ROOM = 4

#: If pivots were replaced, the solution for a random right-hand side must have at most this
#: relative residual.
_USABLE = 1e-6

_ORDERINGS = {"AMD": 0, "METIS": 2, "PARALLEL_METIS": 3}


class Pardiso(Engine):
    """MKL PARDISO: supernodal factors by threads, in double precision.

    General matrices are scaled, matched and factorized as ``L U``; Hermitian ones as ``L D L^H``
    with Bunch and Kaufman's pivots. ``pip install mkl`` brings the library. Matrices of float32 are
    factorized in float64.

    References
    ----------
    O. Schenk and K. Gartner, Solving unsymmetric sparse systems of linear equations with PARDISO,
    Future Gener. Comput. Syst. 20 (2004).
    """

    name = "pardiso"
    library = "PARDISO of Intel's MKL"
    licence = "Intel Simplified Software License"
    orderings = tuple(_ORDERINGS)
    shared = ("mkl_rt", "pip install mkl")

    _pattern: _Pattern | None = None

    def analyse(self, A: Csr) -> None:
        """Compute an ordering, and for general matrices a matching and a scaling by values."""
        S, hermitian = _prepared(A)
        self._pattern = _Pattern(S, hermitian, self.ordering)

    def factorize(self, A: Csr) -> EngineFactors:
        """Factorize with the analysis, which is repeated if new values are not Hermitian."""
        S, hermitian = _prepared(A)
        pattern = self._pattern
        if pattern is None or pattern.hermitian != hermitian or not pattern.free:
            pattern = self._pattern = _Pattern(S, hermitian, self.ordering)
        return PardisoFactors(pattern, S)


def _prepared(A: Csr) -> tuple[Any, bool]:
    """Return a SciPy matrix in PARDISO's form, and whether it is Hermitian."""
    S = A.to_scipy().tocsr()
    S.sum_duplicates()
    S.sort_indices()
    n = S.shape[0]
    columns = np.bincount(S.indices, minlength=n)
    if not np.all(np.diff(S.indptr)) or not np.all(columns):
        raise InvalidMatrix("Direct: the matrix has empty rows or columns: it is singular")
    S = S.astype(np.complex128 if S.dtype.kind == "c" else np.float64)
    hermitian = (S != S.conj().T).nnz == 0
    return S, hermitian


def _upper_with_diagonal(S: Any) -> Any:
    """Return the upper triangle with all diagonal entries, including zeros."""
    from scipy.sparse import coo_array, triu

    upper, n = triu(S).tocoo(), S.shape[0]
    rows = np.concatenate([upper.coords[0], np.arange(n)])
    columns = np.concatenate([upper.coords[1], np.arange(n)])
    data = np.concatenate([upper.data, np.zeros(n, S.dtype)])
    made = coo_array((data, (rows, columns)), shape=S.shape).tocsr()
    made.sum_duplicates()
    made.sort_indices()
    return made


class _Pattern:
    """A handle of PARDISO: the analysis of a pattern, and memory for factors of several values."""

    def __init__(self, S: Any, hermitian: bool, ordering: str | None) -> None:
        self.hermitian, self.n, self.dtype = hermitian, S.shape[0], S.dtype
        self.type = (_HERMITIAN if hermitian else _GENERAL)[S.dtype.kind]
        self.handle, self.parameters = np.zeros(64, np.int64), np.zeros(64, np.int64)
        self.free = list(range(1, _ROOM + 1))
        p = self.parameters
        p[0] = 1  # these, and not the library's defaults
        p[1] = 2 if ordering is None else _ORDERINGS[ordering]
        p[9] = 8 if hermitian else 13  # tiny pivots are replaced by 10^-p[9] of the norm
        p[10] = p[12] = 0 if hermitian else 1  # scaling, matching
        p[17] = -1  # count the entries of the factors
        p[20] = 1  # pivots of Bunch and Kaufman
        p[34] = 1  # zero-based indices
        finalize(self, _release, self.type, self.n, self.handle, p.copy())
        self.nnz = int(self.call(_ANALYSE, 1, self.arrays(S))[17])

    def arrays(self, S: Any) -> tuple[Any, ...]:
        """Return values, row pointers and column indices for the library."""
        given = _upper_with_diagonal(S) if self.hermitian else S
        return given.data, given.indptr.astype(np.int64), given.indices.astype(np.int64)

    def call(
        self, phase: int, slot: int, arrays: tuple[Any, ...], b: Any = None, x: Any = None
    ) -> np.ndarray[Any, Any]:
        """Run a phase for the factors of a slot; return the library's parameters after it."""
        columns = 1 if b is None else b.shape[1]
        parameters = self.parameters.copy()
        status = _call(
            self.handle, slot, self.type, phase, self.n, arrays, columns, parameters, b, x
        )
        if status == -2:
            raise InvalidMatrix(
                "Direct: the factors do not fit into memory; use an iterative solver"
            )
        if status in (-4, -7):
            raise singular("PARDISO met a pivot of zero")
        if status != 0:
            raise InvalidMatrix(f"Direct: PARDISO failed with status {status}")
        return parameters


class PardisoFactors(EngineFactors):
    """The factors of one slot of a handle."""

    def __init__(self, pattern: _Pattern, S: Any) -> None:
        self.pattern, self.notes = pattern, []
        self.slot, self.arrays = pattern.free.pop(), pattern.arrays(S)
        finalize(self, pattern.free.append, self.slot)
        after = pattern.call(_FACTORIZE, self.slot, self.arrays)
        self.nnz, replaced = pattern.nnz, int(after[13])
        self.counts = int(after[21]), int(after[22])
        if replaced:
            self._require_usable(S, replaced)

    def _require_usable(self, S: Any, replaced: int) -> None:
        """Raise if factors with replaced pivots are unusable, as for a singular matrix."""
        b = np.random.default_rng(0).standard_normal((S.shape[0], 1)).astype(S.dtype)
        x = self.solve(b, "N")
        for _ in range(2):
            x = x + self.solve(b - S @ x, "N")
        if not np.linalg.norm(b - S @ x) <= _USABLE * np.linalg.norm(b):
            raise singular(f"PARDISO met {replaced} pivots of about zero")
        self.notes.append(f"direct: pardiso replaced {replaced} tiny pivots")

    def solve(self, b: Array, transposed: str) -> Array:
        """Return the solution of a block of right-hand sides."""
        if not b.size:
            return b
        pattern, given = self.pattern, np.asfortranarray(b, self.pattern.dtype)
        conjugate = pattern.hermitian and transposed == "T" and pattern.dtype.kind == "c"
        if conjugate:
            given = np.asfortranarray(given.conj())
        solved = np.zeros_like(given, order="F")
        before = pattern.parameters[11]
        if not pattern.hermitian:
            pattern.parameters[11] = {"N": 0, "H": 1, "T": 2}[transposed]
        try:
            pattern.call(_SOLVE, self.slot, self.arrays, given, solved)
        finally:
            pattern.parameters[11] = before
        solved = solved.conj() if conjugate else solved
        return np.ascontiguousarray(solved, b.dtype)

    def inertia(self) -> tuple[int, int, int]:
        """Return the numbers of positive, negative and zero eigenvalues of a real symmetric matrix.

        The library does not count them for complex Hermitian matrices.
        """
        if self.pattern.type != _HERMITIAN["f"]:
            return super().inertia()
        positive, negative = self.counts
        return positive, negative, self.pattern.n - positive - negative


def _call(
    handle: Any, slot: int, kind: int, phase: int, n: int, arrays: tuple[Any, ...], columns: int,
    parameters: Any, b: Any = None, x: Any = None,
) -> int:  # fmt: skip
    library: Any = shared_library("mkl_rt")
    numbers = [ctypes.c_int64(v) for v in (_ROOM, slot, kind, phase, n, columns, 0, 0)]
    room, slot_, kind_, phase_, n_, columns_, silent, status = map(ctypes.byref, numbers)
    library.pardiso_64(
        pointer(handle), room, slot_, kind_, phase_, n_, *map(pointer, arrays), None, columns_,
        pointer(parameters), silent, pointer(b), pointer(x), status,
    )  # fmt: skip
    return int(numbers[-1].value)


def _release(kind: int, n: int, handle: Any, parameters: Any) -> None:
    _call(handle, 1, kind, _FREE, n, (None, None, None), 1, parameters)
