"""Common parts of row operations: bounds, order, and new matrices built from entry counts."""

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


#: Empty rows are left out if there are more than ``ROWS_OF_ENTRY`` rows per entry, and more than
#: ``FEW_ROWS`` rows.
ROWS_OF_ENTRY = 4
FEW_ROWS = 1 << 16

_ORDER: Key[tuple[int, int]] = Key("order of columns")
#: Present if no position is stored twice; the rows need not be sorted.
_DISTINCT: Key[bool] = Key("distinct positions")


class _Summed:
    """A matrix with summed duplicates, which new values invalidate."""

    def __init__(self) -> None:
        self._matrix: Csr | None = None

    def of(self, csr: Csr) -> Csr:
        """Return the matrix; it is made at the first use, and again for new values."""
        if self._matrix is None:
            self._matrix = known_canonical(csr.without_duplicates())
        return self._matrix

    def update_values(self, matrix: Csr) -> None:
        """Discard the sums of the old values."""
        self._matrix = None


_SUMMED: Key[_Summed] = Key("entries without duplicates")


def is_hypersparse(length: int, nnz: int) -> bool:
    """Return whether most of ``length`` rows or columns are empty."""
    return length > max(FEW_ROWS, ROWS_OF_ENTRY * nnz)


def computed(matrix: Matrix) -> Csr:
    """Return a matrix as a Csr with a dtype in which kernels compute.

    16-bit values become float32, and integers and booleans become float64.
    """
    csr: Csr = matrix if type(matrix) is Csr else matrix.asformat("csr")
    if csr.dtype in COMPUTED:
        return csr
    return csr.astype(np.float32 if is_narrow(csr.dtype) else np.float64)


def computed_dtype(*operators: LinOp) -> np.dtype[Any]:
    """Return the dtype in which an expression is computed: float32 for 16-bit operators."""
    dtypes = (np.float32 if is_narrow(one.dtype) else one.dtype for one in operators)
    return common_dtype(np.result_type(*dtypes))


def canonical(matrix: Matrix) -> Csr:
    """Return the result of :func:`computed` with sorted rows and summed duplicates.

    The matrix itself does not change, and is returned if it already has this form. Other results
    are stored with the matrix, unless it is lean: callers may read them, but must not return them
    to users of the library.
    """
    return _summed(computed(matrix))


def canonical_rows(matrix: Matrix) -> Csr:
    """Return the result of :func:`canonical`, but keep integers and booleans."""
    csr: Csr = matrix if type(matrix) is Csr else matrix.asformat("csr")
    return _summed(csr) if is_exact(csr.dtype) else canonical(csr)


def _summed(csr: Csr) -> Csr:
    if order_of(csr) == (0, 0):
        return csr
    if csr.is_lean:
        return csr.without_duplicates()
    return csr._copies.get(_SUMMED, _Summed).of(csr)


def of_pattern(csr: Csr, data: Array) -> Csr:
    """Return a new matrix with the pattern of another one and values of any dtype."""
    made = Csr._from_arrays(csr.executor, csr.shape, data, csr.indices, csr.indptr)
    made._pattern = csr._pattern
    return made


def same_pattern(left: Csr, right: Csr) -> bool:
    """Return whether matrices of equal shape store the same columns in the same order."""
    if left._pattern is right._pattern:
        return True
    if left.nnz != right.nnz:
        return False
    left.executor.refuse_host(TO_HOST)
    xp = left.executor.xp
    pairs = ((left.indptr, right.indptr), (left.indices, right.indices))
    return all(a is b or not bool(xp.any(a != b)) for a, b in pairs)


def moved(csr: Csr, move: Callable[[Csr], Csr]) -> Csr:
    """Apply ``move``, which copies entries of a matrix, to a matrix of any dtype.

    ``move`` must neither read the values nor compute with them; see :func:`as_movable`.
    """
    if csr.dtype in COMPUTED:
        return move(csr)
    made = move(of_pattern(csr, as_movable(csr.data)))
    return made._with_data(from_movable(made.data, csr.dtype))


def order_of(csr: Csr) -> tuple[int, int]:
    """Count the entries in rows whose next column is smaller, and those whose next is equal.

    If the first count is 0, the rows are sorted; if both are 0, there are no duplicates either.
    """
    return csr._pattern.get(_ORDER, lambda: _examined(csr))


def known_canonical(csr: Csr) -> Csr:
    """Return a matrix after recording that its rows are sorted and have no duplicates."""
    csr._pattern.get(_ORDER, lambda: (0, 0))
    return csr


def known_distinct(csr: Csr) -> Csr:
    """Return a matrix after recording that it has no duplicates, in any order of entries."""
    csr._pattern.get(_DISTINCT, lambda: True)
    return csr


def in_order_of(result: Csr, csr: Csr) -> Csr:
    """Return a matrix whose rows contain entries of one row of ``csr`` each, in their order.

    If ``csr`` is known to be sorted and without duplicates, this is recorded without a check.
    """
    known = _ORDER in csr._pattern and order_of(csr) == (0, 0)
    return known_canonical(result) if known else result


