"""The reasons why CUDA cannot be used, and its translated errors: each a line with a remedy."""

from contextlib import nullcontext

import pytest

from wollemi.backends.cuda import BACKEND
from wollemi.backends.cuda.runtime import availability
from wollemi.backends.gpu import errors
from wollemi.core.errors import DeviceError, ExecutorUnavailable, InvalidArgument, OutOfDeviceMemory

GOOD = {
    "has_cupy": True,
    "has_bindings": True,
    "distributions": ["cupy-cuda13x"],
    "is_hip": False,
    "built_for": 13020,
    "driver": 13000,
}


def test_nothing_speaks_against_what_fits():
    assert availability.reason(**GOOD) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"has_cupy": False}, ["CuPy is not installed", 'pip install "wollemi[cuda]"']),
        ({"has_cupy": False, "driver": 12080}, ["CuPy is not", 'pip install "wollemi[cuda12]"']),
        ({"has_cupy": False, "driver": None}, ["no NVIDIA driver", "install CuPy"]),
        ({"has_bindings": False}, ["cuda.bindings is not installed", "pip install"]),
        ({"driver": None}, ["no NVIDIA driver", "libcuda.so.1", "--gpus all"]),
        ({"driver": 12020}, ["knows CUDA 12.2", "12.4 or newer", "update the driver"]),
        ({"driver": 12080}, ["built for CUDA 13.2", "knows CUDA 12.8", "wollemi[cuda12]"]),
        ({"is_hip": True, "distributions": ["cupy-rocm-7-0"]}, ["built for ROCm", "uninstall"]),
        (
            {"distributions": ["cupy-cuda12x", "cupy-cuda13x"]},
            ["cupy-cuda12x and cupy-cuda13x", "break each other"],
        ),
    ],
)
def test_each_reason_names_the_remedy(change, words):
    reason = availability.reason(**{**GOOD, **change})
    assert reason is not None
    for word in words:
        assert word in reason


def test_a_device_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr(availability, "count", lambda: 2)
    with pytest.raises(ExecutorUnavailable, match="no cuda:2; this machine has cuda:0 to cuda:1"):
        availability.require(2)
    availability.require(1)


def test_a_device_is_a_number():
    with pytest.raises((ExecutorUnavailable, InvalidArgument), match='names no GPU; write "cuda"'):
        BACKEND.make("fast")


class OutOfMemoryError(Exception):
    """As CuPy calls it."""


class CUDARuntimeError(Exception):
    """As CuPy calls it."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def test_no_memory_says_how_much_and_where():
    with (
        pytest.raises(OutOfDeviceMemory, match=r"cuda:0: no memory left: 3 GiB for allocation"),
        errors.Here(nullcontext(), "cuda:0", "allocation", 3 << 30),
    ):
        raise OutOfMemoryError("3221225472 bytes")


def test_a_fault_of_a_kernel_says_that_the_process_is_lost():
    with (
        pytest.raises(DeviceError, match=r"csr.spmv failed.*not its own; the process must be"),
        errors.Here(nullcontext(), "cuda:0", "csr.spmv"),
    ):
        raise CUDARuntimeError(700, "cudaErrorIllegalAddress")


def test_a_device_that_is_current_is_not_entered():
    with (
        pytest.raises(DeviceError, match=r"csr.spmv failed.*not its own; the process must be"),
        errors.Here(None, "cuda:0", "csr.spmv"),
    ):
        raise CUDARuntimeError(700, "cudaErrorIllegalAddress")


def test_the_runtime_may_be_out_of_memory_too():
    made = errors.translate(CUDARuntimeError(2, "cudaErrorMemoryAllocation"), "cuda:0", "a graph")
    assert isinstance(made, OutOfDeviceMemory)


def test_errors_of_others_pass():
    with pytest.raises(KeyError), errors.Here(nullcontext(), "cuda:0", "anything"):
        raise KeyError("x")


@pytest.mark.parametrize(("nbytes", "text"), [(1, "1 bytes"), (1536, "1.5 KiB"), (2**40, "1 TiB")])
def test_sizes_are_for_people(nbytes, text):
    assert errors.human(nbytes) == text
