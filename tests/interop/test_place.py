"""A matrix made of a device's arrays lives on that device, unless another one is asked for."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import wollemi as wl
import wollemi.interop.torch as wollemi_torch
from wollemi.core import registry
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
        pytest.skip(f"{reason}; make test-gpu runs this where there is a GPU")


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


@pytest.fixture
def default_not_installed(monkeypatch):
    """Let the default executor be one that cannot be had."""
    monkeypatch.setattr(registry._Default, "current", "omp")
    absent = EntryPoint("omp", "not_installed_anywhere:BACKEND", registry.ENTRY_POINT_GROUP)
    monkeypatch.setitem(registry._entry_points(), "omp", absent)
    registry._load.cache_clear()
    yield
    registry._load.cache_clear()


@pytest.mark.usefixtures("default_not_installed")
@pytest.mark.parametrize("format", MAKERS)
def test_arrays_of_a_device_need_no_default_executor(device, format):
    arrays = (device.from_host(a) for a in (DATA, INDICES, INDPTR))
    assert MAKERS[format](*arrays).executor.name == device.name


@pytest.mark.usefixtures("default_not_installed")
@pytest.mark.parametrize(
    "make",
    [
        lambda **to: wl.Csr((DATA, INDICES, INDPTR), **to),
        lambda **to: wl.Csr(sp.csr_array(np.eye(2)), **to),
        lambda **to: wl.Csr(np.eye(2), **to),
        lambda **to: wl.Csc((DATA, INDICES, INDPTR), **to),
        lambda **to: wl.Coo((DATA, (INDICES, INDICES)), **to),
        lambda **to: wl.Ell(sp.csr_array(np.eye(2)), **to),
        lambda **to: wl.Sellp(sp.csr_array(np.eye(2)), **to),
        lambda **to: wl.Hybrid(sp.csr_array(np.eye(2)), **to),
        lambda **to: wl.Bsr((DATA.reshape(2, 1, 1), INDICES, INDPTR), **to),
        lambda **to: wl.Bsr(sp.csr_array(np.eye(2)), **to),
        lambda **to: wl.Dense(np.eye(2), **to),
        lambda **to: wl.Diagonal(DATA, **to),
        lambda **to: wl.Identity(2, **to),
        lambda **to: wl.Permutation(INDICES, **to),
    ],
)
def test_arrays_of_the_host_need_no_default_executor_where_one_is_given(make):
    A = make(executor="reference")
    assert (A @ np.ones(2)).shape == (2,)


@pytest.mark.usefixtures("default_not_installed")
def test_arrays_of_the_host_need_the_default_executor_where_none_is_given():
    with pytest.raises(wl.errors.ExecutorUnavailable, match="omp"):
        wl.Csr((DATA, INDICES, INDPTR))


@pytest.mark.parametrize("format", MAKERS)
def test_tensors_of_the_host_go_to_the_default_executor(format):
    arrays = (torch.as_tensor(a) for a in (DATA, INDICES, INDPTR))
    with wl.default_executor("reference"):
        assert MAKERS[format](*arrays).executor.name == "reference"


@pytest.mark.gpu
@pytest.mark.parametrize("format", MAKERS)
def test_a_matrix_of_tensors_lives_where_they_are(format):
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no CUDA device; make test-gpu runs this where it has one")
    arrays = (torch.as_tensor(a, device="cuda") for a in (DATA, INDICES, INDPTR))
    assert MAKERS[format](*arrays).executor.name == "cuda:0"


def test_a_tensor_that_is_conjugated_lazily_is_read_as_what_it_stands_for():
    values = torch.tensor([1 + 2j, 3 - 1j]).conj()
    A = wl.Csr((values, torch.as_tensor(INDICES), torch.as_tensor(INDPTR)), executor="reference")
    np.testing.assert_array_equal(A.data, [1 - 2j, 3 + 1j])


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


def test_a_build_of_torch_without_the_device_is_refused_by_name():
    try:
        executor = wl.executor("dpcpp:cpu")
    except wl.errors.ExecutorUnavailable as reason:
        pytest.skip(f"{reason}; pip install 'wollemi[dpcpp]' runs this")
    if torch.xpu._is_compiled():
        pytest.skip("this build of PyTorch has tensors of SYCL devices")
    from wollemi.interop.torch import spmm

    A = wl.Csr((DATA, INDICES, INDPTR), executor=executor)
    with pytest.raises(wl.errors.ExecutorMismatch, match=r"A\.to\('omp'\)"):
        spmm(A, torch.ones(2, 2, dtype=torch.float64))


def test_a_matrix_without_a_home_meets_tensors_of_the_cpu(device):
    with wl.default_executor(device):
        A = wl.Csr(np.array([[1.0, 2.0], [0.0, 3.0]]))
    x = torch.ones(2, 1, dtype=torch.float64, requires_grad=True)
    y = wollemi_torch.spmm(A, x)
    y.sum().backward()
    assert y.flatten().tolist() == [3.0, 3.0] and x.grad.flatten().tolist() == [1.0, 5.0]
    A.update_values([2.0, 4.0, 6.0])
    assert wollemi_torch.spmm(A, x).flatten().tolist() == [6.0, 6.0]
    at_home = wl.Csr(np.eye(2), executor=device)
    with pytest.raises(wl.errors.ExecutorMismatch):
        wollemi_torch.spmm(at_home, x)
