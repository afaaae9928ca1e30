"""The text of kernels that several operations share, and the arguments they are launched with."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...core.operation import Operation, Parameter
from ...core.status import Status
from ..unified.wrappers import FOLDERS, INDEX_TYPES, VALUE_TYPES, functor, program
from . import packed
from .base import CODES, row_distance, scalar
from .tape import Meetings, Step, address, is_vector

_REAL = {"f4": "float", "f8": "double", "c8": "float", "c16": "double"}
_CELL = {"u8": "wl::u8", "i32": "wl::i32", "i64": "wl::i64"}

#: Members of a status and their C types; ``R`` is the real type of the values.
_STATUS = (
    ("stop", "wl::u8"),
    ("iterations", "wl::i64"),
    ("norm", "R"),
    ("threshold", "R"),
    ("history", "R"),
    ("running", "wl::i32"),
)


@dataclass
class Arguments:
    """Arguments of a kernel: each array once, whatever operations it is an argument of.

    Attributes
    ----------
    value : str
        Code of the dtype of values.
    declared, values : list
        How C declares them, and what is passed.
    cells : dict
        Arrays of one element a column, by address: C type and name.
    """

    value: str
    declared: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    cells: dict[int, tuple[str, str]] = field(default_factory=dict)
    status: Status | None = None
    renamed: dict[int, str] = field(default_factory=dict)
    _known: dict[tuple[int, str], str] = field(default_factory=dict)

    def pointer(self, array: Any, kind: str) -> str:
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

    def block(self, array: Any) -> str:
        """Add a block of vectors and return its expression."""
        if address(array) in self.renamed:
            return self.renamed[address(array)]
        name = self.pointer(array, VALUE_TYPES[self.value])
        distance = (address(array), "distance")
        if distance not in self._known:
            self._known[distance] = self.plain("wl::i64", row_distance(array))
        return f"{{{name}, {self._known[distance]}}}"

    def number(self, value: Any, dtype: Any) -> str:
        """Add a scalar of the dtype of values and return its expression."""
        parts = [self.plain(_REAL[self.value], part) for part in scalar("T", value, dtype)]
        made = ", ".join(parts)
        return f"{VALUE_TYPES[self.value]}{{{made}}}" if len(parts) > 1 else made

    def members(self, operation: Operation, arguments: tuple[Any, ...], together: bool) -> str:
        """Return the functor of a map operation made of these arguments."""
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
                self.pointer(getattr(argument, name), self.real(kind)) for name, kind in _STATUS
            ]
            sizes = [self.plain("wl::i64", n) for n in (argument.capacity, argument.shape[0])]
            return "{" + ", ".join(pointers + sizes) + "}"
        if parameter.is_scalar:
            return self.number(argument, argument_dtype(self.value))
        if len(parameter.dims) == 2:
            return self.block(argument)
        kind = {"T": VALUE_TYPES[self.value], "R": _REAL[self.value], **_CELL}[parameter.kind]
        if is_vector(operation, parameter) or not together:
            return self.pointer(argument, kind)
        cell = self.cells.setdefault(address(argument), (kind, f"c{len(self.cells)}"))
        return f"&s.{cell[1]}"

    def real(self, kind: str) -> str:
        """Return a C type in which ``R`` may stand for the real type of the values."""
        return _REAL[self.value] if kind == "R" else kind


def argument_dtype(value: str) -> np.dtype[Any]:
    """Return the dtype of a code."""
    return np.dtype(value)


@dataclass(frozen=True)
class Kernel:
    """A kernel's name, its program, and the arguments to launch it with."""

    symbol: str
    source: str
    values: list[Any]


def _kernel(
    arguments: Arguments,
    extra: list[str],
    body: str,
    block: int,
    warp: int,
    cluster: int = 0,
    resident: bool = False,
) -> Kernel:
    parameters = ", ".join([*arguments.declared, *extra])
    headers = ["waiting.hpp", "vector.hpp", "cg.hpp", "cgs.hpp", "bicgstab.hpp", "status.hpp"]
    defines: dict[str, object] = {}
    if resident:
        defines["WL_RESIDENT"] = 1
    entry = "WL_ENTRY({})"
    if cluster:
        defines["WL_CLUSTER"] = cluster
        shape = f"__cluster_dims__({cluster}) __launch_bounds__({block})"
        entry = f'extern "C" __global__ void {shape} {{}}'
    text = f"({parameters}) {{\n{body}}}\n"
    hashed = hashlib.sha256(f"{block} {cluster} {resident} {text}".encode()).hexdigest()
    symbol = f"shared_{hashed[:24]}"
    source = program(
        "CUDA",
        headers,
        [entry.format(symbol) + text],
        warp=warp,
        block=block,
        defines=defines,
        folders=(*FOLDERS, Path(__file__).parent),
    )
    return Kernel(symbol, source, arguments.values)


