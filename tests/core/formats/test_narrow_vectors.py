"""Products of 16-bit matrices with vectors are refused by name, in every format."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl

from .strategies import FORMATS

NARROW = ["float16", "bfloat16"]


def matrix(on: wl.Executor, dtype: str, format: str) -> Any:
    A = wl.Csr(np.array([[2.0, 0.0], [1.0, 3.0]]), executor=on).astype(dtype)
    return A.asformat(format)


@pytest.mark.parametrize("shape", [(2,), (2, 1), (2, 3)])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", NARROW)
def test_products_with_vectors_name_the_remedy(
    on: wl.Executor, dtype: str, format: str, shape: tuple[int, ...]
) -> None:
    A = matrix(on, dtype, format)
    x = np.ones(shape).astype(A.dtype)
    for product in (
        lambda: A @ x,
        lambda: A.T @ x,
        lambda: x.T @ A,
        lambda: A.apply(x, out=np.zeros(shape, A.dtype)),
        lambda: A @ x.astype("float32"),
    ):
        with pytest.raises(wl.errors.UnsupportedDtype, match="convert to one of float32"):
            product()


@pytest.mark.parametrize("dtype", NARROW)
def test_there_is_no_plan_for_vectors(on: wl.Executor, dtype: str) -> None:
    A = matrix(on, dtype, "csr")
    with pytest.raises(wl.errors.UnsupportedDtype, match="convert"):
        _ = A.plan
    with pytest.raises(wl.errors.UnsupportedDtype, match="convert"):
        A.plan_for("spmv")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", NARROW)
def test_scipy_has_no_matrices_of_16_bits(on: wl.Executor, dtype: str, format: str) -> None:
    with pytest.raises(wl.errors.UnsupportedDtype, match="float32"):
        matrix(on, dtype, format).to_scipy()


@pytest.mark.parametrize("trans", ["N", "T", "H"])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", ["float64", "complex128", "float16"])
def test_every_format_solves_with_its_triangles(
    on: wl.Executor, dtype: str, format: str, lower: bool, trans: str
) -> None:
    D = np.array([[2.0, 1.0, -1.0], [1.0, 4.0, 0.5], [-2.0, 1.0, 8.0]])
    if dtype.startswith("complex"):
        D = D * np.array([[1, 1j, 2], [1j, 1 - 1j, 1], [1, 2j, 1j]])
    A = wl.Csr(D, executor=on).astype(dtype).asformat(format)
    triangle = np.tril(D) if lower else np.triu(D)
    turned = {"N": triangle, "T": triangle.T, "H": triangle.conj().T}[trans]
    b = np.array([1.0, -2.0, 3.0])
    found = A.solve_triangular(b, lower=lower, trans=trans)
    np.testing.assert_allclose(turned @ found, b, rtol=1e-12)
