"""A matrix made of a device's arrays lives on that device, unless another one is asked for."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import wollemi as wl
from wollemi.core.operands import home

DATA, INDICES, INDPTR = np.array([4.0, 1.0]), np.array([0, 1]), np.array([0, 1, 2])

MAKERS = {
    "Csr": lambda a, i, p: wl.Csr((a, i, p)),
    "Csc": lambda a, i, p: wl.Csc((a, i, p), shape=(2, 2)),
    "Coo": lambda a, i, p: wl.Coo((a, (i, i)), shape=(2, 2)),
    "Bsr": lambda a, i, p: wl.Bsr((a.reshape(2, 1, 1), i, p), shape=(2, 2)),
    "Dense": lambda a, i, p: wl.Dense(a.reshape(1, 2)),
    "Diagonal": lambda a, i, p: wl.Diagonal(a),
    "Permutation": lambda a, i, p: wl.Permutation(i),
}


@pytest.fixture(params=["dpcpp:cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def device(request):
    """Return an executor with arrays of its own."""
    try:
        return wl.executor(request.param)
    except wl.errors.ExecutorUnavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("format", MAKERS)
def test_a_matrix_lives_where_its_arrays_are(device, format):
    arrays = (device.from_host(a) for a in (DATA, INDICES, INDPTR))
    assert MAKERS[format](*arrays).executor.name == device.name


def test_an_executor_that_is_asked_for_wins(device):
    arrays = tuple(device.from_host(a) for a in (DATA, INDICES, INDPTR))
    assert wl.Csr(arrays, executor="reference").executor.name == "reference"


def test_the_default_executor_keeps_its_own_arrays(device):
    with wl.default_executor(device):
        assert wl.Diagonal(device.from_host(DATA)).executor is device


def test_arrays_of_the_host_go_to_the_default_executor():
    with wl.default_executor("reference"):
        assert wl.Csr((DATA, INDICES, INDPTR)).executor.name == "reference"
        assert wl.Diagonal(torch.ones(3)).executor.name == "reference"
        assert wl.Diagonal([1.0, 2.0]).executor.name == "reference"


class Elsewhere:
    """An array of a device, as DLPack numbers it."""

    def __init__(self, kind, number):
        self._device = kind, number

    def __dlpack_device__(self):
        return self._device


@pytest.mark.parametrize(
    ("kind", "name"),
    [(1, ""), (3, ""), (2, "cuda:1"), (13, "cuda:1"), (10, "hip:1"), (14, "dpcpp:1"), (8, "")],
)
def test_dlpack_says_whose_memory_it_is(kind, name):
    assert home(Elsewhere(kind, 1)) == name
