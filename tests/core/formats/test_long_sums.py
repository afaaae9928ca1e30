"""Sums of many single-precision values equal the rounded double-precision sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl

N = 1_000_000


def one_row(on: wl.Executor, dtype: str) -> Any:
    return wl.Csr((np.full(N, 0.1, dtype), np.arange(N), [0, N]), (1, N), executor=on)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_a_million_tenths_add_up(on: wl.Executor, dtype: str) -> None:
    A, true = one_row(on, dtype), float(np.float32(0.1)) * N
    tenths = sp.diags_array(np.full(N, 0.1, dtype))
    for found in (
        A.sum(),
        A.sum(axis=1),
        A.T.sum(axis=0),
        N * A.mean(axis=1),
        wl.linalg.norm(A, np.inf),
        wl.linalg.norm(A.T, 1),
        wl.linalg.norm(A) ** 2 / float(np.float32(0.1)),
        wl.Csr(tenths, executor=on).trace(),
    ):
        host = found if np.isscalar(found) else on.to_host(found)
        np.testing.assert_allclose(np.ravel(host)[0], true, rtol=1e-6)
