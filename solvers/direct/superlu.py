"""SuperLU, which comes with SciPy: on the host, everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import InvalidMatrix
from .engine import Engine, Factors, LogDeterminant
from .row_scaling import scale_of_rows

if TYPE_CHECKING:
    from ...core.executor import Array, Executor
    from ...core.formats import Csr

    Numbers = np.ndarray[Any, Any]


class SuperLU(Engine):
    """Sequential SuperLU with partial pivoting.

    References
    ----------
    J. W. Demmel et al., A supernodal approach to sparse partial pivoting, SIAM J. Matrix Anal.
    Appl. 20 (1999).
    """

    name = "superlu"
    library = "SuperLU in SciPy"
    licence = "BSD-3-Clause"
    orderings = ("COLAMD", "MMD_AT_PLUS_A", "MMD_ATA", "NATURAL")

    _columns: Numbers | None = None

    @classmethod
    def objection(cls, executor: Executor) -> str:
        """Return why the engine cannot be used here: never."""
        return ""

    @property
    def executor(self) -> str:
        """SuperLU takes NumPy arrays."""
        return "reference"

    def analyse(self, A: Csr) -> None:
        """Choose the ordering: minimum degree of A + A^T where the pattern is symmetric."""
        self._columns = None
        if self.ordering is None:
            S = A.to_scipy()
            pattern = S.astype(bool).astype(np.int8)
            symmetric = S.shape[0] > 0 and (pattern != pattern.T).nnz == 0
            self._chosen = "MMD_AT_PLUS_A" if symmetric else "COLAMD"
        else:
            self._chosen = self.ordering

    def factorize(self, A: Csr) -> Factors:
        """Factorize; a second matrix of the same pattern takes the columns' order of the first."""
        from scipy.sparse.linalg import splu

        rows = A.to_scipy()
        rows.sum_duplicates()
        symmetric = self._chosen == "MMD_AT_PLUS_A"
        scale = scale_of_rows(rows, on_diagonal=symmetric)
        S = rows.tocsc()
        if scale is not None:
            S.data *= scale[S.indices]
        known = self._columns is not None
        if known:
            S = S[:, self._columns]
        try:
            # SuperLU's symmetric mode prefers the diagonal, for which that order was made
            factorized: Any = splu  # the stubs take the orderings as literals
            lu = factorized(
                S,
                permc_spec="NATURAL" if known else self._chosen,
                diag_pivot_thresh=0.01 if symmetric else 1.0,
                options={"SymmetricMode": symmetric},
            )
        except RuntimeError as error:
            raise InvalidMatrix(
                f"Direct: SuperLU says {str(error).lower()!r}: the matrix is singular to working "
                "precision; use gmres, or least squares"
            ) from None
        except MemoryError:
            raise InvalidMatrix(
                "Direct: the factors do not fit into memory; use an iterative solver"
            ) from None
        order = self._columns if known else None
        if order is None:
            # lu.perm_c[j] is where column j went: its inverse lists the columns in their new order
            self._columns = np.argsort(lu.perm_c)
        return SuperLUFactors(lu, order, scale)


class SuperLUFactors(Factors):
    """The factors of SuperLU.

    Parameters
    ----------
    lu : SuperLU
        SciPy's object.
    columns : array of int, optional
        The order in which it was given the columns.
    scale : array, optional
        The factors of the rows of the matrix that it was given.
    """

    def __init__(self, lu: Any, columns: Numbers | None, scale: Numbers | None) -> None:
        self.lu, self.columns, self.scale = lu, columns, scale
        self.nnz = int(lu.nnz)
        self.notes = []

    def solve(self, b: Array, transposed: str) -> Array:
        """Return the solution of a block of right-hand sides."""
        if self.scale is None:
            return self._solved(b, transposed)
        scale = self.scale[:, None]
        if transposed == "N":  # R A x = R b
            return self._solved(b * scale, transposed)
        return self._solved(b, transposed) * scale  # A^T R y = b, x = R y

    def _solved(self, b: Array, transposed: str) -> Array:
        if self.columns is None:
            return self.lu.solve(np.ascontiguousarray(b), transposed)
        if transposed == "N":  # (A P) y = b, x = P y
            x = np.empty(b.shape, b.dtype)
            x[self.columns] = self.lu.solve(np.ascontiguousarray(b), "N")
            return x
        return self.lu.solve(np.ascontiguousarray(b[self.columns]), transposed)

    def log_determinant(self) -> LogDeterminant:
        """Return the determinant from the diagonal of U and the parities of the permutations."""
        diagonal = self.lu.U.diagonal()
        sign = np.prod(diagonal / np.abs(diagonal)) if diagonal.size else 1.0
        for order in (self.lu.perm_r, self.lu.perm_c, self.columns):
            if order is not None:
                sign = sign * parity(order)
        sign = sign if np.iscomplexobj(diagonal) else float(np.real(sign))
        logarithm = float(np.sum(np.log(np.abs(diagonal))))
        if self.scale is not None:
            logarithm -= float(np.sum(np.log(self.scale, dtype=np.float64)))
        return LogDeterminant(sign, logarithm)


def parity(permutation: np.ndarray[Any, Any]) -> int:
    """Return 1 for an even permutation, -1 for an odd one.

    Examples
    --------
    >>> parity(np.array([1, 0, 2]))
    -1
    """
    seen = np.zeros(permutation.size, bool)
    cycles = 0
    for start in range(permutation.size):
        if not seen[start]:
            cycles += 1
            at = start
            while not seen[at]:
                seen[at] = True
                at = int(permutation[at])
    return -1 if (permutation.size - cycles) % 2 else 1
