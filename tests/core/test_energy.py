"""The energy of a block."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.cuda.runtime.energy import counter_of
from wollemi.core.energy import EnergyCounter, package_counter
from wollemi.core.errors import UnsupportedOperation
from wollemi.core.executor import Executor

from ..backends.needs import cuda


def counts(*joules: float, wraps_at: float = float("inf")) -> EnergyCounter:
    """Return a counter that shows these values one after the other."""
    left = list(joules)
    return EnergyCounter("test", lambda: left.pop(0), wraps_at)


def test_the_energy_of_a_block_is_the_difference_of_the_counter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counter = counts(5.0, 8.0)
    monkeypatch.setattr(type(wl.executor("omp")), "energy_counter", lambda self: counter)
    A = wl.Csr(np.eye(3), executor="omp")
    with wl.profile(energy="omp") as seen:
        A @ np.ones(3)
        assert Executor._observer is None  # nothing is watched
    used = seen.energy
    assert used is not None and used.joules == 3.0 and used.seconds > 0
    assert used.watts == pytest.approx(3.0 / used.seconds)
    assert "3 J" in str(seen) and "test" in repr(seen) and "Energy" in seen._repr_html_()


def test_a_counter_that_wraps_between_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    counter = counts(90.0, 10.0, wraps_at=100.0)
    monkeypatch.setattr(type(wl.executor("omp")), "energy_counter", lambda self: counter)
    with wl.profile(energy="omp") as seen:
        pass
    assert seen.energy is not None and seen.energy.joules == 20.0


def test_a_device_without_a_counter_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(wl.executor("omp")), "energy_counter", lambda self: None)
    with pytest.raises(UnsupportedOperation, match="energy: omp"), wl.profile(energy="omp"):
        pass


def package(folder: Path, name: str, joules: float, limit: float = 100.0) -> None:
    (folder / name).mkdir()
    (folder / name / "energy_uj").write_text(f"{round(1e6 * joules)}\n")
    (folder / name / "max_energy_range_uj").write_text(f"{round(1e6 * limit)}\n")


def test_packages_of_processors_are_added_up(tmp_path: Path) -> None:
    assert package_counter(tmp_path) is None
    package(tmp_path, "intel-rapl:0", 2.0)
    one = package_counter(tmp_path)
    assert one is not None and (one.joules(), one.wraps_at) == (2.0, 100.0)
    package(tmp_path, "intel-rapl:1", 3.0)
    package(tmp_path, "intel-rapl:0:0", 7.0)  # a part of a package
    both = package_counter(tmp_path)
    assert both is not None and both.joules() == 5.0


def nvml(joules: float, failing: str = "") -> SimpleNamespace:
    """Return a substitute of NVML."""

    def find(place: ctypes.c_char_p, handle: object) -> int:
        return 2 if failing == "find" or place.value != b"0000:1B:00.0" else 0

    def read(handle: object, target: object) -> int:
        target._obj.value = round(1e3 * joules)  # type: ignore[attr-defined]
        return 3 if failing == "read" else 0

    return SimpleNamespace(
        nvmlDeviceGetHandleByPciBusId_v2=find, nvmlDeviceGetTotalEnergyConsumption=read
    )


def test_a_gpu_counts_by_nvml() -> None:
    counter = counter_of("0000:1B:00.0", nvml(12.5))
    assert counter is not None and counter.source == "NVML" and counter.joules() == 12.5


@pytest.mark.parametrize("failing", ["find", "read"])
def test_a_gpu_without_a_counter_has_none(failing: str) -> None:
    assert counter_of("0000:1B:00.0", nvml(1.0, failing)) is None


@pytest.mark.gpu
def test_a_gpu_uses_energy() -> None:
    on = cuda()
    A = wl.Csr(np.eye(1000), executor=on)
    x = on.from_host(np.ones(1000))
    with wl.profile(energy=on) as seen:
        for _ in range(20_000):
            A @ x
    assert seen.energy is not None and seen.energy.joules > 0
