"""The executor that computes on the cores of this machine."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from ...core.devices.processor import processor
from ...core.dtypes import INDEX_DTYPES, VALUE_DTYPES
from ...core.energy import EnergyCounter, package_counter
from ...core.errors import InvalidArgument
from ...core.executor import Array, Executor
from ...core.foreign import ForeignProduct, Handlers
from ...core.host import cpu_name, memory
from ...core.links import drive_alone
from ...core.program import recording
from ...core.transfer import HostArray, HostTransfer
from ...core.triangle_rules import rules_of
from . import foreign
from .batch import solve
from .batch_direct import factorize, solve_factored
from .kernels import called, kernel
from .level import level, native
from .scans import SHARED_COPY, NativeScans
from .table import algorithms
from .threads import default_threads
from .triangular import rules

if TYPE_CHECKING:
    from ...core.batch.factors import BatchFactors, FactoredSystems, Layout
    from ...core.batch.systems import MemberPrograms, Systems
    from ...core.distributed.ranks import RankLinks
    from ...core.iteration import Iteration, Replay
    from ...core.links import Links
    from ...core.operator import LinearOperator

#: Alignment of large arrays, in bytes. A 64-byte vector register that begins in the middle of a
#: cache line touches two lines: unaligned, bicgstab.update takes 1.45 times as long on vectors of
#: 4,000 elements in the second-level cache.
CACHE_LINE = 64

#: The ``running`` flag of the status when a tape is played once, whatever the real status.
_ONCE = np.ones(1, np.int32)


def _links_by_memory(host: RankLinks) -> Links | None:
    """Return links to the other ranks of this host through shared memory, or None."""
    from .ranks import joined_by_memory

    return joined_by_memory(host)


class OmpTransfer(HostTransfer):
    """Transfers of arrays, which are refused while an iteration is recorded."""

    def write(self, *values: HostArray) -> None:
        """Overwrite small arrays."""
        if native().recording() or recording() is not None:
            raise RuntimeError(
                "arrays that the host overwrites within an iteration are not recorded"
            )
        for target, source in zip(self.written, values or self.host, strict=True):
            target[...] = source


class OmpExecutor(Executor):
    """The cores of this machine: threads that share loops, and vector units.

    Parameters
    ----------
    threads : int, optional
        Number of threads of kernels. The default is ``OMP_NUM_THREADS``, or all cores that this
        process may use.

    Notes
    -----
    Results repeat bit for bit for a given number of threads.

    Kernels are built for several instruction-set levels, and the widest level that the processor
    supports is used. ``WOLLEMI_OMP_LEVEL=v3`` selects another level.

    The threads are wollemi's own: no OpenMP library is loaded, and ``OMP_NUM_THREADS`` is the only
    OpenMP environment variable that is read. After a loop, a thread spins for up to 0.1 ms before
    it sleeps. If other programs use the cores, the thread sleeps at once, and the calling thread
    does the work that no other thread has begun. Python threads that compute at the same time have
    separate worker threads, up to two per core. A child of ``os.fork`` starts its own worker
    threads when it needs them.

    Ctrl-C ends a long product within a fraction of a second. The contents of ``out`` are then
    undefined; matrices and operands are unchanged.

    Examples
    --------
    >>> import wollemi as wl
    >>> wl.OmpExecutor(threads=2)
    <OmpExecutor omp:2>
    """

    kernels = kernel
    transfer_type = OmpTransfer
    algorithms = algorithms
    link_ranks = staticmethod(_links_by_memory)
    scans = NativeScans()

    def __init__(self, threads: int | None = None) -> None:
        self.threads = default_threads() if threads is None else int(threads)
        if self.threads < 1:
            raise InvalidArgument(f"threads: expected at least 1, got {threads}")
        self._context = native().Context(self.threads)  # the native executor, for native kernels

    # ---- identity

    @property
    def name(self) -> str:
        """The name from which :func:`wollemi.executor` makes an equal executor."""
        return f"omp:{self.threads}"

    @property
    def properties(self) -> dict[str, Any]:
        """Properties of the device: processor, memory, instruction-set level, threads, dtypes."""
        return {
            "name": cpu_name(),
            "memory": memory(),
            "simd": level(),
            "threads": self.threads,
            "dtypes": VALUE_DTYPES + INDEX_DTYPES,
        }

    @property
    def device_key(self) -> tuple[str, str]:
        """The kind and the name of the processor, which identify its file of constants."""
        return "cpu", processor()

    def energy_counter(self) -> EnergyCounter | None:
        """Return the processor's energy counter, or None if this process may not read it."""
        return package_counter()

    # ---- memory

    @property
    def xp(self) -> Any:
        """NumPy."""
        return np

    def allocate(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return an uninitialized, C-contiguous array, cache-line aligned from 16 KB on.

        NumPy requests huge pages for arrays of 4 MB or more.
        """
        return _aligned(np.empty, shape, dtype)

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return a C-contiguous array of zeros, cache-line aligned from 16 KB on."""
        return _aligned(np.zeros, shape, dtype)

    def from_host(self, array: np.ndarray[Any, Any]) -> Array:
        """Return ``array`` itself, or a copy if kernels cannot read it directly."""
        if self.owns(array):
            return array
        return np.require(array, array.dtype.newbyteorder("="), "A")

    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        """Return ``array`` itself: it is already on the host."""
        host: np.ndarray[Any, Any] = array
        return host

    def state_bytes(self, state: object) -> int:
        """Return the size of a native state in bytes; 0 for other objects."""
        module = native()
        for measure in (module.csr_state_bytes, module.pattern_plan_bytes):
            found = measure(self, state)
            if found is not None:
                return int(found)
        return 0

    def text_entries(
        self, text: bytes, shape: tuple[int, int], row: Array, col: Array, values: Array
    ) -> int | None:
        """Parse plain lines of a Matrix Market file in parallel."""
        found: int | None = native().text_entries(self, text, *shape, row, col, values)
        return found

    def copy(self, array: Array) -> Array:
        """Return a C-contiguous copy; threads share the copying of a large array."""
        if array.nbytes < SHARED_COPY or not array.flags.c_contiguous or native().recording():
            return np.array(array, order="C")
        made = self.allocate(array.shape, array.dtype)
        self._copy_bytes(array, made)
        return made

    def copy_into(self, target: Array, source: Array) -> None:
        """Overwrite ``target`` with ``source`` of the same shape and dtype."""
        if native().recording() or recording() is not None:
            raise RuntimeError(
                "copy_into within an iteration cannot be recorded; run vector.axpby instead"
            )
        if target.nbytes < SHARED_COPY:
            target[...] = source
            return
        alike = source.dtype == target.dtype and source.shape == target.shape
        contiguous = source.flags.c_contiguous and target.flags.c_contiguous
        apart = not np.may_share_memory(source, target)
        if alike and contiguous and apart:
            self._copy_bytes(source, target)
        else:
            target[...] = source

    def _copy_bytes(self, source: Array, target: Array) -> None:
        native().memory_copy(self, *(a.reshape(-1).view(np.uint8) for a in (source, target)))

    def owns(self, array: object) -> bool:
        """Return whether ``array`` is an aligned NumPy array in native byte order."""
        return isinstance(array, np.ndarray) and array.flags.aligned and array.dtype.isnative

    # ---- work

    def product(self, A: Any, x: Array, out: Array | None) -> Array | None:
        """Return ``A @ x`` by one native call, or None if the general path is needed."""
        if self._observer is not None or self.links is not None or A._plan is None:
            return None
        made: Array | None = native().csr_product(self, A, x, out)
        return made

    def foreign_handlers(self) -> Handlers:
        """Return the native handlers of XLA's foreign function interface."""
        return foreign.handlers(self)

    def foreign_product(
        self,
        product: str,
        A: Any,
        columns: int,
        dtype: DTypeLike,
        kernel: str,
        order: Array | None = None,
    ) -> ForeignProduct | None:
        """Return the key of a product for native handlers."""
        return foreign.bind(self, product, A, columns, dtype, kernel, order)

    def call_links(self, function: Callable[[Array], None], array: Array) -> None:
        """Apply a reduction over ranks, which tapes record natively or as a Python call."""
        if self.links is not None and self.links.records(function):
            function(array)
        else:
            called(function, (array,))

    def _require_function(self, operator: LinearOperator) -> None:
        """Raise unless the function of an operator is compiled: loops call no others."""
        if operator.address is None:
            raise InvalidArgument(
                f"capture=True: the compiled loops of {self.name} call compiled functions alone; "
                "pass a Numba cfunc, a function of cffi or ctypes, or its address "
                "(docs/own-operator.md), or leave capture away"
            )

    def takes_function(self, operator: LinearOperator) -> bool:
        """Return whether compiled loops call the function of an operator."""
        self._require_function(operator)
        return operator.partition is None

    def play(self, replay: Replay) -> None:
        """Run a replay outside of a loop; the second run records a tape, which later runs play."""
        if not replay.resident or self.observed:
            replay.body()
        elif replay.program is None:
            # The first run makes the plans.
            replay.body()
            replay.program = False
        else:
            if replay.program is False:
                replay.program = self._tape(replay.body)
            replay.program.run(_ONCE, 1)

    def system_places(self) -> list[Executor]:
        """Return one single-threaded executor per thread."""
        return [type(self)(threads=1) for _ in range(self.threads)]

    def solve_systems(self, members: Sequence[MemberPrograms], systems: Systems) -> bool:
        """Solve many systems; each thread solves one at a time by replaying its member's tapes."""
        solve(members, systems)
        return True

    def factorize_systems(self, layout: Layout, values: Array) -> BatchFactors:
        """Factorize matrices, each on one thread."""
        return factorize(self, layout, values)

    def solve_factored(self, factors: BatchFactors, systems: FactoredSystems) -> None:
        """Solve systems with their factors, each on one thread."""
        solve_factored(self, factors, systems)

    def _tape(self, body: Callable[[], None]) -> Any:
        tape = native().Tape(self._context)
        tape.record(self.record(body).run)
        return tape

    def drive(self, iteration: Iteration, limit: int) -> None:
        """Run ``iteration`` until no column of its status is running, at most ``limit`` times.

        Its operations are recorded once and replayed without Python.
        """
        if not iteration.resident or self.observed:
            super().drive(iteration, limit)
            return
        if iteration.program is None:
            iteration.program = self._tape(iteration.body)
        if self.links is not None and self.links.alone:
            drive_alone(self, iteration, limit, self._replay)
        else:
            self._replay(iteration, limit)

    def _replay(self, iteration: Iteration, limit: int) -> None:
        iteration.program.run(iteration.status.running, limit)


#: Do not align smaller arrays (bytes): finding the address takes a microsecond, more than it saves.
UNALIGNED_BYTES = 16384


def _aligned(make: Callable[..., Any], shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    if size < UNALIGNED_BYTES:
        array: Array = make(shape, dtype)
        return array
    memory = make(size + CACHE_LINE, np.uint8)
    # ``array.ctypes.data`` takes 1 microsecond, and this a fifth of it.
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    return np.ndarray(shape, dtype, memory, -begin % CACHE_LINE)


rules_of.register(OmpExecutor, rules)
