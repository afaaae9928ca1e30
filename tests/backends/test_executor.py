"""The memory side of every executor."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.operation import Operation, parse_signature

from .awkward import INDEX_DTYPES, VALUE_DTYPES

DTYPES = (*VALUE_DTYPES, *INDEX_DTYPES, "uint8")


@pytest.mark.parametrize("shape", [(0,), (3,), (2, 3), (0, 4), (4, 0), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_come_back_as_they_went(
    executor: wl.Executor, dtype: str, shape: tuple[int, ...]
) -> None:
    given = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    native = executor.from_host(given)
    assert executor.owns(native)
    assert tuple(native.shape) == shape
    assert native.dtype == given.dtype
    np.testing.assert_array_equal(executor.to_host(native), given)


@pytest.mark.parametrize("dtype", DTYPES)
def test_allocated_arrays_are_contiguous_and_native(executor: wl.Executor, dtype: str) -> None:
    native = executor.allocate((3, 5), dtype)
    assert executor.owns(native)
    assert native.strides == (5 * native.dtype.itemsize, native.dtype.itemsize)


@pytest.mark.parametrize("given", [np.arange(12.0).reshape(3, 4).T, np.arange(12.0)[::3]], ids=str)
def test_strided_host_arrays_are_taken(executor: wl.Executor, given: np.ndarray) -> None:
    np.testing.assert_array_equal(executor.to_host(executor.from_host(given)), given)


def test_a_copy_shares_nothing(executor: wl.Executor) -> None:
    native = executor.from_host(np.zeros(3))
    copied = executor.copy(native)
    executor.copy_into(copied, np.ones(3))
    np.testing.assert_array_equal(executor.to_host(native), [0, 0, 0])
    np.testing.assert_array_equal(executor.to_host(copied), [1, 1, 1])


def test_a_copy_of_a_strided_block_is_contiguous(executor: wl.Executor) -> None:
    block = executor.from_host(np.arange(12.0).reshape(3, 4))[:, :2]
    copied = executor.copy(block)
    assert copied.strides == (16, 8)
    np.testing.assert_array_equal(executor.to_host(copied), [[0, 1], [4, 5], [8, 9]])


def test_copy_into_takes_native_and_host_arrays(executor: wl.Executor) -> None:
    target = executor.allocate((2, 2), np.float64)
    given = np.array([[1.0, 2.0], [3.0, 4.0]])
    executor.copy_into(target, given)
    np.testing.assert_array_equal(executor.to_host(target), given)
    executor.copy_into(target, executor.from_host(-given))
    np.testing.assert_array_equal(executor.to_host(target), -given)


def test_copy_into_a_strided_block_leaves_the_gap(executor: wl.Executor) -> None:
    whole = executor.from_host(np.zeros((2, 3)))
    executor.copy_into(whole[:, :2], np.ones((2, 2)))
    np.testing.assert_array_equal(executor.to_host(whole), [[1, 1, 0], [1, 1, 0]])


def test_pickling_keeps_the_place(executor: wl.Executor) -> None:
    assert pickle.loads(pickle.dumps(executor)) == executor


def test_the_name_makes_an_equal_executor(executor: wl.Executor) -> None:
    assert wl.executor(executor.name) == executor


def test_properties_name_the_device(executor: wl.Executor) -> None:
    assert executor.properties["name"]


def test_what_has_no_kernel_says_where_to_go(executor: wl.Executor) -> None:
    unknown = Operation("nobody.knows", parse_signature("x: in T[n]"), "", lambda extents: 0)
    with pytest.raises(wl.errors.UnsupportedOperation, match=f"no kernel on {executor.name}"):
        executor.run(unknown, executor.allocate((1,), np.float64))


def test_a_transfer_writes_and_reads_several_arrays(executor: wl.Executor) -> None:
    shapes = (((3,), np.float64), ((1,), np.int32), ((0,), np.float64))
    arrays = executor.transfer_type.allocate(executor, *shapes)
    transfer = executor.transfer(*arrays, written=arrays[:2])
    transfer.write(np.arange(3.0), np.array([7], np.int32))
    lasting = [np.array(array) for array in transfer.read()]
    assert [array.tolist() for array in lasting] == [[0.0, 1.0, 2.0], [7], []]
    transfer.host[0][:] = 5.0
    transfer.write()
    assert [np.array(array).tolist() for array in transfer.peek()] == [[5.0] * 3, [0], []]
    assert [np.array(array).tolist() for array in transfer.ask()()] == [[5.0] * 3, [0], []]


def test_the_names_before_transfers_work_and_warn(executor: wl.Executor) -> None:
    with pytest.warns(DeprecationWarning, match="Executor.allocate_together is deprecated"):
        (array,) = executor.allocate_together(((2,), np.float64))
    with pytest.warns(DeprecationWarning, match=r"use Executor.transfer\(written=arrays\)"):
        executor.overwrite_together((array, np.ones(2)))
    with pytest.warns(DeprecationWarning, match=r"use Executor.transfer\(\*arrays\).read\(\)"):
        assert executor.to_host_together(array)[0].tolist() == [1, 1]
    with pytest.warns(DeprecationWarning, match=r"use Executor.transfer\(array\).ask\(\)"):
        assert executor.to_host_later(array)().tolist() == [1, 1]
    with pytest.warns(DeprecationWarning, match="Executor.exchange is deprecated"):
        exchange = executor.exchange([array], [array])
    exchange.host[0][:] = 2
    with pytest.warns(DeprecationWarning, match=r"use Transfer.write\(\)"):
        executor.write(exchange)
    with pytest.warns(DeprecationWarning, match=r"use Transfer.peek\(\)"):
        assert executor.read(exchange)[0].tolist() == [2, 2]
