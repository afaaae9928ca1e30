"""The handler of PyTorch tensors as operands of products and matrix constructors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.errors import InvalidMatrix
from ...core.formats.csc import Csc
from ...core.formats.csr import Csr
from ...core.formats.given import place
from ...core.formats.other_libraries import native_array
from .functions import fusedmm, sddmm, spmm_anew
from .known_products import spmm_again, spmm_traced
from .memory import numpy_of, tensor_of
from .patterns import Pattern

if TYPE_CHECKING:
    from torch import Tensor

    from ...core.executor import Executor
    from ...core.formats.base import Matrix

__all__ = [
    "Pattern", "fusedmm", "matrix_from", "numpy_of", "sddmm", "spmm_again", "spmm_anew",
    "spmm_traced", "tensor_of",
]  # fmt: skip


def matrix_from(arg: Tensor, executor: Executor | str | None, copy: bool) -> Matrix:
    """Convert a sparse tensor to a matrix of the same layout.

    Raises
    ------
    InvalidMatrix
        If the tensor is a batch, or has a layout other than COO, CSR and CSC.
    """
    layout = str(arg.layout).removeprefix("torch.")
    if layout == "sparse_coo":
        arg, layout = arg.coalesce().to_sparse_csr(), "sparse_csr"
    if layout not in ("sparse_csr", "sparse_csc"):
        raise InvalidMatrix(
            f"a torch tensor of layout {layout} is not taken; convert it with .to_sparse_csr()"
        )
    if arg.dim() != 2:
        raise InvalidMatrix(f"expected a matrix of 2 dimensions, got shape {tuple(arg.shape)}")
    cls: type[Csr] | type[Csc]
    if layout == "sparse_csr":
        pointers, indices, cls = arg.crow_indices(), arg.col_indices(), Csr
    else:
        pointers, indices, cls = arg.ccol_indices(), arg.row_indices(), Csc
    values = arg.values().detach()
    where = place(executor, values)
    arrays = (native_array(where, a, None, copy) for a in (values, indices, pointers))
    data, indices, indptr = arrays
    shape = (int(arg.shape[0]), int(arg.shape[1]))
    data = data.astype(cls._held_dtype(data.dtype), copy=False)
    return cls._from_arrays(where, shape, data, indices, indptr)
