"""Latencies of links between members of groups: ``wollemi info --links``."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..core.distributed import Group, world
from ..core.distributed.mpi import is_rank
from ..core.distributed.ranks import RankGroup
from ..core.errors import WollemiError
from ..core.registry import backend, backend_names, has_native_modules

#: Sums per round, sums per round through messages of the hosts, and number of rounds.
SUMS, SUMS_OF_HOSTS, ROUNDS = 100, 10, 5
#: Length of the longer message in numbers: 8 KB.
MANY = 1024


@dataclass(frozen=True)
class LinkTimes:
    """Times of a group's sums; the host starts each sum and waits for it.

    Attributes
    ----------
    members : str
        The executors.
    links : str
        The kind of links.
    one, many : float
        Microseconds per sum of 1 number and of 1,024 numbers.
    reason : str
        Why the members have no faster links, if that is known.
    """

    members: str
    links: str
    one: float
    many: float
    reason: str = ""


def link_times() -> list[LinkTimes]:
    """Return the times of all kinds of links between the devices of this machine.

    The groups are two threads of ``omp``, and all GPUs of each backend with two or more. In a
    process that a launcher has started, the group consists of all ranks, and the first rank returns
    the times.
    """
    if is_rank():
        group = world()
        found = of_ranks(group)
        return [found] if group.rank == 0 else []
    return [measured(group, name) for name, group in _groups()]


def of_ranks(group: RankGroup) -> LinkTimes:
    """Return the times of sums over ranks; all ranks must call this function."""
    kind = type(group.links).__name__.removeprefix("Rank").removesuffix("Links").lower()
    one, many = group.run(_times)
    return LinkTimes(group.name, kind, one, many, group.links.reason)


def _groups() -> Iterator[tuple[str, Group]]:
    # without native modules, use threads of NumPy
    yield "threads", Group(["omp:1" if has_native_modules() else "reference"] * 2)
    for name in ("cuda", "hip"):
        devices = _devices(name)
        for kind in ("peer", "nccl", "host") if len(devices) > 1 else ():
            try:
                yield kind, Group(devices, links=kind)
            except WollemiError:  # these links cannot join these devices
                continue


def _devices(name: str) -> list[str]:
    """Return the devices of a backend; none if it is not available."""
    if name not in backend_names():
        return []
    try:
        return list(backend(name).devices())
    except WollemiError:
        return []


def measured(group: Group, links: str) -> LinkTimes:
    """Return the times of a group's sums."""
    one, many = group.run(_times)[0]
    return LinkTimes(group.name, links, one, many)


def _times(member: Any) -> tuple[float, float]:
    """Return the times of a sum of one number and of many, measured on a member."""
    arrays = [member.zeros((count,), np.float64) for count in (1, MANY)]
    by_network = not (member.links.one_process or member.links.on_device)
    sums = SUMS_OF_HOSTS if by_network else SUMS
    one, many = (_microseconds(partial(member.links.sum, array), sums) for array in arrays)
    return one, many


def _microseconds(call: Callable[[], None], sums: int) -> float:
    """Return the median time of a call over all rounds; all members make the same calls."""
    times = []
    for _ in range(ROUNDS + 1):
        began = time.perf_counter()
        for _ in range(sums):
            call()
        times.append(1e6 * (time.perf_counter() - began) / sums)
    return statistics.median(times[1:])
