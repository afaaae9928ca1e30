"""Functions of a user's operators in the loops of a GPU: recorded, verified, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.errors import InvalidArgument

from ...needs import cuda, package

pytestmark = pytest.mark.gpu

LINE = 24
N = LINE**3
SOURCE = r"""
extern "C" __global__ void stencil(const double* x, double* y, int n, double shift) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * n * n) return;
  const int a = i % n, b = i / n % n, c = i / (n * n);
  double sum = (6 + shift) * x[i];
  if (a > 0) sum -= x[i - 1];
  if (a < n - 1) sum -= x[i + 1];
  if (b > 0) sum -= x[i - n];
  if (b < n - 1) sum -= x[i + n];
  if (c > 0) sum -= x[i - n * n];
  if (c < n - 1) sum -= x[i + n * n];
  y[i] = sum;
}
"""


@pytest.fixture(scope="module")
def xp() -> Any:
    return cuda().xp


@pytest.fixture(scope="module")
def kernel(xp: Any) -> Any:
    return xp.RawKernel(SOURCE, "stencil")


def matrix(shift: float) -> Any:
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(LINE, LINE))
    eye = sp.eye_array(LINE)
    faces = sp.kron(sp.kron(line, eye), eye) + sp.kron(sp.kron(eye, line), eye)
    return sp.csr_array(faces + sp.kron(sp.kron(eye, eye), line) + shift * sp.eye_array(N))


def operator(xp: Any, kernel: Any, shift: float = 0.1, *, out: bool = True) -> wl.LinearOperator:
    grid = (-(-N // 256),)

    def into(x: Any, out: Any) -> None:
        kernel(grid, (256,), (x, out, LINE, shift))

    def made(x: Any) -> Any:
        y = xp.empty_like(x)
        kernel(grid, (256,), (xp.ascontiguousarray(x), y, LINE, shift))
        return y

    f = into if out else made
    return wl.LinearOperator((N, N), f, f, executor="cuda:0", capture=True)


@pytest.mark.parametrize("out", [True, False], ids=["out", "new"])
@pytest.mark.parametrize("solver", ["Cg", "Bicgstab", "Gmres", "Minres", "Idr", "Lsmr"])
def test_solvers_hold_the_function_in_their_loops(
    xp: Any, kernel: Any, solver: str, out: bool
) -> None:
    A = operator(xp, kernel, out=out)
    assert A.resident
    b = xp.asarray(np.random.default_rng(0).standard_normal(N))
    tolerances = {"atol": 1e-10, "btol": 1e-10} if solver == "Lsmr" else {"rtol": 1e-9}
    found = getattr(wl.solvers, solver)(A, **tolerances).solve(b)
    wanted = getattr(wl.solvers, solver)(wl.Csr(matrix(0.1), executor="cuda:0"), **tolerances)
    assert found.converged
    assert abs(found.iterations - wanted.solve(b).iterations) <= 3
    left = np.linalg.norm(b.get() - matrix(0.1) @ found.x.get())
    assert left <= 1e-7 * np.linalg.norm(b.get())


def test_a_preconditioner_and_lazy_operators_are_held_too(xp: Any, kernel: Any) -> None:
    A, b = operator(xp, kernel), xp.ones(N)
    M = wl.LinearOperator((N, N), lambda x: x / 6, executor="cuda:0", capture=True)
    shifted = A + 0.5 * wl.Identity(N, executor="cuda:0")
    assert shifted.resident
    result = wl.solvers.Cg(shifted, M=M, rtol=1e-10).solve(b)
    np.testing.assert_allclose(matrix(0.6) @ result.x.get(), 1.0, atol=1e-7)


def test_functions_of_pytorch_are_held(xp: Any) -> None:
    torch = package("torch", in_ci=False)
    dense = torch.as_tensor(matrix(0.1)[:500, :500].toarray(), device="cuda")

    def product(x: Any) -> Any:
        moved = torch.from_dlpack(x)
        return (dense @ moved).clone() + 0 * moved.sum()

    A = wl.LinearOperator((500, 500), product, executor="cuda:0", capture=True)
    result = wl.solvers.Cg(A, rtol=1e-10).solve(xp.ones(500))
    assert result.converged
    np.testing.assert_allclose(dense.cpu().numpy() @ result.x.get(), 1.0, atol=1e-7)


def test_functions_that_cannot_be_recorded_are_refused(xp: Any, kernel: Any) -> None:
    other = xp.cuda.Stream(non_blocking=True)

    def elsewhere(x: Any) -> Any:
        with other:
            y = 2 * x
            other.synchronize()
        return y

    calls: list[int] = []

    def stateful(x: Any) -> Any:
        calls.append(1)
        return len(calls) * x

    for function in (elsewhere, stateful, lambda x: x * float(x.sum().get())):
        A = wl.LinearOperator((N, N), function, executor="cuda:0", capture=True)
        with pytest.raises(InvalidArgument, match="capture"):
            A @ xp.ones(N)
    with pytest.raises(InvalidArgument, match="cannot read the memory"):
        wl.LinearOperator((N, N), 1 << 20, executor="cuda:0")
