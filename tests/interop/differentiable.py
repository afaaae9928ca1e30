"""The public functions with derivatives: small problems for each, and the table in the docs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import wollemi as wl

RNG = np.random.default_rng(5)
WIDE, NARROW = ("float64", "float32"), ("float16", "bfloat16")


def _pattern(m: int, n: int, more: float) -> wl.Csr:
    made = np.where(RNG.random((m, n)) < 0.4, RNG.standard_normal((m, n)), 0.0)
    made[np.arange(min(m, n)), np.arange(min(m, n))] += more
    return wl.Csr(made, executor="omp:2")


A, P, SQUARE = _pattern(6, 5, 0.5), _pattern(5, 3, 1.0), _pattern(5, 5, 4.0)
SYMMETRIC = wl.Csr(
    np.diag([1.0, 2.5, 4.0, 6.0, 8.5]) + np.diag([0.3] * 4, 1) + np.diag([0.3] * 4, -1),
    executor="omp:2",
)
MASK = wl.masks.sliding_window(6, 3)


def _dense(*shape: int) -> Any:
    return RNG.standard_normal(shape)


class Row(NamedTuple):
    """A line of the table.

    Attributes
    ----------
    make : callable
        Returns the function of the leaves, for ``wollemi.interop.torch`` or its like for JAX.
    leaves : tuple of array
        Operands that have derivatives.
    jax : bool
        Whether JAX has it too.
    order : str
        To which order derivatives exist.
    dtypes : tuple of str
    """

    make: Callable[[Any], Callable[..., Any]]
    leaves: tuple[Any, ...]
    jax: bool = True
    order: str = "every"
    dtypes: tuple[str, ...] = (*WIDE, *NARROW)


def _of_graph(name: str, *given: str) -> Callable[[Any], Callable[..., Any]]:
    def make(_: Any) -> Callable[..., Any]:
        return lambda *x: getattr(wl.graph, name)(A, *given, *x)

    return make


def _own_function(s: Any, entries: Any) -> Any:
    return entries.softmax(s * s)


_C, _B, _D = _dense(6, 2), _dense(5, 2), _dense(5, 3)
_V = np.asarray(A.data)

ROWS = {
    "spmm": Row(lambda lib: lambda v, b: lib.spmm(A, b, values=v), (_V, _B)),
    "sddmm": Row(lambda lib: lambda v, c, b: lib.sddmm(A, c, b, values=v), (_V, _C, _B)),
    "fusedmm": Row(
        lambda lib: lambda v, *x: lib.fusedmm(A, *x, values=v, edge="softmax"), (_V, _C, _B, _D)
    ),
    "fusedmm(edge=f)": Row(
        lambda lib: lambda *x: lib.fusedmm(A, *x, edge=_own_function), (_C, _B, _D)
    ),
    "fusedmm(bias=)": Row(
        lambda lib: lambda w, *x: lib.fusedmm(A, *x, bias=w, edge="sigmoid"), (_V, _C, _B, _D)
    ),
    "fusedmm(return_lse=True)": Row(
        lambda lib: lambda *x: lib.fusedmm(A, *x, edge="softmax", return_lse=True),
        (_C, _B, _D), jax=False,
    ),
    "fusedmm(mask, ...)": Row(
        lambda lib: lambda *x: lib.fusedmm(MASK, *x, edge="softmax"),
        (_dense(6, 2), _dense(6, 2), _dense(6, 3)), jax=False,
    ),
    "gspmm": Row(_of_graph("gspmm", "mul", "mean"), (_B, _V[:, None]), jax=False),
    "gsddmm": Row(_of_graph("gsddmm", "dot"), (_B, _C), jax=False),
    "edge_softmax": Row(_of_graph("edge_softmax"), (_V[:, None],), jax=False),
    "additive_attention": Row(
        _of_graph("additive_attention"), (_dense(6, 2), _dense(5, 2), _dense(5, 2, 3)), jax=False
    ),
    "solve": Row(
        lambda lib: lambda v, b: lib.solve(SQUARE, b, values=v, solver="direct"),
        (np.asarray(SQUARE.data), _dense(5)), dtypes=WIDE,
    ),
    "least_squares": Row(
        lambda lib: lambda v, b: lib.least_squares(A, b, values=v), (_V, _dense(6)), dtypes=WIDE
    ),
    "matmul": Row(
        lambda lib: lambda a, b: lib.matmul(A, P, A_values=a, B_values=b).values,
        (_V, np.asarray(P.data)), dtypes=WIDE,
    ),
    "galerkin": Row(
        lambda lib: lambda a, p: lib.galerkin(SQUARE, P, A_values=a, P_values=p).values,
        (np.asarray(SQUARE.data), np.asarray(P.data)), dtypes=WIDE,
    ),
    "log_determinant": Row(
        lambda lib: lambda v: lib.log_determinant(SQUARE, values=v),
        (np.asarray(SQUARE.data),), order="second", dtypes=WIDE,
    ),
    "eigsh": Row(
        lambda lib: lambda v: lib.eigsh(SYMMETRIC, k=2, which="LA", values=v),
        (np.asarray(SYMMETRIC.data),), dtypes=WIDE,
    ),
    "svds": Row(
        lambda lib: lambda v: lib.svds(A, k=2, values=v), (_V,), dtypes=WIDE
    ),
}  # fmt: skip


def table() -> str:
    """Return the table of the docs."""
    lines = ["| | PyTorch | JAX | order | dtypes |", "| --- | --- | --- | --- | --- |"]
    for name, row in ROWS.items():
        jax = "yes" if row.jax else "no"
        lines.append(f"| `{name}` | yes | {jax} | {row.order} | {', '.join(row.dtypes)} |")
    return "\n".join(lines)
