"""The time of a block of code, operation by operation."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .described import rows_table, side_by_side
from .energy import Energy, EnergyMeasurement
from .errors import InvalidArgument
from .executor import Executor
from .operation import Cost, Operation
from .registry import executor as executor_by_name
from .registry import get_default_executor


@dataclass
class Entry:
    """The measurements of one operation on one executor."""

    operation: str
    executor: str
    calls: int = 0
    seconds: float = 0.0
    bytes: int = 0
    flops: int = 0

    @property
    def bandwidth(self) -> float:
        """The minimum bytes to move per second of run time."""
        return self.bytes / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class TimedCall:
    """One call of an operation.

    Attributes
    ----------
    operation, executor : str
        Name of the operation and of its executor.
    member : int
        Rank of the executor in its group; 0 outside of groups.
    start, seconds : float
        Start in seconds since the profile was opened, and duration in seconds.
    """

    operation: str
    executor: str
    member: int
    start: float
    seconds: float


@dataclass(repr=False)
class Profile:
    """The result of :func:`profile`; ``print`` shows it as a table.

    Attributes
    ----------
    entries : dict
        The measurements by operation and executor.
    energy : Energy or None
        With ``energy=``: the joules and seconds of the block, set at its end.
    timeline : list of TimedCall or None
        With ``timeline=True``: all calls, ordered by the time at which they ended.
    """

    entries: dict[tuple[str, str], Entry] = field(default_factory=dict)
    energy: Energy | None = None
    timeline: list[TimedCall] | None = None
    opened: float = field(default_factory=time.perf_counter)

    def __iter__(self) -> Iterator[Entry]:
        return iter(sorted(self.entries.values(), key=lambda e: -e.seconds))

    def __getitem__(self, operation: str) -> Entry:
        for entry in self.entries.values():
            if entry.operation == operation:
                return entry
        seen = ", ".join(sorted({name for name, _ in self.entries})) or "nothing"
        raise KeyError(f"{operation} was not seen; seen: {seen}")

    def __str__(self) -> str:
        if self.energy is not None:
            return str(self.energy)
        total = sum(e.seconds for e in self) or 1.0
        lines = [
            f"{'operation':22} {'executor':12} {'calls':>7} {'ms':>10} {'share':>6} {'GB/s':>8}"
        ]
        lines += [
            f"{e.operation:22} {e.executor:12} {e.calls:7} {1e3 * e.seconds:10.3f} "
            f"{e.seconds / total:6.1%} {e.bandwidth / 1e9:8.2f}"
            for e in self
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        if self.energy is not None:
            return f"<Profile: {self.energy}>"
        calls = sum(entry.calls for entry in self.entries.values())
        seconds = sum(entry.seconds for entry in self.entries.values())
        return f"<Profile of {len(self.entries)} operations, {calls} calls, {seconds:.3g} s>"

    def _repr_html_(self) -> str:
        """Return the table of :func:`print` as the card for notebooks."""
        if self.energy is not None:
            used = self.energy
            numbers = [f"{n:.4g}" for n in (used.joules, used.seconds, used.watts)]
            units = ("executor", "counter", "J", "s", "W")
            return side_by_side(
                rows_table("Energy", units, [(used.executor, used.source, *numbers)])
            )
        total = sum(e.seconds for e in self) or 1.0
        rows = [
            (
                e.operation,
                e.executor,
                f"{e.calls:,}",
                f"{1e3 * e.seconds:.3f}",
                f"{e.seconds / total:.1%}",
                f"{e.bandwidth / 1e9:.2f}",
            )
            for e in self
        ]
        head = ("operation", "executor", "calls", "ms", "share", "GB/s")
        return side_by_side(rows_table("Profile", head, rows))

    def save_timeline(self, path: str | os.PathLike[str]) -> None:
        """Write the calls as trace events for Perfetto or Chrome, one row for each member.

        Parameters
        ----------
        path : str or path
            The JSON file; https://ui.perfetto.dev and chrome://tracing display it.

        Raises
        ------
        InvalidArgument
            If the profile was opened without ``timeline=True``.
        """
        if self.timeline is None:
            raise InvalidArgument(
                "save_timeline: this profile has no timeline; open it by wl.profile(timeline=True)"
            )
        events = [
            {
                "name": call.operation, "cat": call.executor, "ph": "X", "pid": 0,
                "tid": call.member, "ts": 1e6 * call.start, "dur": 1e6 * call.seconds,
            }
            for call in self.timeline
        ]  # fmt: skip
        Path(path).write_text(json.dumps({"traceEvents": events}), encoding="utf-8")

    def _add(
        self, operation: Operation, executor: Executor, start: float, seconds: float, cost: Cost
    ) -> None:
        """Add one call."""
        if self.timeline is not None:
            member = 0 if executor.links is None else executor.links.rank
            begin = start - self.opened
            call = TimedCall(operation.name, executor.name, member, begin, seconds)
            self.timeline.append(call)
        key = (operation.name, executor.name)
        entry = self.entries.setdefault(key, Entry(*key))
        entry.calls += 1
        entry.seconds += seconds
        entry.bytes += cost.bytes
        entry.flops += cost.flops


#: Open profiles of all threads; changes hold the lock.
_OPEN: list[Profile] = []
_CHANGING = threading.Lock()


def _observe(
    executor: Executor,
    operation: Operation,
    kernel: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> Any:
    """Run an operation, and add it to all open profiles."""
    executor.synchronize()
    start = time.perf_counter()
    result = executor.perform(operation, kernel, *arguments)
    executor.synchronize()
    elapsed = time.perf_counter() - start
    cost = operation.cost(*arguments)
    with _CHANGING:
        for profile in _OPEN:
            profile._add(operation, executor, start, elapsed, cost)
    return result


@contextmanager
def profile(*, energy: bool | str | Executor = False, timeline: bool = False) -> Iterator[Profile]:
    """Record all operations within a ``with`` block, or measure the energy of the block.

    The profiler waits for each operation, so device queues and recorded loops are switched off:
    shares and bandwidths are accurate, but the total exceeds the time of an unprofiled run. The
    profile contains operations of all threads, and nested profiles contain the same operations.

    Parameters
    ----------
    energy : bool, str or Executor
        An executor, or True for the default one: measure the energy of its device instead. The
        block then runs normally without recording of operations, and afterwards ``.energy`` has
        joules, seconds and watts. GPUs measure with NVML, processors with RAPL. The counters
        advance in steps of 20 to 100 ms, so measure blocks of a second or more.
    timeline : bool
        Store when each call began and how long it took, for each member of a group; see
        :meth:`Profile.save_timeline`.

    Raises
    ------
    UnsupportedOperation
        With ``energy``, if this process can read no energy counter of the device.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.eye(3))
    >>> with wl.profile() as seen:
    ...     y = A @ np.ones(3)
    >>> seen["csr.spmv"].calls
    1
    """
    if energy is not False:
        where = get_default_executor() if energy is True else executor_by_name(energy)
        measurement = EnergyMeasurement(where)
        try:
            yield Profile(energy=measurement.energy)
        finally:
            measurement.end()
        return
    seen = Profile(timeline=[] if timeline else None)
    with _CHANGING:
        _OPEN.append(seen)
        Executor._observer = staticmethod(_observe)
    try:
        yield seen
    finally:
        with _CHANGING:
            _OPEN[:] = [profile for profile in _OPEN if profile is not seen]
            if not _OPEN:
                Executor._observer = None
