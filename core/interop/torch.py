"""The machine-learning kernels on PyTorch's tensors, with gradients.

``torch.func.grad`` and ``vjp`` take them; forward mode and ``vmap`` do not (batches are an axis).
``torch.compile`` breaks its graph at them, and is quieter about it where they come as
``torch.compiler.disable(spmm)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from ..errors import InvalidArgument, ShapeMismatch, UnsupportedDtype
from ..executor import Executor
from ..factors import real_number
from ..formats import Csr
from ..products.fusedmm import EDGES
from ..registry import executor as executor_by_name
from ..registry import get_default_executor
from .torch_gradients import Fusedmm, Sddmm, Spmm, native_of, tensor_of

# The pattern of each torch matrix that was used, so that its plans and its transpose are made once.
_patterns: Any = WeakIdKeyDictionary()


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
            executor, (A.shape[0], A.shape[1]), *(native_of(executor, a) for a in arrays)
        )
        _patterns[A] = found
    return found


def _executor_of(device: torch.device) -> Executor:
    if device.type == "cpu":
        default = get_default_executor()
        return default if default.xp is np else executor_by_name("omp")
    return executor_by_name(f"{device.type}:{device.index or 0}")


def _values_of(A: Any, values: Tensor | None, nnz: int) -> Tensor:
    if values is None:
        return A.values() if isinstance(A, Tensor) else tensor_of(A.data)
    _check_tensor("values", values)
    if values.dim() not in (1, 2) or values.shape[-1] != nnz:
        raise ShapeMismatch(
            f"values: expected shape ({nnz},) or (b, {nnz}), got {tuple(values.shape)}"
        )
    return values


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
    values = _values_of(A, values, pattern.nnz)
    _check("B", B, pattern.shape[1])
    batched = B.dim() == 3 or values.dim() == 2
    (values, B) = _one_dtype(values, B)
    blocks = _blocks(B=B, values=values[..., None])
    out = Spmm.apply(pattern, kernel, _spread(values, blocks, 1), _spread(B, blocks, 2))
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
    alpha = _factor(alpha, "sddmm")
    _check("C", C, pattern.shape[0])
    _check("B", B, pattern.shape[1], like=C)
    batched = C.dim() == 3 or B.dim() == 3 or (values is not None and values.dim() == 2)
    (C, B) = _one_dtype(C, B)
    blocks = _blocks(C=C, B=B)
    out = Sddmm.apply(pattern, kernel, alpha, _spread(C, blocks, 2), _spread(B, blocks, 2))
    if use_values or values is not None:
        out = out * _values_of(A, values, pattern.nnz)
    if batched:
        return out
    if isinstance(A, Tensor):
        pointers, indices = (
            A.crow_indices(),
            A.col_indices(),
        )  # those of a tensor: known to be right
        return torch.sparse_csr_tensor(
            pointers, indices, out[0], size=A.shape, check_invariants=False
        )
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
    alpha = _factor(alpha, "fusedmm")
    edge = "identity" if edge is None else edge
    if edge not in EDGES:
        raise InvalidArgument(f"edge: expected None or one of {', '.join(EDGES)}, got {edge!r}")
    _check("C", C, pattern.shape[0])
    _check("B", B, pattern.shape[1], like=C)
    _check("D", D, pattern.shape[1])
    if edge == "scaled":
        edge, alpha = "identity", alpha / max(C.shape[-1], 1) ** 0.5
    weights = _values_of(A, values, pattern.nnz) if use_values or values is not None else None
    batched = any(x.dim() == 3 for x in (C, B, D)) or (weights is not None and weights.dim() == 2)
    if weights is None:
        C, B, D = _one_dtype(C, B, D)
        blocks = _blocks(C=C, B=B, D=D)
    else:
        C, B, D, weights = _one_dtype(C, B, D, weights)
        blocks = _blocks(C=C, B=B, D=D, values=weights[..., None])
        weights = _spread(weights, blocks, 1)
    operands = (_spread(x, blocks, 2) for x in (C, B, D))
    out = Fusedmm.apply(pattern, kernel, edge, alpha, weights, *operands)
    return out if batched else out[0]


# ---- factors, shapes and dtypes


def _factor(alpha: Any, operation: str) -> float:
    if isinstance(alpha, Tensor) and alpha.requires_grad:
        raise InvalidArgument(
            f"alpha: {operation} has no gradient for it; multiply C by alpha instead, which has one"
        )
    return real_number(alpha, "alpha", operation)


def _check_tensor(what: str, given: Any) -> None:
    if not isinstance(given, Tensor):
        raise InvalidArgument(
            f"{what}: expected a torch tensor, got {type(given).__name__}; wl.spmm and the others "
            "take arrays"
        )


def _check(what: str, tensor: Tensor, rows: int, like: Tensor | None = None) -> None:
    _check_tensor(what, tensor)
    columns = "k" if like is None else like.shape[-1]
    fits = tensor.dim() in (2, 3) and tensor.shape[-2] == rows
    if not fits or (like is not None and tensor.shape[-1] != columns):
        raise ShapeMismatch(
            f"{what}: expected shape ({rows}, {columns}) or (b, {rows}, {columns}), "
            f"got {tuple(tensor.shape)}"
        )


def _one_dtype(*tensors: Tensor) -> tuple[Tensor, ...]:
    dtype = tensors[0].dtype
    for tensor in tensors[1:]:
        dtype = torch.promote_types(dtype, tensor.dtype)
    if not dtype.is_floating_point:
        raise UnsupportedDtype(
            f"tensors of {dtype} have no gradients here; convert them to floats, or use wl.spmm"
        )
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
