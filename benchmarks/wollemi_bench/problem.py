"""The task of all contenders of a contest, and the contenders; sent to other processes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from wollemi.core.executor import Executor
from wollemi.core.operation import Cost

from .clocks import Capture
from .peers import Absent, Peer

#: The prefix of the names of wollemi's contenders.
OURS = "wollemi"

#: Backends with devices that have events and graphs of CuPy.
GPUS = ("cuda", "hip")


@dataclass
class OfferFacts:
    """The properties of a contender besides its times.

    Attributes
    ----------
    cost : Cost or None
        Bytes and flops of a call.
    kernel : str
        Which of our kernels runs.
    notes : list of str
        Other remarks.
    iterations : int or None
        That a call does.
    residual : float or None
        The true relative residual after it.
    first : float or None
        Seconds of the first call, with everything that comes before it once.
    peak_memory : int or None
        The most bytes that were held.
    method : str
        By which clock it is timed.
    """

    cost: Cost | None = None
    kernel: str = ""
    notes: list[str] = field(default_factory=list)
    iterations: int | None = None
    residual: float | None = None
    first: float | None = None
    peak_memory: int | None = None
    method: str = "wall"


@dataclass(frozen=True)
class Offer:
    """A contender before it is made ready.

    Attributes
    ----------
    name : str
        Its name.
    make : callable
        Does one-time work (conversion, plan) and returns the function to time. The operands are
        already on the library's device. The operands are already where the library wants them.
    synchronize, to_host : callable
        As in :class:`~.timing.Contender`.
    check : callable or None
        Returns the function whose result is checked, if that is not the timed one.
    wrong : callable or None
        As :meth:`Problem.wrong`, for one that is right in another sense than the others.
    facts : callable
        Called once after a call; must not be timed.
    finish : callable
        Takes the last result and the facts, and completes them after everything was timed.
    capture : callable or None
        On a GPU: the function that captures calls for replay, if they can be captured.
    host_clock : bool
        On a GPU: time by the host's clock, because calls wait for the device themselves.
    told : bool
        Calls return their own seconds.
    """

    name: str
    make: Callable[[], Callable[[], Any]]
    synchronize: Callable[[], None] = field(default=lambda: None)
    to_host: Callable[[Any], Any] = np.asarray
    check: Callable[[], Callable[[], Any]] | None = None
    wrong: Callable[[Any], str] | None = None
    facts: Callable[[], OfferFacts] = OfferFacts
    finish: Callable[[Any, OfferFacts], None] = field(default=lambda result, facts: None)
    capture: Capture | None = None
    host_clock: bool = False
    told: bool = False


@dataclass(frozen=True)
class Library:
    """A library that takes part, ours or another, in a process of its own where that is wanted.

    Attributes
    ----------
    name : str
        Of that process.
    executor : Executor or None
        The executor of wollemi.
    peer : Peer or None
        The other library, if it is not wollemi's.
    gpu : bool
        Whether the work is done by a GPU of CUDA or HIP.
    """

    name: str
    executor: Executor | None = None
    peer: Peer | None = None
    gpu: bool = False


class Problem(ABC):
    """The task of all contenders of a contest.

    It is pickled, with its arrays, when a contender has a process of its own.

    Attributes
    ----------
    S : scipy.sparse.csr_array
        The matrix.
    format : str
        Of our matrix.
    kind : str
        The method of peers that it needs: ``spmv``, ``solve``, ``ml``, ``side``; "" if it is none
        of them.
    per : int
        Iterations in a call: times, bytes and flops of records belong to one.
    notes : sequence of str
        Remarks for the records.
    """

    S: sp.csr_array
    format: str = "csr"
    kind: str = ""
    per: int = 1
    notes: Sequence[str] = ()

    def lacking(self, library: Library) -> str:
        """Return why a library need not even be asked, or ""."""
        if library.peer is None:
            return ""
        try:
            library.peer.version()
        except Absent as error:
            return str(error)
        if self.kind and not library.peer.has(self.kind):
            return f"its {self.kind} is not compared"
        return ""

    @abstractmethod
    def ours(self, executor: Executor) -> list[Offer]:
        """Return wollemi's offers; the first is the default of a user."""

    @abstractmethod
    def theirs(self, peer: Peer) -> list[Offer]:
        """Return the offers of a library; raises Absent if it has none."""

    @abstractmethod
    def wrong(self, result: Any) -> str:
        """Return the error of a result, as a NumPy array, or ""."""

    def forget(self) -> None:  # noqa: B027  some need no arrays for that
        """Free the expected results of :meth:`wrong`: everything was checked."""

    def concluded(self, outcomes: list[Any]) -> list[Any]:
        """Return the content of records: outcomes, the first of them wollemi's."""
        return outcomes

    def offers(self, library: Library) -> list[Offer]:
        """Return the offers of a library.

        Raises
        ------
        Absent
            If that is nothing.
        """
        if library.peer is None:
            assert library.executor is not None
            return self.ours(library.executor)
        return self.theirs(library.peer)


def offer_of(peer: Peer, call: Callable[[], Any], name: str = "", **more: Any) -> Offer:
    """Return the offer of a library, under its name or another one."""
    return Offer(
        name or peer.name,
        lambda: call,
        peer.synchronize,
        peer.to_host,
        **{"capture": peer.capture, "host_clock": peer.host_clock, **more},
    )


def libraries(executor: Executor, peers: Sequence[Peer]) -> list[Library]:
    """Return us on an executor, and peers."""
    gpu = executor.backend in GPUS
    return [
        Library(OURS, executor=executor, gpu=gpu),
        *(Library(peer.name, peer=peer, gpu=gpu) for peer in peers),
    ]
