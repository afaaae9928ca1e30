"""Calls of a layout that was there before: on a GPU, addresses of tensors alone are looked at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl

from ..backends.lockstep.build import compiler
from ..backends.lockstep.executor import LockstepExecutor, native
from ..backends.needs import package

torch = package("torch")

from wollemi.core.operations import products as operations  # noqa: E402
from wollemi.interop.torch import blocks  # noqa: E402

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C++ compiler: install g++")

M, N, K = 12, 10, 6


@pytest.fixture
def A(monkeypatch: pytest.MonkeyPatch) -> wl.Csr:
    """A matrix on an emulated GPU with arrays that share their memory with tensors of the host."""
    monkeypatch.setattr(blocks, "native_of", lambda on, tensor: native(tensor.numpy()))
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((M, N)) < 0.4, 1.0, 0.0).astype(np.float32)
    return wl.Csr(dense, executor=LockstepExecutor(32))


def spmm(A: wl.Csr, values: Any, B: Any, alpha: float = 1.0) -> Any:
    out = torch.empty(*B.shape[:-2], M, B.shape[-1])
    blocks.run(operations.csr_spmm, A, [(values, 1), (B, 2), (out, 2)], alpha, 0.0, "row-split")
    return out


def dense(A: wl.Csr, values: Any) -> Any:
    found = torch.zeros(M, N)
    rows = np.repeat(np.arange(M), np.diff(A.indptr))
    found[torch.from_numpy(rows), torch.from_numpy(np.asarray(A.indices)).long()] = values
    return found


def refuse(*_: Any) -> None:
    raise AssertionError("the launches should equal the launches of the previous call")


def test_a_call_of_a_known_layout_makes_no_arrays(
    A: wl.Csr, monkeypatch: pytest.MonkeyPatch
) -> None:
    spmm(A, torch.rand(A.nnz), torch.rand(N, K))
    monkeypatch.setattr(blocks, "native_of", refuse)
    values, B = torch.rand(A.nnz), torch.rand(N, K)
    torch.testing.assert_close(spmm(A, values, B), dense(A, values) @ B)


@pytest.mark.parametrize(
    "B",
    [
        torch.rand(N, K + 1),
        torch.rand(3, N, K),
        torch.rand(N, K + 1)[:, 1:],
        torch.rand(N, K).double().float()[:, ::2],
        torch.rand(K, N).T,
        torch.rand(N, 2, K).transpose(0, 1),
    ],
)
def test_another_layout_is_looked_at_anew(A: wl.Csr, B: Any) -> None:
    values = torch.rand(A.nnz)
    spmm(A, values, torch.rand(N, K))
    for _ in range(3):
        given = values.expand(*B.shape[:-2], -1)
        torch.testing.assert_close(spmm(A, given, B), dense(A, values) @ B)
        B = B.clone(memory_format=torch.preserve_format)


def test_another_factor_is_looked_at_anew(A: wl.Csr) -> None:
    values, B = torch.rand(A.nnz), torch.rand(N, K)
    for alpha in (1.0, 2.0, 1.0, 0.5):
        torch.testing.assert_close(spmm(A, values, B, alpha), alpha * (dense(A, values) @ B))


def test_one_tensor_for_two_is_not_taken_for_two(A: wl.Csr) -> None:
    C, B = torch.rand(N, K), torch.rand(N, K)
    square = wl.Csr(np.eye(N, dtype=np.float32), executor=A.executor)

    def sddmm(C: Any, B: Any) -> Any:
        out = torch.empty(N)
        given = [(None, 1), (C, 2), (B, 2), (out, 1)]
        blocks.run(operations.csr_sddmm, square, given, 1.0, 0.0, "row-split")
        return out

    for left, right in ((C, C), (C, B), (B, B), (B, C)):
        torch.testing.assert_close(sddmm(left, right), (left * right).sum(-1))


def test_factors_without_end_do_not_fill_the_memory(
    A: wl.Csr, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "MOST_LAYOUTS", 4)
    values, B = torch.rand(A.nnz), torch.rand(N, K)
    for alpha in np.linspace(1, 2, 11):
        spmm(A, values, B, float(alpha))
    assert len(A._pattern.repeats) <= 4
