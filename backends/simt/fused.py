"""The text of kernels that several operations share, and the arguments they are launched with."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.kernel_text import without_comments
from ...core.operation import Operation, Parameter
from ...core.status import Status
from ..unified.wrappers import VALUE_TYPES, functor, functors_of, has_functor
from .operands import address, is_vector, row_distance, scalar

if TYPE_CHECKING:
    from ...core.executor import Array

REAL = {"f4": "float", "f8": "double", "c8": "float", "c16": "double"}
_CELL = {"u8": "wl::u8", "i32": "wl::i32", "i64": "wl::i64"}

#: Members of a status and their C types; ``R`` is the real type of the values.
STATUS = (
    ("stop", "wl::u8"),
    ("iterations", "wl::i64"),
    ("norm", "R"),
    ("threshold", "R"),
    ("history", "R"),
    ("running", "wl::i32"),
)


@dataclass
class Arguments:
    """Arguments of a kernel: each array once, even if several operations use it.

    Attributes
    ----------
    value : str
        Code of the dtype of values.
    declared, values : list
        The C declarations of the arguments, and the values passed for them.
    cells : dict
        Arrays of one element a column, by address: C type and name.
    operations : list
        The functors of these map operations are part of the text.
    renamed : dict
        Vectors that are somewhere else, by address: the pointer, and the distance of elements.
    """

    value: str
    declared: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    cells: dict[int, tuple[str, str]] = field(default_factory=dict)
    status: Status | None = None
    renamed: dict[int, tuple[str, str]] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)
    _known: dict[tuple[int, str], str] = field(default_factory=dict)

    def pointer(self, array: Array, kind: str) -> str:
        """Add a pointer and return its name."""
        where = 0 if array is None else array if isinstance(array, int) else address(array)
        key = (where, kind)
        if where == 0 or key not in self._known:
            name = f"a{len(self.declared)}"
            self.declared.append(f"{kind}* {name}")
            self.values.append(where)
            self._known[key] = name
        return self._known[key]

    def plain(self, kind: str, value: Any) -> str:
        """Add a number and return its name."""
        name = f"a{len(self.declared)}"
        self.declared.append(f"{kind} {name}")
        self.values.append(value)
        return name

    def block(self, array: Array) -> str:
        """Add a block of vectors and return its expression."""
        if address(array) in self.renamed:
            return "{{{}, {}}}".format(*self.renamed[address(array)])
        name = self.pointer(array, VALUE_TYPES[self.value])
        distance = (address(array), "distance")
        if distance not in self._known:
            self._known[distance] = self.plain("wl::i64", row_distance(array))
        return f"{{{name}, {self._known[distance]}}}"

    def number(self, value: complex, dtype: np.dtype[Any]) -> str:
        """Add a scalar of the dtype of values and return its expression."""
        parts = [self.plain(REAL[self.value], part) for part in scalar("T", value, dtype)]
        made = ", ".join(parts)
        return f"{VALUE_TYPES[self.value]}{{{made}}}" if len(parts) > 1 else made

    def members(self, operation: Operation, arguments: tuple[Any, ...], together: bool) -> str:
        """Return the functor of a map operation made of these arguments."""
        self.operations.append(operation)
        made = [
            self._member(operation, parameter, argument, together)
            for parameter, argument in zip(operation.parameters, arguments, strict=True)
        ]
        return f"{functor(operation, self.value)}{{{', '.join(made)}}}"

    def _member(
        self, operation: Operation, parameter: Parameter, argument: Any, together: bool
    ) -> str:
        if parameter.is_status:
            self.status = argument
            if together:
                return "status"
            pointers = [
                self.pointer(getattr(argument, name), self.real(kind)) for name, kind in STATUS
            ]
            sizes = [self.plain("wl::i64", n) for n in (argument.capacity, argument.shape[0])]
            return "{" + ", ".join(pointers + sizes) + "}"
        if parameter.is_scalar:
            return self.number(argument, argument_dtype(self.value))
        if len(parameter.dims) == 2:
            return self.block(argument)
        kind = {"T": VALUE_TYPES[self.value], "R": REAL[self.value], **_CELL}[parameter.kind]
        if is_vector(operation, parameter) and address(argument) in self.renamed:
            return self.renamed[address(argument)][0]
        if is_vector(operation, parameter) or not together:
            return self.pointer(argument, kind)
        return self.cell(argument, kind)

    def cell(self, array: Array, kind: str) -> str:
        """Return the pointer to a block's own copy of a per-column value."""
        cell = self.cells.setdefault(address(array), (kind, f"c{len(self.cells)}"))
        return f"&s.{cell[1]}"

    def copies(self, status: Status) -> list[tuple[str, str, str]]:
        """Return C type, name and pointer of each scalar that a block has a copy of.

        These are the cells that operations asked for, and the members of a status.
        """
        found = [
            (kind, name, self.pointer(where, kind)) for where, (kind, name) in self.cells.items()
        ]
        for name, kind in STATUS:
            real = self.real(kind)
            found.append((real, name, self.pointer(getattr(status, name), real)))
        return found

    def real(self, kind: str) -> str:
        """Return a C type in which ``R`` may stand for the real type of the values."""
        return REAL[self.value] if kind == "R" else kind


def argument_dtype(value: str) -> np.dtype[Any]:
    """Return the dtype of a code."""
    return np.dtype(value)


@dataclass(frozen=True)
class Kernel:
    """A kernel's name, its program, and the arguments to launch it with.

    The program is composed when it is asked for: a kernel that was loaded before needs its name
    alone.
    """

    symbol: str
    program: Callable[[], str]
    values: list[Any]

    @property
    def source(self) -> str:
        """The text of the program."""
        return self.program()


#: Returns the program of headers and texts of kernels, to be composed later.
Composer = Callable[[Sequence[str], Sequence[str]], Callable[[], str]]


def kernel(
    arguments: Arguments,
    headers: Sequence[str],
    extra: Sequence[str],
    body: str,
    compose: Composer,
    told: str,
    entry: str = "WL_ENTRY({})",
    grid: str = "",
) -> Kernel:
    """Return a kernel of this body; its name contains a hash of it.

    Parameters
    ----------
    headers : sequence of str
        The headers that it includes.
    extra : sequence of str
        Declarations of further parameters, after the parameters of ``arguments``.
    compose : callable
        Makes the program.
    told : str
        The properties of the program that its text does not tell: a part of the name.
    entry : str
        The beginning of the definition, with braces for the name.
    grid : str
        ``"WL_GRID "`` where a dialect has parameters of its own.
    """
    parameters = ", ".join([*arguments.declared, *extra])
    text = f"({grid}{parameters}) {{\n{body}}}\n"
    of_functors, functors = functors_of(filter(has_functor, arguments.operations))
    key = without_comments(f"{told} {text}{functors}")
    symbol = f"shared_{hashlib.sha256(key.encode()).hexdigest()[:24]}"
    composed = compose([*headers, *of_functors], [functors, entry.format(symbol) + text])
    return Kernel(symbol, composed, arguments.values)
