"""The transpose of a matrix by compressed rows, stored with the matrix.

A product with ``A.T`` goes by the rows of the transpose. To make them takes as long as several
products, so they are made once: where each entry goes is stored with the pattern, the values with
the matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..store import Key

if TYPE_CHECKING:
    from ..executor import Array
    from .csr import Csr


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


_ROWS: Key[TransposedRows] = Key("rows of the transpose")


def has_rows_of_transpose(A: Csr, data: Array) -> bool:
    """Return whether the transpose with the values ``data`` is stored with ``A``."""
    return data is A.data and _ROWS in A._copies


def rows_of_transpose(A: Csr, data: Array) -> tuple[Csr, Array]:
    """Return the transpose of ``A`` with the values ``data`` by compressed rows, and the order.

    Those of ``A`` itself are stored with it; others share the pattern of the transpose.
    """
    if data is A.data:
        stored = A._copies.get(_ROWS, lambda: TransposedRows(A))
        return stored.rows, stored.order
    pattern, order = A.transposed_pattern()
    return pattern._with_data(data[order]), order
