"""Kernels that fuse a product with the operation on rows that follows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...gpu.arguments import value_code
from ...gpu.constants import SPMV, SpmvConstants
from ...gpu.spmv.algorithm import RowKernel, lanes_of, row_kernel_of
from ...gpu.tape import TapeStep
from ...simt import fused
from ...simt.fused import REAL, Arguments, Kernel
from ...simt.operands import CODES
from ...unified.program_text import ProgramText
from ...unified.wrappers import INDEX_TYPES, VALUE_TYPES, functor, program_parts, stored_type
from ..peers.exchange import Exchange

if TYPE_CHECKING:
    from ....core.executor import Array


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
    """Return a kernel with the given body for NVIDIA GPUs.

    Parameters
    ----------
    headers, extra
        As in :func:`wollemi.backends.simt.fused.kernel`.
    shape : str
        Launch attributes besides the number of work-items per block.
    """
    entry = "WL_ENTRY({})"
    if shape:
        entry = f'extern "C" __global__ void {shape} {{}}'

    def compose(headers: Sequence[str], texts: Sequence[str]) -> ProgramText:
        given = ("CUDA", headers, texts)
        return ProgramText(lambda: program_parts(*given, warp=warp, block=block, defines=defines))

    told = f"{block} {sorted((defines or {}).items())}"
    return fused.kernel(arguments, headers, extra, body, compose, told, entry)


def _product(arguments: Arguments, step: TapeStep, after: str, rules: SpmvConstants) -> str:
    """Return the statement of a product that passes each row to ``after``."""
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
    """How a kernel combines its sums with the other members of a group.

    Attributes
    ----------
    half : str
        ``"meeting"``: the kernel itself exchanges sums with the other members. ``"visiting"``: it
        stores its sums in slots, from which they are made total later.
    memory : Array
        The peers through which the members' kernels exchange sums, or the slots.
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
    """Return the kernel of a product fused with the operation on rows that follows it.

    Parameters
    ----------
    totals : Totals, optional
        How the operation's sums become sums over a group of members.
    exchange : Exchange, optional
        The exchange of the vector's rows that other members need: the kernel begins with it.
        Requires ``totals`` with ``half="meeting"``.
    rules : SpmvConstants
        The constants of the device, which determine the number of lanes per row.
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
