"""Generate the text for run-time compilers: flat C kernels around functors and warp templates.

A kernel needs only a functor of ``backends/unified`` and the declaration of its operation, or a
template of ``backends/simt`` and its :class:`SimtKernel`. This module generates the entry points
that ``cuLaunchKernel`` (or its equivalent) launches, in the dialects ``CUDA``, ``HIP``, ``SYCL``
and ``LOCKSTEP``.

Each argument of an operation becomes one or several arguments of a kernel:

=================== ==========================================================
in the signature    in C
=================== ==========================================================
``T[n,k]``          pointer, ``i64`` distance of rows in elements
other arrays        pointer
``T``, ``R``        value; a complex one as two reals, real part first
``int``, ``i64``    ``i64``
``i32``             ``i32``
``Status[k]``       the six pointers of ``Status.FIELDS``, capacity and columns
=================== ==========================================================

Kernels of functors take ``n``, ``k`` before the operation's arguments and scratch memory after
them: ``partials`` (one sum per column and block) and ``counter`` (an ``i32`` that is 0 before and
after every launch). Under ``LOCKSTEP`` the first argument is the number of blocks.

This module imports only the standard library.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...core import operations  # noqa: F401  (fills the table)
from ...core.operation import OPERATIONS, Operation, Parameter, parse_signature
from .functors import functor_text
from .program_text import INCLUDE, ROOT, ProgramParts

#: Codes of dtypes in the names of kernels: NumPy's codes without the byte order.
VALUE_TYPES = {
    "f4": "float",
    "f8": "double",
    "c8": "wl::complex<float>",
    "c16": "wl::complex<double>",
}
#: 16-bit dtypes. Only products of matrices take them; their sums and scalars are float32.
NARROW_TYPES = {"f2": "wl::half", "b2": "wl::bfloat"}
INDEX_TYPES = {"i4": "wl::i32", "i8": "wl::i64"}
_TYPES = {**VALUE_TYPES, **NARROW_TYPES}
#: Codes of values that are stored in a lower dtype than they are computed in.
STORED_TYPES = ("f8_f4", "f8_f2", "f8_b2", "f4_f2", "f4_b2", "c16_c8")
_REAL = {
    "f4": "float",
    "f8": "double",
    "c8": "float",
    "c16": "double",
    "f2": "float",
    "b2": "float",
}
_LOWER = {
    "f4": "float",
    "f8": "float",
    "c8": "wl::complex<float>",
    "c16": "wl::complex<float>",
    "f2": "float",
    "b2": "float",
}
_PLAIN = {"u8": "wl::u8", "i32": "wl::i32", "i64": "wl::i64", "int": "wl::i64", "f64": "double"}

#: Upper bound, in bytes, of one sum in scratch memory: a complex128 and a float64, padded.
LARGEST_SUM = 32


@dataclass(frozen=True, eq=False)
class SimtKernel:
    """A template of ``backends/simt`` that becomes kernels.

    Parameters
    ----------
    name : str
        The function template in namespace ``wl``; it takes the work-item first, then the arguments
        of the signature.
    header : str
        The file that defines it, relative to ``backends`` (``"simt/spmv.hpp"``), or an absolute
        path.
    signature : str
        As of an operation. Pass matrices and statuses as their separate arrays.
    template : str
        The template's arguments, such as ``"{W}, {T}, {I}"``: ``T`` and ``I`` are dtypes, others
        are constants.
    block : int
        Work-items per block.
    variants : tuple of mapping
        The constants of each instance to compile.
    resident : int
        Blocks that should be resident on a multiprocessor. It bounds the registers per work-item
        where the compiler accepts a bound; 0 sets no bound.
    text : str
        C++ text between the headers and the kernel, such as a user-defined function.
    """

    name: str
    header: str
    signature: str
    template: str = "{T}, {I}"
    block: int = 256
    variants: tuple[Mapping[str, int], ...] = ({},)
    resident: int = 0
    text: str = ""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters of the signature, in order."""
        return _parsed(self.signature)

    @property
    def converts(self) -> bool:
        """Whether the kernel reads values that may be stored in a lower dtype than ``T``."""
        return any(parameter.kind == "S" for parameter in self.parameters)

    @property
    def needs_value(self) -> bool:
        """Whether the kernel depends on the dtype of values."""
        kinds = {parameter.kind for parameter in self.parameters}
        return "{T}" in self.template or not kinds.isdisjoint("TRSL")

    def symbol(self, value: str, index: str | None = None, **constants: object) -> str:
        """Return the name of the kernel for the given dtypes and constants."""
        parts = [value, *([index] if index and "{I}" in self.template else [])]
        parts += [str(constant) for constant in constants.values()]
        if self.text:
            parts.append(hashlib.sha256(self.text.encode()).hexdigest()[:12])
        return f"{self.name}__{'_'.join(parts)}"


