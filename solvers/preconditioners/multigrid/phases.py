"""The time of a set-up or an update by phase."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter


class Phases(dict[str, float]):
    """Seconds by the name of the phase; a phase within another one counts by itself alone.

    Examples
    --------
    >>> phases = Phases()
    >>> with phases.timed("smoothers"), phases.timed("coarsest"):
    ...     pass
    >>> sorted(phases)
    ['coarsest', 'smoothers']
    """

    def __init__(self) -> None:
        super().__init__()
        #: The seconds of inner phases, for each phase that runs at present.
        self._within: list[float] = []

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the time of a block to a phase; its work on a device may end later."""
        began = perf_counter()
        self._within.append(0.0)
        try:
            yield
        finally:
            within = self._within.pop()
        elapsed = perf_counter() - began
        self[name] = self.get(name, 0.0) + elapsed - within
        if self._within:
            self._within[-1] += elapsed