def _product(
    arguments: Arguments, step: Step, after: str, *, together: bool, gathered: str = ""
) -> str:
    """Return the statement of a product that goes on with ``after``.

    ``gathered`` stands for the vector that it gathers from, if not the vector itself.
    """
    assert step.product is not None
    matrix, x, y, alpha, beta = step.product[1]
    value, index = arguments.value, CODES[matrix.indices.dtype]
    real, wide = VALUE_TYPES[value], INDEX_TYPES[index]
    vectors = [gathered or arguments.pointer(x, real), arguments.pointer(y, real)]
    vectors += [arguments.number(a, matrix.dtype) for a in (alpha, beta)]
    rows = arguments.plain("wl::i64", int(y.shape[0]))
    state = matrix.plan.state
    if isinstance(state, packed.Packed):
        pointers = [
            arguments.plain("wl::i64", state.lanes),
            arguments.pointer(state.slice_ptr, "const wl::i64"),
            arguments.pointer(state.codes, "const wl::u8"),
            arguments.pointer(state.values, f"const {real}"),
            arguments.pointer(state.target, "const wl::i32"),
            arguments.pointer(state.offsets, "const wl::i32"),
            arguments.plain("wl::i64", state.pattern_width),
        ]
        made = [*pointers, *vectors, "nullptr", after]
        kind = f"{state.code}, {state.width}, {real}"
        return f"wl::sell_packed<{kind}>(it, {', '.join(made)});\n"
    pointers = [
        rows,
        arguments.pointer(matrix.indptr, f"const {wide}"),
        arguments.pointer(matrix.indices, f"const {wide}"),
        arguments.pointer(matrix.data, f"const {real}"),
    ]
    name = "csr_rows" if together else "csr_stream"
    return f"wl::{name}<{real}, {wide}>(it, {', '.join([*pointers, *vectors, after])});\n"


def product_and_rows(step: Step, *, warp: int, block: int) -> Kernel:
    """Return the kernel of a product and the operation on rows after it."""
    assert step.product is not None and step.rows is not None
    arguments = Arguments(CODES[step.product[1][0].dtype])
    operation, given = step.rows
    made = arguments.members(operation, given, together=False)
    after = f"wl::then<{functor(operation, arguments.value)}>{{{made}, partials, counter}}"
    body = "  const wl::item it{};\n  " + _product(arguments, step, after, together=False)
    return _kernel(arguments, ["wl::u8* partials", "wl::i32* counter"], body, block, warp)


def all_together(
    steps: list[Step],
    plan: Meetings,
    status: Status,
    value: str,
    *,
    warp: int,
    block: int,
    cluster: int = 0,
    spare: Any = None,
) -> Kernel:
    """Return the one kernel of all steps, round after round.

    With ``cluster`` it runs on one cluster of that many blocks, otherwise on any grid that is on
    the device as a whole.

    What is one element a column, the status above all, every block has for itself in shared memory:
    all of them compute the same. The first block writes it back at the end, and alone writes the
    history.
    """
    arguments = Arguments(value)
    arguments.status = status
    if spare is not None:
        return _delayed(arguments, steps, plan, spare, warp=warp, block=block, cluster=cluster)
    lines = [_step(arguments, step, plan, at) for at, step in enumerate(steps)]
    return _kernel(
        arguments,
        ["wl::u64* posts", "wl::u32 number", "wl::i64 limit"],
        _frame(arguments, lines),
        block,
        warp,
        cluster,
        resident=True,
    )


def _step(arguments: Arguments, step: Step, plan: Meetings, at: int) -> str:
    """Return the statements of a step."""
    wait = "wl::wait_for_all(it, m);\n" if plan.before[at] else ""
    after = _after(arguments, step, plan.publish[at])
    if step.product is not None:
        return wait + _product(arguments, step, after, together=True)
    n = arguments.plain("wl::i64", _rows(step))
    return f"{wait}wl::each_row(it, {n}, {after});\n"


def _after(arguments: Arguments, step: Step, publish: bool) -> str:
    """Return what is done with each row."""
    if step.rows is None:
        return "wl::nothing{}"
    operation, given = step.rows
    kind = functor(operation, arguments.value)
    made = arguments.members(operation, given, together=True)
    return f"wl::then_together<{'true' if publish else 'false'}, {kind}>{{{made}, m}}"


