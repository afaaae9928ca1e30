"""SciPy's own methods with operators, preconditioners and solvers of wollemi."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize as so
import scipy.sparse as sp
import scipy.sparse.linalg as spl

import wollemi as wl

EXECUTORS = ["reference", "omp"]
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def plate(n: int, dtype: type = np.float64) -> sp.csr_array:
    """Return an anisotropic Laplacian of an n x n plate, Hermitian if complex."""
    line = sp.diags_array([-1.0, 2.1, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    S = sp.kronsum(line, 1.37 * line, format="csr").astype(dtype)
    if np.issubdtype(dtype, np.complexfloating):
        phase = sp.diags_array(np.exp(1j * np.arange(n * n)).astype(dtype))
        S = (phase @ S @ phase.conj()).tocsr().astype(dtype)
    return S


@pytest.mark.parametrize("name", EXECUTORS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_arpack_takes_our_matrices(name, dtype):
    S = plate(8, dtype)
    A = wl.Csr(S, executor=name)
    wanted = np.linalg.eigvalsh(S.toarray())
    tol = 1e-4 if np.dtype(dtype).itemsize // (2 if np.dtype(dtype).kind == "c" else 1) == 4 else 0
    v0 = np.cos(np.arange(64)).astype(dtype)
    for operator in (A, A.to_scipy_operator()):
        found = spl.eigsh(operator, k=4, v0=v0, tol=tol, return_eigenvectors=False)
        np.testing.assert_allclose(np.sort(found), wanted[-4:], rtol=1e-3 if tol else 1e-9)
        general = spl.eigs(operator, k=3, v0=v0, tol=tol, return_eigenvectors=False)
        np.testing.assert_allclose(np.sort(general.real), wanted[-3:], rtol=1e-3 if tol else 1e-9)


@pytest.mark.parametrize("name", EXECUTORS)
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_arpack_shifts_and_inverts_by_our_solvers(name, dtype):
    S = plate(8, dtype)
    A = wl.Csr(S, executor=name)
    wanted = np.linalg.eigvalsh(S.toarray())[:3]
    for solver in (
        wl.solvers.Direct(A),
        wl.solvers.Cg(A, "ic" if np.dtype(dtype).kind == "f" else None, rtol=1e-12),
    ):
        found = spl.eigsh(
            A, k=3, sigma=0.0, OPinv=solver.to_scipy_operator(), return_eigenvectors=False
        )
        np.testing.assert_allclose(np.sort(found), wanted, rtol=1e-8)


@pytest.mark.parametrize("name", EXECUTORS)
@pytest.mark.parametrize("solver", ["arpack", "lobpcg"])
def test_singular_values_of_our_matrices(name, solver):
    S = sp.random_array((40, 25), density=0.3, rng=np.random.default_rng(3), format="csr")
    A = wl.Csr(S, executor=name)
    found = spl.svds(A, k=4, solver=solver, rng=1, return_singular_vectors=False)
    wanted = np.linalg.svd(S.toarray(), compute_uv=False)[:4]
    np.testing.assert_allclose(np.sort(found)[::-1], wanted, rtol=1e-5)


@pytest.mark.parametrize("name", EXECUTORS)
@pytest.mark.parametrize("method", ["lgmres", "gmres", "bicgstab"])
def test_newton_krylov_with_our_operators(name, method):
    n = 10
    A = wl.Csr(plate(n), executor=name)
    calls = []

    class Followed(spl.LinearOperator):
        """Factors of wollemi, as SciPy's Newton method takes a preconditioner."""

        def __init__(self) -> None:
            super().__init__(np.float64, A.shape)
            self.M = wl.preconditioners.Ilu(A)

        def _matvec(self, x):
            calls.append(x.shape)
            return self.M @ np.ravel(x)

    def residual(u: np.ndarray) -> np.ndarray:
        return A @ u + 0.1 * u**3 - 1.0

    u = so.newton_krylov(residual, np.zeros(n * n), method=method, inner_M=Followed(), f_tol=1e-9)
    assert np.abs(residual(u)).max() < 1e-9
    assert calls
    direct = so.newton_krylov(
        residual, np.zeros(n * n), inner_M=wl.preconditioners.Ilu(A).to_scipy_operator(), f_tol=1e-9
    )
    np.testing.assert_allclose(direct, u, atol=1e-8)


