"""A program of JAX on a GPU, which ``test_jax_gpu.py`` runs in a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.sparse import BCSR

import wollemi as wl
from wollemi.interop import jax as wj

RNG = np.random.default_rng(0)
CPU = jax.devices("cpu")[0]


def matrix(n: int, per_row: int, executor: str) -> wl.Csr:
    columns = np.sort(RNG.integers(0, n, (n, per_row)), 1).ravel()
    data = RNG.standard_normal(n * per_row).astype(np.float32)
    A = wl.Csr((data, columns, np.arange(n + 1) * per_row), shape=(n, n), executor="omp")
    A.sum_duplicates()
    return A.to(executor)


def energy(A: wl.Csr) -> Callable[..., Any]:
    """Every product, with its gradients."""

    def f(v: Any, c: Any, b: Any) -> Any:
        softmax = wj.fusedmm(A, c, b, b, edge="softmax", values=v)
        own = wj.fusedmm(A, c, b, b, edge=lambda s, e: e.softmax(s) * e.of_rows(e.sum(s)))
        sampled = wj.sddmm(A, c, b, values=v)
        return (softmax**2).sum() + (own**2).sum() + (sampled**2).sum() + wj.spmm(A, b).sum()

    return jax.value_and_grad(f, (0, 1, 2))


def products() -> None:
    A = matrix(300, 7, "cuda")
    for dtype, tolerance in (("float32", 2e-3), ("bfloat16", 0.2), ("float16", 0.1)):
        shapes = ((A.nnz,), (300, 16), (300, 16))
        operands = [jnp.asarray(RNG.standard_normal(s) / 4, dtype) for s in shapes]
        host = [jax.device_put(x, CPU) for x in operands]
        want = jax.tree.leaves(jax.jit(energy(A.to("omp")))(*host))
        compiled = jax.jit(energy(A))
        for _ in range(3):  # the first call leaves launches, which the others repeat
            for got, exact in zip(jax.tree.leaves(compiled(*operands)), want, strict=True):
                difference = np.abs(np.asarray(got, float) - np.asarray(exact, float)).max()
                assert difference < tolerance * np.abs(np.asarray(exact, float)).max(), dtype


def patterns() -> None:
    A = matrix(200, 5, "omp")
    b = jnp.ones((200, 4), jnp.float32)
    M = BCSR(tuple(map(jnp.asarray, (A.data, A.indices, A.indptr))), shape=A.shape)
    stacked = jnp.stack([jnp.asarray(A.data)] * 3)
    for got in (
        jax.jit(lambda b: wj.spmm(A, b))(b),
        wj.spmm(A.to("cuda"), b),
        wj.spmm(M, b),
        jax.jit(wj.spmm)(M, b),
        jax.jit(wj.spmm)(M, b),
        jax.vmap(lambda v: wj.spmm(A, b, values=v))(stacked)[2],
    ):
        np.testing.assert_allclose(got, A.to_dense() @ np.ones((200, 4)), rtol=1e-3, atol=1e-4)


def solves_and_derivatives() -> None:
    jax.config.update("jax_enable_x64", True)
    S = np.diag(np.arange(1.0, 31.0) ** 1.1) + 0.3 * np.eye(30, k=1) + 0.3 * np.eye(30, k=-1)
    A, v, b = wl.Csr(S, executor="cuda"), jnp.asarray(S[S.nonzero()]), jnp.ones(30)
    w, V = np.linalg.eigh(S)
    x = np.linalg.solve(S, np.ones(30))
    how = {"solver": "minres", "M": "none", "rtol": 1e-12}

    def solved(v: Any) -> Any:
        return wj.solve(A, b, values=v, solver="cg", M="jacobi", rtol=1e-12)

    np.testing.assert_allclose(jax.jit(solved)(v), x, rtol=1e-9)
    gradient = jax.jit(jax.grad(lambda v: solved(v).sum()))(v)
    np.testing.assert_allclose(gradient, -np.outer(x, x)[S.nonzero()], rtol=1e-7, atol=1e-12)
    largest = jax.grad(lambda v: wj.eigsh(A, k=1, which="LA", values=v, **how)[0].sum())(v)
    np.testing.assert_allclose(largest, np.outer(V[:, -1], V[:, -1])[S.nonzero()], atol=1e-7)
    inverse = jax.jit(jax.grad(lambda v: wj.log_determinant(A, values=v)))(v)
    np.testing.assert_allclose(inverse, np.linalg.inv(S).T[S.nonzero()], atol=1e-9)
    np.testing.assert_allclose(wj.matmul(A, A).values.sum(), (S @ S).sum(), rtol=1e-9)
    estimate = wj.log_determinant(A, values=v, method="lanczos", probes=64, steps=30)
    assert abs(float(estimate) - np.log(w).sum()) < 0.05 * np.log(w).sum()
    np.testing.assert_allclose(wj.least_squares(A, b, **how), x, rtol=1e-6)


def _sum_of_squares(f: Callable[[Any], Any], v: Any) -> Any:
    return (f(v) ** 2).sum()


def both_orders() -> None:
    """Compare first and second derivatives along a direction with differences."""
    jax.config.update("jax_enable_x64", True)
    S = np.diag([1.0, 2.5, 4.0, 6.0, 8.5]) + 0.3 * (np.eye(5, k=1) + np.eye(5, k=-1))
    A, b = wl.Csr(S, executor="cuda"), jnp.asarray(RNG.standard_normal((5, 2)))
    functions: dict[str, Callable[[Any], Any]] = {
        "solve": lambda v: wj.solve(A, b, values=v, solver="direct"),
        "least squares": lambda v: wj.least_squares(A, b, values=v),
        "sparse product": lambda v: wj.matmul(A, A, A_values=v, B_values=v * v).values,
        "coarse matrix": lambda v: wj.galerkin(A, A, A_values=v, P_values=v * v).values,
        "determinant": lambda v: wj.log_determinant(A, values=v),
        "eigenpairs": lambda v: sum(x.sum() for x in wj.eigsh(A, k=2, which="LA", values=v)),
        "singular triplets": lambda v: sum(x.sum() for x in wj.svds(A, k=2, values=v)),
        "edge function": lambda v: wj.fusedmm(
            A, b, b, b, values=v, edge=lambda s, e: e.softmax(jnp.tanh(s) * e.of_rows(b[:, 0]))
        ),
    }
    v = jnp.asarray(S[S.nonzero()])
    along, step = jnp.asarray(RNG.standard_normal(v.shape)), 1e-5
    for name, f in functions.items():
        scalar = partial(_sum_of_squares, f)
        gradient = jax.jit(jax.grad(scalar))
        first, curved = jax.jit(partial(jax.jvp, gradient))((v,), (along,))
        ends = [v + step * along, v - step * along]
        slope = (scalar(ends[0]) - scalar(ends[1])) / (2 * step)
        bent = (gradient(ends[0]) - gradient(ends[1])) / (2 * step)
        np.testing.assert_allclose(first @ along, slope, rtol=1e-5, atol=1e-6, err_msg=name)
        size = float(jnp.abs(bent).max())
        np.testing.assert_allclose(curved, bent, rtol=0, atol=1e-5 * size, err_msg=name)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
