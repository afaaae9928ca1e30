"""Executors: a memory and the processors that compute on it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, TypeVarTuple

import numpy as np
from numpy.typing import DTypeLike

from .algorithm import AlgorithmTable
from .arguments import check_arguments
from .devices import DeviceConstants, constants_of
from .errors import ExecutorMismatch, InvalidArgument, UnsupportedOperation
from .events import reports_memory
from .foreign import ArrayShape, ForeignProduct, Handlers, Step
from .links import Links, makes_totals, run_on_member, shape_of_slots
from .old_transfers import OldTransfers
from .operation import KernelTable, Operation
from .program import Call, Program, expanded, record, recording
from .recordable import DrivenLoop, RecordableLoop
from .side_by_side import SolvesSystems
from .transfer import Transfer
from .unsupported import reason_of

if TYPE_CHECKING:
    from .array_scans import ArrayScans
    from .distributed.ranks import RankLinks
    from .energy import EnergyCounter
    from .iteration import Cycles, Iteration, Replay
    from .operator import LinearOperator


Ts = TypeVarTuple("Ts")
R = TypeVar("R")

Array = Any  # a native array of an executor: numpy.ndarray, cupy.ndarray, ...
HostArray = np.ndarray[Any, Any]


#: The context of executors without captures: it does nothing.
_UNCAPTURED = nullcontext()


class Executor(SolvesSystems, OldTransfers, ABC):
    """A memory and the kernels that work on it.

    Arrays are the executor's *native* ones (NumPy's on CPUs, CuPy's on NVIDIA and AMD GPUs);
    there is no wrapper around them. Executors compare equal when they name the same device, and
    pickle as their name.
    """

    #: The kernels of the backend.
    kernels: ClassVar[KernelTable]
    #: The algorithms of the backend, for products that have several.
    algorithms: ClassVar[AlgorithmTable] = AlgorithmTable("core")

    #: The installed vendor libraries that work on the executor's arrays.
    vendor_libraries: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        reports_memory(cls)

    has_double: bool = True  #: whether it computes in double precision
    #: Whether array functions flush subnormal single-precision numbers to zero.
    flushes_subnormals: bool = False

    # ---- identity

    @property
    @abstractmethod
    def name(self) -> str:
        """The name, such as ``omp:4``; :func:`wollemi.executor` accepts it."""

    @property
    def backend(self) -> str:
        """The name of the backend, such as ``omp``; it is a column of the support matrix."""
        return self.kernels.backend

    @property
    def properties(self) -> dict[str, Any]:
        """Properties of the device: name, memory, bandwidth, SIMD or warp width, dtypes."""
        return {}

    @property
    def device_key(self) -> tuple[str, str]:
        """The kind and name of the device in files of constants; no name: no fitted ones."""
        return "cpu", ""

    @property
    def constants(self) -> DeviceConstants:
        """The constants of the device for selection rules and cost models."""
        return constants_of(*self.device_key)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Executor) and self.name == other.name and self.links is other.links

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.full_name}>"

    @property
    def full_name(self) -> str:
        """The name, followed by the member number in a group: ``omp:4 (member 1 of 3)``."""
        if self.links is None:
            return self.name
        return f"{self.name} (member {self.links.rank} of {self.links.size})"

    def as_member(self, links: Links | None) -> Self:
        """Return this executor as a member of a group, or alone; memory and kernels stay."""
        result = object.__new__(type(self))
        result.__dict__.update(self.__dict__)
        result.links = links
        return result

    def brought(self, source: Executor, array: Array) -> Array:
        """Return another executor's array on this one; itself if both share their memory."""
        return array if source.name == self.name else self.from_host(source.to_host(array))

    def make_current(self) -> None:
        """Make the device of this executor the current device of the calling thread."""

    def link(
        self, members: list[Executor], stage: Any, kind: str | None = None
    ) -> Sequence[Links] | None:
        """Return links between executors of this kind on their devices, or None.

        This method is called on the first of the members that one process drives; they meet at
        ``stage``. ``kind`` names the requested links; None requests the fastest. The default has
        none: the host makes the totals.
        """
        return None

    def link_ranks(self, host: RankLinks) -> Links | None:
        """Return links of this executor with executors of other processes, or None.

        All ranks of ``host``, which carries the messages between their hosts, call this method. The
        default has none: the host makes the totals.
        """
        return None

    def __reduce__(self) -> tuple[Any, ...]:
        from .registry import executor

        if self.links is not None:
            raise InvalidArgument(
                f"{self.full_name} cannot be pickled: the other process is no member of its group; "
                "pickle A.to_local()"
            )

        return executor, (self.name,)

    # ---- memory

    @property
    @abstractmethod
    def xp(self) -> Any:
        """The array namespace (NumPy's functions) for native arrays."""

    @abstractmethod
    def allocate(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return an uninitialized C-contiguous native array."""

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return a C-contiguous native array of zeros."""
        array = self.allocate(shape, dtype)
        self.copy_into(array, np.zeros(shape, dtype))
        return array

    @abstractmethod
    def from_host(self, array: np.ndarray) -> Array:
        """Return a native array with the contents of ``array``; they may share memory."""

    @abstractmethod
    def to_host(self, array: Array) -> np.ndarray:
        """Return a NumPy array with the contents of a native array; they may share memory."""

    #: The class that copies several arrays at once between this memory and the host.
    transfer_type: ClassVar[type[Transfer]] = Transfer

    def transfer(self, *arrays: Array, written: Sequence[Array] = ()) -> Transfer:
        """Return an object that copies several contiguous arrays to or from the host at once.

        Parameters
        ----------
        *arrays : array
            The arrays that :meth:`Transfer.read` reads.
        written : sequence of arrays
            Small arrays that :meth:`Transfer.write` overwrites.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> omp = wl.executor("omp")
        >>> counts, sums = omp.zeros((2,), np.int64), omp.zeros((2,), np.float64)
        >>> omp.transfer(written=(counts, sums)).write(np.array([1, 2]), np.array([0.5, 1.5]))
        >>> [array.tolist() for array in omp.transfer(counts, sums).read()]
        [[1, 2], [0.5, 1.5]]
        """
        return self.transfer_type(self, arrays, written)

    def state_bytes(self, state: object) -> int:
        """Return the bytes of a plan's state if it is an object of this executor's class."""
        return 0

    def text_entries(
        self, text: bytes, shape: tuple[int, int], row: Array, col: Array, values: Array
    ) -> int | None:
        """Read entries from lines of a Matrix Market file: row, column and the numbers of a value.

        Parameters
        ----------
        text : bytes
            Whole lines.
        shape : tuple of int
            Shape of the matrix.
        row, col : array of int32 or int64, shape (n,)
            Overwritten with the positions, numbered from 0.
        values : array of float64 or int64, shape (n * w,)
            Overwritten with the ``w`` numbers of each entry.

        Returns
        -------
        int or None
            Number of entries read. None if a line has another form, if there are more than ``n``
            entries, or if this executor has no reader; the default has none.
        """
        return None

    @abstractmethod
    def copy(self, array: Array) -> Array:
        """Return a C-contiguous native copy of a native array."""

    @abstractmethod
    def copy_into(self, target: Array, source: Array | np.ndarray) -> None:
        """Overwrite ``target`` with ``source``, native or NumPy, of the same shape and dtype."""

    @abstractmethod
    def owns(self, array: object) -> bool:
        """Return whether ``array`` is native to this executor and in its memory."""

    def adopt(self, array: object) -> Array | None:
        """Return another library's array on this device as a native array without a copy, or None.

        The default supports no other library.
        """
        return None

    def on_stream(self, address: int) -> AbstractContextManager[Any]:
        """Return a context that submits work to another library's stream, given by its handle.

        The default has no streams.
        """
        return nullcontext()

    def synchronize(self) -> None:
        """Wait for all submitted work."""

    # ---- work

    def run(self, operation: Operation, *arguments: Any) -> Any:
        """Run the kernel of ``operation`` on native arguments.

        While this thread records a program, the operation is recorded instead.

        Raises
        ------
        UnsupportedOperation
            If this executor has no kernel for the operation.
        WollemiError
            If another package declared the operation and the arguments do not agree with its
            signature; nothing was launched then.
        """
        if operation.checked or (self.checks_calls and operation.over is not None):
            check_arguments(self, operation, arguments)
        program = recording()
        if program is not None and operation.writes_arguments:
            self._recorded(program, operation, arguments)
            return None
        kernel = self.kernels.find(operation)
        if kernel is None:
            if operation.parts is None:
                raise UnsupportedOperation(self._unsupported(operation))
            for part in expanded(Call(operation, arguments)):
                self.run(part.operation, *part.arguments)
            return None
        if self._observer is not None:
            return self._observer(self, operation, kernel, arguments)
        return self.perform(operation, kernel, *arguments)

    #: Whether calls of wollemi's own element-wise operations also compare their arguments with the
    #: signatures.
    checks_calls: ClassVar[bool] = False

    #: Whether launches of products are kept, so that :meth:`run_repeatably` can return them.
    keeps_launches: bool = False

    #: Passes over host arrays that use all threads; None if NumPy makes them.
    scans: ArrayScans | None = None

    def goes_straight(self) -> bool:
        """Return whether a kept launch may be repeated without informing other parts.

        Recordings, captures, profilers and groups must be informed of launches. The default keeps
        no launches.
        """
        return False

    #: Alignment in bytes: the result of an operation may depend on addresses modulo this number.
    alignment: int = 16

    def run_repeatably(
        self, operation: Operation, arguments: Sequence[Any], arrays: Sequence[Array | None]
    ) -> Callable[[Sequence[int]], None] | None:
        """Run an operation, and return a function that repeats it on other arrays, or None.

        Executors can offer this because a small product takes less time than the code before its
        launch. The default offers none.

        Parameters
        ----------
        operation : Operation
            The operation.
        arguments : sequence
            Its arguments.
        arrays : sequence of array or None
            The indices of the arguments that the repetition replaces.

        Returns
        -------
        callable or None
            The function takes the addresses of other arrays in the order of ``arrays``, 0 for None.
            The other arrays must be in the same memory and have the same dtypes, shapes and
            strides. They must coincide with each other where the first arrays do, and their
            addresses must have the same remainders modulo :attr:`alignment`.
        """
        self.run(operation, *arguments)
        return None

    def foreign_handlers(self) -> Handlers | None:
        """Return functions that compiled XLA programs call.

        The default has none: such programs call Python instead.
        """
        return None

    def foreign_product(
        self,
        product: str,
        A: Any,
        columns: int,
        dtype: DTypeLike,
        kernel: str,
        order: Array | None = None,
    ) -> ForeignProduct | None:
        """Return the key by which a compiled program's handler finds a product, or None.

        The default offers none.

        Parameters
        ----------
        product : str
            ``"spmm"``, ``"sddmm"``, ``"fusedmm"``, or :data:`wollemi.core.foreign.WHOLE_ROWS`.
        A : Csr
            The pattern.
        columns : int
            Columns of the dense operand.
        dtype : dtype
            The dtype of the operands.
        kernel : str
            The name of an algorithm, or ``"auto"``.
        order : array, optional
            The positions of the entries among the values of the operand, if ``A`` is a transpose.
        """
        return None

    def foreign_call(
        self,
        shapes: Sequence[ArrayShape],
        work: Callable[[Any, Sequence[Array]], Sequence[Step]],
    ) -> ForeignProduct | None:
        """Return the key by which a compiled program runs work on device arrays, or None.

        The default offers none.

        Parameters
        ----------
        shapes : sequence of ArrayShape
            Shapes of the operands and of the result, which are contiguous.
        work : callable
            ``work(executor, arrays)`` returns the steps that compute the result from native arrays
            of an executor of this kind.
        """
        return None

    def _require_function(self, operator: LinearOperator) -> None:
        """Raise an error if recorded loops cannot call a function of this kind.

        Raises
        ------
        InvalidArgument
            If they cannot; the default accepts all functions.
        """

    def takes_function(self, operator: LinearOperator) -> bool:
        """Return whether recorded loops can call an operator's function, made with ``capture``.

        By default they cannot: the host calls the function.

        Raises
        ------
        InvalidArgument
            If the recorded loops of this executor cannot call a function of this kind.
        """
        return False

    def submit(self, name: str, owner: object, function: Callable[[*Ts], R], *operands: *Ts) -> R:
        """Call ``function(*operands)``, a public call that a user's capture may record.

        The default has no captures.

        Parameters
        ----------
        name : str
            The name of the call in error messages.
        owner : object
            The matrix or operator; its memory must live as long as a graph that contains the call.
        """
        return function(*operands)

    def refuse_capture(self, reason: str) -> None:
        """Raise CaptureRefused if a user's capture runs outside of a call that can be recorded.

        ``reason`` completes a sentence. The default has no captures.
        """

    def refuse_host(self, reason: str) -> None:
        """Raise CaptureRefused if a user's capture runs: a replay does not involve the host.

        ``reason`` completes a sentence. The default has no captures.
        """

    def compile_ahead(
        self, operations: Iterable[str], dtype: DTypeLike, index: DTypeLike = np.int32
    ) -> None:
        """Start to compile programs for the next calls, if kernels are compiled at run time.

        The default does nothing. A caller that will run many operations in sequence names them, so
        that they are compiled in parallel.

        Parameters
        ----------
        operations : iterable of str
            Names of operations, such as ``"csr.transpose"``, and of groups, such as ``"coarsen"``.
        dtype, index : dtype
            The dtypes of values and indices.
        """

    @cached_property
    def array_type(self) -> type:
        """The class of native arrays; NumPy's by default."""
        return np.ndarray

    def product(self, A: Any, x: Array, out: Array | None) -> Array | None:
        """Return the product of a CSR matrix and a vector, or None if there is no fast way.

        The result is in ``out``, or in a new vector if ``out`` is None.

        An executor can offer a single call for operands that need no conversion, because the
        product of a small matrix takes less time than checks of its operands. The default offers
        none. It is not called while a program is recorded.
        """
        return None

    def perform(self, operation: Operation, kernel: Callable[..., Any], *arguments: Any) -> Any:
        """Call a kernel of ``operation``; on a member of a group, sum over the group."""
        if makes_totals(self.links, operation):
            return self._run_on_member(operation, arguments, kernel)
        return kernel(self, *arguments)

    #: The links to the other members of the group, which make totals; None outside of groups.
    links: Links | None = None

    def _run_on_member(
        self, operation: Operation, arguments: tuple[Any, ...], kernel: Callable[..., Any]
    ) -> None:
        run_on_member(self, operation, arguments, kernel)

    def call_links(self, function: Callable[[Array], None], array: Array) -> None:
        """Make a total; if work is recorded, record the total with it."""
        function(array)

    def agreed(self, answer: bool) -> bool:
        """Return an answer of the host; in a group, whether any member answers yes."""
        return bool(answer) if self.links is None else self.links.any(answer)

    def slots(self, operation: Operation, arguments: tuple[Any, ...]) -> Array:
        """Return memory for the partial sums of an operation."""
        shape, dtype = shape_of_slots(operation, arguments)
        return self.allocate(shape, dtype)

    def _recorded(self, program: Program, operation: Operation, arguments: tuple[Any, ...]) -> None:
        if program.executor != self:
            raise ExecutorMismatch(
                f"{operation.name} runs on {self.full_name} within an iteration on "
                f"{program.executor.full_name}; move its operands with "
                f'.to("{program.executor.name}")'
            )
        program.append(Call(operation, arguments))

    def record(self, body: Callable[[], None]) -> Program:
        """Return the operations that ``body`` would run here; none of them is run.

        Plans of matrices and other objects that are made once exist after the call.
        """
        return record(self, body).prepared()

    def address(self, array: Array) -> int:
        """Return the address of a native array; the default supports NumPy arrays."""
        return int(array.__array_interface__["data"][0])

    def call(self, what: str, function: Callable[[*Ts], R], *operands: *Ts) -> R:
        """Call a library function that works on the current device, after selecting this device.

        ``what`` names the call in errors about exhausted memory or a failed device.
        """
        return function(*operands)

    def give_back(self, work: str, function: Callable[[*Ts], object], *operands: *Ts) -> None:
        """Free resources of a library at a time when the device accepts such calls.

        Parameters
        ----------
        work : str
            The failing action in the message of an error.
        function : callable
            Frees the resources; finalizers may pass it in any thread, at any time.
        operands
            Its arguments.
        """
        self._give_back(work, function, operands)

    def _give_back(self, work: str, function: Callable[..., object], operands: Any) -> None:
        self.call(work, function, *operands)

    def release_idle_memory(self) -> None:
        """Return memory that is cached for later allocations to the system."""

    def stream_address(self) -> int:
        """Return the handle of the current stream, or 0 without streams."""
        return 0

    def supports(self, operation: Operation) -> bool:
        """Return whether there is a kernel for ``operation``, or kernels for all its parts."""
        return self.kernels.has(operation)

    def drive(self, iteration: Iteration, limit: int) -> None:
        """Run ``iteration`` until no column of its status runs, at most ``limit`` times.

        This is the plain host loop: every other way of driving may differ from it only in speed.
        """
        status = iteration.status
        alone = self.links if self.links is not None and self.links.alone else None
        for _ in range(limit):
            if self.to_host(status.running)[0] == 0:
                break
            iteration.body()
            if alone is not None:
                alone.check()

    def recordable_loop(self, iteration: Iteration) -> RecordableLoop:
        """Return a loop that a user's graph can contain, if this executor has graphs."""
        return DrivenLoop(self, iteration)

    def drive_cycles(self, cycles: Cycles, limit: int) -> bool:
        """Run whole cycles until a column stops, at most ``limit`` times, if the device can.

        Returns
        -------
        bool
            Whether cycles were run. By default none are: the host then drives each cycle itself.
        """
        return False

    def uncaptured(self) -> AbstractContextManager[None]:
        """Return a context in which no capture begins; a running capture is detected before it.

        The default has no captures.
        """
        return _UNCAPTURED

    def energy_counter(self) -> EnergyCounter | None:
        """Return the counter of the energy that the device consumes, or None without one.

        The default has none.
        """
        return None

    def play(self, replay: Replay) -> None:
        """Run a replay that has no loop of its own, possibly from a recording."""
        replay.body()

    _observer: Callable[..., Any] | None = None  # set by the profiler while it is active

    @property
    def observed(self) -> bool:
        """Whether a profiler is active: iterations then run operation by operation."""
        return self._observer is not None

    def _unsupported(self, operation: Operation) -> str:
        from .registry import available_executors, backends_with

        have = backends_with(operation)
        here = {line.name.partition(":")[0] for line in available_executors() if line.available}
        where = min(have, key=lambda name: (name not in here, name != "omp"), default="")
        remedy = f'Move the data: .to("{where}").' if have else "No backend has it."
        known = ", ".join(have) or "none"
        reason = reason_of(self.backend, operation.name)
        why = f": {reason}" if reason else ""
        return f"{operation.name} has no kernel on {self.name} (have: {known}){why}. {remedy}"


def same_executor(label: str, *placed: Any) -> Executor:
    """Return the one executor of ``placed`` (objects with ``.executor``).

    Raises
    ------
    ExecutorMismatch
        If the objects are on different executors.
    """
    first: Executor = placed[0].executor
    for other in placed[1:]:
        if other.executor != first:
            raise ExecutorMismatch(
                f"{label}: operands live on {first.full_name} and on {other.executor.full_name}; "
                f'move one of them, for instance with .to("{first.name}")'
            )
    return first


def brought_together(label: str, *operands: Any) -> tuple[Any, ...]:
    """Return the operators on one common executor.

    An object that was made of host data without ``executor=`` has no fixed executor. It moves to
    the executor of operands that have one; if no operator has one, the first stays where it is.

    Raises
    ------
    ExecutorMismatch
        If operators are fixed to different executors.
    """
    first = operands[0]
    if all(other.executor is first.executor for other in operands[1:]):
        return operands  # the most frequent case, and the fastest test
    place = next((op for op in operands if not op._follows), first).executor
    moved = tuple(op.to(place) if op._follows and op.executor != place else op for op in operands)
    same_executor(label, *moved)
    return moved


reports_memory(Executor)  # type: ignore[type-abstract]
