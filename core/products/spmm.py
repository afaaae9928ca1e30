"""Products of a sparse and a dense matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..calls import SpmmCall, SpmvCall
from ..executor import Array
from ..factors import number
from ..formats import Csr
from ..formats.stored import StoredCsr
from ..libraries import graph_handler
from ..operations import matrix as vector_operations
from ..operations import products as operations
from .operands import (
    DenseOperand,
    ProductResult,
    Values,
    as_csr,
    blocks_of,
    common_type,
    rows_of_operand,
)
from .repeats import RepeatableCall, repeated
from .tensors import differentiable, in_likeness, is_pattern, is_tensor, known_product

#: An operand that makes the common dtype complex if a factor is complex.
_COMPLEX = np.zeros(1, np.complex64)


def spmm(
    A: object,
    B: ArrayLike,
    *,
    out: Array | None = None,
    alpha: complex = 1.0,
    beta: complex = 0.0,
    values: ArrayLike | None = None,
    kernel: str = "auto",
) -> Any:
    """Return ``alpha * A @ B + beta * out``.

    Parameters
    ----------
    A : sparse matrix, Graph, list of edges or boolean array, shape (m, n)
        A :class:`wollemi.Csr`; other matrices are converted. A :class:`wollemi.graph.Graph`, or a
        list of edges (sources, then targets) of shape (2, edges), means its pattern with ones. A
        :class:`wollemi.StoredCsr` is multiplied in its stored form, with the algorithm of its
        products with vectors. It is converted if ``kernel`` names another algorithm, or if values
        cannot be stored in its dtype for products in the common dtype.
    B : array, shape (n, k), (b, n, k) or (n,)
        Dense, row-major; other layouts are copied. A batch is multiplied block by block.
    out : array, shape (m, k), (b, m, k) or (m,), optional
        Overwritten and returned. With ``beta == 0`` it is never read.
    alpha, beta : scalar
        Factors.
    values : array, shape (nnz,) or (b, nnz), optional
        Values that replace ``A.data``; also for a batch of matrices with one pattern.
    kernel : str
        Name of an algorithm, or ``"auto"``; ``A.plan_for("spmm", k)`` shows the choice.

    Returns
    -------
    array, shape (m, k), (b, m, k) or (m,)
        The result in the common dtype; for float16 and bfloat16 sums are computed in float32.
        PyTorch tensors give a tensor, with the gradients of :func:`wollemi.interop.torch.spmm`.

    Raises
    ------
    ShapeMismatch, ExecutorMismatch, UnsupportedDtype, InvalidArgument
        If the operands do not fit together, or if no kernel has that name.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(([2.0, 1.0, 3.0], [0, 0, 1], [0, 1, 3]))
    >>> wl.spmm(A, np.array([[1.0, 0.5], [0.0, 1.0]]))
    array([[2. , 1. ],
           [1. , 3.5]])
    """
    repeats = known = None
    if values is None and out is None:
        known = known_product(A, B, alpha, beta) if kernel == "auto" else None
        if known is None:
            repeats, known = repeated(A, ("spmm", kernel), (alpha, beta), (B,), True)
    if known is not None:
        return known
    if (
        type(A) is not Csr
        and isinstance(A, StoredCsr)
        and not any(is_tensor(given) for given in (B, values, out))
    ):
        if values is None and kernel == "auto":
            factors = number(alpha, "alpha"), number(beta, "beta")
            return A.executor.submit("wl.spmm", A, _by_stored_values, A, B, out, *factors)
        A = A if values is None else A._pattern_alone()
    if type(A) is not Csr:
        A = graph_handler().matrix_of(A, rows_of_operand(B))
    if type(A) is not Csr and not is_tensor(A) and not (is_tensor(B) and is_pattern(A)):
        A = as_csr(A)
    tensors = differentiable(A, B, values, out)
    if tensors is not None:
        return tensors.spmm_anew(A, B, out, alpha, beta, values, kernel)
    A = A if type(A) is Csr else as_csr(A)
    alpha, beta = number(alpha, "alpha"), number(beta, "beta")
    given = (A, B, out, alpha, beta, values, kernel, repeats)
    return A.executor.submit("wl.spmm", A, _of_arrays, *given)


def _of_arrays(
    A: Csr,
    B: ArrayLike,
    out: Array | None,
    alpha: complex,
    beta: complex,
    values: ArrayLike | None,
    kernel: str,
    repeats: RepeatableCall | None,
) -> Array:
    executor, (m, n) = A.executor, A.shape
    dense = DenseOperand(executor, B, n, "B", vector=True)
    weights = Values(executor, A.data if values is None else values, A.nnz)
    blocks, batched = blocks_of(dense, weights)
    dtype = common_type("spmm", weights.batch, dense.batch, *_kinds(alpha, beta))
    k = dense.columns
    shape = (blocks, m, k) if batched else (m,) if dense.ndim == 1 else (m, k)
    block = dense.cast(executor, dtype, blocks)
    result = ProductResult(executor, out, shape, (blocks, m, k), dtype, beta, block, weights.batch)
    numbers = weights.cast(executor, dtype, blocks)
    call = SpmmCall(A, numbers, block, result.array, alpha, beta, kernel)
    if repeats is None:
        executor.run(operations.csr_spmm, *call)
    else:
        repeats.run(operations.csr_spmm, call, result)
    return in_likeness(result.give(dense.from_host), B, out)


def _kinds(alpha: complex, beta: complex) -> tuple[Array, ...]:
    """Return a complex array if a factor is complex, to make the common dtype complex."""
    return (_COMPLEX,) if complex in (type(alpha), type(beta)) else ()


def _by_stored_values(
    A: StoredCsr, B: ArrayLike, out: Array | None, alpha: complex, beta: complex
) -> Array:
    """Return alpha A B + beta out with products for vectors, which convert stored values."""
    executor, (m, n) = A.executor, A.shape
    dense = DenseOperand(executor, B, n, "B", vector=True)
    blocks, batched = blocks_of(dense)
    dtype = common_type("spmm", A, dense.batch, *_kinds(alpha, beta))
    matrix = A.astype(dtype)
    if not isinstance(matrix, StoredCsr):
        return spmm(matrix, B, out=out, alpha=alpha, beta=beta)
    k = dense.columns
    shape = (blocks, m, k) if batched else (m,) if dense.ndim == 1 else (m, k)
    block = dense.cast(executor, dtype, blocks)
    result = ProductResult(executor, out, shape, (blocks, m, k), dtype, beta, block)
    for x, y in zip(block, result.array, strict=True):
        executor.run(vector_operations.csr_spmv, *SpmvCall(matrix, x, y, alpha, beta))
    return in_likeness(result.give(dense.from_host), B, out)