def _delayed(
    arguments: Arguments,
    steps: list[Step],
    plan: Meetings,
    spare: Any,
    *,
    warp: int,
    block: int,
    cluster: int,
) -> Kernel:
    """Return the kernel in which the first product forms what the last step would have."""
    first, last = steps[0], steps[-1]
    assert first.product is not None and last.rows is not None
    real = VALUE_TYPES[arguments.value]
    vector = first.product[1][1]
    where = address(vector)
    original = arguments.pointer(vector, real)
    other = arguments.pointer(spare, real)
    n = arguments.plain("wl::i64", int(vector.shape[0]))
    operation, given = last.rows
    kind = functor(operation, arguments.value)

    def made(place: str) -> str:
        arguments.renamed[where] = place
        return arguments.members(operation, given, together=True)

    fresh, finally_made = made("{&fresh, 0}"), made(f"{{{original}, 1}}")
    before = made("{old, 1}")
    arguments.renamed[where] = "{now, 1}"
    after = _after(arguments, first, plan.publish[0])
    plain = _product(arguments, first, after, together=True, gathered="now")
    forming = _product(
        arguments,
        first,
        f"wl::stored(now, formed, {after})",
        together=True,
        gathered="formed",
    )
    rounds = f"""\
if (round == 0) {{
  {plain}}} else {{
  {real}* const old = now;
  now = now == {original} ? {other} : {original};
  const {kind} last_step{before.removeprefix(kind)};
  const auto state = last_step.column(0);
  const auto formed = wl::indexed([&](wl::i64 c) {{
    {real} fresh = old[c];
    {fresh}(c, 0, state);
    return fresh;
  }});
  {forming}}}
"""
    lines = [rounds]
    lines += [_step(arguments, step, plan, at) for at, step in enumerate(steps[1:-1], 1)]
    lines.append("++done;\n")
    opening = f"  {real}* now = {original};\n  wl::i64 done = 0;\n"
    closing = (
        f"  if (now != {original}) wl::each_row(it, {n}, "
        f"wl::copying<{real}>{{{original}, now}});\n"
        f"  if (done > 0) wl::each_row(it, {n}, "
        f"wl::then_together<false, {kind}>{{{finally_made}, m}});\n"
    )
    return _kernel(
        arguments,
        ["wl::u64* posts", "wl::u32 number", "wl::i64 limit"],
        _frame(arguments, lines, opening, closing),
        block,
        warp,
        cluster,
        resident=True,
    )


def _rows(step: Step) -> int:
    assert step.rows is not None
    operation, given = step.rows
    return next(
        int(argument.shape[0])
        for parameter, argument in zip(operation.parameters, given, strict=True)
        if parameter.is_array and is_vector(operation, parameter)
    )


def _frame(arguments: Arguments, lines: list[str], opening: str = "", closing: str = "") -> str:
    """Return the body: copies of what is one a column, the rounds, and writing back."""
    status = arguments.status
    assert status is not None
    copies = [
        (kind, name, arguments.pointer(where, kind))
        for where, (kind, name) in arguments.cells.items()
    ]
    for name, kind in _STATUS:
        real = arguments.real(kind)
        copies.append((real, name, arguments.pointer(getattr(status, name), real)))
    real = _REAL[arguments.value]
    capacity = arguments.plain("wl::i64", status.capacity)
    history = next(pointer for _, name, pointer in copies if name == "history")
    members = "".join(f" {kind} {name};" for kind, name, _ in copies)
    loads = "".join(f"    s.{name} = *{pointer};\n" for _, name, pointer in copies)
    stores = "".join(
        f"    *{pointer} = s.{name};\n" for _, name, pointer in copies if name not in _READ_ONLY
    )
    rounds = "".join(f"    {line}" for line in lines)
    return f"""\
  struct copies {{{members} }};
  __shared__ copies s;
  const wl::item it{{}};
  const bool first = it.block() == 0;
  if (it.thread() == 0) {{
{loads}  }}
  it.barrier();
  const wl::status_of<{VALUE_TYPES[arguments.value]}> status{{
      &s.stop, &s.iterations, &s.norm, &s.threshold, first ? {history} : &s.history, &s.running,
      first ? {capacity} : 1, 1}};
  wl::meeting m{{posts, number}};
  wl::begin_meetings();
{opening}  for (wl::i64 round = 0; round < limit && s.running != 0; ++round) {{
{rounds}  }}
{closing}  wl::wait_for_all(it, m);
  if (first && it.thread() == 0) {{
{stores}  }}
"""


_READ_ONLY = ("history", "threshold")