@cache
def _parsed(signature: str) -> tuple[Parameter, ...]:
    return parse_signature(signature)


def has_functor(operation: Operation) -> bool:
    """Return whether an operation has a functor: of a step, of a package, or of this folder."""
    return operation.is_map and (
        operation.step is not None or bool(operation.functor) or _is_there(header_of(operation))
    )


@cache
def _is_there(header: str) -> bool:
    return (ROOT / header).exists()


def header_of(operation: Operation) -> str:
    """Return the header of this folder that defines an operation's functor, or that it needs."""
    has_text = operation.step is not None or operation.functor
    return "unified/step.hpp" if has_text else f"unified/{operation.group}.hpp"


def maps_of(group: str) -> list[Operation]:
    """Return the map operations of a group that have functors, except other packages'."""
    return [one for one in OPERATIONS if one.group == group and _is_compiled_with_group(one)]


def map_groups() -> list[str]:
    """Return the groups that have functors, in the order of their declaration."""
    return list(dict.fromkeys(one.group for one in OPERATIONS if _is_compiled_with_group(one)))


def _is_compiled_with_group(operation: Operation) -> bool:
    return has_functor(operation) and not operation.functor


def functors_of(declared: Iterable[Operation]) -> tuple[list[str], str]:
    """Return the headers of operations' functors, and the text of functors without a header."""
    each = list(dict.fromkeys(declared))
    texts = [functor_text(one) for one in each if one.step is not None or one.functor]
    text = "namespace wl {\n" + "\n".join(texts) + "} // namespace wl\n" if texts else ""
    headers = [header for one in each for header in (header_of(one), *included(one.functor))]
    return list(dict.fromkeys(headers)), text


def included(text: str) -> list[str]:
    """Return the headers of wollemi that a functor's text includes."""
    return INCLUDE.findall(text)


def needs_index(operation: Operation) -> bool:
    """Return whether the functor of ``operation`` has the index dtype as a template parameter."""
    return any(parameter.kind == "I" for parameter in operation.parameters)


def needs_value(operation: Operation) -> bool:
    """Return whether the functor of ``operation`` has the value dtype as a template parameter.

    If it has not, there is one kernel, under the first code of :data:`VALUE_TYPES`.
    """
    return any(parameter.kind in ("T", "R") for parameter in operation.parameters)


#: The two halves of a map operation with sums; the sums over the group are made between them.
HALVES = ("visiting", "finishing")


def map_symbol(operation: Operation, value: str, index: str = "i4", half: str = "") -> str:
    """Return the name of the kernel of a map operation, or of one half, for the given dtypes."""
    name = f"{operation.symbol}_{half}" if half else operation.symbol
    return f"{name}__{value}" + (f"_{index}" if needs_index(operation) else "")


def functor(operation: Operation, value: str, index: str = "i4") -> str:
    """Return the C++ type of the functor of a map operation."""
    types = [VALUE_TYPES[value]] * needs_value(operation)
    types += [INDEX_TYPES[index]] * needs_index(operation)
    return f"wl::{operation.symbol}<{', '.join(types)}>"


