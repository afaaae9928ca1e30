"""Solve batches of systems on threads: each thread has one member and replays its tapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from ...core.batch.systems import matrix_of_each
from ...core.executor import Array, Executor
from .interleaved import Lanes, lanes_of
from .level import native

if TYPE_CHECKING:
    from ...core.batch.systems import MemberPrograms, Systems
    from ...core.iteration import Replay

#: The names of a member's programs, except the iteration.
_PROGRAMS = ("refresh", "measure", "restart", "finish", "judge")


@dataclass(frozen=True)
class _Made:
    """The tapes of a member, and the arrays in which it iterates on several systems at once.

    Attributes
    ----------
    tapes : object
        The member, with its programs replaced by tapes.
    lanes : Lanes or None
        None if a thread iterates on one system at a time.
    """

    tapes: Any
    lanes: Lanes | None


@dataclass(frozen=True)
class SystemArrays:
    """The arrays and numbers of systems, under the names that ``module.cpp`` reads.

    Attributes
    ----------
    matrix, values, b, x, relative, absolute, codes, iterations, norms, thresholds : arrays
        As in :class:`~wollemi.core.batch.systems.Systems`, its tolerances and its verdicts.
    limit : int
        Iteration limit of each system.
    least, most, least_norm : float
        As in ``Systems``.
    """

    matrix: Array
    values: Array
    b: Array
    x: Array
    relative: Array
    absolute: Array
    limit: int
    least: float
    most: float
    least_norm: float
    codes: Array
    iterations: Array
    norms: Array
    thresholds: Array


_MADE: WeakKeyDictionary[MemberPrograms, _Made] = WeakKeyDictionary()


def solve(members: Sequence[MemberPrograms], systems: Systems) -> None:
    """Solve all systems and write the verdicts to ``systems``."""
    made = [_made_of(member) for member in members]
    lanes = [m.lanes for m in made if m.lanes is not None]
    of_double = members[0].status.norm.dtype == np.float64
    verdicts, tolerances = systems.verdicts, systems.tolerances
    given = SystemArrays(
        matrix=matrix_of_each(systems), values=systems.values, b=systems.b, x=systems.x,
        relative=np.ascontiguousarray(tolerances.relative),
        absolute=np.ascontiguousarray(tolerances.absolute),
        limit=systems.limit, least=systems.least, most=systems.most,
        least_norm=systems.least_norm, codes=verdicts.codes, iterations=verdicts.iterations,
        norms=verdicts.norms, thresholds=verdicts.thresholds,
    )  # fmt: skip
    native().solve_systems([m.tapes for m in made], lanes, given, of_double)


def _made_of(member: MemberPrograms) -> _Made:
    if member not in _MADE:
        _MADE[member] = _Made(_on_tapes(member), lanes_of(member))
    return _MADE[member]


def _on_tapes(member: MemberPrograms) -> Any:
    """Return a copy of a member with its programs replaced by tapes."""
    executor = member.status.executor
    tapes: dict[str, Any] = {}
    for name in _PROGRAMS:
        replay: Replay | None = getattr(member, name)
        tapes[name] = None if replay is None else _tape_of(executor, replay)
    tapes["iterate"] = _tape_of(executor, member.iterate)
    return SimpleNamespace(**{**vars(member), **tapes})


def _tape_of(executor: Executor, recorded: Any) -> Any:
    if recorded.program is None:
        body: Callable[[], None] = recorded.body
        recorded.program = executor._tape(body)  # type: ignore[attr-defined]
    return recorded.program
