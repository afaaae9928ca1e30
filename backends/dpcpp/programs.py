"""Compile kernels: group them into programs, cache the programs, and pack arguments.

A program takes about 1.5 s to compile, most of it for SYCL's headers. Therefore, kernels that are
used together are compiled together: all functors of a group of operations, all products of a
format. Compiled programs are cached on disk: by :mod:`.machine_code` for OpenCL devices, by
:mod:`.program_cache` for all devices.
"""

from __future__ import annotations

import platform
import re
import struct
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ...core.operation import Operation
from ..unified import program_text, wrappers
from ..unified.wrappers import SimtKernel
from . import functors
from .devices import CPU_LANES, DeviceProperties
from .machine_code import MachineCode
from .place import Place
from .shim import build_program, last_error, shim
from .templates import IN_LANES, Family

#: The SYCL headers that the kernels need: they compile in half the time of all headers.
HEADERS = (
    "sycl/ext/oneapi/free_function_queries.hpp",
    "sycl/ext/oneapi/kernel_properties/properties.hpp",
    "sycl/ext/oneapi/work_group_static.hpp",
    "sycl/builtins.hpp",
    "sycl/group_algorithm.hpp",
    "sycl/group_barrier.hpp",
    "sycl/sub_group.hpp",
    "sycl/atomic_fence.hpp",
    "sycl/atomic_ref.hpp",
)

#: Machine names of the only processor architecture with assembly code in the kernels.
X86 = ("x86_64", "AMD64")

#: Codes of value dtypes by name, because NumPy has no bfloat16.
VALUE_CODES = {
    **{np.dtype(code).name: code for code in wrappers.VALUE_TYPES},
    "float16": "f2",
    "bfloat16": "b2",
}
_DOUBLE = ("f8", "c16")
INDEX_CODES = {np.dtype(code): code for code in wrappers.INDEX_TYPES}

#: Formats that pack C types into slots of eight bytes: the shim's letter and Python's.
_SLOTS = {
    "wl::i64": ("q", "q"),
    "wl::i32": ("i", "i4x"),
    "double": ("d", "d"),
    "float": ("f", "f4x"),
}
_POINTER = ("P", "Q")
#: The line of a program after which its kernels begin.
WRAPPERS = '#line 1 "wrappers"\n'
_ENTRY = re.compile(r"WL_ENTRY\((\w+)\)\(WL_GRID ([^)]*)\)")


class CompiledKernel(NamedTuple):
    """A kernel of a compiled program."""

    name: str
    handle: int
    slots: struct.Struct


def value_code(dtype: DTypeLike, stored: DTypeLike | None = None) -> str:
    """Return the code of a dtype of computation, combined with the dtype of stored values."""
    code = VALUE_CODES[np.dtype(dtype).name]
    lower = code if stored is None else VALUE_CODES[np.dtype(stored).name]
    return code if lower == code else f"{code}_{lower}"


def index_code(dtype: DTypeLike) -> str:
    """Return NumPy's short code of an index dtype."""
    return INDEX_CODES[np.dtype(dtype)]


@cache
def takes_lanes(group: str) -> bool:
    """Return whether a work-group of a group's operations fills a vector register on a CPU.

    If all operations loop over the entries of rows, a work-group is one work-item: lanes would wait
    for the longest row.
    """
    return any(one.over is not None and one.over[1] != "1" for one in wrappers.maps_of(group))


