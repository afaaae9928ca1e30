"""Links between GPUs of one host that load and store each other's memory.

The kernel that finishes a sum posts it to the other members and waits for theirs, so a total needs
no launch of its own. One kernel stores the rows that other members need into their ghosts, and
waits for the rows of others. All of this can be captured. Totals have the same bits as with NCCL's
links: members are added up in the order of ranks.

``peers.hpp`` defines the protocol. A member may launch such a kernel only if the others are certain
to launch theirs. Outside of a graph, it waits for the kernel before its next call of CUDA.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from ....core.distributed.halo import Halo
from ....core.distributed.threads import Stage
from ....core.dtypes import is_complex, real_dtype
from ....core.executor import Array, Executor
from ....core.links import shape_of_slots
from ....core.operation import Operation, Shrunk
from ...gpu import maps
from ...gpu.arguments import address
from ...gpu.device import Program
from ...simt.operands import CODES, row_distance
from ...unified.places import dtypes
from ...unified.wrappers import VALUE_TYPES, program
from ..runtime.gpu_links import KINDS, DeviceLinks, GpuLinks
from .exchange import Exchange

#: The constants of ``peers.hpp``: largest number of members, of columns in a block of vectors, of
#: real numbers in a sum, and of numbers in one message.
MEMBERS, COLUMNS, WORDS, NUMBERS = 16, 32, 12, 1024

_REAL = {"f4": "float", "f8": "double"}
_INDEX = {"i4": "wl::i32", "i8": "wl::i64"}
#: Work-items per block of the kernels in this module.
_BLOCK = 256
#: Blocks per multiprocessor of the kernel that stores rows.
_EACH = 2

#: ``struct window`` of ``peers.hpp``.
WINDOW = np.dtype(
    [
        ("posts", "<u8", (COLUMNS, 2, MEMBERS, WORDS, 2)),
        ("numbers", "<u8", (2, MEMBERS, NUMBERS, 2)),
        ("free", "<u4", (MEMBERS,)),
        ("arrived", "<u4", (MEMBERS,)),
        ("free_in_product", "<u4", (MEMBERS,)),
        ("arrived_in_product", "<u4", (MEMBERS,)),
    ]
)
#: ``struct peers``.
PEERS = np.dtype(
    [
        ("windows", "<u8", (MEMBERS,)),
        ("stop", "<u8"),
        ("rank", "<i4"),
        ("size", "<i4"),
        ("turns", "<u4", (COLUMNS,)),
        ("turn_of_numbers", "<u4"),
        ("exchanges", "<u4"),
        ("counter", "<i4"),
        ("met", "<u4"),
    ]
)


def texts() -> str:
    """Return the program of the kernels that are not functors.

    It contains, for example, the kernels ``peer_total__f8``, ``peer_totals__f8``,
    ``peer_shrunk__f4`` and ``peer_exchange__c16_i4``.
    """
    wrappers = [
        f"WL_ENTRY(peer_total__{code})(WL_GRID wl::peers* group, {real}* numbers, wl::i64 n, "
        "wl::i64 kind) {\n"
        f"  const wl::summands<{real}> all{{numbers, n, kind, 1}}, none{{nullptr, 0, 0, 1}};\n"
        f"  WL_RUN(wl::make_totals<{real}>(it, group, all, none, nullptr, 1);)\n}}\n"
        f"WL_ENTRY(peer_totals__{code})(WL_GRID wl::peers* group, {real}* first, wl::i64 n, "
        f"wl::i64 kind, wl::i64 width, {real}* second, wl::i64 n2, wl::i64 kind2, wl::i64 width2, "
        "const wl::u8* marks, wl::i64 columns) {\n"
        f"  const wl::summands<{real}> one{{first, n, kind, width}};\n"
        f"  const wl::summands<{real}> other{{second, n2, kind2, width2}};\n"
        f"  WL_RUN(wl::make_totals<{real}>(it, group, one, other, marks, columns);)\n}}\n"
        f"WL_ENTRY(peer_shrunk__{code})(WL_GRID wl::i64 columns, const wl::u8* stop, "
        f"const {real}* after, const {real}* before, double part, wl::u8* marks) {{\n"
        f"  WL_RUN(wl::mark_shrunk<{real}>(it, columns, stop, after, before, part, marks);)\n}}\n"
        for code, real in _REAL.items()
    ]
    wrappers += [
        f"WL_ENTRY(peer_exchange__{code}_{index})(WL_GRID wl::peers* group, wl::i64 targets, "
        "const wl::target* to, wl::i64 sources, const wl::i64* from, "
        f"const {_INDEX[index]}* rows, const {value}* x, wl::i64 distance, wl::i64 k) {{\n"
        f"  const wl::exchange<{value}, {_INDEX[index]}> of{{group, targets, to, sources, from, "
        "rows, x, distance};\n  WL_RUN(wl::exchange_rows(it, of, k);)\n}\n"
        for code, value in VALUE_TYPES.items()
        for index in _INDEX
    ]
    return program("CUDA", ["cuda/peers/peers.hpp"], wrappers, block=_BLOCK)


def reach_each_other(members: Sequence[Executor]) -> bool:
    """Enable peer access between the members' GPUs; return whether all of them support it."""
    devices = [getattr(member, "ordinal", -1) for member in members]
    alike = all(member.backend == "cuda" for member in members)
    if not alike or len(set(devices)) != len(devices) or len(devices) > MEMBERS:
        return False
    gpu: Any = members[0]
    runtime = gpu.xp.cuda.runtime
    pairs = [(one, other) for one in devices for other in devices if one != other]
    if not all(runtime.deviceCanAccessPeer(one, other) for one, other in pairs):
        return False
    for one, other in pairs:
        with gpu.xp.cuda.Device(one), suppress(runtime.CUDARuntimeError):  # may be enabled
            runtime.deviceEnablePeerAccess(other)
    return True


