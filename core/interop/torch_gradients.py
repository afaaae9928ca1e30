"""The machine-learning kernels as functions that PyTorch differentiates.

Tensors of a CPU are read and written in place, those of a GPU through DLPack. The gradients are the
same kernels again, on the pattern and on its transpose, which is made once and kept with the
pattern: nothing ever has the size of a dense ``m x n`` matrix. Being these functions, they have
gradients themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function

from ..errors import ExecutorMismatch, UnsupportedDtype
from ..executor import Array, Executor
from ..formats import Csr
from ..operations import products as operations
from ..store import Key

# ---- tensors and native arrays


def native_of(executor: Executor, tensor: Tensor) -> Array:
    """Return a tensor's memory as a native array."""
    tensor = tensor.detach()
    if tensor.device.type == "cpu" and executor.xp is np:
        return numpy_of(tensor)
    adopted = None if tensor.device.type == "cpu" else executor.adopt(tensor)
    if adopted is None:
        raise ExecutorMismatch(
            f"the pattern lives on {executor.name} and a tensor on {tensor.device}; "
            "move one of them"
        )
    return adopted


def numpy_of(tensor: Tensor) -> np.ndarray[Any, Any]:
    """Return the memory of a CPU's tensor without gradients as a NumPy array."""
    if tensor.dtype is torch.bfloat16:
        return tensor.view(torch.uint16).numpy().view(_bfloat16())
    return tensor.numpy()


def tensor_of(array: Array) -> Tensor:
    """Return a native array's memory as a tensor."""
    if not isinstance(array, np.ndarray):
        tensor: Tensor = torch.from_dlpack(array)
        return tensor
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _bfloat16() -> np.dtype[Any]:
    try:
        from ml_dtypes import bfloat16
    except ImportError:
        raise UnsupportedDtype(
            "bfloat16 on a CPU needs the package that gives it to NumPy: pip install ml_dtypes"
        ) from None
    return np.dtype(bfloat16)


def _rows_together(tensor: Tensor) -> Tensor:
    """Return a tensor whose last axis has neighbours."""
    return tensor if tensor.shape[-1] <= 1 or tensor.stride(-1) == 1 else tensor.contiguous()


def _dense(executor: Executor, tensor: Tensor) -> Array:
    return native_of(executor, _rows_together(tensor))


# ---- the kernels on batches of tensors


def _spmm(A: Csr, values: Tensor, B: Tensor, kernel: str) -> Tensor:
    out = torch.empty((B.shape[0], A.shape[0], B.shape[2]), dtype=B.dtype, device=B.device)
    on = A.executor
    arguments = (_dense(on, values), _dense(on, B), native_of(on, out))
    on.run(operations.csr_spmm, A, *arguments, 1.0, 0.0, kernel)
    return out


def _sddmm(A: Csr, C: Tensor, B: Tensor, alpha: float, kernel: str) -> Tensor:
    out = torch.empty((C.shape[0], A.nnz), dtype=C.dtype, device=C.device)
    on = A.executor
    arguments = (None, _dense(on, C), _dense(on, B), native_of(on, out))
    on.run(operations.csr_sddmm, A, *arguments, alpha, 0.0, kernel)
    return out


class Spmm(Function):
    """Sparse times dense: ``(A, kernel, values, B)``, all tensors in batches."""

    @staticmethod
    def forward(A: Csr, kernel: str, values: Tensor, B: Tensor) -> Tensor:
        """Compute the result."""
        return _spmm(A, values, B, kernel)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Keep what the gradients are made of."""
        ctx.A, _, values, B = inputs
        ctx.save_for_backward(values, B)

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> Any:
        """Return a gradient for each argument, None where none is asked for."""
        values, B = ctx.saved_tensors
        _, _, of_values, of_B = ctx.needs_input_grad
        d_values = _sampled(ctx.A, d_out, B) if of_values else None
        d_B = _transposed_product(ctx.A, values, d_out) if of_B else None
        return None, None, d_values, d_B


class Sddmm(Function):
    """Sampled products: ``(A, kernel, alpha, C, B)``, all tensors in batches."""

    @staticmethod
    def forward(A: Csr, kernel: str, alpha: float, C: Tensor, B: Tensor) -> Tensor:
        """Compute the result."""
        return _sddmm(A, C, B, alpha, kernel)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Keep what the gradients are made of."""
        ctx.A, _, ctx.alpha, C, B = inputs
        ctx.save_for_backward(C, B)

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> Any:
        """Return a gradient for each argument, None where none is asked for."""
        C, B = ctx.saved_tensors
        _, _, _, of_C, of_B = ctx.needs_input_grad
        d_s = ctx.alpha * d_out
        d_C = _product(ctx.A, d_s, B) if of_C else None
        d_B = _transposed_product(ctx.A, d_s, C) if of_B else None
        return None, None, None, d_C, d_B


