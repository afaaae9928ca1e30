"""Products with the transpose of a Csr: by the rows of the transpose, or by its columns.

With the rows of the transpose, a product takes as long as a product with the matrix. Making the
rows takes as long as several products, so it is done once: the positions of the entries are stored
with the pattern, and the values with the matrix. A product by columns (``csr.spmv_transposed``)
needs no rows of the transpose, but takes longer.

The number of future products is unknown. Users' products use columns until their accumulated extra
cost reaches the cost of making the rows; then the rows are made. This is the ski-rental rule for an
unknown number of uses (Karlin et al. (1988), "Competitive snoopy caching"), with one price for all
patterns. It counts products instead of measuring time, so that the choice for each product, and
thus its rounding, is the same in every run. Loops of solvers use rows from the first product on;
users' products with the transpose of a lean matrix always use columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..operations.matrix import csr_spmv_transposed
from ..program import recording
from ..store import Key

if TYPE_CHECKING:
    from ..executor import Array
    from .csc import Csc
    from .csr import Csr

#: Number of vectors that are multiplied by columns before the rows of the transpose are made.
#: Making the rows took the same time as the extra cost of 6 to 68 products by columns, depending on
#: the pattern (two threads, 2026-11). This value is the geometric mean.
VECTORS_BY_COLUMNS = 20


class TransposedRows:
    """The transpose of a Csr as rows, which is updated with the values of the matrix.

    Attributes
    ----------
    rows : Csr
        The transpose; ``rows.data`` is ``A.data[order]``.
    order : array of int, shape (nnz,)
        The position of each of its entries in ``A``.
    """

    def __init__(self, A: Csr) -> None:
        pattern, self.order, data = A._transposed_with_values()
        self.rows: Csr = pattern._with_data(A.data[self.order] if data is None else data)

    def update_values(self, A: Csr) -> None:
        """Copy the values of ``A``."""
        self.rows.update_values(A.data[self.order])


class Account:
    """The number of vectors that were multiplied by columns."""

    def __init__(self) -> None:
        self.vectors = 0

    def update_values(self, A: Any) -> None:
        """Do nothing: the cost of earlier products does not depend on values."""


_ROWS: Key[TransposedRows] = Key("rows of the transpose")
_ACCOUNT: Key[Account] = Key("products by columns")


def has_rows_of_transpose(A: Csr, data: Array) -> bool:
    """Return whether the transpose with the values ``data`` is stored with ``A``."""
    return data is A.data and _ROWS in A._copies


def rows_of_transpose(A: Csr, data: Array) -> tuple[Csr, Array]:
    """Return the transpose of ``A`` with the values ``data`` as a Csr, and the entry order.

    The result for ``A.data`` is stored with ``A``; other values share the pattern of the transpose.
    """
    if data is A.data:
        stored = A._copies.get(_ROWS, lambda: TransposedRows(A))
        return stored.rows, stored.order
    pattern, order = A.transposed_pattern()
    return pattern._with_data(data[order]), order


def columns_to_multiply(A: Csc, vectors: int) -> Csr | None:
    """Return the transpose of ``A`` if a product should use its rows, the columns of ``A``.

    None means that the product should use the rows of ``A``: they exist already, or begin to pay
    with this product.
    """
    if A._by_rows is not None or not A.executor.supports(csr_spmv_transposed):
        return None
    if recording() is not None:  # the recorded product is run many times
        return None
    source = A._transpose_of
    if source is None or source.indices is not A.indices or source.data is not A.data:
        source = A.T
    elif _ROWS in source._copies:
        return None
    if source.is_lean:
        return source
    account = source._copies.get(_ACCOUNT, Account)
    if account.vectors + vectors > VECTORS_BY_COLUMNS:
        return None
    account.vectors += vectors
    return source
