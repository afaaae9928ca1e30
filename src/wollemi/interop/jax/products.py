"""The products of sparse and dense matrices as JAX primitives.

Gradients use the same kernels, on the pattern and on its transpose, which is made once. Linear
primitives define their transposes; other primitives have tangents that consist of linear ones.
Therefore, forward and reverse derivatives of every order exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import jax
import numpy as np
from jax.interpreters import ad

from ...core.formats import Csr
from ...core.operations import products as operations
from . import device_kernels
from .host_kernels import DENSE, ENTRIES, ROWS, HostKernel
from .lowering import NativeCall
from .primitives import define, given, multilinear, total

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...core.executor import HostArray
    from .patterns import Held


#: JAX arrays, or NumPy arrays in host kernels.
Values = TypeVar("Values", jax.Array, np.ndarray[Any, Any])


def _for_all(x: HostArray, blocks: int) -> HostArray:
    return np.broadcast_to(x, (blocks, *x.shape[1:]))


def _spmm_kernel(A: Csr, blocks: int, values: HostArray, B: HostArray, *, kernel: str) -> HostArray:
    out = np.empty((blocks, A.shape[0], B.shape[2]), B.dtype)
    values, B = _for_all(values, blocks), _for_all(B, blocks)
    A.executor.run(operations.csr_spmm, A, values, B, out, 1.0, 0.0, kernel)
    return out


def _transposed_kernel(
    A: Csr, blocks: int, values: HostArray, B: HostArray, *, kernel: str
) -> HostArray:
    transposed, order = A.transposed_pattern()
    return _spmm_kernel(transposed, blocks, np.take(values, order, axis=1), B, kernel=kernel)


def _sddmm_kernel(A: Csr, blocks: int, C: HostArray, B: HostArray, *, kernel: str) -> HostArray:
    out = np.empty((blocks, A.nnz), B.dtype)
    C, B = _for_all(C, blocks), _for_all(B, blocks)
    A.executor.run(operations.csr_sddmm, A, None, C, B, out, 1.0, 0.0, kernel)
    return out


def _fusedmm_kernel(
    A: Csr, blocks: int, *dense: HostArray, edge: str, alpha: float, kernel: str
) -> HostArray:
    arrays = [_for_all(x, blocks) for x in dense]
    values = arrays.pop(0) if len(arrays) == 4 else None
    C, B, D = arrays
    out = np.empty((blocks, A.shape[0], D.shape[2]), D.dtype)
    A.executor.run(operations.csr_fusedmm, A, values, C, B, D, out, alpha, edge, kernel)
    return out


# ---- sums over the entries of a row, a number of each row for its entries, softmax of each row


def _starts(A: Csr) -> tuple[HostArray, HostArray]:
    """Return the nonempty rows, and the first entry of each of them."""
    rows = np.flatnonzero(np.diff(A.indptr))
    return rows, np.asarray(A.indptr)[rows]


def _wide(x: Values) -> Values:
    return x.astype(np.float32) if x.dtype.itemsize < 4 else x


def _reduced(A: Csr, x: HostArray, ufunc: np.ufunc) -> HostArray:
    """Return a reduction of each row's entries in a wide dtype; empty rows give 0."""
    rows, starts = _starts(A)
    out = np.zeros((x.shape[0], A.shape[0]), x.dtype)
    if rows.size:
        out[:, rows] = ufunc.reduceat(x, starts, axis=1)
    return out


def _spread(A: Csr, r: HostArray) -> HostArray:
    return np.repeat(r, np.diff(A.indptr), axis=1)


def _sum_kernel(A: Csr, blocks: int, x: HostArray) -> HostArray:
    return _reduced(A, _wide(x), np.add).astype(x.dtype)


def _spread_kernel(A: Csr, blocks: int, r: HostArray) -> HostArray:
    return _spread(A, r)


def _softmax_kernel(A: Csr, blocks: int, s: HostArray) -> HostArray:
    wide = _wide(s)
    largest = _reduced(A, wide, np.maximum)
    # subtracting minus infinity from itself would give NaN
    powers = np.exp(wide - _spread(A, np.where(np.isneginf(largest), 0, largest)))
    totals = _reduced(A, powers, np.add)
    return (powers / _spread(A, np.where(totals == 0, 1, totals))).astype(s.dtype)


# ---- primitives

spmm_p = define(
    HostKernel("spmm", _spmm_kernel, (ENTRIES, DENSE), DENSE),
    lambda m, n, e, v, B, **_: (m, B.shape[2]),
    NativeCall("wollemi_spmm", "spmm"),
    device_kernels.spmm,
)
transposed_p = define(
    HostKernel("spmm_transposed", _transposed_kernel, (ENTRIES, DENSE), DENSE),
    lambda m, n, e, v, B, **_: (n, B.shape[2]),
    NativeCall("wollemi_spmm", "spmm", transposed=True),
    device_kernels.transposed,
)
sddmm_p = define(
    HostKernel("sddmm", _sddmm_kernel, (DENSE, DENSE), ENTRIES),
    lambda m, n, e, *_, **__: (e,),
    NativeCall("wollemi_sddmm", "sddmm"),
    device_kernels.sddmm,
)
fusedmm_p = define(
    HostKernel("fusedmm", _fusedmm_kernel, (ENTRIES, DENSE, DENSE, DENSE), DENSE),
    lambda m, n, e, *dense, **_: (m, dense[-1].shape[2]),
    NativeCall("wollemi_fusedmm", "fusedmm", columns_of=-3),
    device_kernels.fusedmm,
)
sum_p = define(
    HostKernel("segment_sum", _sum_kernel, (ENTRIES,), ROWS),
    lambda m, n, e, x, **_: (m,),
    NativeCall("wollemi_row_sum"),
    device_kernels.row_sum,
)
spread_p = define(
    HostKernel("segment_spread", _spread_kernel, (ROWS,), ENTRIES),
    lambda m, n, e, r, **_: (e,),
    NativeCall("wollemi_spread"),
    device_kernels.spread,
)
softmax_p = define(
    HostKernel("segment_softmax", _softmax_kernel, (ENTRIES,), ENTRIES),
    lambda m, n, e, s, **_: (e,),
    NativeCall("wollemi_softmax"),
    device_kernels.softmax,
)


