"""Sampled products, a function of them, and the product with the result, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..call_kernels import run_call
from ..calls import FusedmmCall, TracedCall
from ..edge_functions.trace import EdgeFunction
from ..errors import InvalidArgument
from ..executor import Array
from ..factors import real_number
from ..formats import Csr
from ..formats.mask import Mask
from ..formats.mask_union import MaskUnion
from ..libraries import graph_handler, tensor_handler
from ..operands import executor_beside, home
from ..operation import Operation
from ..operations import masks
from ..operations import products as operations
from ..registry import executor_owning
from .edge_inputs import inputs_of, sum_dtype, traced_or_refused
from .mask_parts import SeveralMasks, is_for_heads, merged, require_no_out, runs_of
from .operands import (
    KEYS,
    QUERIES,
    SUMMED,
    DenseOperand,
    ProductResult,
    as_csr,
    blocks_of,
    common_type,
    rows_of_operand,
)
from .repeats import RepeatableCall, repeated
from .sddmm import pattern_values, require_equal_columns
from .tensors import differentiable, in_likeness, is_pattern, is_tensor

#: Edge functions by name; "scaled" divides products by the square root of k.
EDGES = ("identity", "scaled", "sigmoid", "softmax")

#: The result; with ``return_lse`` also the logarithms of the totals.
Results: TypeAlias = Array | tuple[Array, Array]


class Options(NamedTuple):
    """The options of :func:`fusedmm` that all implementations accept."""

    edge: str | EdgeFunction | None
    alpha: float
    use_values: bool
    kernel: str


def fusedmm(
    A: object,
    C: ArrayLike,
    B: ArrayLike,
    D: ArrayLike,
    *,
    edge: str | EdgeFunction | None = None,
    alpha: float = 1.0,
    use_values: bool = False,
    out: Array | None = None,
    kernel: str = "auto",
    return_lse: bool = False,
) -> Any:
    """Return ``E_i = sum_j f(alpha * <C_i, B_j> [* A_ij]) D_j`` over the pattern of ``A``.

    It is ``spmm(f(sddmm(A, C, B, alpha)), D)`` in one pass that never stores the sampled matrix;
    with ``edge="softmax"`` and ``alpha = k ** -0.5`` it is sparse attention.

    Parameters
    ----------
    A : sparse matrix, Graph, list of edges or boolean array, shape (m, n)
        A :class:`wollemi.Csr`; other matrices are converted. Duplicates count as separate entries.
        Or a mask of :mod:`wollemi.masks`, a union of masks, or a list with a mask for each block;
        the entries of masks are never stored in an array.
    C : array, shape (m, k) or (b, m, k)
        The rows that are multiplied by rows of ``B`` (queries).
    B : array, shape (n, k) or (b, n, k)
        The rows that are multiplied by rows of ``C`` (keys).
    D : array, shape (n, p) or (b, n, p)
        The rows that are summed; it may be ``B`` itself.
    edge : {None, "identity", "scaled", "sigmoid", "softmax"} or callable
        The function f. ``"scaled"`` divides the products by the square root of k, as PyTorch's
        attention does before it adds a bias. ``"softmax"`` is the softmax over the entries of a
        row, computed online. An entry whose product is minus infinity has no weight; a row without
        entries gives zeros, and so does a row with only such entries. A function ``f(s, entries)``
        of your own is traced once and becomes a part of the kernel. It gets the scores and
        :class:`~wollemi.core.edge_functions.trace.Entries`, and returns weights, for example
        ``lambda s, e: e.softmax(s - abs(e.rows - e.columns))``. It consists of arithmetic,
        comparisons, ``where`` and NumPy functions.
    alpha : float
        Factor of the products.
    use_values : bool
        Whether to multiply the products by the stored values of ``A`` before f.
    out : array, shape (m, p) or (b, m, p), optional
        Overwritten and returned.
    kernel : str
        Name of an algorithm, or ``"auto"``; ``A.plan_for("fusedmm", k)`` shows the choice. With a
        mask on GPUs ``"row-split"`` or ``"tile-mma"``.
    return_lse : bool
        Whether to return the logarithms of the totals of a softmax too. They allow results over
        parts of a pattern to be combined.

    Returns
    -------
    array, shape (m, p) or (b, m, p)
        The result in the common dtype; for float16 and bfloat16 sums are computed in float32.
        PyTorch tensors give a tensor, with the gradients of :func:`wollemi.interop.torch.fusedmm`.
    log_totals : array, shape (m,) or (b, m)
        With ``return_lse``: ``log sum_j exp(s_ij)`` over the scores of each row, in the dtype of
        the sums; plus infinity for a row without weight.

    Raises
    ------
    ShapeMismatch, ExecutorMismatch, UnsupportedDtype, InvalidArgument
        If the operands do not fit together, or if no edge function or kernel has that name.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(([1.0, 1.0, 1.0], [0, 0, 1], [0, 1, 3]))
    >>> wl.fusedmm(A, np.zeros((2, 4)), np.ones((2, 4)), np.array([[2.0], [4.0]]), edge="softmax")
    array([[2.],
           [3.]])
    """
    repeats = result = None
    if out is None and not return_lse:
        repeats, result = repeated(A, ("fusedmm", edge, kernel), (alpha,), (C, B, D), use_values)
    if result is not None:
        return result
    return _of_any(A, C, B, D, Options(edge, alpha, use_values, kernel), out, return_lse, repeats)


def _of_any(
    A: object,
    C: ArrayLike,
    B: ArrayLike,
    D: ArrayLike,
    options: Options,
    out: Array | None,
    return_lse: bool,
    repeats: RepeatableCall | None,
) -> Results:
    """Return the product with a matrix, a mask or several masks, for arrays or tensors."""
    if type(A) is not Csr and (is_for_heads(A) or isinstance(A, MaskUnion)):
        return _of_masks(A, C, B, D, options, out, return_lse)
    if isinstance(A, Mask):
        if not is_tensor(C):
            A = A.beside(executor_beside(A.executor, C, B, D, out))
    elif type(A) is not Csr:
        A = graph_handler().matrix_of(A, rows_of_operand(B))
        A = A if is_tensor(A) or (is_tensor(C) and is_pattern(A)) else as_csr(A)
    tensors = differentiable(A, C, B, D) if out is None else None
    if tensors is not None:
        return tensors.fusedmm(A, C, B, D, **options._asdict(), return_lse=return_lse)
    matrix = A if isinstance(A, (Csr, Mask)) else as_csr(A)
    operands = (matrix, C, B, D, options, out, return_lse, repeats)
    return matrix.executor.submit("wl.fusedmm", matrix, _of_arrays, *operands)


def _of_masks(
    A: SeveralMasks,
    C: ArrayLike,
    B: ArrayLike,
    D: ArrayLike,
    options: Options,
    out: Array | None,
    return_lse: bool,
) -> Results:
    """Return the product with a union of masks, or with a mask for each head."""
    require_no_out(out)
    if is_tensor(C):
        given = options._asdict()
        return tensor_handler().fusedmm(A, C, B, D, **given, return_lse=return_lse)
    if isinstance(A, MaskUnion):
        return _of_union(A, C, B, D, options, return_lse)
    return _of_heads(A, C, B, D, options, return_lse)


def _of_union(
    A: MaskUnion,
    C: ArrayLike,
    B: ArrayLike,
    D: ArrayLike,
    options: Options,
    return_lse: bool,
) -> Results:
    place, given = executor_beside(A.executor, C, B, D), options._asdict()
    parts = [part.beside(place) for part in A.parts]
    softmax = return_lse or _ends_with_softmax(options.edge, A, C)
    found = [fusedmm(part, C, B, D, **given, return_lse=softmax) for part in parts]
    if not softmax:
        return sum(found[1:], start=found[0])
    xp = np if isinstance(found[0][0], np.ndarray) else parts[0].executor.xp
    made, logs = merged(xp, *zip(*found, strict=True))
    made = made.astype(found[0][0].dtype)
    return (made, logs) if return_lse else made


def _of_heads(
    A: Sequence[Mask | MaskUnion],
    C: ArrayLike,
    B: ArrayLike,
    D: ArrayLike,
    options: Options,
    return_lse: bool,
) -> Results:
    given = options._asdict()
    dense: list[Array] = [np.asarray(x) if isinstance(x, (list, tuple)) else x for x in (C, B, D)]
    heads = max(int(x.shape[0]) if x.ndim == 3 else 1 for x in dense)
    results: list[Any] = []
    for mask, run in runs_of(A, heads if heads > 1 else len(A)):
        apart = [x.ndim == 3 and x.shape[0] > 1 for x in dense]
        left, right, added = (x[run] if its else x for x, its in zip(dense, apart, strict=True))
        left = left if left.ndim == 3 else left[None]
        found = fusedmm(mask, left, right, added, **given, return_lse=return_lse)
        results += [found] * (1 if any(apart) else run.stop - run.start)
    if not return_lse:
        return _joined(results)
    outs, logs = zip(*results, strict=True)
    return _joined(outs), _joined(logs)


def _joined(parts: Sequence[Array]) -> Array:
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return executor_owning(parts[0], home(parts[0])).xp.concatenate(parts)


def _ends_with_softmax(edge: str | EdgeFunction | None, A: MaskUnion, C: ArrayLike) -> bool:
    if not callable(edge):
        return bool(edge == "softmax")
    leading = np.shape(C)[:-2]
    return traced_or_refused(edge, A.parts[0], (*leading, A.nnz)).program.final == "softmax"


def _of_arrays(
    A: Csr | Mask,
    C: ArrayLike,
    B: ArrayLike,
    D: ArrayLike,
    options: Options,
    out: Array | None,
    return_lse: bool,
    repeats: RepeatableCall | None,
) -> Results:
    edge, alpha, use_values, kernel = options
    alpha = real_number(alpha, "alpha", "fusedmm")
    executor, (m, n) = A.executor, A.shape
    edge = checked_edge(edge)
    queries, keys = DenseOperand(executor, C, m, QUERIES), DenseOperand(executor, B, n, KEYS)
    summed = DenseOperand(executor, D, n, SUMMED)
    require_equal_columns(queries, keys)
    if edge == "scaled":
        edge, alpha = "identity", alpha / max(queries.columns, 1) ** 0.5
    operands = (queries, keys, summed)
    blocks, batched = blocks_of(*operands)
    held = [A.data] if use_values and isinstance(A, Csr) else []
    dtype = common_type("fusedmm", queries.batch, keys.batch, summed.batch, *held, real=True)
    left, right, added = [o.cast(executor, dtype, blocks) for o in operands]
    batch = (blocks, m, summed.columns)
    shape = batch if batched else batch[1:]
    result = ProductResult(executor, out, shape, batch, dtype, 0.0, left, right, added)
    values = pattern_values(A, dtype, blocks) if use_values and isinstance(A, Csr) else None
    logs = executor.allocate((blocks, m), sum_dtype(dtype)) if return_lse else None
    if callable(edge):
        traced = traced_or_refused(edge, A, (blocks, A.nnz) if batched else (A.nnz,))
        if return_lse and traced.program.final != "softmax":
            refuse_lse()
        inputs = inputs_of(traced, executor, A, blocks, sum_dtype(dtype))
        text, given = traced.program.text, (values, left, right, added)
        made = TracedCall(A, *given, *inputs, result.array, logs, alpha, text, kernel)
        run_call(
            masks.fusedmm_traced if isinstance(A, Mask) else operations.csr_fusedmm_traced, made
        )
    else:
        call = FusedmmCall(A, values, left, right, added, result.array, logs, alpha, edge, kernel)
        operation = _operation(A, edge, return_lse)
        if repeats is None:
            run_call(operation, call)
        else:
            repeats.run(operation, call, result)
    found = in_likeness(result.give(queries.from_host), C, out)
    if logs is None:
        return found
    totals = logs if batched else logs[0]
    return found, in_likeness(executor.to_host(totals) if queries.from_host else totals, C, None)


Function = TypeVar("Function", bound=Callable[..., Any])


def checked_edge(edge: str | Function | None) -> str | Function:
    """Return an edge function, or the name of one; None means ``"identity"``."""
    edge = "identity" if edge is None else edge
    if not callable(edge) and edge not in EDGES:
        raise InvalidArgument(
            f"edge: expected None, one of {', '.join(EDGES)} or a function, got {edge!r}"
        )
    return edge


def refuse_lse() -> NoReturn:
    """Raise an error: only a softmax has logarithms of totals."""
    raise InvalidArgument(
        'return_lse: expected edge="softmax" or a function that ends with entries.softmax(s)'
    )


def _operation(A: Csr | Mask, edge: str, return_lse: bool) -> Operation:
    """Return the operation of an edge function that has a name."""
    if return_lse and edge != "softmax":
        refuse_lse()
    if isinstance(A, Mask):
        return masks.fusedmm_softmax if return_lse else masks.fusedmm
    return operations.csr_fusedmm_softmax if return_lse else operations.csr_fusedmm