def linked(members: Sequence[Executor], stage: Stage) -> Sequence[PeerLinks] | None:
    """Return links by peer access, or None if members cannot access each other's memory."""
    if not reach_each_other(members):
        return None
    gpu: Any = members[0]
    stop = np.frombuffer(gpu.xp.cuda.alloc_pinned_memory(4), np.int32, 1)
    result = [
        PeerLinks(stage, member.as_member(None), rank, stop) for rank, member in enumerate(members)
    ]
    windows = [links.window.data.ptr for links in result]
    for links in result:
        links.know(windows)
    return result


class _Summands(NamedTuple):
    """``struct summands`` of ``peers.hpp``, with the code of its numbers' dtype."""

    place: int
    length: int
    kind: int
    width: int
    real: str

    @classmethod
    def of(cls, array: Array, kind: str) -> _Summands:
        real = real_dtype(array.dtype)
        width = array.dtype.itemsize // real.itemsize
        return cls(address(array), int(array.size) * width, KINDS[kind], width, CODES[real])


class Peers(DeviceLinks):
    """The part of links by peer access that processes and threads share.

    Attributes
    ----------
    stop : array of int32, shape (1,)
        Pinned host memory: nonzero once the group has given up.
    window : Array
        The member's memory into which others store.
    record : Array
        ``struct peers``, the argument of kernels that exchange data with other members.
    """

    fuses = True
    stop: Any
    window: Array
    record: Array

    def make_windows(self, stop: Any) -> None:
        """Allocate the memory into which others store."""
        self.stop = stop
        self.window = self.gpu.zeros((WINDOW.itemsize,), np.uint8)
        self.record = self.gpu.zeros((PEERS.itemsize,), np.uint8)
        self._windows: list[int] = []
        self._kept_marks: dict[int, Array] = {}

    def know(self, windows: list[int]) -> None:
        """Set the addresses of all members' windows, in order of ranks."""
        self._windows = windows
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Reset all turns to 0; no kernel of any member may be running."""
        record = np.zeros((), PEERS)
        record["windows"][: self.size] = self._windows
        record["stop"], record["rank"], record["size"] = self.stop.ctypes.data, self.rank, self.size
        self.stop[0] = 0
        self.gpu.copy_into(self.window, np.zeros(WINDOW.itemsize, np.uint8))
        self.gpu.copy_into(self.record, np.frombuffer(record.tobytes(), np.uint8))
        self.gpu.synchronize()

    def abort(self) -> None:
        """Abort kernels that wait for a failed member."""
        self.stop[0] = 1

    def place(self, array: Array) -> Any:
        """Return a description of an array's location for the other members."""
        return address(array)

    def reached(self, place: Any) -> int:
        """Return the local address of another member's array."""
        return int(place)

    # ---- totals

    def meets(self, operation: Operation, arguments: tuple[Any, ...]) -> bool:
        """Return whether the kernel of an operation can compute the totals over all members."""
        if not operation.adds_up:
            return False
        (words, columns), _ = shape_of_slots(operation, arguments)
        return words <= WORDS and columns <= COLUMNS

    def record_for(self, operation: Operation, arguments: tuple[Any, ...]) -> Array | None:
        """Return the memory through which an operation's kernel exchanges sums, or None."""
        return self.record if self.meets(operation, arguments) else None

    def run(self, executor: Executor, operation: Operation, arguments: tuple[Any, ...]) -> bool:
        """Run an operation with a kernel that exchanges sums; return False if that is impossible.

        If an operation leaves its sums in arrays, one kernel after it makes them total.
        """
        if not self.meets(operation, arguments):
            return self._run_with_totals(executor, operation, arguments)
        value, index = dtypes(operation, arguments)
        gpu: Any = executor
        function = gpu.device.function(*self._meeting(operation, value, index))
        maps.launch_map(gpu, operation, function, arguments, (self.record,))
        if not gpu.dry:
            self.complete()
        return True

    def _run_with_totals(
        self, executor: Executor, operation: Operation, arguments: tuple[Any, ...]
    ) -> bool:
        """Run an operation, and total at most two of its arrays in one message.

        Only columns that the operation changes are totaled; without such columns, the members send
        nothing.
        """
        named = {p.name: a for p, a in zip(operation.parameters, arguments, strict=True)}
        found = [_Summands.of(named[name], kind) for name, kind in operation.totals.items()]
        alike = len({one.real for one in found}) == 1
        if not alike or len(found) > 2 or sum(one.length for one in found) > NUMBERS:
            return False
        columns = int(named[next(iter(operation.totals))].shape[-1])
        changed, marks = operation.changed, 0
        if changed is not None:
            if not isinstance(changed, Shrunk):
                return False
            marks = self._marks(changed, named, columns)
        kernel = executor.kernels.find(operation)
        assert kernel is not None
        kernel(executor, *arguments)
        first, second = found[0], found[1] if len(found) == 2 else _Summands(0, 0, 0, 1, "")
        function = self.gpu.device.function(f"peer_totals__{first.real}", texts)
        given = [address(self.record), *first[:4], *second[:4], marks, columns]
        self.gpu.launch(function, 1, given, _BLOCK)
        if not self.gpu.dry:
            self.complete()
        return True

    def _marks(self, changed: Shrunk, named: dict[str, Any], columns: int) -> int:
        """Mark the columns that an operation will change; return the address of the marks."""
        after, before = named[changed.after], named[changed.before]
        marks = self._kept_marks.get(columns)
        if marks is None:  # allocated once, because graphs contain the address
            marks = self._kept_marks[columns] = self.gpu.allocate((max(columns, 1),), np.uint8)
        function = self.gpu.device.function(f"peer_shrunk__{CODES[after.dtype]}", texts)
        given = [
            columns, address(named["status"].stop), address(after), address(before),
            np.float64(changed.part), address(marks),
        ]  # fmt: skip
        self.gpu.launch(function, 1, given, _BLOCK)
        return address(marks)

    def _meeting(self, operation: Operation, value: Any, index: Any) -> Program:
        result: Program = self.gpu.device.meeting_program(operation, CODES[value], CODES[index])
        return result

    def programs(self, operation: Operation, arguments: tuple[Any, ...]) -> Iterator[Program]:
        """Yield the programs of the kernels that :meth:`run` launches."""
        if self.meets(operation, arguments):
            yield self._meeting(operation, *dtypes(operation, arguments))

    def _total(self, array: Array, kind: int) -> None:
        real = real_dtype(array.dtype)
        count = int(array.size) * (2 if is_complex(array.dtype) else 1)
        function = self.gpu.device.function(f"peer_total__{CODES[real]}", texts)
        for begin in range(0, count, NUMBERS):
            where = address(array) + begin * real.itemsize
            given = [address(self.record), where, min(NUMBERS, count - begin), kind]
            self.gpu.launch(function, 1, given, _BLOCK)
        if not self.gpu.dry:
            self.complete()

    # ---- rows of vectors

    def push(self, halo: Halo, x: Array, ghosts: Array) -> None:
        """Store rows of ``x`` into the ghosts of other members, and wait for their rows."""
        self.pusher(halo, x, ghosts)(ghosts)

    def pusher(self, halo: Halo, x: Array, ghosts: Array) -> Callable[[Array], None]:
        """Return a function that does :meth:`push` for these arrays; all members must call this."""
        k = int(x.shape[1])
        name = f"peer_exchange__{CODES[x.dtype]}_{CODES[halo.send_index.dtype]}"
        function = self.gpu.device.function(name, texts)
        blocks, given = self.blocks_of(halo, k), [*self._arguments(halo, x, ghosts), k]

        def push(ghosts: Array) -> None:
            self.gpu.launch(function, blocks, given, _BLOCK)
            if not self.gpu.dry:
                self.complete()

        return push

    def blocks_of(self, halo: Halo, columns: int) -> int:
        """Return the number of blocks that store rows."""
        blocks = max(1, -(-halo.packed * columns // _BLOCK))
        return min(blocks, _EACH * int(self.gpu.device.multiprocessors))

    def exchange(self, halo: Halo, x: Array, ghosts: Array) -> Exchange:
        """Return the exchange of rows for a product's kernel; all members must call this."""
        index = _INDEX[CODES[halo.send_index.dtype]]
        values = self._arguments(halo, x, ghosts)
        return Exchange(values, index, halo.interior, self.blocks_of(halo, 1))

    def _arguments(self, halo: Halo, x: Array, ghosts: Array) -> list[int]:
        """Return the fields of ``struct exchange``; all members must call this."""
        table, targets = address(self._table(halo, ghosts)), len(halo.sends)
        return [
            address(self.record), targets, table, len(halo.receives), table + 32 * targets,
            address(halo.send_index), address(x), row_distance(x),
        ]  # fmt: skip

    def _table(self, halo: Halo, ghosts: Array) -> Array:
        """Return the kernel's table of destinations and sources of rows.

        Members tell each other the addresses of their ghosts. A graph uses the table that was made
        when its launches were prepared.
        """
        mine = address(ghosts)
        if not self.gpu.dry and self.capturing:
            result: Array = halo.tables[mine]
            return result
        row = int(ghosts.shape[1]) * ghosts.dtype.itemsize
        begins = {rank: begin for rank, begin, _ in halo.receives}
        told = self.all((self.place(ghosts), begins))
        lines = [
            (rank, self.reached(told[rank][0]) + told[rank][1][self.rank] * row, begin, end)
            for rank, begin, end in halo.sends
        ]
        numbers = [number for line in lines for number in line]
        numbers += [rank for rank, _, _ in halo.receives]
        key = tuple(numbers)
        if key not in halo.tables:
            halo.tables[key] = self.gpu.from_host(np.array([*numbers, 0], np.int64))
        halo.tables[mine] = halo.tables[key]
        table: Array = halo.tables[key]
        return table


class PeerLinks(Peers, GpuLinks):
    """The links of a member that is a thread and accesses the other members' memory.

    Parameters
    ----------
    stop : array of int32, shape (1,)
        Pinned host memory, shared by all members.
    """

    def __init__(self, stage: Stage, executor: Executor, rank: int, stop: Any) -> None:
        super().__init__(stage, executor, rank)
        self.make_windows(stop)
        self._resets = stage.resets

    def begin_program(self) -> None:
        """Synchronize with the other members; set turns to 0 after a reset of the group."""
        super().begin_program()
        if self._resets != self.stage.resets:
            self._resets = self.stage.resets
            self._begin_anew()
