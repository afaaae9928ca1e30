"""Whether a user's function can be recorded is found out by a replay, here without a GPU."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import wollemi as wl
from wollemi.backends.cuda.loop import functions
from wollemi.backends.cuda.runtime.executor import CudaExecutor
from wollemi.core.errors import InvalidArgument


class Stream:
    """A stream whose graph runs ``replay`` when it is launched."""

    ptr = 5

    def __init__(self, replay: Callable[[], None], fails: bool) -> None:
        self.replay, self.fails = replay, fails

    def __enter__(self) -> None:
        pass

    def __exit__(self, *reason: object) -> None:
        pass

    def wait_event(self, event: object) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def record(self) -> object:
        return self

    def begin_capture(self) -> None:
        if self.fails:
            raise RuntimeError("the stream is capturing")

    def end_capture(self) -> Any:
        return SimpleNamespace(launch=lambda stream: self.replay())


def executor(A: Any, *, replays: bool = True, fails: bool = False) -> Any:
    """Return an executor of NumPy's arrays; its graphs repeat the call, or do nothing."""
    held: list[Any] = []

    def zeros(shape: Any, dtype: Any) -> Any:
        held.append(np.zeros(shape, dtype))
        return held[-1]

    def replay() -> None:
        if replays:
            A.call(*held, 1.0, 0.0)

    stream = Stream(replay, fails)
    cuda = SimpleNamespace(
        Stream=lambda non_blocking: stream,
        get_current_stream=lambda: stream,
        MemoryPool=lambda: SimpleNamespace(malloc=None),
        using_allocator=lambda malloc: nullcontext(),
    )
    return SimpleNamespace(
        xp=SimpleNamespace(cuda=cuda),
        name="cuda:0",
        dry=False,
        zeros=zeros,
        copy_into=lambda target, source: np.copyto(target, source),
        to_host=lambda array: array.copy(),
        own_capture=nullcontext,
    )


def operator(function: Any, dtype: str = "float64") -> wl.LinearOperator:
    return wl.LinearOperator((4, 4), function, dtype=dtype, executor="reference", capture=True)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_a_function_whose_replay_equals_its_call_is_taken(dtype: str) -> None:
    A = operator(lambda x: 3 * x, dtype)
    functions.require_recordable(executor(A), A)
    B = operator(lambda x, out: np.multiply(x, 3, out=out), dtype)
    functions.require_recordable(executor(B), B)


def test_work_that_is_missing_in_the_graph_is_told() -> None:
    A = operator(lambda x: 3 * x)
    with pytest.raises(InvalidArgument, match="gives other results"):
        functions.require_recordable(executor(A, replays=False), A)
    calls: list[int] = []

    def stateful(x: Any) -> Any:
        calls.append(1)
        return len(calls) * x

    B = operator(stateful)
    with pytest.raises(InvalidArgument, match="gives other results"):
        functions.require_recordable(executor(B), B)


def test_a_function_that_breaks_the_capture_is_told() -> None:
    A = operator(lambda x: 3 * x)
    with pytest.raises(InvalidArgument, match="cannot be recorded"):
        functions.require_recordable(executor(A, fails=True), A)


def test_a_compiled_function_of_the_host_is_refused() -> None:
    A = operator(1 << 20)
    with pytest.raises(InvalidArgument, match="cannot read the memory of cuda:0"):
        CudaExecutor._require_function(executor(A), A)
    CudaExecutor._require_function(executor(A), operator(lambda x: x))


def test_a_rehearsal_of_a_loop_calls_no_function() -> None:
    on: Any = SimpleNamespace(dry=True)
    A = operator(lambda x: 1 / 0)
    functions.apply(on, A, np.ones((4, 1)), np.ones((4, 1)), 1.0, 0.0)
