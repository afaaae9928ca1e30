"""Engines for banded and dense matrices on the host: LAPACK, which comes with SciPy."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import InvalidMatrix
from .engine import Engine, EngineFactors, LogDeterminant, singular

if TYPE_CHECKING:
    from ...core.executor import Array
    from ...core.formats import Csr

#: LAPACK's codes for transposed solves.
_TRANSPOSED = {"N": 0, "T": 1, "H": 2}


class _Lapack(Engine):
    """The common base of both engines."""

    library = "LAPACK in SciPy"
    licence = "BSD-3-Clause"
    orderings = ()

    @property
    def follows_exactly(self) -> bool:
        """True: the analysis does not depend on values."""
        return True

    def analyse(self, A: Csr) -> None:
        """Do nothing: there is no ordering to compute."""

    def factorize(self, A: Csr) -> EngineFactors:
        """Factorize with partial pivoting."""
        return self._made(A.without_duplicates())

    @abstractmethod
    def _made(self, A: Csr) -> EngineFactors:
        """Return the factors of a matrix without duplicates."""


class Banded(_Lapack):
    """LU factors of a matrix with a narrow band, in LAPACK's band storage.

    References
    ----------
    E. Anderson et al., LAPACK Users' Guide, 3rd ed., SIAM 1999: gbtrf and gbtrs.
    """

    name = "banded"

    def _made(self, A: Csr) -> EngineFactors:
        return BandFactors(A)


class DenseEngine(_Lapack):
    """LU factors of a matrix that is stored as a dense one.

    References
    ----------
    E. Anderson et al., LAPACK Users' Guide, 3rd ed., SIAM 1999: getrf and getrs.
    """

    name = "dense"

    def _made(self, A: Csr) -> EngineFactors:
        return DenseFactors(A)


class _Pivoted(EngineFactors):
    """Factors with row exchanges: ``diagonal`` is the diagonal of U, ``pivots`` the exchanges."""

    diagonal: np.ndarray[Any, Any]
    pivots: np.ndarray[Any, Any]

    def log_determinant(self) -> LogDeterminant:
        """Return the determinant from the diagonal of U and the exchanges of rows."""
        sizes = np.abs(self.diagonal)
        sign = np.prod(self.diagonal / sizes) if sizes.size else 1.0
        if np.count_nonzero(self.pivots != np.arange(self.pivots.size)) % 2:
            sign = -sign
        sign = sign if np.iscomplexobj(self.diagonal) else float(np.real(sign))
        return LogDeterminant(sign, float(np.sum(np.log(sizes))))


class BandFactors(_Pivoted):
    """The factors of a banded matrix."""

    def __init__(self, A: Csr) -> None:
        from scipy.linalg import get_lapack_funcs

        n, indptr, columns = A.shape[0], A.indptr, A.indices
        rows = np.repeat(np.arange(n), np.diff(indptr))
        apart = rows - columns
        self.lower, self.upper = (
            max(int(apart.max(initial=0)), 0),
            max(int(-apart.min(initial=0)), 0),
        )
        height = 2 * self.lower + self.upper + 1
        try:
            band = np.zeros((height, n), A.dtype, order="F")
        except MemoryError:
            raise InvalidMatrix(
                f"Direct: a band of {self.lower} and {self.upper} diagonals does not fit into "
                "memory; use engine='superlu'"
            ) from None
        band[self.lower + self.upper + apart, columns] = A.data
        functions: Any = get_lapack_funcs(("gbtrf", "gbtrs"), (band,))
        factorize, self._solve = functions
        self._band, self.pivots, info = factorize(band, self.lower, self.upper, overwrite_ab=1)
        _check(info)
        self.diagonal = self._band[self.lower + self.upper]
        self.nnz = height * n
        self.notes = [f"direct: a band of {self.lower} and {self.upper} diagonals"]

    def solve(self, b: Array, transposed: str) -> Array:
        """Return the solution of a block of right-hand sides."""
        x, _ = self._solve(
            self._band, self.lower, self.upper, b, self.pivots, trans=_TRANSPOSED[transposed]
        )
        return x


class DenseFactors(_Pivoted):
    """The factors of a matrix that is stored as a dense one."""

    def __init__(self, A: Csr) -> None:
        from scipy.linalg import get_lapack_funcs

        n = A.shape[0]
        try:
            dense = np.zeros((n, n), A.dtype, order="F")
        except MemoryError:
            raise InvalidMatrix(
                f"Direct: a dense matrix of {n} rows does not fit into memory; use engine='superlu'"
            ) from None
        dense[np.repeat(np.arange(n), np.diff(A.indptr)), A.indices] = A.data
        functions: Any = get_lapack_funcs(("getrf", "getrs"), (dense,))
        factorize, self._solve = functions
        self._factors, self.pivots, info = factorize(dense, overwrite_a=1)
        _check(info)
        self.diagonal = np.diagonal(self._factors)
        self.nnz = n * n
        self.notes = []

    def solve(self, b: Array, transposed: str) -> Array:
        """Return the solution of a block of right-hand sides."""
        x, _ = self._solve(self._factors, self.pivots, b, trans=_TRANSPOSED[transposed])
        return x


def _check(info: int) -> None:
    if info > 0:
        raise singular(f"pivot {info} is zero")
