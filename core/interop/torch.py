"""The machine-learning kernels on PyTorch's tensors, with gradients.

Tensors of a CPU are read and written in place, those of a GPU through DLPack. The gradients are the
same kernels again, on the pattern and on its transpose, which is made once and kept with the
pattern: nothing ever has the size of a dense ``m x n`` matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.utils.weak import WeakIdKeyDictionary

from ..errors import ExecutorMismatch, InvalidArgument, ShapeMismatch, UnsupportedDtype
from ..executor import Array, Executor
from ..formats import Csr
from ..ml.fusedmm import EDGES
from ..operations import ml as operations
from ..registry import executor as executor_by_name
from ..registry import get_default_executor

# The pattern of each torch matrix that was used, so that its plans and its transpose are made once.
_patterns: Any = WeakIdKeyDictionary()


# ---- tensors and native arrays


def _array(executor: Executor, tensor: Tensor) -> Array:
    """Return a tensor's memory as a native array."""
    tensor = tensor.detach()
    if tensor.device.type == "cpu" and executor.xp is np:
        if tensor.dtype is torch.bfloat16:
            return tensor.view(torch.uint16).numpy().view(_bfloat16())
        return tensor.numpy()
    adopted = None if tensor.device.type == "cpu" else executor.adopt(tensor)
    if adopted is None:
        raise ExecutorMismatch(
            f"the pattern lives on {executor.name} and a tensor on {tensor.device}; "
            "move one of them"
        )
    return adopted


def _tensor(array: Array) -> Tensor:
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
    return _array(executor, _rows_together(tensor))


def pattern_of(A: Any) -> Csr:
    """Return the pattern of a torch CSR tensor as a :class:`wollemi.Csr` that shares its memory.

    It is kept for as long as the tensor lives. Its values are those of the tensor when it was first
    asked for; the functions of this module take values from the tensor itself.
    """
    if isinstance(A, Csr):
        return A
    if not (isinstance(A, Tensor) and A.layout is torch.sparse_csr and A.dim() == 2):
        raise InvalidArgument(
            "A: expected a wl.Csr or a torch matrix of layout torch.sparse_csr; "
            "convert it with .to_sparse_csr()"
        )
    found = _patterns.get(A)
    if found is None:
        executor = _executor_of(A.device)
        arrays = (A.values(), A.col_indices(), A.crow_indices())
        found = Csr._from_arrays(
            executor, (A.shape[0], A.shape[1]), *(_array(executor, a) for a in arrays)
        )
        _patterns[A] = found
    return found


def _executor_of(device: torch.device) -> Executor:
    if device.type == "cpu":
        default = get_default_executor()
        return default if default.xp is np else executor_by_name("omp")
    return executor_by_name(f"{device.type}:{device.index or 0}")


def _values_of(A: Any, values: Tensor | None) -> Tensor:
    if values is not None:
        return values
    return A.values() if isinstance(A, Tensor) else _tensor(A.data)


# ---- the kernels on batches of tensors


def _spmm(A: Csr, values: Tensor, B: Tensor, kernel: str) -> Tensor:
    out = torch.empty((B.shape[0], A.shape[0], B.shape[2]), dtype=B.dtype, device=B.device)
    on = A.executor
    arguments = (_dense(on, values), _dense(on, B), _array(on, out))
    on.run(operations.csr_spmm, A, *arguments, 1.0, 0.0, kernel)
    return out


def _sddmm(
    A: Csr, values: Tensor | None, C: Tensor, B: Tensor, alpha: float, kernel: str
) -> Tensor:
    out = torch.empty((C.shape[0], A.nnz), dtype=C.dtype, device=C.device)
    on = A.executor
    held = None if values is None else _dense(on, values)
    arguments = (held, _dense(on, C), _dense(on, B), _array(on, out))
    on.run(operations.csr_sddmm, A, *arguments, alpha, 0.0, kernel)
    return out


def _transposed_spmm(A: Csr, values: Tensor, B: Tensor) -> Tensor:
    """Return the product with the transpose of the matrix of these values."""
    transposed, order = A.transposed_pattern()
    return _spmm(transposed, values[:, _tensor(order).long()], B, "auto")


