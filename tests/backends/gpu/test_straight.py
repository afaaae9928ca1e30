"""Products by a launch that the plan keeps, and new values by the launch of the last time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.backends.cuda.spmv.cached_columns import CachedColumns
from wollemi.backends.gpu.base import FREE
from wollemi.backends.gpu.prepared import Prepared
from wollemi.backends.gpu.repeatable import RepeatedLaunches
from wollemi.backends.gpu.spmv.packed import Packed

from .current import EXECUTORS

DTYPES = ("float32", "float64", "complex64", "complex128")


@pytest.fixture(params=EXECUTORS)
def gpu(request: pytest.FixtureRequest) -> Any:
    """Return a GPU."""
    return request.param()


def stencil(dtype: str) -> sp.csr_array:
    """Return a matrix of three diagonals."""
    diagonals = [-1.0, 2.5, -0.5]
    made: Any = sp.diags_array(diagonals, offsets=[-1, 0, 9], shape=(100, 100))
    return sp.csr_array(made, dtype=dtype) * (1 + 2j if dtype.startswith("complex") else 1)


def uneven(dtype: str) -> sp.csr_array:
    """Return a matrix with a few long rows."""
    rng = np.random.default_rng(3)
    S: Any = sp.random_array((60, 40), density=0.1, rng=rng)
    dense = S.toarray()
    dense[7] = rng.standard_normal(40)
    return sp.csr_array(dense.astype(dtype))


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that gets an item for each product by a kept launch."""
    from wollemi.backends.gpu.prepared import Straight

    seen: list[Any] = []
    launch = Straight.launch
    monkeypatch.setattr(
        Straight, "launch", lambda self, *given: (seen.append(self), launch(self, *given))[1]
    )
    return seen


def long_row(dtype: str) -> sp.csr_array:
    """Return a matrix with a row that is cut, and rows without entries."""
    rng = np.random.default_rng(5)
    S: Any = sp.random_array((70, 3000), density=0.01, rng=rng)
    dense = S.toarray()
    dense[7], dense[20:24] = rng.standard_normal(3000), 0.0
    return sp.csr_array(dense.astype(dtype)) * (1 - 1j if dtype.startswith("complex") else 1)


def cuts(gpu: Any, kernel: str, dtype: str) -> tuple[sp.csr_array, wl.Csr]:
    """Return a matrix with a cut row and its plan; cached columns need much shared memory."""
    S = long_row(dtype)
    if kernel == CachedColumns.name and (gpu.backend != "cuda" or dtype.startswith("complex")):
        pytest.skip("real numbers and an NVIDIA GPU of at least 192 KB of shared memory")
    return S, wl.Csr(S, executor=gpu).with_kernel(kernel)


@pytest.mark.parametrize("kernel", ["csr-adaptive", "row-segments", CachedColumns.name])
@pytest.mark.parametrize("dtype", DTYPES)
def test_launches_with_scratch_memory_are_repeated_from_the_third_product_on(
    gpu: Any, monkeypatch: pytest.MonkeyPatch, dtype: str, kernel: str
) -> None:
    S, A = cuts(gpu, kernel, dtype)
    rng = np.random.default_rng(0)
    x = gpu.from_host(rng.standard_normal(3000).astype(dtype))
    first, second = gpu.to_host(A @ x), gpu.to_host(A @ x)
    steps = A.plan.prepared[1].straight
    assert isinstance(steps, RepeatedLaunches)
    # Another stream has other scratch memory.
    lent = gpu.from_host(np.full(1 << 20, 0xCD, np.uint8))
    counted = gpu.from_host(np.zeros(1 << 12, np.int32))
    monkeypatch.setattr(gpu, "scratch", lambda *_: (lent.data.ptr, counted.data.ptr))
    monkeypatch.setattr(type(A.plan.algorithm), "run", None)
    other = gpu.from_host(rng.standard_normal(3000).astype(dtype))
    out = gpu.from_host(np.full(70, np.nan, dtype))
    assert A.apply(other, out=out) is out
    third = gpu.to_host(A @ x)
    np.testing.assert_array_equal(second, first)
    np.testing.assert_array_equal(third, first)
    eps = 1000 * np.finfo(dtype).eps
    np.testing.assert_allclose(first, S @ gpu.to_host(x), rtol=eps, atol=eps)
    np.testing.assert_allclose(gpu.to_host(out), S @ gpu.to_host(other), rtol=eps, atol=eps)
    assert not gpu.to_host(counted).any()


@pytest.mark.parametrize("kernel", ["csr-adaptive", "row-segments", CachedColumns.name])
def test_repeated_launches_follow_new_values_and_leave_factors_to_others(
    gpu: Any, kernel: str
) -> None:
    S, A = cuts(gpu, kernel, "float64")
    x = gpu.from_host(np.arange(3000.0))
    for _ in range(3):
        A @ x
    A.update_values(gpu.from_host(-3 * S.data))
    expected = -3 * (S @ np.arange(3000.0))
    np.testing.assert_allclose(gpu.to_host(A @ x), expected)
    y = gpu.from_host(np.ones(70))
    A.apply(x, out=y, alpha=2.0, beta=0.5)
    np.testing.assert_allclose(gpu.to_host(y), 2 * expected + 0.5)


