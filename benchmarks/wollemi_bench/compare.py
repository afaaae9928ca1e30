"""``wollemi bench compare``: changes between two files, beyond noise.

A contender changed if its median moved by more than the tolerance, its quartiles do not touch and a
rank test agrees; times with busy processes are judged by themselves. A slow-down of wollemi is a
regression unless the machine explains it: unless unchanged contenders, the peers of the same
version and the memory, slowed down equally in the same rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from wollemi.core.errors import InvalidArgument

from .report import Record, seconds_text
from .results import Key, RecordedContest, Run, is_ours, left_out, recorded_contests

#: A change of less than this share is none, however sure it is.
TOLERANCE = 0.05

#: Chance that equal contenders pass the rank test; they also have to pass the quartiles.
RISK = 0.01

#: The rank test of this number of samples and fewer cannot come below the risk: 4 and 4 give 0.03.
TOO_FEW = 4


class Kind(Enum):
    """The change of a contender; the value is its text."""

    SAME = "as before"
    FASTER = "faster"
    SLOWER = "slower"
    MACHINE = "slower, as the machine is"
    ITERATIONS = "needs more iterations"
    FAILED = "fails now"
    MENDED = "no longer fails"
    APPEARED = "new"
    VANISHED = "not measured now"
    OTHERWISE = "measured in another way"


@dataclass(frozen=True)
class Change:
    """A contender in two files.

    Attributes
    ----------
    key : Key
        The contest.
    contender : str
        Who.
    kind : Kind
        The change.
    old, new : Record or None
        None where it was not.
    ratio : float or None
        How many times as long it takes now.
    machine : float or None
        The slow-down of the unchanged parts: peers of one version, and memory.
    """

    key: Key
    contender: str
    kind: Kind
    old: Record | None
    new: Record | None
    ratio: float | None = None
    machine: float | None = None

    @property
    def ours(self) -> bool:
        """Whether it is a kernel of wollemi."""
        known = self.new or self.old
        return known is not None and is_ours(known)

    @property
    def regression(self) -> bool:
        """Whether it is a kernel of wollemi and slower than it was."""
        return self.ours and self.kind in (Kind.SLOWER, Kind.FAILED, Kind.ITERATIONS)


@dataclass(frozen=True)
class Comparison:
    """Two files side by side.

    Attributes
    ----------
    changes : list of Change
        The changes of all contenders of the contests that both have.
    hardware, versions : list of str
        Other differences, a line each; empty if there are none.
    only_old, only_new : list of Key
        Contests that only one of them has.
    """

    changes: list[Change]
    hardware: list[str]
    versions: list[str]
    only_old: list[Key]
    only_new: list[Key]

    @property
    def regressions(self) -> list[Change]:
        """The slow-downs of wollemi."""
        return [change for change in self.changes if change.regression]


def compare(old: Sequence[Run], new: Sequence[Run], *, tolerance: float = TOLERANCE) -> Comparison:
    """Return the changes of the contenders of the old runs in the new ones.

    Parameters
    ----------
    old, new : sequence of Run
        The content of two files.
    tolerance : float
        The share by which a median may move.

    Raises
    ------
    InvalidArgument
        If they have no contest in common.
    """
    before, after = _by_contest(old), _by_contest(new)
    common = [key for key in before if key in after]
    if not common:
        raise InvalidArgument(
            "the two files have no contest in common; "
            f"the old one has {_some(list(before))}, the new one {_some(list(after))}"
        )
    pairs = [(before[key], after[key]) for key in common]
    return Comparison(
        [
            change
            for pair in pairs
            for change in (*_changes(*pair, tolerance), *_changes_beside_busy(*pair, tolerance))
        ],
        _lines(differences(a.run.device, b.run.device) for a, b in pairs),
        _lines(differences(a.run.versions, b.run.versions) for a, b in pairs),
        [key for key in before if key not in after],
        [key for key in after if key not in before],
    )


def _lines(groups: Iterable[list[str]]) -> list[str]:
    """Return every line once."""
    return list(dict.fromkeys(line for group in groups for line in group))


def _by_contest(runs: Sequence[Run]) -> dict[Key, RecordedContest]:
    """Return contests by name; cuda:0 and cuda:1 are one device, and so are omp:2 and omp:4."""
    return {
        contest.key._replace(executor=contest.key.executor.partition(":")[0]): contest
        for contest in recorded_contests(runs)
    }


def _some(keys: Sequence[Key]) -> str:
    named = [str(key) for key in keys]
    return "; ".join(named[:3]) + (f" and {len(named) - 3} more" if len(named) > 3 else "")


def _changes(before: RecordedContest, after: RecordedContest, tolerance: float) -> Iterator[Change]:
    machine = _machine(before, after) if before.records and after.records else None
    olds = {record.contender: record for record in before.records}
    news = {record.contender: record for record in after.records}
    for name in dict.fromkeys([*olds, *news]):
        old, new = olds.get(name), news.get(name)
        kind, ratio = _judge(old, new, machine, tolerance)
        yield Change(after.key, name, kind, old, new, ratio, machine)


def _changes_beside_busy(
    before: RecordedContest, after: RecordedContest, tolerance: float
) -> Iterator[Change]:
    """Yield the changes of times with busy processes, where both files have them."""
    counts = {record.busy for contest in (before, after) for record in contest.records}
    if len(counts) != 1 or 0 in counts:
        return
    beside = f"with {counts.pop()} busy"
    old, new = _beside_busy(before), _beside_busy(after)
    both = {r.contender for r in old.records} & {r.contender for r in new.records}
    for change in _changes(old, new, tolerance):
        if change.contender in both:
            yield replace(change, contender=f"{change.contender}, {beside}")


def _beside_busy(contest: RecordedContest) -> RecordedContest:
    crowded = (record.beside_busy for record in contest.records)
    # memory was not measured with busy processes: only the peers show the state of the machine
    records = [replace(r, read=None, triad=None, copy=None) for r in crowded if r is not None]
    return RecordedContest(contest.key, contest.run, records)


def _judge(
    old: Record | None, new: Record | None, machine: float | None, tolerance: float
) -> tuple[Kind, float | None]:
    """Return the change of a contender, and its slow-down."""
    if old is None or new is None:
        return (Kind.APPEARED if old is None else Kind.VANISHED), None
    if not old.seconds or not new.seconds:
        return _trouble(old, new), None
    if (old.method, old.process) != (new.method, new.process):
        return Kind.OTHERWISE, None
    ratio = new.seconds / old.seconds
    if old.iterations and new.iterations and new.iterations > (1 + tolerance) * old.iterations:
        return Kind.ITERATIONS, ratio
    if ratio > 1 + tolerance and beyond_noise(old, new, tolerance):
        explained = machine is not None and ratio <= (1 + tolerance) * machine
        return (Kind.MACHINE if explained else Kind.SLOWER), ratio
    if ratio < 1 / (1 + tolerance) and beyond_noise(new, old, tolerance):
        return Kind.FASTER, ratio
    return Kind.SAME, ratio


def _trouble(old: Record, new: Record) -> Kind:
    if old.seconds and left_out(new):
        return Kind.VANISHED
    if old.seconds:
        return Kind.FAILED
    if new.seconds:
        return Kind.APPEARED if left_out(old) else Kind.MENDED
    return Kind.SAME


def beyond_noise(quick: Record, slow: Record, tolerance: float) -> bool:
    """Whether the second takes longer than the first by more than their spread.

    With very few samples even the quickest of the slower one must be over the tolerance. A file
    that kept no spread is taken at its word.
    """
    if quick.high is not None and slow.low is not None and slow.low <= quick.high:
        return False
    if not quick.samples or not slow.samples:
        return True
    if min(len(quick.samples), len(slow.samples)) <= TOO_FEW:
        return min(slow.samples) > (1 + tolerance) * max(quick.samples)
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(quick.samples, slow.samples, alternative="less").pvalue) < RISK


def _machine(before: RecordedContest, after: RecordedContest) -> float | None:
    """Return the slow-down of the unchanged parts, the median of all."""
    ratios = [
        b / a
        for b, a in (
            (getattr(before.records[0], kind), getattr(after.records[0], kind))
            for kind in ("read", "triad", "copy")
        )
        if a and b
    ]
    timed = {record.contender: record for record in after.peers if record.seconds}
    for old in before.peers:
        new = timed.get(old.contender)
        same = before.run.versions.get(old.contender) == after.run.versions.get(old.contender)
        if new and new.seconds and old.seconds and same:
            ratios.append(new.seconds / old.seconds)
    return float(np.median(ratios)) if ratios else None


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return the differences of two descriptions, a line each.

    Examples
    --------
    >>> from wollemi_bench.compare import differences
    >>> differences({"scipy": "1.16", "mkl": "2026"}, {"scipy": "1.17", "mkl": "2026"})
    ['scipy: 1.16 before, 1.17 now']
    """
    return [
        f"{name}: {old.get(name, 'none')} before, {new.get(name, 'none')} now"
        for name in dict.fromkeys([*old, *new])
        if old.get(name) != new.get(name)
    ]