class _Spmm(Function):
    @staticmethod
    def forward(ctx: Any, A: Csr, kernel: str, values: Tensor, B: Tensor) -> Tensor:
        ctx.A = A
        ctx.save_for_backward(values, B)
        return _spmm(A, values, B, kernel)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> Any:
        values, B = ctx.saved_tensors
        _, _, of_values, of_B = ctx.needs_input_grad
        d_values = _sddmm(ctx.A, None, d_out, B, 1.0, "auto") if of_values else None
        d_B = _transposed_spmm(ctx.A, values, d_out) if of_B else None
        return None, None, d_values, d_B


class _Sddmm(Function):
    @staticmethod
    def forward(ctx: Any, A: Csr, kernel: str, alpha: float, C: Tensor, B: Tensor) -> Tensor:
        ctx.A, ctx.alpha = A, alpha
        ctx.save_for_backward(C, B)
        return _sddmm(A, None, C, B, alpha, kernel)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> Any:
        C, B = ctx.saved_tensors
        _, _, _, of_C, of_B = ctx.needs_input_grad
        d_s = ctx.alpha * d_out
        d_C = _spmm(ctx.A, d_s, B, "auto") if of_C else None
        d_B = _transposed_spmm(ctx.A, d_s, C) if of_B else None
        return None, None, None, d_C, d_B


class _Fusedmm(Function):
    @staticmethod
    def forward(
        ctx: Any,
        A: Csr,
        kernel: str,
        edge: str,
        alpha: float,
        values: Tensor | None,
        C: Tensor,
        B: Tensor,
        D: Tensor,
    ) -> Tensor:
        E = torch.empty((C.shape[0], A.shape[0], D.shape[2]), dtype=C.dtype, device=C.device)
        on = A.executor
        held = None if values is None else _dense(on, values)
        arguments = (held, *(_dense(on, x) for x in (C, B, D)), _array(on, E))
        on.run(operations.csr_fusedmm, A, *arguments, alpha, edge, kernel)
        ctx.A, ctx.edge, ctx.alpha = A, edge, alpha
        ctx.save_for_backward(values, C, B, D, E)
        return E

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_E: Tensor) -> Any:
        A, edge, alpha = ctx.A, ctx.edge, ctx.alpha
        values, C, B, D, E = ctx.saved_tensors
        of_values, of_C, of_B, of_D = ctx.needs_input_grad[4:]
        # What the forward pass did not keep is sampled again: s, then p = f(s).
        s = _sddmm(A, values, C, B, alpha, "auto")
        p = _weights(A, edge, s)
        d_D = _transposed_spmm(A, p, d_E) if of_D else None
        if not (of_values or of_C or of_B):
            return (None,) * 7 + (d_D,)
        d_p = _sddmm(A, None, d_E, D, 1.0, "auto")
        if edge == "sigmoid":
            d_s = d_p * p * (1 - p)
        elif edge == "softmax":
            # sum_j p_ij d_p_ij = <d_E_i, E_i>
            d_s = p * (d_p - (d_E * E).sum(-1)[:, _rows(A, d_E.device)])
        else:
            d_s = d_p
        d_values = alpha * d_s * _sddmm(A, None, C, B, 1.0, "auto") if of_values else None
        d_dot = alpha * d_s if values is None else alpha * d_s * values
        d_C = _spmm(A, d_dot, B, "auto") if of_C else None
        d_B = _transposed_spmm(A, d_dot, C) if of_B else None
        return None, None, None, None, d_values, d_C, d_B, d_D


def _rows(A: Csr, device: torch.device) -> Tensor:
    """Return the row of each entry."""
    if "torch.rows" not in A._pattern:
        lengths = _tensor(A.indptr).long().diff()
        rows = torch.arange(A.shape[0], device=device)
        A._pattern["torch.rows"] = torch.repeat_interleave(rows, lengths)
    found: Tensor = A._pattern["torch.rows"]
    return found


