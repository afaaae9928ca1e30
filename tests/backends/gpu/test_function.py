"""The driver's arguments of a launch: the offset of each argument, and its width."""

from __future__ import annotations

import ctypes
import struct
from types import SimpleNamespace

import numpy as np
import pytest

from wollemi.backends.gpu import function as module

from ..needs import package

package("cupy")


class Driver:
    """Remembers a launch as a kernel of these C types would see it."""

    def __init__(self, *types):
        self.types = types

    def __call__(self, ptr, x, y, z, bx, by, bz, shared, stream, arguments, extra=None):
        self.shape = (ptr, (x, y, z), (bx, by, bz), shared, stream, extra)
        places = (ctypes.c_void_p * len(self.types)).from_address(arguments)
        pairs = zip(self.types, places, strict=True)
        self.seen = [kind.from_address(place).value for kind, place in pairs]


@pytest.fixture
def launched(monkeypatch):
    """Return a function, its launcher, and the arguments of CuPy's own function."""
    own = []
    function = module.Function(SimpleNamespace(ptr=77))
    monkeypatch.setattr(function, "_loaded", lambda *given: own.append(given))
    monkeypatch.setattr(function, "_stream", lambda: SimpleNamespace(ptr=5))

    def launch(types, *arguments, **options):
        driver = Driver(*types)
        together = options.get("cooperative", False)
        monkeypatch.setattr(function, "_launch_together" if together else "_launch", driver)
        function((3,), (128,), arguments, **options)
        return driver

    return launch, own


def test_every_argument_is_where_the_driver_is_told(launched):
    launch, own = launched
    types = (ctypes.c_longlong, ctypes.c_int, ctypes.c_double, ctypes.c_float, ctypes.c_longlong)
    driver = launch(types, 1 << 40, np.int32(-7), np.float64(0.1), np.float32(0.5), -1, shared=64)
    assert driver.seen == [1 << 40, -7, 0.1, 0.5, -1]
    assert driver.shape == (77, (3, 1, 1), (128, 1, 1), 64, 5, 0)
    assert own == []


def test_launches_may_have_more_arguments_than_the_ones_before(launched):
    launch, _ = launched
    assert launch([ctypes.c_longlong] * 2, 1, 2).seen == [1, 2]
    assert launch([ctypes.c_longlong] * 300, *range(300)).seen == list(range(300))
    assert launch([ctypes.c_longlong], 9).seen == [9]


def test_single_precision_is_rounded_as_numpy_rounds(launched):
    launch, _ = launched
    (seen,) = launch([ctypes.c_float], np.float32(0.1)).seen
    assert np.float32(seen) == np.float32(0.1)


def test_a_stream_that_is_given_is_taken(launched):
    launch, _ = launched
    assert launch([ctypes.c_longlong], 1, stream=SimpleNamespace(ptr=6)).shape[4] == 6


def test_what_only_cupy_knows_is_left_to_it(launched):
    launch, own = launched
    driver = launch([], np.uint8(3))
    assert not hasattr(driver, "seen")
    assert own == [((3,), (128,), (np.uint8(3),), 0, None, False)]


def test_a_cooperative_launch_goes_to_the_driver_too(launched):
    launch, own = launched
    driver = launch([ctypes.c_longlong, ctypes.c_uint], 1, np.uint32(2**32 - 1), cooperative=True)
    assert driver.seen == [1, 2**32 - 1] and not own
    assert driver.shape == (77, (3, 1, 1), (128, 1, 1), 0, 5, None)


def test_a_cooperative_launch_with_another_argument_is_left_to_cupy(launched):
    launch, own = launched
    launch([], np.uint8(3), cooperative=True)
    assert own == [((3,), (128,), (np.uint8(3),), 0, None, True)]


def test_a_number_that_fits_no_slot_is_refused(launched):
    launch, _ = launched
    with pytest.raises(struct.error):
        launch([ctypes.c_longlong], 1 << 64)
