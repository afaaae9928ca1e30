"""Solves of many matrices of one pattern in PyTorch: one batch forward, one batch backward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.errors import SystemNotSolved

torch = pytest.importorskip("torch")
from wollemi.interop.torch import solve, spmm  # noqa: E402

N = 6
PATTERN = sp.csr_array(
    sp.random_array((N, N), density=0.4, rng=np.random.default_rng(0)) + sp.eye_array(N)
)
PATTERN.sort_indices()
ROWS = np.repeat(np.arange(N), np.diff(PATTERN.indptr))
A = wl.Csr(PATTERN)
SOLVERS = [
    "auto",
    "direct",
    wl.solvers.Bicgstab(rtol=1e-13, M="jacobi"),
    pytest.param(wl.solvers.Gmres, marks=pytest.mark.rare),
]


def operands(count: int = 3, dtype: Any = torch.float64) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    values = rng.standard_normal((count, PATTERN.nnz))
    values[:, PATTERN.indices == ROWS] += 4
    b = rng.standard_normal((count, N, 2))
    return (torch.tensor(x, dtype=dtype, requires_grad=True) for x in (values, b))


def settings(solver: Any) -> Any:
    return solver(rtol=1e-13) if isinstance(solver, type) else solver


def dense(values: Any) -> Any:
    made = torch.zeros(*values.shape[:-1], N, N, dtype=values.dtype)
    made[..., torch.tensor(ROWS), torch.tensor(PATTERN.indices, dtype=torch.int64)] = values
    return made


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_gradients_of_values_and_sides_of_both_orders(solver) -> None:
    values, b = operands()

    def f(values: Any, b: Any) -> Any:
        # differences of 1e-6 show an error of 1e-10
        tight = {"rtol": 1e-13} if isinstance(solver, str) else {}
        return solve(A, b, values=values, solver=settings(solver), **tight)

    torch.testing.assert_close(f(values, b), torch.linalg.solve(dense(values), b))
    assert torch.autograd.gradcheck(f, (values, b))
    assert torch.autograd.gradgradcheck(f, (values, b))
    assert torch.autograd.gradcheck(f, (values, b), check_forward_ad=True)


@pytest.mark.parametrize("solver", ["auto", "direct"])
def test_vmap_over_values_and_compiled_gradients(solver) -> None:
    values, b = operands()

    def one(values: Any, b: Any) -> Any:
        return solve(A, b, values=values, solver=solver)

    wanted = torch.linalg.solve(dense(values), b)
    torch.testing.assert_close(torch.func.vmap(one)(values, b), wanted)
    shared = torch.func.vmap(one, in_dims=(0, None))(values, b[0])
    torch.testing.assert_close(shared, torch.linalg.solve(dense(values), b[0]))
    each = torch.func.vmap(torch.func.grad(lambda v, b: one(v, b).square().sum()))(values, b)
    (whole,) = torch.autograd.grad(wanted.square().sum(), values)
    torch.testing.assert_close(each, whole)
    compiled = torch.compile(lambda v, b: one(v, b).square().sum(), backend="aot_eager")
    (found,) = torch.autograd.grad(compiled(values, b), values)
    torch.testing.assert_close(found, whole)
    products = torch.func.vmap(lambda v, b: spmm(A, b, values=v))(values, b)
    torch.testing.assert_close(products, dense(values) @ b)


def test_many_matrices_are_solved_by_one_call_in_each_direction(monkeypatch) -> None:
    from wollemi.solvers.differentiable import description

    calls = []
    run = description._run
    monkeypatch.setattr(description, "_run", lambda *given: calls.append(1) or run(*given))
    values, b = operands(count=50)
    solve(A, b, values=values, solver="direct").sum().backward()
    assert len(calls) == 2 and values.grad.shape == values.shape


def test_two_leading_axes_and_float32() -> None:
    values, b = operands(count=6, dtype=torch.float32)
    values, b = values.detach().reshape(2, 3, -1), b.detach().reshape(2, 3, N, 2)
    x = solve(A, b, values=values)
    torch.testing.assert_close(x, torch.linalg.solve(dense(values), b), rtol=1e-3, atol=1e-4)


def test_a_system_without_a_solution_names_least_squares() -> None:
    line = sp.diags_array(
        [-np.ones(19), [1.0, *2 * np.ones(18), 1.0], -np.ones(19)], offsets=[-1, 0, 1]
    )
    K = wl.Csr(line.tocsr())
    said = r"least squares: .*least_squares of wollemi.interop.torch .* damp > 0"
    with pytest.raises(SystemNotSolved, match=said):
        solve(K, torch.ones(20, dtype=torch.float64))


def test_the_first_system_that_fails_is_named() -> None:
    values, b = (x.detach() for x in operands())
    values[1] = 0
    with pytest.raises(SystemNotSolved, match=r"1 of 3 systems were not solved.*system 1: "):
        solve(A, b, values=values, solver="direct")
