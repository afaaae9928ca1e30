"""The engine KLU of SuiteSparse: LU factors of block triangular forms, for circuits."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import finalize

import numpy as np

from ...core.errors import InvalidMatrix
from .engine import Engine, EngineFactors, singular
from .shared_library import columns_of, pointer, shared_library

if TYPE_CHECKING:
    from ...core.executor import Array
    from ...core.formats import Csr

_SINGULAR, _OUT_OF_MEMORY, _TOO_LARGE = 1, -2, -4

_ORDERINGS = {"AMD": 0, "COLAMD": 1}


class _Common(ctypes.Structure):
    """``klu_common`` of klu.h, with space for members that later versions may add."""

    _fields_: ClassVar[list[tuple[str, Any]]] = [
        *((name, ctypes.c_double) for name in ("tol", "memgrow", "initmem_amd", "initmem", "work")),
        *((name, ctypes.c_int) for name in ("btf", "ordering", "scale")),
        *((name, ctypes.c_void_p) for name in ("user_order", "user_data")),
        *((name, ctypes.c_int) for name in ("halt_if_singular", "status", "nrealloc")),
        *((name, ctypes.c_int) for name in ("structural_rank", "numerical_rank", "singular_col")),
        ("rest", ctypes.c_byte * 512),
    ]


class Klu(Engine):
    """KLU: left-looking LU of the blocks of a block triangular form, in double precision.

    It suits matrices with little fill-in, such as matrices of circuits. The shared library ``klu``
    is installed by ``apt install libsuitesparse-dev`` or ``conda install suitesparse``. Matrices of
    float32 are factorized in float64.

    References
    ----------
    T. A. Davis and E. Palamadai Natarajan, Algorithm 907: KLU, ACM Trans. Math. Softw. 37 (2010).
    """

    name = "klu"
    library = "KLU of SuiteSparse"
    licence = "LGPL-2.1-or-later"
    orderings = tuple(_ORDERINGS)
    shared = ("klu", "apt install libsuitesparse-dev")

    _analysis: _Analysis | None = None

    @property
    def follows_exactly(self) -> bool:
        """True: the analysis does not depend on values."""
        return True

    def analyse(self, A: Csr) -> None:
        """Compute the blocks, and an ordering of each."""
        self._analysis = _Analysis(A, 0 if self.ordering is None else _ORDERINGS[self.ordering])

    def factorize(self, A: Csr) -> EngineFactors:
        """Factorize with the analysis of the pattern; pivots are chosen for these values."""
        assert self._analysis is not None
        return KluFactors(self._analysis, A)


class _Analysis:
    """The symbolic object of KLU; ``None`` for a matrix without rows."""

    def __init__(self, A: Csr, ordering: int) -> None:
        library: Any = shared_library("klu")
        self.library, self.n, self.common = library, A.shape[0], _Common()
        library.klu_defaults(ctypes.byref(self.common))
        self.common.ordering = ordering
        indptr, indices, _ = columns_of(A, np.int32)
        library.klu_analyze.restype = ctypes.c_void_p
        found = library.klu_analyze(
            self.n, pointer(indptr), pointer(indices), ctypes.byref(self.common)
        )
        _check(self.common.status, self.n)
        self.symbolic = ctypes.c_void_p(found)
        finalize(self, _free, library.klu_free_symbolic, self.symbolic, self.common)


class KluFactors(EngineFactors):
    """The numeric object of KLU."""

    def __init__(self, analysis: _Analysis, A: Csr) -> None:
        self.analysis = analysis
        library, common = analysis.library, analysis.common
        indptr, indices, data = columns_of(A, np.int32)
        self.dtype = data.dtype
        self.prefix = "klu_z_" if data.dtype.kind == "c" else "klu_"
        factor = getattr(library, f"{self.prefix}factor")
        factor.restype = ctypes.c_void_p
        found = factor(
            pointer(indptr), pointer(indices), pointer(data), analysis.symbolic,
            ctypes.byref(common),
        )  # fmt: skip
        self.numeric = ctypes.c_void_p(found)
        finalize(self, _free, getattr(library, f"{self.prefix}free_numeric"), self.numeric, common)
        _check(common.status, analysis.n)
        # klu_numeric starts with n, the number of blocks, and the entries of L and U
        counts = (ctypes.c_int * 4).from_address(found)
        self.nnz = int(counts[2] + counts[3])
        self.notes = [f"direct: klu found {counts[1]} diagonal blocks"]

    def solve(self, b: Array, transposed: str) -> Array:
        """Return the solution of a block of right-hand sides."""
        n, k = b.shape
        solved = np.array(b, self.dtype, order="F")
        name = "solve" if transposed == "N" else "tsolve"
        turn = [int(transposed == "H")] if name == "tsolve" and self.prefix == "klu_z_" else []
        common = self.analysis.common
        getattr(self.analysis.library, self.prefix + name)(
            self.analysis.symbolic, self.numeric, n, k, pointer(solved), *turn, ctypes.byref(common)
        )
        _check(common.status, n)
        return np.ascontiguousarray(solved, b.dtype)


def _free(function: Any, value: ctypes.c_void_p, common: _Common) -> None:
    if value:
        function(ctypes.byref(value), ctypes.byref(common))


def _check(status: int, n: int) -> None:
    if status == _SINGULAR:
        raise singular("KLU met a pivot of zero")
    if status in (_OUT_OF_MEMORY, _TOO_LARGE):
        raise InvalidMatrix(
            f"Direct: KLU has no memory for the factors of {n} rows; use an iterative solver"
        )
    if status != 0:
        raise InvalidMatrix(f"Direct: KLU failed with status {status} (klu.h names it)")
