"""LOBPCG, Lanczos and singular values: pairs, verdicts, pencils and awkward inputs."""

import pickle

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import wollemi as wl
from wollemi.core.status import Stop
from wollemi.solvers.eigen import tall

from .conftest import DTYPES, block, poisson


def mass(n, dtype="float64"):
    """Return a positive definite tridiagonal matrix."""
    B = sp.diags_array([1.0, 4.0, 1.0], offsets=[-1, 0, 1], shape=(n, n)) / 6
    return sp.csr_array(B.astype(dtype))


def precise(dtype):
    return np.finfo(dtype).bits == 64


def residuals(S, B, values, vectors):
    BX = vectors if B is None else B @ vectors
    return np.linalg.norm(S @ vectors - BX * values, axis=0)


# ---- LOBPCG


@pytest.mark.parametrize(
    ("dtype", "largest"), [*((dtype, False) for dtype in DTYPES), ("float64", True)]
)
def test_lobpcg_finds_pairs_of_every_dtype(on, dtype, largest, rng):
    S = poisson(12, dtype)
    exact = np.linalg.eigvalsh(S.toarray().astype(np.complex128))
    exact = exact[::-1][:4] if largest else exact[:4]
    rtol = 1e-7 if precise(dtype) else 1e-3
    solver = wl.solvers.Lobpcg(wl.Csr(S, executor=on), k=4, largest=largest, rtol=rtol)
    result = solver.solve(block(rng, (144, 4), dtype))
    assert result.converged, result
    np.testing.assert_allclose(result.eigenvalues, exact, rtol=1e-10 if precise(dtype) else 1e-4)
    X = result.eigenvectors
    assert X.dtype == dtype
    close = 1e-10 if precise(dtype) else 1e-4
    np.testing.assert_allclose(X.conj().T @ X, np.eye(4), atol=close)
    true = residuals(S, None, result.eigenvalues, X)
    np.testing.assert_allclose(
        result.residual_norms, true, atol=1e-5 if not precise(dtype) else 1e-13
    )
    assert (true <= 1.01 * result.thresholds).all()


@pytest.mark.parametrize("M", ["jacobi", "direct"])
def test_lobpcg_with_a_pencil_and_a_preconditioner(on, M, rng):
    S, B = poisson(10), mass(100)
    A = wl.Csr(S, executor=on)
    inverse = wl.solvers.Direct(A) if M == "direct" else M
    result = wl.solvers.Lobpcg(A, inverse, B=wl.Csr(B, executor=on), k=3, rtol=1e-8).solve()
    exact = scipy.linalg.eigvalsh(S.toarray(), B.toarray())[:3]
    assert result.converged
    np.testing.assert_allclose(result.eigenvalues, exact, rtol=1e-9)
    X = result.eigenvectors
    np.testing.assert_allclose(X.T @ B @ X, np.eye(3), atol=1e-10)
    if M == "direct":
        assert result.iterations <= 20


def test_lobpcg_takes_at_most_scipys_iterations_with_the_same_preconditioner(rng):
    S = poisson(30)
    A, X = wl.Csr(S), rng.standard_normal((900, 5))
    inverse = spla.splu((S + 0.5 * sp.eye_array(900)).tocsc())
    tol = 1e-6
    *_, history = spla.lobpcg(
        S, X.copy(), M=spla.LinearOperator((900, 900), inverse.solve, matmat=inverse.solve),
        tol=tol, maxiter=200, largest=False, retResidualNormsHistory=True,
    )  # fmt: skip
    theirs = int(np.argmax((np.array(history) <= tol).all(axis=1)))
    M = wl.LinearOperator((900, 900), inverse.solve, matmat=inverse.solve)
    ours = wl.solvers.Lobpcg(A, M, k=5, rtol=0.0, atol=tol).solve(X)
    assert ours.converged
    assert 0 < ours.iterations <= theirs


def test_lobpcg_keeps_orthogonal_to_constraints(on, rng):
    S = poisson(12)
    values, vectors = np.linalg.eigh(S.toarray())
    Y = vectors[:, :3] @ rng.standard_normal((3, 3))
    solver = wl.solvers.Lobpcg(wl.Csr(S, executor=on), "jacobi", k=3, rtol=1e-8)
    result = solver.solve(Y=Y)
    np.testing.assert_allclose(result.eigenvalues, values[3:6], rtol=1e-10)
    np.testing.assert_allclose(Y.T @ result.eigenvectors, 0, atol=1e-8)


