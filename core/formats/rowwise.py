"""Common parts of operations on rows: bounds, order, and new matrices from counts of entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..capture import TO_HOST
from ..dtypes import COMPUTED, common_dtype, index_dtype, is_exact, is_narrow
from ..operations import rows, scan
from ..store import Key
from .csr import Csr, as_movable, from_movable

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..executor import Array
    from ..linop import LinOp
    from ..operation import Operation
    from .base import Matrix


#: Rows for each entry above which rows without entries are left out, and rows up to which none are.
ROWS_OF_ENTRY = 4
FEW_ROWS = 1 << 16

_ORDER: Key[tuple[int, int]] = Key("order of columns")
#: There where no position is stored twice; rows need not be sorted.
_DISTINCT: Key[bool] = Key("distinct positions")


class _Summed:
    """A matrix with entries of one position added up; new values make it outdated."""

    def __init__(self) -> None:
        self._matrix: Csr | None = None

    def of(self, csr: Csr) -> Csr:
        """Return the matrix; it is made on first use, and again after new values."""
        if self._matrix is None:
            self._matrix = known_canonical(csr.without_duplicates())
        return self._matrix

    def update_values(self, matrix: Csr) -> None:
        """Forget the sums of the old values."""
        self._matrix = None


_SUMMED: Key[_Summed] = Key("entries without duplicates")


def is_hypersparse(length: int, nnz: int) -> bool:
    """Return whether most of ``length`` rows or columns have no entry."""
    return length > max(FEW_ROWS, ROWS_OF_ENTRY * nnz)


def computed(matrix: Matrix) -> Csr:
    """Return a matrix as a Csr of a dtype that kernels compute in.

    Values of 16 bits become float32, integers and booleans float64.
    """
    csr: Csr = matrix.asformat("csr")
    if csr.dtype in COMPUTED:
        return csr
    return csr.astype(np.float32 if is_narrow(csr.dtype) else np.float64)


def computed_dtype(*operators: LinOp) -> np.dtype[Any]:
    """Return the dtype that an expression is computed in: float32 for 16-bit operators."""
    dtypes = (np.float32 if is_narrow(one.dtype) else one.dtype for one in operators)
    return common_dtype(np.result_type(*dtypes))


def canonical(matrix: Matrix) -> Csr:
    """Return the result of :func:`computed`, rows sorted and entries of one position added up.

    The matrix itself stays as it is, and is returned if there is nothing to do. Other results are
    kept with the matrix, unless it is lean: read them, and never return them to a caller of the
    library.
    """
    return _summed(computed(matrix))


def canonical_rows(matrix: Matrix) -> Csr:
    """Return the result of :func:`canonical`, integers and booleans as they are."""
    csr: Csr = matrix.asformat("csr")
    return _summed(csr) if is_exact(csr.dtype) else canonical(csr)


def _summed(csr: Csr) -> Csr:
    if order_of(csr) == (0, 0):
        return csr
    if csr.is_lean:
        return csr.without_duplicates()
    return csr._copies.get(_SUMMED, _Summed).of(csr)


def of_pattern(csr: Csr, data: Array) -> Csr:
    """Return a new matrix with the pattern of another one and with values of any dtype."""
    made = Csr._from_arrays(csr.executor, csr.shape, data, csr.indices, csr.indptr)
    made._pattern = csr._pattern
    return made


def same_pattern(left: Csr, right: Csr) -> bool:
    """Return whether two matrices of one shape store the same columns in the same order."""
    if left._pattern is right._pattern:
        return True
    if left.nnz != right.nnz:
        return False
    left.executor.refuse_host(TO_HOST)
    xp = left.executor.xp
    pairs = ((left.indptr, right.indptr), (left.indices, right.indices))
    return all(a is b or not bool(xp.any(a != b)) for a, b in pairs)


def moved(csr: Csr, move: Callable[[Csr], Csr]) -> Csr:
    """Return the result of ``move``, which copies entries of a matrix, for every dtype.

    ``move`` must not compute with the values, nor look at them: see :func:`as_movable`.
    """
    if csr.dtype in COMPUTED:
        return move(csr)
    made = move(of_pattern(csr, as_movable(csr.data)))
    return made._with_data(from_movable(made.data, csr.dtype))


def order_of(csr: Csr) -> tuple[int, int]:
    """Return how often the next column of a row is smaller, and how often it is the same.

    Without falls the rows are sorted; without falls and repeats there are no duplicates either.
    """
    return csr._pattern.get(_ORDER, lambda: _examined(csr))


def known_canonical(csr: Csr) -> Csr:
    """Return a matrix with rows that are known to be sorted and without duplicates."""
    csr._pattern.get(_ORDER, lambda: (0, 0))
    return csr


def known_distinct(csr: Csr) -> Csr:
    """Return a matrix that is known to store no position twice, in whatever order."""
    csr._pattern.get(_DISTINCT, lambda: True)
    return csr


def in_order_of(made: Csr, csr: Csr) -> Csr:
    """Return a matrix each row of which has entries of one row of ``csr``, in their order.

    It is known to be sorted and without duplicates if ``csr`` is; nothing is looked at.
    """
    known = _ORDER in csr._pattern and order_of(csr) == (0, 0)
    return known_canonical(made) if known else made


def is_known_distinct(csr: Csr) -> bool:
    """Return whether it is known, without a look, that no position is stored twice."""
    found = csr._pattern
    return _DISTINCT in found or (_ORDER in found and order_of(csr) == (0, 0))


def _examined(csr: Csr) -> tuple[int, int]:
    executor = csr.executor
    falls, repeats = (executor.allocate((1,), np.int64) for _ in range(2))
    executor.run(rows.examine, *row_bounds(csr), csr.indices, falls, repeats)
    fallen, repeated = executor.transfer(falls, repeats).read()
    return int(fallen[0]), int(repeated[0])


def row_bounds(csr: Csr) -> tuple[Array, Array]:
    """Return where the entries of each row begin and end, as views."""
    return csr.indptr[:-1], csr.indptr[1:]


def filled(
    csr: Csr, shape: tuple[int, int], count: Operation, fill: Operation, *arguments: Any
) -> Csr:
    """Return the new matrix of an operation that counts its entries and one that fills them in.

    Parameters
    ----------
    csr : Csr
        Has the dtypes of the new matrix, unless its index dtype cannot count the entries.
    shape : tuple of int
        Of the new matrix.
    count, fill : Operation
        They take ``arguments`` first. Arguments that they do not share are left out.
    """
    return filled_in(csr, shape, counted(csr, shape[0], count, fill, *arguments), fill)


def filled_in(csr: Csr, shape: tuple[int, int], rows: Counted, fill: Operation) -> Csr:
    """Return the new matrix of rows that :func:`counted` found; as :func:`filled`."""
    data = csr.executor.allocate((rows.entries,), csr.dtype)
    indices = csr.executor.allocate((rows.entries,), rows.indptr.dtype)
    csr.executor.run(fill, *rows.arguments, rows.indptr, indices, data)
    return Csr._from_arrays(csr.executor, shape, data, indices, rows.indptr)


class Counted(NamedTuple):
    """The rows of a new matrix before they are filled in, and the arguments that fill them."""

    indptr: Array
    entries: int
    arguments: tuple[Any, ...]
    beside: int | None = None


class Counting(NamedTuple):
    """The rows of a new matrix of which the host does not know yet how many entries they have.

    Attributes
    ----------
    csr : Csr
    of_lengths, fill : Operation
        ``count`` and ``fill`` of :func:`filled`.
    indptr : array
        Where rows begin, if the dtype can count the entries.
    total : array of int64, shape (1,)
        How many entries there are, for the caller to read with other numbers.
    arguments : tuple
        Of both operations.
    """

    csr: Csr
    of_lengths: Operation
    fill: Operation
    indptr: Array
    total: Array
    arguments: tuple[Any, ...]

    def read(self, entries: int, beside: int | None = None) -> Counted:
        """Return the rows, by the number in ``total``.

        If the dtype of the indices cannot count the entries, rows are counted again: indices among
        the arguments become int64.
        """
        dtype = self.csr.index_dtype
        if index_dtype(entries, dtype) == dtype:
            return Counted(self.indptr, entries, self.arguments, beside)
        wide = [a.astype(np.int64) if _is_index(a, dtype) else a for a in self.arguments]
        rows = int(self.indptr.size) - 1
        again = counting(
            with_index_dtype(self.csr, np.int64), rows, self.of_lengths, self.fill, *wide
        )
        return Counted(again.indptr, entries, again.arguments, beside)


def counting(csr: Csr, rows: int, count: Operation, fill: Operation, *arguments: Any) -> Counting:
    """Submit the work of :func:`counted`, without a wait."""
    executor, dtype = csr.executor, csr.index_dtype
    lengths = executor.allocate((rows,), dtype)
    total = executor.allocate((1,), np.int64)
    taken = {parameter.name for parameter in count.parameters}
    named = [a for p, a in zip(fill.parameters, arguments, strict=False) if p.name in taken]
    indptr = executor.allocate((rows + 1,), dtype)
    executor.run(count, *named, lengths, total)
    # Before the wait for the total, so that a device has work until the host goes on.
    executor.run(scan.pointers, lengths, indptr)
    return Counting(csr, count, fill, indptr, total, arguments)


def counted(
    csr: Csr,
    rows: int,
    count: Operation,
    fill: Operation,
    *arguments: Any,
    beside: Array | None = None,
) -> Counted:
    """Return how many entries an operation puts into each of ``rows`` rows; as :func:`filled`.

    If the index dtype of ``csr`` cannot count the entries, indices among the arguments become
    int64. ``beside`` is one more integer of the device that the host needs: it is read in the same
    wait.
    """
    made = counting(csr, rows, count, fill, *arguments)
    given = (made.total,) if beside is None else (made.total, beside)
    entries, *other = (int(a[0]) for a in csr.executor.transfer(*given).read())
    return made.read(entries, *other)


def _is_index(argument: Any, dtype: np.dtype[Any]) -> bool:
    return getattr(argument, "dtype", None) == dtype


def with_index_dtype(csr: Csr, dtype: Any) -> Csr:
    """Return a matrix with indices of ``dtype``; itself if it has them."""
    if csr.index_dtype == dtype:
        return csr
    return Csr._from_arrays(
        csr.executor,
        csr.shape,
        csr.data,
        csr.indices.astype(dtype),
        csr.indptr.astype(dtype),
    )
