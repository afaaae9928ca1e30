"""Products with several matrices of one pattern: every lane has the bits of every other lane."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.backends.omp.level import native


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("alpha, beta", [(1.0, 0.0), (-1.5, 0.5)])
@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_each_lane_is_the_product_of_its_matrix(dtype, lanes, alpha, beta, index) -> None:
    rng, on = np.random.default_rng(0), wl.OmpExecutor(threads=1)
    S = sp.random_array((40, 30), density=0.3, rng=rng, format="csr")

    def numbers(rows):
        real = rng.standard_normal((rows, lanes)).astype(dtype)
        real = real + 1j * real[::-1] if np.dtype(dtype).kind == "c" else real
        return np.ascontiguousarray(real.astype(dtype))

    arrays = [numbers(S.nnz), numbers(30), numbers(40)]
    for alike in (False, True):
        if alike:
            arrays = [np.repeat(array[:, :1], lanes, axis=1) for array in arrays]
        values, x, y = arrays
        before, d, z = y.copy(), numbers(40), numbers(40)
        pattern = S.indptr.astype(index), S.indices.astype(index)
        native().interleaved_spmv(on, *pattern, values, x, y, alpha, beta)
        for w in range(lanes):
            A = sp.csr_array((values[:, w], S.indices, S.indptr), shape=S.shape)
            wanted = alpha * (A @ x[:, w]) + beta * before[:, w]
            np.testing.assert_allclose(y[:, w], wanted, rtol=1e-4, atol=1e-4)
        if alike:
            np.testing.assert_array_equal(y, np.repeat(y[:, :1], lanes, axis=1))
        wanted = alpha * (d * y) + beta * z
        native().interleaved_scale(on, d, y, z, alpha, beta)
        np.testing.assert_allclose(z, wanted, rtol=1e-5, atol=1e-5)


def test_other_numbers_of_matrices_are_refused() -> None:
    on, one = wl.OmpExecutor(threads=1), np.ones((1, 3))
    with pytest.raises(TypeError, match="expected 4, 8 or 16 matrices"):
        pattern = np.array([0, 1], np.int32), np.array([0], np.int32)
        native().interleaved_spmv(on, *pattern, one, one, one.copy(), 1.0, 0.0)
