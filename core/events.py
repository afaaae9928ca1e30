"""Events of executors and solves for watchers, besides the residuals."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .exchange import Exchange
    from .executor import Array, Executor


@dataclass(frozen=True)
class Copy:
    """A copy of an array.

    Attributes
    ----------
    source, target : str
        Names of executors, or ``"host"`` for NumPy arrays of a caller.
    nbytes : int
        Its size.
    """

    source: str
    target: str
    nbytes: int


@dataclass(frozen=True)
class Allocation:
    """Memory for an array.

    Attributes
    ----------
    executor : str
        Where it is.
    nbytes : int
        Its size.
    """

    executor: str
    nbytes: int


@dataclass(frozen=True)
class Application:
    """A product with an operator of a solve.

    Attributes
    ----------
    operator : {"A", "A_T", "AH", "M", "M_T"}
        The operator, its transpose or its adjoint, or the preconditioner or its transpose.
    columns : int
        Vectors that it was applied to at once.
    count : int
        How often it has been applied in this solve, this time included.
    """

    operator: str
    columns: int
    count: int


class _Memory:
    """Replaces the memory methods of a class of executors while a watcher is active."""

    NAMES = (
        "allocate",
        "zeros",
        "from_host",
        "to_host",
        "to_host_together",
        "copy",
        "copy_into",
        "overwrite_together",
        "write",
        "read",
    )

    def __init__(self, kind: type[Executor]) -> None:
        self.kind = kind
        #: Names of executors, and their watchers: equal executors have the same watchers.
        self.watchers: list[tuple[str, Any]] = []
        self.inside = threading.local()
        self.own = {name: vars(kind)[name] for name in self.NAMES if name in vars(kind)}
        for name in self.NAMES:
            setattr(kind, name, self._reporting(getattr(kind, name), getattr(self, name)))

    def remove(self) -> None:
        """Leave the class as it was."""
        for name in self.NAMES:
            if name in self.own:
                setattr(self.kind, name, self.own[name])
            else:
                delattr(self.kind, name)

    def _reporting(self, method: Any, events: Any) -> Any:
        @wraps(method)
        def reporting(executor: Executor, *arguments: Any) -> Any:
            # one of these methods may be made of others
            if getattr(self.inside, "now", False):
                return method(executor, *arguments)
            self.inside.now = True
            try:
                result = method(executor, *arguments)
            finally:
                self.inside.now = False
            for event in events(executor, result, *arguments):
                told = "copied" if isinstance(event, Copy) else "allocated"
                for name, watcher in list(self.watchers):
                    if name == executor.name:
                        getattr(watcher, told, _ignore)(event)
            return result

        return reporting

    def allocate(self, executor: Executor, result: Array, *_: Any) -> list[Any]:
        return [Allocation(executor.name, int(result.nbytes))]

    zeros = allocate

    def from_host(self, executor: Executor, result: Array, array: Any) -> list[Any]:
        return self._copied("host", executor.name, result, array)

    def to_host(self, executor: Executor, result: Any, array: Array) -> list[Any]:
        return self._copied(executor.name, "host", result, array)

    def to_host_together(self, executor: Executor, results: list[Any], *arrays: Any) -> list[Any]:
        pairs = zip(results, arrays, strict=True)
        return [event for pair in pairs for event in self.to_host(executor, *pair)]

    def copy(self, executor: Executor, result: Array, array: Array) -> list[Any]:
        nbytes, name = int(result.nbytes), executor.name
        return [Allocation(name, nbytes), Copy(name, name, nbytes)]

    def copy_into(self, executor: Executor, result: None, target: Array, source: Any) -> list[Any]:
        origin = executor.name if executor.owns(source) else "host"
        return [Copy(origin, executor.name, int(target.nbytes))]

    def overwrite_together(self, executor: Executor, result: None, *pairs: Any) -> list[Any]:
        return [event for pair in pairs for event in self.copy_into(executor, None, *pair)]

    def write(self, executor: Executor, result: None, exchange: Exchange) -> list[Any]:
        pairs = zip(exchange.written, exchange.host, strict=True)
        return self.overwrite_together(executor, None, *pairs)

    def read(self, executor: Executor, results: list[Any], exchange: Exchange) -> list[Any]:
        if executor.owns(results[0]):
            return []  # the memory is the host's
        return self.to_host_together(executor, results, *exchange.arrays)

    def _copied(self, source: str, target: str, result: Array, array: Array) -> list[Any]:
        both = isinstance(result, np.ndarray) and isinstance(array, np.ndarray)
        if result is array or (both and np.may_share_memory(result, array)):
            return []
        return [Copy(source, target, int(result.nbytes))]


def _ignore(event: object) -> None:
    """Nothing: this watcher has no method for it."""


#: Classes of executors that are watched.
_WATCHED: dict[type, _Memory] = {}

_changing = threading.Lock()


@contextmanager
def watch(executor: Executor | str, *watchers: Any) -> Iterator[None]:
    """Tell watchers of an executor's copies and allocations within a ``with`` block.

    Parameters
    ----------
    executor : Executor or str
        The executor; its copies and allocations are reported from every thread.
    watchers : Logger
        Their methods ``copied`` and ``allocated`` are called, with a :class:`Copy` and an
        :class:`Allocation`.

    Notes
    -----
    On CPUs NumPy arrays are native: an array that is used in place was not copied and is not
    reported. Memory that a library allocates inside a kernel is not seen. Without watchers there is
    no cost.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> counts = wl.loggers.Counts()
    >>> omp = wl.executor("omp")
    >>> with wl.loggers.watch(omp, counts):
    ...     y = omp.copy(np.ones(1000))
    >>> counts.copied_bytes == {(omp.name, omp.name): 8000}, counts.allocated_bytes
    (True, 8000)
    """
    from .registry import executor as executor_by_name

    place = executor_by_name(executor)
    added = [(place.name, watcher) for watcher in watchers]
    with _changing:
        memory = _WATCHED.get(type(place))
        if memory is None:
            memory = _WATCHED[type(place)] = _Memory(type(place))
        memory.watchers += added
    try:
        yield
    finally:
        with _changing:
            for pair in added:
                at = next(i for i, other in enumerate(memory.watchers) if other is pair)
                del memory.watchers[at]
            if not memory.watchers:
                memory.remove()
                del _WATCHED[type(place)]


def listeners(loggers: Sequence[Any], *events: str) -> list[Any]:
    """Return the members of ``loggers`` that have a method of their own for one of the events."""
    from .loggers import Logger

    return [
        logger
        for logger in loggers
        if any(
            getattr(type(logger), event, None) not in (None, getattr(Logger, event, None))
            for event in events
        )
    ]