def test_lobpcg_of_repeated_and_zero_eigenvalues(on):
    ring = sp.csr_array(
        sp.diags_array([2.0] * 40)
        - sp.csr_array(np.roll(np.eye(40), 1, 0) + np.roll(np.eye(40), -1, 0))
    )
    result = wl.solvers.Lobpcg(wl.Csr(ring, executor=on), k=5, rtol=1e-9).solve()
    exact = np.linalg.eigvalsh(ring.toarray())[:5]
    assert result.converged, result
    np.testing.assert_allclose(result.eigenvalues, exact, atol=1e-12)
    zero = wl.solvers.Lobpcg(wl.Csr(sp.csr_array((30, 30)), executor=on), k=3).solve()
    assert zero.converged
    assert (zero.eigenvalues == 0).all()
    identity = wl.solvers.Lobpcg(wl.Csr(sp.eye_array(30, format="csr"), executor=on), k=3).solve()
    np.testing.assert_allclose(identity.eigenvalues, 1)


@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 1), (5, 2), (6, 6), (7, 5)])
def test_lobpcg_of_small_matrices(on, n, k, rng):
    full = rng.standard_normal((n, n))
    full = full + full.T
    solver = wl.solvers.Lobpcg(wl.Csr(full, executor=on), k=k, rtol=1e-9, maxiter=100)
    result = solver.solve()
    assert result.converged
    np.testing.assert_allclose(result.eigenvalues, np.linalg.eigvalsh(full)[:k], atol=1e-9)


def test_lobpcg_with_a_start_without_full_rank(on, rng):
    x = rng.standard_normal((144, 1))
    solver = wl.solvers.Lobpcg(wl.Csr(poisson(12), executor=on), "jacobi", k=3, rtol=1e-8)
    result = solver.solve(np.hstack([x, x, 0 * x]))
    assert result.converged
    np.testing.assert_allclose(
        result.eigenvalues, np.linalg.eigvalsh(poisson(12).toarray())[:3], rtol=1e-9
    )


def test_lobpcg_says_what_did_not_converge():
    result = wl.solvers.Lobpcg(wl.Csr(poisson(20)), k=3, rtol=1e-10, maxiter=4).solve()
    assert not result.converged
    assert result.stops[-1] == Stop.MAX_ITERATIONS
    assert "pair" in result.reason
    assert result.residual_history.shape == (5, 3)
    stopped = wl.solvers.Lobpcg(wl.Csr(poisson(20)), k=3, rtol=1e-10).solve(
        callback=lambda values, norms: bool(norms.size)
    )
    assert (stopped.iterations, stopped.stops[0]) == (1, Stop.CALLBACK)
    with pytest.warns(UserWarning, match="lobpcg"):
        wl.linalg.lobpcg(wl.Csr(poisson(20)), np.eye(400, 3), tol=1e-10, maxiter=2)


def test_lobpcg_refuses_what_does_not_fit(rng):
    A = wl.Csr(poisson(4))
    errors = wl.errors
    with pytest.raises(errors.ShapeMismatch, match="square"):
        wl.solvers.Lobpcg(wl.Csr(np.ones((3, 4))))
    with pytest.raises(errors.ShapeMismatch, match="B is 3x3"):
        wl.solvers.Lobpcg(A, B=wl.Identity(3))
    with pytest.raises(errors.InvalidArgument, match="X has NaN"):
        wl.solvers.Lobpcg(A).solve(np.full((16, 2), np.nan))
    with pytest.raises(errors.ShapeMismatch, match="a space of 14 dimensions"):
        wl.solvers.Lobpcg(A, k=15).solve(Y=rng.standard_normal((16, 2)))
    with pytest.raises(errors.InvalidArgument, match="dependent"):
        wl.solvers.Lobpcg(A, k=2).solve(Y=np.ones((16, 2)))
    for name, value in (("k", 0), ("k", 17), ("rtol", -1.0), ("maxiter", 1.5)):
        with pytest.raises(errors.InvalidArgument, match=name):
            wl.solvers.Lobpcg(A, **{name: value})
    bad = poisson(4)
    bad.data[0] = np.nan
    assert wl.solvers.Lobpcg(wl.Csr(bad), k=2).solve().stops[0] == Stop.NOT_FINITE


