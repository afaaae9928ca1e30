"""Operations with sums in arrays, by members that are threads with emulated GPUs.

NumPy does the work of the kernels that meet: of the machine that emulates waves there is one.
"""

from __future__ import annotations

import ctypes
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.cuda.peers.links import Peers
from wollemi.core.distributed import group as groups
from wollemi.core.distributed.host_links import HostLinks
from wollemi.core.distributed.threads import ThreadLinks
from wollemi.core.operations import gmres
from wollemi.core.status import Status

from ..needs import tool
from .build import compiler
from .executor import LockstepExecutor, native

pytestmark = tool(compiler() is not None, "no C++ compiler: install g++, or set CXX")

ONE_AT_A_TIME = threading.Lock()


def memory(place: int, count: int, dtype: Any) -> np.ndarray[Any, Any]:
    size = int(count) * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(place), dtype)


class Device:
    """A device that names the kernels of links, and has all others."""

    def __init__(self, other: Any) -> None:
        self._other = other

    def function(self, name: str, texts: Any) -> str:
        return name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._other, name)


class Member(LockstepExecutor):
    """An emulated GPU; members take turns."""

    def __init__(self) -> None:
        super().__init__(32)
        self._device: Any = Device(self._device)

    def make_current(self) -> None:
        """Nothing: there is one device."""

    def launch(self, function: Any, blocks: Any, arguments: Any, *more: Any) -> None:
        if not isinstance(function, str):
            with ONE_AT_A_TIME:
                super().launch(function, blocks, arguments, *more)
        elif function.startswith("peer_shrunk"):
            columns, stop, after, before, part, marks = arguments
            kind = function[-2:]
            shrunk = memory(after, columns, kind) < part * memory(before, columns, kind)
            memory(marks, columns, "u1")[:] = shrunk & (memory(stop, columns, "u1") == 0)
        else:
            links: Any = SEEN[threading.current_thread().name]
            links.meet(function[-2:], *arguments)


#: The links of the members' threads.
SEEN: dict[str, Any] = {}


class EmulatedPeers(Peers, ThreadLinks):
    """Links of a thread with the kernels of links by NumPy."""

    fuses = False
    sum, largest, norm = HostLinks.sum, HostLinks.largest, HostLinks.norm
    send, receive = HostLinks.send, HostLinks.receive

    def __init__(self, stage: Any, executor: Any, rank: int, block: int) -> None:
        ThreadLinks.__init__(self, stage, executor, rank, block)
        self.gpu = executor
        self.make_windows(np.zeros(1, np.int32))
        self.messages: list[int] = []

    def meets(self, operation: Any, arguments: Any) -> bool:
        return False

    def complete(self, stream: Any = None) -> None:
        pass

    def meet(self, kind: str, record: int, *given: Any) -> None:
        """Do the work of ``peer_totals``."""
        *parts, marks, columns = given
        marked = memory(marks, columns, "u1") if marks else np.ones(columns, np.uint8)
        if not marked.any():
            return
        self.messages.append(parts[1] + parts[5])
        for place, count, how, width in (parts[:4], parts[4:]):
            numbers = memory(place, count, kind)
            found = self.all(numbers.copy())
            total = sum(found[1:], found[0])
            if how == 2:
                total = np.sqrt(sum((part * part for part in found[1:]), found[0] * found[0]))
            of = marked[np.arange(count) // width % columns] != 0
            self.all(None)
            numbers[of] = total[of]


def orthogonalized(dtype: Any, lost: tuple[int, ...]) -> tuple[list[Any], list[int]]:
    """Return the numbers of both members after a Gram-Schmidt step, and the sizes of messages."""
    n, k, s = 70, 3, 4
    group = wl.distributed.Group([Member(), Member()])

    def program(executor: Any) -> Any:
        rank = executor.links.rank
        SEEN[threading.current_thread().name] = executor.links
        rng = np.random.default_rng(rank)
        basis = np.linalg.qr(rng.standard_normal((n, s)))[0].T / np.sqrt(2)
        basis = np.repeat(basis[:, :, None], k, axis=2).astype(dtype)
        w = rng.standard_normal((n, k)).astype(dtype)
        for c in lost:  # nearly in the space
            w[:, c] = basis[:3, :, c].sum(axis=0) + 1e-3 * w[:, c]
        status = Status(executor, k, dtype)
        put = executor.from_host
        h, correction = (executor.zeros((s, k), dtype) for _ in range(2))
        real = np.zeros(0, dtype).real.dtype
        before, after = (executor.zeros((k,), real) for _ in range(2))
        basis, w, step = put(basis), put(w), put(np.array([2]))
        run = executor.run
        run(gmres.project, basis, w, h, before, step, status)
        run(gmres.subtract, basis, w, h, after, step, status)
        run(gmres.reproject, basis, w, correction, before, after, step, status)
        run(gmres.resubtract, basis, w, h, correction, before, after, step, status)
        numbers = [np.array(a) for a in (h[:3], before, after, w)]
        return numbers, list(getattr(executor.links, "messages", ()))

    found = group.run(program)
    return [numbers for numbers, _ in found], found[0][1]


@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
@pytest.mark.parametrize("lost", [(), (1,)])
def test_sums_of_an_operation_are_one_message(
    dtype: Any, lost: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, _ = orthogonalized(dtype, lost)
    monkeypatch.setattr(groups, "ThreadLinks", EmulatedPeers)
    found, messages = orthogonalized(dtype, lost)
    for mine, theirs in zip(found, expected, strict=True):
        for number, other in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(number, other)
    words = 2 if dtype is np.complex64 else 1
    twice = [12 * words, 3] if lost else []  # members that lose no digits send nothing more
    assert messages == [12 * words + 3, 3, *twice]


def test_arrays_of_another_kind_have_messages_of_their_own() -> None:
    links: Any = EmulatedPeers.__new__(EmulatedPeers)
    long = native(np.zeros((2000, 1)))
    operation = SimpleNamespace(
        parameters=[SimpleNamespace(name="h")], totals={"h": "sum"}, changed=None
    )
    assert not links._run_with_totals(None, operation, (long,))
    operation.changed = lambda arguments: None
    assert not links._run_with_totals(None, operation, (long[:10],))
