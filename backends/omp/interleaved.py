"""Iterate on several systems at once: arrays are interleaved, with one system per lane.

An operation of an iteration works on any number of columns, each with its own scalars and verdict.
Therefore, the recorded iteration of one system becomes an iteration of several: each array of one
column becomes an array with one column per lane, and the product with the matrix becomes a product
with several matrices of one pattern. All other programs still run for one system at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ...core.operations import matrix as products
from ...core.operations import vector
from ...core.status import Status
from .level import native

if TYPE_CHECKING:
    from ...core.batch.systems import MemberPrograms
    from ...core.executor import Array, Executor
    from ...core.program import Call

#: Bytes of one interleaved row (the same element of all lanes): a cache line, and the widest vector
#: register.
LINE = 64

#: Upper bound, in bytes, of the interleaved arrays, which should stay in a core's second-level
#: cache.
LANE_BYTES = 1_200_000

#: Interleave only if at least this many lanes fit.
LEAST_LANES = 4

#: The fields of a status that move into a lane and out of it with a system.
TOLD = ("stop", "iterations", "norm", "threshold")

#: The fields of a status with one element per lane.
OF_LANE = ("stop", "iterations", "norm", "threshold", "history")

#: A member's programs, in the order in which a system runs them.
PROGRAMS = ("refresh", "measure", "restart", "iterate", "finish", "judge")


@dataclass(frozen=True, eq=False)
class LaneArray:
    """An array of one system, and the interleaved array of all lanes.

    Attributes
    ----------
    one : array or None
        The member's array; None for the values of the matrix, which come from the batch.
    lanes : array, shape (n, lanes) or (lanes,)
        The interleaved array.
    leaves : bool
        Whether a program reads the array after the iterations of a cycle.
    """

    one: Array | None
    lanes: Array
    leaves: bool


@dataclass(frozen=True, eq=False)
class Lanes:
    """The iteration of a member, made for several systems at once.

    Attributes
    ----------
    iterate : object
        The tape of one iteration.
    width : int
        Number of systems.
    values : LaneArray
        The values of the matrices.
    arrays : list of LaneArray
        The arrays to copy when a system enters or leaves its lane.
    status : Status
        The status of all lanes.
    """

    iterate: Any
    width: int
    values: LaneArray
    arrays: list[LaneArray]
    status: Status


def lanes_of(member: MemberPrograms) -> Lanes | None:
    """Return the iteration of a member for several systems at once, or None.

    Return None if an operation does not work on columns, or if the arrays would exceed the cache. A
    thread then iterates on one system at a time.
    """
    executor = member.status.executor
    programs = {
        name: [] if replay is None else list(executor.record(replay.body))
        for name, replay in ((name, getattr(member, name)) for name in PROGRAMS)
    }
    found = _Arrays(member, programs)
    if not all(found.suits(call) for call in programs["iterate"]):
        return None
    width = found.width()
    return None if width is None else found.interleaved(width)


class _Arrays:
    """The arrays of a member's programs, and how the programs use them."""

    def __init__(self, member: MemberPrograms, programs: dict[str, list[Call]]) -> None:
        self.member, self.programs = member, programs
        self.executor: Executor = member.status.executor
        self.written = {
            self._at(array)
            for calls in programs.values()
            for call in calls
            for intent, array in call.arrays()
            if intent != "in"
        }
        #: The arrays with one element, or one column, per system; the keys are addresses.
        self.columns: dict[int, Array] = {}

    def _at(self, array: Array) -> int:
        return self.executor.address(array)

    # ---- which programs

    def suits(self, call: Call) -> bool:
        """Return whether an operation works on columns; if so, register its arrays."""
        operation = call.operation
        if operation is products.csr_spmv:
            A, x, y = call.arguments[:3]
            self._add([x, y])
            return self._at(A.data) == self._at(self.member.values) and A.dtype == A.data.dtype
        if operation is vector.scale_rows and self._at(call.arguments[0]) in self.written:
            d, x, y = call.arguments[:3]
            self._add([d.reshape(-1, 1), x, y])
            return True
        if operation.over is None:
            return False
        rows, columns = operation.over
        for parameter, argument in call.named:
            if parameter.is_status:
                if argument is not self.member.status:
                    return False
            elif parameter.is_matrix:
                return False
            elif parameter.is_array and parameter.dims[-1] == columns:
                self._add([argument])
            elif parameter.is_array and (
                parameter.dims != (rows,) or self._at(argument) in self.written
            ):
                return False
        return True

    def _add(self, arrays: Iterable[Array]) -> None:
        self.columns.update((self._at(array), array) for array in arrays)

    def width(self) -> int | None:
        """Return the largest number of lanes that the cache holds, or None if it is too small."""
        item = self.member.x.dtype.itemsize
        of_one = self.member.values.nbytes + sum(array.nbytes for array in self.columns.values())
        widths = [LINE // item]
        widths += [w for w in (widths[0] // 2,) if w >= LEAST_LANES]
        return next((w for w in widths if w >= LEAST_LANES and w * of_one <= LANE_BYTES), None)

    # ---- which arrays move

    def _read_first(self, names: Sequence[str]) -> set[int]:
        """Return the arrays that programs read before they overwrite them entirely."""
        result: set[int] = set()
        made: set[int] = set()
        for call in (call for name in names for call in self.programs[name]):
            arrays = [(intent, self._at(array)) for intent, array in call.arrays()]
            result |= {at for intent, at in arrays if intent != "out" and at not in made}
            made |= {at for intent, at in arrays if intent == "out"}
        return result

    # ---- the result

    def interleaved(self, width: int) -> Lanes:
        """Return the iteration for ``width`` systems at once."""
        member, executor = self.member, self.executor
        status = Status(executor, width, member.x.dtype, capacity=1)
        told = {self._at(getattr(member.status, name)): name for name in TOLD}
        unmoved = {self._at(a) for a in (member.b, member.status.running, member.status.history)}
        known = {
            self._at(array): array
            for calls in self.programs.values()
            for call in calls
            for _, array in call.arrays()
        }
        after = ["finish", "judge"]
        leaving = self._read_first(after) | self._read_first(["restart", "iterate", *after])
        moving = (self._read_first(["iterate"]) | leaving) & self.written - unmoved
        needed = self.columns.keys() | moving
        lanes = {
            at: self._of_lanes(self.columns.get(at, known[at]), width)
            for at in needed - told.keys()
        }
        values = executor.zeros((int(member.values.size), width), member.values.dtype)
        arrays = [LaneArray(known[at], lanes[at], at in leaving) for at in moving - told.keys()]
        for name in TOLD:
            arrays.append(LaneArray(getattr(member.status, name), getattr(status, name), True))

        def body() -> None:
            for call in self.programs["iterate"]:
                self._run(call, lanes, values, status)

        tape = native().Tape(executor._context)  # type: ignore[attr-defined]
        tape.record(body)
        return Lanes(tape, width, LaneArray(None, values, False), arrays, status)

    def _of_lanes(self, array: Array, width: int) -> Array:
        """Return an array with one column per lane for an array of one column."""
        shape = (width,) if array.shape == (1,) else (int(array.size), width)
        return self.executor.zeros(shape, array.dtype)

    def _run(self, call: Call, lanes: dict[int, Array], values: Array, status: Status) -> None:
        """Submit an operation with its arrays replaced by the arrays of all lanes."""
        executor, (operation, given) = self.executor, call
        if operation is products.csr_spmv:
            A, x, y, alpha, beta = given
            vectors = [lanes[self._at(array)] for array in (x, y)]
            native().interleaved_spmv(executor, A.indptr, A.indices, values, *vectors, alpha, beta)
        elif operation is vector.scale_rows and self._at(given[0]) in lanes:
            vectors = [lanes[self._at(array)] for array in given[:3]]
            native().interleaved_scale(executor, *vectors, *given[3:])
        else:
            arguments = [
                status
                if parameter.is_status
                else lanes.get(self._at(argument), argument)
                if parameter.is_array
                else argument
                for parameter, argument in call.named
            ]
            if self.member.x.dtype.kind != "c":
                executor.run(operation, *arguments)
                return
            # One lane at a time: compilers round the columns of a complex block differently.
            for c in range(status.shape[0]):
                executor.run(operation, *_of_lane(call, arguments, c))


def _of_lane(call: Call, arguments: Sequence[Any], c: int) -> list[Any]:
    """Return the arguments of an operation, restricted to one lane."""
    assert call.operation.over is not None
    columns, result = call.operation.over[1], []
    for parameter, argument in zip(call.operation.parameters, arguments, strict=True):
        if parameter.is_status:
            views = {name: getattr(argument, name)[..., c : c + 1] for name in OF_LANE}
            result.append(SimpleNamespace(**views, running=argument.running, capacity=1))
        elif parameter.is_array and parameter.dims[-1] == columns:
            result.append(argument[..., c : c + 1])
        else:
            result.append(argument)
    return result