# ---- Lanczos


@pytest.mark.parametrize(
    ("dtype", "which"),
    [*((dtype, "LM") for dtype in DTYPES), *(("float64", which) for which in ("LA", "SA", "BE"))],
)
def test_lanczos_finds_both_ends(on, dtype, which, rng):
    S = poisson(10, dtype)
    # no eigenvalue is multiple
    S = sp.csr_array(S + sp.diags_array(rng.uniform(-3.2, -3.0, 100))).astype(dtype)
    result = wl.solvers.Lanczos(wl.Csr(S, executor=on), k=4, which=which).solve()
    assert result.converged, result
    exact = np.linalg.eigvalsh(S.toarray().astype(np.complex128))
    chosen = {
        "LM": np.sort(exact[np.argsort(np.abs(exact))[-4:]]),
        "LA": exact[-4:],
        "SA": exact[:4],
        "BE": np.r_[exact[:2], exact[-2:]],
    }[which]
    np.testing.assert_allclose(result.eigenvalues, chosen, atol=1e-11 if precise(dtype) else 1e-4)
    true = residuals(S, None, result.eigenvalues, result.eigenvectors)
    assert (true <= 1.5 * result.thresholds).all()


@pytest.mark.parametrize("mode", ["normal", "buckling", "cayley"])
@pytest.mark.parametrize("pencil", [False, True])
def test_lanczos_finds_what_is_near_sigma(on, mode, pencil):
    S, B = poisson(10), mass(100) if pencil else None
    exact = scipy.linalg.eigvalsh(S.toarray(), None if B is None else B.toarray())
    sigma = 0.5 * (exact[40] + exact[41]) if exact[41] - exact[40] > 1e-6 else exact[40] + 0.013
    solver = wl.solvers.Lanczos(
        wl.Csr(S, executor=on), B=None if B is None else wl.Csr(B, executor=on), k=3,
        sigma=sigma, mode=mode,
    )  # fmt: skip
    result = solver.solve()
    assert result.converged
    near = [np.abs(exact - value).min() for value in result.eigenvalues]
    assert max(near) < 1e-9
    distance = np.sort(np.abs(exact - sigma))[2]
    if mode == "normal":
        assert np.abs(result.eigenvalues - sigma).max() <= distance + 1e-9
    X = result.eigenvectors
    if B is None or mode != "buckling":
        np.testing.assert_allclose(X.T @ (X if B is None else B @ X), np.eye(3), atol=1e-8)
    else:  # B may be indefinite there
        np.testing.assert_allclose(np.linalg.norm(X, axis=0), 1)


