"""The base class of executors for GPUs that CuPy supports."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from math import gcd, prod
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, TypeVarTuple

import numpy as np
from numpy.typing import DTypeLike

from ...core.capture import ALLOCATES, COPIES, FROM_HOST, TO_HOST, prepares, refuse_making
from ...core.devices import DeviceConstants, constants_of
from ...core.dtypes import INDEX_DTYPES, VALUE_DTYPES
from ...core.errors import WollemiError
from ...core.executor import Array
from ...core.foreign import ArrayShape, ForeignProduct, Handlers, Step
from ...core.iteration import Iteration
from ...core.links import shape_of_slots
from ...core.operation import Operation
from ...core.registry import executor as executor_by_name
from ..simt.batch_executor import BlockExecutor
from ..simt.operands import CODES
from ..unified.wrappers import SimtKernel
from . import ahead, launch, native_calls
from .adoption import adopted, copied_by_bytes
from .arguments import flatten, value_code
from .bandwidth import bandwidth
from .batch_launcher import GpuBlocks
from .device import GpuDevice
from .errors import Here, translate
from .function import Function
from .repeatable import RecordedLaunch, Repeatable, places_of
from .scratch import Scratch

if TYPE_CHECKING:
    from ...core.formats.csr import Csr
    from .types import Dtype, LoadedKernel

Ts = TypeVarTuple("Ts")
R = TypeVar("R")

#: Compute plans on the host for arrays of at most this many numbers, which takes some milliseconds.
HOST_NUMBERS = 1 << 18


class PerThread(threading.local):
    """The state of an executor in each thread."""

    def __init__(self) -> None:
        self.scratch: Scratch | None = None  # scratch memory of the program being captured
        self.of_stream: dict[int, Scratch] = {}
        self.dry = False
        self.launches: list[RecordedLaunch] | None = None
        self.noted: list[RecordedLaunch] | None = None
        self.entered: list[tuple[Any, Any]] = []
        #: The user's capture that records a public call; OWN, FREE, or None.
        self.capture: Any = None


#: Markers for a graph that this package makes, and for work known not to be captured.
OWN, FREE = object(), object()


class GpuExecutor(BlockExecutor):
    """A GPU that CuPy supports.

    Arrays are ``cupy.ndarray`` from CuPy's memory pool. Kernels run on CuPy's current stream.
    ``with executor:`` makes the device current and uses a separate stream in the block. This stream
    waits for earlier submissions, and later submissions wait for it.

    Parameters
    ----------
    device : int
        The number of the GPU, from 0.
    """

    #: The kind of the device in files of constants.
    constants_kind: ClassVar[str]
    #: Kinds of memory (DLDeviceType) of adoptable arrays of other libraries.
    dlpack_kinds: ClassVar[tuple[int, ...]]
    flushes_subnormals = True  #: CuPy compiles with -ftz=true; see core.small_values

    def __init__(self, device: int = 0) -> None:
        self.ordinal = device
        self._mine = PerThread()
        self._properties: dict[str, Any] | None = None
        self._compiled_ahead: set[tuple[Any, ...]] = set()

    @property
    @abstractmethod
    def device(self) -> GpuDevice:
        """The GPU's properties and loaded kernels."""

    @abstractmethod
    def make_program(self, iteration: Iteration) -> Any:
        """Return an object with ``run(limit)`` that runs an iteration on the device."""

    # ---- identity

    @cached_property
    def name(self) -> str:
        """The name of the executor: backend and number, such as ``cuda:0``."""
        return f"{self.kernels.backend}:{self.ordinal}"

    @property
    def device_key(self) -> tuple[str, str]:
        """The kind and the name of the GPU, which identify its file of constants."""
        return self.constants_kind, self.device.name

    @cached_property
    def constants(self) -> DeviceConstants:
        """The GPU's constants for selection rules."""
        return constants_of(*self.device_key)

    @property
    def properties(self) -> dict[str, Any]:
        """Name, memory, bandwidth and more; the bandwidth is measured at the first access."""
        if self._properties is None:
            gpu = self.device
            self._properties = {
                "name": gpu.name,
                "memory": gpu.memory,
                "bandwidth": bandwidth(gpu),
                **gpu.identity,
                "multiprocessors": gpu.multiprocessors,
                "warp": gpu.warp,
                "cache": gpu.cache_bytes,
                "dtypes": VALUE_DTYPES + INDEX_DTYPES,
            }
        return dict(self._properties)

    # ---- memory

    @cached_property
    def xp(self) -> Any:
        """CuPy."""
        import cupy

        return cupy

    def _here(self, work: str, nbytes: int = 0) -> Here:
        """Return a context that makes the device current and translates driver errors."""
        device = self.device
        return Here(None if device.is_current() else device.handle, self.name, work, nbytes)

    def _guarded(self, work: str, nbytes: int, function: Callable[[*Ts], R], *operands: *Ts) -> R:
        """Call a function as within :meth:`_here`, without creating a context object."""
        if not self.device.is_current():
            with self._here(work, nbytes):
                return function(*operands)
        try:
            return function(*operands)
        except WollemiError:
            raise
        except Exception as error:
            made = translate(error, self.name, work, nbytes)
            if made is None:
                raise
            raise made from error

    def allocate(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return an uninitialized, C-contiguous array."""
        if self._mine.capture is None:
            self.refuse_capture(ALLOCATES)
        if not self.device.is_current():
            with self._here("allocation", _nbytes(shape, dtype)):
                return self.xp.ndarray(shape, dtype)
        try:  # as _guarded does, but without computing the size, which takes a third of the time
            return self.xp.ndarray(shape, dtype)
        except Exception as error:
            made = translate(error, self.name, "allocation", _nbytes(shape, dtype))
            if made is None:
                raise
            raise made from error

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return an array of zeros, written by the device without a transfer from the host."""
        self.refuse_capture(ALLOCATES)
        return self._guarded("allocation", _nbytes(shape, dtype), self.xp.zeros, shape, dtype)

    def from_host(self, array: np.ndarray[Any, Any]) -> Array:
        """Copy a NumPy array to this device."""
        self.refuse_host(FROM_HOST)
        with self._here("copy from the host", array.nbytes):
            return self.xp.asarray(np.ascontiguousarray(array).reshape(array.shape))

    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        """Return a NumPy copy, after waiting for the work that computes the array."""
        self.refuse_host(TO_HOST)
        with self._here("copy to the host"):
            host: np.ndarray[Any, Any] = self.xp.asnumpy(array)
            return host

    def copy(self, array: Array) -> Array:
        """Return a C-contiguous copy, even of an unaligned array."""
        self.refuse_capture(COPIES)
        with self._here("copy", array.nbytes):
            if gcd(array.data.ptr, *array.strides) % array.itemsize:
                return copied_by_bytes(self, array)
            return self.xp.array(array, order="C")

    def copy_into(self, target: Array, source: Array | np.ndarray[Any, Any]) -> None:
        """Overwrite ``target`` with ``source`` of the same shape and dtype."""
        if isinstance(source, np.ndarray):
            self.refuse_host(FROM_HOST)
        else:
            self.refuse_capture(COPIES)
        with self._here("copy"):
            if isinstance(source, np.ndarray) and target.flags.c_contiguous:
                target.set(np.ascontiguousarray(source, target.dtype))
            elif _lie_alike(target, source):  # the driver's copy takes half the time of a kernel
                target.data.copy_from_device_async(source.data, target.nbytes)
            else:
                target[...] = self.xp.asarray(source)

    def address(self, array: Array) -> int:
        """Return the address of an array."""
        return int(array.data.ptr)

    def call(self, work: str, function: Callable[[*Ts], R], *operands: *Ts) -> R:
        """Call a library function with this device as the current one."""
        self.refuse_host("it calls a library that may wait for the device")
        return self._guarded(work, 0, function, *operands)

    def release_idle_memory(self) -> None:
        """Return idle blocks of CuPy's pool to the driver, for use by other libraries."""
        with self.device.handle:
            self.xp.get_default_memory_pool().free_all_blocks()

    def stream_address(self) -> int:
        """Return the handle of CuPy's current stream."""
        return int(self.xp.cuda.get_current_stream().ptr)

    def on_stream(self, address: int) -> AbstractContextManager[Any]:
        """Return a context with the stream of this handle as CuPy's current stream."""
        if address == self.stream_address():
            return nullcontext()
        stream: AbstractContextManager[Any] = self.xp.cuda.ExternalStream(address, self.ordinal)
        return stream

    def owns(self, array: object) -> bool:
        """Return whether ``array`` is a CuPy array on this device and aligned for kernels."""
        if not isinstance(array, self.xp.ndarray):
            return False
        data = array.data
        return data.device_id == self.ordinal and data.ptr % array.itemsize == 0

    def adopt(self, array: object) -> Array | None:
        """Wrap another library's array on this device without a copy, or return None."""
        self.refuse_capture("it takes an array that another library may still write")
        return adopted(self, array)

    def synchronize(self) -> None:
        """Wait for all work submitted to the device."""
        self.refuse_host("it waits for the device")
        self._guarded("synchronization", 0, self.device.handle.synchronize)

    def free_memory(self) -> int:
        """Return the bytes that an allocation could still get, including the pool's idle memory."""
        with self.device.handle:
            free, _ = self.xp.cuda.runtime.memGetInfo()
            return int(free) + int(self.xp.get_default_memory_pool().free_bytes())

    # ---- plans

    def plans_on_host(self, size: int) -> bool:
        """Return whether NumPy makes plans from arrays of at most ``size`` numbers."""
        return size <= HOST_NUMBERS

    def planned(
        self,
        size: int,
        make: Callable[..., Any],
        *arrays: Array,
        make_on_device: Callable[..., Any] | None = None,
        **options: object,
    ) -> Any:
        """Return ``make(xp, *arrays, **options)``, computed on the host for small arrays.

        For small arrays, NumPy computes the result, which is then copied to the device. For large
        arrays, ``here(executor, *arrays, **options)`` computes it if given: CuPy compiles each of
        its functions at the first use on a machine, which took 5 to 8 seconds of a first product
        (H200, 22 November).

        Parameters
        ----------
        size : int
            The number of elements of the largest array that ``make`` takes, returns or needs.
        make : callable
            Takes NumPy, or a module with its functions for this device, followed by ``arrays``.
            Returns an array, a number, or a tuple of them.
        """
        if not self.plans_on_host(size):
            return (
                make_on_device(self, *arrays, **options)
                if make_on_device
                else make(self.xp, *arrays, **options)
            )
        return self._placed(make(np, *(self.to_host(array) for array in arrays), **options))

    def _placed(self, value: object) -> Any:
        if isinstance(value, np.ndarray):
            return self.from_host(value)
        if isinstance(value, tuple):
            placed = map(self._placed, value)
            return value._make(placed) if hasattr(value, "_make") else tuple(placed)
        return value

    # ---- streams

    def __enter__(self) -> Self:
        cuda = self.xp.cuda
        self.device.handle.__enter__()
        before = cuda.get_current_stream()
        stream = cuda.Stream(non_blocking=True)
        stream.wait_event(before.record())
        stream.__enter__()
        self._mine.entered.append((before, stream))
        return self

    def __exit__(self, *reason: object) -> None:
        before, stream = self._mine.entered.pop()
        stream.__exit__(*reason)
        before.wait_event(stream.record())
        # Work may still be running; the pool reuses memory per stream, so the work's memory is
        # safe.
        self.device.handle.__exit__(*reason)

    # ---- work

    def run(self, operation: Operation, *arguments: Any) -> Any:
        """Run the kernel of ``operation``, or record the call while a program is recorded."""
        told = self._run(operation, *arguments)
        return None if isinstance(told, Repeatable) else told

    def _run(self, operation: Operation, *arguments: Any) -> Any:
        """Run an operation; return its kernel's result, and its repeatable launches."""
        capture = self._mine.capture
        if capture is None:
            self.refuse_capture(f"{operation.name} is part of no call that can be recorded")
        elif capture is not FREE and prepares(operation.name):
            refuse_making(operation.name)
        return self._guarded(operation.name, 0, super().run, operation, *arguments)

    def run_repeatably(
        self, operation: Operation, arguments: Sequence[Any], arrays: Sequence[Array | None]
    ) -> Callable[[Sequence[int]], None] | None:
        """Run an operation; if it consists only of launches, return a function that repeats it.

        The value that the kernel returns says whether it does.
        """
        told = self._run(operation, *arguments)
        places = places_of(told, arrays)
        if places is None:
            return None

        owner, launches, _ = told  # the arrays belong to the caller, who may drop them

        def repeat(addresses: Sequence[int], owner: object = owner) -> None:
            ordered = tuple([0 if place is None else addresses[place] for place in places])
            self._guarded(operation.name, 0, launches, self, ordered)

        return repeat

    @cached_property
    def array_type(self) -> type:
        """The class of native arrays."""
        result: type = self.xp.ndarray
        return result

    def product(self, A: Csr, x: Array, out: Array | None) -> Array | None:
        """Return ``A @ x`` through the launches that the matrix's plan keeps.

        Return None if more work is needed: operands to convert, a recording, a capture, a profiler,
        or the first product.
        """
        plan = A._plan
        known = None if plan is None else plan.prepared.get(1)
        if known is None or not (known.data is None or known.data is A.data):
            return None
        straight, dtype, (rows, columns) = known.straight, known.dtype, A.shape
        if dtype != A.dtype or not self._reads(x, columns, dtype) or not self.goes_straight():
            return None
        try:
            if out is None:
                out = self.xp.ndarray((rows,), dtype)
            elif not self._reads(out, rows, dtype) or _overlap(x, out):
                return None
            places = x.data.ptr, out.data.ptr
            if (places[0] | places[1]) % x.itemsize:
                return None
            if straight is None:
                known.go_straight(A, x, out)
            else:
                straight.launch(self, places)
        except Exception as error:
            made = translate(error, self.name, "csr.spmv", rows * np.dtype(dtype).itemsize)
            if made is None:
                raise
            raise made from error
        return out

    def _reads(self, vector: object, count: int, dtype: np.dtype[Any]) -> bool:
        """Return whether a vector is on this device, contiguous and of this dtype."""
        if type(vector) is not self.array_type:
            return False
        array: Array = vector
        return bool(
            array.shape == (count,)
            and array.dtype == dtype
            and array.strides == (array.itemsize,)
            and array.data.device_id == self.ordinal
        )

    keeps_launches = True

    @property
    def records_launches(self) -> bool:
        """Whether this thread's launches are being recorded or noted."""
        mine = self._mine
        return mine.launches is not None or mine.noted is not None or mine.dry

    def goes_straight(self) -> bool:
        """Return whether launches of this thread need not be observed in any way."""
        mine = self._mine
        return (
            self._observer is None
            and self.links is None
            and mine.capture is None
            and mine.scratch is None
            and mine.launches is None
            and mine.noted is None
            and not mine.dry
            and self.device.is_current()
            and not self._is_captured()
        )

    def _is_captured(self) -> bool:
        """Return whether this thread's work is captured; subclasses may support captures."""
        return False

    # ---- programs of other libraries

    def at(self, ordinal: int) -> GpuExecutor:
        """Return the executor of the same kind on another device."""
        result = self if ordinal == self.ordinal else executor_by_name(f"{self.backend}:{ordinal}")
        assert isinstance(result, GpuExecutor)
        return result

    def array_at(self, address: int, described: ArrayShape) -> Array:
        """Return another library's memory as a contiguous array that does not keep it alive."""
        shape, dtype = described
        nbytes = prod(shape) * np.dtype(dtype).itemsize
        if nbytes == 0:
            return self.allocate(shape, dtype)
        cuda = self.xp.cuda
        memory = cuda.UnownedMemory(address, nbytes, self, self.ordinal)
        array: Array = self.xp.ndarray(shape, dtype, cuda.MemoryPointer(memory, 0))
        return array

    @abstractmethod
    def launch_address(self) -> int:
        """Return the address of the driver function that launches kernels."""

    def launch_handle(self, recorded: RecordedLaunch) -> int | None:
        """Return the driver's handle of a launch's kernel, or None if it is not a plain kernel."""
        return recorded.function.ptr if isinstance(recorded.function, Function) else None

    def foreign_handlers(self) -> Handlers:
        """Return the handler of XLA's foreign function interface."""
        return native_calls.handlers()

    def foreign_call(
        self,
        shapes: Sequence[ArrayShape],
        work: Callable[[Any, Sequence[Array]], Sequence[Step]],
    ) -> ForeignProduct | None:
        """Return the key with which the handler repeats the work."""
        from . import foreign  # imports the products, which import executors

        return foreign.bind(self, shapes, work)

    def drive(self, iteration: Iteration, limit: int) -> None:
        """Run ``iteration`` on the device until no column is running, at most ``limit`` times."""
        if not iteration.resident or self.observed:
            super().drive(iteration, limit)
            return
        if limit <= 0:
            return
        self._guarded("a solver's loop", 0, self._drive, iteration, limit)

    def _drive(self, iteration: Iteration, limit: int) -> None:
        if iteration.program is None:
            iteration.program = self.make_program(iteration)
        iteration.program.run(limit)

    # arguments of launches

    @property
    def dry(self) -> bool:
        """Whether launches are only prepared: compile programs and reserve scratch memory."""
        return self._mine.dry

    @property
    def making_program(self) -> bool:
        """Whether launches are recorded for a program.

        CuPy then refuses to call NVIDIA's and AMD's libraries, because it cannot know how they
        affect a capture.
        """
        return self._mine.scratch is not None

    @contextmanager
    def preparing(
        self, scratch: Scratch, *, dry: bool, into: list[RecordedLaunch] | None = None
    ) -> Iterator[None]:
        """Return a context that takes scratch memory from ``scratch``.

        Parameters
        ----------
        scratch : Scratch
            Scratch memory for all launches in the context.
        dry : bool
            Prepare launches only; launch nothing.
        into : list, optional
            List that receives the launches instead of the device.
        """
        self._mine.scratch, self._mine.dry, self._mine.launches = scratch, dry, into
        try:
            yield
        finally:
            self._mine.scratch, self._mine.dry, self._mine.launches = None, False, None

    @contextmanager
    def noting(self) -> Iterator[list[RecordedLaunch]]:
        """Record the launches in this block, which are also executed."""
        self._mine.noted = launches = list[RecordedLaunch]()
        try:
            yield launches
        finally:
            self._mine.noted = None

    def scratch(self, nbytes: int, counters: int = 1) -> tuple[int, int]:
        """Return the addresses of scratch memory and of counters for the next launch."""
        return (self._mine.scratch or self._scratch_of_stream()).reserve(nbytes, counters)

    def _scratch_of_stream(self) -> Scratch:
        """Return the scratch memory that launches on the current stream share in this thread."""
        stream = self.xp.cuda.get_current_stream().ptr
        return self._mine.of_stream.setdefault(stream, Scratch())

    def slots(self, operation: Operation, arguments: tuple[Any, ...]) -> Array:
        """Return memory for the sums of an operation; a captured operation keeps its own memory."""
        scratch = self._mine.scratch
        if scratch is None:
            return super().slots(operation, arguments)
        key = operation.name, *shape_of_slots(operation, arguments)
        if key not in scratch.slots:
            scratch.slots[key] = super().slots(operation, arguments)
        return scratch.slots[key]

    def make_current(self) -> None:
        """Make the device current in the calling thread, permanently."""
        self.device.handle.use()

    def launch(
        self,
        function: LoadedKernel,
        blocks: int,
        arguments: Sequence[Any],
        block: int = launch.BLOCK,
        shared: int = 0,
    ) -> None:
        """Launch a loaded kernel on the current stream."""
        mine = self._mine
        for kept in (mine.noted, mine.launches):
            if kept is not None:
                kept.append(RecordedLaunch(function, (blocks,), (block,), arguments, shared))
        if mine.launches is None and not mine.dry:
            function((blocks,), (block,), arguments, shared)

    @cached_property
    def blocks(self) -> GpuBlocks:
        """The launcher of batch kernels."""
        return GpuBlocks(self)

    def launch_simt(
        self,
        kernel: SimtKernel,
        blocks: int,
        arguments: Sequence[Any],
        dtype: Dtype,
        index: DTypeLike = np.int32,
        stored: np.dtype[Any] | None = None,
        /,
        *,
        shared: int = 0,
        **constants: int,
    ) -> None:
        """Launch a kernel of ``backends/simt`` with the arguments of its signature.

        ``stored`` is the dtype of stored values, if it differs from ``dtype``. ``shared`` is the
        shared memory in bytes that the launch gives each block.
        """
        function = self.simt_function(kernel, dtype, index, stored, constants)
        if shared:
            self.device.allow_shared(function, shared)
        flat = flatten(kernel.parameters, arguments, dtype)
        self.launch(function, blocks, flat, kernel.block, shared)

    def compile_ahead(
        self, operations: Iterable[str], dtype: DTypeLike, index: DTypeLike = np.int32
    ) -> None:
        """Start compiling programs in threads; names that were given before are skipped."""
        named = (tuple(operations), np.dtype(dtype), np.dtype(index))
        if named not in self._compiled_ahead:
            self._compiled_ahead.add(named)
            self.device.compile_ahead(ahead.of_operations(self.device, *named))

    def has_compiled(
        self, operations: Iterable[str], dtype: DTypeLike, index: DTypeLike = np.int32
    ) -> bool:
        """Return whether all programs of :meth:`compile_ahead` are compiled."""
        named = (tuple(operations), np.dtype(dtype), np.dtype(index))
        return self.device.has_compiled(named, lambda: ahead.of_operations(self.device, *named))

    def simt_function(
        self,
        kernel: SimtKernel,
        dtype: DTypeLike,
        index: DTypeLike,
        stored: np.dtype[Any] | None,
        constants: Mapping[str, int],
    ) -> Function:
        """Return the loaded kernel of ``backends/simt`` for the given dtypes and constants."""
        return self.device.simt_function(
            kernel, value_code(dtype, stored), CODES[np.dtype(index)], **constants
        )


def _nbytes(shape: tuple[int, ...], dtype: DTypeLike) -> int:
    return prod(shape) * np.dtype(dtype).itemsize


def _overlap(x: Array, y: Array) -> bool:
    """Return whether two contiguous arrays share memory."""
    begin, other = x.data.ptr, y.data.ptr
    return bool(begin < other + y.nbytes and other < begin + x.nbytes)


def _lie_alike(target: Array, source: Array | np.ndarray[Any, Any]) -> bool:
    """Return whether a plain byte copy from ``source`` to ``target`` is correct."""
    return (
        not isinstance(source, np.ndarray)
        and bool(target.flags.c_contiguous and source.flags.c_contiguous)
        and target.dtype == source.dtype
        and target.shape == source.shape
        and target.data.device_id == source.data.device_id
    )
