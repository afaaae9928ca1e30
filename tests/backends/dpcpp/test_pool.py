"""Memory that is kept for later arrays."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.dpcpp.pool import LEAST_BYTES, UsmPool, size_class
from wollemi.core.errors import OutOfDeviceMemory

from .needs_dpcpp import needs_dpcpp


class Device:
    """Makes blocks of numbered addresses, until the memory is full."""

    def __init__(self, room: int = 1 << 60) -> None:
        self.room, self.made = room, 0
        self.freed: list[int] = []

    def make(self, nbytes: int) -> Any:
        if nbytes > self.room:
            raise OutOfDeviceMemory("no room")
        self.room -= nbytes
        self.made += 1
        return Memory(self, self.made, nbytes)


class Memory(SimpleNamespace):
    def __init__(self, on: Device, address: int, nbytes: int) -> None:
        super().__init__(on=on, _pointer=address, nbytes=nbytes)

    def __del__(self) -> None:
        self.on.room += self.nbytes
        self.on.freed.append(self._pointer)


@pytest.mark.parametrize(
    "nbytes", [0, 1, 255, 256, 257, 1000, 4096, 4097, 10**6, 3 << 20, 2**40 + 1]
)
def test_a_block_is_an_eighth_larger_at_most(nbytes: int) -> None:
    size = size_class(nbytes)
    assert nbytes <= size <= max(LEAST_BYTES, nbytes + nbytes / 8 + 1)
    assert size_class(size) == size


def test_a_block_that_no_object_refers_to_is_used_again() -> None:
    on = Device()
    pool = UsmPool(on.make, 1 << 20)
    first = pool.allocate(1000)
    address = first.address
    other = pool.allocate(1000)
    assert other.address != address
    del first
    assert pool.kept == 1024
    again = pool.allocate(1010)
    assert again.address == address and pool.kept == 0 and on.made == 2


def test_memory_that_is_exported_is_freed() -> None:
    on = Device()
    pool = UsmPool(on.make, 1 << 20)
    block = pool.allocate(1000)
    block.export()
    del block
    assert pool.kept == 0 and on.freed == [1]


def test_no_more_is_kept_than_allowed() -> None:
    on = Device()
    pool = UsmPool(on.make, 4096)
    blocks = [pool.allocate(size) for size in (1024, 2048, 8192)]
    del blocks[2]
    assert on.freed == [3]  # larger than all that may be kept
    blocks.clear()
    assert pool.kept == 3072
    block = pool.allocate(3000)  # another size class: both would be too much
    del block
    assert pool.kept == 3072 and sorted(on.freed) == [1, 2, 3]


def test_what_is_kept_makes_room() -> None:
    on = Device(room=10_000)
    pool = UsmPool(on.make, 1 << 20)
    for size in (2048, 4096):
        pool.allocate(size)
    assert pool.kept == 6144
    assert pool.allocate(8192).address == 3
    with pytest.raises(OutOfDeviceMemory):
        pool.allocate(1 << 20)


@pytest.fixture
def on() -> Iterator[wl.Executor]:
    executor = wl.executor("dpcpp:cpu")
    gc.collect()
    yield executor
    executor.release_idle_memory()


@needs_dpcpp
def test_an_array_has_the_memory_of_one_before(on: Any) -> None:
    array = on.from_host(np.arange(5000.0))
    address = array.pointer
    del array
    assert on.allocate((5000,), np.float64).pointer == address


@needs_dpcpp
def test_exported_memory_is_not_used_again(on: Any) -> None:
    array = on.from_host(np.arange(5000.0))
    kept = on.place._pool.kept
    assert array.__sycl_usm_array_interface__["data"][0] == array.pointer
    del array
    assert on.place._pool.kept == kept


@needs_dpcpp
def test_idle_memory_is_released(on: Any) -> None:
    on.from_host(np.arange(5000.0))
    assert on.place._pool.kept > 0
    on.release_idle_memory()
    assert on.place._pool.kept == 0