def c_arguments(
    parameter: Parameter, value: str, index: str = "i4", prefix: str = ""
) -> tuple[list[str], str]:
    """Return the flat C declaration of an argument, and the expression that reassembles it.

    Parameters
    ----------
    parameter : Parameter
        A parameter of an operation or a :class:`SimtKernel`.
    value, index : str
        Codes of the dtypes. ``f8_b2`` means computed in float64 and stored in bfloat16.
    prefix : str
        Prepended to all names, where several operations share a kernel.
    """
    name = prefix + parameter.name
    types = _types(value, index)
    value, _ = parts_of(value)
    if parameter.is_status:
        real = _REAL[value]
        members = {
            "stop": "wl::u8*",
            "iterations": "wl::i64*",
            "norm": f"{real}*",
            "threshold": f"const {real}*",
            "history": f"{real}*",
            "running": "wl::i32*",
            "capacity": "wl::i64",
            "columns": "wl::i64",
        }
        declared = [f"{kind} {name}_{member}" for member, kind in members.items()]
        return declared, "{" + ", ".join(f"{name}_{member}" for member in members) + "}"
    if parameter.is_scalar:
        if parameter.kind == "T" and value.startswith("c"):
            parts = [f"{name}_re", f"{name}_im"]
            made = f"{types['T']}{{{', '.join(parts)}}}"
            return [f"{_REAL[value]} {part}" for part in parts], made
        kind = "R" if parameter.kind == "T" else parameter.kind  # scalar factors never have 16 bits
        return [f"{types[kind]} {name}"], name
    constness = "const " if parameter.intent == "in" else ""
    declared = [f"{constness}{types[parameter.kind]}* {name}"]
    if parameter.is_block:
        return [*declared, f"wl::i64 {name}_ld"], f"{{{name}, {name}_ld}}"
    return declared, name


def _types(value: str, index: str) -> dict[str, str]:
    """Return the C++ type of each kind of argument for the given dtypes."""
    value, stored = parts_of(value)
    types = {"S": _TYPES[stored], "T": _TYPES[value], "R": _REAL[value], "L": _LOWER[value]}
    return types | {"I": INDEX_TYPES[index], **_PLAIN}


def element_type(parameter: Parameter, value: str, index: str = "i4") -> str:
    """Return the C++ type of a number, or of an array's elements, for the given dtypes."""
    return _types(value, index)[parameter.kind]


_BYTES = {
    "float": 4,
    "double": 8,
    "wl::complex<float>": 8,
    "wl::complex<double>": 16,
    "wl::i32": 4,
    "wl::i64": 8,
    "wl::u8": 1,
}


def element_bytes(parameter: Parameter, value: str, index: str = "i4") -> int:
    """Return the size of an array's element in bytes."""
    return _BYTES[element_type(parameter, value, index)]


def parts_of(value: str) -> tuple[str, str]:
    """Return the codes of the dtype of computation and of the dtype of storage.

    Examples
    --------
    >>> parts_of("f8"), parts_of("f8_b2")
    (('f8', 'f8'), ('f8', 'b2'))
    """
    computed, _, stored = value.partition("_")
    return computed, stored or computed


def stored_type(value: str) -> str:
    """Return the C++ type of stored values."""
    return _TYPES[parts_of(value)[1]]


