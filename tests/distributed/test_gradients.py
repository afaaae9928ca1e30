"""Gradients of PyTorch through solves over groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl

from .conftest import SIZES, line

torch = pytest.importorskip("torch")
solves = pytest.importorskip("wollemi.interop.torch")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("columns", [0, 2])
def test_gradients_are_those_of_one_executor(kind: str, size: int, columns: int, rng: Any) -> None:
    S = line(30, 7)
    b0 = rng.standard_normal((30, columns) if columns else 30)
    weight = torch.tensor(rng.standard_normal(b0.shape))
    found = []
    for A in (wl.distribute(S, [kind] * size), wl.Csr(S, executor=kind)):
        b = torch.tensor(b0, requires_grad=True)
        values = torch.tensor(S.data, requires_grad=True)
        x = solves.solve(A, b, values=values, solver="gmres", M="none", rtol=1e-12)
        (x * weight).sum().backward()
        found.append([t.detach().numpy() for t in (x, b.grad, values.grad)])
    for mine, alone in zip(*found, strict=True):
        np.testing.assert_allclose(mine, alone, rtol=1e-7, atol=1e-9)


def test_gradients_fit_differences(kind: str, rng: Any) -> None:
    A = wl.distribute(line(12, 5), [kind] * 3)
    values = torch.tensor(A.to_local().data, requires_grad=True)
    b = torch.tensor(rng.standard_normal(12), requires_grad=True)

    def solved(values: Any, b: Any) -> Any:
        return solves.solve(A, b, values=values, rtol=1e-13)

    assert torch.autograd.gradcheck(solved, (values, b), atol=1e-6)
    assert torch.autograd.gradcheck(lambda b: solves.solve(A, b, rtol=1e-13), (b,), atol=1e-6)


def test_operands_that_do_not_fit(kind: str) -> None:
    A, b = wl.distribute(line(12), [kind] * 2), torch.ones(12, dtype=torch.float64)
    with pytest.raises(wl.errors.ShapeMismatch, match="values: expected shape"):
        solves.solve(A, b, values=torch.ones(3, dtype=torch.float64))
    with pytest.raises(wl.errors.ShapeMismatch, match=r"\(n,\) or \(n, k\)"):
        solves.solve(A, b.reshape(1, 12, 1))
    owners = wl.distribute(line(12), [kind] * 2, partition=np.arange(12) % 2)
    with pytest.raises(wl.errors.UnsupportedOperation, match="numbered anew"):
        solves.solve(owners, b, values=torch.ones(34, dtype=torch.float64))