def _auto(params: dict[str, Any]) -> dict[str, Any]:
    return {**params, "kernel": "auto"}


multilinear(
    spmm_p,
    lambda g, p, o, **params: sddmm_p.bind(*p, g, o[1], **_auto(params)),
    lambda g, p, o, **params: transposed_p.bind(*p, o[0], g, **_auto(params)),
)
multilinear(
    transposed_p,
    lambda g, p, o, **params: sddmm_p.bind(*p, o[1], g, **_auto(params)),
    lambda g, p, o, **params: spmm_p.bind(*p, o[0], g, **_auto(params)),
)
multilinear(
    sddmm_p,
    lambda g, p, o, **params: spmm_p.bind(*p, g, o[1], **_auto(params)),
    lambda g, p, o, **params: transposed_p.bind(*p, g, o[0], **_auto(params)),
)
multilinear(sum_p, lambda g, p, o, **params: spread_p.bind(*p, g, **params))
multilinear(spread_p, lambda g, p, o, **params: sum_p.bind(*p, g, **params))


def _softmax_derivative(
    p: jax.Array, t: jax.Array, pattern: Sequence[jax.Array], params: dict[str, Any]
) -> jax.Array:
    """Return the derivative of a softmax with result ``p`` in the direction ``t``."""
    return p * (t - spread_p.bind(*pattern, sum_p.bind(*pattern, p * t, **params), **params))


def _softmax_jvp(
    primals: Sequence[jax.Array], tangents: Sequence[jax.Array], **params: Any
) -> tuple[jax.Array, jax.Array | ad.Zero]:
    *pattern, _ = primals
    p = softmax_p.bind(*primals, **params)
    t = given(tangents[-1])
    return p, total(p, None if t is None else _softmax_derivative(p, t, pattern, params))


ad.primitive_jvps[softmax_p] = _softmax_jvp


def edge_weights(
    edge: str, s: jax.Array, pattern: Sequence[jax.Array], params: dict[str, Any]
) -> jax.Array:
    """Return f(s) for the entries of each row."""
    if edge == "sigmoid":
        return jax.nn.sigmoid(s)
    return softmax_p.bind(*pattern, s, **params) if edge == "softmax" else s


def _fusedmm_jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    pattern: Held,
    columns: int,
    edge: str,
    alpha: float,
    kernel: str,
) -> tuple[jax.Array, jax.Array | ad.Zero]:
    out = fusedmm_p.bind(
        *primals, pattern=pattern, columns=columns, edge=edge, alpha=alpha, kernel=kernel
    )
    known = {"pattern": pattern, "columns": columns}
    product = {**known, "kernel": "auto"}
    first = 0 if pattern is not None else 2
    # Keep scores and weights of 16-bit operands in float32, so that gradients are rounded once.
    places, dense = primals[:first], [_wide(x) for x in primals[first:]]
    given_tangents = [None if given(t) is None else _wide(t) for t in tangents[first:]]
    values, t_values = (dense.pop(0), given_tangents.pop(0)) if len(dense) == 4 else (None, None)
    C, B, D = dense
    t_C, t_B, t_D = given_tangents
    # Recompute the samples that the forward pass did not keep: s, then p = f(s).
    dots = sddmm_p.bind(*places, C, B, **product)
    s = alpha * dots if values is None else alpha * dots * values
    p = edge_weights(edge, s, places, known)
    t_s = None
    for t_dots in (
        None if t_C is None else sddmm_p.bind(*places, t_C, B, **product),
        None if t_B is None else sddmm_p.bind(*places, C, t_B, **product),
    ):
        if t_dots is not None:
            term = alpha * t_dots if values is None else alpha * t_dots * values
            t_s = term if t_s is None else t_s + term
    if t_values is not None:
        term = alpha * dots * t_values
        t_s = term if t_s is None else t_s + term
    t_p = t_s
    if t_s is not None and edge == "sigmoid":
        t_p = t_s * (p * (1 - p))
    elif t_s is not None and edge == "softmax":
        t_p = _softmax_derivative(p, t_s, places, known)
    tangent = total(
        out,
        None if t_p is None else spmm_p.bind(*places, t_p, D, **product),
        None if t_D is None else spmm_p.bind(*places, p, t_D, **product),
    )
    return out, tangent if given(tangent) is None else tangent.astype(out.dtype)


ad.primitive_jvps[fusedmm_p] = _fusedmm_jvp
