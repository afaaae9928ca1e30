"""Runs the experiments and writes the file of a device's constants."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import Any

from ..core import devices
from ..core.cache import require_private_root
from ..core.errors import InvalidArgument, WollemiError
from ..core.executor import Executor
from .experiments import EXPERIMENTS, Experiment

#: How far a constant may be from the one of the base: beyond, the measurement was disturbed.
FARTHEST = 100.0

#: Unknowns of the largest systems on processors, and on other devices.
ROWS_OF_PROCESSOR, ROWS_OF_DEVICE = 100_000, 1_000_000


@dataclass
class Outcome:
    """The end of one experiment.

    Attributes
    ----------
    experiment : str
        Its name.
    status : {"measured", "known", "left", "failed"}
        ``"known"``: an earlier call measured it. ``"left"``: the time was over; call again.
    seconds : float
        Spent.
    constants : dict
        The constants that were stored.
    dropped : dict
        Measured constants that are too far from the constants of the base.
    reason : str
        Why it failed.
    """

    experiment: str
    status: str
    seconds: float = 0.0
    constants: dict[str, float] = field(default_factory=dict)
    dropped: dict[str, float] = field(default_factory=dict)
    reason: str = ""


def file_of(executor: Executor) -> Path:
    """Return the file for the device of an executor.

    Raises
    ------
    InvalidArgument
        If nothing is selected by times on this executor.
    """
    kind, device = executor.device_key
    if not device:
        raise InvalidArgument(
            f"{executor.name} has no constants of its own to fit; expected omp, cuda or hip"
        )
    return devices.tuned_file(kind, device)


def forget(executor: Executor) -> bool:
    """Remove the file for the device of an executor; return whether there was one."""
    file = file_of(executor)
    there = file.is_file()
    file.unlink(missing_ok=True)
    devices.constants_of.cache_clear()
    return there


def tune(
    executor: Executor,
    *,
    seconds: float = 60.0,
    again: bool = False,
    rows: int | None = None,
    experiments: Sequence[Experiment] = EXPERIMENTS,
    began: Callable[[Experiment], None] = lambda experiment: None,
) -> Iterator[Outcome]:
    """Measure the constants of an executor's device and store them, experiment by experiment.

    The file is written after each experiment: a call that ends early is continued by the next one.
    Executors that are made afterwards use the file, in this process and in later ones.

    Parameters
    ----------
    executor : Executor
        The device. On processors it is used with its threads.
    seconds : float
        No experiment but the first one begins after this time: each call measures something.
    again : bool
        Whether to repeat experiments that are in the file.
    rows : int, optional
        Unknowns of the largest systems.
    experiments : sequence of Experiment
        The measurements.
    began : callable
        Is told of each experiment that begins.

    Yields
    ------
    Outcome
        Of each experiment that suits the executor.

    Raises
    ------
    InvalidArgument
        If nothing is selected by times on this executor.
    """
    file, start = file_of(executor), perf_counter()
    kind, device = executor.device_key
    content = _stored(file) or {
        "title": f"{device} (tuned)",
        "kind": kind,
        "base": devices.shipped(kind, device),
        "experiments": [],
        "constants": {},
    }
    base = devices.named(content["base"])
    if rows is None:
        rows = ROWS_OF_PROCESSOR if kind == "cpu" else ROWS_OF_DEVICE
    measured = 0
    for experiment in experiments:
        if not experiment.suits(executor) or experiment.section not in base.sections:
            continue
        if experiment.name in content["experiments"] and not again:
            yield Outcome(experiment.name, "known")
            continue
        if measured and perf_counter() - start > seconds:
            yield Outcome(experiment.name, "left")
            continue
        measured += 1
        began(experiment)
        outcome = _measure(experiment, executor, rows, base)
        if outcome.status == "measured":
            section = content["constants"].setdefault(experiment.section, {})
            record = f"tune-{date.today().isoformat()}"
            for name, value in outcome.constants.items():
                section[name] = {"value": value, "record": record}
            if experiment.name not in content["experiments"]:
                content["experiments"].append(experiment.name)
            _write(file, content)
        yield outcome


def _measure(
    experiment: Experiment, executor: Executor, rows: int, base: devices.DeviceConstants
) -> Outcome:
    begun = perf_counter()
    try:
        found = experiment.measure(executor, rows)
    except WollemiError as error:  # such as memory that is too small for the systems
        return Outcome(experiment.name, "failed", perf_counter() - begun, reason=str(error))
    made = Outcome(experiment.name, "measured", perf_counter() - begun)
    for name, value in found.items():
        usual = base.sections[experiment.section][name].value
        near = isfinite(value) and usual / FARTHEST <= value <= usual * FARTHEST
        (made.constants if near else made.dropped)[name] = float(f"{value:.4g}")
    return made


def _stored(file: Path) -> dict[str, Any] | None:
    """Return the content of a file that an earlier call wrote; None if it cannot be read."""
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        devices.read(file)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return content if "experiments" in content else None


def _write(file: Path, content: dict[str, Any]) -> None:
    """Replace the file as a whole, so that other processes never read a part of it."""
    require_private_root()
    file.parent.mkdir(mode=0o700, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}.part")
    part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    part.replace(file)
    devices.constants_of.cache_clear()
