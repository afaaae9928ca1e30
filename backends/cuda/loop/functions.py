"""User-defined operators in recorded loops: their launches are captured with the loop.

The function launches kernels on the current stream, which is the loop's stream during its capture.
Launches on another stream and work on the host would silently be missing in the loop. Therefore,
each function is first recorded and replayed, and must give the results of plain calls.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ....core.errors import InvalidArgument
from ....core.executor import Array
from ....core.operations.function import apply_function
from ....core.replays import agrees, sample_vector
from ..runtime.graphs import OwnMemory
from ..table import kernel

if TYPE_CHECKING:
    from ....core.operator import LinearOperator
    from ...gpu.types import StreamHandle
    from ..runtime.executor import CudaExecutor

_REMEDY = (
    "Launch all kernels on the current stream (cupy.cuda.get_current_stream(), "
    "torch.cuda.current_stream()), keep no state between calls and read nothing back; or leave "
    "capture away"
)


@kernel(apply_function)
def apply(
    executor: CudaExecutor, A: LinearOperator, x: Array, y: Array, alpha: complex, beta: complex
) -> None:
    """Call the function on the current stream, which is also made PyTorch's current stream."""
    if executor.dry:  # the loop's vectors may be in use
        return
    with _pytorch_follows(executor, A):
        A.call(x, y, alpha, beta)


def require_recordable(executor: CudaExecutor, A: LinearOperator) -> None:
    """Raise InvalidArgument unless replaying the recorded function reproduces a call's result."""
    numbers = np.random.default_rng(0)
    m, n = A.shape
    given = [sample_vector(numbers, n, A.dtype) for _ in range(2)]
    stream = executor.xp.cuda.Stream(non_blocking=True)
    stream.wait_event(executor.xp.cuda.get_current_stream().record())
    with stream:
        x, y = executor.zeros((n, 1), A.dtype), executor.zeros((m, 1), A.dtype)
        wanted = []
        for values in given:
            executor.copy_into(x, values)
            apply(executor, A, x, y, 1.0, 0.0)
            wanted.append(executor.to_host(y))
        graph, memory = _recorded(executor, A, stream, x, y)
        for values, want in zip(given, wanted, strict=True):
            executor.copy_into(x, values)
            y.fill(0)
            graph.launch(stream)
            _compare(executor.to_host(y), want)
        stream.synchronize()
    del graph, memory


def _recorded(
    executor: CudaExecutor, A: LinearOperator, stream: StreamHandle, x: Array, y: Array
) -> tuple[Any, OwnMemory]:
    """Return the graph of a call, and the memory of its temporaries."""
    memory = OwnMemory(executor.xp.cuda)
    try:
        with executor.own_capture(), memory.used():
            stream.begin_capture()
            try:
                apply(executor, A, x, y, 1.0, 0.0)
            finally:
                graph = stream.end_capture()
    except Exception as error:  # each library has its own errors
        raise InvalidArgument(
            f"capture=True: the function cannot be recorded ({error}). {_REMEDY}"
        ) from error
    return graph, memory


def _compare(result: np.ndarray, want: np.ndarray) -> None:
    if agrees(result, want):
        return
    raise InvalidArgument(
        "capture=True: a replay of the recorded function gives other results than a call: the "
        f"function works on another stream or depends on the host. {_REMEDY}"
    )


@contextmanager
def _pytorch_follows(executor: CudaExecutor, A: LinearOperator) -> Iterator[None]:
    """Make PyTorch use the current stream and, during a capture, a separate memory pool."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        yield
        return
    stream = torch.cuda.ExternalStream(executor.stream_address(), device=executor.ordinal)
    with torch.cuda.stream(stream):
        if not executor.makes_graph:
            yield
            return
        pool = torch.cuda.MemPool()
        A.pools.append(pool)
        with torch.cuda.use_mem_pool(pool):
            yield
