"""Measurements: records, as JSON lines and as a table.

A file holds one line ``{"kind": "environment", ...}`` per run, followed by a line
``{"kind": "result", ...}`` per contender; ``run`` ties them together.
"""

from __future__ import annotations

import json
import os
import platform
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from wollemi.core.executor import Executor

from .cases import Case
from .contest import Outcome, Settings
from .peers import Absent
from .problem import GPUS, OURS, Problem
from .worker import Runners

SCHEMA = "wollemi-bench/2"

#: The line below a table that says how to read its last columns.
COLUMNS_EXPLAINED = (
    "of floor: share of the speed at which memory is read, 1 is the limit; "
    "times ours: this time by wollemi's"
)


@dataclass(frozen=True)
class Record:
    """One contender in one contest.

    Records with the same ``suite``, ``benchmark``, ``case``, ``format``, ``dtype`` and ``caches``
    in one run form a contest.

    Attributes
    ----------
    benchmark, case : str
        ``spmv``, ``solve/cg``, ``spmm/32``, ..., and the matrix.
    executor, format, dtype, rows, columns, entries
        Of our matrix.
    contender : str
        Who.
    ours : bool
        Whether it is us, by the kernel that the plan chose. Our other kernels and formats have
        False, and a ``contender`` that begins with ``wollemi``.
    seconds, low, high : float or None
        Median and quartiles per call or iteration; None if it was not timed.
    samples : list of float
        All batches, in seconds.
    times_ours : float or None
        How many times as long as wollemi it takes, from pairs of the same round.
    bytes, flops : int or None
        The minimal cost of the operation.
    read, triad, copy : float or None
        Bandwidths measured in the same rounds, of a GPU once for each size in the same run, in
        bytes per second; of a copy, read and written bytes together.
    trouble : str
        Why it was not timed: ``absent``, ``wrong``, ``failed`` or ``skipped``, and more.
    notes : list of str
        Other remarks, such as why this kernel was chosen.
    suite : str
        The named suite it was measured for, or "".
    kernel : str
        Which of our kernels ran; "" for others.
    caches : {"warm", "cold"}
        Whether the operands were in the caches as far as they fit.
    method : {"wall", "events", "graph", "slope", "told"}
        The clock: the host's over a batch of calls, the device's events around such a batch, events
        around replays of a captured graph, the difference of long and short solves, or the report
        of a process of the call's own.
    process : {"own", "shared"}
        Whether the contender had a process to itself.
    setup_seconds : float or None
        One-time work, before the timed calls: conversion from CSR, plan, first call.
    break_even : float or None
        After how many calls that is paid for, against the first peer that was timed; None if never.
    iterations : int or None
        Of a solve.
    residual : float or None
        The true relative residual ``|b - A x| / |b|`` afterwards.
    peak_memory : int or None
        The most bytes it held (of the device on a GPU), the matrix included, the libraries not.
    family : str
        The generator of the case (``stencil7``), or "".
    size : int or None
        Where it stands on the axis of a growth curve (entries); None outside of such a series.
    share : float or None
        Of the floor, the median over the rounds; ``floor_share`` is this, or the value from
        medians.
    busy : int
        How many processes computed something else in rounds of their own; 0 if there were none.
    busy_seconds : float or None
        The median per call or iteration in these rounds.
    busy_samples : list of float
        All batches of them, in seconds.
    other_cores : float or None
        How many cores other programs used on average meanwhile; None if that is not known.
    paper : dict or None
        The figure of the suite's paper: ``value`` and ``unit`` (of ``figure``, in words),
        ``hardware`` and ``source``.
    """

    benchmark: str
    case: str
    executor: str
    format: str
    dtype: str
    rows: int
    columns: int
    entries: int
    contender: str
    ours: bool
    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    samples: list[float] = field(default_factory=list)
    times_ours: float | None = None
    bytes: int | None = None
    flops: int | None = None
    read: float | None = None
    triad: float | None = None
    trouble: str = ""
    notes: list[str] = field(default_factory=list)
    copy: float | None = None
    suite: str = ""
    kernel: str = ""
    caches: str = "warm"
    method: str = "wall"
    process: str = "shared"
    setup_seconds: float | None = None
    break_even: float | None = None
    iterations: int | None = None
    residual: float | None = None
    peak_memory: int | None = None
    family: str = ""
    size: int | None = None
    paper: dict[str, Any] | None = None
    share: float | None = None
    busy: int = 0
    busy_seconds: float | None = None
    busy_samples: list[float] = field(default_factory=list)
    other_cores: float | None = None

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> Record:
        """Return the record of a ``"kind": "result"`` line; unknown fields are left out."""
        known = {f.name for f in fields(cls)}
        return cls(**{name: value for name, value in line.items() if name in known})

    @property
    def bandwidth(self) -> float | None:
        """Bytes per second over the bytes that must move."""
        return self.bytes / self.seconds if self.bytes and self.seconds else None

    @property
    def floor_share(self) -> float | None:
        """The least time of reading the same bytes, as a share of the time taken."""
        if self.share is not None:
            return self.share
        bandwidth = self.bandwidth
        return bandwidth / self.read if bandwidth and self.read else None

    @property
    def beside_busy(self) -> Record | None:
        """The times with busy processes in place of the quiet ones; None without any."""
        if not self.busy_seconds:
            return None
        low, high = np.percentile(self.busy_samples or [self.busy_seconds], (25, 75))
        return replace(
            self,
            seconds=self.busy_seconds,
            low=float(low),
            high=float(high),
            samples=self.busy_samples,
            iterations=None,
        )


