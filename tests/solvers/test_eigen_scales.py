"""Eigenvalue and singular value solvers at every scale, with awkward bases, and their refusals."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.status import Stop
from wollemi.solvers.eigen.scale import measured, rescaled

from .conftest import DTYPES, block, one_dtype_on_sycl, poisson
from .test_eigen import mass, precise

#: Powers of two by which squares of residuals leave the range of a dtype, by its bits.
EXPONENTS = {32: (-115, -70, 64, 110), 64: (-960, -530, 520, 960)}


def line(n, dtype="float64"):
    """Return the second difference; complex ones get a Hermitian twist."""
    twist = 0.3j if np.dtype(dtype).kind == "c" else 0.0
    T = sp.diags_array([-1 + twist, 2.0, -1 - twist], offsets=[-1, 0, 1], shape=(n, n))
    return sp.csr_array(T.astype(dtype))


def scaled(S, exponent):
    """Return ``2**exponent S`` in the dtype of ``S``."""
    half = exponent // 2
    made = (S.astype(S.dtype) * S.dtype.type(2.0**half)) * S.dtype.type(2.0 ** (exponent - half))
    return sp.csr_array(made.astype(S.dtype))


def exponents(dtype):
    return EXPONENTS[np.finfo(dtype).bits]


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvalues_of_every_scale(on, dtype):
    one_dtype_on_sycl(on, dtype)
    S = line(24, dtype)
    exact = np.linalg.eigvalsh(S.toarray().astype(np.complex128))
    close = 1e-9 if precise(dtype) else 2e-3
    for e in exponents(dtype):
        A = wl.Csr(scaled(S, e), executor=on)
        small = wl.solvers.Lobpcg(A, "jacobi", k=2, rtol=1e-5, maxiter=200).solve()
        large = wl.solvers.Lanczos(A, k=2, which="LA", rtol=1e-6).solve()
        near = wl.solvers.Lanczos(A, k=2, sigma=float(np.ldexp(1.01, e))).solve()
        for result in (small, large, near):
            assert result.converged, (e, result.reason)
            X = result.eigenvectors
            np.testing.assert_allclose(X.conj().T @ X, np.eye(2), atol=close)
            assert (result.residual_norms <= result.thresholds).all()
        np.testing.assert_allclose(np.ldexp(small.eigenvalues, -e), exact[:2], rtol=2e-3)
        np.testing.assert_allclose(np.ldexp(large.eigenvalues, -e), exact[-2:], rtol=close)
        order = np.argsort(np.abs(exact - 1.01))[:2]
        np.testing.assert_allclose(
            np.ldexp(near.eigenvalues, -e), np.sort(exact[order]), rtol=close
        )


@pytest.mark.parametrize("dtype", DTYPES)
def test_singular_values_of_every_scale(on, dtype, rng):
    one_dtype_on_sycl(on, dtype)
    D = block(rng, (12, 8), dtype)
    exact = np.linalg.svd(D.astype(np.complex128))[1]
    close = 1e-10 if precise(dtype) else 1e-4
    for e in exponents(dtype):
        A = wl.Csr(scaled(sp.csr_array(D), e), executor=on)
        for which, expected in (("LM", exact[1::-1]), ("SM", exact[:-3:-1])):
            result = wl.solvers.SingularValues(A, k=2, which=which).solve()
            assert result.converged, (e, result.reason)
            np.testing.assert_allclose(np.ldexp(result.s, -e), expected, rtol=close)
            np.testing.assert_allclose(result.u.conj().T @ result.u, np.eye(2), atol=close)


@pytest.mark.parametrize("solver", ["Lobpcg", "Lanczos", "normal", "cayley", "buckling"])
def test_pencils_of_every_two_scales(on, solver):
    S, B = line(24), mass(24)
    exact = scipy.linalg.eigvalsh(S.toarray(), B.toarray())
    for a, b in ((-700, 0), (0, 700), (-400, 300), (500, 440), (600, -300)):
        A = wl.Csr(scaled(S, a), executor=on)
        options = {"B": wl.Csr(scaled(B, b), executor=on), "k": 3}
        if solver == "Lobpcg":
            result = wl.solvers.Lobpcg(A, "jacobi", rtol=1e-8, **options).solve()
        elif solver == "Lanczos":
            result = wl.solvers.Lanczos(A, which="SA", **options).solve()
        else:
            sigma = float(np.ldexp(0.01, a - b))
            result = wl.solvers.Lanczos(A, sigma=sigma, mode=solver, **options).solve()
        assert result.converged, (a, b, result.reason)
        np.testing.assert_allclose(np.ldexp(result.eigenvalues, b - a), exact[:3], rtol=1e-8)
        X = np.ldexp(result.eigenvectors, 0 if solver == "buckling" else b // 2)
        if solver != "buckling":
            np.testing.assert_allclose(X.T @ B @ X, np.eye(3), atol=1e-8)


def test_the_scale_of_B_alone_does_not_make_pairs_converge(on):
    # residuals shrink with the vectors, which have the length one in the inner product of B
    A, B = wl.Csr(line(30), executor=on), wl.Csr(1e30 * sp.eye_array(30).tocsr(), executor=on)
    short = wl.solvers.Lobpcg(A, B=B, k=2, rtol=1e-10, maxiter=2).solve()
    assert not short.converged
    full = wl.solvers.Lanczos(A, B=B, k=2, which="LA").solve()
    assert full.converged
    exact = np.linalg.eigvalsh(line(30).toarray())[-2:]
    np.testing.assert_allclose(full.eigenvalues * 1e30, exact, rtol=1e-10)


@pytest.mark.parametrize(("a", "b"), [(900, -900), (-900, 900), (-30, 1004)])
def test_eigenvalues_beyond_double_precision_are_not_claimed(on, a, b):
    # the last ones are below the smallest normal number and lose digits
    A = wl.Csr(scaled(line(8), a), executor=on)
    B = wl.Csr(scaled(mass(8), b), executor=on)
    result = wl.solvers.Lobpcg(A, B=B, k=2, rtol=1e-8).solve()
    assert set(result.stops) == {Stop.OUT_OF_RANGE}
    assert "scale them" in result.reason


@pytest.mark.parametrize("exponent", [-100, 100])
def test_starts_and_constraints_of_every_scale(on, exponent, rng):
    S = line(24).astype(np.float32)
    values, vectors = np.linalg.eigh(S.toarray().astype(float))
    factor = np.float32(2.0**exponent)
    Y, X = vectors[:, :1].astype(np.float32) * factor, block(rng, (24, 2), "float32") * factor
    A = wl.Csr(S, executor=on)
    result = wl.solvers.Lobpcg(A, k=2, rtol=1e-4).solve(X, Y=Y)
    assert result.converged, result.reason
    np.testing.assert_allclose(result.eigenvalues, values[1:3], rtol=1e-3)
    found = wl.solvers.Lanczos(A, k=2, which="LA").solve(X[:, 0])
    np.testing.assert_allclose(found.eigenvalues, values[-2:], rtol=1e-5)


def test_operators_without_entries_at_every_scale(on):
    for dtype, e in (("float32", -110), ("float32", 100), ("float64", -600), ("float64", 700)):
        S = wl.Csr(scaled(line(24, dtype), e), executor=on)
        plain = wl.LinearOperator(S.shape, lambda x, S=S: S @ x, dtype=dtype, executor=on)
        result = wl.solvers.Lanczos(plain, k=2, which="LA", rtol=1e-6).solve()
        assert result.converged, (dtype, e, result.reason)
        exact = np.linalg.eigvalsh(line(24).toarray())[-2:]
        np.testing.assert_allclose(np.ldexp(result.eigenvalues, -e), exact, rtol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_operator_times_a_power_of_two(on, dtype, rng):
    one_dtype_on_sycl(on, dtype)
    e = exponents(dtype)[0]
    S, x = line(9, dtype), block(rng, (9, 2), dtype)
    A = wl.Csr(scaled(S, e), executor=on)
    found = measured(A)
    assert found.positive
    assert found.asymmetry < 1e-5
    assert 0.25 <= found.size <= 4
    np.testing.assert_allclose(rescaled(A, -e) @ x, S @ x, rtol=1e-5)
    assert rescaled(A, 0) is A
    wider = rescaled(A, -e).astype("complex128")
    np.testing.assert_allclose(wider @ x.astype("complex128"), S @ x, rtol=1e-5)


# ---- bases


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "k"), [(24, 24), (24, 23), (40, 30), (1, 1)])
def test_vectors_are_orthonormal_if_the_block_is_as_wide_as_the_matrix(on, dtype, n, k):
    one_dtype_on_sycl(on, dtype)
    g = np.random.default_rng(n)
    Q, _ = np.linalg.qr(block(g, (n, n), dtype).astype(np.result_type(dtype, np.float64)))
    D = (Q * np.r_[np.zeros(n // 2), 1 + g.random(n - n // 2)]) @ Q.conj().T
    D = (0.5 * (D + D.conj().T)).astype(dtype)
    A = wl.Csr(D, executor=on)
    for largest in (False, True):
        result = wl.solvers.Lobpcg(A, k=k, largest=largest, rtol=1e-6, maxiter=200).solve()
        assert result.converged, result.reason
        V = result.eigenvectors
        close = 1e-10 if precise(dtype) else 1e-3
        np.testing.assert_allclose(V.conj().T @ V, np.eye(k), atol=close)
        exact = np.linalg.eigvalsh(D.astype(np.complex128))
        exact = exact[::-1][:k] if largest else exact[:k]
        np.testing.assert_allclose(result.eigenvalues, exact, atol=close)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_a_preconditioner_of_low_rank_is_left_out_where_it_gives_no_direction(on, rank):
    S = line(30)
    M = wl.Diagonal(np.r_[np.ones(rank), np.zeros(30 - rank)], executor=on)
    result = wl.solvers.Lobpcg(wl.Csr(S, executor=on), M, k=3, rtol=1e-6, maxiter=400).solve()
    exact = np.linalg.eigvalsh(S.toarray())[:3]
    if rank == 0:
        assert result.converged
        assert "low rank" in result.notes[0]
    if result.converged:
        np.testing.assert_allclose(result.eigenvalues, exact, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("largest", [False, True])
def test_a_preconditioner_along_an_eigenvector_that_is_not_wanted(on, dtype, largest):
    values = np.array([2.0, 4, 3, 0]) * (-1 if largest else 1)  # M r is along the pair of 2
    M = wl.Diagonal(np.array([1.0, 0, 0, 0], dtype), executor=on)
    A = wl.Csr(np.diag(values).astype(dtype), executor=on)
    for seed in range(6):
        result = wl.solvers.Lobpcg(A, M, k=1, rtol=0, largest=largest, seed=seed).solve()
        if result.converged:
            np.testing.assert_allclose(result.eigenvalues, [0], atol=1e-5)


def test_pairs_of_an_indefinite_preconditioner_are_not_claimed(on):
    values = np.r_[-(10.0 ** -np.arange(2.0, 8)), 10.0 ** -np.arange(12.0, 0, -1)]
    A = wl.Csr(np.diag(values), executor=on)
    for seed in range(4):  # the inverse leads to the values near zero
        M = wl.Diagonal(1 / values, executor=on)
        result = wl.solvers.Lobpcg(A, M, k=1, rtol=0, seed=seed).solve()
        if result.converged:
            np.testing.assert_allclose(result.eigenvalues, [-1e-2], rtol=1e-6)


@pytest.mark.parametrize("mode", ["normal", "buckling", "cayley"])
def test_vectors_of_a_shift_that_is_an_eigenvalue_are_not_zero(on, mode):
    phase = np.exp(1j * np.arange(2))
    D = phase[:, None] * np.array([[2.1, -2.0], [-2.0, 2.1]]) * phase.conj()
    D = 0.5 * (D + D.conj().T)
    for sigma in np.linalg.eigvalsh(D):
        solver = wl.solvers.Lanczos(
            wl.Csr(D, executor=on), k=1, which="LM", sigma=float(sigma), mode=mode, rtol=0.0
        )
        result = solver.solve()
        x = np.asarray(result.eigenvectors)[:, 0]
        np.testing.assert_allclose(np.linalg.norm(x), 1, rtol=1e-12)
        np.testing.assert_allclose(D @ x, sigma * x, atol=1e-12)


def test_an_ill_conditioned_inner_product(on):
    D, B = np.diag(np.arange(1.0, 7.0)), np.diag(10.0 ** np.linspace(0, -6, 6))
    for dtype in ("float32", "float64"):
        A, mass_ = (wl.Csr(one.astype(dtype), executor=on) for one in (D, B))
        result = wl.solvers.Lobpcg(A, B=mass_, k=3, largest=True, rtol=1e-6, maxiter=40).solve()
        exact = np.sort(np.diag(D) / np.diag(B))[::-1][:3]
        assert result.converged, result.reason
        np.testing.assert_allclose(result.eigenvalues, exact, rtol=1e-3)


# ---- refusals


def indefinite(n):
    return np.diag(np.r_[np.ones(n - n // 2), -np.ones(n // 2)])


def rotated(D):
    Q, _ = np.linalg.qr(np.random.default_rng(1).standard_normal(D.shape))
    made = Q @ D @ Q.T
    return 0.5 * (made + made.T)


@pytest.mark.parametrize("function", ["eigsh", "Lanczos", "Lobpcg"])
def test_matrices_that_are_not_hermitian_are_refused(on, function, rng):
    N = rng.standard_normal((20, 20))
    solve = wl.linalg.eigsh if function == "eigsh" else getattr(wl.solvers, function)
    hermitian = wl.Csr(np.eye(20), executor=on)
    for bad in (N, N + N.T + 1j * (N @ N.T), 1j * np.eye(20)):
        A = wl.Csr(bad, executor=on)
        plain = wl.LinearOperator(A.shape, lambda x, A=A: A @ x, dtype=A.dtype, executor=on)
        for operator in (A, plain):
            with pytest.raises(
                wl.errors.InvalidMatrix, match=r"not Hermitian.*0\.5 \* \(A \+ A\.H"
            ):
                solve(operator, k=2)
        if function != "eigsh":
            with pytest.raises(wl.errors.InvalidMatrix, match="not Hermitian"):
                solve(hermitian, k=2, B=A)


@pytest.mark.parametrize("function", ["eigsh", "Lanczos", "Lobpcg"])
@pytest.mark.parametrize("make", [indefinite, lambda n: rotated(indefinite(n))])
def test_inner_products_that_are_not_positive_are_refused(on, function, make, rng):
    N = rng.standard_normal((20, 20))
    A, B = wl.Csr(N @ N.T + np.eye(20), executor=on), wl.Csr(make(20), executor=on)
    with pytest.raises(wl.errors.InvalidMatrix, match=r"positive definite.*exchange A and B"):
        if function == "eigsh":
            wl.linalg.eigsh(A, k=2, M=B)
        else:
            getattr(wl.solvers, function)(A, k=2, B=B).solve()
    if function == "Lanczos":
        with pytest.raises(wl.errors.InvalidMatrix, match="A is not positive definite"):
            wl.solvers.Lanczos(B, k=2, sigma=0.3, mode="buckling").solve()


def test_one_negative_square_is_found_while_the_basis_grows(on):
    B = rotated(np.diag(np.r_[np.full(19, 1.0), -1e-3]))
    A = wl.Csr(np.eye(20), executor=on)
    with pytest.raises(wl.errors.InvalidMatrix, match="positive definite"):
        wl.solvers.Lobpcg(A, k=20, B=wl.Csr(B, executor=on)).solve()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(on, bad):
    D = np.eye(10)
    D[3, 3] = bad
    A, B = wl.Csr(D, executor=on), wl.Csr(np.eye(10), executor=on)
    plain = wl.LinearOperator(A.shape, lambda x: A @ x, executor=on)
    for function in (wl.linalg.svds, wl.linalg.eigsh):
        with pytest.raises(wl.errors.InvalidMatrix, match="NaN or Inf"):
            function(A, k=2)
    with pytest.raises(wl.errors.InvalidMatrix, match="NaN or Inf"):
        wl.linalg.eigsh(plain, k=2)
    for solver in (wl.solvers.Lobpcg, wl.solvers.Lanczos):
        with pytest.raises(wl.errors.InvalidMatrix, match="B has NaN or Inf"):
            solver(B, B=A, k=2)
    assert wl.solvers.SingularValues(A, k=2).solve().stops == [Stop.NOT_FINITE] * 2


def test_a_shift_out_of_range_is_refused(on):
    A = wl.Csr(line(8, "float32"), executor=on)
    with pytest.raises(wl.errors.InvalidArgument, match="give a sigma near them"):
        wl.solvers.Lanczos(A, k=2, sigma=1e38)


def test_a_small_asymmetry_is_named_where_pairs_do_not_converge(on):
    S = line(20).toarray()
    S[0, 5] += 1e-5
    with pytest.raises(wl.errors.NotConverged, match="differs from its conjugate transpose"):
        wl.linalg.eigsh(wl.Csr(S, executor=on), k=2)


def test_new_values_of_a_matrix_are_measured_again(on):
    S = line(24)
    A = wl.Csr(S, executor=on)
    solver = wl.solvers.Lanczos(A, k=2, which="LA")
    before = solver.solve().eigenvalues
    A.update_values(np.ldexp(S.data, -600))
    result = solver.solve()
    assert result.converged
    np.testing.assert_allclose(np.ldexp(result.eigenvalues, 600), before, rtol=1e-12)


@pytest.mark.parametrize(
    "settings",
    [("Lobpcg", {"M": "ssor"}), ("Lobpcg", {"M": "ic"}), ("Lanczos", {"sigma": 0.0})],
    ids=str,
)
def test_factors_and_preconditioners_follow_new_values(on, settings):
    name, options = settings
    S, scales = line(40), 10.0 ** np.random.default_rng(1).uniform(-1, 1, 40)
    other = sp.csr_array(sp.diags_array(scales) @ S @ sp.diags_array(scales))
    A, kind = wl.Csr(S, executor=on), getattr(wl.solvers, name)
    solver = kind(A, k=2, **options)
    assert solver.solve().converged
    A.update_values(other.data)
    result = solver.solve()
    fresh = kind(wl.Csr(other, executor=on), k=2, **options).solve()
    assert result.converged and result.iterations == fresh.iterations
    exact = np.linalg.eigvalsh(other.toarray())[:2]
    np.testing.assert_allclose(np.sort(result.eigenvalues), exact, rtol=1e-6)


def test_the_inverse_of_an_inner_product_follows_new_values(on):
    S, M = line(30), mass(30)
    A, B = wl.Csr(S, executor=on), wl.Csr(M, executor=on)
    solver = wl.solvers.Lanczos(A, B=B, k=2, which="LA")
    before = np.sort(solver.solve().eigenvalues)
    B.update_values(4 * M.data)
    result = solver.solve()
    assert result.converged
    np.testing.assert_allclose(np.sort(result.eigenvalues), before / 4, rtol=1e-10)


# ---- functions and reports


def test_cayley_at_the_default_tolerance(on):
    n, h = 100, 1 / 101
    A = wl.Csr(line(n) / h, executor=on)
    B = wl.Csr(mass(n) * h, executor=on)
    found = wl.linalg.eigsh(A, k=4, M=B, sigma=1.0, mode="cayley", return_eigenvectors=False)
    exact = scipy.linalg.eigvalsh(line(n).toarray() / h, mass(n).toarray() * h)[:4]
    np.testing.assert_allclose(found, exact, rtol=1e-11)


def test_the_default_tolerance_of_lobpcg_follows_small_matrices(on, rng):
    X = rng.standard_normal((144, 3))
    A = wl.Csr(1e-12 * poisson(12), executor=on)
    with pytest.warns(UserWarning, match="the largest residual norm"):
        wl.linalg.lobpcg(A, X, largest=False, maxiter=1)
    w, _ = wl.linalg.lobpcg(A, X, largest=False, maxiter=200)
    exact = np.linalg.eigvalsh(poisson(12).toarray())[:3]
    np.testing.assert_allclose(w * 1e12, exact, rtol=1e-6)


def test_results_print_and_show_as_cards(on):
    A = wl.Csr(line(40), executor=on)
    pairs = wl.solvers.Lobpcg(A, k=14, rtol=1e-4, maxiter=100).solve()
    triplets = wl.solvers.SingularValues(A, k=2).solve()
    assert "14 of 14 pairs converged" in repr(pairs)
    assert "2 of 2 triplets converged" in repr(triplets)
    assert "eigenvalue" in pairs._repr_html_()
    assert "and 2 more" in pairs._repr_html_()
    assert f"{triplets.s[-1]:.10g}" in triplets._repr_html_()
    short = wl.solvers.SingularValues(A, k=2, which="SM", maxiter=0, ncv=4).solve()
    assert "raise maxiter" in short.reason
    assert "max iterations" in short._repr_html_()


def test_rounding_of_dependent_residuals_is_no_negative_square(on):
    # the residuals of three pairs of four rows are dependent, and their inner products round
    g = np.random.default_rng(0)
    Q, _ = np.linalg.qr(g.standard_normal((4, 4)))
    D = ((Q * g.standard_normal(4)) @ Q.T).astype(np.float32)
    A = wl.Csr(0.5 * (D + D.T), executor=on)
    B = wl.Csr(np.diag(10.0 ** -np.linspace(0, 4, 4)).astype(np.float32), executor=on)
    for seed in range(20):
        for k in (2, 3):
            wl.solvers.Lobpcg(A, B=B, k=k, rtol=0.0, maxiter=150, seed=seed).solve()
