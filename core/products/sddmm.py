"""Products of dense matrices, sampled at the positions of a sparse pattern."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..calls import SddmmCall
from ..deprecation import named_options
from ..errors import InvalidArgument, ShapeMismatch
from ..executor import Array
from ..factors import real_number
from ..formats import Csr
from ..libraries import graph_handler
from ..operations import products as operations
from ..small_values import as_dtype
from .operands import (
    KEYS,
    QUERIES,
    DenseOperand,
    ProductResult,
    as_csr,
    blocks_of,
    common_type,
    rows_of_operand,
)
from .repeats import RepeatableCall, repeated
from .tensors import differentiable, is_tensor


@named_options("alpha", "beta", positional=3, since="0.3", removal="0.5")
def sddmm(
    A: object,
    C: ArrayLike,
    B: ArrayLike,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    use_values: bool = False,
    out: Csr | Array | None = None,
    kernel: str = "auto",
) -> Any:
    """Return ``S_ij = alpha * <C_i, B_j> [* A_ij] + beta * out_ij`` on the pattern of ``A``.

    Parameters
    ----------
    A : sparse matrix, Graph, list of edges or boolean array, shape (m, n)
        A :class:`wollemi.Csr`; other matrices are converted. For a graph, the result has the
        entries of ``graph.pattern`` in their order. Duplicates count as separate entries.
    C : array, shape (m, k) or (b, m, k)
        The rows that are multiplied by rows of ``B``.
    B : array, shape (n, k) or (b, n, k)
        The rows of ``B`` correspond to the columns of the sampled product.
    alpha, beta : float
        Factors.
    use_values : bool
        Whether to multiply the products by the stored values of ``A``.
    out : Csr of the pattern of ``A``, or array of shape (nnz,) or (b, nnz), optional
        Overwritten and returned. With ``beta == 0`` it is never read.
    kernel : str
        Name of an algorithm, or ``"auto"``; ``A.plan_for("sddmm", k)`` shows the choice.

    Returns
    -------
    Csr, or array of shape (b, nnz)
        A matrix with the pattern of ``A``, or a sparse tensor if ``A`` is one. For a batch, the
        values of all matrices in the order of ``A.data``.

    Raises
    ------
    ShapeMismatch, ExecutorMismatch, UnsupportedDtype, InvalidArgument
        If the operands do not fit together, or if no kernel has that name.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(([1.0, 1.0, 1.0], [0, 0, 1], [0, 1, 3]))
    >>> wl.sddmm(A, np.array([[1.0, 2.0], [3.0, 4.0]]), np.eye(2)).data
    array([1., 3., 4.])
    """
    if type(A) is not Csr:
        A = graph_handler().matrix_of(A, rows_of_operand(B))
    tensors = differentiable(A, C, B) if is_tensor(A) and out is None else None
    if tensors is not None:
        return tensors.sddmm(A, C, B, alpha=alpha, use_values=use_values, kernel=kernel)
    repeats = made = None
    if out is None:
        repeats, made = repeated(A, ("sddmm", kernel), (alpha, beta), (C, B), use_values)
    A = as_csr(A)
    if made is not None:
        return made if made.ndim == 2 else A._with_data(made)
    alpha, beta = real_number(alpha, "alpha", "sddmm"), real_number(beta, "beta", "sddmm")
    operands = (A, C, B, alpha, beta, use_values, out, kernel, repeats)
    return A.executor.submit("wl.sddmm", A, _of_arrays, *operands)


def _of_arrays(
    A: Csr,
    C: ArrayLike,
    B: ArrayLike,
    alpha: float,
    beta: float,
    use_values: bool,
    out: Csr | Array | None,
    kernel: str,
    repeats: RepeatableCall | None,
) -> Csr | Array:
    executor = A.executor
    left, right = (
        DenseOperand(executor, C, A.shape[0], QUERIES),
        DenseOperand(executor, B, A.shape[1], KEYS),
    )
    require_equal_columns(left, right)
    blocks, batched = blocks_of(left, right)
    held = [A.data] if use_values else []
    dtype = common_type("sddmm", left.batch, right.batch, *held, real=True)
    rows, columns = left.cast(executor, dtype, blocks), right.cast(executor, dtype, blocks)
    shape = (blocks, A.nnz) if batched else (A.nnz,)
    target = out.data if isinstance(out, Csr) else out
    if isinstance(out, Csr) and (batched or not same_pattern(A, out)):
        raise InvalidArgument("out: expected a matrix of the pattern of A, made by sddmm itself")
    result = ProductResult(
        executor, target, shape, (blocks, A.nnz), dtype, beta, rows, columns, *held
    )
    values = pattern_values(A, dtype, blocks) if use_values else None
    call = SddmmCall(A, values, rows, columns, result.array, alpha, beta, kernel)
    if repeats is None:
        executor.run(operations.csr_sddmm, *call)
    else:
        repeats.run(operations.csr_sddmm, call, result)
    given = result.give(left.from_host and batched)
    if isinstance(out, Csr):
        out._tell_sharers()
        return out
    return given if batched or out is not None else A._with_data(given)


def require_equal_columns(left: DenseOperand, right: DenseOperand) -> None:
    """Raise an error unless rows of both operands have the same length."""
    if left.columns != right.columns:
        raise ShapeMismatch(
            f"{right.label}: expected {left.columns} columns as {left.label} has, got "
            f"{right.columns}"
        )


def same_pattern(A: Csr, S: Csr) -> bool:
    """Return whether two matrices share the arrays of their pattern."""
    return A.indices is S.indices and A.indptr is S.indptr


def pattern_values(A: Csr, dtype: np.dtype[Any], blocks: int) -> Array:
    """Return the values of ``A`` for each block of a batch."""
    data = as_dtype(A.executor, A.data, dtype)
    return A.executor.xp.broadcast_to(data[None], (blocks, A.nnz))
