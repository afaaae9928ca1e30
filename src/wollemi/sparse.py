"""Matrix constructors of ``scipy.sparse``, for any executor.

>>> import wollemi as wl
>>> A = wl.sparse.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(3, 3))
>>> wl.sparse.kronsum(A, A).shape
(9, 9)
"""

from typing import TYPE_CHECKING

from .core.sparse import (
    block_array,
    block_diag,
    diags,
    eye,
    find,
    hstack,
    kron,
    kronsum,
    permute_dims,
    random,
    swapaxes,
    tril,
    triu,
    vstack,
)
from .core.suggest import without_others

__all__ = [
    "block_array",
    "block_diag",
    "diags",
    "eye",
    "find",
    "hstack",
    "kron",
    "kronsum",
    "permute_dims",
    "random",
    "swapaxes",
    "tril",
    "triu",
    "vstack",
]

if not TYPE_CHECKING:  # type checkers would accept any name with it
    __getattr__ = without_others(__name__, __all__)