@pytest.mark.parametrize("name", EXECUTORS)
def test_operators_of_both_libraries_in_one_expression(name):
    S = plate(5)
    A, x = wl.Csr(S, executor=name), np.arange(25.0)
    ours, theirs = A.to_scipy_operator(), spl.aslinearoperator(S)
    np.testing.assert_allclose((ours @ theirs) @ x, S @ (S @ x))
    np.testing.assert_allclose((ours + 2 * theirs).H @ x, 3 * (S.T @ x))
    np.testing.assert_allclose(spl.aslinearoperator(A) @ x, S @ x)
    np.testing.assert_allclose(spl.cg(ours, S @ x, rtol=1e-12)[0], x, atol=1e-8)
    block = np.arange(50.0).reshape(25, 2)
    np.testing.assert_allclose(ours @ block, S @ block)


@pytest.mark.parametrize("name", EXECUTORS)
def test_operators_apply_to_batches_from_the_right(name):
    """SciPy 1.18 gives operators ``xp``, leading axes of batches and ``rdot``."""
    if not hasattr(spl.LinearOperator, "rdot"):
        pytest.skip("SciPy 1.18 has LinearOperator.rdot; with it this runs")
    S = plate(4)
    ours = wl.Csr(S, executor=name).to_scipy_operator()
    block = np.arange(32.0).reshape(2, 16)
    np.testing.assert_allclose(ours.rdot(block), block @ S.toarray())


@pytest.mark.parametrize("name", EXECUTORS)
def test_methods_by_scipys_names_take_leading_axes(name):
    dense = np.arange(12.0).reshape(3, 4)
    A = wl.Csr(dense, executor=name)
    rng = np.random.default_rng(0)
    right, left = rng.random((2, 5, 4)), rng.random((2, 5, 3))
    np.testing.assert_allclose(A.matvec(right), right @ dense.T)
    np.testing.assert_allclose(A.rmatvec(left), left @ dense)
    np.testing.assert_allclose(A.matmat(right.transpose(0, 2, 1)), dense @ right.transpose(0, 2, 1))
    np.testing.assert_allclose(
        A.rmatmat(left.transpose(0, 2, 1)), dense.T @ left.transpose(0, 2, 1)
    )
    square = rng.random((4, 4))  # vectors along the last axis, as in SciPy 1.18
    np.testing.assert_allclose(A.matvec(square), square @ dense.T)
    np.testing.assert_allclose(A.matvec(square[:, :1]), dense @ square[:, :1])
    assert A.matvec(np.zeros((0, 4))).shape == (0, 3)
    for call, shape in ((A.matvec, (2, 3, 3)), (A.matmat, (2, 3, 4))):
        with pytest.raises(wl.errors.ShapeMismatch, match=r"x: expected shape \(\.\.\., 4"):
            call(np.zeros(shape))


@pytest.mark.skipif(not hasattr(spl.LinearOperator, "rdot"), reason="SciPy 1.18 has batches")
@pytest.mark.parametrize("name", EXECUTORS)
def test_operators_within_those_of_scipy_have_batches_and_left_products(name):
    dense = np.arange(12.0).reshape(3, 4)
    A = wl.Csr(dense, executor=name)
    rng = np.random.default_rng(0)
    x, X, left = rng.random((2, 4)), rng.random((5, 4, 2)), rng.random((2, 3))
    for operator in (A.to_scipy_operator(), spl.aslinearoperator(A)):
        np.testing.assert_allclose(operator.matvec(x), x @ dense.T)
        np.testing.assert_allclose(operator @ X, dense @ X)
        np.testing.assert_allclose(operator.rdot(left), left @ dense)
        np.testing.assert_allclose(operator.rdot(left[0]), left[0] @ dense)


class _OfNamespace(spl.LinearOperator):
    """An operator on the arrays of another library than NumPy, as SciPy 1.18 knows by ``xp``."""

    def __init__(self, dense, shape):
        super().__init__(np.dtype(float), shape)
        self.dense, self._xp = dense, self

    __name__ = "other.arrays"

    @staticmethod
    def asarray(x):
        return memoryview(np.ascontiguousarray(x))

    def _matvec(self, x):
        return self.matvec(x)

    def matvec(self, x):
        assert isinstance(x, memoryview)
        return self.dense @ np.asarray(x)


def test_operators_get_arrays_of_their_own_namespace():
    dense = np.arange(4.0).reshape(2, 2)
    operator = wl.as_linop(_OfNamespace(dense, (2, 2)))
    np.testing.assert_allclose(operator @ np.ones(2), dense @ np.ones(2))
    with pytest.raises(wl.errors.InvalidArgument, match=r"expected 2-D.*several operators"):
        wl.as_linop(type("Batch", (), {"shape": (3, 2, 2), "matvec": None})())
