"""Systems of a batch on threads: each thread has one system, and its programs become tapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.executor import Executor
from .level import native

if TYPE_CHECKING:
    from ...core.batch.systems import MemberPrograms, Systems
    from ...core.iteration import Replay

#: The programs of a member, by name.
_PROGRAMS = ("refresh", "measure", "restart", "finish", "judge")


def solve(members: Sequence[MemberPrograms], systems: Systems) -> None:
    """Solve all systems; verdicts are written to ``systems``."""
    real = members[0].status.norm.dtype
    native().solve_systems([_on_tapes(m) for m in members], systems, real == np.float64)


def _on_tapes(member: MemberPrograms) -> Any:
    """Return a member with tapes in place of its programs, made once."""
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