def test_a_shift_that_is_an_eigenvalue_is_moved():
    A = wl.Csr(np.diag(np.arange(1.0, 31.0)))
    result = wl.solvers.Lanczos(A, k=3, sigma=7.0).solve()
    assert result.converged
    np.testing.assert_allclose(result.eigenvalues, [6, 7, 8], rtol=1e-10)
    assert "is an eigenvalue" in result.notes[0]
    laplacian = wl.Csr(np.array([[1.0, -1.0, 0], [-1, 2, -1], [0, -1, 1]]))
    values = wl.linalg.eigsh(laplacian, k=1, sigma=0.0, return_eigenvectors=False)
    np.testing.assert_allclose(values, 0, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_a_shift_at_an_eigenvalue_of_many_copies_ends(on, dtype):
    S = poisson(16, dtype)  # 4 is an eigenvalue 16 times
    result = wl.solvers.Lanczos(wl.Csr(S, executor=on), k=3, sigma=4.0, maxiter=500).solve()
    assert result.converged
    np.testing.assert_allclose(result.eigenvalues, 4.0, atol=1e-12)
    X = result.eigenvectors
    assert np.linalg.norm(S @ X - 4.0 * X, axis=0).max() <= 1e-12
    np.testing.assert_allclose(X.conj().T @ X, np.eye(3), atol=1e-10)
    assert any(note.startswith("3 copies of the eigenvalue 4 ") for note in result.notes)


def test_lanczos_of_a_pencil_without_sigma(on):
    S, B = poisson(10), mass(100)
    result = wl.solvers.Lanczos(
        wl.Csr(S, executor=on), B=wl.Csr(B, executor=on), k=3, which="LA"
    ).solve()
    exact = scipy.linalg.eigvalsh(S.toarray(), B.toarray())[-3:]
    assert result.converged
    np.testing.assert_allclose(result.eigenvalues, exact, rtol=1e-10)


@pytest.mark.parametrize(("n", "k"), [(1, 1), (3, 2), (6, 6), (30, 29), (30, 30)])
def test_lanczos_of_small_matrices(on, n, k, rng):
    full = rng.standard_normal((n, n))
    full = full + full.T
    result = wl.solvers.Lanczos(wl.Csr(full, executor=on), k=k, which="LA").solve()
    assert result.converged
    np.testing.assert_allclose(result.eigenvalues, np.linalg.eigvalsh(full)[-k:], atol=1e-10)


def test_lanczos_goes_on_where_a_space_is_exhausted(on):
    for S in (sp.csr_array((40, 40)), sp.eye_array(40, format="csr") * 3.0):
        result = wl.solvers.Lanczos(wl.Csr(S, executor=on), k=4).solve()
        assert result.converged
        np.testing.assert_allclose(result.eigenvalues, S.diagonal()[:4])
        X = result.eigenvectors
        np.testing.assert_allclose(X.T @ X, np.eye(4), atol=1e-12)
    few = np.repeat([1.0, 2.0, 5.0], 20)
    result = wl.solvers.Lanczos(wl.Csr(np.diag(few), executor=on), k=3, which="LA").solve()
    np.testing.assert_allclose(result.eigenvalues, 5)


def test_lanczos_refuses_what_does_not_fit(rng):
    A = wl.Csr(poisson(4))
    errors = wl.errors
    for options, match in (
        ({"which": "XX"}, "which"),
        ({"mode": "cayley"}, "sigma"),
        ({"k": 3, "ncv": 3}, "ncv"),
        ({"k": 17}, "k: 17"),
        ({"sigma": 1j}, "sigma"),
        ({"sigma": 0.0, "mode": "buckling"}, "sigma"),
    ):
        with pytest.raises(errors.InvalidArgument, match=match):
            wl.solvers.Lanczos(A, **options)
    function = wl.LinearOperator((16, 16), lambda x: 2 * x)
    with pytest.raises(errors.InvalidArgument, match="OPinv"):
        wl.solvers.Lanczos(function, sigma=1.0)
    for start in (np.zeros(16), np.full(16, np.nan), np.ones((16, 2))):
        with pytest.raises(errors.InvalidArgument, match="v0"):
            wl.solvers.Lanczos(A).solve(start)
    bad = poisson(4)
    bad.data[0] = np.inf
    assert wl.solvers.Lanczos(wl.Csr(bad), k=2).solve().stops[0] == Stop.NOT_FINITE


# ---- with SciPy's names


@pytest.mark.parametrize(
    "kwargs", [{"which": "LA"}, {"sigma": 0.0}, {"sigma": 1.3}, {"which": "SM"}]
)
def test_eigsh_is_scipys(on, kwargs, rng):
    S = sp.csr_array(poisson(12) + sp.diags_array(rng.uniform(0, 0.1, 144)))
    w, v = wl.linalg.eigsh(wl.Csr(S, executor=on), k=5, **kwargs)
    theirs = np.sort(spla.eigsh(S, k=5, return_eigenvectors=False, **kwargs))
    np.testing.assert_allclose(w, theirs, atol=1e-9)
    assert residuals(S, None, w, v).max() < 1e-9
    found = wl.linalg.eigsh(
        wl.Csr(S, executor=on), k=5, return_eigenvectors=False, v0=np.ones(144), **kwargs
    )
    np.testing.assert_allclose(found, theirs, atol=1e-9)


def test_eigsh_raises_what_did_not_converge():
    with pytest.raises(wl.errors.NotConverged, match="pairs converged") as caught:
        wl.linalg.eigsh(wl.Csr(poisson(30)), k=4, which="SM", maxiter=2)
    assert caught.value.result.eigenvectors.shape == (900, 4)
    assert pickle.loads(pickle.dumps(caught.value)).result.iterations == 2


def test_lobpcg_returns_what_scipys_does(rng):
    A, X = wl.Csr(poisson(12)), rng.standard_normal((144, 3))
    w, v, values, norms = wl.linalg.lobpcg(
        A, X, M="jacobi", tol=1e-6, maxiter=300, largest=False,
        retLambdaHistory=True, retResidualNormsHistory=True,
    )  # fmt: skip
    np.testing.assert_allclose(w, np.linalg.eigvalsh(poisson(12).toarray())[:3], rtol=1e-9)
    assert v.shape == (144, 3)
    assert len(values) == len(norms) > 1
    assert (norms[-1] <= 1e-6).all()
    found, _ = wl.linalg.lobpcg(lambda x: poisson(12) @ x, X, tol=1e-6, maxiter=300, largest=False)
    np.testing.assert_allclose(found, w, rtol=1e-9)


def test_settings_of_eigenvalue_solvers(rng):
    A = wl.Csr(poisson(6))
    settings = wl.solvers.Lobpcg(k=2, M="jacobi")
    assert settings.on(A).settings == settings
    assert settings.to_dict()["eigensolver"] == "lobpcg"
    assert wl.solvers.Lanczos(k=2, sigma=0.0).on(A).solve().converged
    assert wl.solvers.SingularValues(k=2).on(A).settings.name == "singularvalues"


# ---- singular values


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [*((dtype, (40, 70)) for dtype in DTYPES), ("float64", (70, 40)), ("float64", (30, 30))],
)
def test_singular_triplets(on, dtype, shape, rng):
    S = sp.random_array(shape, density=0.2, rng=rng)
    S = sp.csr_array(S + (0.3j * S.power(2) if np.dtype(dtype).kind == "c" else 0 * S)).astype(
        dtype
    )
    result = wl.solvers.SingularValues(wl.Csr(S, executor=on), k=4).solve()
    assert result.converged
    u, s, vt = result
    full = S.toarray()
    close = 1e-10 if precise(dtype) else 1e-4
    np.testing.assert_allclose(s, np.linalg.svd(full)[1][:4][::-1], rtol=close)
    np.testing.assert_allclose(full @ vt.conj().T, u * s, atol=close)
    np.testing.assert_allclose(u.conj().T @ u, np.eye(4), atol=close)
    np.testing.assert_allclose(vt @ vt.conj().T, np.eye(4), atol=close)


