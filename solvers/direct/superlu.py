"""The engine SuperLU, which comes with SciPy: on the host, always available."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import InvalidMatrix
from .engine import Engine, EngineFactors, LogDeterminant, singular
from .row_scaling import scale_of_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from ...core.executor import Array
    from ...core.formats import Csr

    Numbers = np.ndarray[Any, Any]

#: If only the ordering is needed, drop entries below this fraction of the diagonal.
DROPPED = 0.5


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

    def analyse(self, A: Csr) -> None:
        """Choose the ordering: minimum degree of A + A^T if the pattern is symmetric."""
        pattern = A.to_scipy()
        pattern.sum_duplicates()
        pattern.data = np.ones(pattern.nnz, np.int8)
        if self.ordering is None:
            symmetric = pattern.shape[0] > 0 and (pattern != pattern.T).nnz == 0
            self._chosen = "MMD_AT_PLUS_A" if symmetric else "COLAMD"
        else:
            self._chosen = self.ordering
        self._columns = self._order(pattern) if self.many else None

    @property
    def follows_exactly(self) -> bool:
        """Whether factors do not depend on earlier matrices, in any bit."""
        return self.many

    @property
    def _is_symmetric(self) -> bool:
        """Whether the ordering assumes pivots on the diagonal, which SuperLU then prefers."""
        return self._chosen == "MMD_AT_PLUS_A"

    def _call(self, factorized: Any, S: Any, order: str, **options: Any) -> Any:
        """Return the factors that a SciPy function computes."""
        return factorized(
            S,
            permc_spec=order,
            diag_pivot_thresh=0.01 if self._is_symmetric else 1.0,
            options={"SymmetricMode": self._is_symmetric},
            **options,
        )

    def _order(self, pattern: csr_array) -> Numbers | None:
        """Return the ordering of the columns; None if the diagonal has missing entries."""
        from scipy.sparse.linalg import spilu

        S = pattern.tocsc()
        column = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
        S.data = np.where(S.indices == column, 1.0, 0.5 * DROPPED)
        try:  # an incomplete factorization has the same ordering
            found = self._call(spilu, S, self._chosen, drop_tol=DROPPED, fill_factor=1)
        except (RuntimeError, MemoryError):
            return None
        return _columns(found)

    def _ordered(self, rows: csr_array) -> Any:
        """Return the permuted columns of a matrix, and rows if they follow the columns."""
        if self._columns is None:
            return rows.tocsc()
        if self._is_symmetric:
            rows = rows[self._columns]
        place = np.empty_like(self._columns, rows.indices.dtype)
        place[self._columns] = np.arange(place.size)
        relabelled = type(rows)((rows.data, place[rows.indices], rows.indptr), rows.shape)
        return relabelled.tocsc()

    def factorize(self, A: Csr) -> EngineFactors:
        """Factorize; a second matrix with the same pattern reuses the column ordering."""
        from scipy.sparse.linalg import splu

        rows = A.to_scipy()
        rows.sum_duplicates()
        scale = scale_of_rows(rows, on_diagonal=self._is_symmetric)
        if scale is not None:
            rows = rows.copy()
            rows.data *= np.repeat(scale, np.diff(rows.indptr))
        known = self._columns
        try:
            order = self._chosen if known is None else "NATURAL"
            lu = self._call(splu, self._ordered(rows), order)
        except RuntimeError as error:
            raise singular(f"SuperLU says {str(error).lower()!r}") from None
        except MemoryError:
            raise InvalidMatrix(
                "Direct: the factors do not fit into memory; use an iterative solver"
            ) from None
        if known is None and not self.many:
            self._columns = _columns(lu)
        return SuperLUFactors(lu, known, scale, self._is_symmetric)


class SuperLUFactors(EngineFactors):
    """The factors of SuperLU.

    Parameters
    ----------
    lu : SuperLU
        SciPy's object.
    columns : array of int, optional
        The order in which SuperLU received the columns.
    scale : array, optional
        The row scale of the matrix that SuperLU received.
    rows_follow : bool
        Whether the rows have the same order as the columns.
    """

    def __init__(
        self, lu: Any, columns: Numbers | None, scale: Numbers | None, rows_follow: bool
    ) -> None:
        self.lu, self.columns, self.scale, self.rows_follow = lu, columns, scale, rows_follow
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
        # Q A P y = Q b, x = P y; the transpose has Q^T in the place of P
        before, after = self.rows_follow, True
        if transposed != "N":
            before, after = after, before
        y = self.lu.solve(np.ascontiguousarray(b[self.columns] if before else b), transposed)
        if not after:
            return y
        x = np.empty(b.shape, b.dtype)
        x[self.columns] = y
        return x

    def log_determinant(self) -> LogDeterminant:
        """Return the determinant from the diagonal of U and the parities of the permutations."""
        diagonal = self.lu.U.diagonal()
        sign = np.prod(diagonal / np.abs(diagonal)) if diagonal.size else 1.0
        # if rows follow the columns, their permutation cancels the sign
        columns = None if self.rows_follow else self.columns
        for order in (self.lu.perm_r, self.lu.perm_c, columns):
            if order is not None:
                sign = sign * parity(order)
        sign = sign if np.iscomplexobj(diagonal) else float(np.real(sign))
        logarithm = float(np.sum(np.log(np.abs(diagonal))))
        if self.scale is not None:
            logarithm -= float(np.sum(np.log(self.scale, dtype=np.float64)))
        return LogDeterminant(sign, logarithm)


def _columns(lu: Any) -> Numbers:
    """Return the column indices in the order of the factors."""
    return np.argsort(lu.perm_c)  # perm_c has the new position of each column


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
