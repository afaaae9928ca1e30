"""Memory of SYCL devices shared with other libraries, by DLPack and dpnp's own protocol."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.dpcpp import dlpack

from ..needs import package
from .needs_dpcpp import needs_dpcpp

pytestmark = needs_dpcpp

GIVEN = np.arange(24.0).reshape(4, 6)
DTYPES = ("b1", "i4", "i8", "u1", "f2", "f4", "f8", "c8", "c16")


@pytest.fixture(scope="module")
def device() -> wl.Executor:
    return wl.executor("dpcpp:cpu")


class Tensor:
    """The attributes of PyTorch's tensors of Intel GPUs, around a wollemi array."""

    def __init__(self, array: Any, number: int = 0, **asked: Any) -> None:
        self.array, self.number, self.asked = array, number, asked
        self.ndim = array.ndim

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.ONEAPI, self.number

    def __dlpack__(self, **asked: Any) -> Any:
        return self.array.__dlpack__(**{**asked, **self.asked})


class OldTensor(Tensor):
    """The same from before version 1."""

    def __dlpack__(self) -> Any:
        return self.array.__dlpack__()


@pytest.mark.parametrize("kind", [Tensor, OldTensor])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tensor_is_adopted_without_a_copy(device: Any, kind: Any, dtype: str) -> None:
    array = device.from_host(GIVEN.astype(dtype))
    adopted = device.adopt(kind(array))
    assert (adopted.pointer, adopted.dtype) == (array.pointer, array.dtype)
    np.testing.assert_array_equal(adopted.asnumpy(), GIVEN.astype(dtype))


def test_bfloat16_is_shared(device: Any) -> None:
    bfloat16 = package("ml_dtypes").bfloat16
    adopted = device.adopt(Tensor(device.from_host(GIVEN.astype(bfloat16))))
    assert adopted.dtype == bfloat16
    np.testing.assert_array_equal(adopted.asnumpy(), GIVEN.astype(bfloat16))


@pytest.mark.parametrize(
    "part", [np.s_[::2, 1::3], np.s_[::-1], np.s_[2:2], np.s_[..., 0], np.s_[:, None]], ids=str
)
def test_views_are_shared_as_views(device: Any, part: Any) -> None:
    adopted = device.adopt(Tensor(device.from_host(GIVEN)[part]))
    np.testing.assert_array_equal(adopted.asnumpy(), GIVEN[part])


def test_an_array_without_dimensions_is_shared(device: Any) -> None:
    adopted = device.adopt(Tensor(device.from_host(np.array(5.0))))
    assert adopted.shape == ()
    assert adopted.item() == 5.0


def test_the_memory_lives_as_long_as_it_is_used_and_no_longer(device: Any) -> None:
    class Memory:
        pass

    array, memory = device.from_host(GIVEN), Memory()
    array.memory, alive = (array.memory, memory), weakref.ref(memory)
    adopted = device.adopt(Tensor(array))
    del array, memory
    gc.collect()
    assert alive() is not None
    np.testing.assert_array_equal(adopted.asnumpy(), GIVEN)
    del adopted
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_a_capsule_that_nobody_takes_releases_the_memory(device: Any, version: Any) -> None:
    class Memory:
        pass

    array, memory = device.from_host(GIVEN), Memory()
    array.memory, alive = (array.memory, memory), weakref.ref(memory)
    capsule = array.__dlpack__(max_version=version)
    del array, memory
    gc.collect()
    assert alive() is not None
    del capsule
    gc.collect()
    assert alive() is None


def test_a_copy_is_one_if_asked_for(device: Any) -> None:
    array = device.from_host(GIVEN)
    copied = device.adopt(Tensor(array, copy=True))
    assert copied.pointer != array.pointer
    np.testing.assert_array_equal(copied.asnumpy(), GIVEN)


def test_numpy_takes_a_copy_when_asked_for_the_host(device: Any) -> None:
    array = device.from_host(GIVEN)
    np.testing.assert_array_equal(np.from_dlpack(array, device="cpu"), GIVEN)
    with pytest.raises(RuntimeError, match="device"):
        np.from_dlpack(array)
    with pytest.raises(BufferError, match="without a copy"):
        np.from_dlpack(array, device="cpu", copy=False)


def test_another_device_is_refused(device: Any) -> None:
    with pytest.raises(BufferError, match="not on device"):
        device.from_host(GIVEN).__dlpack__(dl_device=(dlpack.ONEAPI, 7))


def test_a_dtype_without_a_name_is_refused(device: Any) -> None:
    with pytest.raises(BufferError, match="datetime64"):
        device.from_host(np.zeros(2, "M8[s]")).__dlpack__()


def test_a_tensor_of_another_device_is_not_adopted(device: Any) -> None:
    assert device.adopt(Tensor(device.from_host(GIVEN), number=7)) is None


def test_memory_that_the_device_does_not_reach_is_not_adopted(device: Any) -> None:
    array = device.from_host(GIVEN)
    stranger = type(array)(array.place, GIVEN, GIVEN.ctypes.data, GIVEN.shape, GIVEN.dtype)
    assert device.adopt(Tensor(stranger)) is None


def test_a_tensor_is_an_operand(device: Any) -> None:
    A = wl.Csr(np.array([[4.0, 1.0], [1.0, 3.0]])).to(device)
    y = A @ Tensor(device.from_host(np.array([1.0, 2.0])))
    assert device.owns(y)
    assert y.asnumpy().tolist() == [6.0, 7.0]


def test_dpnp_and_we_share_memory(device: Any) -> None:
    dpnp = package("dpnp", in_ci=False)
    theirs = dpnp.arange(24.0, device=device.place.device).reshape(4, 6)[:, ::2]
    ours = device.adopt(theirs)
    np.testing.assert_array_equal(ours.asnumpy(), GIVEN[:, ::2])
    device.copy_into(ours, -GIVEN[:, ::2])
    np.testing.assert_array_equal(dpnp.asnumpy(theirs), -GIVEN[:, ::2])
    back = dpnp.asarray(device.from_host(GIVEN))
    np.testing.assert_array_equal(dpnp.asnumpy(back), GIVEN)
    shared = dpnp.from_dlpack(device.from_host(GIVEN))
    np.testing.assert_array_equal(dpnp.asnumpy(shared), GIVEN)