def _digits(number: float | None) -> float | None:
    """Return a number with the digits that mean something."""
    return None if number is None else float(f"{number:.5g}")


@dataclass(frozen=True)
class Subject:
    """The subject of a contest.

    Attributes
    ----------
    benchmark, case, executor, format, dtype, rows, columns, entries, caches, process, family, busy
        As in :class:`Record`.
    per : int
        Iterations in a call; times, bytes and flops are divided by it.
    """

    benchmark: str
    case: str
    executor: str
    format: str
    dtype: str
    rows: int
    columns: int
    entries: int
    caches: str
    process: str
    family: str
    busy: int = 0
    per: int = 1

    @classmethod
    def of(
        cls,
        benchmark: str,
        case: Case,
        problem: Problem,
        executor: Executor,
        settings: Settings,
        runners: Runners,
    ) -> Subject:
        """Return the properties before anything is measured."""
        S = problem.S
        return cls(
            benchmark=benchmark,
            case=case.name,
            executor=executor.name,
            format=problem.format,
            dtype=str(getattr(problem, "dtype", S.dtype)),
            rows=int(S.shape[0]),
            columns=int(S.shape[1]),
            entries=int(S.nnz),
            caches="cold" if settings.cold else "warm",
            process="own" if runners.own_process else "shared",
            family=case.family,
            busy=0 if executor.backend in GPUS else settings.busy,
            per=problem.per,
        )


def records_of(
    subject: Subject, outcomes: Sequence[Outcome], bandwidth: Mapping[str, float]
) -> list[Record]:
    """Return the records of a contest.

    Parameters
    ----------
    subject : Subject
        The subject.
    outcomes, bandwidth
        Its result; the first outcome is wollemi's.
    """
    about = asdict(subject)
    per = about.pop("per")
    ours = outcomes[0]
    baseline = next((o for o in outcomes if not is_ours(o.name) and o.timing), None)
    cost = ours.facts.cost
    return [
        Record(
            **about,
            contender=outcome.name,
            ours=outcome is ours,
            **_times(outcome, ours, per),
            bytes=None if cost is None else cost.bytes // per,
            flops=None if cost is None else cost.flops // per,
            read=bandwidth.get("read"),
            triad=bandwidth.get("triad"),
            copy=bandwidth.get("copy"),
            share=_digits(outcome.share),
            trouble=outcome.trouble,
            notes=outcome.facts.notes,
            kernel=outcome.facts.kernel,
            method=outcome.facts.method,
            setup_seconds=_digits(outcome.setup_seconds),
            break_even=_digits(break_even(outcome, baseline, per)),
            iterations=outcome.facts.iterations,
            residual=_digits(outcome.facts.residual),
            peak_memory=outcome.facts.peak_memory,
        )
        for outcome in outcomes
    ]


def _times(outcome: Outcome, ours: Outcome, per: int) -> dict[str, Any]:
    if outcome.timing is None:
        return {}
    low, high = outcome.timing.quartiles
    ratio = None
    if ours.timing is not None:
        ratio = ours.timing.ratio_of(outcome.timing) * _per(ours, per) / _per(outcome, per)
    per = _per(outcome, per)
    return {
        "seconds": _digits(outcome.timing.median / per),
        "low": _digits(low / per),
        "high": _digits(high / per),
        "samples": [_digits(s / per) for s in outcome.timing.samples],
        "times_ours": _digits(ratio),
        **_beside(outcome, per),
    }


def _beside(outcome: Outcome, per: int) -> dict[str, Any]:
    if outcome.beside is None:
        return {}
    return {
        "busy_seconds": _digits(outcome.beside.median / per),
        "busy_samples": [_digits(s / per) for s in outcome.beside.samples],
    }