def test_svds_of_every_kind(on, rng):
    full = rng.standard_normal((30, 12))
    exact = np.linalg.svd(full)[1]
    A = wl.Csr(full, executor=on)
    s = wl.linalg.svds(A, k=3, which="SM", return_singular_vectors=False)
    np.testing.assert_allclose(s, exact[::-1][:3], rtol=1e-9)
    u, s, vt = wl.linalg.svds(A, k=12, return_singular_vectors="u")
    np.testing.assert_allclose(s, exact[::-1], rtol=1e-9)
    assert u.shape == (30, 12)
    assert vt is None
    rank_one = wl.Csr(np.outer(np.arange(1.0, 9), np.ones(6)), executor=on)
    s = wl.linalg.svds(rank_one, k=3, return_singular_vectors=False)
    np.testing.assert_allclose(s, [0, 0, np.linalg.norm(np.arange(1, 9)) * np.sqrt(6)], atol=1e-12)
    zero = wl.linalg.svds(wl.Csr(sp.csr_array((5, 4)), executor=on), k=2)
    assert zero[1].tolist() == [0, 0]


@pytest.mark.parametrize("kind", [int, np.random.default_rng, np.random.RandomState])
def test_random_starts_have_both_of_scipys_names(kind, rng):
    A = wl.Csr(rng.standard_normal((9, 6)), executor="reference")
    first = wl.linalg.svds(A, k=2, rng=kind(3))
    again = wl.linalg.svds(A, k=2, random_state=kind(3))
    for of_rng, of_random_state in zip(first, again, strict=True):
        np.testing.assert_array_equal(of_rng, of_random_state)
    symmetric = wl.Csr(np.diag(np.arange(1.0, 9.0)), executor="reference")
    values = wl.linalg.eigsh(symmetric, k=2, rng=kind(3), return_eigenvectors=False)
    np.testing.assert_allclose(values, [7.0, 8.0])
    with pytest.raises(wl.errors.InvalidArgument, match="expected rng or random_state, got both"):
        wl.linalg.svds(A, k=2, rng=3, random_state=kind(3))


