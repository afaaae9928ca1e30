"""Events of executors and solves that watchers receive, in addition to residuals."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .executor import Array, Executor
    from .transfer import Transfer


@dataclass(frozen=True)
class Copy:
    """An array was copied.

    Attributes
    ----------
    source, target : str
        Names of executors, or ``"host"`` for NumPy arrays of a caller.
    nbytes : int
        Size of the array in bytes.
    """

    source: str
    target: str
    nbytes: int


@dataclass(frozen=True)
class Allocation:
    """Memory was allocated for an array.

    Attributes
    ----------
    executor : str
        Name of the executor.
    nbytes : int
        Size of the array in bytes.
    """

    executor: str
    nbytes: int


@dataclass(frozen=True)
class Application:
    """An operator of a solve was applied.

    Attributes
    ----------
    operator : {"A", "A_T", "AH", "M", "M_T"}
        The operator, its transpose or its adjoint, or the preconditioner or its transpose.
    columns : int
        Number of vectors in this application.
    count : int
        Number of applications in this solve, including this one.
    """

    operator: str
    columns: int
    count: int


class Watchers:
    """All registered watchers of executors.

    Attributes
    ----------
    active : tuple of (str, Logger)
        Pairs of the name of a watched executor and a watcher. Equal executors share their watchers.
        Each change replaces the tuple, so that threads read it without a lock.
    """

    def __init__(self) -> None:
        self.active: tuple[tuple[str, Any], ...] = ()
        self._changing = threading.Lock()

    def add(self, pairs: list[tuple[str, Any]]) -> None:
        """Add watchers."""
        with self._changing:
            self.active = (*self.active, *pairs)

    def remove(self, pairs: list[tuple[str, Any]]) -> None:
        """Remove exactly these watcher objects, not watchers that are equal to them."""
        with self._changing:
            left = list(self.active)
            for pair in pairs:
                del left[next(at for at, other in enumerate(left) if other is pair)]
            self.active = tuple(left)


WATCHERS = Watchers()


class _Inside(threading.local):
    """Whether a thread is inside a reported method; nested calls are not reported."""

    now = False


_INSIDE = _Inside()


def reports_memory(kind: type[Executor]) -> None:
    """Make the memory methods that an executor class defines report to watchers.

    Each executor class calls this function once. Without watchers it costs one additional call.
    """
    _report(kind, _EVENTS, lambda executor: executor)


def reports_copies(kind: type[Transfer]) -> None:
    """Make the methods of a transfer class report to watchers."""
    _report(kind, _EVENTS_OF_TRANSFERS, lambda transfer: transfer.executor)


def _report(
    kind: type,
    events_of: dict[str, tuple[Callable[..., list[Any]], int]],
    executor_of: Callable[[Any], Executor],
) -> None:
    for name, (events, operands) in events_of.items():
        method = vars(kind).get(name)
        if method is not None and not getattr(method, "__isabstractmethod__", False):
            setattr(kind, name, _reporting(method, events, operands, executor_of))


def _reporting(
    method: Any, events: Any, operands: int, executor_of: Callable[[Any], Executor]
) -> Any:
    """Return a method that reports; without watchers it adds one call and builds no tuple."""

    def watched(owner: Any, *arguments: Any) -> Any:
        if _INSIDE.now:
            return method(owner, *arguments)
        _INSIDE.now = True
        try:
            result = method(owner, *arguments)
        finally:
            _INSIDE.now = False
        executor = executor_of(owner)
        for event in events(owner, result, *arguments):
            told = "copied" if isinstance(event, Copy) else "allocated"
            for name, watcher in WATCHERS.active:
                if name == executor.name:
                    getattr(watcher, told, _ignore)(event)
        return result

    @wraps(method)
    def of_none(owner: Any, /) -> Any:
        if WATCHERS.active:
            return watched(owner)
        return method(owner)

    @wraps(method)
    def of_one(owner: Any, array: Any, /) -> Any:
        if WATCHERS.active:
            return watched(owner, array)
        return method(owner, array)

    @wraps(method)
    def of_two(owner: Any, first: Any, second: Any, /) -> Any:
        if WATCHERS.active:
            return watched(owner, first, second)
        return method(owner, first, second)

    @wraps(method)
    def of_any(owner: Any, *arguments: Any) -> Any:
        if WATCHERS.active:
            return watched(owner, *arguments)
        return method(owner, *arguments)

    return {0: of_none, 1: of_one, 2: of_two}.get(operands, of_any)


def _allocate(executor: Executor, result: Array, *_: Any) -> list[Any]:
    return [Allocation(executor.name, int(result.nbytes))]


def _from_host(executor: Executor, result: Array, array: Any) -> list[Any]:
    return _copied("host", executor.name, result, array)


def _to_host(executor: Executor, result: Any, array: Array) -> list[Any]:
    return _copied(executor.name, "host", result, array)


def _copy(executor: Executor, result: Array, array: Array) -> list[Any]:
    nbytes, name = int(result.nbytes), executor.name
    return [Allocation(name, nbytes), Copy(name, name, nbytes)]


def _copy_into(executor: Executor, result: None, target: Array, source: Any) -> list[Any]:
    origin = executor.name if executor.owns(source) else "host"
    return [Copy(origin, executor.name, int(target.nbytes))]


def _written(transfer: Transfer, result: None, *values: Any) -> list[Any]:
    pairs = zip(transfer.written, values or transfer.host, strict=True)
    return [event for pair in pairs for event in _copy_into(transfer.executor, None, *pair)]


def _read(transfer: Transfer, results: list[Any]) -> list[Any]:
    pairs = zip(results, transfer.arrays, strict=True)
    return [event for pair in pairs for event in _to_host(transfer.executor, *pair)]


def _copied(source: str, target: str, result: Array, array: Array) -> list[Any]:
    both = isinstance(result, np.ndarray) and isinstance(array, np.ndarray)
    if result is array or (both and np.may_share_memory(result, array)):
        return []
    return [Copy(source, target, int(result.nbytes))]


#: For each method of executors: the function that returns the events of a call, and the number of
#: operands of the method.
_EVENTS: dict[str, tuple[Callable[..., list[Any]], int]] = {
    "allocate": (_allocate, 2),
    "zeros": (_allocate, 2),
    "from_host": (_from_host, 1),
    "to_host": (_to_host, 1),
    "copy": (_copy, 1),
    "copy_into": (_copy_into, 2),
}

#: The method takes any number of operands.
_ANY = -1

#: For each method of transfers: the same pair.
_EVENTS_OF_TRANSFERS: dict[str, tuple[Callable[..., list[Any]], int]] = {
    "write": (_written, _ANY),
    "read": (_read, 0),
    "peek": (_read, 0),
}


def _ignore(event: object) -> None:
    """Ignore an event for which the watcher has no method."""


@contextmanager
def watch(executor: Executor | str, *watchers: Any) -> Iterator[None]:
    """Report an executor's copies and allocations to watchers within a ``with`` block.

    Parameters
    ----------
    executor : Executor or str
        The executor; copies and allocations of all threads are reported.
    watchers : Logger
        Their methods ``copied`` and ``allocated`` are called with a :class:`Copy` and an
        :class:`Allocation`.

    Notes
    -----
    On CPUs NumPy arrays are native: an array that is used in place is not copied and not reported.
    Memory that a library allocates inside a kernel is not reported either.

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
    WATCHERS.add(added)
    try:
        yield
    finally:
        WATCHERS.remove(added)


def listeners(loggers: Sequence[Any], *events: str) -> list[Any]:
    """Return the loggers that override the method of at least one of the events."""
    from .loggers import Logger

    return [
        logger
        for logger in loggers
        if any(
            getattr(type(logger), event, None) not in (None, getattr(Logger, event, None))
            for event in events
        )
    ]
