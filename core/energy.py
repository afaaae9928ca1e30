"""Energy counters of devices, and the energy of a block of code."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import UnsupportedOperation

if TYPE_CHECKING:
    from .executor import Executor

#: The folder in which Linux provides the energy counters of processor packages.
POWERCAP = Path("/sys/class/powercap")


@dataclass(frozen=True)
class EnergyCounter:
    """A counter of the energy that a device has consumed.

    Attributes
    ----------
    source : str
        Its name: ``NVML``, ``RAPL``.
    joules : callable
        Returns the counter in joules.
    wraps_at : float
        Value in joules at which the counter restarts at 0; infinite if it does not.
    """

    source: str
    joules: Callable[[], float]
    wraps_at: float = float("inf")


@dataclass
class Energy:
    """The energy that a device consumes during a block of code.

    Attributes
    ----------
    executor, source : str
        The device and its counter.
    joules, seconds : float
        The energy and the duration of the block. The counter includes idle power and other programs
        on the device, and advances in steps of 20 to 100 ms: measure blocks of a second or more.
    """

    executor: str
    source: str
    joules: float = 0.0
    seconds: float = 0.0

    @property
    def watts(self) -> float:
        """The mean power."""
        return self.joules / self.seconds if self.seconds else 0.0

    def __str__(self) -> str:
        return (
            f"{self.joules:.4g} J in {self.seconds:.4g} s, {self.watts:.4g} W "
            f"({self.source} of {self.executor})"
        )


class EnergyMeasurement:
    """Reads the counter of an executor's device at both ends of a block.

    Parameters
    ----------
    executor : Executor
        The executor of the device.

    Raises
    ------
    UnsupportedOperation
        If the device has no counter that this process may read.
    """

    def __init__(self, executor: Executor) -> None:
        counter = executor.energy_counter()
        if counter is None:
            raise UnsupportedOperation(
                f"energy: {executor.name} has no energy counter that this process may read. NVIDIA "
                "GPUs since Volta have one (NVML); counters of processors need read access to "
                f"{POWERCAP}/intel-rapl:*/energy_uj"
            )
        self._executor, self._counter = executor, counter
        self.energy = Energy(executor.name, counter.source)
        executor.synchronize()
        self._began, self._first = time.perf_counter(), counter.joules()

    def end(self) -> None:
        """Wait for the device, then set :attr:`energy`."""
        self._executor.synchronize()
        used = self._counter.joules() - self._first
        self.energy.joules = used if used >= 0 else used + self._counter.wraps_at
        self.energy.seconds = time.perf_counter() - self._began


def package_counter(folder: Path = POWERCAP) -> EnergyCounter | None:
    """Return the counter of all processor packages, or None if Linux has no readable one."""
    packages = sorted(folder.glob("intel-rapl:?"))
    try:
        limits = [_microjoules(package / "max_energy_range_uj") for package in packages]
        for package in packages:
            _microjoules(package / "energy_uj")
    except OSError:
        return None
    if not packages:
        return None
    files = [package / "energy_uj" for package in packages]
    wraps = limits[0] / 1e6 if len(packages) == 1 else float("inf")
    return EnergyCounter("RAPL", lambda: sum(map(_microjoules, files)) / 1e6, wraps)


def _microjoules(file: Path) -> int:
    return int(file.read_text(encoding="ascii"))