@pytest.mark.parametrize("count", [1, 4])
def test_vectors_in_one_memory_take_the_usual_way(gpu: Any, count: int) -> None:
    S = stencil("float64")
    A = wl.Csr(S, executor=gpu)
    both = gpu.from_host(np.arange(110.0))
    x, out = both[:100], both[10:]
    expected = S @ np.arange(100.0)
    for _ in range(count - 1):
        A @ x
    assert A.apply(x, out=out) is out
    np.testing.assert_allclose(gpu.to_host(out), expected)


@pytest.mark.parametrize("make", [stencil, uneven])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_second_product_is_a_kept_launch_with_the_same_bits(
    gpu: Any, monkeypatch: pytest.MonkeyPatch, dtype: str, make: Any
) -> None:
    S = make(dtype)
    A = wl.Csr(S, executor=gpu)
    x = gpu.from_host(np.random.default_rng(0).standard_normal(S.shape[1]).astype(dtype))
    first = gpu.to_host(A @ x)
    seen = counted(monkeypatch)
    second = gpu.to_host(A @ x)
    known = A.plan.prepared.get(1)
    assert len(seen) == (known is not None)
    np.testing.assert_array_equal(first, second)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(second, S @ gpu.to_host(x), rtol=100 * eps, atol=100 * eps)


def test_out_is_overwritten_without_being_read(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    S = stencil("float64")
    A = wl.Csr(S, executor=gpu)
    x = gpu.from_host(np.arange(100.0))
    A @ x
    seen = counted(monkeypatch)
    y = gpu.from_host(np.full(100, np.nan))
    assert A.apply(x, out=y) is y
    assert len(seen) == 1
    np.testing.assert_allclose(gpu.to_host(y), S @ np.arange(100.0))


@pytest.mark.parametrize(
    "operand",
    ["host", "strided", "other dtype", "block", "alpha", "same memory", "captured"],
)
def test_other_operands_take_the_usual_way(
    gpu: Any, monkeypatch: pytest.MonkeyPatch, operand: str
) -> None:
    S = stencil("float64")
    A = wl.Csr(S, executor=gpu)
    host = np.random.default_rng(1).standard_normal(100)
    x = gpu.from_host(host)
    A @ x
    seen = counted(monkeypatch)
    expected = S @ host
    if operand == "host":
        found = A @ host
    elif operand == "strided":
        found = A @ gpu.from_host(np.repeat(host, 2))[::2]
    elif operand == "other dtype":
        found = A @ gpu.from_host(host.astype(np.float32))
        expected = S @ host.astype(np.float32)
    elif operand == "block":
        found, expected = A @ x.reshape(-1, 1), expected[:, None]
    elif operand == "alpha":
        found, expected = A.apply(x, alpha=2.0), 2 * expected
    elif operand == "same memory":
        found = A.apply(x, out=x)
    else:
        monkeypatch.setattr(gpu._mine, "capture", FREE)
        found = A @ x
    assert not seen
    np.testing.assert_allclose(gpu.to_host(found), expected, rtol=1e-6)


def test_errors_are_those_of_the_usual_way(gpu: Any) -> None:
    A = wl.Csr(stencil("float64"), executor=gpu)
    A @ gpu.from_host(np.ones(100))
    with pytest.raises(wl.errors.ShapeMismatch):
        A @ gpu.from_host(np.ones(99))
    with pytest.raises(wl.errors.ShapeMismatch):
        A.apply(gpu.from_host(np.ones(100)), out=gpu.from_host(np.ones(99)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kernel", ["auto", "sell", "sell-near", "sell-pattern"])
def test_products_follow_new_values_again_and_again(gpu: Any, dtype: str, kernel: str) -> None:
    S = stencil(dtype)
    A = wl.Csr(S, executor=gpu)
    A = A if kernel == "auto" else A.with_kernel(kernel)
    x = np.arange(1.0, 101.0).astype(dtype)
    place = gpu.from_host(x)
    for factor in (1.0, 2.0, -3.0):
        data = (factor * S.data).astype(dtype)
        A.update_values(gpu.from_host(data))
        np.testing.assert_allclose(gpu.to_host(A @ place), factor * (S @ x), rtol=1e-5)


def test_the_launch_of_new_values_is_kept(gpu: Any) -> None:
    S = stencil("float64")
    A = wl.Csr(S, executor=gpu).with_kernel("sell")
    x = gpu.from_host(np.ones(100))
    A @ x
    A.update_values(gpu.from_host(2 * S.data))
    state = A.plan.state
    assert isinstance(state, Packed) and isinstance(A.plan.prepared[1], Prepared)
    kept = state._refill
    A.update_values(gpu.from_host(3 * S.data))
    assert state._refill is kept
    np.testing.assert_allclose(gpu.to_host(A @ x), 3 * (S @ np.ones(100)))
