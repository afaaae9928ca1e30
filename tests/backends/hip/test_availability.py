"""A machine without HIP: the message names the package to install."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import wollemi as wl
from wollemi.backends.hip import BACKEND, HipExecutor, availability
from wollemi.core import operations  # noqa: F401  fills the table
from wollemi.core.operation import OPERATIONS
from wollemi.core.registry import backend_notes, kernel_tables

READY: dict[str, Any] = {
    "has_cupy": True,
    "loads": "",
    "distributions": ["cupy-rocm-7-0"],
    "is_hip": True,
    "rocm": True,
}
# Operations that only NVIDIA GPUs have kernels for.
NVIDIAS_OWN: set[str] = set()
MISSING = "libamdhip64.so.7: cannot open shared object file"


def reason(**facts: Any) -> str | None:
    return availability.reason(**READY | facts)


def test_nothing_speaks_against_what_is_complete() -> None:
    assert reason() is None


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"has_cupy": False, "rocm": False}, ("neither ROCm nor CuPy", "ROCm 7", "wollemi[hip]")),
        ({"has_cupy": False}, ("CuPy for ROCm is not installed", "wollemi[hip]")),
        ({"distributions": ["cupy-cuda13x", "cupy-rocm-7-0"]}, ("break each other", "uninstall")),
        ({"loads": MISSING, "rocm": False}, ("ROCm was not found", MISSING, "ROCm 7")),
        ({"loads": "undefined symbol"}, ("does not load", "another ROCm")),
        ({"is_hip": False, "distributions": ["cupy-cuda13x"]}, ("built for CUDA", "uninstall")),
        ({"is_hip": False, "rocm": False}, ("built for CUDA", "ROCm 7", "wollemi[hip]")),
    ],
)
def test_each_obstacle_has_its_remedy(facts: dict[str, Any], says: tuple[str, ...]) -> None:
    why = reason(**facts)
    assert why is not None
    assert all(part in why for part in says)
    assert "\n" not in why


class RuntimeFails(RuntimeError):
    pass


def runtime(count: int | None) -> Any:
    def get() -> int:
        if count is None:
            raise RuntimeFails("hipErrorNoDevice: no ROCm-capable device is detected")
        return count

    return SimpleNamespace(getDeviceCount=get, CUDARuntimeError=RuntimeFails)


@pytest.mark.parametrize("count", [None, 0])
def test_rocm_without_a_device_says_that(count: int | None) -> None:
    with pytest.raises(wl.errors.ExecutorUnavailable, match="ROCm is here and shows no device"):
        availability.count_of(runtime(count))


def test_devices_are_counted() -> None:
    assert availability.count_of(runtime(2)) == 2


def test_a_device_that_is_not_there_is_told_from_those_that_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(availability, "count", lambda: 2)
    with pytest.raises(wl.errors.ExecutorUnavailable, match=r"no hip:2; .*hip:0 to hip:1"):
        HipExecutor(2)


def test_a_name_that_is_no_number_is_refused() -> None:
    with pytest.raises(wl.errors.ExecutorUnavailable, match='names no GPU; write "hip"'):
        wl.executor("hip:gpu")


def test_the_kernels_are_known_without_cupy_or_a_device() -> None:
    code = (
        "import sys; from wollemi.backends.hip import BACKEND; table = BACKEND.kernels(); "
        "assert table.backend == 'hip'; assert 'cupy' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_column_is_as_full_as_that_of_cuda() -> None:
    tables = kernel_tables()
    cuda, hip = tables["cuda"], tables["hip"]
    assert cuda is not None
    assert hip is not None
    missing = {o.name for o in OPERATIONS if cuda.find(o) and not hip.find(o)}
    assert missing == NVIDIAS_OWN


def test_what_never_ran_is_said() -> None:
    assert "never run on an AMD GPU" in BACKEND.note
    assert backend_notes()["hip"] == BACKEND.note
