"""Rayleigh quotients, which Lanczos takes where a shift's rounding is above the limit."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.solvers.eigen.transformed import Transformed

from .conftest import DTYPES, block, poisson


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("pencil", [False, True])
def test_quotients_are_those_of_the_pencil(on: Any, dtype: str, pencil: bool, rng: Any) -> None:
    S = poisson(5, dtype)
    B = sp.diags_array(np.linspace(1.0, 2.0, 25)).tocsr().astype(dtype) if pencil else None
    X = block(rng, (25, 3), dtype)
    A, mass = wl.Csr(S, executor=on), None if B is None else wl.Csr(B, executor=on)
    pencil = wl.solvers.Lanczos(A, B=mass, k=2).pencil(dtype)
    got = pencil.quotients(A.executor.from_host(X))
    BX = X if B is None else B @ X
    want = np.sum(X.conj() * (S @ X), axis=0) / np.sum(X.conj() * BX, axis=0)
    np.testing.assert_allclose(got, want.real, rtol=50 * np.finfo(dtype).eps)


def test_a_shift_may_round_its_eigenvalues(on: Any, monkeypatch: Any) -> None:
    exact = Transformed.original
    monkeypatch.setattr(Transformed, "original", lambda *given: exact(*given) * (1 + 1e-10))
    S = poisson(6)
    result = wl.solvers.Lanczos(wl.Csr(S, executor=on), k=3, sigma=0.5, rtol=0.0).solve()
    assert result.converged, result
    values = np.linalg.eigvalsh(S.toarray())
    near = np.sort(values[np.argsort(abs(values - 0.5))[:3]])
    np.testing.assert_allclose(result.eigenvalues, near, rtol=1e-13)