def sum_bytes(operation: Operation) -> int:
    """Return the upper bound in bytes of a functor's sum, which its widest dtype needs."""
    each = 16 if "T" in operation.sums else 8
    return max(LARGEST_SUM, -(-each * len(operation.sums) // 16) * 16)


def map_wrapper(operation: Operation, value: str, index: str = "i4", half: str = "") -> str:
    """Return the text of the kernel of a map operation, or of one half, for the given dtypes.

    ``half="meeting"`` computes the whole operation, including the sums over all members of a group
    that can access each other's memory.
    """
    declared, members = _all_arguments(operation.parameters, value, index)
    made = f"{functor(operation, value, index)}{{{', '.join(members)}}}"
    if half == "meeting":
        kind = f"wl::meeting<{functor(operation, value, index)}, {_REAL[value]}>"
        declared, made = [*declared, "wl::peers* group"], f"{kind}{{{made}, group}}"
    elif half:
        kind = f"wl::{half}<{functor(operation, value, index)}, {_REAL[value]}>"
        declared, made = [*declared, f"{_REAL[value]}* slots"], f"{kind}{{{made}, slots, k}}"
    arguments = ", ".join(
        ["wl::i64 n", "wl::i64 k", *declared, "wl::u8* partials", "wl::i32* counter"]
    )
    return (
        f"WL_ENTRY({map_symbol(operation, value, index, half)})(WL_GRID {arguments}) {{\n"
        f"  WL_RUN(wl::map(it, {made}, n, k, partials, counter);)\n}}\n"
    )


def simt_wrapper(kernel: SimtKernel, value: str, index: str = "i4", **constants: object) -> str:
    """Return the text of a kernel of ``backends/simt`` for the given dtypes and constants."""
    declared, members = _all_arguments(kernel.parameters, value, index)
    types = {"T": _TYPES[parts_of(value)[0]], "I": INDEX_TYPES[index], **constants}
    function = f"wl::{kernel.name}<{kernel.template.format(**types)}>"
    return kernel.text + (
        f"WL_ENTRY({kernel.symbol(value, index, **constants)})(WL_GRID {', '.join(declared)}) {{\n"
        f"  WL_RUN({function}(it, {', '.join(members)});)\n}}\n"
    )


def _all_arguments(
    parameters: Iterable[Parameter], value: str, index: str
) -> tuple[list[str], list[str]]:
    declared, members = [], []
    for parameter in parameters:
        flat, member = c_arguments(parameter, value, index)
        declared += flat
        members.append(member)
    return declared, members


def program(
    dialect: str,
    headers: Iterable[str],
    wrappers: Iterable[str],
    *,
    warp: int = 32,
    block: int = 256,
    defines: Mapping[str, object] | None = None,
    roots: tuple[Path, ...] = (ROOT,),
) -> str:
    """Return a whole program: definitions, the headers with their includes, and the wrappers.

    Parameters
    ----------
    dialect : str
        ``CUDA``, ``HIP``, ``SYCL`` or ``LOCKSTEP``.
    headers : iterable of str
        Headers, by their paths relative to one of ``roots``: ``"simt/spmv.hpp"``.
    wrappers : iterable of str
        Texts of kernels.
    warp, block : int
        Lanes per wave and work-items per block.
    defines : mapping, optional
        Additional macros.
    roots : tuple of Path, optional
        Folders to search for headers, in this order, instead of ``backends``.
    """
    operands = (dialect, headers, wrappers)
    return program_parts(*operands, warp=warp, block=block, defines=defines, roots=roots).text()


def program_parts(
    dialect: str,
    headers: Iterable[str],
    wrappers: Iterable[str],
    *,
    warp: int = 32,
    block: int = 256,
    defines: Mapping[str, object] | None = None,
    roots: tuple[Path, ...] = (ROOT,),
) -> ProgramParts:
    """Return the parts of a program; the parameters are as in :func:`program`."""
    macros = {f"WL_{dialect}": 1, "WL_WARP": warp, "WL_BLOCK": block, **(defines or {})}
    return ProgramParts(macros, tuple(headers), tuple(wrappers), roots)


def map_parts(
    dialect: str,
    declared: Sequence[Operation],
    value: str,
    index: str = "i4",
    *,
    warp: int = 32,
    block: int = 256,
) -> ProgramParts:
    """Return the parts of a program with map operations for the given dtypes."""
    headers, functors = functors_of(declared)
    wrappers = [map_wrapper(operation, value, index) for operation in declared]
    headers = ["unified/map_simt.hpp", *headers]
    return program_parts(dialect, headers, [functors, *wrappers], warp=warp, block=block)


def simt_parts(
    dialect: str,
    kernel: SimtKernel,
    value: str,
    index: str,
    constants: Mapping[str, int],
    *,
    warp: int = 32,
    defines: Mapping[str, object] | None = None,
) -> ProgramParts:
    """Return the parts of a program with a kernel of ``backends/simt`` for the given dtypes."""
    wrapper = simt_wrapper(kernel, value, index, **constants)
    operands = (dialect, [kernel.header], [wrapper])
    return program_parts(*operands, warp=warp, block=kernel.block, defines=defines)


def map_program(
    dialect: str,
    declared: Sequence[Operation],
    value: str,
    index: str = "i4",
    *,
    warp: int = 32,
    block: int = 256,
) -> str:
    """Return a program with map operations for the given dtypes."""
    return map_parts(dialect, declared, value, index, warp=warp, block=block).text()


def halves_program(
    dialect: str,
    operation: Operation,
    value: str,
    index: str = "i4",
    *,
    warp: int = 32,
    block: int = 256,
) -> str:
    """Return a program with both halves of a map operation for the given dtypes."""
    headers, functors = functors_of([operation])
    wrappers = [map_wrapper(operation, value, index, half) for half in HALVES]
    headers = ["unified/map_simt.hpp", "unified/halves.hpp", *headers]
    return program(dialect, headers, [functors, *wrappers], warp=warp, block=block)