def _weights(A: Csr, edge: str, s: Tensor) -> Tensor:
    """Return f(s) for the entries of each row."""
    if edge == "sigmoid":
        return torch.sigmoid(s)
    if edge == "softmax":
        # 16-bit sums would lose what the forward pass kept
        wide = s.float() if s.dtype.itemsize < 4 else s
        rows = _rows(A, s.device)
        ends = _tensor(A.indptr).long()
        largest = _by_row(wide, "max", ends)[:, rows]
        powers = torch.exp(wide - largest)
        return (powers / _by_row(powers, "sum", ends)[:, rows]).to(s.dtype)
    return s


def _by_row(entries: Tensor, reduce: str, ends: Tensor) -> Tensor:
    offsets = ends.expand(entries.shape[0], -1).contiguous()
    return torch.segment_reduce(entries.contiguous(), reduce, offsets=offsets, axis=1)


# ---- what users call


def spmm(A: Any, B: Tensor, *, values: Tensor | None = None, kernel: str = "auto") -> Tensor:
    """Return ``A @ B`` with gradients for the values of ``A`` and for ``B``.

    Parameters
    ----------
    A : torch CSR tensor or wollemi.Csr, shape (m, n)
        With a ``Csr``, its pattern is used, and its values unless ``values`` is given.
    B : Tensor, shape (n, k) or (b, n, k)
        Dense.
    values : Tensor, shape (nnz,) or (b, nnz), optional
        Used in place of the values of ``A``.
    kernel : str
        As in :func:`wollemi.spmm`.

    Returns
    -------
    Tensor, shape (m, k) or (b, m, k)

    Examples
    --------
    >>> import torch, wollemi as wl
    >>> from wollemi.interop.torch import spmm
    >>> A = wl.Csr(([1.0, 2.0], [0, 1], [0, 1, 2]))
    >>> weights = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> spmm(A, torch.ones(2, 3), values=weights).sum().backward()
    >>> weights.grad
    tensor([3., 3.])
    """
    pattern = pattern_of(A)
    values = _values_of(A, values)
    _check("B", B, pattern.shape[1])
    if values.shape[-1] != pattern.nnz or values.dim() > 2:
        raise ShapeMismatch(
            f"values: expected shape ({pattern.nnz},) or (b, {pattern.nnz}), "
            f"got {tuple(values.shape)}"
        )
    batched = B.dim() == 3 or values.dim() == 2
    (values, B) = _one_dtype(values, B)
    blocks = _blocks(B=B, values=values[..., None])
    out = _Spmm.apply(pattern, kernel, _spread(values, blocks, 1), _spread(B, blocks, 2))
    return out if batched else out[0]


def sddmm(
    A: Any,
    C: Tensor,
    B: Tensor,
    alpha: float = 1.0,
    *,
    use_values: bool = False,
    values: Tensor | None = None,
    kernel: str = "auto",
) -> Tensor:
    """Return ``S_ij = alpha * <C_i, B_j> [* A_ij]`` on the pattern of ``A``, with gradients.

    Parameters
    ----------
    A : torch CSR tensor or wollemi.Csr, shape (m, n)
        The pattern, and with ``use_values`` the values unless ``values`` is given.
    C : Tensor, shape (m, k) or (b, m, k)
    B : Tensor, shape (n, k) or (b, n, k)
    alpha : float
    use_values : bool
        Multiply by the values of ``A``.
    values : Tensor, shape (nnz,) or (b, nnz), optional
        Multiply by these.
    kernel : str
        As in :func:`wollemi.sddmm`.

    Returns
    -------
    Tensor
        A CSR tensor if ``A`` is one and there is no batch; else values, (nnz,) or (b, nnz).
    """
    pattern = pattern_of(A)
    _check("C", C, pattern.shape[0])
    _check("B", B, pattern.shape[1], like=C)
    batched = C.dim() == 3 or B.dim() == 3 or (values is not None and values.dim() == 2)
    (C, B) = _one_dtype(C, B)
    blocks = _blocks(C=C, B=B)
    out = _Sddmm.apply(pattern, kernel, alpha, _spread(C, blocks, 2), _spread(B, blocks, 2))
    if use_values or values is not None:
        out = out * _values_of(A, values)
    if batched:
        return out
    if isinstance(A, Tensor):
        return torch.sparse_csr_tensor(A.crow_indices(), A.col_indices(), out[0], size=A.shape)
    return out[0]


