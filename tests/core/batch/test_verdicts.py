"""Verdicts of the systems of a batch: on the host, or on a device until they are read."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from wollemi.core.batch.tolerances import Tolerances
from wollemi.core.batch.verdicts import FIELDS, UNDECIDED, Verdicts
from wollemi.core.transfer import Transfer


class Device:
    """Counts the arrays that come to the host."""

    def __init__(self) -> None:
        self.copies = 0

    def to_host(self, array):
        self.copies += 1
        return np.array(array)

    def transfer(self, *arrays):
        return Transfer(self, arrays)

    def from_host(self, array):
        self.copies += 1
        return np.array(array)


def held(device, undecided=0):
    verdicts = Verdicts(3)
    arrays = {name: np.full(3, 1, dtype) for name, (dtype, _) in FIELDS.items()}
    if undecided:
        arrays["codes"][1] = UNDECIDED
    verdicts.hold(device, arrays, undecided)
    return verdicts


def test_each_array_of_a_device_comes_to_the_host_once_when_it_is_read():
    device = Device()
    verdicts = held(device)
    assert verdicts.undecided.size == 0 and device.copies == 0
    assert verdicts.codes.tolist() == [1, 1, 1] and device.copies == 1
    assert verdicts.codes is verdicts.codes and device.copies == 1
    verdicts.norms[0] = 5
    assert verdicts.norms.tolist() == [5, 1, 1] and device.copies == 2


def test_undecided_systems_are_found_by_their_codes():
    assert held(Device(), undecided=1).undecided.tolist() == [1]
    assert Verdicts(2).undecided.tolist() == [0, 1]


def test_verdicts_of_chosen_solves_take_the_place_of_others():
    verdicts = Verdicts(4)
    verdicts.take(np.array([0, 1, 3]), held(Device()))
    assert verdicts.undecided.tolist() == [2]
    assert np.isnan(verdicts.norms[2]) and verdicts.thresholds[3] == 1


def test_verdicts_are_stored_where_they_are():
    device = Device()
    verdicts = held(device, undecided=1)
    assert verdicts.undecided.tolist() == [1] and device.copies == 1
    found = Verdicts(1)
    found.codes[0], found.norms[0], found.thresholds[0] = 1, 0.5, 2
    verdicts.take(np.array([1]), found)
    assert "codes" not in verdicts._native and len(verdicts._native) == 3
    assert verdicts.codes.tolist() == [1, 1, 1]
    assert verdicts.norms.tolist() == [1, 0.5, 1] and verdicts.thresholds.tolist() == [1, 2, 1]


def test_pickled_verdicts_are_on_the_host():
    device = Device()
    copied = pickle.loads(pickle.dumps(held(device)))
    assert device.copies == len(FIELDS) and copied.iterations.tolist() == [1, 1, 1]


@pytest.mark.parametrize("equal", [True, False])
def test_tolerances_go_to_a_device_once(equal):
    device = Device()
    relative = np.broadcast_to(1e-8, (3,)) if equal else np.array([1e-8, 1e-6, 1e-4])
    tolerances = Tolerances(relative, np.broadcast_to(0.0, (3,)))
    native = tolerances.native(device)
    assert native is tolerances.native(device) and device.copies == 2
    assert native.apart == (0 if equal else 1)
    assert native.relative.size == (1 if equal else 3)
    assert tolerances.of(np.array([2, 2])).relative.tolist() == [relative[2], relative[2]]