def test_svds_refuses_what_does_not_fit():
    A = wl.Csr(np.ones((5, 4)))
    for options in (
        {"k": 5}, {"k": 0}, {"which": "LA"}, {"ncv": 9}, {"solver": "x"}, {"options": {"a": 1}},
        {"return_singular_vectors": "both"}, {"v0": np.zeros(4)},
    ):  # fmt: skip
        with pytest.raises(wl.errors.InvalidArgument):
            wl.linalg.svds(A, **{"k": 2, **options})
    with pytest.raises(wl.errors.NotConverged, match="triplets"):
        S = sp.random_array((300, 200), density=0.1, rng=np.random.default_rng(0))
        wl.linalg.svds(wl.Csr(S), k=4, which="SM", maxiter=1)


# their parts


def test_dependent_columns_are_left_out(rng):
    X = rng.standard_normal((50, 3))
    X = np.hstack([X, X[:, :2] @ np.ones((2, 1)), 0 * X[:, :1]]) * np.array([1, 1e8, 1e-8, 1, 1])
    factor = tall.factor_of_basis(X.T @ X, np.finfo(float).eps)
    assert factor.shape[1] <= 4
    Q = X @ factor
    np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-3)
    assert tall.factor_of_basis(np.zeros((2, 2)), 1e-16).shape == (2, 0)


def test_products_write_into_a_part_of_a_block(on, rng):
    S = poisson(6)
    block = on.from_host(rng.standard_normal((36, 6)))
    before = np.array(on.to_host(block))
    tall.apply(wl.Csr(S, executor=on), block[:, :2], block[:, 3:5])
    after = np.array(on.to_host(block))
    np.testing.assert_allclose(after[:, 3:5], S @ before[:, :2])
    np.testing.assert_array_equal(after[:, [0, 1, 2, 5]], before[:, [0, 1, 2, 5]])


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_an_eigenvalue_of_zero_is_found_of_an_operator_without_entries(on, dtype):
    A = wl.Csr(np.diag(np.arange(40.0)).astype(dtype), executor=on)
    plain = wl.LinearOperator(A.shape, lambda x: A @ x, dtype=dtype, executor=on)
    result = wl.solvers.Lanczos(plain, k=3, which="SA").solve()
    assert result.converged, result.reason
    np.testing.assert_allclose(result.eigenvalues, [0, 1, 2], atol=1e3 * np.finfo(dtype).eps)


@pytest.mark.parametrize("ncv", [4.5, "8", True, 2, 41])
def test_a_basis_has_a_number_of_vectors(ncv):
    A = wl.Csr(np.diag(np.arange(1.0, 41.0)))
    for function in (wl.linalg.eigsh, wl.linalg.svds):
        with pytest.raises(wl.errors.InvalidArgument, match="ncv"):
            function(A, k=3, ncv=ncv)
        with pytest.raises(wl.errors.InvalidArgument, match="expected a number"):
            function(A, k=3, tol="low")


# ---- small eigenvalues without an inverse


@pytest.mark.parametrize(
    ("which", "named"), [("SM", "sigma=0 factorizes A"), ("SA", "sigma=s with a number s below")]
)
def test_a_long_search_for_small_eigenvalues_names_the_remedy(monkeypatch, which, named):
    monkeypatch.setattr("wollemi.solvers.eigen.slow.LONG", 1e6)
    solver = wl.solvers.Lanczos(wl.Csr(poisson(20, "float64")), k=2, which=which)
    with pytest.warns(UserWarning, match=named) as seen:
        result = solver.solve()
    assert len(seen) == 1 and result.converged
    assert any(named in note for note in result.notes)


def test_a_search_by_products_alone_names_a_preconditioner(monkeypatch):
    monkeypatch.setattr("wollemi.solvers.eigen.slow.LONG", 1e6)
    S = poisson(20, "float64")
    operator = wl.LinearOperator(S.shape, S.__matmul__, dtype=float)
    with pytest.warns(UserWarning, match=r"Lobpcg\(A, M, k=2\)"):
        wl.solvers.Lanczos(operator, k=2, which="SM").solve()


