"""The text of kernels that several operations share, and the arguments they are launched with."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ....core.kernel_text import without_comments
from ....core.operation import Operation, Parameter
from ....core.status import Status
from ...gpu.arguments import CODES, row_distance, scalar, value_code
from ...gpu.constants import SPMV, SpmvConstants
from ...gpu.spmv.algorithm import RowKernel, lanes_of, row_kernel_of
from ...gpu.tape import TapeStep, address, is_vector
from ...unified.wrappers import (
    INDEX_TYPES,
    VALUE_TYPES,
    functor,
    functors_of,
    has_functor,
    program,
    stored_type,
)
from ..peers.exchange import Exchange

if TYPE_CHECKING:
    from ....core.executor import Array
    from ...gpu.types import KernelArgument

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

    def plain(self, kind: str, value: KernelArgument) -> str:
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
    """A kernel's name, its program, and the arguments to launch it with."""

    symbol: str
    source: str
    values: list[Any]


def kernel(
    arguments: Arguments,
    headers: list[str],
    extra: list[str],
    body: str,
    block: int,
    warp: int,
    defines: Mapping[str, object] | None = None,
    shape: str = "",
) -> Kernel:
    """Return a kernel of this body; its name contains a hash of it.

    Parameters
    ----------
    headers : list of str
        The headers that it includes.
    extra : list of str
        Declarations of further parameters, after the parameters of ``arguments``.
    shape : str
        Attributes that say more than how many work-items a block has.
    """
    parameters = ", ".join([*arguments.declared, *extra])
    entry = "WL_ENTRY({})"
    if shape:
        entry = f'extern "C" __global__ void {shape} {{}}'
    text = f"({parameters}) {{\n{body}}}\n"
    told = f"{block} {sorted((defines or {}).items())} {text}"
    of_functors, functors = functors_of(filter(has_functor, arguments.operations))
    symbol = f"shared_{hashlib.sha256(without_comments(told + functors).encode()).hexdigest()[:24]}"
    source = program(
        "CUDA",
        [*headers, *of_functors],
        [functors, entry.format(symbol) + text],
        warp=warp,
        block=block,
        defines=defines,
    )
    return Kernel(symbol, source, arguments.values)


def _product(arguments: Arguments, step: TapeStep, after: str, rules: SpmvConstants) -> str:
    """Return the statement of a product that goes on with ``after``."""
    assert step.spmv is not None
    matrix, x, y, alpha, beta = step.spmv
    value, index = arguments.value, CODES[matrix.indices.dtype]
    real, wide = VALUE_TYPES[value], INDEX_TYPES[index]
    stored = stored_type(value_code(matrix.dtype, matrix.storage_dtype))
    vectors = [arguments.pointer(x, real), arguments.pointer(y, real)]
    vectors += [arguments.number(a, matrix.dtype) for a in (alpha, beta)]
    state, form = matrix.plan.state, row_kernel_of(matrix.plan)
    if form is RowKernel.PACKED:
        pointers = [
            arguments.plain("wl::i64", state.lanes),
            arguments.pointer(state.slice_ptr, "const wl::i64"),
            arguments.pointer(state.codes, "const wl::u8"),
            arguments.pointer(state.values, f"const {stored}"),
            arguments.pointer(state.target, "const wl::i32"),
            arguments.pointer(state.offsets, "const wl::i32"),
            arguments.plain("wl::i64", state.pattern_width),
        ]
        made = [*pointers, *vectors, "nullptr", after]
        kind = f"{state.code}, {state.width}, {real}"
        return f"wl::sell_packed<{kind}>(it, {', '.join(made)});\n"
    pointers = [
        arguments.plain("wl::i64", int(y.shape[0])),
        arguments.pointer(matrix.indptr, f"const {wide}"),
        arguments.pointer(matrix.indices, f"const {wide}"),
        arguments.pointer(matrix.data, f"const {stored}"),
    ]
    if form is RowKernel.LANES:
        x_name, y_name, *numbers = vectors
        blocks = [f"wl::mat<const {real}>{{{x_name}, 1}}", f"wl::mat<{real}>{{{y_name}, 1}}"]
        rows, *matrix_pointers = pointers
        lanes = lanes_of(matrix.plan, rules)
        given = ", ".join([rows, "1", *matrix_pointers, *blocks, *numbers, after])
        return f"wl::csr_subwarp<{lanes}, {real}, {wide}>(it, {given});\n"
    return f"wl::csr_stream<{real}, {wide}>(it, {', '.join([*pointers, *vectors, after])});\n"


@dataclass(frozen=True)
class Totals:
    """How a kernel leaves its sums to the other members of a group.

    Attributes
    ----------
    half : str
        ``"meeting"``: it meets the other members. ``"visiting"``: it leaves its sums in slots.
    memory : Array
        The peers by which the members' kernels meet, or the slots.
    """

    half: str
    memory: Array


def product_and_rows(
    step: TapeStep,
    *,
    warp: int,
    block: int,
    totals: Totals | None = None,
    exchange: Exchange | None = None,
    rules: SpmvConstants = SPMV,
) -> Kernel:
    """Return the kernel of a product and the operation on rows after it.

    Parameters
    ----------
    totals : Totals, optional
        Where the sums of the operation are those of the members of a group.
    exchange : Exchange, optional
        Of the rows of the vector that other members need: the kernel begins with it. The totals
        must meet the other members.
    rules : SpmvConstants
        The constants of the device, which say how many lanes share a row.
    """
    assert step.spmv is not None and step.rows is not None
    arguments = Arguments(CODES[step.spmv.A.dtype])
    operation, given = step.rows
    made = arguments.members(operation, given, together=False)
    kind, headers = functor(operation, arguments.value), ["simt/spmv.hpp"]
    if totals is not None:
        kind = f"wl::{totals.half}<{kind}, {REAL[arguments.value]}>"
        meets = totals.half == "meeting"
        memory = arguments.pointer(totals.memory, "wl::peers" if meets else REAL[arguments.value])
        made = f"{kind}{{{made}, {memory}}}" if meets else f"{kind}{{{made}, {memory}, 1}}"
        headers.append("cuda/peers/peers.hpp" if meets else "unified/halves.hpp")
    after = f"wl::then<{kind}>{{{made}, partials, counter}}"
    body = "  const wl::item it{};\n"
    if exchange is not None:
        types = f"{VALUE_TYPES[arguments.value]}, {exchange.index}"
        record, *values = exchange.values
        members = [arguments.pointer(record, "wl::peers")]
        for kind_of, value in zip(exchange.kinds(types), values, strict=True):
            if kind_of.endswith("*"):
                members.append(arguments.pointer(value, kind_of.removesuffix("*")))
            else:
                members.append(arguments.plain(kind_of, value))
        numbers = (*exchange.interior, exchange.blocks)
        further = ", ".join(arguments.plain("wl::i64", number) for number in numbers)
        body += f"  const wl::exchange<{types}> rows{{{', '.join(members)}}};\n"
        after = f"wl::exchanging<wl::then<{kind}>, {types}>(it, {after}, rows, {further})"
    body += "  " + _product(arguments, step, after, rules)
    extra = ["wl::u8* partials", "wl::i32* counter"]
    return kernel(arguments, headers, extra, body, block, warp)
