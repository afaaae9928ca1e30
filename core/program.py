"""Recorded programs: the operations of a loop, with the arrays that each reads and writes.

:meth:`~wollemi.core.executor.Executor.record` makes a program from a function that runs operations,
such as an iteration of a solver. Each executor runs programs in its own way: omp replays them, cuda
makes a graph or one kernel of them, hip and dpcpp submit them in batches. A *pass* rewrites a
program. If a pass refuses, the executor falls back to the next simpler way. Passes use the
declarations of operations, never their names.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .executor import Executor
    from .operation import Operation, Parameter


class Call(NamedTuple):
    """An operation with its arguments."""

    operation: Operation
    arguments: tuple[Any, ...]

    @property
    def named(self) -> Iterator[tuple[Parameter, Any]]:
        """Yield the arguments with their parameters."""
        return zip(self.operation.parameters, self.arguments, strict=True)

    def arrays(self) -> Iterator[tuple[str, Any]]:
        """Yield the intent of each array and the array, including the arrays of a status."""
        for parameter, argument in self.named:
            if parameter.is_array:
                yield parameter.intent, argument
            elif parameter.is_status:
                written = ("stop", "iterations", "norm", "history", "running")
                for name in argument.FIELDS:
                    yield parameter.intent if name in written else "in", getattr(argument, name)

    @property
    def has_sum(self) -> bool:
        """Whether the call sums over rows, so that a group needs a total in the middle of it."""
        return bool(self.operation.sums)


class Program(list[Call]):
    """Operations in the order of execution, all on one executor.

    Attributes
    ----------
    executor : Executor
        The executor of the operations.
    by_host : bool
        Whether the host read or wrote arrays during the recording. Such a program cannot be
        replayed, because it does not contain the host's work.
    """

    def __init__(self, executor: Executor, calls: Sequence[Call] = ()) -> None:
        super().__init__(calls)
        self.executor = executor
        self.by_host = False

    def run(self) -> None:
        """Run all operations in order."""
        for operation, arguments in self:
            self.executor.run(operation, *arguments)

    def prepared(self) -> Program:
        """Make objects that are made once, such as plans, and return the program."""
        for parameter, argument in self.arguments():
            if parameter.is_matrix:
                _prepare(argument)
        return self

    def expanded(self) -> Program:
        """Return the program with each composite operation replaced by its parts."""
        calls = [part for call in self for part in expanded(call)]
        result = Program(self.executor, calls)
        result.by_host = self.by_host
        return result

    def reads(self, call: Call) -> frozenset[int]:
        """Return the addresses of the arrays that a call reads."""
        return self._addresses(call, "out")

    def writes(self, call: Call) -> frozenset[int]:
        """Return the addresses of the arrays that a call writes."""
        return self._addresses(call, "in")

    def _addresses(self, call: Call, other: str) -> frozenset[int]:
        address = self.executor.address
        return frozenset(address(array) for intent, array in call.arrays() if intent != other)

    @cached_property
    def sums(self) -> list[int]:
        """The indices of the calls that have sums."""
        return [at for at, call in enumerate(self) if call.has_sum]

    @property
    def columns(self) -> set[int]:
        """The numbers of columns of the blocks that the operations use."""
        return {
            int(argument.shape[1])
            for call in self
            for parameter, argument in call.named
            if parameter.is_array and len(parameter.dims) == 2 and parameter.dims[1] == "k"
        }

    def arguments(self) -> Iterator[tuple[Parameter, Any]]:
        """Yield all arguments with their parameters."""
        for call in self:
            yield from call.named


def expanded(call: Call) -> list[Call]:
    """Return the parts of a composite operation; for other operations, the call itself."""
    if call.operation.parts is None:
        return [call]
    named = {parameter.name: argument for parameter, argument in call.named}
    return [
        inner
        for operation in call.operation.parts
        for inner in expanded(Call(operation, tuple(named[p.name] for p in operation.parameters)))
    ]


def _prepare(matrix: Any) -> None:
    """Make a matrix's plan, and the CSR copy of formats that need one for products."""
    if hasattr(type(matrix), "by_rows"):
        _prepare(matrix.by_rows)
    elif hasattr(type(matrix), "plan"):
        _ = matrix.plan


def prepare_parts(operator: Any) -> None:
    """Make the plans of the matrices in a lazy operator."""
    for part in getattr(operator, "parts", ()):
        prepare_parts(part)
    _prepare(operator)


class _Recording(threading.local):
    program: Program | None = None


_RECORDING = _Recording()


def recording() -> Program | None:
    """Return the program that this thread records, or None."""
    return _RECORDING.program


def record(executor: Executor, body: Callable[[], None]) -> Program:
    """Return the operations that ``body`` would run on an executor; none of them is run.

    An operation that only makes an object, such as a plan, and writes none of its arguments is run
    immediately.
    """
    if _RECORDING.program is not None:
        raise RuntimeError("a program is being recorded already")
    program = _RECORDING.program = Program(executor)
    try:
        body()
    finally:
        _RECORDING.program = None
    return program


def host_takes_part() -> None:
    """Note that the host reads or writes arrays, which the recorded program will not contain."""
    if _RECORDING.program is not None:
        _RECORDING.program.by_host = True
