"""The engine CHOLMOD of SuiteSparse, through scikit-sparse, for Hermitian matrices."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import InvalidMatrix
from .engine import Engine, EngineFactors, LogDeterminant

if TYPE_CHECKING:
    from ...core.executor import Array, Executor
    from ...core.formats import Csr


class Cholmod(Engine):
    """CHOLMOD: sparse Cholesky factors of Hermitian matrices, in double precision.

    Large positive definite matrices get supernodal factors ``L L^H``, small ones ``L D L^H``
    without pivoting, which also exists for many indefinite matrices. Matrices of float32 are
    factorized in float64.

    References
    ----------
    Y. Chen, T. A. Davis, W. W. Hager and S. Rajamanickam, Algorithm 887: CHOLMOD, ACM Trans. Math.
    Softw. 35 (2008).
    """

    name = "cholmod"
    library = "CHOLMOD of SuiteSparse, through scikit-sparse"
    licence = "LGPL-2.1-or-later, supernodal factors GPL-2.0-or-later; scikit-sparse BSD-2-Clause"
    orderings = ("default", "best", "natural", "metis", "nesdis", "amd", "colamd")

    _symbolic: Any = None

    @classmethod
    def objection(cls, executor: Executor) -> str:
        """Return why the engine cannot be used here: scikit-sparse is missing or too new."""
        if find_spec("sksparse") is None:
            return 'scikit-sparse is missing; pip install "scikit-sparse<0.5" brings it'
        from sksparse import cholmod

        if not hasattr(cholmod, "analyze"):
            return 'this scikit-sparse has no analyze(); pip install "scikit-sparse<0.5"'
        return ""

    @property
    def follows_exactly(self) -> bool:
        """True: the analysis does not depend on values."""
        return True

    def analyse(self, A: Csr) -> None:
        """Compute the ordering and the supernodes."""
        from sksparse.cholmod import analyze

        ordering = "default" if self.ordering is None else self.ordering
        self._symbolic = analyze(_hermitian(A), ordering_method=ordering)

    def factorize(self, A: Csr) -> EngineFactors:
        """Factorize with the analysis of the pattern."""
        from sksparse.cholmod import CholmodError, CholmodOutOfMemoryError

        S = _hermitian(A)
        try:
            return CholmodFactors(self._symbolic.cholesky(S), S)
        except CholmodOutOfMemoryError:
            raise InvalidMatrix(
                "Direct: the factors do not fit into memory; use an iterative solver"
            ) from None
        except CholmodError as error:
            raise InvalidMatrix(
                f"Direct: CHOLMOD says {str(error).rpartition(': ')[2]!r}: the matrix is singular "
                "or indefinite; use engine='superlu'"
            ) from None


def _hermitian(A: Csr) -> Any:
    S = A.to_scipy().tocsc()
    S.sum_duplicates()
    S.sort_indices()
    if (S != S.conj().T).nnz:
        raise InvalidMatrix(
            "Direct: CHOLMOD reads one triangle, and the matrix is not Hermitian; use "
            "engine='superlu'"
        )
    return S.astype(np.complex128 if S.dtype.kind == "c" else np.float64)


class CholmodFactors(EngineFactors):
    """The factor of CHOLMOD."""

    def __init__(self, factor: Any, S: Any) -> None:
        self.factor, self.dtype = factor, S.dtype
        self.notes = []
        lower, pivots = factor.L_D()
        self.pivots, self.nnz = np.real(pivots.diagonal()), int(lower.nnz)
        largest = np.abs(S.data).max(initial=0.0)
        tiny = S.shape[0] * np.finfo(np.float64).eps * largest
        if not np.all(np.isfinite(self.pivots)) or np.any(np.abs(self.pivots) <= tiny):
            raise InvalidMatrix(
                "Direct: CHOLMOD met a pivot of zero: the matrix is singular to working precision, "
                "or indefinite and has no factors without pivoting; use engine='superlu'"
            )
        if np.any(self.pivots < 0):
            self.notes.append(
                "direct: the matrix is indefinite, and its factors were made without pivoting"
            )

    def solve(self, b: Array, transposed: str) -> Array:
        """Return the solution of a block; the transpose is the conjugate."""
        if not b.size:
            return b
        given = np.asarray(b, self.dtype)
        if transposed == "T" and self.dtype.kind == "c":
            solved = self.factor.solve_A(given.conj()).conj()
        else:
            solved = self.factor.solve_A(given)
        return np.ascontiguousarray(solved, b.dtype)

    def log_determinant(self) -> LogDeterminant:
        """Return the determinant from the pivots."""
        sign = float(np.prod(np.sign(self.pivots)))
        return LogDeterminant(sign, float(np.sum(np.log(np.abs(self.pivots)))))

    def inertia(self) -> tuple[int, int, int]:
        """Return the numbers of positive, negative and zero eigenvalues, by Sylvester's law."""
        negative = int(np.sum(self.pivots < 0))
        return self.pivots.size - negative, negative, 0
