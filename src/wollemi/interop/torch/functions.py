"""Machine learning products on PyTorch tensors, with gradients of every order.

Each function checks its operands and calls an operator of :mod:`.operators`, which supports all
transforms of PyTorch: ``torch.compile``, ``torch.export``, ``torch.func``, forward mode, autocast,
FakeTensor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core.deprecation import named_options
from ...core.errors import InvalidArgument, ShapeMismatch, UnsupportedDtype
from ...core.factors import real_number
from ...core.formats import Csr, Matrix
from ...core.formats.mask import Mask, refuse_without_entries
from ...core.formats.mask_union import MaskUnion
from ...core.libraries import graph_handler
from ...core.products.fusedmm import checked_edge, refuse_lse
from ...core.products.mask_parts import SeveralMasks, is_for_heads, merged, runs_of
from ...core.products.operands import KEYS, QUERIES, SUMMED, as_csr, is_dense_mask
from . import masks, operators
from .edge_functions import (
    fusedmm_traced,
    mask_fusedmm_traced,
    traced_of_mask,
    traced_or_none,
)
from .known_products import remember, spmm_again, spmm_traced
from .layouts import Sparse, check_dense, eager_for_tensors, sparse_of
from .memory import executor_of
from .messages import EdgeFunction, check_options, weigh
from .patterns import Pattern, owned_pattern


def pattern_of(A: object) -> Csr:
    """Return the pattern of a sparse tensor as a :class:`wollemi.Csr`.

    A CSR tensor shares its memory with the pattern, which is cached as long as the tensor lives.
    The pattern has the tensor's values at the first call; the functions of this module read values
    from the tensor itself.
    """
    if isinstance(A, Csr):
        return A
    device = A.device if isinstance(A, Tensor) else torch.device("cpu")
    sparse = sparse_of(A, device)
    result = _matrices.get(A) if isinstance(A, Tensor) else None
    if result is None:
        values = sparse.values().detach().reshape(-1)
        values = values.float() if values.dtype is torch.bool else values
        result = owned_pattern(sparse.pattern, values)
        if isinstance(A, Tensor):
            _matrices[A] = result
    return result


_matrices: Any = torch.utils.weak.WeakIdKeyDictionary()


@eager_for_tensors
def spmm(
    A: object,
    B: Tensor,
    *,
    out: Tensor | None = None,
    alpha: float = 1,
    beta: float = 0,
    values: Tensor | None = None,
    kernel: str = "auto",
) -> Tensor:
    """Return ``alpha * A @ B + beta * out`` with gradients for the values of ``A`` and for ``B``.

    Parameters
    ----------
    A : wollemi.Csr, sparse or boolean tensor, Pattern, Graph or list of edges, shape (m, n)
        A ``Csr`` gives its pattern, and its values unless ``values`` is given. Tensors have layout
        COO, CSR, CSC or BSR, or are a batch (b, m, n) in COO or CSR. The values of a ``Pattern``
        are ones.
    B : Tensor, shape (n, k), (..., n, k) or (n,)
        Dense, with any number of leading axes and any strides.
    out : Tensor, optional
        Overwritten and returned, without gradients. With ``beta == 0`` it is not read.
    alpha, beta : float
        Scalar factors.
    values : Tensor, shape (nnz,) or (..., nnz), optional
        Replaces the values of ``A``, in the order of ``A.values()``.
    kernel : str
        As in :func:`wollemi.spmm`.

    Returns
    -------
    Tensor, shape (m, k), (..., m, k) or (m,)

    Raises
    ------
    ShapeMismatch, ExecutorMismatch, UnsupportedDtype, InvalidArgument
        If the operands do not fit.

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
    if values is None and out is None and kernel == "auto":
        compiling = torch.compiler.is_compiling()
        known = (spmm_traced if compiling else spmm_again)(A, B, alpha, beta)
        if known is not None:
            return known
    return spmm_anew(A, B, out, alpha, beta, values, kernel)


