"""Softmax attention that keeps the logarithms of its totals, and gradients that are given them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

import wollemi as wl
from wollemi.core.errors import InvalidArgument
from wollemi.core.operations import masks
from wollemi.core.operations import products as operations
from wollemi.masks import Mask

from .dense_products import dtype_called, eps, matrix, numbers, wide
from .with_emulated import executor_of, named_and_emulated

INF = np.inf
N = 1200
#: Scores of rows: the difficult cases of a softmax.
ROWS = {
    "none": [],
    "one": [2.0],
    "one of minus infinity": [-INF],
    "leading ones": [-INF] * 70 + [0.5, 0.25],
    "large": [900.0, -900.0, 901.0],
    "small": [-300.0] * 9,
    "growing": [float(i) for i in range(100)],
    "long": [0.01 * (i % 7) for i in range(N)],
    "long, but the last": [-INF] * (N - 1) + [0.5],
    "nothing but minus infinity": [-INF] * 40,
    "none either": [],
}
M = len(ROWS)
DTYPES = ("float32", "float64", "float16", "bfloat16")


@pytest.fixture(
    params=named_and_emulated(operations.csr_fusedmm_softmax, reference=True),
    ids=str,
)
def on(request: Any) -> Any:
    return executor_of(request.param)


def awkward(index: str) -> wl.Csr:
    """Return a matrix with the scores as values."""
    scores = np.concatenate([np.array(row, np.float32) for row in ROWS.values()])
    lengths = [len(row) for row in ROWS.values()]
    indices = np.concatenate([np.arange(length) for length in lengths])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    arrays = (scores, indices.astype(index), indptr.astype(index))
    return wl.Csr(arrays, shape=(M, N), executor="reference")


def backward(
    on: Any, operation: Any, A: Any, given: Any, like: Any, *scalars: Any
) -> list[np.ndarray[Any, Any] | None]:
    """Return the gradients, which are like these arrays or not asked for; of unclean memory."""
    made = [
        None if x is None else on.from_host(np.full(x.shape, np.nan).astype(x.dtype)) for x in like
    ]
    there = (None if x is None else on.from_host(x.copy()) for x in given)
    on.run(operation, A.to(on), *there, *made, *scalars)
    return [None if x is None else wide(np.array(on.to_host(x))) for x in made]


def requires(on: Any, operation: Any) -> None:
    if not on.supports(operation):
        pytest.skip(f"{operation.name} has no kernel on {on.name}")


def does(A: wl.Csr, kernel: str, dtype: str) -> bool:
    """Return whether an algorithm computes in a dtype: some are for 16 bits."""
    try:
        A.plan_for("fusedmm", 1, kernel, dtype)
    except InvalidArgument as why:
        assert "cannot run" in str(why)
        return False
    return True


def attend(on: Any, operation: Any, A: Any, *given: Any, kernel: str = "auto") -> tuple[Any, Any]:
    """Return the result and the logarithms of totals, written to uninitialized memory."""
    C, D = given[-3], given[-1]
    batch, m, _ = C.shape
    real = np.float32 if C.dtype.itemsize < 4 else C.dtype
    found = [
        on.from_host(np.full(shape, np.nan).astype(dtype))
        for shape, dtype in (((batch, m, D.shape[2]), C.dtype), ((batch, m), real))
    ]
    there = (None if x is None else on.from_host(x.copy()) for x in given)
    on.run(operation, A.to(on), *there, *found, 1.0, kernel)
    out, log_totals = (np.array(on.to_host(x)) for x in found)
    assert log_totals.dtype == real
    return out, log_totals


@pytest.mark.parametrize("p", [0, 3])
@pytest.mark.parametrize(("dtype", "index"), [("float32", "int32"), ("float64", "int64")])
def test_they_are_scipys_logsumexp_of_awkward_rows(on: Any, dtype: str, index: str, p: int) -> None:
    T, A = np.dtype(dtype), awkward(index)
    ones = [np.ones((2, rows, 1), T) for rows in (M, N)]
    D = numbers(np.random.default_rng(0), (2, N, p), T)
    scores = np.broadcast_to(A.data.astype(T), (2, A.nnz))
    want = [logsumexp(np.array([*row, -INF], np.float32).astype(float)) for row in ROWS.values()]
    want = [INF if np.isneginf(x) else x for x in want]  # exp(score - log_total) is 0 then
    there = A.to(on)
    kernels = ("auto", *on.algorithms.names("fusedmm"))
    for kernel in (name for name in kernels if does(there, name, dtype)):
        out, log_totals = attend(
            on, operations.csr_fusedmm_softmax, there, scores, *ones, D, kernel=kernel
        )
        np.testing.assert_allclose(log_totals, [want, want], rtol=20 * eps(T), atol=20 * eps(T))
        E = on.from_host(np.full(out.shape, np.nan, T))
        given = [on.from_host(x.copy()) for x in (scores, *ones, D)]
        on.run(operations.csr_fusedmm, there, *given, E, 1.0, "softmax", kernel)
        np.testing.assert_array_equal(wide(out), wide(on.to_host(E)))


@pytest.mark.parametrize("p", [0, 5])
@pytest.mark.parametrize("dtype", DTYPES)
def test_those_of_masks_are_too(on: Any, dtype: str, p: int) -> None:
    T, rng = dtype_called(dtype), np.random.default_rng(1)
    first, last = np.array([0, 0, 2, 5, 9, 9, 20]), np.array([0, 1, 7, 9, 9, 60, 200])
    mask = Mask(first, last, 200, executor="reference")
    C, B, D = (
        numbers(rng, (2, rows, columns), T) for rows, columns in ((7, 9), (200, 9), (200, p))
    )
    C[..., 0], B[:, 5:9] = 1, 0
    B[:, 5:9, 0] = -INF  # row 3 has no other
    out, log_totals = attend(on, masks.fusedmm_softmax, mask, C, B, D)
    s = wide(C) @ wide(B).swapaxes(1, 2)
    places = (np.arange(200) >= first[:, None]) & (np.arange(200) < last[:, None])
    want = logsumexp(np.where(places, s, -INF), axis=2)
    want[np.isneginf(want)] = INF
    single = np.dtype(np.float32) if T.itemsize < 4 else T
    np.testing.assert_allclose(log_totals, want, rtol=20 * eps(single), atol=20 * eps(single))
    assert np.isposinf(log_totals[:, [0, 3, 4]]).all()
    assert not wide(out)[:, [0, 3, 4]].any()
    E = on.from_host(np.zeros(out.shape, T))
    there = [on.from_host(x.copy()) for x in (C, B, D)]
    on.run(masks.fusedmm, mask.to(on), *there, E, 1.0, "softmax", "auto")
    np.testing.assert_array_equal(wide(out), wide(on.to_host(E)))


def assert_near(found: Any, expected: Any, T: np.dtype[Any]) -> None:
    """Fail unless both are sums of some hundred terms that were rounded in other orders."""
    for have, want in zip(found, expected, strict=True):
        if have is not None:
            scale = 1 + np.abs(want).max(initial=0.0)
            np.testing.assert_array_less(np.abs(have - want), 60 * eps(T) * scale)


@pytest.mark.parametrize("use_values", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_that_are_given_them_are_those_that_find_them(
    on: Any, dtype: str, use_values: bool
) -> None:
    requires(on, operations.csr_fusedmm_softmax_backward)
    T, rng = dtype_called(dtype), np.random.default_rng(2)
    A = matrix(rng, 30, 20, 4.0, True, T, "int32", "reference")
    shapes = ((30, 12), (20, 12), (20, 9), (30, 9))
    C, B, D, G = (numbers(rng, (2, *shape), T) for shape in shapes)
    values = numbers(rng, (2, A.nnz), T) if use_values else None
    left = attend(on, operations.csr_fusedmm_softmax, A, values, C, B, D)
    for asked in ((values, C, B, D), (None, None, B, None)):
        given = (values, C, B, D, G)
        expected = backward(on, operations.csr_fusedmm_backward, A, given, asked, 1.0, "softmax")
        given = (*given, *left)
        found = backward(on, operations.csr_fusedmm_softmax_backward, A, given, asked, 1.0)
        assert_near(found, expected, T)


@pytest.mark.parametrize("dtype", DTYPES)
def test_so_are_those_of_masks(on: Any, dtype: str) -> None:
    requires(on, masks.fusedmm_softmax_backward)
    T, rng = dtype_called(dtype), np.random.default_rng(3)
    mask = wl.masks.sliding_window(40, 7) & wl.masks.documents([9, 0, 30, 1], causal=True)
    mask = mask.to("reference")
    C, B, D, G = (numbers(rng, (2, 40, columns), T) for columns in (24, 24, 40, 40))
    left = attend(on, masks.fusedmm_softmax, mask, C, B, D)
    for asked in ((C, B, D), (None, B, None), (C, None, None)):
        given, scalars = (C, B, D, G), (1.0, "softmax", "auto")
        expected = backward(on, masks.fusedmm_backward, mask, given, asked, *scalars)
        given = (*given, *left)
        found = backward(on, masks.fusedmm_softmax_backward, mask, given, asked, 1.0, "auto")
        assert_near(found, expected, T)


def test_long_rows_that_are_cut_have_the_same_gradients_on_any_number_of_threads() -> None:
    T, rng = np.dtype(np.float32), np.random.default_rng(5)
    lengths = np.array([3, 20_000, 0, 5, 9_000, 1] + [2] * 300)
    indptr = np.concatenate([[0], lengths.cumsum()])
    arrays = (numbers(rng, (indptr[-1],), T), rng.integers(0, 500, indptr[-1]), indptr)
    A = wl.Csr(arrays, shape=(306, 500), executor="reference")
    C, B, D, G = (
        numbers(rng, (1, *shape), T) / 4 for shape in ((306, 24), (500, 24), (500, 9), (306, 9))
    )
    one, two = (wl.executor(f"omp:{threads}") for threads in (1, 2))
    left = attend(one, operations.csr_fusedmm_softmax, A, None, C, B, D)
    given, asked = (None, C, B, D, G), (None, C, B, D)
    expected = backward(one, operations.csr_fusedmm_backward, A, given, asked, 1.0, "softmax")
    given = (*given, *left)
    found, again = (
        backward(on, operations.csr_fusedmm_softmax_backward, A, given, asked, 1.0)
        for on in (one, two)
    )
    assert_near(found, expected, T)
    for have, same in zip(found, again, strict=True):
        np.testing.assert_array_equal(have, same)


def test_a_row_of_minus_infinities_adds_nothing_to_gradients_of_values(on: Any) -> None:
    requires(on, masks.fusedmm_softmax_backward)
    T, rng = np.dtype(np.float32), np.random.default_rng(4)
    mask = Mask(np.array([0, 2, 2]), np.array([2, 2, 6]), 6, executor="reference")
    C, B, D, G = (numbers(rng, (1, rows, 4), T) for rows in (3, 6, 6, 3))
    C[..., 0], B[:, :2] = 1, 0
    B[:, :2, 0] = -INF
    left = attend(on, masks.fusedmm_softmax, mask, C, B, D)
    given, asked = (C, B, D, G, *left), (C, B, D)
    with np.errstate(invalid="ignore"):
        found = backward(on, masks.fusedmm_softmax_backward, mask, given, asked, 1.0, "auto")
    _, _, (of_D,) = found
    assert not of_D[:2].any() and np.isfinite(of_D).all()
