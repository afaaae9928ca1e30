"""Ctrl-C while a group works: a request that is sent with the next sum, not an exception."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_go_to(on_interrupt: Callable[[int], None]) -> Iterator[list[int]]:
    """Call ``handler(times)`` for every Ctrl-C inside, instead of raising KeyboardInterrupt.

    An exception in the middle of a message would leave the other members waiting. Nothing is done
    in threads other than the main thread, which receive no signals, and if another library handles
    the signals.

    Yields
    ------
    list
        A list with one element for each Ctrl-C so far.
    """
    asked: list[int] = []
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield asked
        return

    def handler(number: int, frame: object) -> None:
        asked.append(number)
        on_interrupt(len(asked))

    signal.signal(signal.SIGINT, handler)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
