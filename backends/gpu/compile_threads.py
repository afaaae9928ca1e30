"""Threads that compile programs ahead of their first use."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue

from ...core.host import cores

#: Upper bound of threads: a solve has some hundred programs, and the longest takes a second.
MOST = 12


class CompileThreads:
    """Compiles programs in threads ahead of use, and hands them to the first user.

    Run-time compilers release Python's lock while they work: two threads compiled 32 programs in
    0.52 of the time of one.

    Parameters
    ----------
    threads : int, optional
        The number of threads; by default one less than this process's processors, at least 1.

    Examples
    --------
    >>> from wollemi.backends.gpu.compile_threads import CompileThreads
    >>> threads = CompileThreads()
    >>> threads.begin("kernel", lambda: b"code")
    >>> threads.result("kernel")
    b'code'
    >>> threads.result("another") is None
    True
    """

    def __init__(self, threads: int | None = None) -> None:
        self.most = threads or min(MOST, max(1, cores() - 1))
        self._begun: dict[str, Future[bytes]] = {}
        self._waiting: SimpleQueue[tuple[Future[bytes], Callable[[], bytes]] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._ended = False

    def begin(self, name: str, make: Callable[[], bytes]) -> None:
        """Queue a program for the threads, once per name."""
        with self._lock:
            if name in self._begun or self._ended:
                return
            future = self._begun[name] = Future()
            self._waiting.put((future, make))
            if len(self._threads) < self.most:
                # Not concurrent.futures: at exit, its threads would still compile all queued
                # programs.
                thread = threading.Thread(target=self._work, name="wollemi-compile", daemon=True)
                if not self._threads:
                    atexit.register(self.end)
                self._threads.append(thread)
                thread.start()

    def result(self, name: str) -> bytes | None:
        """Return a program that a thread has made or is making; None if it was not started."""
        with self._lock:
            future = self._begun.pop(name, None)
        if future is None or future.cancel():
            return None
        return future.result()

    def has(self, name: str) -> bool:
        """Return whether a finished program is waiting to be fetched."""
        with self._lock:
            future = self._begun.get(name)
        return future is not None and future.done() and not future.cancelled()

    def end(self) -> None:
        """Start no further program, and wait for the current ones."""
        with self._lock:
            self._ended = True
            begun, threads = [*self._begun.values()], [*self._threads]
        for future in begun:
            future.cancel()
        for _ in threads:
            self._waiting.put(None)
        for thread in threads:
            thread.join()

    def _work(self) -> None:
        while (item := self._waiting.get()) is not None:
            future, make = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(make())
            except BaseException as error:  # re-raised when the program is fetched
                future.set_exception(error)
