"""Links by NCCL, with communicators that record their calls."""

import threading
from types import SimpleNamespace
from typing import Any

import wollemi as wl
from wollemi.backends.cuda.runtime.nccl import NcclLinks, _give_back, _Health
from wollemi.core.distributed.threads import Stage


class Communicator:
    """Waits in ``abort`` for all members of the process, as NCCL may."""

    def __init__(self, all_members: threading.Barrier) -> None:
        self.all_members, self.aborts, self.ended = all_members, 0, threading.Event()

    def abort(self) -> None:
        self.aborts += 1
        self.all_members.wait(10)
        self.ended.set()


def test_each_member_aborts_its_own_communicator_once() -> None:
    size = 4
    stage, health, nccl = Stage(size), _Health(), SimpleNamespace()
    barrier = threading.Barrier(size)
    communicators = [Communicator(barrier) for _ in range(size)]
    members: Any = [
        NcclLinks(stage, wl.executor("reference"), rank, communicator, nccl, health)
        for rank, communicator in enumerate(communicators)
    ]
    for links in (*members, *members):
        links.abort()
    assert all(communicator.ended.wait(10) for communicator in communicators)
    assert [communicator.aborts for communicator in communicators] == [1] * size
    free: list[Any] = []
    _give_back(health, free, communicators)
    assert not free  # no later group takes them
