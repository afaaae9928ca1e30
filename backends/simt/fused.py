"""Generate kernels that fuse several operations, and collect their launch arguments."""

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
    """Arguments of a fused kernel; an array that several operations use is passed once.

    Attributes
    ----------
    value : str
        The code of the values' dtype.
    declared, values : list
        The C declarations of the parameters, and the values to pass.
    cells : dict
        Arrays with one element per column: C type and name, by address.
    operations : list
        The map operations with functors that the text contains.
    renamed : dict
        Replacements for vectors, by address: the pointer expression and the element stride.
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
        """Add a pointer parameter and return its name."""
        where = 0 if array is None else array if isinstance(array, int) else address(array)
        key = (where, kind)
        if where == 0 or key not in self._known:
            name = f"a{len(self.declared)}"
            self.declared.append(f"{kind}* {name}")
            self.values.append(where)
            self._known[key] = name
        return self._known[key]

    def plain(self, kind: str, value: Any) -> str:
        """Add a scalar parameter and return its name."""
        name = f"a{len(self.declared)}"
        self.declared.append(f"{kind} {name}")
        self.values.append(value)
        return name

    def block(self, array: Array) -> str:
        """Add a block of vectors and return its C expression."""
        if address(array) in self.renamed:
            return "{{{}, {}}}".format(*self.renamed[address(array)])
        name = self.pointer(array, VALUE_TYPES[self.value])
        distance = (address(array), "distance")
        if distance not in self._known:
            self._known[distance] = self.plain("wl::i64", row_distance(array))
        return f"{{{name}, {self._known[distance]}}}"

    def number(self, value: complex, dtype: np.dtype[Any]) -> str:
        """Add a scalar in the dtype of the values and return its C expression."""
        parts = [self.plain(REAL[self.value], part) for part in scalar("T", value, dtype)]
        made = ", ".join(parts)
        return f"{VALUE_TYPES[self.value]}{{{made}}}" if len(parts) > 1 else made

    def members(self, operation: Operation, arguments: tuple[Any, ...], together: bool) -> str:
        """Return the C expression that constructs an operation's functor from these arguments."""
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
        """Return the pointer to a block's copy of a per-column value."""
        cell = self.cells.setdefault(address(array), (kind, f"c{len(self.cells)}"))
        return f"&s.{cell[1]}"

    def copies(self, status: Status) -> list[tuple[str, str, str]]:
        """Return C type, name and pointer of each scalar of which a block has a copy.

        These are the per-column values that operations use, and the members of a status.
        """
        result = [
            (kind, name, self.pointer(where, kind)) for where, (kind, name) in self.cells.items()
        ]
        for name, kind in STATUS:
            real = self.real(kind)
            result.append((real, name, self.pointer(getattr(status, name), real)))
        return result

    def real(self, kind: str) -> str:
        """Substitute the real type of the values for ``R`` in a C type."""
        return REAL[self.value] if kind == "R" else kind


def argument_dtype(value: str) -> np.dtype[Any]:
    """Return the dtype with the given code."""
    return np.dtype(value)


@dataclass(frozen=True)
class Kernel:
    """A kernel's name, its program, and its launch arguments.

    The program is composed on demand: to find a loaded kernel, its name suffices.
    """

    symbol: str
    program: Callable[[], str]
    values: list[Any]

    @property
    def source(self) -> str:
        """The text of the program, composed on demand."""
        return self.program()


#: Returns a function that composes the program from headers and texts of kernels.
Composer = Callable[[Sequence[str], Sequence[str]], Callable[[], str]]


def kernel(
    arguments: Arguments,
    headers: Sequence[str],
    extra: Sequence[str],
    body: str,
    compose: Composer,
    version: str,
    entry: str = "WL_ENTRY({})",
    grid: str = "",
) -> Kernel:
    """Return a kernel with the given body; its name contains a hash of the text.

    Parameters
    ----------
    headers : sequence of str
        The headers to include.
    extra : sequence of str
        Declarations of additional parameters, after the parameters of ``arguments``.
    compose : callable
        Creates the function that composes the program.
    version : str
        Properties of the program that its text does not determine; part of the hashed name.
    entry : str
        The beginning of the definition, with ``{}`` for the name.
    grid : str
        ``"WL_GRID "`` if kernels of the dialect have additional parameters of their own.
    """
    parameters = ", ".join([*arguments.declared, *extra])
    text = f"({grid}{parameters}) {{\n{body}}}\n"
    of_functors, functors = functors_of(filter(has_functor, arguments.operations))
    key = without_comments(f"{version} {text}{functors}")
    symbol = f"shared_{hashlib.sha256(key.encode()).hexdigest()[:24]}"
    composed = compose([*headers, *of_functors], [functors, entry.format(symbol) + text])
    return Kernel(symbol, composed, arguments.values)