class Programs:
    """The compiled programs of one device.

    Parameters
    ----------
    place : Place
        The device's queue.
    facts : DeviceProperties
        The device to adapt kernels to.
    """

    def __init__(self, place: Place, facts: DeviceProperties) -> None:
        self.place, self.facts = place, facts
        self._kernels: dict[str, CompiledKernel] = {}
        self._code = MachineCode(place)
        self._building = threading.Lock()

    def of_map(self, operation: Operation, value: str, index: str = "i4") -> CompiledKernel:
        """Return the kernel of a map operation for the given dtypes."""
        name = wrappers.map_symbol(operation, value, index)
        result = self._kernels.get(name)
        if result is None:
            group = operation.group
            together = [operation] if operation.functor else wrappers.maps_of(group)
            self._compile_maps(name, f"{group} for {value}", together, value, index)
            result = self._kernels[name]
        return result

    def of_half(self, operation: Operation, half: str, value: str, index: str) -> CompiledKernel:
        """Return the kernel of one half of a map operation for the given dtypes."""
        name = wrappers.map_symbol(operation, value, index, half)
        if name not in self._kernels:
            label = f"the halves of {operation.name} for {value}"
            self._compile_maps(name, label, [operation], value, index, wrappers.HALVES)
        return self._kernels[name]

    def _compile_maps(
        self,
        name: str,
        label: str,
        operations: list[Operation],
        value: str,
        index: str,
        halves: Sequence[str] = (),
    ) -> None:
        """Compile map operations of one group, or their halves."""
        self._require(value)
        on_cpu = self.facts.wave == 1
        wrapper = functors.map_wrapper if on_cpu else wrappers.map_wrapper
        launcher = "dpcpp/map_cpu.hpp" if on_cpu else "unified/map_simt.hpp"
        of_halves = ["unified/halves.hpp"] if halves else []
        headers, steps = wrappers.functors_of(operations)
        texts = [wrapper(one, value, index, half) for one in operations for half in halves or ("",)]
        block = self.facts.map_block if takes_lanes(operations[0].group) else self.facts.block
        self._compile(name, label, [launcher, *of_halves, *headers], [steps, *texts], block)

    def of_template(
        self,
        kernel: SimtKernel,
        family: Family,
        value: str,
        index: str,
        constants: Mapping[str, object],
        block: int | None = None,
    ) -> CompiledKernel:
        """Return a kernel for the given dtypes; its whole family is compiled with it.

        ``block`` is the size of its work-groups, if it differs from the default.
        """
        name = kernel.symbol(value, index, **constants)
        result = self._kernels.get(name)
        if result is None:
            self._require(value)
            family = tuple(f for f in family if f[0].converts or "_" not in value)
            texts = [wrappers.simt_wrapper(one, value, index, **given) for one, given in family]
            headers = list(dict.fromkeys(one.header for one, _ in family))
            label = f"{', '.join(headers)} for {value}, {index}"
            if block is None:
                in_lanes = not set(headers).isdisjoint(IN_LANES)
                block = CPU_LANES if in_lanes else self.facts.block
            self._compile(name, label, headers, texts, block)
            result = self._kernels[name]
        return result

    def of_source(self, symbol: str, label: str, source: str) -> CompiledKernel:
        """Return a kernel with a program of its own, which :meth:`text` has generated."""
        if symbol not in self._kernels:
            self._build(symbol, label, source)
        return self._kernels[symbol]

    def _require(self, value: str) -> None:
        computed, _ = wrappers.parts_of(value)
        if computed in _DOUBLE:
            self.facts.require(np.dtype(computed))

    def text(self, headers: Iterable[str], wrapper_texts: Iterable[str], block: int) -> str:
        """Return the program's text for this device and work-groups of ``block`` work-items."""
        macros = {
            "WL_SYCL": 1,
            "WL_SYCL_HEADER": f"<{HEADERS[0]}>",
            "WL_WARP": self.facts.wave,
            "WL_BLOCK": block,
            "WL_X86": int(self.facts.kind == "cpu" and platform.machine() in X86),
        }
        return "".join(
            [
                *(f"#include <{header}>\n" for header in HEADERS),
                *(f"#define {name} {text}\n" for name, text in macros.items()),
                program_text.flatten(*headers),
                WRAPPERS,
                *wrapper_texts,
            ]
        )

    def _compile(
        self, name: str, label: str, headers: list[str], wrapper_texts: Iterable[str], block: int
    ) -> None:
        self._build(name, label, self.text(headers, list(wrapper_texts), block))

    def _build(self, name: str, label: str, text: str) -> None:
        """Compile the program of a kernel, or load its machine code, and register its kernels.

        The program lives as long as the process, as do the executors that share it. If several
        threads need it at the same time, one builds it and the others wait.
        """
        with self._building:
            if name not in self._kernels:
                self._note(label, text)

    def _note(self, label: str, text: str) -> None:
        key = f"{OPTIONS}{text}"
        program = self._code.load(key)
        if program is not None:
            try:
                self._kernels.update(_kernels_of(program, text))
                return
            except RuntimeError:
                self._code.remove(key)
        program = build_program(
            self.place.address, text, OPTIONS, f"the kernels of {label} on {self.facts.name}"
        )
        self._kernels.update(_kernels_of(program, text))
        self._code.keep(key, program)


def _kernels_of(program: int, text: str) -> dict[str, CompiledKernel]:
    """Return the kernels that a program's text declares.

    Raises
    ------
    RuntimeError
        If the program lacks one of them.
    """
    result = {}
    for name, declared in _ENTRY.findall(text.partition(WRAPPERS)[2]):
        slots = [_slot(argument) for argument in declared.split(", ")]
        kinds = "".join(letter for letter, _ in slots)
        handle = shim().wl_kernel(program, name.encode(), kinds.encode())
        if not handle:
            raise RuntimeError(f"{name} is missing in its program: {last_error()}")
        packing = struct.Struct("=" + "".join(python for _, python in slots))
        result[name] = CompiledKernel(name, int(handle), packing)
    return result


#: Compiler options. Infinities and NaN are significant, so the compiler must not assume that there
#: are none. Value names are kept, because the runtime's cache of compiled text keeps them: a
#: program that was just compiled then equals the cached program. Without names they would differ,
#: and the second process would compile to machine code again.
OPTIONS = ("-fno-fast-math", "-fno-discard-value-names")


def _slot(argument: str) -> tuple[str, str]:
    kind = argument.rpartition(" ")[0]
    return _POINTER if kind.endswith("*") else _SLOTS[kind]