# ---- the functions as gradients are made of them


def _product(A: Csr, values: Tensor, B: Tensor) -> Tensor:
    found: Tensor = Spmm.apply(A, "auto", values, B)
    return found


def _transposed_product(A: Csr, values: Tensor, B: Tensor) -> Tensor:
    """Return the product with the transpose of the matrix of these values."""
    transposed, order = A.transposed_pattern()
    return _product(transposed, values[:, tensor_of(order).long()], B)


def _sampled(A: Csr, C: Tensor, B: Tensor) -> Tensor:
    found: Tensor = Sddmm.apply(A, "auto", 1.0, C, B)
    return found


class Fusedmm(Function):
    """Both in one: ``(A, kernel, edge, alpha, values, C, B, D)``, all tensors in batches."""

    @staticmethod
    def forward(
        A: Csr,
        kernel: str,
        edge: str,
        alpha: float,
        values: Tensor | None,
        C: Tensor,
        B: Tensor,
        D: Tensor,
    ) -> Tensor:
        """Compute the result."""
        E = torch.empty((C.shape[0], A.shape[0], D.shape[2]), dtype=C.dtype, device=C.device)
        on = A.executor
        held = None if values is None else _dense(on, values)
        arguments = (held, *(_dense(on, x) for x in (C, B, D)), native_of(on, E))
        on.run(operations.csr_fusedmm, A, *arguments, alpha, edge, kernel)
        return E

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Keep what the gradients are made of."""
        ctx.A, _, ctx.edge, ctx.alpha, *tensors = inputs
        ctx.save_for_backward(*tensors, output)

    @staticmethod
    def backward(ctx: Any, d_E: Tensor) -> Any:
        """Return a gradient for each argument, None where none is asked for."""
        A, edge, alpha = ctx.A, ctx.edge, ctx.alpha
        values, C, B, D, E = ctx.saved_tensors
        of_values, of_C, of_B, of_D = ctx.needs_input_grad[4:]
        # What the forward pass did not keep is sampled again: s, then p = f(s).
        dots = _sampled(A, C, B)
        s = alpha * dots if values is None else alpha * dots * values
        p = _weights(A, edge, s)
        d_D = _transposed_product(A, p, d_E) if of_D else None
        if not (of_values or of_C or of_B):
            return (None,) * 7 + (d_D,)
        d_p = _sampled(A, d_E, D)
        if edge == "sigmoid":
            d_s = d_p * p * (1 - p)
        elif edge == "softmax":
            # sum_j p_ij d_p_ij = <d_E_i, E_i>
            d_s = p * (d_p - (d_E * E).sum(-1)[:, _rows(A, d_E.device)])
        else:
            d_s = d_p
        d_values = alpha * d_s * dots if of_values else None
        d_dot = alpha * d_s if values is None else alpha * d_s * values
        d_C = _product(A, d_dot, B) if of_C else None
        d_B = _transposed_product(A, d_dot, C) if of_B else None
        return None, None, None, None, d_values, d_C, d_B, d_D


_ROWS: Key[Tensor] = Key("rows of entries, as a tensor")


def _rows(A: Csr, device: torch.device) -> Tensor:
    """Return the row of each entry."""

    def make() -> Tensor:
        lengths = tensor_of(A.indptr).long().diff()
        return torch.repeat_interleave(torch.arange(A.shape[0], device=device), lengths)

    return A._pattern.get(_ROWS, make)


def _weights(A: Csr, edge: str, s: Tensor) -> Tensor:
    """Return f(s) for the entries of each row."""
    if edge == "sigmoid":
        return torch.sigmoid(s)
    if edge == "softmax":
        # 16-bit sums would lose what the forward pass kept
        wide = s.float() if s.dtype.itemsize < 4 else s
        rows = _rows(A, s.device)
        ends = tensor_of(A.indptr).long()
        largest = _by_row(wide.detach(), "max", ends)[:, rows]  # the result does not depend on it
        powers = torch.exp(wide - largest)
        return (powers / _by_row(powers, "sum", ends)[:, rows]).to(s.dtype)
    return s


def _by_row(entries: Tensor, reduce: str, ends: Tensor) -> Tensor:
    offsets = ends.expand(entries.shape[0], -1).contiguous()
    return torch.segment_reduce(entries.contiguous(), reduce, offsets=offsets, axis=1)
