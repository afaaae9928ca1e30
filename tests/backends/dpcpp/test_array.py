"""The thin array over USM memory is an array as far as solvers and conversions need one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wollemi as wl

from .needs_dpcpp import needs_dpcpp

pytestmark = needs_dpcpp


@pytest.fixture(scope="module")
def device() -> wl.Executor:
    return wl.executor("dpcpp:cpu")


GIVEN = np.arange(24.0).reshape(4, 6)

VIEWS = {
    "a column": np.s_[:, 2:3],
    "one column": np.s_[:, 2],
    "rows": np.s_[1:3],
    "a row": np.s_[1],
    "the last row": np.s_[-1],
    "every other": np.s_[::2, ::3],
    "backwards": np.s_[::-1],
    "a new axis": np.s_[:, None],
    "an ellipsis": np.s_[..., 1],
    "nothing": np.s_[2:2],
    "an element": np.s_[3, 5],
    "a mask": GIVEN[:, 0] > 6,
    "numbers": ([0, 3], [1, 2]),
}


@pytest.mark.parametrize("key", VIEWS.values(), ids=VIEWS.keys())
def test_parts_are_those_of_numpy(device: Any, key: Any) -> None:
    part = device.from_host(GIVEN)[key]
    np.testing.assert_array_equal(part if np.ndim(part) == 0 else part.asnumpy(), GIVEN[key])


@pytest.mark.parametrize("key", VIEWS.values(), ids=VIEWS.keys())
def test_parts_can_be_written(device: Any, key: Any) -> None:
    array, expected = device.from_host(GIVEN), GIVEN.copy()
    array[key] = -1.0
    expected[key] = -1.0
    np.testing.assert_array_equal(array.asnumpy(), expected)


@pytest.mark.parametrize("key", VIEWS.values(), ids=VIEWS.keys())
def test_the_host_sees_the_elements(device: Any, key: Any) -> None:
    part = device.from_host(GIVEN)[key]
    if np.ndim(part):
        np.testing.assert_array_equal(device.seen_by_host(part), GIVEN[key])


def test_what_the_host_sees_of_a_cpu_is_no_copy_and_outlives_the_array(device: Any) -> None:
    array = device.from_host(GIVEN)
    seen = device.seen_by_host(array)
    with pytest.raises(ValueError, match="read-only"):
        seen[0] = 1.0
    array[0] = 7.0
    assert seen[0].tolist() == [7.0] * 6
    del array
    device.from_host(np.zeros_like(GIVEN))  # takes memory that no array has any more
    assert seen[0].tolist() == [7.0] * 6


def test_slices_are_views(device: Any) -> None:
    array = device.from_host(GIVEN)
    array[:, 1:2][2:] = 7.0
    assert array.asnumpy()[:, 1].tolist() == [1.0, 7.0, 7.0, 7.0]


def test_a_part_outside_is_refused(device: Any) -> None:
    with pytest.raises(IndexError):
        device.from_host(GIVEN)[4]


@pytest.mark.parametrize("shape", [(24,), (2, -1), (4, 6, 1), ((8, 3),)], ids=str)
def test_reshaping_is_that_of_numpy(device: Any, shape: Any) -> None:
    for given, array in (
        (GIVEN, device.from_host(GIVEN)),
        (GIVEN.T, device.from_host(GIVEN).T),
    ):
        np.testing.assert_array_equal(array.reshape(*shape).asnumpy(), given.reshape(*shape))


def test_reshaping_to_another_size_is_refused(device: Any) -> None:
    with pytest.raises(ValueError, match="does not take shape"):
        device.from_host(GIVEN).reshape(5, 5)


def test_facts_are_those_of_numpy(device: Any) -> None:
    array = device.from_host(GIVEN)[:, ::2]
    view = GIVEN[:, ::2]
    for fact in ("shape", "strides", "dtype", "size", "ndim", "nbytes", "itemsize"):
        assert getattr(array, fact) == getattr(view, fact), fact
    assert len(array) == 4
    assert not array.flags.c_contiguous


def test_numpy_functions_give_arrays_of_the_device(device: Any) -> None:
    xp, array = device.xp, device.from_host(GIVEN)
    for result, expected in (
        (array * 2 - 1, GIVEN * 2 - 1),
        (xp.concatenate([array, array]), np.concatenate([GIVEN, GIVEN])),
        (xp.arange(3), np.arange(3)),
        (array >= 5, GIVEN >= 5),
        (array.max(axis=1), GIVEN.max(axis=1)),
        ((array * 1j).conj(), (GIVEN * 1j).conj()),
        (array.astype(np.float32), GIVEN.astype(np.float32)),
    ):
        assert device.owns(result)
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result.asnumpy(), expected)


@pytest.fixture
def without_copies(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def copy(*_: Any) -> None:
        raise AssertionError("elements are copied")

    monkeypatch.setattr(device.place, "copy", copy)


@pytest.mark.parametrize("layout", [np.s_[:], np.s_[1:3, ::-2], np.s_[:0]])
@pytest.mark.parametrize("function", [np.iscomplexobj, np.isrealobj, np.ndim, np.shape, np.size])
def test_what_numpy_asks_of_the_layout_copies_nothing(
    device: Any, without_copies: None, function: Any, layout: Any
) -> None:
    array = device.allocate(GIVEN.shape, np.complex64)[layout]
    expected = function(GIVEN.astype(np.complex64)[layout])
    assert function(array) == expected
    assert function(**{"x" if "obj" in function.__name__ else "a": array}) == expected


@pytest.mark.parametrize("shape", [(6,), (6, 1), (6, 3)])
def test_a_product_copies_nothing(device: Any, request: Any, shape: Any) -> None:
    A = wl.Csr(GIVEN, executor=device)
    x, y = device.from_host(np.ones(shape)), device.zeros((4, *shape[1:]), np.float64)
    A.plan  # noqa: B018  looks at the structure, on the host
    request.getfixturevalue("without_copies")
    A.apply(x, out=y)
    A @ x
    device.synchronize()


def test_nothing_becomes_numpy_silently(device: Any) -> None:
    with pytest.raises(TypeError, match="asnumpy"):
        np.asarray(device.from_host(GIVEN))


def test_the_interface_shares_the_memory(device: Any) -> None:
    import dpctl.memory

    array = device.from_host(GIVEN)
    shared = dpctl.memory.as_usm_memory(array)
    assert shared._pointer == array.pointer
    assert shared.nbytes == array.nbytes


def test_what_says_what_dpnp_says_is_adopted_without_a_copy(device: Any) -> None:
    array = device.from_host(GIVEN)

    class Other:
        __sycl_usm_array_interface__ = array.__sycl_usm_array_interface__
        sycl_queue = array.place.queue

    adopted = device.adopt(Other())
    assert adopted.pointer == array.pointer
    np.testing.assert_array_equal(adopted.asnumpy(), GIVEN)


def test_what_says_nothing_is_not_adopted(device: Any) -> None:
    assert device.adopt(object()) is None


def test_too_much_memory_is_said_to_be(device: Any) -> None:
    with pytest.raises(wl.errors.OutOfDeviceMemory, match="has no room for"):
        device.allocate((1 << 60,), np.float64)


def test_a_matrix_is_made_of_arrays_of_the_device(device: Any) -> None:
    parts = (np.array([4.0, 3.0]), np.array([0, 1]), np.array([0, 1, 2]))
    A = wl.Csr(tuple(device.from_host(part) for part in parts), executor=device)
    y = A @ device.from_host(np.array([1.0, 2.0]))
    assert device.owns(y)
    assert y.asnumpy().tolist() == [4.0, 6.0]


def test_an_array_that_is_not_aligned_is_copied_and_no_output(device: wl.Executor) -> None:
    from wollemi.backends.dpcpp.array import UsmArray
    from wollemi.core.operands import OutputTarget, aligned

    class Records:
        """Another library's array: the second field of packed records of 9 bytes."""

        def __init__(self) -> None:
            self.memory = device.from_host(np.zeros(4 * 9, np.uint8))
            self.sycl_queue, self.shape, self.ndim = self.memory.place.queue, (4,), 1
            self.__sycl_usm_array_interface__ = {
                "data": (self.memory.pointer + 1, False), "shape": (4,), "typestr": "<f8",
                "strides": None, "syclobj": self.sycl_queue,
            }  # fmt: skip

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.memory.__dlpack_device__()

    records = Records()
    adopted: Any = device.adopt(records)
    adopted.write(GIVEN[0, :4])
    assert isinstance(adopted, UsmArray) and not device.owns(adopted)
    copied = aligned(device, adopted)
    assert device.owns(copied)
    np.testing.assert_array_equal(copied.asnumpy(), GIVEN[0, :4])
    D = np.diag([1.0, 2.0, 3.0, 4.0])
    A = wl.Csr(D, executor=device)
    np.testing.assert_array_equal((A @ records).asnumpy(), D @ GIVEN[0, :4])
    with pytest.raises(wl.errors.InvalidArgument, match="no multiples of their 8 bytes"):
        OutputTarget(device, records, (4,))
