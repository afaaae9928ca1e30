"""Products with tensors of a known layout pass the dispatcher by, and no others do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl

from ..backends.lockstep.build import compiler
from ..backends.lockstep.executor import LockstepExecutor, native
from ..backends.needs import package

torch = package("torch")

from wollemi.interop.torch import (  # noqa: E402
    blocks,
    functions,
    operators,
    spmm,
)

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C++ compiler: install g++")

M, N, K = 12, 10, 6


class Counted:
    """The operators, of which products are counted."""

    def __init__(self) -> None:
        self.products = 0

    def spmm(self, *given: Any) -> Any:
        """Count a product that goes by the dispatcher."""
        self.products += 1
        return operators.spmm(*given)


@pytest.fixture
def dispatched(monkeypatch: pytest.MonkeyPatch) -> Counted:
    counted = Counted()
    monkeypatch.setattr(functions, "operators", counted)
    return counted


@pytest.fixture
def A(monkeypatch: pytest.MonkeyPatch) -> wl.Csr:
    """A matrix on an emulated GPU with arrays that share their memory with tensors of the host."""
    monkeypatch.setattr(blocks, "native_of", lambda on, tensor: native(tensor.detach().numpy()))
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((M, N)) < 0.4, rng.random((M, N)), 0.0).astype(np.float32)
    return wl.Csr(dense, executor=LockstepExecutor(32))


def dense(A: wl.Csr) -> Any:
    return torch.from_numpy(A.to("reference").to_scipy().toarray())


def test_the_second_product_passes_the_dispatcher_by(A: wl.Csr, dispatched: Counted) -> None:
    spmm(A, torch.rand(N, K))
    for _ in range(3):
        B = torch.rand(N, K)
        torch.testing.assert_close(spmm(A, B), dense(A) @ B)
    with torch.no_grad():
        torch.testing.assert_close(spmm(A, B), dense(A) @ B)
    assert dispatched.products == 1


def test_each_layout_is_known_by_itself(A: wl.Csr, dispatched: Counted) -> None:
    layouts = [
        torch.rand(N, K),
        torch.rand(N, K + 1),
        torch.rand(N, K + 2)[:, :K],
        torch.rand(N, K)[:, ::2],
    ]
    for _ in range(2):
        for B in layouts:
            torch.testing.assert_close(spmm(A, B), dense(A) @ B)
    # the last one is copied, so that launches are not all
    assert dispatched.products == len(layouts) + 1


def test_new_values_are_multiplied(A: wl.Csr, dispatched: Counted) -> None:
    B = torch.rand(N, K)
    for factor in (1, 2, 3):
        A.update_values(np.full(A.nnz, factor, np.float32))
        torch.testing.assert_close(spmm(A, B), dense(A) @ B)
    other = A._with_data(native(np.full(A.nnz, 5, np.float32)))
    torch.testing.assert_close(spmm(other, B), dense(other) @ B)
    torch.testing.assert_close(spmm(A, B), dense(A) @ B)


def test_factors_and_results_that_are_given_are_looked_at(A: wl.Csr, dispatched: Counted) -> None:
    B, values = torch.rand(N, K), torch.rand(A.nnz)
    spmm(A, B)
    torch.testing.assert_close(spmm(A, B, alpha=2), 2 * dense(A) @ B)
    torch.testing.assert_close(spmm(A, B, kernel="row-split"), dense(A) @ B)
    torch.testing.assert_close(spmm(A, B, alpha=np.float32(3)), 3 * dense(A) @ B)
    given = A._with_data(native(values.numpy()))
    torch.testing.assert_close(spmm(A, B, values=values), dense(given) @ B)
    with pytest.raises(wl.errors.InvalidArgument, match="beta"):
        spmm(A, B, beta=1)
    assert dispatched.products == 5


def test_gradients_are_recorded(A: wl.Csr, dispatched: Counted) -> None:
    B = torch.rand(N, K)
    spmm(A, B)
    spmm(A, B.detach().requires_grad_())
    assert dispatched.products == 2
    with torch.no_grad():
        assert not spmm(A, B.detach().requires_grad_()).requires_grad
    assert dispatched.products == 2


class Functions(torch.overrides.TorchFunctionMode):
    """Notes calls of functions of PyTorch's."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        self.seen.append(str(function))
        return function(*args, **(kwargs or {}))


class Operators(torch.utils._python_dispatch.TorchDispatchMode):
    """Notes calls of operators."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        self.seen.append(str(function))
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("kind", [Functions, Operators])
def test_modes_see_every_product(A: wl.Csr, kind: Any) -> None:
    B = torch.rand(N, K)
    spmm(A, B)
    for _ in range(2):
        with kind() as mode:
            torch.testing.assert_close(spmm(A, B), dense(A) @ B)
        assert any("wollemi.spmm" in name for name in mode.seen)


def test_profilers_see_every_product(A: wl.Csr) -> None:
    B = torch.rand(N, K)
    spmm(A, B)
    with torch.profiler.profile() as profile:
        spmm(A, B)
    assert any(event.key == "wollemi::spmm" for event in profile.key_averages())


def test_transforms_and_tangents_are_for_the_dispatcher(A: wl.Csr, dispatched: Counted) -> None:
    B = torch.rand(N, K)
    spmm(A, B)
    found = torch.func.vmap(lambda x: spmm(A, x))(torch.stack([B, 2 * B]))
    torch.testing.assert_close(found, torch.stack([dense(A) @ B, 2 * dense(A) @ B]))
    _, tangent = torch.func.jvp(lambda x: spmm(A, x), (B,), (B,))
    torch.testing.assert_close(tangent, dense(A) @ B)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(B, B.clone())
        made = torch.autograd.forward_ad.unpack_dual(spmm(A, dual))
    torch.testing.assert_close(made.tangent, dense(A) @ B)
    assert dispatched.products == 4


def test_what_a_product_in_inference_mode_left_is_for_that_mode(
    A: wl.Csr, dispatched: Counted
) -> None:
    B = torch.rand(N, K)
    with torch.inference_mode():
        for _ in range(2):
            assert spmm(A, B).is_inference()
    assert dispatched.products == 1
    for _ in range(2):
        assert not spmm(A, B).is_inference()
    assert dispatched.products == 2
