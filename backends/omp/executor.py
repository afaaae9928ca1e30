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

#: Bytes. Vector registers of 64 bytes that begin in the middle of a line touch two:
#: bicgstab.update takes 1.45 times as long on vectors of 4,000 in the second-level cache.
CACHE_LINE = 64

#: The columns that run where a tape is played once, for any status.
_ONCE = np.ones(1, np.int32)


def _links_by_memory(host: RankLinks) -> Links | None:
    """Return links with the other ranks of this host by shared memory, or None."""
    from .ranks import joined_by_memory

    return joined_by_memory(host)


class OmpTransfer(HostTransfer):
    """Transfers of arrays that a recorded iteration must not have."""

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
        How many threads kernels use; by default ``OMP_NUM_THREADS``, or all cores that this process
        may use.

    Notes
    -----
    Results repeat bit for bit for a given number of threads.

    Kernels are built for several instruction-set levels, and the widest that the processor has is
    used; ``WOLLEMI_OMP_LEVEL=v3`` asks for another.

    The threads are wollemi's own; no library of OpenMP is loaded, and of its environment variables
    only ``OMP_NUM_THREADS`` counts. Between two loops a thread waits actively for up to 0.1 ms and
    then sleeps. Where other programs use the cores it sleeps at once, and work that no other thread
    has begun is done by the calling one. Python threads that compute at the same time have threads
    of their own, as long as there are not more than two a core. A child of ``os.fork`` starts its
    own when it needs them.

    Ctrl-C ends a long product within a fraction of a second. The contents of ``out`` are then
    undefined; matrices and operands are as before.

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
        self._context = native().Context(self.threads)  # the executor of native kernels

    # ---- identity

    @property
    def name(self) -> str:
        """The name that :func:`wollemi.executor` makes an equal executor from."""
        return f"omp:{self.threads}"

    @property
    def properties(self) -> dict[str, Any]:
        """Properties of the device: processor, memory, level, threads, dtypes."""
        return {
            "name": cpu_name(),
            "memory": memory(),
            "simd": level(),
            "threads": self.threads,
            "dtypes": VALUE_DTYPES + INDEX_DTYPES,
        }

    @property
    def device_key(self) -> tuple[str, str]:
        """The kind and the name of the processor in files of constants."""
        return "cpu", processor()

    def energy_counter(self) -> EnergyCounter | None:
        """Return the energy counter of the processor, or None if this process may not read it."""
        return package_counter()

    # ---- memory

    @property
    def xp(self) -> Any:
        """NumPy."""
        return np

    def allocate(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return an uninitialized, C-contiguous array; one of 16 KB or more begins a cache line.

        NumPy asks for huge pages from 4 MB on.
        """
        return _aligned(np.empty, shape, dtype)

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return a C-contiguous array of zeros; one of 16 KB or more begins a cache line."""
        return _aligned(np.zeros, shape, dtype)

    def from_host(self, array: np.ndarray[Any, Any]) -> Array:
        """Return ``array`` itself, or a copy if kernels cannot read it in place."""
        if self.owns(array):
            return array
        return np.require(array, array.dtype.newbyteorder("="), "A")

    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        """Return ``array`` itself: the host is here."""
        host: np.ndarray[Any, Any] = array
        return host

    def state_bytes(self, state: object) -> int:
        """Return the bytes of a native state; 0 for other objects."""
        module = native()
        for measure in (module.csr_state_bytes, module.pattern_plan_bytes):
            found = measure(self, state)
            if found is not None:
                return int(found)
        return 0

    def text_entries(
        self, text: bytes, shape: tuple[int, int], row: Array, col: Array, values: Array
    ) -> int | None:
        """Read plain lines of a Matrix Market file, a share of them by each thread."""
        found: int | None = native().text_entries(self, text, *shape, row, col, values)
        return found

    def copy(self, array: Array) -> Array:
        """Return a C-contiguous copy; threads share that of a large array."""
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
        alike = source.dtype == target.dtype and source.shape == target.shape
        contiguous = source.flags.c_contiguous and target.flags.c_contiguous
        apart = not np.may_share_memory(source, target)
        if target.nbytes >= SHARED_COPY and alike and contiguous and apart:
            self._copy_bytes(source, target)
        else:
            target[...] = source

    def _copy_bytes(self, source: Array, target: Array) -> None:
        native().memory_copy(self, *(a.reshape(-1).view(np.uint8) for a in (source, target)))

    def owns(self, array: object) -> bool:
        """Return whether ``array`` is one of NumPy's, aligned and in the machine's byte order."""
        return isinstance(array, np.ndarray) and array.flags.aligned and array.dtype.isnative

    # ---- work

    def product(self, A: Any, x: Array, out: Array | None) -> Array | None:
        """Return ``A @ x`` by one native call, where nothing needs to know of it."""
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
        """Make a total; on a tape it is a call of Python, unless the links have native steps."""
        if self.links is not None and self.links.records(function):
            function(array)
        else:
            called(function, (array,))

    def takes_function(self, operator: LinearOperator) -> bool:
        """Return whether compiled loops call the function of an operator; a compiled one alone."""
        if operator.address is None:
            raise InvalidArgument(
                f"capture=True: the compiled loops of {self.name} call compiled functions alone; "
                "pass a Numba cfunc, a function of cffi or ctypes, or its address "
                "(docs/own-operator.md), or leave capture away"
            )
        return operator.partition is None

    def play(self, replay: Replay) -> None:
        """Run a replay without a loop of its own, from the second time on from a tape."""
        if not replay.resident or self.observed:
            replay.body()
        elif replay.program is None:
            # The first time there are plans to be made.
            replay.body()
            replay.program = False
        else:
            if replay.program is False:
                replay.program = self._tape(replay.body)
            replay.program.run(_ONCE, 1)

    def system_places(self) -> list[Executor]:
        """Return executors of one thread, one for each thread."""
        return [type(self)(threads=1) for _ in range(self.threads)]

    def solve_systems(self, members: Sequence[MemberPrograms], systems: Systems) -> bool:
        """Solve many systems, each by one thread that replays the tapes of its member."""
        solve(members, systems)
        return True

    def factorize_systems(self, layout: Layout, values: Array) -> BatchFactors:
        """Factorize matrices, each by one thread."""
        return factorize(self, layout, values)

    def solve_factored(self, factors: BatchFactors, systems: FactoredSystems) -> None:
        """Solve systems by their factors, each by one thread."""
        solve_factored(self, factors, systems)

    def _tape(self, body: Callable[[], None]) -> Any:
        tape = native().Tape(self._context)
        tape.record(self.record(body).run)
        return tape

    def drive(self, iteration: Iteration, limit: int) -> None:
        """Run ``iteration`` until its status has no running column, or ``limit`` times.

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


#: Bytes below which the search for memory of an array takes longer (a microsecond) than it saves.
SMALL = 16384


def _aligned(make: Callable[..., Any], shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    if size < SMALL:
        array: Array = make(shape, dtype)
        return array
    memory = make(size + CACHE_LINE, np.uint8)
    # An array's own words for its address take 1 microsecond, and these a fifth of it.
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    return np.ndarray(shape, dtype, memory, -begin % CACHE_LINE)


rules_of.register(OmpExecutor, rules)