def _per(outcome: Outcome, per: int) -> int:
    """Return how many iterations a call did, of which it was asked for ``per``."""
    return outcome.facts.iterations or per if per > 1 else per


def break_even(outcome: Outcome, baseline: Outcome | None, per: int = 1) -> float | None:
    """Return after how many calls an outcome's set-up is paid for, or None if never.

    Parameters
    ----------
    outcome : Outcome
        The outcome of the set-up.
    baseline : Outcome or None
        The baseline of the calls; its own set-up counts too.
    per : int
        Iterations in a call; the result is per iteration.
    """
    if baseline is None or baseline.timing is None or outcome.timing is None:
        return None
    if outcome is baseline or outcome.setup_seconds is None or baseline.setup_seconds is None:
        return None
    gain = (baseline.timing.median - outcome.timing.median) / per
    more = outcome.setup_seconds - baseline.setup_seconds
    if more <= 0:
        return 0.0
    return more / gain if gain > 0 else None


def is_ours(name: str) -> bool:
    """Whether a contender is this library, in any kernel or format."""
    return name.partition(" ")[0] == OURS


class Versioned(Protocol):
    """A library that tells its version, or raises Absent."""

    name: str

    def version(self) -> str:
        """Return the version."""


def environment(executor: Executor, peers: Iterable[Versioned]) -> dict[str, Any]:
    """Return the environment of a run: versions and hardware."""
    found = {}
    for peer in peers:
        try:
            found[peer.name] = peer.version()
        except Absent as error:
            found[peer.name] = f"absent: {error}"
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "versions": {name: version(name) for name in ("wollemi", "numpy", "scipy")},
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "cores": len(os.sched_getaffinity(0)),
        "executor": executor.name,
        "device": {
            k: v for k, v in executor.properties.items() if isinstance(v, (str, int, float))
        },
        "peers": found,
    }


class Report:
    """The records of one run; written line by line, so that a crash loses only later ones."""

    def __init__(self, environment: dict[str, Any], path: Path | None = None) -> None:
        self.run = uuid.uuid4().hex[:12]
        self.environment = environment
        self.records: list[Record] = []
        self._path = path
        if path is not None:
            path.write_text("")
        self._write({"kind": "environment", **environment})

    def add(self, record: Record) -> None:
        """Keep a record, and write it."""
        self.records.append(record)
        self._write({"kind": "result", **asdict(record), "floor_share": record.floor_share})

    def _write(self, line: dict[str, Any]) -> None:
        if self._path is not None:
            with self._path.open("a") as file:
                print(json.dumps({"schema": SCHEMA, "run": self.run, **line}), file=file)


def seconds_text(seconds: float) -> str:
    """Return a time with a unit that fits.

    Examples
    --------
    >>> from wollemi_bench.report import seconds_text
    >>> seconds_text(0.00316)
    '3.16 ms'
    """
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def table(records: Sequence[Record]) -> Group:
    """Return the records of one contest as a table for people."""
    first = records[0]
    title = (
        f"{first.benchmark}  {first.case}  {first.rows} x {first.columns}, {first.entries} entries"
        f"  {first.dtype} {first.format} on {first.executor}"
    )
    remarks = list(first.notes)
    if first.read and first.triad:
        remarks.append(f"read {first.read / 1e9:.1f} GB/s, triad {first.triad / 1e9:.1f} GB/s")
    if any(record.times_ours is not None for record in records):
        remarks.append(COLUMNS_EXPLAINED)
    remarks += [f"{record.contender}: {record.trouble}" for record in records if record.trouble]
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    shown.add_column("", no_wrap=True)
    columns = ["median", "quartiles", "GB/s", "of floor", "times ours"]
    if first.busy:
        columns.append(f"with {first.busy} busy processes")
    for name in columns:
        shown.add_column(name, justify="right", no_wrap=True)
    for record in records:
        if record.seconds is None:
            continue
        spread = f"{seconds_text(record.low or 0.0)} - {seconds_text(record.high or 0.0)}"
        shown.add_row(
            record.contender,
            seconds_text(record.seconds),
            spread,
            "" if record.bandwidth is None else f"{record.bandwidth / 1e9:.1f}",
            "" if record.floor_share is None else f"{record.floor_share:.2f}",
            "" if record.times_ours is None else f"{record.times_ours:.2f}",
            *([_busy_text(record)] if first.busy else []),
        )
    return Group(Text(title, style="bold"), shown, *(Text(f"  {r}", style="dim") for r in remarks))


def _busy_text(record: Record) -> str:
    """Return a time with busy processes, and its ratio to the quiet one."""
    if record.busy_seconds is None or not record.seconds:
        return ""
    return f"{seconds_text(record.busy_seconds)} ({record.busy_seconds / record.seconds:.1f} x)"
