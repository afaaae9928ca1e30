"""The loss of every way to choose a kernel: wollemi's rule, papers' rules, one kernel for all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ..ml import OPERATIONS, TF32
from ..problem import OURS
from ..published_rules import RULES
from ..report import Record
from ..results import RecordedContest, is_ours
from .numbers import kernel_of
from .parts import Table
from .style import short

#: Fewer kernels are no choice.
FEWEST_KERNELS = 2


class Cost(NamedTuple):
    """The cost of a way to choose in one contest: its time over the least one, less one."""

    case: str
    share: float


def costs(contest: RecordedContest, among: Sequence[str] = ()) -> dict[str, Cost]:
    """Return the cost of each way to choose, by name; "" is wollemi's rule.

    A kernel that was timed more than once, by its name and as a choice, is no loss of itself. The
    best one does not round its inputs. Contests without two kernels have nothing to choose.

    Parameters
    ----------
    contest : RecordedContest
        Of a product of sparse and dense matrices; others have no kernels by name.
    among : sequence of str
        Only these kernels, and rules that name none but these.
    """
    if contest.key.benchmark.partition("/")[0] not in OPERATIONS:
        return {}
    timed = {_name(r): r for r in contest.records if is_ours(r) and r.seconds}
    if among:
        timed = {n: r for n, r in timed.items() if n in among or _space(n) == set(among)}
    exact = [record for name, record in timed.items() if TF32 not in name]
    if len({kernel_of(record) for record in exact}) < FEWEST_KERNELS:
        return {}
    best = min(exact, key=lambda record: record.seconds or math.inf)
    case = f"{short(contest.key.case)}, {contest.key.benchmark}"
    return {name: Cost(case, _share(record, best)) for name, record in timed.items()}


def _space(name: str) -> set[str]:
    return set(RULES[name].space) if name in RULES else set()


def _share(record: Record, best: Record) -> float:
    if kernel_of(record) == kernel_of(best):
        return 0.0
    return max(0.0, (record.seconds or math.inf) / (best.seconds or math.inf) - 1)


def _name(record: Record) -> str:
    return "" if record.ours else record.contender.removeprefix(OURS).strip()


def tables_of(suite: str, held: Sequence[RecordedContest]) -> list[Table]:
    """Return the losses of choices in a suite: against all kernels, and those of each rule.

    A kernel that could not run in some contests, or failed, has its loss over the others, which
    are counted.
    """
    tables = _table(f"{suite}: the loss of each choice against the best kernel", held)
    named = {_name(r) for contest in held for r in contest.records if is_ours(r)}
    for name in (name for name in RULES if name in named):
        space = RULES[name].space
        tables += _table(f"{suite}: the same against the best of {', '.join(space)}", held, space)
    return tables


def _table(caption: str, held: Sequence[RecordedContest], among: Sequence[str] = ()) -> list[Table]:
    found: dict[str, list[Cost]] = {}
    contests = [made for made in (costs(contest, among) for contest in held) if made]
    for made in contests:
        for name, cost in made.items():
            found.setdefault(name, []).append(cost)
    rows = [
        (name or "our rule", *_row(found[name], len(contests)))
        for name in sorted(found, key=lambda name: _place(name, found[name]))
    ]
    head = ("choice", "contests", "mean", "most", "where")
    return [Table(caption, head, rows)] if rows else []


def _place(name: str, lost: Iterable[Cost]) -> tuple[int, float]:
    """Return the sort key of rows: rules first, then the kernels with the least loss."""
    kind = 0 if not name else 1 if name in RULES else 2
    return kind, float(np.mean([cost.share for cost in lost]))


def _row(lost: Sequence[Cost], contests: int) -> tuple[str, ...]:
    worst = max(lost, key=lambda cost: cost.share)
    return (
        str(contests) if len(lost) == contests else f"{len(lost)} of {contests}",
        f"{100 * np.mean([cost.share for cost in lost]):.1f} %",
        f"{100 * worst.share:.1f} %",
        worst.case if worst.share else "",
    )
