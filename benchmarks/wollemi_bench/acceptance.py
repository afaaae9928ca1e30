"""Goals on one device, one line each: ``python -m wollemi_bench.acceptance PART --executor cuda``.

A line says whether a goal holds, its part and name, the measured value, the goal, quartiles and the
device. Lines are printed as they are found, so that a run that is cut keeps the finished ones.
``--scale`` divides the sizes, for a try on a machine without a GPU: the goals are for scale 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

import wollemi as wl
from wollemi.core.errors import MissingPackage, UnsupportedOperation
from wollemi.core.executor import Executor

from .page.numbers import Spread
from .timing import Contender, interleave, pace_of

#: The parts, and the modules with a function ``goals(on, scale)`` that yields their lines.
PARTS = {
    "attention": "acceptance_attention",
    "batches": "acceptance_batches",
    "cold": "acceptance_cold",
    "derivatives": "acceptance_derivatives",
    "energy": "acceptance_energy",
    "fixed": "acceptance_fixed",
    "jax": "acceptance_jax",
    "kernels": "acceptance_kernels",
    "structure": "acceptance_structure",
}

#: Samples of a time, and the least seconds of each.
SAMPLES, LEAST = 9, 2e-3


@dataclass(frozen=True)
class Goal:
    """A measured value and its goal.

    Attributes
    ----------
    name : str
        Names the measurement.
    value, low, high : float
        The median and the quartiles, in the unit.
    unit : str
        ``"us"``, ``"ms"``, ``"s"``, ``"x"`` (a ratio) and so on.
    most, least : float or None
        The goal; without one the line is for information.
    """

    name: str
    value: float
    low: float
    high: float
    unit: str
    most: float | None = None
    least: float | None = None

    @property
    def word(self) -> str:
        """``holds``, ``missed`` or ``value``."""
        if self.most is None and self.least is None:
            return "value"
        over = self.most is not None and not self.value <= self.most
        under = self.least is not None and not self.value >= self.least
        return "missed" if over or under else "holds"

    def line(self, part: str, device: str) -> str:
        """Return the line.

        Examples
        --------
        >>> from wollemi_bench.acceptance import Goal
        >>> Goal("A @ x", 17.7, 17.2, 18.2, "us", most=15.0).line("fixed", "NVIDIA H100")
        'missed | fixed | A @ x | 17.7 us | at most 15 us | 17.2 to 18.2 | NVIDIA H100'
        """
        goal = "no goal"
        if self.most is not None:
            goal = f"at most {self.most:g} {self.unit}"
        elif self.least is not None:
            goal = f"at least {self.least:g} {self.unit}"
        spread = f"{self.low:.3g} to {self.high:.3g}"
        value = f"{self.value:.3g} {self.unit}"
        return f"{self.word} | {part} | {self.name} | {value} | {goal} | {spread} | {device}"


def time_of(
    call: Callable[[], Any], on: Executor, wait: Callable[[], None] | None = None
) -> Spread:
    """Return the time of a call, after one call for one-time work.

    A sample is some calls, then one wait: for the device, or as ``wait`` does.
    """
    wait = on.synchronize if wait is None else wait
    call()
    wait()
    pace = pace_of("wall", on.xp is not np)
    contender = Contender("", call, wait, pace=pace)
    found = interleave([contender], batches=SAMPLES, batch_seconds=LEAST)[""]
    low, high = found.quartiles
    return Spread(low, found.median, high)


def seconds(
    name: str, found: Spread, unit: str, *, most: float | None = None, least: float | None = None
) -> Goal:
    """Return a goal for a time, in ``"us"``, ``"ms"`` or ``"s"``."""
    factor = {"us": 1e6, "ms": 1e3, "s": 1.0}[unit]
    low, median, high = (factor * t for t in (found.low, found.median, found.high))
    return Goal(name, median, low, high, unit, most, least)


def ratio(
    name: str,
    one: Spread,
    other: Spread,
    *,
    most: float | None = None,
    least: float | None = None,
) -> Goal:
    """Return a goal for a value over another; the spread is from the quartiles of both."""
    return Goal(
        name, one.median / other.median, one.low / other.high, one.high / other.low, "x", most,
        least,
    )  # fmt: skip


def goals(part: str, on: Executor, scale: int) -> Iterator[Goal]:
    """Yield the lines of a part."""
    module = import_module(f".{PARTS[part]}", __package__)
    yield from module.goals(on, scale)


def main(part: str, executor: str = "cuda", scale: int = 1) -> None:
    """Print the lines of a part."""
    on = wl.executor(executor)
    device = str(on.properties.get("name", on.name))
    try:
        for goal in goals(part, on, scale):
            line = goal.line(part, device)
            print(line if scale == 1 else f"try, {line}", flush=True)
    except (MissingPackage, ModuleNotFoundError, UnsupportedOperation) as error:
        print(f"absent | {part} | {error}", flush=True)


if __name__ == "__main__":
    import typer

    typer.run(main)
