"""A GPU: its properties, and the kernels that are loaded onto it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from ...core.operation import Operation
from ..unified import wrappers
from ..unified.program_text import ProgramParts, ProgramText
from ..unified.wrappers import SimtKernel
from . import launch
from .compile_threads import CompileThreads
from .function import Function

if TYPE_CHECKING:
    from .types import LoadedKernel

#: The name of a kernel, and the function that returns its program's text.
Program = tuple[str, Callable[[], str]]


class GpuDevice:
    """A GPU with its loaded programs.

    A program is the text of one kernel (or of a few related ones) for given dtypes. It is compiled,
    or read from the disk cache, at the kernel's first launch, or earlier in threads by
    :meth:`compile_ahead`.
    """

    #: The dialect of the kernels' text.
    dialect: ClassVar[str]
    #: If all slices have one width up to this limit, the product is compiled for that width: with a
    #: 7-point stencil of 200^3 it took 135 microseconds instead of 229 (including the loop around
    #: it).
    known_width: ClassVar[int] = 32

    def __init__(self, ordinal: int) -> None:
        import cupy

        self.ordinal = ordinal
        self.handle = cupy.cuda.Device(ordinal)
        self._current = cupy.cuda.runtime.getDevice
        facts = cupy.cuda.runtime.getDeviceProperties(ordinal)
        self.name: str = facts["name"].decode()
        self.memory = int(facts["totalGlobalMem"])
        self.multiprocessors = int(facts["multiProcessorCount"])
        self.warp = int(facts["warpSize"])
        self.cache_bytes = int(facts["l2CacheSize"])
        self.shared_bytes = int(facts.get("sharedMemPerBlockOptin", 0))
        self.facts: dict[str, Any] = facts
        self._functions: dict[str, Function] = {}
        #: Programs that were asked about and are not loaded, by the names of their kernels: a
        #: digest, which takes 0.15 ms, is made once.
        self._texts: dict[str, ProgramText] = {}
        self._at_hand: set[Hashable] = set()
        self._variants: dict[tuple[Any, ...], Function] = {}
        self._modules: dict[str, Any] = {}
        self._shared: dict[int, int] = {}
        self._resident: dict[tuple[int, int], int] = {}
        self._lock = threading.Lock()
        self._threads = CompileThreads()

    @property
    def architecture(self) -> str:
        """The compiler's target."""
        raise NotImplementedError

    @property
    def identity(self) -> dict[str, Any]:
        """The hardware's name, for the executor's properties."""
        raise NotImplementedError

    @property
    def multiplies_tiles(self) -> bool:
        """Whether a wave has an instruction that multiplies float64 tiles."""
        return False

    def is_current(self) -> bool:
        """Return whether this is the current device of the calling thread."""
        return bool(self._current() == self.ordinal)

    def compile(self, source: str, name: str) -> bytes:
        """Compile a program, or read it from the disk cache."""
        raise NotImplementedError

    def load(self, code: bytes) -> Any:
        """Return the module of a program; its ``get_function`` returns kernels."""
        raise NotImplementedError

    def resident(self, blocks: int) -> dict[str, object]:
        """Return macro definitions that bound registers for ``blocks`` resident blocks."""
        return {}

    def resident_blocks(self, function: LoadedKernel, block: int) -> int:
        """Return the number of a kernel's blocks that the device holds at once (an upper bound)."""
        return self.multiprocessors * launch.RESIDENT * launch.BLOCK // block

    @property
    def launch_bytes(self) -> int:
        """Bytes of shared memory that a launch may give a block."""
        return self.shared_bytes

    def allow_shared(self, function: LoadedKernel, nbytes: int) -> None:
        """Permit a kernel to use ``nbytes`` of shared memory, at most ``shared_bytes``."""
        raise NotImplementedError

    def function(self, symbol: str, text: Callable[[], str]) -> Function:
        """Return a kernel by name; if necessary, load the program that ``text`` returns."""
        found = self._functions.get(symbol)
        return found if found is not None else self._load(symbol, text)

    def _load(self, symbol: str, text: Callable[[], str]) -> Function:
        with self._lock, self.handle:
            if isinstance(text, ProgramText):
                text = self._texts.pop(symbol, text)
                key, make = text.digest, partial(self.code_of, text, symbol)
            else:
                source = text()
                key = hashlib.sha256(source.encode()).hexdigest()
                make = partial(self.compile, source, symbol)
            module = self._modules.get(key)
            if module is None:
                code = self._threads.result(symbol) or make()
                module = self._modules[key] = self.load(code)
            return self._functions.setdefault(symbol, Function(module.get_function(symbol)))

    def code_of(self, program: ProgramText, name: str) -> bytes:
        """Return the machine code of a program with a digest."""
        return self.compile(program(), name)

    def is_at_hand(self, program: ProgramText) -> bool:
        """Return whether the machine code of a program is known to exist."""
        return False

    def compile_ahead(self, programs: Iterable[Program]) -> None:
        """Start compiling programs in threads ahead of their use.

        Programs with existing machine code are left to their first launch: reading them takes 0.1
        ms, and threads that wait for Python's lock delayed the launching thread for longer.
        """
        for symbol, text in programs:
            if not self._is_compiled(symbol, text):
                self._threads.begin(symbol, partial(self._compiled, symbol, text))

    def has_compiled(self, named: Hashable, programs: Callable[[], Iterable[Program]]) -> bool:
        """Return whether all programs registered under ``named`` are compiled."""
        if named not in self._at_hand:
            for symbol, text in programs():
                if not self._is_compiled(symbol, text) and not self._threads.has(symbol):
                    return False
            self._at_hand.add(named)
        return True

    def _is_compiled(self, symbol: str, text: Callable[[], str]) -> bool:
        if symbol in self._functions:
            return True
        if not isinstance(text, ProgramText):
            return False
        return self.is_at_hand(self._texts.setdefault(symbol, text))

    def _compiled(self, symbol: str, text: Callable[[], str]) -> bytes:
        if isinstance(text, ProgramText):
            return self.code_of(text, symbol)
        return self.compile(text(), symbol)

    def map_program(self, operation: Operation, value: str, index: str) -> Program:
        """Return the program of a map operation's kernel."""
        parts = partial(wrappers.map_parts, self.dialect, [operation], value, index, warp=self.warp)
        return wrappers.map_symbol(operation, value, index), ProgramText(parts)

    def map_function(self, operation: Operation, value: str, index: str) -> Any:
        """Return the kernel of a map operation."""
        key = (operation, value, index)
        result = self._variants.get(key)
        if result is None:
            program = self.map_program(operation, value, index)
            result = self._variants[key] = self.function(*program)
        return result

    def half_function(self, operation: Operation, half: str, value: str, index: str) -> Any:
        """Return the kernel of one half of a map operation."""
        return self.function(
            wrappers.map_symbol(operation, value, index, half),
            lambda: wrappers.halves_program(self.dialect, operation, value, index, warp=self.warp),
        )

    def simt_program(self, kernel: SimtKernel, value: str, index: str, **constants: int) -> Program:
        """Return the program of a kernel of ``backends/simt``."""
        value = value if kernel.needs_value else "f4"  # one program serves all dtypes
        parts = partial(self._simt_parts, kernel, value, index, constants)
        return kernel.symbol(value, index, **constants), ProgramText(parts)

    def simt_function(self, kernel: SimtKernel, value: str, index: str, **constants: int) -> Any:
        """Return a kernel of ``backends/simt``."""
        key = (kernel, value, index, *constants.items())
        result = self._variants.get(key)
        if result is None:
            program = self.simt_program(kernel, value, index, **constants)
            result = self._variants[key] = self.function(*program)
        return result

    def _simt_parts(
        self, kernel: SimtKernel, value: str, index: str, constants: dict[str, int]
    ) -> ProgramParts:
        operands = (self.dialect, kernel, value, index, constants)
        return wrappers.simt_parts(
            *operands, warp=self.warp, defines=self.resident(kernel.resident)
        )
