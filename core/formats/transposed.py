"""Products with the transpose of a matrix by compressed rows: by its rows, or by columns.

By the rows of the transpose a product takes as long as one with the matrix. To make the rows takes
as long as several products, so they are made once: where each entry goes is stored with the
pattern, the values with the matrix. A product by columns (``csr.spmv_transposed``) needs no rows
and takes longer.

The number of products that will follow is unknown. Users' products go by columns until their cost
reaches that of the rows; then the rows are made. This is the ski-rental rule for an unknown number
of uses (Karlin et al. (1988), "Competitive snoopy caching"), with one price for all patterns. It
counts products and reads no clock: which product is computed how, and so its last bits, is the same
in every run. Solvers' loops go by rows from the first product on; users' products with the
transpose of a lean matrix always go by columns.
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

#: How many vectors are multiplied by columns before the rows of the transpose are made. Making them
#: took the same time as the extra cost of 6 to 68 products by columns, depending on the pattern
#: (two threads, 2026-11). This is the geometric mean.
VECTORS_BY_COLUMNS = 20


class TransposedRows:
    """The transpose of a matrix by compressed rows; it follows the values of the matrix.

    Attributes
    ----------
    rows : Csr
        The transpose; ``rows.data`` is ``A.data[order]``.
    order : array of int, shape (nnz,)
        Where each of its entries is in ``A``.
    """

    def __init__(self, A: Csr) -> None:
        pattern, self.order, data = A._transposed_with_values()
        self.rows: Csr = pattern._with_data(A.data[self.order] if data is None else data)

    def update_values(self, A: Csr) -> None:
        """Take over the values of ``A``."""
        self.rows.update_values(A.data[self.order])


class Account:
    """How many vectors were multiplied by columns."""

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
    """Return the transpose of ``A`` with the values ``data`` by compressed rows, and the order.

    The results for ``A`` itself are stored with it; others share the pattern of the transpose.
    """
    if data is A.data:
        stored = A._copies.get(_ROWS, lambda: TransposedRows(A))
        return stored.rows, stored.order
    pattern, order = A.transposed_pattern()
    return pattern._with_data(data[order]), order


def columns_to_multiply(A: Csc, vectors: int) -> Csr | None:
    """Return the transpose of ``A`` if a product is to go by its rows, which are columns of ``A``.

    None says that the product is to go by the rows of ``A``, because they are there, or because
    with this product they begin to pay.
    """
    if A._by_rows is not None or not A.executor.supports(csr_spmv_transposed):
        return None
    if recording() is not None:  # to be run again and again
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
