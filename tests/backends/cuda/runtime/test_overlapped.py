"""The driver's arguments for a launch that may begin before the one before it has ended."""

from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from wollemi.backends.cuda.runtime import overlapped
from wollemi.backends.gpu.function import Slots


class Driver:
    """Remembers a launch as ``cuLaunchKernelEx`` sees it."""

    def cuLaunchKernelEx(self, how: Any, function: Any, places: Any, extra: Any) -> int:
        """Look at the configuration, and at the arguments as a kernel would."""
        words = (ctypes.c_uint * 14).from_address(ctypes.addressof(how._obj))
        self.shape, self.shared, self.count = tuple(words[:6]), words[6], words[12]
        self.stream = ctypes.c_void_p.from_address(ctypes.addressof(how._obj) + 32).value
        attributes = ctypes.c_void_p.from_address(ctypes.addressof(how._obj) + 40).value
        assert attributes is not None
        self.attribute = tuple((ctypes.c_int * 3).from_address(attributes))
        self.function = function.value
        kinds = (ctypes.c_longlong, ctypes.c_float)
        self.seen = [kind.from_address(at).value for kind, at in zip(kinds, places, strict=False)]
        return 0


class Plain:
    """A function that records its launch arguments."""

    slots = Slots()
    ptr = 77

    def __init__(self) -> None:
        self.launches: list[Any] = []

    def __call__(self, *given: Any) -> None:
        self.launches.append(given)


@pytest.fixture(autouse=True)
def _cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=5))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))
    monkeypatch.setitem(sys.modules, "cupy.cuda", cuda)


def test_the_driver_is_told_that_blocks_may_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    driver, function = Driver(), Plain()
    monkeypatch.setattr(overlapped, "_driver", lambda: driver)
    overlapped.Overlapped(function)((3,), (128,), [1 << 40, np.float32(0.5)], 64)
    assert driver.shape == (3, 1, 1, 128, 1, 1)
    assert (driver.shared, driver.stream, driver.function) == (64, 5, 77)
    assert driver.count == 1
    assert driver.attribute == (overlapped.PROGRAMMATIC, 0, 1)
    assert driver.seen == [1 << 40, 0.5]
    assert function.launches == []


def test_an_older_driver_launches_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    function = Plain()
    monkeypatch.setattr(overlapped, "_driver", lambda: None)
    overlapped.Overlapped(function)((3,), (128,), [7], 64)
    assert function.launches == [((3,), (128,), [7], 64)]
