"""Factors of identities, permutations and masks keep all digits until a matrix meets them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl

from .strategies import FORMATS

FACTORS = [0.1, 1e39, 1e-300, 0.1 - 0.3j, 1e39j]
OPERATORS = {
    "identity": lambda on: wl.Identity(3, executor=on),
    "permutation": lambda on: wl.Permutation([1, 2, 0], executor=on),
    "mask": lambda on: wl.masks.Mask([0, 0, 0], [1, 2, 3], 3, executor=on),
    "nested": lambda on: 0.5 * (2 * wl.Identity(3, executor=on)),
}


def dense(A: Any) -> Any:
    return np.asarray(A.to_dense())


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_a_wide_matrix_meets_the_factor_itself(
    on: wl.Executor, name: str, dtype: str, factor: complex
) -> None:
    D = np.diag([1.0, 2.0, 3.0]).astype(dtype)
    A, operator = wl.Csr(D, executor=on), OPERATORS[name](on)
    E, true = factor * operator, factor * dense(operator).astype("float64")
    for found, expected in (
        (A + E, D + true),
        (A - E, D - true),
        (E - A, true - D),
        (A @ E, D @ true),
        (E @ A, true @ D),
        (A.multiply(E), D * true),
    ):
        np.testing.assert_allclose(dense(found), expected, rtol=1e-15, atol=0)


@pytest.mark.parametrize("format", FORMATS)
def test_a_constructor_with_a_dtype_takes_the_factor_itself(on: wl.Executor, format: str) -> None:
    cls = getattr(wl, format.capitalize())
    for factor in (0.1, 1e39, 1e-300):
        made = cls(factor * wl.Identity(2, executor=on), dtype="float64")
        assert dense(made)[0, 0] == factor
        assert made.format == format


@pytest.mark.parametrize("format", FORMATS)
def test_a_matrix_in_every_format_meets_the_factor_itself(on: wl.Executor, format: str) -> None:
    A = wl.Csr(np.eye(2), executor=on).asformat(format)
    assert dense(A + 0.1 * wl.Identity(2))[0, 0] == 1.1
    assert dense(A @ (0.1 * wl.Identity(2)))[0, 0] == 0.1


def test_a_shift_close_to_an_eigenvalue_is_kept(on: wl.Executor) -> None:
    A = wl.Csr(np.diag([1e6, 2e6]), executor=on) - (1e6 + 0.01) * wl.Identity(2)
    np.testing.assert_allclose(dense(A)[0, 0], -0.01, rtol=1e-8)


def test_factors_beyond_the_dtype_are_refused(on: wl.Executor) -> None:
    identity = wl.Identity(2, executor=on)
    for factor in (1e39, 1e-300, 1e39j):
        with pytest.raises(wl.errors.InvalidArgument, match="float64"):
            (factor * identity).tocsr()
    with pytest.raises(wl.errors.InvalidArgument, match="range of float32"):
        wl.Csr(np.eye(2, dtype="float32"), executor=on) + 1e39 * identity
    assert dense((1e-30 * (1e30 * identity)).tocsr())[0, 0] == 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_matrices_of_16_bits_are_added_and_multiplied(on: wl.Executor, dtype: str) -> None:
    D = np.array([[1.0, 2.0], [0.0, 4.0]])
    A = wl.Csr(D, executor=on).astype(dtype)
    assert (A + A).dtype == A.dtype
    np.testing.assert_array_equal(dense((A + A).astype("float32")), 2 * D)
    np.testing.assert_array_equal(dense((A @ A).astype("float32")), D @ D)
    assert (A + 0.5 * wl.Identity(2)).dtype == np.float32


def test_blocks_and_kronecker_products_take_the_factor_itself(on: wl.Executor) -> None:
    A, third = wl.Csr(np.eye(2), executor=on), wl.Identity(2, executor=on) / 3
    for made in (
        wl.sparse.kron(A, third),
        wl.sparse.kron(third, A),
        wl.sparse.block_diag([A, third]),
        wl.sparse.hstack([np.eye(2), third]),
        wl.sparse.vstack([A, third]),
        wl.sparse.block_array([[A, None], [None, third]]),
    ):
        assert set(dense(made).ravel().tolist()) <= {0.0, 1.0, 1 / 3}
    assert dense(wl.sparse.kronsum(A, third))[0, 0] == 1 + 1 / 3
    assert wl.sparse.kron(third, third).dtype == np.float32
