"""Gradients in PyTorch beyond products and solves: of sparse products, determinants and spectra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import wollemi as wl  # noqa: E402
from wollemi.core.errors import (  # noqa: E402
    InvalidArgument,
    InvalidMatrix,
    ShapeMismatch,
    UnsupportedDtype,
)
from wollemi.interop import torch as wt  # noqa: E402
from wollemi.interop.torch import spectra  # noqa: E402
from wollemi.interop.torch.determinants import quadrature  # noqa: E402
from wollemi.solvers.differentiable import description  # noqa: E402

from ..backends.needs import rarely  # noqa: E402

RNG = np.random.default_rng(8)


def sparse_array(m: int, n: int, density: float = 0.5) -> Any:
    made = np.where(RNG.random((m, n)) < density, RNG.standard_normal((m, n)), 0.0)
    made[np.arange(min(m, n)), np.arange(min(m, n))] += 0.5
    return made


RECTANGLE, OTHER = sparse_array(6, 5), sparse_array(5, 4)
SQUARE = sparse_array(6, 6) + 4 * np.eye(6)
HOLLOW = np.fliplr(np.diag([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])) + np.diag([0.5] * 5, 1)
SYMMETRIC = (
    np.diag([1.0, 2.5, 4.0, 6.0, 8.5, 11.0]) + np.diag([0.3] * 5, 1) + np.diag([0.3] * 5, -1)
)

#: For symmetric systems, as in the derivatives of eigenpairs.
MINRES = {"solver": "minres", "M": "none", "rtol": 1e-12}


def values_of(array: Any) -> Any:
    return torch.tensor(array[array.nonzero()], requires_grad=True)


def dense(like: Any, values: Any) -> Any:
    rows, columns = map(torch.from_numpy, like.nonzero())
    return torch.zeros(like.shape, dtype=values.dtype).index_put((rows, columns), values)


def both_orders(f: Callable[..., Any], *operands: Any) -> None:
    assert torch.autograd.gradcheck(f, operands)
    assert torch.autograd.gradgradcheck(f, operands)


def close(got: Any, want: Any) -> None:
    torch.testing.assert_close(got, want, rtol=1e-7, atol=1e-9)


@pytest.fixture(params=["omp:2", rarely("reference")])
def on(request: pytest.FixtureRequest) -> Any:
    return lambda array: wl.Csr(array, executor=request.param)


def test_a_product_of_sparse_matrices_has_gradients(on: Any) -> None:
    A, B, a, b = on(RECTANGLE), on(OTHER), values_of(RECTANGLE), values_of(OTHER)
    made = wt.matmul(A, B)
    whole = made.pattern._with_data(made.values.numpy()).to_dense()
    np.testing.assert_allclose(whole, RECTANGLE @ OTHER)
    both_orders(lambda a, b: wt.matmul(A, B, A_values=a, B_values=b).values, a, b)
    csr = torch.tensor(RECTANGLE).to_sparse_csr()
    close(wt.matmul(csr, torch.tensor(OTHER).to_sparse_coo()).values, made.values)


def test_a_galerkin_product_has_gradients(on: Any) -> None:
    P = on(sparse_array(6, 3))
    made = wt.galerkin(on(SQUARE), P)
    whole = made.pattern._with_data(made.values.numpy()).to_dense()
    np.testing.assert_allclose(whole, P.to_dense().T @ SQUARE @ P.to_dense())
    p = torch.tensor(np.asarray(P.data), requires_grad=True)
    A = on(SQUARE)
    both_orders(lambda a, p: wt.galerkin(A, P, A_values=a, P_values=p).values, values_of(SQUARE), p)


@pytest.mark.parametrize(
    "array", [SQUARE, HOLLOW, SYMMETRIC], ids=["square", "hollow", "tridiagonal"]
)
def test_log_determinants_have_two_derivatives(on: Any, array: Any) -> None:
    A, values = on(array), values_of(array)
    found = wt.log_determinant(A, values=values)
    close(found, torch.linalg.slogdet(dense(array, values))[1])
    both_orders(lambda v: wt.log_determinant(A, values=v), values)


#: Functions of values, and their values.
OF_VALUES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "matmul": (
        lambda a, b: wt.matmul(R, Q, A_values=a, B_values=b).values,
        (values_of(RECTANGLE), values_of(OTHER)),
    ),
    "galerkin": (
        lambda a, p: wt.galerkin(S, R, A_values=a, P_values=p).values,
        (values_of(SQUARE), values_of(RECTANGLE)),
    ),
    "log_determinant": (lambda v: wt.log_determinant(S, values=v), (values_of(SQUARE),)),
    "estimate": (
        lambda v: wt.log_determinant(Y, values=v, method="lanczos", rtol=1e-12),
        (values_of(SYMMETRIC),),
    ),
    "eigsh": (lambda v: wt.eigsh(Y, k=2, which="LA", values=v), (values_of(SYMMETRIC),)),
    "svds": (lambda v: wt.svds(R, k=2, values=v), (values_of(RECTANGLE),)),
    "least_squares": (
        lambda v, b: wt.least_squares(R, b, values=v),
        (values_of(RECTANGLE), torch.linspace(-1.0, 2.0, 6, dtype=torch.float64)),
    ),
}
R, Q, S, Y = (wl.Csr(array) for array in (RECTANGLE, OTHER, SQUARE, SYMMETRIC))


@pytest.mark.parametrize("name", OF_VALUES)
def test_functions_of_values_go_through_transforms(name: str) -> None:
    function, leaves = OF_VALUES[name]
    given = tuple(x.detach() for x in leaves)
    every = tuple(range(len(given)))

    def loss(*x: Any) -> Any:
        made = function(*x)
        return sum((part**3).sum() for part in (made if isinstance(made, tuple) else (made,)))

    gradients = torch.func.grad(loss, every)(*given)
    leaves = tuple(x.clone().requires_grad_() for x in given)
    close(gradients, torch.autograd.grad(loss(*leaves), leaves))
    _, tangent = torch.func.jvp(loss, given, given)
    close(tangent, sum((g * x).sum() for g, x in zip(gradients, given, strict=True)))
    batch = tuple(torch.stack([x, 1.1 * x]) for x in given)
    many = torch.vmap(torch.func.grad(loss, every))(*batch)
    close(tuple(x[0] for x in many), gradients)
    close(tuple(x[1] for x in many), torch.func.grad(loss, every)(*(1.1 * x for x in given)))
    if name != "least_squares":  # right-hand sides have axes of their own
        first = lambda made: made[0] if isinstance(made, tuple) else made  # noqa: E731
        close(first(function(*batch))[1], first(function(*(1.1 * x for x in given))))
    if name != "estimate":
        hessian = torch.func.hessian(loss)(*given)
        assert hessian.isfinite().all()
        close(hessian, hessian.mT)


def test_third_derivatives_and_singular_matrices_are_refused() -> None:
    A, values = wl.Csr(SQUARE), values_of(SQUARE)
    (first,) = torch.autograd.grad(wt.log_determinant(A, values=values), values, create_graph=True)
    (second,) = torch.autograd.grad((first**2).sum(), values, create_graph=True)
    with pytest.raises(wl.errors.UnsupportedOperation, match="third"):
        torch.autograd.grad((second**2).sum(), values, create_graph=True)
    with pytest.raises(InvalidMatrix, match="singular"):
        wt.log_determinant(wl.Csr(np.ones((2, 2))))
    with pytest.raises(ShapeMismatch, match="square"):
        wt.log_determinant(wl.Csr(RECTANGLE))
    with pytest.raises(InvalidArgument, match="method"):
        wt.log_determinant(A, method="guess")
    with pytest.raises(UnsupportedDtype, match="float32 or float64"):
        wt.log_determinant(A, values=values.half())
    with pytest.raises(ShapeMismatch, match="matrices of one pattern"):
        batch = torch.stack([torch.eye(2), torch.eye(2).flip(0)]).to_sparse_coo()
        wt.log_determinant(batch)


def test_estimates_of_log_determinants_are_near_with_gradients() -> None:
    line = 2.2 * np.eye(12) - np.eye(12, k=1) - np.eye(12, k=-1)
    array = np.kron(line, np.eye(12)) + np.kron(np.eye(12), line)
    A, values = wl.Csr(array), values_of(array)

    def estimate(v: Any) -> Any:
        return wt.log_determinant(A, values=v, method="lanczos", probes=200, steps=40)

    exact = np.linalg.slogdet(array)[1]
    found = estimate(values)
    assert abs(float(found.detach()) - exact) < 0.02 * abs(exact)
    (gradient,) = torch.autograd.grad(found, values, create_graph=True)
    inverse = torch.tensor(np.linalg.inv(array)[array.nonzero()])
    assert abs(float(gradient.detach().sum() - inverse.sum())) < 0.05 * abs(float(inverse.sum()))
    (second,) = torch.autograd.grad(gradient.sum(), values)
    assert second.isfinite().all()


def test_the_rule_of_complete_lanczos_processes_is_exact() -> None:
    array = SYMMETRIC
    w, V = np.linalg.eigh(array)
    Z = np.sign(RNG.standard_normal((6, 5)))
    want = np.einsum("np,nm,mp->p", Z, V @ np.diag(np.log(w)) @ V.T, Z).mean()
    A = torch.tensor(array)
    close(float(quadrature(lambda Q: A @ Q, torch.tensor(Z), 6)), want)
    close(float(quadrature(lambda Q: 3 * Q, torch.tensor(Z), 6)), 6 * np.log(3))


@pytest.mark.parametrize(
    "options",
    [{"which": "LA"}, {"which": "SA"}, {"which": "LM", "sigma": 5.0}, {"which": "LA", **MINRES}],
    ids=str,
)
def test_eigenpairs_have_gradients_of_every_order(on: Any, options: dict[str, Any]) -> None:
    A, values = on(SYMMETRIC), values_of(SYMMETRIC)
    w, V = wt.eigsh(A, k=2, values=values, **options)
    close(torch.tensor(SYMMETRIC) @ V, V * w)
    both_orders(lambda v: wt.eigsh(A, k=2, values=v, **options), values)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("how", [{}, MINRES], ids=["direct", "minres"])
def test_gradients_of_eigenvectors_are_accurate_at_every_scale(
    scale: float, how: dict[str, Any]
) -> None:
    values = (scale * values_of(SYMMETRIC)).detach().requires_grad_()
    _, vector = wt.eigsh(wl.Csr(SYMMETRIC), k=1, which="LA", values=values, **how)
    (got,) = torch.autograd.grad(vector[1].sum(), values)
    w, V = np.linalg.eigh(scale * SYMMETRIC)
    v = V[:, -1] * np.sign(V[np.abs(V[:, -1]).argmax(), -1])
    adjoint = -V[:, :-1] @ (V[1, :-1] / (w[:-1] - w[-1]))
    want = np.outer(adjoint, v)
    want = ((want + want.T) / 2)[SYMMETRIC.nonzero()]
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-9 * np.abs(want).max())


@pytest.mark.parametrize("array", [RECTANGLE, RECTANGLE.T.copy()], ids=["tall", "wide"])
def test_singular_triplets_have_gradients(on: Any, array: Any) -> None:
    A, values = on(array), values_of(array)
    u, s, vt = wt.svds(A, k=2, values=values)
    close(torch.tensor(array) @ vt.T, u * s)
    both_orders(lambda v: wt.svds(A, k=2, values=v), values)


def laplacian(n: int) -> Any:
    line = 2.2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    return np.kron(line, np.eye(n)) + np.kron(np.eye(n), line) + np.diag(np.linspace(0, 1, n * n))


@pytest.mark.parametrize("most", [description.MOST_ITERATIONS, 1], ids=["minres", "factors"])
def test_larger_systems_of_eigenvectors_are_solved_by_minres_and_then_by_factors(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(description, "MOST_ITERATIONS", most)
    array = laplacian(12)  # more rows than are factored at once
    A, values = wl.Csr(array), values_of(array)
    w, V = wt.eigsh(A, k=2, which="SA", values=values)
    (got,) = torch.autograd.grad((V[3] * torch.tensor([1.0, -2.0])).sum() + w.sum(), values)
    leaf = torch.tensor(array, requires_grad=True)
    w, V = torch.linalg.eigh(leaf)
    V = V[:, :2] * V[:, :2][V[:, :2].abs().argmax(0), [0, 1]].sign()
    (V[3] * torch.tensor([1.0, -2.0])).sum().add(w[:2].sum()).backward()
    want = ((leaf.grad + leaf.grad.T) / 2)[array.nonzero()]
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-8)


def test_gradients_of_eigenvalues_alone_take_no_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*given: Any) -> Any:
        raise AssertionError("a system was solved")

    monkeypatch.setattr(spectra, "solve_adjoint", none)
    values = values_of(SYMMETRIC)
    wt.eigsh(wl.Csr(SYMMETRIC), k=2, which="LA", values=values)[0].sum().backward()
    vectors = np.linalg.eigh(SYMMETRIC)[1][:, -2:]
    np.testing.assert_allclose(values.grad, (vectors @ vectors.T)[SYMMETRIC.nonzero()], atol=1e-12)
    wt.svds(wl.Csr(RECTANGLE), k=2, values=values_of(RECTANGLE))[1].sum().backward()


def test_degenerate_pairs_are_refused() -> None:
    double = wl.Csr(np.diag([1.0, 2.0, 5.0, 5.0]))
    with pytest.raises(InvalidMatrix, match="two eigenvalues are equal"):
        wt.eigsh(double, k=1, which="LA")
    with pytest.raises(InvalidMatrix, match="two singular values"):
        wt.svds(double, k=1)


@pytest.mark.parametrize("array", [RECTANGLE, RECTANGLE.T.copy()], ids=["tall", "wide"])
@pytest.mark.parametrize("damp", [0.0, 0.5])
def test_least_squares_have_gradients(on: Any, array: Any, damp: float) -> None:
    A, values = on(array), values_of(array)
    b = torch.tensor(RNG.standard_normal((array.shape[0], 2)), requires_grad=True)
    found = wt.least_squares(A, b, values=values, damp=damp)
    D = torch.tensor(array)
    normal = D.T @ D + damp**2 * torch.eye(D.shape[1])
    close(found, torch.linalg.pinv(D) @ b if damp == 0 else torch.linalg.solve(normal, D.T @ b))
    both_orders(lambda v, b: wt.least_squares(A, b, values=v, damp=damp), values, b)
    close(wt.least_squares(A, b[:, 0], damp=damp), found[:, 0])
    deficient = wl.Csr(np.ones((4, 2)))
    with pytest.raises(InvalidMatrix, match="damp > 0"):
        wt.least_squares(deficient, torch.ones(4, dtype=torch.float64))


@pytest.mark.parametrize("executor", ["reference", "omp"])
@pytest.mark.parametrize("function", ["solve", "spmm"])
def test_new_values_between_forward_and_backward_are_an_error(executor: str, function: str) -> None:
    A = wl.Csr(SQUARE, executor=executor)
    b = torch.ones((6, 1), dtype=torch.float64, requires_grad=True)

    def forward() -> Any:
        return wt.solve(A, b) if function == "solve" else wt.spmm(A, b)

    for change in (lambda: A.update_values(A.data * 2), lambda: A.__imul__(2), lambda: A.T):
        x = forward()
        changes = A._values_version
        change()
        if A._values_version == changes:
            x.sum().backward()
            continue
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            x.sum().backward()
    want = np.linalg.solve(4 * SQUARE.T, np.ones(6)) if function == "solve" else 4 * SQUARE.sum(0)
    np.testing.assert_allclose(b.grad[:, 0], want, rtol=1e-4)


@pytest.mark.parametrize("function", ["solve", "least_squares"])
def test_a_batch_of_vectors_without_an_axis_of_columns_is_told_the_remedy(function):
    call = getattr(wt, function)
    A = wl.Csr(2 * np.eye(3))
    with pytest.raises(wl.errors.ShapeMismatch, match=r"got \(5, 3\); a batch .*: b\[..., None\]"):
        call(A, torch.ones(5, 3, dtype=torch.float64))
    x = call(A, torch.ones(5, 3, dtype=torch.float64)[..., None])[..., 0]
    np.testing.assert_allclose(x, np.full((5, 3), 0.5))