def test_a_long_search_for_small_singular_values_warns(monkeypatch):
    monkeypatch.setattr("wollemi.solvers.eigen.slow.LONG", 1e5)
    A = wl.Csr(poisson(9, "float64"))
    for search in (
        lambda: wl.solvers.SingularValues(A, k=2, which="SM").solve(),
        lambda: wl.linalg.svds(A, k=2, which="SM"),
    ):
        with pytest.warns(UserWarning, match=r"eigsh\(A.H @ A, sigma=0\)") as seen:
            search()
        assert [warning.filename for warning in seen] == [__file__]  # the line of the user


def test_a_warning_of_a_long_search_is_at_the_line_of_its_caller(monkeypatch):
    monkeypatch.setattr("wollemi.solvers.eigen.slow.LONG", 1e5)
    A = wl.Csr(poisson(9, "float64"))
    for search in (
        lambda: wl.linalg.eigsh(A, k=2, which="SA"),
        lambda: wl.solvers.Lanczos(A, k=2, which="SA").solve(),
    ):
        with pytest.warns(UserWarning, match="without an inverse|Without an inverse") as seen:
            search()
        assert [warning.filename for warning in seen] == [__file__]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("options", [{"which": "LM"}, {"sigma": 0}, {"which": "SM"}])
def test_searches_that_are_short_or_have_an_inverse_do_not_warn(options):
    assert wl.solvers.Lanczos(wl.Csr(poisson(20, "float64")), k=2, **options).solve().converged


def with_zero_columns(count, repeated=False):
    """A full-rank random matrix after some columns became zero."""
    D = sp.random_array((200, 80), density=0.1, rng=np.random.default_rng(0)).toarray()
    D[:, 3 : 3 + count] = 0
    if repeated:
        D[:, 10] = D[:, 11]  # one more zero singular value
    return D


@pytest.mark.parametrize("which", ["SM", "LM"])
@pytest.mark.parametrize("count", [0, 1, 2, 5])
@pytest.mark.parametrize("wide", [False, True])
def test_all_copies_of_zero_are_among_the_smallest_singular_values(which, count, wide):
    D = with_zero_columns(count, repeated=True)
    expected = np.sort(np.linalg.svd(D, compute_uv=False))
    result = wl.solvers.SingularValues(wl.Csr(D.T if wide else D), k=4, which=which).solve()
    assert result.converged
    expected = expected[:4] if which == "SM" else expected[-4:]
    np.testing.assert_allclose(result.s, expected, atol=1e-12)
    if which == "SM" and 2 <= count + 1 <= 3:
        assert f"{count + 1} copies of the singular value" in result.notes[0]
        assert "no further one in a search" in result.notes[0]


@pytest.mark.parametrize("options", [{"which": "SM"}, {"which": "SA"}, {"sigma": -0.01}], ids=str)
@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_all_copies_of_zero_are_among_the_smallest_eigenvalues(options, count):
    D = with_zero_columns(count, repeated=True)
    G = D.T @ D
    result = wl.solvers.Lanczos(wl.Csr(0.5 * (G + G.T)), k=4, **options).solve()
    assert result.converged
    np.testing.assert_allclose(result.eigenvalues, np.linalg.eigvalsh(G)[:4], atol=1e-11)


def test_copies_of_the_smallest_eigenvalue_are_found_if_the_first_search_finds_two():
    values = np.r_[np.full(4, 0.5), np.linspace(1, 3, 96)]
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((100, 100)))[0]
    G = Q * values**2 @ Q.T
    result = wl.solvers.Lanczos(wl.Csr(0.5 * (G + G.T)), k=4, which="SA").solve()
    np.testing.assert_allclose(result.eigenvalues, np.full(4, 0.25), atol=1e-11)


def test_a_note_says_that_there_may_be_more_copies_than_pairs():
    notes = wl.solvers.SingularValues(wl.Csr(with_zero_columns(5)), k=3, which="SM").solve().notes
    assert "3 copies" in notes[0] and "there may be more" in notes[0]
