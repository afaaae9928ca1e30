"""Which stream is captured, and how long the memory of a capture lives, without a GPU."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.cuda.runtime import capture
from wollemi.core import capture as core
from wollemi.core.errors import CaptureRefused
from wollemi.core.operation import OPERATIONS
from wollemi.core.store import Key, Store


class Error(RuntimeError):
    def __init__(self, status: int) -> None:
        super().__init__(str(status))
        self.status = status


def cuda(current: int, captured: set[int], error: Exception | None = None) -> Any:
    def is_capturing(stream: int) -> bool:
        if error is not None and stream == current:
            raise error
        return stream in captured

    runtime = SimpleNamespace(streamIsCapturing=is_capturing, CUDARuntimeError=Error)
    return SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=current), runtime=runtime)


def torch_with(stream: int, *, initialized: bool = True) -> Any:
    module: Any = ModuleType("torch")
    module.cuda = SimpleNamespace(is_initialized=lambda: initialized)
    module._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda ordinal: stream)
    return module


def test_the_captured_stream_is_cupys_or_else_pytorchs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", torch_with(7))
    assert capture.CapturedStream(cuda(5, {5, 7}), 0).find() == 5
    assert capture.CapturedStream(cuda(5, {7}), 0).find() == 7
    assert capture.CapturedStream(cuda(5, set()), 0).find() is None
    assert capture.CapturedStream(cuda(7, set()), 0).find() is None
    monkeypatch.setitem(sys.modules, "torch", torch_with(7, initialized=False))
    assert capture.CapturedStream(cuda(5, {7}), 0).find() is None


def test_work_that_would_break_a_capture_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    for error, words in (
        (Error(capture.IMPLICIT), "with stream"),
        (RuntimeError("invalidated"), "has ended that capture"),
    ):
        with pytest.raises(CaptureRefused, match=words):
            capture.CapturedStream(cuda(0, {5}, error), 0).find()
    with pytest.raises(Error, match="700"):  # a device that is lost is no capture
        capture.CapturedStream(cuda(0, set(), Error(700)), 0).find()


class Runtime:
    """The part of CUDA that captures use: user objects and their destructors."""

    class cudaUserObjectFlags:
        cudaUserObjectNoDestructorSync = 1

    class cudaUserObjectRetainFlags:
        cudaGraphUserObjectMove = 1

    def __init__(self) -> None:
        self.number = 1
        self.destroys: dict[int, Callable[[], Any]] = {}

    def cudaHostFn_t(self, address: int) -> int:
        return address

    def cudaUserObjectCreate(self, pointer: int, destroy: int, count: int, flags: int) -> Any:
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(destroy)
        return 0, lambda: function(pointer)

    def cudaGraphRetainUserObject(self, graph: int, made: Any, count: int, flags: int) -> Any:
        self.destroys[graph] = made
        return (0,)

    def cudaStreamGetCaptureInfo(self, stream: int) -> Any:
        return 0, "active", self.number, self.number, (), (), 0


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Runtime:
    made = Runtime()
    monkeypatch.setattr(capture, "runtime", lambda: made)
    return made


def test_memory_lives_until_the_driver_has_destroyed_the_graph(runtime: Runtime) -> None:
    captures = capture.Captures(SimpleNamespace(MemoryPool=object))
    first = captures.of(5)
    assert captures.of(5) is first
    assert not first.lifetime.has_ended()
    runtime.number = 2
    second = captures.of(5)
    assert second is not first
    assert second.pool is not first.pool
    assert len(captures) == 2
    runtime.destroys[1]()  # as the driver does in a thread of its own
    runtime.number = 3
    captures.of(5)
    assert len(captures) == 2


def test_scratch_memory_is_one_for_each_stream_of_a_capture(runtime: Runtime) -> None:
    found = capture.Captures(SimpleNamespace(MemoryPool=object)).of(5)
    assert found.scratch(1) is found.scratch(1)
    assert found.scratch(1) is not found.scratch(2)


def test_parts_that_are_kept_are_not_made_while_a_call_is_recorded() -> None:
    store, key = Store(), Key[int]("plan of a test")
    with core.recorded_call("A @ x"), pytest.raises(CaptureRefused, match=r"A @ x.*plan of a test"):
        store.get(key, lambda: 1)
    assert store.get(key, lambda: 2) == 2
    with core.recorded_call("A @ x"):
        assert store.get(key, lambda: 3) == 2


def test_refusals_name_the_public_call(monkeypatch: pytest.MonkeyPatch) -> None:
    A = wl.Csr(np.eye(3), executor="reference")
    # as a function of the package, whose frames are told by the name of their module
    scope: dict[str, Any] = {"__name__": "wollemi.of_a_test", "refused": core.refused}
    exec("def refuse(self, reason):\n    raise refused(reason)", scope)
    monkeypatch.setattr(type(A.executor), "refuse_capture", scope["refuse"])
    with pytest.raises(CaptureRefused, match=r"^Csr\.tocoo: .*makes a matrix"):
        A.tocoo()


def test_the_operations_that_make_what_is_kept_exist() -> None:
    names = {operation.name for operation in OPERATIONS}
    assert names | {name.partition(".")[0] for name in names} >= core.PREPARES
