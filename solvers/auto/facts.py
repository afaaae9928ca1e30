"""The properties of a matrix that ``wl.solve`` uses, computed once on the matrix's executor."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ...core.dtypes import real_dtype
from ...core.executor import Array
from ...core.formats import Csr, Matrix
from ...core.formats.rowwise import known_canonical, row_bounds
from ...core.host_rows import reduced_rows
from ...core.operands import as_column
from ...core.operations import coarsen, facts, structure, summary, values, vector

#: Number of unit roundoffs by which an entry may differ from its mirror image, as in
#: ``facts.symmetry``.
SLACK = 8

#: Count the balanced rows of a matrix with at least this many rows. Smaller matrices are solved at
#: once.
ROWS_FOR_BALANCE = 256

#: Range of the ratio of off-diagonal row sum to diagonal entry in a balanced row. Below 0.9, the
#: condition number of the scaled matrix is at most 19, and CG with Jacobi takes 20 iterations;
#: above 1, the matrix is probably indefinite.
BALANCE = (0.9, 1.001)

#: A matrix looks elliptic if more than this fraction of its rows is balanced. Rows at a boundary
#: are not balanced: 31 % of the rows of a grid of 17^3 points.
BALANCED_PART_OF_ELLIPTIC = 0.5

#: A sum counts as zero if it is at most this many unit roundoffs per entry of a row.
SUM_SLACK = 4

#: Matrices on the host with at most this many entries are summed by NumPy: compiled calls take
#: longer.
FEW_ENTRIES = 50_000

#: One thread of the host finds all facts in a single pass over matrices with at most this many
#: entries. On one core of a Xeon, this takes 1.0 ms for 175,000 entries of a Markov chain and 2.5
#: ms for 199,200 entries of a symmetric matrix. Separate passes take 3.6 and 2.5 ms, plus 0.7 ms
#: for the bound that the single pass also finds.
ENTRIES_OF_ONE_PASS = 200_000

#: Skip the structural analysis of matrices with fewer rows: every method is fast for them.
ROWS_OF_A_SMALL_SYSTEM = 1500

#: Examine the signs of row sums only if the largest row sum of ``|D^-1 A|`` exceeds this value.
ROW_SUM_OF_WAVES = 2.002

#: The operations that compute the facts.
FACTS_RUN = ("csr.diagonal", "facts", "coarsen.balanced")


@dataclass(frozen=True)
class SystemFacts:
    """A few numbers that indicate suitable methods for a square matrix.

    Attributes
    ----------
    rows : int
        Number of rows.
    hermitian : bool
        Whether the matrix equals its conjugate transpose to rounding.
    positive : int
        Number of diagonal values with a positive real part.
    not_invertible : int
        Number of diagonal values without an inverse, in particular zeros.
    balanced : int
        Number of rows with a nearly zero sum, a positive diagonal and mostly negative other
        entries, as in a discretized elliptic equation. It is not computed for small matrices, where
        it is 0.
    annihilates_constants : bool
        Whether a Hermitian matrix with a positive diagonal maps constants to zero, to rounding.
    negative_for_constants : bool
        Whether ``x^H A x`` of such a matrix is negative for constant ``x``: then it is indefinite.
    constant_diagonal : bool
        Whether all diagonal values are equal, so that Jacobi has no effect.
    leans_indefinite : bool
        Whether most rows of a small Hermitian matrix with a constant diagonal have a negative sum,
        as in wave problems: it is probably indefinite.
    bound : float or None
        The largest row sum of ``|D^-1 A|``, if it was computed together with the other facts.
    stated : str or None
        The user's hint that the facts were changed by: "symmetric" or "positive_definite".
    """

    rows: int
    hermitian: bool
    positive: int
    not_invertible: int
    balanced: int = 0
    annihilates_constants: bool = False
    negative_for_constants: bool = False
    constant_diagonal: bool = False
    leans_indefinite: bool = False
    bound: float | None = field(default=None, compare=False)
    stated: str | None = field(default=None, compare=False)

    @property
    def may_be_definite(self) -> bool:
        """Whether no fact contradicts a Hermitian positive definite matrix."""
        definite = self.hermitian and self.positive == self.rows
        return definite and not self.negative_for_constants

    @property
    def looks_elliptic(self) -> bool:
        """Whether algebraic multigrid is likely to suit the matrix."""
        return self.may_be_definite and self.looks_diffusive

    @property
    def looks_diffusive(self) -> bool:
        """Whether most rows look like diffusion, with or without convection."""
        return self.positive == self.rows and self.balanced > BALANCED_PART_OF_ELLIPTIC * self.rows


def find_facts(A: Matrix) -> SystemFacts:
    """Return the facts about a square matrix; only a few numbers are copied from its device."""
    if A.partition is not None:
        return _facts_of_group(A)
    rows: Csr = A.T if A.format == "csc" else A.asformat("csr")
    system_facts = _in_one_pass(rows) or _one_by_one(rows)
    if rows is not A and system_facts.bound is not None and A.format == "csc":
        system_facts = replace(system_facts, bound=None)  # the bound for columns
    if not system_facts.may_be_definite or not system_facts.rows:
        return system_facts
    annihilates, negative = _on_constants(rows)
    if not annihilates and not negative:
        leans = (
            system_facts.bound is not None
            and system_facts.bound > ROW_SUM_OF_WAVES
            and system_facts.constant_diagonal
        )
        leans = (
            leans
            and ROWS_FOR_BALANCE <= system_facts.rows < ROWS_OF_A_SMALL_SYSTEM
            and _has_negative_rows(rows)
        )
        return replace(system_facts, leans_indefinite=True) if leans else system_facts
    return replace(system_facts, annihilates_constants=annihilates, negative_for_constants=negative)


def _in_one_pass(A: Csr) -> SystemFacts | None:
    """Return the facts about a matrix with few entries, without the facts about constants.

    None for other matrices, for rows that are unsorted or have duplicates, and for values that are
    not finite.
    """
    executor, real = A.executor, real_dtype(A.dtype)
    if not 0 < A.nnz <= ENTRIES_OF_ONE_PASS or A.dtype.name not in summary.square.dtypes:
        return None
    if not executor.supports(summary.square):
        return None
    counts, bound = np.empty(7, np.int64), np.empty(1, real)
    executor.run(summary.square, A.indptr, A.indices, A.data, *BALANCE, counts, bound)
    disorder, not_finite, differs, not_invertible, positive, repeated, balanced = counts.tolist()
    if disorder or not_finite:
        return None
    rows = known_canonical(A).shape[0]
    return SystemFacts(
        rows,
        not differs,
        positive,
        not_invertible,
        balanced if rows >= ROWS_FOR_BALANCE and positive == rows else 0,
        constant_diagonal=repeated == rows,
        bound=float(bound[0]),
    )


def _one_by_one(A: Csr) -> SystemFacts:
    """Return the facts about a matrix, computed separately, except for constant vectors."""
    diagonal = _facts_of_diagonal(A)
    system_facts = SystemFacts(
        A.shape[0],
        is_hermitian(A),
        diagonal.positive,
        diagonal.not_invertible,
        constant_diagonal=diagonal.constant,
    )
    if system_facts.rows >= ROWS_FOR_BALANCE and system_facts.positive == system_facts.rows:
        system_facts = replace(system_facts, balanced=_balanced(A))
    return system_facts


def _on_constants(A: Csr) -> tuple[bool, bool]:
    """Return whether ``A x = 0``, and whether ``x^H A x < 0``, for constant ``x``."""
    executor, n, real = A.executor, A.shape[0], real_dtype(A.dtype)
    eps = float(np.finfo(real).eps)
    if executor.xp is np and A.nnz <= FEW_ENTRIES:
        # an upper bound of the slack: it saves the product for most matrices
        bound = SUM_SLACK * eps * A.nnz * float(np.abs(A.data).sum())
        with np.errstate(invalid="ignore"):  # infinities of both signs
            if float(A.data.sum().real) > bound:
                return False, False
    ones, image = executor.allocate((n, 1), A.dtype), executor.zeros((n, 1), A.dtype)
    executor.run(vector.fill, ones, 1.0)
    A._apply(ones, image, 1.0, 0.0)
    sizes, most = executor.allocate((n,), real), executor.allocate((1,), real)
    executor.run(coarsen.absolute_sums, *row_bounds(A), A.data, sizes)
    executor.run(values.largest, sizes.reshape(n, 1), most)
    total, apart = executor.allocate((1,), A.dtype), executor.allocate((1,), real)
    executor.run(vector.dot, ones, image, total)
    executor.run(vector.largest, image, apart)
    sums = executor.transfer(most, total, apart).read()
    largest, together, off = (float(np.real(one[0])) for one in sums)
    slack = SUM_SLACK * eps * max(A.nnz / n, 1.0) * largest
    return off <= slack, together < -n * max(slack, eps**0.5 * largest)


def _has_negative_rows(A: Csr) -> bool:
    """Return whether most rows of a matrix on the host have a negative sum."""
    sums = reduced_rows(np.add, np.asarray(A.data).real, np.asarray(A.indptr))
    return int(np.count_nonzero(sums < 0)) > A.shape[0] // 2


def _balanced(A: Csr) -> int:
    """Return the number of rows with a nearly zero sum."""
    counted = A.executor.zeros((1,), np.int64)
    A.executor.run(coarsen.balanced, *row_bounds(A), A.indices, A.data, *BALANCE, counted)
    return int(A.executor.to_host(counted)[0])


class _Diagonal(NamedTuple):
    """The facts about a diagonal.

    Attributes
    ----------
    not_invertible, positive : int
        As in :class:`SystemFacts`.
    constant : bool
        Whether all values are equal.
    first : complex or None
        The first value; None without rows.
    """

    not_invertible: int
    positive: int
    constant: bool
    first: complex | None


class _Share(NamedTuple):
    """The facts about the rows of a member of a group.

    Attributes
    ----------
    diagonal : _Diagonal
        The facts about the diagonal of its rows.
    balanced : int
        As in :class:`SystemFacts`.
    differs : bool
        Whether an entry differs from its mirror image.
    """

    diagonal: _Diagonal
    balanced: int
    differs: bool


def _facts_of_group(A: Any) -> SystemFacts:
    """Return the facts about a matrix that a group shares; all members must call this.

    The conjugate transpose is computed on the host, since the mirror images of entries belong to
    other members.
    """
    diagonal = _facts_of_diagonal(A.own_block)
    local_rows, mirrored = A.host_rows(), A.H.host_rows()
    eps = np.finfo(A.dtype).eps
    sizes = abs(local_rows) + abs(mirrored)
    with np.errstate(all="ignore"):
        excess = abs(local_rows - mirrored) - SLACK * eps * sizes
    differs = bool(np.any(~(excess.data <= 0)))
    balanced = _balanced(A.extended) if A.shape[0] >= ROWS_FOR_BALANCE else 0
    shares: list[_Share] = A.executor.links.all(_Share(diagonal, balanced, differs))
    system_facts = SystemFacts(
        A.shape[0],
        not any(each.differs for each in shares),
        sum(each.diagonal.positive for each in shares),
        sum(each.diagonal.not_invertible for each in shares),
        sum(each.balanced for each in shares),
        constant_diagonal=all(each.diagonal.constant for each in shares)
        and len({each.diagonal.first for each in shares} - {None}) == 1,
    )
    return system_facts if system_facts.may_be_definite else replace(system_facts, balanced=0)


def _facts_of_diagonal(A: Csr) -> _Diagonal:
    n, executor = A.shape[0], A.executor
    if n == 0:
        return _Diagonal(0, 0, True, None)
    diagonal = A.diagonal()
    d = diagonal.reshape(n, 1)
    counts, equal = _counts(executor), executor.zeros((1,), np.int64)
    executor.run(facts.diagonal, d, executor.allocate((n, 1), A.dtype), 1.0, *counts)
    executor.run(facts.repeated, diagonal, equal)
    read = executor.transfer(*counts, equal, diagonal[:1]).read()
    not_invertible, positive, repeated = (int(a[0]) for a in read[:3])
    return _Diagonal(not_invertible, positive, repeated == n, complex(read[3][0]))


def is_hermitian(A: Csr) -> bool:
    """Return whether the matrix equals its conjugate transpose to rounding."""
    if A.nnz == 0:
        return True
    if A.executor.xp is np:  # rows of any length are fast on the host, without searches
        return is_hermitian_by_rows(A.without_duplicates())
    disorder, mismatch = _symmetry(A)
    if disorder:
        executor = A.executor
        indices, data, _ = executor.run(structure.csr_sort, A)
        A = Csr._from_arrays(executor, A.shape, data, indices, A.indptr)
        indptr, indices, data = executor.run(structure.csr_sum_duplicates, A)
        _, mismatch = _symmetry(Csr._from_arrays(executor, A.shape, data, indices, indptr))
    return mismatch == 0


def is_hermitian_by_rows(A: Csr) -> bool:
    """Return the same for a matrix with sorted short rows without duplicates."""
    mismatch = A.executor.zeros((1,), np.int64)
    A.executor.run(facts.mirrored, *row_bounds(A), A.indices, A.data, mismatch)
    return int(A.executor.to_host(mismatch)[0]) == 0


def _symmetry(A: Csr) -> tuple[int, int]:
    counts = _counts(A.executor)
    A.executor.run(facts.symmetry, as_column(A.data), A.indices, A.indptr, A.shape[0], *counts)
    disorder, mismatch = (int(a[0]) for a in A.executor.transfer(*counts).read())
    return disorder, mismatch


def _counts(executor: Any) -> tuple[Array, Array]:
    return executor.zeros((1,), np.int64), executor.zeros((1,), np.int64)