# ---- for people


def told(comparison: Comparison) -> Group:
    """Return the changes as a table, and the rest in sentences."""
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("contest", "contender"):
        shown.add_column(name)
    for name in ("before", "now", "times", "machine"):
        shown.add_column(name, justify="right", no_wrap=True)
    shown.add_column("")
    listed = [change for change in comparison.changes if change.kind is not Kind.SAME]
    for change in sorted(listed, key=lambda c: (not c.regression, not c.ours)):
        shown.add_row(
            str(change.key),
            change.contender,
            _time(change.old),
            _time(change.new),
            "" if change.ratio is None else f"{change.ratio:.2f}",
            "" if change.machine is None or change.ratio is None else f"{change.machine:.2f}",
            _said(change),
            style="bold" if change.regression else None,
        )
    other = [*comparison.hardware, *comparison.versions]
    parts: list[Any] = [Text(f"  {line}", style="dim") for line in other]
    parts += [shown] if listed else []
    return Group(*parts, *(Text(line) for line in summary(comparison)))


def _time(record: Record | None) -> str:
    return "" if record is None or not record.seconds else seconds_text(record.seconds)


def _said(change: Change) -> str:
    if change.kind is Kind.ITERATIONS and change.old and change.new:
        return f"{change.kind.value}: {change.old.iterations} before, {change.new.iterations} now"
    if change.kind is Kind.FAILED and change.new:
        return f"{change.kind.value}: {change.new.trouble}"
    return change.kind.value


def summary(comparison: Comparison) -> list[str]:
    """Return in sentences the number of changes, the state of the machine, and omissions."""
    changes = comparison.changes
    counted = {kind: sum(c.kind is kind for c in changes) for kind in Kind}
    parts = [f"{number} {kind.value}" for kind, number in counted.items() if number]
    contests = {change.key for change in changes}
    lines = [f"{len(changes)} contenders of {len(contests)} contests: {', '.join(parts)}."]
    machine = {c.key: c.machine for c in changes if c.machine is not None}
    if machine:
        middle = float(np.median(list(machine.values())))
        lines.append(f"Peers and memory take {middle:.2f} times as long as before.")
    for keys, where in ((comparison.only_old, "old"), (comparison.only_new, "new")):
        if keys:
            lines.append(f"Only in the {where} file, not compared: {_some(keys)}.")
    worse = len(comparison.regressions)
    lines.append(f"Regressions of wollemi: {worse}." if worse else "No regression of wollemi.")
    return lines
