"""``A @ x`` of small matrices: one native call where it can be, and the same answer where not."""

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.profiler import profile


@pytest.fixture
def S():
    return sp.random(30, 20, 0.3, "csr", random_state=np.random.default_rng(0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_vectors_of_every_kind_are_multiplied_as_scipy_does(S, executor, dtype):
    A = wl.Csr(S.astype(dtype), executor=executor)
    _ = A.plan
    x = np.arange(20, dtype=dtype)
    unaligned = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(dtype)
    kinds = [x, x[::-1], unaligned, x.astype(x.dtype.newbyteorder()), x.real.astype(int)]
    for given in [*kinds, x.astype(np.complex128), np.repeat(x, 2)[::2], x[:, None]]:
        result = A @ given
        # integers are computed with as float64
        computed = np.float64 if given.dtype == int else given.dtype
        assert result.dtype == np.result_type(dtype, computed)
        assert result.shape == (S @ given).shape
        np.testing.assert_allclose(result, S.astype(dtype) @ given, rtol=1e-5)
        np.testing.assert_array_equal(A.apply(given), result)


def test_a_new_vector_is_made_each_time(S):
    A, x = wl.Csr(S, executor="omp"), np.ones(20)
    first, second = A @ x, A @ x
    assert first is not second
    assert not np.shares_memory(first, second)


def test_new_values_and_another_kernel_are_used(S):
    A, x = wl.Csr(S, executor="omp"), np.ones(20)
    before = A @ x
    A.update_values(2 * A.data)
    np.testing.assert_array_equal(A @ x, 2 * before)
    np.testing.assert_allclose(A.with_kernel("sell") @ x, 2 * before)


def test_a_vector_that_does_not_fit_is_refused(S):
    A = wl.Csr(S, executor="omp")
    _ = A.plan
    with pytest.raises(wl.errors.ShapeMismatch):
        A @ np.ones(21)


def test_the_profiler_sees_the_product(S):
    A = wl.Csr(S, executor="omp")
    _ = A.plan
    with profile() as seen:
        A @ np.ones(20)
    assert "csr.spmv" in str(seen)


def test_no_result_of_16_bits_is_computed(S):
    A = wl.Csr(S, executor="omp").stored("float16")
    _ = A.plan
    assert (A @ np.ones(20)).dtype == np.float64


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_a_given_vector_takes_the_product(S, executor, dtype):
    A = wl.Csr(S.astype(dtype), executor=executor)
    _ = A.plan
    x = np.arange(20, dtype=dtype)
    expected = A @ x
    wide, spread = np.empty(60, dtype), np.full(30, np.nan, dtype)
    for out in (spread, wide[::2], wide[5:35]):
        assert A.apply(x, out=out) is out
        np.testing.assert_array_equal(out, expected)
    out = np.empty(30, np.complex128)
    assert A.apply(x, out=out) is out
    np.testing.assert_allclose(out, expected, rtol=1e-6)
    with pytest.raises(wl.errors.ShapeMismatch):
        A.apply(x, out=np.empty(29, dtype))
    out = np.zeros(30, dtype=dtype)
    out.flags.writeable = False
    with pytest.raises(wl.errors.InvalidArgument, match="read-only"):
        A.apply(x, out=out)
    assert not out.any()


@pytest.mark.parametrize("begin", [0, 5, 19, 20])
def test_a_given_vector_may_be_part_of_the_operand(S, executor, begin):
    A = wl.Csr(S, executor=executor)
    _ = A.plan
    memory = np.arange(50.0)
    expected = A @ memory[:20].copy()
    np.testing.assert_array_equal(A.apply(memory[:20], out=memory[begin : begin + 30]), expected)
