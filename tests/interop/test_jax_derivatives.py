"""Derivatives in JAX beyond products and solves: of sparse products, determinants and spectra."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import InvalidArgument, InvalidMatrix, ShapeMismatch, UnsupportedDtype

from ..backends.needs import package, rarely

jax = package("jax")
jnp = package("jax.numpy")
check_grads = package("jax.test_util").check_grads
wj = package("wollemi.interop.jax")
quadrature = package("wollemi.interop.jax.determinants").quadrature

pytestmark = pytest.mark.usefixtures("jax_in_doubles")

RNG = np.random.default_rng(8)
EXECUTORS = ["omp:2", rarely("reference")]


def sparse_array(m: int, n: int, density: float = 0.5) -> Any:
    made = np.where(RNG.random((m, n)) < density, RNG.standard_normal((m, n)), 0.0)
    made[np.arange(min(m, n)), np.arange(min(m, n))] += 0.5
    return made


RECTANGLE, OTHER = sparse_array(6, 5), sparse_array(5, 4)
SQUARE = sparse_array(6, 6) + 4 * np.eye(6)
#: Neither definite nor dominated by its diagonal, which is zero.
HOLLOW = np.fliplr(np.diag([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])) + np.diag([0.5] * 5, 1)
SYMMETRIC = (
    np.diag([1.0, 2.5, 4.0, 6.0, 8.5, 11.0]) + np.diag([0.3] * 5, 1) + np.diag([0.3] * 5, -1)
)


def dense(like: Any, values: Any) -> Any:
    rows, columns = like.nonzero()
    return jnp.zeros((*values.shape[:-1], *like.shape)).at[..., rows, columns].set(values)


def values_of(array: Any) -> Any:
    return array[array.nonzero()]


def close(got: Any, want: Any, **options: float) -> None:
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(
            np.asarray(one), np.asarray(other), **{"rtol": 1e-8, "atol": 1e-9, **options}
        )


def both_orders(f: Callable[..., Any], *operands: Any) -> None:
    check_grads(jax.jit(f), operands, order=2, modes=("fwd", "rev"), rtol=1e-3, atol=1e-3)


@pytest.fixture(params=EXECUTORS)
def on(request: pytest.FixtureRequest) -> Any:
    return lambda array: wl.Csr(array, executor=request.param)


# ---- sparse products


def test_a_product_of_sparse_matrices_has_derivatives_of_every_order(on: Any) -> None:
    A, B = on(RECTANGLE), on(OTHER)
    a, b = values_of(RECTANGLE), values_of(OTHER)

    def product(a: Any, b: Any) -> Any:
        return wj.matmul(A, B, A_values=a, B_values=b).values

    made = wj.matmul(A, B)
    pattern = made.pattern.to_scipy()
    assert pattern.shape == (6, 4)
    whole = made.pattern._with_data(np.asarray(made.values)).to_dense()
    close(whole, RECTANGLE @ OTHER)
    both_orders(product, a, b)
    got = jax.hessian(lambda a: (product(a, b) ** 3).sum())(a)
    close(got, jax.hessian(lambda a: ((dense(RECTANGLE, a) @ OTHER) ** 3).sum())(a))
    stacked = jax.vmap(lambda a: product(a, b))(np.stack([a, 2 * a]))
    close(stacked[1], 2 * product(a, b))


def test_a_galerkin_product_has_derivatives(on: Any) -> None:
    A, P = on(SQUARE), on(sparse_array(6, 3))
    p = P.data

    def coarse(a: Any, p: Any) -> Any:
        return wj.galerkin(A, P, A_values=a, P_values=p).values

    made = wj.galerkin(A, P)
    whole = made.pattern._with_data(np.asarray(made.values)).to_dense()
    close(whole, P.to_dense().T @ SQUARE @ P.to_dense())
    both_orders(coarse, values_of(SQUARE), np.asarray(p))


def test_products_of_matrices_without_entries_are_empty() -> None:
    none = wl.Csr(np.zeros((3, 5)))
    assert wj.matmul(none, wl.Csr(OTHER)).values.shape == (0,)
    with pytest.raises(ShapeMismatch, match="have no product"):
        wj.matmul(wl.Csr(OTHER), wl.Csr(OTHER))


# ---- determinants


@pytest.mark.parametrize(
    "array", [SQUARE, HOLLOW, SYMMETRIC], ids=["square", "hollow", "tridiagonal"]
)
def test_log_determinants_have_two_derivatives(on: Any, array: Any) -> None:
    A, values = on(array), values_of(array)

    def f(v: Any) -> Any:
        return wj.log_determinant(A, values=v)

    def formula(v: Any) -> Any:
        return jnp.linalg.slogdet(dense(array, v))[1]

    for run in (lambda g: g, jax.jit):
        close(run(f)(values), formula(values))
        close(run(jax.grad(f))(values), jax.grad(formula)(values))
        close(run(jax.hessian(f))(values), jax.hessian(formula)(values))
    many = np.stack([values, 2 * values])
    close(jax.vmap(jax.grad(f))(many), jax.vmap(jax.grad(formula))(many))
    close(wj.log_determinant(A, values=many), jax.vmap(formula)(many))


def test_third_derivatives_and_singular_matrices_are_refused() -> None:
    A, values = wl.Csr(SQUARE), values_of(SQUARE)
    with pytest.raises(wl.errors.UnsupportedOperation, match="third"):
        jax.jacobian(jax.hessian(lambda v: wj.log_determinant(A, values=v)))(values)
    with pytest.raises(InvalidMatrix, match="singular"):
        wj.log_determinant(wl.Csr(np.ones((2, 2))))
    with pytest.raises(InvalidMatrix, match="NaN"):
        wj.log_determinant(A, values=np.full(A.nnz, np.nan))
    with pytest.raises(ShapeMismatch, match="square"):
        wj.log_determinant(wl.Csr(RECTANGLE))
    with pytest.raises(InvalidArgument, match="method"):
        wj.log_determinant(A, method="guess")
    with pytest.raises(UnsupportedDtype, match="float32 or float64"):
        wj.log_determinant(A, values=jnp.ones(A.nnz, "bfloat16"))


def laplacian(n: int) -> Any:
    line = 2.2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    return np.kron(line, np.eye(n)) + np.kron(np.eye(n), line)


def test_the_entries_of_the_inverse_are_exact_with_fill() -> None:
    array = laplacian(7)
    A = wl.Csr(array)
    got = jax.grad(lambda v: wj.log_determinant(A, values=v))(values_of(array))
    close(got, np.linalg.inv(array).T[array.nonzero()])


def test_the_rule_of_complete_lanczos_processes_is_exact() -> None:
    array = laplacian(4)[:9, :9]
    w, V = np.linalg.eigh(array)
    Z = np.sign(RNG.standard_normal((9, 5)))
    want = np.einsum("np,nm,mp->p", Z, V @ np.diag(np.log(w)) @ V.T, Z).mean()
    close(quadrature(lambda Q: array @ Q, jnp.asarray(Z), 9), want)
    diagonal = 3.0 * np.eye(9)  # a process ends after one step
    close(quadrature(lambda Q: diagonal @ Q, jnp.asarray(Z), 9), 9 * np.log(3))


def test_estimates_of_log_determinants_are_near_with_gradients() -> None:
    array = laplacian(12)
    A, values = wl.Csr(array), values_of(array)

    def estimate(v: Any) -> Any:
        return wj.log_determinant(A, values=v, method="lanczos", probes=200, steps=40)

    exact = np.linalg.slogdet(array)[1]
    value, gradient = jax.jit(jax.value_and_grad(estimate))(values)
    assert abs(value - exact) < 0.02 * abs(exact)
    inverse = np.linalg.inv(array)[array.nonzero()]
    along = np.ones_like(values)
    assert abs(gradient @ along - inverse @ along) < 0.05 * abs(inverse @ along)
    assert np.isfinite(jax.grad(lambda v: jax.grad(estimate)(v) @ along)(values)).all()
    close(estimate(values), estimate(values))


# ---- spectra


def signed(V: Any) -> Any:
    largest = abs(V).argmax(0)
    return V * jnp.sign(V[largest, jnp.arange(V.shape[1])])


def test_eigenpairs_have_derivatives_of_every_order(on: Any) -> None:
    A, values = on(SYMMETRIC), values_of(SYMMETRIC)

    def pairs(v: Any, **how: Any) -> Any:
        return wj.eigsh(A, k=2, which="LA", values=v, **how)

    def formula(v: Any) -> Any:
        array = dense(SYMMETRIC, v)
        w, V = jnp.linalg.eigh((array + array.T) / 2)
        return w[-2:], signed(V[:, -2:])

    close(pairs(values), formula(values))
    close(jax.jit(jax.jacobian(pairs))(values), jax.jacobian(formula)(values), rtol=1e-6)
    close(jax.jacfwd(pairs)(values), jax.jacobian(formula)(values), rtol=1e-6)
    by_products = partial(pairs, solver="minres", M="none", rtol=1e-12)
    along = (values,), (np.cos(values),)
    close(jax.jvp(by_products, *along), jax.jvp(formula, *along), rtol=1e-6)
    both_orders(lambda v: (pairs(v)[0] ** 2).sum() + (pairs(v)[1][0] ** 3).sum(), values)
    many = np.stack([values, 2 * values])
    close(jax.vmap(pairs)(many)[0][1], 2 * pairs(values)[0])


@pytest.mark.parametrize("options", [{"which": "SA"}, {"which": "LM", "sigma": 5.0}], ids=str)
def test_eigenpairs_of_other_parts_of_the_spectrum(options: dict[str, Any]) -> None:
    A, values = wl.Csr(SYMMETRIC), values_of(SYMMETRIC)
    w, V = np.linalg.eigh(SYMMETRIC)
    at = int(abs(w - options["sigma"]).argmin()) if "sigma" in options else 0
    got = jax.grad(lambda v: wj.eigsh(A, k=1, values=v, **options)[0].sum())(values)
    close(got, np.outer(V[:, at], V[:, at])[SYMMETRIC.nonzero()])


@pytest.mark.parametrize("array", [RECTANGLE, RECTANGLE.T.copy()], ids=["tall", "wide"])
def test_singular_triplets_have_derivatives(on: Any, array: Any) -> None:
    A, values = on(array), values_of(array)

    def triplets(v: Any) -> Any:
        return wj.svds(A, k=2, values=v)

    def formula(v: Any) -> Any:
        u, s, vt = jnp.linalg.svd(dense(array, v), full_matrices=False)
        u, s, vt = u[:, 1::-1], s[1::-1], vt[1::-1]
        both = signed(jnp.concatenate([u, vt.T]))
        return both[: array.shape[0]], s, both[array.shape[0] :].T

    close(triplets(values), formula(values))
    close(jax.jacobian(triplets)(values), jax.jacobian(formula)(values), rtol=1e-6)
    both_orders(lambda v: triplets(v)[1].sum() + (triplets(v)[0][0] ** 2).sum(), values)


def test_degenerate_pairs_are_refused() -> None:
    double = np.diag([1.0, 2.0, 5.0, 5.0])
    with pytest.raises(InvalidMatrix, match="two eigenvalues are equal"):
        wj.eigsh(wl.Csr(double), k=1, which="LA")
    with pytest.raises(InvalidMatrix, match="two singular values"):
        wj.svds(wl.Csr(double), k=1)
    with pytest.raises(InvalidMatrix, match="symmetric pattern"):
        wj.eigsh(wl.Csr(np.triu(np.ones((4, 4)))), k=1)
    with pytest.raises(InvalidArgument, match="fewer than 4"):
        wj.eigsh(wl.Csr(double), k=4)
    with pytest.raises(InvalidArgument, match="is an argument of the compiled function"):
        sparse = package("jax.experimental.sparse")
        jax.jit(lambda M: wj.eigsh(M, k=1))(sparse.BCSR.fromdense(jnp.asarray(double)))


# ---- least squares


@pytest.mark.parametrize("array", [RECTANGLE, RECTANGLE.T.copy()], ids=["tall", "wide"])
@pytest.mark.parametrize("damp", [0.0, 0.5])
def test_least_squares_have_derivatives(on: Any, array: Any, damp: float) -> None:
    A, values = on(array), values_of(array)
    b = RNG.standard_normal((array.shape[0], 2))

    def f(v: Any, b: Any) -> Any:
        return wj.least_squares(A, b, values=v, damp=damp)

    def formula(v: Any, b: Any) -> Any:
        D = dense(array, v)
        if damp == 0:
            return jnp.linalg.pinv(D) @ b
        return jnp.linalg.solve(D.T @ D + damp**2 * jnp.eye(D.shape[1]), D.T @ b)

    close(f(values, b), formula(values, b))
    close(f(values, b[:, 0]), formula(values, b[:, 0]))
    close(jax.jit(jax.jacobian(f, (0, 1)))(values, b), jax.jacobian(formula, (0, 1))(values, b))
    both_orders(f, values, b)


def test_least_squares_of_iterations_and_without_full_rank() -> None:
    A, b = wl.Csr(RECTANGLE), RNG.standard_normal(6)
    close(
        wj.least_squares(A, b, solver="minres", M="none", rtol=1e-12, maxiter=200),
        np.linalg.lstsq(RECTANGLE, b)[0],
        rtol=1e-6,
    )
    with pytest.raises((InvalidMatrix, wl.errors.SystemNotSolved), match="damp > 0"):
        wj.least_squares(wl.Csr(np.ones((4, 2))), np.arange(4.0))
    with pytest.raises(InvalidArgument, match="damp"):
        wj.least_squares(A, b, damp=-1)


@pytest.mark.parametrize(
    ("function", "name"), [("solve", "b"), ("least_squares", "b"), ("spmm", "B")]
)
def test_wrong_shapes_are_told_as_they_were_given(function, name):
    call = getattr(wj, function)
    A = wl.Csr(2 * np.eye(3))
    with pytest.raises(wl.errors.ShapeMismatch, match=rf"a batch .*: {name}\[..., None\]"):
        call(A, jnp.ones((5, 3)))
    with pytest.raises(wl.errors.ShapeMismatch, match=r"expected shape \(3,\), .* got \(7,\)$"):
        call(A, jnp.ones(7))
