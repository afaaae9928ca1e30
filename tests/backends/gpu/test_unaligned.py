"""Arrays of a device that are not aligned: operands are copied, outputs refused."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.backends.gpu.adoption import copied_by_bytes

from ..lockstep.executor import NativeArray, native
from ..needs import cuda
from ..unaligned import LAYOUTS


class Bytes:
    """CuPy's way to make an array of memory, for NumPy's memory."""

    @staticmethod
    def ndarray(shape: Any, dtype: Any, memory: Any, strides: Any) -> Any:
        """Return the elements that begin at an address."""
        extent = 1 + sum(step * (n - 1) for step, n in zip(strides, shape, strict=True))
        begin = (ctypes.c_uint8 * extent).from_address(memory.ptr)
        return np.ndarray(shape, dtype, begin, 0, strides)

    array = staticmethod(np.array)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128", "int64"])
def test_elements_are_copied_as_bytes(layout: Any, dtype: str) -> None:
    array = np.arange(12).reshape(4, 3).astype(dtype)
    given: NativeArray = native(layout(array))
    executor: Any = type("Executor", (), {"xp": Bytes})
    made = copied_by_bytes(executor, given)
    assert made.flags.aligned and made.flags.c_contiguous
    np.testing.assert_array_equal(made, array)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_on_a_device(dtype: str) -> None:
    on: Any = cuda()
    cupy = on.xp
    S = sp.csr_array((np.eye(40) * 4 + np.eye(40, k=3)).astype(dtype))
    A, x = wl.Csr(S, executor=on), np.arange(1, 41).astype(dtype)

    def unaligned(array: Any) -> Any:
        memory = cupy.asarray(np.frombuffer(b"\0" + array.tobytes(), np.uint8).copy())
        pointer = memory.data + 1
        return cupy.ndarray(array.shape, array.dtype, pointer)

    for _ in range(3):  # the first product makes the plan, later ones go straight to the launch
        np.testing.assert_allclose(cupy.asnumpy(A @ unaligned(x)), S @ x, rtol=1e-5)
    block = np.stack([x, 2 * x], axis=1)
    np.testing.assert_allclose(cupy.asnumpy(A @ unaligned(block)), S @ block, rtol=1e-5)
    out = unaligned(x)
    with pytest.raises(wl.errors.InvalidArgument, match="pass an aligned array"):
        A.apply(cupy.asarray(x), out=out)
    arrays = (unaligned(S.data), unaligned(S.indices), unaligned(S.indptr))
    made = wl.Csr(arrays, shape=S.shape, executor=on)
    np.testing.assert_array_equal(cupy.asnumpy(made.toarray()), S.toarray())
    result = wl.solvers.Gmres(A, rtol=1e-4).solve(unaligned(x), unaligned(x))
    assert np.all(result.converged)