@eager_for_tensors
def spmm_anew(
    A: object,
    B: Tensor,
    out: Tensor | None,
    alpha: float,
    beta: float,
    values: Tensor | None,
    kernel: str,
) -> Tensor:
    """Compute :func:`spmm` without repeating the launches of an earlier product."""
    _check_tensor("B", B)
    A = _matrix_of(A, B)
    sparse = sparse_of(A, B.device)
    indptr, indices, (rows, columns) = sparse.compressed.pattern
    weights = sparse.values() if values is None else sparse.checked(values)
    vector = B.dim() == 1
    B = sparse.fold(B[:, None] if vector else B, 1)
    _check("B", B, columns)
    weights, B = _one_dtype(weights, B)
    if B.dim() != 2 or weights.dim() != 1:
        weights, B = one_batch(values=(weights, 1), B=(B, 2))
    alpha, beta = real_number(alpha, "alpha", "spmm"), real_number(beta, "beta", "spmm")
    if out is not None:
        _check_tensor("out", out)
        target = out[:, None] if vector else out
        shape = (*B.shape[:-2], rows, B.shape[-1])
        block = sparse.compressed.diagonal
        written = target if block is None else target.flatten(0, 1)
        _check_out(target, written, shape, weights, B)
        operators.spmm_into(indptr, indices, weights, B, written, alpha, beta, kernel)
        return out
    if beta != 0:
        raise InvalidArgument("beta needs an out to scale: pass out= or leave beta at 0")
    made = operators.spmm(indptr, indices, weights, B, kernel)
    if values is None and kernel == "auto" and not torch.compiler.is_compiling():
        remember(A, weights, B, made)
    made = sparse.unfold(made if alpha == 1 else made * alpha)
    return made[..., 0] if vector else made


def _matrix_of(A: object, B: Tensor) -> object:
    """Return the pattern of a graph, or of an edge list between nodes with features ``B``.

    Matrices of other formats, SciPy's, and masks of NumPy are converted to CSR.
    """
    if isinstance(A, (Csr, Pattern)):
        return A
    if isinstance(A, Matrix) or hasattr(A, "tocsr"):
        return as_csr(A)
    if isinstance(A, np.ndarray) and is_dense_mask(A):
        return as_csr(A)
    return graph_handler().matrix_of(A, B.shape[-2 if B.dim() > 1 else -1])


@named_options("alpha", positional=3, since="0.3", removal="0.5")
@eager_for_tensors
def sddmm(
    A: object,
    C: Tensor,
    B: Tensor,
    *,
    alpha: float = 1,
    use_values: bool = False,
    values: Tensor | None = None,
    kernel: str = "auto",
) -> Tensor:
    """Return ``S_ij = alpha * <C_i, B_j> [* A_ij]`` on the pattern of ``A``, with gradients.

    Parameters
    ----------
    A : wollemi.Csr, sparse or boolean tensor, Pattern, Graph or list of edges, shape (m, n)
        The pattern and, with ``use_values``, the values unless ``values`` is given. Values have the
        order of the pattern; for a graph, the order of ``graph.pattern``.
    C : Tensor, shape (m, k) or (..., m, k)
    B : Tensor, shape (n, k) or (..., n, k)
    alpha : float
    use_values : bool
        Multiply by the values of ``A``.
    values : Tensor, shape (nnz,) or (..., nnz), optional
        Multiply by these values.
    kernel : str
        As in :func:`wollemi.sddmm`.

    Returns
    -------
    Tensor
        In the layout of ``A`` if it is a tensor and no operand has additional leading axes (COO for
        a boolean mask); otherwise the values, (nnz,) or (..., nnz).
    """
    _check_tensor(QUERIES, C)
    _check_tensor(KEYS, B)
    A = _matrix_of(A, B)
    sparse = sparse_of(A, C.device)
    alpha = _factor(alpha, "sddmm")
    C, B = sparse.fold(C, 0), sparse.fold(B, 1)
    indptr, indices, (rows, columns) = sparse.compressed.pattern
    _check(QUERIES, C, rows)
    _check(KEYS, B, columns, like=C)
    (C, B) = _one_dtype(C, B)
    (C, B) = one_batch(C=(C, 2), B=(B, 2))
    found = operators.sddmm(indptr, indices, C, B, kernel)
    if alpha != 1:
        found = found * alpha
    if values is not None:
        found = found * sparse.checked(values)
    elif use_values:
        found = found * sparse.values()
    own = A.shape[:-2] if isinstance(A, Tensor) and sparse.compressed.batched else ()
    return sparse.like(found) if found.shape[:-1] == own else found


