"""Direct batch solves by cuDSS: one analysis, and one verification of all systems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.batch.csr import BatchCsr
from ...core.batch.systems import matrix_of_each
from ...core.dtypes import real_dtype
from ...core.errors import InvalidMatrix
from ...core.formats import Csr
from ...core.status import Stop
from .cudss_analysis import Analysis, MatrixSpan, Refused

if TYPE_CHECKING:
    from ...core.batch.factors import FactoredSystems
    from ...core.executor import Array

Numbers = np.ndarray[Any, Any]

#: Up to this number of rows, cuDSS factorizes several matrices together, as its uniform batch. On
#: an H200, 256 matrices of 1,024 rows took 0.12 times the time of separate factorizations, 64 of
#: 4,096 rows 1.2 times.
UNIFORM_ROWS = 2048

#: Upper bound in bytes of the values of matrices that are factorized together.
UNIFORM_BYTES = 1 << 25

#: Upper bound in bytes of double-precision values that are verified together.
JUDGED_BYTES = 1 << 28

#: Residual norm of a stable method, in unit roundoffs of the norm of ``|A| |x| + |b|``; the batch
#: kernels use the same value.
STABLE = 16.0


class SystemsByCuDss:
    """Solves batches; analyses are kept from one solve to the next.

    Parameters
    ----------
    cudss : module
        ``nvmath.bindings.cudss``.
    ordering : str, optional
        A member of ``cudss.ReorderingAlg``.
    """

    def __init__(self, cudss: Any, ordering: str | None) -> None:
        self.cudss, self.ordering = cudss, ordering
        #: Analyses, by symmetry and by the number of matrices that are factorized together.
        self._analyses: dict[tuple[bool, int], Analysis] = {}
        self._facts: _PatternFacts | None = None

    def solve(self, pattern: Csr, systems: FactoredSystems) -> bool:
        """Solve systems; leave a system undecided if its residual exceeds a stable method's.

        Returns
        -------
        bool
            False, without any solve, for initial guesses and for patterns with duplicates.
        """
        if systems.started or not pattern.nnz or pattern.without_duplicates() is not pattern:
            return False
        matrix = matrix_of_each(systems)
        if self._facts is None or not self._facts.suit(pattern, systems.b.dtype):
            self._facts = _PatternFacts(pattern, systems.b.dtype)
        facts = self._facts
        finite, hermitian = _facts_of_values(facts, systems.values)
        chosen = np.unique(matrix)
        chosen = chosen[finite[chosen]]
        while chosen.size:
            x = pattern.executor.zeros(systems.b.shape, systems.b.dtype)
            failed = [
                k
                for kind in (True, False)
                for k in self._solve(
                    pattern, systems, matrix, chosen[hermitian[chosen] == kind], kind, x
                )
            ]
            norms = _norms(facts, systems, matrix, x)
            failed += matrix[~np.isfinite(norms).all(axis=0)].tolist()
            left = np.setdiff1d(chosen, failed)
            if left.size == chosen.size:
                _judge(pattern, systems, np.isin(matrix, chosen), norms, x)
                break
            chosen = left  # results do not depend on failed factorizations
        return True

    def _solve(
        self, pattern: Csr, systems: FactoredSystems, matrix: Numbers, chosen: Numbers,
        hermitian: bool, x: Array,
    ) -> list[int]:  # fmt: skip
        """Solve the systems of chosen matrices; return the matrices that cuDSS refuses."""
        if not chosen.size:
            return []
        first, last = (np.searchsorted(matrix, chosen, side=side) for side in ("left", "right"))
        together = self._together(pattern, systems.values, chosen, last - first)
        refused: list[int] = []
        if together == 1:
            spans = zip(chosen.tolist(), first.tolist(), last.tolist(), strict=True)
            pieces = [MatrixSpan(*span) for span in spans]
            values = systems.values
            return self._by_analysis(pattern, values, systems.b, x, hermitian, 1, pieces)
        for k in range(0, chosen.size, together):
            ks, on = chosen[k : k + together], pattern.executor
            if ks[-1] - ks[0] + 1 == ks.size:
                which: Any = slice(int(ks[0]), int(ks[-1]) + 1)
                where: Any = slice(int(first[k]), int(last[k + ks.size - 1]))
            else:  # matrices between them do not affect the results
                which = on.from_host(ks)
                where = on.from_host(np.flatnonzero(np.isin(matrix, ks)))
            values, b, solution = systems.values[which], systems.b[where], x[where]
            piece = [MatrixSpan(0, 0, int(b.shape[0]))]
            if self._by_analysis(pattern, values, b, solution, hermitian, ks.size, piece):
                refused += ks.tolist()
            elif not isinstance(where, slice):
                x[where] = solution
        return refused

    def _by_analysis(
        self, pattern: Csr, values: Array, b: Array, x: Array, hermitian: bool, size: int,
        pieces: list[MatrixSpan],
    ) -> list[int]:  # fmt: skip
        """Solve systems of ``size`` matrices together; return the first matrix of each refused."""
        every = [piece.matrix for piece in pieces]
        try:
            analysis = self._analysis(pattern, values[every[0]], hermitian, size)
            return [piece.matrix for piece in analysis.solve_systems(values, b, x, pieces)]
        except (InvalidMatrix, Refused):
            return every

    def _together(self, pattern: Csr, values: Array, chosen: Numbers, columns: Numbers) -> int:
        """Return the number of matrices that are factorized together; 1 means separately."""
        if pattern.shape[0] > UNIFORM_ROWS or not hasattr(self.cudss.ConfigParam, "UBATCH_SIZE"):
            return 1
        if columns.min() != columns.max():
            return 1
        return max(1, min(int(chosen.size), UNIFORM_BYTES // _bytes_of_row(values)))

    def _analysis(self, pattern: Csr, values: Array, hermitian: bool, size: int) -> Analysis:
        known = self._analyses.get((hermitian, size))
        if known is None or known.dtype != values.dtype or not known.suits(pattern, hermitian):
            where = pattern.executor, pattern.shape
            A = Csr._from_arrays(*where, values, pattern.indices, pattern.indptr)
            known = Analysis(self.cudss, A, hermitian, self.ordering, False, size)
            self._analyses[hermitian, size] = known
        return known


def _bytes_of_row(values: Array) -> int:
    """Return the bytes of the values of a matrix."""
    return int(values.shape[1]) * int(values.dtype.itemsize)


def _parts(rows: int, nbytes: int) -> list[slice]:
    """Return consecutive parts of rows, each of at most JUDGED_BYTES."""
    size = max(1, JUDGED_BYTES // max(nbytes, 1))
    return [slice(first, first + size) for first in range(0, rows, size)]


class _PatternFacts:
    """Constant facts about a pattern, which each solve reuses.

    Parameters
    ----------
    pattern : Csr
        The pattern of all matrices.
    dtype : dtype
        The dtype of the systems.

    Attributes
    ----------
    wide : dtype
        The dtype in which residuals are computed.
    one : Csr
        A matrix with the pattern in this dtype; it keeps the plans of products.
    mirrored : array or None
        The position of each entry's mirror image; None without symmetry.
    """

    def __init__(self, pattern: Csr, dtype: np.dtype[Any]) -> None:
        on, xp = pattern.executor, pattern.executor.xp
        self.pattern, self.dtype = pattern, dtype
        self.wide = np.result_type(dtype, np.float64)
        none = on.zeros((pattern.nnz,), self.wide)
        self.one = Csr._from_arrays(on, pattern.shape, none, pattern.indices, pattern.indptr)
        turned, order = pattern.transposed_pattern()
        is_symmetric = bool(xp.array_equal(turned.indptr, pattern.indptr)) and bool(
            xp.array_equal(turned.indices, pattern.indices)
        )
        self.mirrored: Array | None = order if is_symmetric else None

    def suit(self, pattern: Csr, dtype: np.dtype[Any]) -> bool:
        """Return whether these facts belong to a pattern and a dtype."""
        own = self.pattern
        same = pattern.indices is own.indices and pattern.indptr is own.indptr
        return same and dtype == self.dtype


def _facts_of_values(facts: _PatternFacts, values: Array) -> tuple[Numbers, Numbers]:
    """Return whether the values of each matrix are finite, and whether it is Hermitian."""
    on, count = facts.pattern.executor, int(values.shape[0])
    xp = on.xp
    finite, hermitian = on.zeros((count,), np.uint8), on.zeros((count,), np.uint8)
    for part in _parts(count, _bytes_of_row(values)):
        finite[part] = xp.isfinite(values[part]).all(axis=1)
        if facts.mirrored is not None:
            mirrored = values[part][:, facts.mirrored].conj()
            hermitian[part] = (values[part] == mirrored).all(axis=1)
    found = on.transfer(finite, hermitian).read()
    return found[0] != 0, found[1] != 0


def _norms(facts: _PatternFacts, systems: FactoredSystems, matrix: Numbers, x: Array) -> Numbers:
    """Return norms of each system in double precision, shape (3, s).

    These are the norms of the right-hand side, of the true residual, and of ``|A| |x| + |b|``. A
    norm is infinite if its squares underflow: it allows no verdict.
    """
    on, one, wide = facts.pattern.executor, facts.one, facts.wide
    xp = on.xp
    found = on.allocate((3, int(x.shape[0])), np.dtype(np.float64))
    is_own = systems.matrix is None and systems.width == 1
    for part in _parts(int(x.shape[0]), _bytes_of_row(systems.values) * 2):
        values = systems.values[part if is_own else on.from_host(matrix[part])]
        values, b, solution = (
            a.astype(wide, copy=False) for a in (values, systems.b[part], x[part])
        )
        batch = BatchCsr._from_values(one, (int(b.shape[0]),), values)
        sizes = BatchCsr._from_values(
            one, batch.batch_shape, xp.abs(values).astype(wide, copy=False)
        )
        terms = xp.abs(b) + xp.abs(sizes @ xp.abs(solution).astype(wide, copy=False))
        for row, vectors in enumerate((b, b - batch @ solution, terms)):
            squares = xp.abs(vectors) ** 2
            norm = xp.sqrt(squares.sum(axis=1))
            lost = (norm == 0) & (vectors != 0).any(axis=1)
            found[row, part] = xp.where(lost, np.inf, norm)
    return np.asarray(on.transfer(found).read()[0])


def _judge(
    pattern: Csr, systems: FactoredSystems, solved: Numbers, norms: Numbers, x: Array
) -> None:
    """Write the verdicts and solutions of solved systems that need no further tests."""
    length, residual, terms = norms
    tolerances, verdicts = systems.tolerances, systems.verdicts
    threshold = np.maximum(tolerances.relative * length, tolerances.absolute)
    unit = float(np.finfo(real_dtype(x.dtype)).eps)
    claimed = solved & (residual <= threshold) & (residual <= STABLE * unit * terms)
    claimed &= (length == 0) | ((length >= systems.least) & (length <= systems.most))
    claimed &= (residual == 0) | (residual >= systems.least_norm)
    verdicts.codes[claimed], verdicts.iterations[claimed] = Stop.CONVERGED, 1
    verdicts.norms[claimed], verdicts.thresholds[claimed] = residual[claimed], threshold[claimed]
    if claimed.all():
        systems.x[...] = x
    else:
        rows = pattern.executor.from_host(np.flatnonzero(claimed))
        systems.x[rows] = x[rows]