def is_known_distinct(csr: Csr) -> bool:
    """Return whether the matrix is known to have no duplicates; nothing is checked."""
    found = csr._pattern
    return _DISTINCT in found or (_ORDER in found and order_of(csr) == (0, 0))


def _examined(csr: Csr) -> tuple[int, int]:
    executor = csr.executor
    falls, repeats = (executor.allocate((1,), np.int64) for _ in range(2))
    executor.run(rows.examine, *row_bounds(csr), csr.indices, falls, repeats)
    fallen, repeated = executor.transfer(falls, repeats).read()
    return int(fallen[0]), int(repeated[0])


def row_bounds(csr: Csr) -> tuple[Array, Array]:
    """Return the start and the end of each row's entries, as views."""
    return csr.indptr[:-1], csr.indptr[1:]


def filled(
    csr: Csr, shape: tuple[int, int], count: Operation, fill: Operation, *arguments: Any
) -> Csr:
    """Return the matrix that two operations make: one counts its entries, one fills them in.

    Parameters
    ----------
    csr : Csr
        The dtypes of the new matrix, unless its index dtype cannot count the entries.
    shape : tuple of int
        Shape of the new matrix.
    count, fill : Operation
        Operations whose first arguments are ``arguments``; arguments that only one of them has are
        left out.
    """
    return filled_in(csr, shape, counted(csr, shape[0], count, fill, *arguments), fill)


def filled_in(csr: Csr, shape: tuple[int, int], rows: Counted, fill: Operation) -> Csr:
    """Return the new matrix of rows from :func:`counted`; see :func:`filled`."""
    data = csr.executor.allocate((rows.entries,), csr.dtype)
    indices = csr.executor.allocate((rows.entries,), rows.indptr.dtype)
    csr.executor.run(fill, *rows.arguments, rows.indptr, indices, data)
    return Csr._from_arrays(csr.executor, shape, data, indices, rows.indptr)


class Counted(NamedTuple):
    """The rows of a new matrix before they are filled, and the arguments of that operation."""

    indptr: Array
    entries: int
    arguments: tuple[Any, ...]
    beside: int | None = None


class Counting(NamedTuple):
    """The rows of a new matrix, of which the host does not know the number of entries yet.

    Attributes
    ----------
    csr : Csr
    of_lengths, fill : Operation
        ``count`` and ``fill`` in :func:`filled`.
    indptr : array
        Row pointers, if the index dtype can count the entries.
    total : array of int64, shape (1,)
        Number of entries; the caller can read it together with other numbers.
    arguments : tuple
        Arguments of both operations.
    """

    csr: Csr
    of_lengths: Operation
    fill: Operation
    indptr: Array
    total: Array
    arguments: tuple[Any, ...]

    def read(self, entries: int, beside: int | None = None) -> Counted:
        """Return the rows, given the number in ``total``.

        If the index dtype cannot count the entries, they are counted again, and indices among the
        arguments become int64.
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


def counting(csr: Csr, rows: int, count: Operation, fill: Operation, *operands: Any) -> Counting:
    """Submit the work of :func:`counted` without a wait."""
    executor, dtype = csr.executor, csr.index_dtype
    lengths = executor.allocate((rows,), dtype)
    total = executor.allocate((1,), np.int64)
    taken = {parameter.name for parameter in count.parameters}
    named = [a for p, a in zip(fill.parameters, operands, strict=False) if p.name in taken]
    indptr = executor.allocate((rows + 1,), dtype)
    executor.run(count, *named, lengths, total)
    # Submitted before the wait for the total, so that the device is busy during the wait.
    executor.run(scan.pointers, lengths, indptr)
    return Counting(csr, count, fill, indptr, total, operands)


def counted(
    csr: Csr,
    rows: int,
    count: Operation,
    fill: Operation,
    *arguments: Any,
    beside: Array | None = None,
) -> Counted:
    """Count the entries that an operation puts into each of ``rows`` rows; see :func:`filled`.

    If the index dtype of ``csr`` cannot count the entries, indices among the arguments become
    int64. ``beside`` is another integer on the device that the host needs: it is read in the same
    wait.
    """
    made = counting(csr, rows, count, fill, *arguments)
    given = (made.total,) if beside is None else (made.total, beside)
    entries, *other = (int(a[0]) for a in csr.executor.transfer(*given).read())
    return made.read(entries, *other)


def _is_index(argument: Any, dtype: np.dtype[Any]) -> bool:
    return getattr(argument, "dtype", None) == dtype


def with_index_dtype(csr: Csr, dtype: Any) -> Csr:
    """Return a matrix with indices of ``dtype``; itself if they already have it."""
    if csr.index_dtype == dtype:
        return csr
    return Csr._from_arrays(
        csr.executor,
        csr.shape,
        csr.data,
        csr.indices.astype(dtype),
        csr.indptr.astype(dtype),
    )
