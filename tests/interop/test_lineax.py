"""Matrices, preconditioners and solvers of ours in lineax."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import InvalidArgument, ShapeMismatch

from ..backends.needs import package

jax = package("jax")
jnp = package("jax.numpy")
lx = package("lineax")
wx = package("wollemi.interop.lineax")

pytestmark = pytest.mark.usefixtures("jax_in_doubles")

LINE = 2.2 * np.eye(8) - np.eye(8, k=1) - np.eye(8, k=-1)
POISSON = np.kron(LINE, np.eye(8)) + np.kron(np.eye(8), LINE)
SKEW = POISSON + 0.4 * np.eye(64, k=1)
b = np.sin(np.arange(64.0))


def close(got: Any, want: Any, rtol: float = 1e-8) -> None:
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=rtol, atol=1e-10)


def test_an_operator_is_its_matrix() -> None:
    array = np.triu(np.arange(12.0).reshape(3, 4))
    operator = wx.SparseLinearOperator(wl.Csr(array))
    close(operator.as_matrix(), array)
    close(operator.mv(jnp.ones(4)), array @ np.ones(4))
    close(operator.T.mv(jnp.ones(3)), array.T @ np.ones(3))
    close((operator @ operator.T * 2).as_matrix(), 2 * array @ array.T)
    close(lx.diagonal(operator), np.diag(array))
    assert (operator.in_size(), operator.out_size()) == (4, 3)
    assert not lx.is_symmetric(operator)
    assert lx.is_upper_triangular(wx.SparseLinearOperator(wl.Csr(SKEW), lx.upper_triangular_tag))


@pytest.mark.parametrize("name", ["jacobi", "amg", "ic"])
def test_methods_of_lineax_take_preconditioners_of_ours(name: str) -> None:
    A = wl.Csr(POISSON)
    operator = wx.SparseLinearOperator(A, lx.positive_semidefinite_tag)
    M = wx.Preconditioner(A, name)
    cg = lx.CG(rtol=1e-12, atol=1e-12)
    plain = lx.linear_solve(operator, jnp.asarray(b), cg)

    @jax.jit
    def solved(right: Any) -> Any:
        found = lx.linear_solve(operator, right, cg, options={"preconditioner": M})
        return found.value, found.stats["num_steps"]

    x, steps = solved(b)
    close(x, np.linalg.solve(POISSON, b))
    if name != "jacobi":
        assert steps < plain.stats["num_steps"]
    close(M.as_matrix(), M.as_matrix().T)
    tangent = jax.jvp(M.mv, (jnp.asarray(b),), (jnp.ones(64),))[1]
    close(tangent, M.mv(jnp.ones(64)))
    close(jax.grad(lambda r: M.mv(r) @ jnp.ones(64))(jnp.asarray(b)), tangent)


@pytest.mark.parametrize(
    "options", [{"solver": "gmres", "M": "jacobi"}, {"solver": "direct"}], ids=str
)
def test_lineax_solves_by_solvers_of_ours_with_derivatives(options: dict[str, Any]) -> None:
    A, solver = wl.Csr(SKEW), wx.Solver(**options)
    places = SKEW.nonzero()

    def solved(values: Any, right: Any) -> Any:
        operator = wx.SparseLinearOperator(A, values=values)
        return lx.linear_solve(operator, right, solver).value

    def formula(values: Any, right: Any) -> Any:
        return jnp.linalg.solve(jnp.zeros((64, 64)).at[places].set(values), right)

    values = SKEW[places]
    close(solved(values, b), np.linalg.solve(SKEW, b))
    got, want = (
        jax.jit(jax.grad(lambda v, r, f=f: (f(v, r) ** 2).sum(), (0, 1)))(values, b)
        for f in (solved, formula)
    )
    close(got[0], want[0], rtol=1e-6)
    close(got[1], want[1], rtol=1e-6)


def test_operands_of_other_kinds_are_told() -> None:
    with pytest.raises(InvalidArgument, match="expected a SparseLinearOperator"):
        lx.linear_solve(lx.MatrixLinearOperator(jnp.eye(2)), jnp.ones(2), wx.Solver())
    with pytest.raises(InvalidArgument, match=r"A: expected a wl\.Csr"):
        wx.Preconditioner(np.eye(2))
    with pytest.raises(ShapeMismatch, match="square"):
        wx.Preconditioner(wl.Csr(np.ones((2, 3))))
    with pytest.raises(InvalidArgument, match="M: expected"):
        wx.Preconditioner(wl.Csr(np.eye(2)), "none")
