"""Run the experiments and write the file of a device's constants."""

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

#: Reject measured constants that differ from the base's constant by more than this factor: the
#: measurement was disturbed.
FARTHEST = 100.0

#: Unknowns of the largest systems, on processors and on other devices.
ROWS_OF_PROCESSOR, ROWS_OF_DEVICE = 100_000, 1_000_000


@dataclass
class Outcome:
    """The result of one experiment.

    Attributes
    ----------
    experiment : str
        The name of the experiment.
    status : {"measured", "known", "left", "failed"}
        ``"known"``: an earlier call measured it. ``"left"``: the time limit was reached; call
        again.
    seconds : float
        Time spent.
    constants : dict
        The constants that were stored.
    dropped : dict
        Measured constants that differ too much from the constants of the base.
    reason : str
        The reason of a failure.
    """

    experiment: str
    status: str
    seconds: float = 0.0
    constants: dict[str, float] = field(default_factory=dict)
    dropped: dict[str, float] = field(default_factory=dict)
    reason: str = ""


def file_of(executor: Executor) -> Path:
    """Return the file of constants for the device of an executor.

    Raises
    ------
    InvalidArgument
        If no selection on this executor uses times.
    """
    kind, device = executor.device_key
    if not device:
        raise InvalidArgument(
            f"{executor.name} has no constants of its own to fit; expected omp, cuda or hip"
        )
    return devices.tuned_file(kind, device)


def forget(executor: Executor) -> bool:
    """Remove the file for the device of an executor; return whether it existed."""
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
    """Measure the constants of an executor's device, and store them after each experiment.

    If a call ends early, the next call continues it. Executors that are created afterwards use the
    file, in this process and in later ones.

    Parameters
    ----------
    executor : Executor
        The executor of the device. A processor is measured with the executor's number of threads.
    seconds : float
        After this time, no further experiment begins; the first one always runs, so each call
        measures something.
    again : bool
        Whether to repeat experiments with results in the file.
    rows : int, optional
        Unknowns of the largest systems.
    experiments : sequence of Experiment
        The measurements.
    began : callable
        Called with each experiment before it begins.

    Yields
    ------
    Outcome
        The result of each experiment that suits the executor.

    Raises
    ------
    InvalidArgument
        If no selection on this executor uses times.
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
    except WollemiError as error:  # such as too little memory for the systems
        return Outcome(experiment.name, "failed", perf_counter() - begun, reason=str(error))
    result = Outcome(experiment.name, "measured", perf_counter() - begun)
    for name, value in found.items():
        usual = base.sections[experiment.section][name].value
        near = isfinite(value) and usual / FARTHEST <= value <= usual * FARTHEST
        (result.constants if near else result.dropped)[name] = float(f"{value:.4g}")
    return result


def _stored(file: Path) -> dict[str, Any] | None:
    """Return the content of an earlier call's file, or None if it cannot be read."""
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        devices.read(file)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return content if "experiments" in content else None


def _write(file: Path, content: dict[str, Any]) -> None:
    """Replace the file atomically, so that other processes never read a part of it."""
    require_private_root()
    file.parent.mkdir(mode=0o700, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}.part")
    part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    part.replace(file)
    devices.constants_of.cache_clear()
