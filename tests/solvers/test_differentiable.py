"""Solves that PyTorch differentiates, against dense solves and finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import InvalidArgument, ShapeMismatch, SystemNotSolved, UnsupportedDtype

from ..backends.needs import package

torch = package("torch")
solve = package("wollemi.interop.torch").solve
close = torch.testing.assert_close

N = 6
DENSE = (
    np.diag(np.full(N, 4.0)) + np.diag(np.full(N - 1, -1.5), 1) + np.diag(np.full(N - 2, 0.5), -2)
)
SYMMETRIC = DENSE + DENSE.T


@pytest.fixture(params=["reference", "omp:2"])
def A(request: pytest.FixtureRequest) -> wl.Csr:
    return wl.Csr(DENSE, executor=request.param)


def leaf(*shape: int, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


def values_of(A: wl.Csr) -> Any:
    return torch.from_numpy(A.data.copy()).requires_grad_()


def dense(A: wl.Csr, values: Any) -> Any:
    rows = torch.repeat_interleave(torch.arange(N), torch.from_numpy(np.diff(A.indptr)).long())
    return torch.zeros(N, N, dtype=values.dtype).index_put(
        (rows, torch.from_numpy(A.indices).long()), values
    )


HOW = {
    "auto": {},
    "direct": {"solver": "direct"},
    "gmres": {"solver": "gmres", "M": "none", "rtol": 1e-12},
    "bicgstab": {"solver": "bicgstab", "M": "ilu", "rtol": 1e-12},
    "settings": {"solver": wl.solvers.Bicgstab(rtol=1e-12, M=wl.preconditioners.Jacobi())},
    "settings of M": {"M": wl.preconditioners.Jacobi(), "rtol": 1e-12},
}


@pytest.mark.parametrize("how", HOW)
def test_every_way_to_solve_has_the_gradients_of_a_dense_solve(A: wl.Csr, how: str) -> None:
    values, b = values_of(A), leaf(N, 2)
    got = solve(A, b, values=values, **HOW[how])
    want = torch.linalg.solve(dense(A, values), b)
    close(got, want, rtol=1e-8, atol=1e-9)
    for found, expected in zip(
        torch.autograd.grad(got.pow(2).sum(), (values, b)),
        torch.autograd.grad(want.pow(2).sum(), (values, b)),
        strict=True,
    ):
        close(found, expected, rtol=1e-8, atol=1e-9)


def test_gradients_and_their_gradients_are_those_of_finite_differences(A: wl.Csr) -> None:
    def f(values: Any, b: Any) -> Any:
        return solve(A, b, values=values, solver="direct")

    operands = (values_of(A), leaf(N))
    torch.autograd.gradcheck(f, operands, check_forward_ad=True)
    torch.autograd.gradgradcheck(f, operands, fast_mode=True)


def test_symmetric_systems_by_conjugate_gradients() -> None:
    A = wl.Csr(SYMMETRIC)
    values, b = values_of(A), leaf(N)
    got = solve(A, b, values=values, solver="cg", rtol=1e-13)
    want = torch.linalg.solve(dense(A, values), b)
    (found,), (expected,) = (torch.autograd.grad(x.sum(), values) for x in (got, want))
    close(found, expected)


def test_right_hand_sides_are_batched(A: wl.Csr) -> None:
    values, b = values_of(A).detach(), leaf(3, N).detach()
    got = torch.func.vmap(lambda x: solve(A, x, values=values))(b)
    close(got, torch.linalg.solve(dense(A, values), b.T).T)
    jacobian = torch.func.jacrev(lambda x: solve(A, x, values=values))(b[0])
    close(jacobian, torch.linalg.inv(dense(A, values)))
    close(torch.func.jacfwd(lambda x: solve(A, x, values=values))(b[0]), jacobian)
    hessian = torch.func.hessian(lambda v: solve(A, b[0], values=v).sum())(values)
    close(hessian, hessian.T)


def test_matrices_are_batched(A: wl.Csr) -> None:
    values = torch.stack([values_of(A), 2 * values_of(A)]).detach()
    b = leaf(2, N, 3).detach()
    want = torch.stack([torch.linalg.solve(dense(A, v), x) for v, x in zip(values, b, strict=True)])
    close(solve(A, b, values=values), want)
    want = torch.stack([torch.linalg.solve(dense(A, v), b[0]) for v in values])
    close(torch.func.vmap(lambda v: solve(A, b[0], values=v))(values), want)


def test_sparse_tensors_and_compiled_functions(A: wl.Csr) -> None:
    S, b = torch.from_numpy(DENSE).to_sparse_csr().requires_grad_(), leaf(N)
    solve(S, b).sum().backward()
    full = torch.from_numpy(DENSE).requires_grad_()
    torch.linalg.solve(full, b.detach()).sum().backward()
    close(S.grad.to_dense(), full.grad * (full.detach() != 0))
    compiled = torch.compile(lambda x: solve(A, x).sin(), fullgraph=True, backend="aot_eager")
    close(compiled(b), solve(A, b).sin())


def test_float32_and_loose_tolerances_are_as_accurate_as_they_say() -> None:
    A = wl.Csr(SYMMETRIC)
    condition = np.linalg.cond(SYMMETRIC)
    exact = values_of(A)
    torch.linalg.solve(dense(A, exact), torch.ones(N).double()).sum().backward()
    for dtype, rtol in ((torch.float64, 1e-4), (torch.float64, 1e-8), (torch.float32, 1e-5)):
        values = values_of(A).detach().to(dtype).requires_grad_()
        b = torch.ones(N, dtype=dtype)
        solve(A, b, values=values, solver="cg", rtol=rtol).sum().backward()
        error = (values.grad.double() - exact.grad).norm() / exact.grad.norm()
        assert error < 4 * condition * rtol


def test_systems_that_are_not_solved_have_no_gradients(A: wl.Csr) -> None:
    with pytest.raises(SystemNotSolved, match="Loosen rtol"):
        solve(A, leaf(N), solver="gmres", M="none", maxiter=1, rtol=1e-14)


def test_options_of_a_direct_solve_count_or_are_refused(A: wl.Csr) -> None:
    values, b = values_of(A), leaf(N)
    for options in ({"maxiter": 3}, {"M": "jacobi"}):
        with pytest.raises(InvalidArgument, match=f"{next(iter(options))}: solver=.direct"):
            solve(A, b, values=values, solver="direct", **options)
    with pytest.raises(SystemNotSolved):
        solve(A, b, values=values, solver="direct", rtol=1e-30)
    assert solve(A, b, values=values, solver="direct", rtol=1e-30, atol=1.0).shape == b.shape


def test_what_makes_no_system_is_refused(A: wl.Csr) -> None:
    with pytest.raises(ShapeMismatch, match="square"):
        solve(wl.Csr(np.ones((2, 3))), leaf(2))
    with pytest.raises(ShapeMismatch, match="b: expected"):
        solve(A, leaf(N + 1))
    with pytest.raises(UnsupportedDtype):
        solve(A, leaf(N).to(torch.complex128))
    with pytest.raises(InvalidArgument, match="torch tensor"):
        solve(A, np.ones(N))
    with pytest.raises(InvalidArgument, match="M: expected a name"):
        solve(A, leaf(N), M=lambda r: r)
    with pytest.raises(InvalidArgument, match="solver: expected"):
        solve(A, leaf(N), solver="magic")
    with pytest.raises(InvalidArgument, match="did you mean 'gmres'"):
        solve(A, leaf(N), solver="gmre")
    with pytest.raises(InvalidArgument, match=r"pass solver\.settings"):
        solve(A, leaf(N), solver=wl.solvers.Cg(A))
    with pytest.raises(InvalidArgument, match="its settings say"):
        solve(A, leaf(N), solver=wl.solvers.Cg(rtol=1e-8), M="jacobi")


def test_no_right_hand_sides_are_no_work(A: wl.Csr) -> None:
    assert solve(A, torch.zeros(N, 0)).shape == (N, 0)