def fusedmm(
    A: Any,
    C: Tensor,
    B: Tensor,
    D: Tensor,
    *,
    edge: str | None = None,
    alpha: float = 1.0,
    use_values: bool = False,
    values: Tensor | None = None,
    kernel: str = "auto",
) -> Tensor:
    """Return ``E_i = sum_j f(alpha * <C_i, B_j> [* A_ij]) D_j``, with gradients.

    The forward pass never stores the sampled matrix; the backward pass has a few arrays of ``nnz``
    numbers.

    Parameters
    ----------
    A : torch CSR tensor or wollemi.Csr, shape (m, n)
        The pattern, and with ``use_values`` the values unless ``values`` is given.
    C : Tensor, shape (m, k) or (b, m, k)
    B : Tensor, shape (n, k) or (b, n, k)
    D : Tensor, shape (n, p) or (b, n, p)
    edge : {None, "identity", "scaled", "sigmoid", "softmax"}
        As in :func:`wollemi.fusedmm`.
    alpha : float
    use_values : bool
    values : Tensor, shape (nnz,) or (b, nnz), optional
    kernel : str

    Returns
    -------
    Tensor, shape (m, p) or (b, m, p)
    """
    pattern = pattern_of(A)
    edge = "identity" if edge is None else edge
    if edge not in EDGES:
        raise InvalidArgument(f"edge: expected None or one of {', '.join(EDGES)}, got {edge!r}")
    _check("C", C, pattern.shape[0])
    _check("B", B, pattern.shape[1], like=C)
    _check("D", D, pattern.shape[1])
    if edge == "scaled":
        edge, alpha = "identity", alpha / max(C.shape[-1], 1) ** 0.5
    weights = _values_of(A, values) if use_values or values is not None else None
    batched = any(x.dim() == 3 for x in (C, B, D)) or (weights is not None and weights.dim() == 2)
    if weights is None:
        C, B, D = _one_dtype(C, B, D)
        blocks = _blocks(C=C, B=B, D=D)
    else:
        C, B, D, weights = _one_dtype(C, B, D, weights)
        blocks = _blocks(C=C, B=B, D=D, values=weights[..., None])
        weights = _spread(weights, blocks, 1)
    operands = (_spread(x, blocks, 2) for x in (C, B, D))
    out = _Fusedmm.apply(pattern, kernel, edge, alpha, weights, *operands)
    return out if batched else out[0]


# ---- shapes and dtypes


def _check(what: str, tensor: Tensor, rows: int, like: Tensor | None = None) -> None:
    columns = "k" if like is None else like.shape[-1]
    fits = tensor.dim() in (2, 3) and tensor.shape[-2] == rows
    if not fits or (like is not None and tensor.shape[-1] != columns):
        raise ShapeMismatch(
            f"{what}: expected shape ({rows}, {columns}) or (b, {rows}, {columns}), "
            f"got {tuple(tensor.shape)}"
        )
    if tensor.is_complex():
        raise UnsupportedDtype(f"{what}: complex tensors have no gradients here; use wl.spmm")


def _one_dtype(*tensors: Tensor) -> tuple[Tensor, ...]:
    dtype = tensors[0].dtype
    for tensor in tensors[1:]:
        dtype = torch.promote_types(dtype, tensor.dtype)
    return tuple(tensor.to(dtype) for tensor in tensors)


def _blocks(**tensors: Tensor) -> int:
    counts = {name: t.shape[0] for name, t in tensors.items() if t.dim() == 3}
    different = set(counts.values()) - {1}
    if len(different) > 1:
        told = ", ".join(f"{name} has {count}" for name, count in counts.items())
        raise ShapeMismatch(f"batches of different lengths: {told}")
    return max(counts.values(), default=1)


def _spread(tensor: Tensor, blocks: int, block_dims: int) -> Tensor:
    """Return a batch; what is one for all blocks stays one in memory."""
    if tensor.dim() == block_dims:
        tensor = tensor[None]
    return tensor.expand(blocks, *tensor.shape[1:])
