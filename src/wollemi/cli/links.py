"""Latencies of the links between members of groups: ``wollemi info --links``."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..core.distributed import Group
from ..core.errors import WollemiError
from ..core.registry import backend, backend_names

#: Sums of a round, and rounds.
SUMS, ROUNDS = 100, 5
#: Numbers of the longer message: 8 KB.
MANY = 1024


@dataclass(frozen=True)
class LinkTimes:
    """Times of a group's sums, each started by the host and waited for.

    Attributes
    ----------
    members : str
        The executors.
    links : str
        How they exchange.
    one, many : float
        Microseconds of a sum of 1 number and of 1,024 numbers.
    """

    members: str
    links: str
    one: float
    many: float


def link_times() -> list[LinkTimes]:
    """Return the times of all kinds of links between the devices of this machine.

    They are those of two threads of ``omp``, and of all GPUs of a backend that has two or more.
    """
    return [measured(group, name) for name, group in _groups()]


def _groups() -> Iterator[tuple[str, Group]]:
    yield "threads", Group(["omp:1", "omp:1"])
    for name in ("cuda", "hip"):
        devices = _devices(name)
        for kind in ("peer", "nccl", "host") if len(devices) > 1 else ():
            try:
                yield kind, Group(devices, links=kind)
            except WollemiError:  # links that do not join these devices
                continue


def _devices(name: str) -> list[str]:
    """Return the devices of a backend; none where it is not available."""
    if name not in backend_names():
        return []
    try:
        return list(backend(name).devices())
    except WollemiError:
        return []


def measured(group: Group, links: str) -> LinkTimes:
    """Return the times of the sums of a group."""

    def program(member: Any) -> tuple[float, float]:
        arrays = [member.zeros((count,), np.float64) for count in (1, MANY)]
        one, many = (_microseconds(partial(member.links.sum, array)) for array in arrays)
        return one, many

    one, many = group.run(program)[0]
    return LinkTimes(group.name, links, one, many)


def _microseconds(call: Callable[[], None]) -> float:
    """Return the median time of a call over rounds; all members make the same calls."""
    times = []
    for _ in range(ROUNDS + 1):
        began = time.perf_counter()
        for _ in range(SUMS):
            call()
        times.append(1e6 * (time.perf_counter() - began) / SUMS)
    return statistics.median(times[1:])
