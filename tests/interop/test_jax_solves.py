"""Solves in JAX have the derivatives of dense solves, under every transform."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import InvalidArgument, ShapeMismatch, SystemNotSolved, UnsupportedDtype

from ..backends.needs import package

jax = package("jax")
jnp = package("jax.numpy")
sparse = package("jax.experimental.sparse")
check_grads = package("jax.test_util").check_grads
wj = package("wollemi.interop.jax")


pytestmark = pytest.mark.usefixtures("jax_in_doubles")


DENSE = (
    np.diag([4.0, 5.0, 6.0, 7.0]) + np.diag([1.0, -1.0, 2.0], 1) + np.diag([0.5, 1.0, 1.0], -2 + 1)
)
A = wl.Csr(DENSE, executor="omp:2")
ROWS, COLUMNS = DENSE.nonzero()
VALUES, b = DENSE[ROWS, COLUMNS], np.arange(8.0).reshape(4, 2)


def formula(values: Any, right: Any) -> Any:
    return jnp.linalg.solve(jnp.zeros((4, 4)).at[ROWS, COLUMNS].set(values), right)


def close(got: Any, want: Any) -> None:
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("how", [{"solver": "gmres", "M": "jacobi"}, {"solver": "direct"}], ids=str)
def test_derivatives_are_those_of_dense_solves(how: dict[str, Any]) -> None:
    def solved(values: Any, right: Any) -> Any:
        return wj.solve(A, right, values=values, **how)

    close(solved(VALUES, b[:, 0]), formula(VALUES, b[:, 0]))
    check_grads(jax.jit(solved), (VALUES, b), order=2, modes=("fwd", "rev"), rtol=1e-4)

    def of_values(f: Any) -> Any:
        return jax.jit(jax.grad(lambda v: (f(v, b) ** 3).sum()))(VALUES)

    close(of_values(solved), of_values(formula))


def test_batches_of_right_hand_sides_and_of_values() -> None:
    many = np.stack([b, b + 1, -b])
    close(jax.vmap(lambda x: wj.solve(A, x))(many), np.linalg.solve(DENSE, many))
    values = np.stack([VALUES, 2 * VALUES])
    both = jax.vmap(lambda v: wj.solve(A, b, values=v))(values)
    close(both, np.stack([both[0], both[0] / 2]))
    each = jax.jit(jax.vmap(jax.grad(lambda v: wj.solve(A, b, values=v).sum())))(values)
    want = jax.vmap(jax.grad(lambda v: formula(v, b).sum()))(values)
    close(each, want)


def test_sparse_arrays_of_jax_are_arguments() -> None:
    M = sparse.BCOO.fromdense(jnp.asarray(DENSE))
    got = jax.jit(jax.grad(lambda data, M: wj.solve(_with(M, data), b).sum()))(M.data, M)
    places = np.asarray(M.indices)
    want = jax.grad(
        lambda v: jnp.linalg.solve(jnp.zeros((4, 4)).at[tuple(places.T)].set(v), b).sum()
    )(M.data)
    close(got, want)


def _with(M: Any, data: Any) -> Any:
    return sparse.BCOO((data, M.indices), shape=M.shape)


def test_systems_that_are_not_solved_raise() -> None:
    singular = wl.Csr(np.array([[1.0, 1.0], [1.0, 1.0]]))
    with pytest.raises(SystemNotSolved):
        wj.solve(singular, np.array([1.0, 2.0]), solver="cg", M="none", maxiter=5)
    with pytest.raises(jax.errors.JaxRuntimeError, match="SystemNotSolved"):
        jax.jit(lambda x: wj.solve(singular, x, solver="cg", M="none", maxiter=5))(
            np.array([1.0, 2.0])
        ).block_until_ready()


def test_operands_that_make_no_system_are_told() -> None:
    with pytest.raises(ShapeMismatch, match="square"):
        wj.solve(wl.Csr(np.ones((2, 3))), np.ones(2))
    with pytest.raises(ShapeMismatch, match="b: expected shape"):
        wj.solve(A, np.ones(3))
    with pytest.raises(UnsupportedDtype, match="float32 or float64"):
        wj.solve(A, jnp.ones(4, "bfloat16"), values=jnp.ones(A.nnz, "bfloat16"))
    with pytest.raises(InvalidArgument, match="M: expected a name"):
        wj.solve(A, np.ones(4), M=wl.preconditioners.Jacobi(A))
