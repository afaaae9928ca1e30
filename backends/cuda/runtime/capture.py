"""Stream captures of users (PyTorch, CuPy or another library): their memory and lifetime.

Memory that recorded launches use must be kept as long as the graph may be replayed. Each capture
has its own memory pool. The driver reports when the graph and all copies of it are gone: a graph
owns a *user object* with ``sem_post`` on a semaphore as its destructor. No Python code runs in the
driver's threads; the pool is dropped when the next capture begins.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from ....core.capture import refused
from ...gpu.scratch import Scratch
from .graphs import checked, runtime

#: cudaErrorStreamCaptureImplicit: the legacy default stream would wait for a captured stream.
IMPLICIT = 906
#: Bytes for a semaphore of the C library; its own type has 32.
_SEMAPHORE = 64


@cache
def _libc() -> ctypes.CDLL:
    library = ctypes.CDLL(None)
    library.calloc.restype = ctypes.c_void_p
    library.calloc.argtypes = (ctypes.c_size_t, ctypes.c_size_t)
    library.sem_init.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_uint)
    library.sem_trywait.argtypes = (ctypes.c_void_p,)
    library.free.argtypes = (ctypes.c_void_p,)
    return library


class Lifetime:
    """Detects whether a graph, or any copy of it, still exists.

    Parameters
    ----------
    graph : cudaGraph_t
        A graph whose capture is in progress.
    """

    def __init__(self, graph: Any) -> None:
        library, cuda = _libc(), runtime()
        self._semaphore = library.calloc(1, _SEMAPHORE)
        library.sem_init(self._semaphore, 0, 0)
        destructor = ctypes.cast(library.sem_post, ctypes.c_void_p).value
        no_wait = cuda.cudaUserObjectFlags.cudaUserObjectNoDestructorSync
        made = checked(
            cuda.cudaUserObjectCreate(
                self._semaphore, cuda.cudaHostFn_t(destructor), 1, int(no_wait)
            )
        )
        move = cuda.cudaUserObjectRetainFlags.cudaGraphUserObjectMove
        checked(cuda.cudaGraphRetainUserObject(graph, made, 1, int(move)))

    def has_ended(self) -> bool:
        """Return whether the graph is gone; do not call this again after it returned True."""
        if _libc().sem_trywait(self._semaphore) != 0:
            return False
        _libc().free(self._semaphore)
        return True


class Capture:
    """Memory for the work of one capture, and objects to keep alive with it.

    Parameters
    ----------
    cuda : module
        ``cupy.cuda``.
    lifetime : Lifetime
        The lifetime of the graph.
    """

    def __init__(self, cuda: Any, lifetime: Lifetime) -> None:
        self.pool = cuda.MemoryPool()
        self.lifetime = lifetime
        self._scratch: dict[int, Scratch] = {}
        self._kept: dict[int, object] = {}

    def scratch(self, stream: int) -> Scratch:
        """Return the scratch memory of a stream within this capture."""
        return self._scratch.setdefault(stream, Scratch())

    def keep(self, thing: object) -> None:
        """Keep an object alive as long as the graph exists."""
        self._kept[id(thing)] = thing


class Captures:
    """The captures on one device that may still be replayed.

    Parameters
    ----------
    cuda : module
        ``cupy.cuda``.
    """

    def __init__(self, cuda: Any) -> None:
        self._cuda, self._lock = cuda, threading.Lock()
        self._known: dict[int, Capture] = {}

    def of(self, stream: int) -> Capture:
        """Return the capture that a stream currently belongs to."""
        _, number, graph, *_ = checked(runtime().cudaStreamGetCaptureInfo(stream))
        with self._lock:
            result = self._known.get(int(number))
            if result is None:
                ended = [key for key, one in self._known.items() if one.lifetime.has_ended()]
                for key in ended:
                    del self._known[key]
                made = Capture(self._cuda, Lifetime(graph))
                result = self._known[int(number)] = made
            return result

    def __len__(self) -> int:
        return len(self._known)


@contextmanager
def allowing_allocations() -> Iterator[None]:
    """Let this thread allocate memory and load kernels while a stream is captured.

    PyTorch's capture mode forbids both. Neither is recorded, and neither waits for the capture.
    """
    cuda = runtime()
    relaxed = cuda.cudaStreamCaptureMode.cudaStreamCaptureModeRelaxed
    before = checked(cuda.cudaThreadExchangeStreamCaptureMode(relaxed))
    try:
        yield
    finally:
        checked(cuda.cudaThreadExchangeStreamCaptureMode(before))


class CapturedStream:
    """Finds the captured stream that records this thread's work, if there is one.

    This is CuPy's current stream. Within ``torch.cuda.graph``, which uses a stream unknown to CuPy,
    it is PyTorch's current stream: otherwise, work would run immediately and be missing from the
    graph.

    Parameters
    ----------
    cuda : module
        ``cupy.cuda``.
    ordinal : int
        The number of the device.
    """

    def __init__(self, cuda: Any, ordinal: int) -> None:
        self._current = cuda.get_current_stream
        self._is_capturing: Callable[[int], bool] = cuda.runtime.streamIsCapturing
        self._ordinal = ordinal
        self._error = cuda.runtime.CUDARuntimeError
        self._torchs: Callable[[int], int] | None = None

    def find(self) -> int | None:
        """Return the handle of the stream, or None.

        Raises
        ------
        CaptureRefused
            If work on CuPy's current stream, the legacy default stream, would break the capture of
            another stream, or if an error has ended the capture.
        """
        stream = self._current().ptr
        try:
            if self._is_capturing(stream):
                return int(stream)
        except self._error as error:
            if error.status != IMPLICIT:
                raise
            raise refused(
                "this call goes to the default stream, which waits for the captured one; capture "
                "with the stream as the current one: with stream: ..."
            ) from None
        except RuntimeError:
            raise refused("an error has ended that capture already") from None
        torchs = self._torchs
        if torchs is None and "torch" in sys.modules:
            torchs = self._find_torchs()
        if torchs is None:
            return None
        other = torchs(self._ordinal)
        return int(other) if other != stream and self._is_capturing(other) else None

    def _find_torchs(self) -> Callable[[int], int] | None:
        """Return the function that returns PyTorch's current stream, once PyTorch uses the GPU."""
        torch = sys.modules.get("torch")
        cuda = getattr(torch, "cuda", None)
        if torch is not None and cuda is not None and cuda.is_initialized():
            self._torchs = torch._C._cuda_getCurrentRawStream
        return self._torchs