@eager_for_tensors
def fusedmm(
    A: object,
    C: Tensor,
    B: Tensor,
    D: Tensor,
    *,
    edge: str | EdgeFunction | None = None,
    alpha: float = 1,
    use_values: bool = False,
    values: Tensor | None = None,
    bias: Tensor | None = None,
    softcap: float | None = None,
    dropout: float = 0.0,
    seed: int | None = None,
    kernel: str = "auto",
    return_lse: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Return ``E_i = sum_j f(alpha * <C_i, B_j> [* A_ij]) D_j``, with gradients.

    The forward pass never stores the sampled matrix, and neither does the backward pass on GPUs if
    no row and no column is long. Otherwise, the backward pass stores a few arrays of ``nnz``
    numbers; on the CPU, two for all heads. A user-defined function, a bias and a cap are traced and
    become part of the kernel; the gradients then need such arrays. The scores are stored with
    dropout, in ``torch.compile``, and for functions that cannot be traced (the logger ``wollemi``
    reports the reason).

    Parameters
    ----------
    A : wollemi.Csr, sparse or boolean tensor, Pattern, Graph, list of edges or mask, shape (m, n)
        The pattern and, with ``use_values``, the values unless ``values`` is given. A mask of
        :mod:`wollemi.masks` has no entries: arguments with one number per entry are then not
        supported, and a user-defined function must be traceable.
    C : Tensor, shape (m, k) or (..., m, k)
    B : Tensor, shape (n, k) or (..., n, k)
    D : Tensor, shape (n, p) or (..., n, p)
    edge : {None, "identity", "scaled", "sigmoid", "softmax"} or callable
        As in :func:`wollemi.fusedmm`. A function ``f(s, entries)`` gets the scores, shape
        (..., nnz), and :class:`Entries`, and returns weights: ``lambda s, e: e.softmax(s.relu())``.
    alpha : float
    use_values : bool
    values : Tensor, shape (nnz,) or (..., nnz), optional
    bias : Tensor, shape (nnz,) or (..., nnz), optional
        Added to the scores, in the order of ``A.values()``; minus infinity excludes an entry.
    softcap : float, optional
        If given, scores become ``softcap * tanh(score / softcap)`` before the bias is added.
    dropout : float
        The probability that a weight is set to zero; the remaining weights are scaled up.
    seed : int, optional
        The seed of the dropout: equal seeds drop the same entries on every device, at every call.
    kernel : str
    return_lse : bool
        As in :func:`wollemi.fusedmm`. The log-totals have gradients, for which the scores are
        stored.

    Returns
    -------
    Tensor, shape (m, p) or (..., m, p)
        With ``return_lse``, a pair of it and the logarithms of totals, shape (m,) or (..., m).
    """
    _check_tensor(QUERIES, C)
    alpha = _factor(alpha, "fusedmm")
    edge = checked_edge(edge)
    if torch.compiler.is_compiling() and _is_apart(A, edge, softcap, return_lse):
        return _fusedmm_apart(
            A, C, B, D, edge=edge, alpha=alpha, use_values=use_values, values=values, bias=bias,
            softcap=softcap, dropout=dropout, seed=seed, kernel=kernel, return_lse=return_lse,
        )  # fmt: skip
    if isinstance(A, MaskUnion) or is_for_heads(A):
        options = {"edge": edge, "alpha": alpha, "softcap": softcap, "kernel": kernel}
        given = {"values": values, "bias": bias, "dropout": dropout, "use_values": use_values}
        options |= {name: value for name, value in given.items() if value}
        return _fusedmm_of_masks(A, C, B, D, options, return_lse)
    if isinstance(A, Mask):
        of_entries = (values, bias, dropout or None)
        return _fusedmm_of_mask(A, C, B, D, edge, alpha, kernel, of_entries, softcap, return_lse)
    return _fusedmm_of_entries(
        A, C, B, D, edge, alpha, kernel, values, bias, use_values, softcap, dropout, seed,
        return_lse,
    )  # fmt: skip


_fusedmm_apart = torch.compiler.disable(
    fusedmm,
    reason="wollemi traces the functions of scores of masks and of return_lse, and lists the "
    "entries of a mask for gradients with a cap or a union",
)


def _is_apart(A: object, edge: object, softcap: float | None, return_lse: bool) -> bool:
    """Return whether a product must stay outside of the graph of a compiled function."""
    if isinstance(A, MaskUnion):
        return True
    if isinstance(A, Mask) or is_for_heads(A):
        several = not isinstance(A, Mask) and any(isinstance(part, MaskUnion) for part in A)
        return several or callable(edge) or softcap is not None or return_lse
    return return_lse and callable(edge)


def _fusedmm_of_entries(
    A: object,
    C: Tensor,
    B: Tensor,
    D: Tensor,
    edge: str | EdgeFunction,
    alpha: float,
    kernel: str,
    values: Tensor | None,
    bias: Tensor | None,
    use_values: bool,
    softcap: float | None,
    dropout: float,
    seed: int | None,
    return_lse: bool,
) -> Tensor | tuple[Tensor, Tensor]:
    """Compute :func:`fusedmm` for a pattern with entries."""
    _check_tensor("B", B)
    A = _matrix_of(A, B)
    sparse = sparse_of(A, C.device)
    C, B, D = sparse.fold(C, 0), sparse.fold(B, 1), sparse.fold(D, 1)
    indptr, indices, (rows, columns) = sparse.compressed.pattern
    _check(QUERIES, C, rows)
    _check(KEYS, B, columns, like=C)
    _check(SUMMED, D, columns)
    if edge == "scaled":
        edge, alpha = "identity", alpha / max(C.shape[-1], 1) ** 0.5
    weights = _weights_of(sparse, values, use_values)
    added = None if bias is None else sparse.checked(bias, "bias")
    check_options(softcap, dropout)
    given = {"C": (C, 2), "B": (B, 2), "D": (D, 2), "values": (weights, 1), "bias": (added, 1)}
    C, B, D, weights, added = _together(given)
    named = not callable(edge) and added is None and softcap is None and not return_lse
    if named and not dropout:
        found = operators.fusedmm(indptr, indices, weights, C, B, D, edge, alpha, kernel)
        return sparse.unfold(found)
    program = None
    if not dropout and (return_lse or not torch.compiler.is_compiling()):
        of_scores = (*C.shape[:-2], indices.shape[0])
        program = traced_or_none(edge, (rows, columns), of_scores, bias=added, softcap=softcap)
    if return_lse and (program is None or not program.softmax):
        refuse_lse()
    if program is not None:
        operands = (C, B, D)
        found, logs = fusedmm_traced(
            sparse.pattern, weights, operands, program, alpha, kernel, return_lse=return_lse
        )
        if return_lse:
            return sparse.unfold(found), sparse.unfold(logs[..., None])[..., 0]
    else:
        options = {"bias": added, "softcap": softcap, "dropout": dropout, "seed": seed}
        found = weigh(sparse.pattern, (C, B, D), weights, edge, alpha, kernel, **options)
    return sparse.unfold(found)


def _fusedmm_of_masks(
    A: SeveralMasks, C: Tensor, B: Tensor, D: Tensor, options: dict[str, Any], return_lse: bool
) -> Tensor | tuple[Tensor, Tensor]:
    """Return the product for a union of masks, or for one mask per head."""
    if options["edge"] == "scaled":
        options |= {"edge": "identity", "alpha": options["alpha"] / max(C.shape[-1], 1) ** 0.5}
    if isinstance(A, MaskUnion):
        edge, softcap = options["edge"], options["softcap"]
        softmax = traced_of_mask(edge, A.shape, (*C.shape[:-2], A.nnz), softcap).softmax
        if return_lse and not softmax:
            refuse_lse()
        found: list[Any] = [
            fusedmm(part, C, B, D, **options, return_lse=softmax) for part in A.parts
        ]
        if not softmax:
            return sum(found[1:], start=found[0])
        made, logs = merged(torch, *zip(*found, strict=True))
        made = made.to(found[0][0].dtype)
        return (made, logs) if return_lse else made
    if C.dim() < 3:
        raise ShapeMismatch(f"C: expected heads, shape (..., {len(A)}, m, k), got {tuple(C.shape)}")
    results: list[Any] = []
    for mask, run in runs_of(A, C.shape[-3]):
        operands = [x[..., run, :, :] if x.dim() > 2 and x.shape[-3] > 1 else x for x in (C, B, D)]
        results.append(fusedmm(mask, *operands, **options, return_lse=return_lse))
    if not return_lse:
        return torch.cat(results, -3)
    outs, totals = zip(*results, strict=True)
    return torch.cat(outs, -3), torch.cat(totals, -2)


def _fusedmm_of_mask(
    A: Mask,
    C: Tensor,
    B: Tensor,
    D: Tensor,
    edge: str | EdgeFunction,
    alpha: float,
    kernel: str,
    of_entries: tuple[Any, ...],
    softcap: float | None,
    return_lse: bool,
) -> Tensor | tuple[Tensor, Tensor]:
    if any(option is not None for option in of_entries):
        refuse_without_entries(A)
    check_options(softcap, 0.0)
    (m, n), columns = A.shape, C.shape[-1]
    _check(QUERIES, C, m)
    _check(KEYS, B, n, like=C)
    _check(SUMMED, D, n)
    if edge == "scaled":
        edge, alpha = "identity", alpha / max(columns, 1) ** 0.5
    if not torch.compiler.is_compiling():
        A = A.beside(executor_of(C.device))
    first, last = masks.mask_tensors(A, C.device)
    C, B, D = one_batch(C=(C, 2), B=(B, 2), D=(D, 2))
    C, B, D = _one_dtype(C, B, D)
    if isinstance(edge, str) and softcap is None and not return_lse:
        return masks.fusedmm(first, last, C, B, D, edge, alpha, kernel)
    program = traced_of_mask(edge, (m, n), (*C.shape[:-2], A.nnz), softcap)
    if return_lse and not program.softmax:
        refuse_lse()
    found = mask_fusedmm_traced(
        (first, last), (C, B, D), program, alpha, kernel, return_lse=return_lse
    )
    return found if return_lse else found[0]


def _together(operands: dict[str, tuple[Any, int]]) -> list[Any]:
    """Return the given operands with equal leading axes and in one dtype.

    The bias does not affect this dtype, so that a float32 mask does not widen the other operands.
    """
    there = {name: pair for name, pair in operands.items() if pair[0] is not None}
    made = dict(zip(there, one_batch(**there), strict=True))
    bias = made.pop("bias", None)
    made = dict(zip(made, _one_dtype(*made.values()), strict=True))
    if bias is not None:
        made["bias"] = bias.to(made["C"].dtype)
    return [made.get(name) for name in operands]


# ---- factors, shapes and dtypes


def _factor(alpha: object, operation: str) -> float:
    if isinstance(alpha, Tensor) and alpha.requires_grad:
        raise InvalidArgument(
            f"alpha: {operation} has no gradient for it; multiply C by alpha instead, which has one"
        )
    return float(real_number(alpha, "alpha", operation))


def _weights_of(sparse: Sparse, values: Tensor | None, use_values: bool) -> Tensor | None:
    if values is not None:
        return sparse.checked(values)
    return sparse.values() if use_values else None


def _check_tensor(label: str, operand: object) -> None:
    if not isinstance(operand, Tensor):
        raise InvalidArgument(
            f"{label}: expected a torch tensor, got {type(operand).__name__}; wl.spmm and the "
            "others take arrays"
        )
    check_dense(label, operand)


def _check(label: str, tensor: Tensor, rows: int, like: Tensor | None = None) -> None:
    _check_tensor(label, tensor)
    columns = "k" if like is None else like.shape[-1]
    fits = tensor.dim() >= 2 and tensor.shape[-2] == rows
    if not fits or (like is not None and tensor.shape[-1] != columns):
        raise ShapeMismatch(
            f"{label}: expected shape ({rows}, {columns}) or (..., {rows}, {columns}), "
            f"got {tuple(tensor.shape)}"
        )


def _check_out(out: Tensor, written: Tensor, shape: tuple[int, ...], *operands: Tensor) -> None:
    if tuple(written.shape) != tuple(shape) or out.dtype is not operands[0].dtype:
        raise ShapeMismatch(
            f"out: expected {operands[0].dtype} of shape {tuple(shape)}, got {out.dtype} of shape "
            f"{tuple(written.shape)}"
        )
    if torch.is_grad_enabled() and any(t.requires_grad for t in (out, *operands)):
        raise InvalidArgument(
            "out: results in given memory have no gradients; omit out=, or call this "
            "under torch.no_grad()"
        )


def _one_dtype(*tensors: Tensor) -> tuple[Tensor, ...]:
    dtype, equal = tensors[0].dtype, True
    for tensor in tensors[1:]:
        if tensor.dtype is not dtype:
            dtype, equal = torch.promote_types(dtype, tensor.dtype), False
    if not dtype.is_floating_point:
        raise UnsupportedDtype(
            f"tensors of {dtype} have no gradients here; convert them to floats, or use wl.spmm"
        )
    return tensors if equal else tuple(tensor.to(dtype) for tensor in tensors)


def one_batch(**tensors: tuple[Tensor, int]) -> tuple[Tensor, ...]:
    """Return operands with equal leading axes; a block for all is expanded without a copy."""
    found, alike, first = [], True, None
    for t, axes in tensors.values():
        axes_before = t.shape[: t.dim() - axes]
        first = axes_before if first is None else first
        alike = alike and axes_before == first
        found.append(t)
    if alike:  # the most frequent case, and the fastest to check
        return tuple(found)
    leading = {name: t.shape[: t.dim() - axes] for name, (t, axes) in tensors.items()}
    try:
        batch = torch.broadcast_shapes(*leading.values())
    except RuntimeError:
        told = ", ".join(f"{name} has {tuple(shape)}" for name, shape in leading.items())
        raise ShapeMismatch(f"batches of different shapes: {told}") from None
    return tuple(t.expand(*batch, *t.shape[t.dim() - axes :]) for t, axes in tensors.values())
