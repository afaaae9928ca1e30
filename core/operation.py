"""Operations: requests to executors, each declared once.

An operation has a name, a typed signature, a summary of one sentence and a cost. All code that
depends on the set of operations is derived from the declarations: the lookup in
:meth:`Executor.run`, the C++ wrappers of the unified kernels, the support matrix, the tests that
each backend must pass, and the profiler's bytes and flops.

A signature is a line such as ::

    x: inout T[n,k], p: in T[n,k], rho: in T[k], status: inout Status[k], alpha: T

``T`` is the value dtype of the call, ``R`` its real counterpart (float32 for 16 bits), ``L`` its
counterpart of single precision (float32, complex64), ``S`` the dtype that values are stored in,
which may be lower than ``T`` (:data:`STORED_UNDER`), ``I`` the index dtype; ``u8``,
``i32`` and ``i64`` are themselves, ``f64`` is float64 in arrays. A type without brackets is a
scalar by value (``int`` for a host integer, ``str`` for a choice by name). ``Status`` is
:class:`wollemi.core.status.Status`, and any other capitalized word is a matrix format: ``Csr<S>``
has values stored in ``S``, ``Csr`` has values of ``T``. The names in brackets are dimensions, the
same name standing for the same extent; ``nnz`` is that of the first matrix.

This module needs only the standard library: the build reads the declarations before NumPy is
installed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from .errors import InvalidArgument
from .wording import counted

ARRAY_KINDS = frozenset({"T", "R", "L", "S", "I", "u8", "i32", "i64", "f64"})
#: All scalar and array types of signatures; matrix formats begin with a capital letter instead.
KINDS = ARRAY_KINDS | {"Status", "int", "str", "float", "bool"}
INTENTS = frozenset({"in", "out", "inout"})
VALUE_DTYPE_NAMES = ("float32", "float64", "complex64", "complex128")
#: The storage dtypes ``S`` of values for each dtype ``T`` of the computation, other than ``T``
#: itself.
STORED_UNDER: Mapping[str, tuple[str, ...]] = {
    "float64": ("float32", "float16", "bfloat16"),
    "float32": ("float16", "bfloat16"),
    "complex128": ("complex64",),
}

_PARAMETER = re.compile(r"(\w+):(?:(in|out|inout) )?(\w+)(?:<(S)>)?(?:\[([\w,+]*)\])?$")


@dataclass(frozen=True)
class Shrunk:
    """The running columns in which one number has fallen below a fraction of another number.

    Attributes
    ----------
    after, before : str
        The arguments that hold these real numbers of each column; ``status`` has the running
        columns.
    part : float
        The fraction, which multiplies ``before``.
    """

    after: str
    before: str
    part: float

    def __call__(self, arguments: Mapping[str, Any]) -> Any:
        """Return an array of booleans that is true for these columns."""
        status, before, after = (arguments[name] for name in ("status", self.before, self.after))
        return (status.stop == 0) & (after < self.part * before)


@dataclass(frozen=True)
class Parameter:
    """One argument of an operation."""

    name: str
    kind: str
    intent: str
    dims: tuple[str, ...]
    stored: bool = False  #: whether a matrix may store its values in another dtype than ``T``

    @cached_property
    def is_array(self) -> bool:
        """Whether the argument is an array of the executor."""
        return self.kind in ARRAY_KINDS and bool(self.dims)

    @cached_property
    def is_scalar(self) -> bool:
        """Whether the argument is a number that is passed by value."""
        return not self.dims

    @cached_property
    def is_status(self) -> bool:
        """Whether the argument is the stopping status of the columns."""
        return self.kind == "Status"

    @cached_property
    def is_matrix(self) -> bool:
        """Whether the argument is a matrix in one of the formats."""
        return bool(self.dims) and not self.is_array and not self.is_status

    @cached_property
    def is_block(self) -> bool:
        """Whether the argument is a block of vectors with any row stride."""
        return self.kind in ("T", "R", "L") and len(self.dims) == 2


class Cost(NamedTuple):
    """The minimum cost of an operation: bytes of memory traffic and floating-point work."""

    bytes: int
    flops: int


def parse_signature(text: str) -> tuple[Parameter, ...]:
    """Parse the text of a signature into its parameters."""
    parameters = []
    for part in re.split(r",\s*(?=\w+:)", " ".join(text.split())):
        match = _PARAMETER.match(part.replace(": ", ":"))
        if match is None:
            raise InvalidArgument(
                f"not a parameter: {part!r} in {text!r}; one is written as 'x: in T[n,k]' or 't: T'"
            )
        name, intent, kind, stored, dims = match.groups()
        extents = tuple(dims.split(",")) if dims else ()
        if bool(extents) != (intent in INTENTS):
            raise InvalidArgument(
                f"arrays have an intent (in, out, inout) and scalars have none: {part!r}"
            )
        if kind not in KINDS and not kind[0].isupper():
            raise InvalidArgument(
                f"{part!r}: no type is called {kind}; known: {', '.join(sorted(KINDS))}, and the "
                "names of matrix formats"
            )
        parameters.append(Parameter(name, kind, intent or "value", extents, stored is not None))
    return tuple(parameters)


@dataclass(frozen=True, eq=False)
class Operation:
    """A request that executors can run; operations compare and hash by identity.

    Parameters
    ----------
    name : str
        Group and verb, such as ``csr.spmv``.
    parameters : tuple of Parameter
        The arguments in order.
    summary : str
        One sentence with the formula.
    flops : callable
        Returns the floating-point operations from the extents of the dimensions and ``nnz``.
    over : tuple of str, optional
        For element-wise operations: the dimensions of rows and columns. The body is then a functor
        in ``backends/unified/``.
    dtypes : tuple of str
        The allowed dtypes ``T``.
    sums : tuple of str
        The sums of an element-wise operation over the rows of each column; each is finished once
        per column. The types are ``T``, ``R`` or ``i64`` for numbers, ``largest`` for a real
        maximum, and ``extreme`` for the largest or smallest ``T``.
    step : Step, optional
        The function from which an element-wise operation was traced; if None, its functor is
        hand-written.
    parts : tuple of Operation, optional
        For a composite operation: its parts in order, with parameters of the same names. Executors
        without a kernel for the operation run the parts.
    totals : mapping
        For an operation that is not element-wise: its outputs that are sums over rows, by name.
        ``sum`` is a plain sum, ``norm`` the square root of a sum of squares, ``largest`` a maximum.
        After the operation a group of executors combines the sums of its members to totals.
    everywhere : callable, optional
        The kernel of every executor that has no kernel of its own.
    changed : callable, optional
        For an operation with totals among its inputs. Called before the operation with its
        arguments by name, it returns an array of booleans: the columns for which the operation will
        recompute sums. The sums of the other columns are totals already. GPUs find the columns of a
        :class:`Shrunk` without the host.
    functor : str
        For an element-wise operation of another package: the C++ text of its functor. Every
        compiled backend compiles it at run time.
    checked : bool
        Whether each call checks its arguments against the signature, as for declarations of other
        packages.
    """

    name: str
    parameters: tuple[Parameter, ...]
    summary: str
    flops: Callable[[Mapping[str, int]], int]
    over: tuple[str, str] | None = None
    cost_of: Callable[..., Cost] | None = field(default=None, repr=False)
    dtypes: tuple[str, ...] = VALUE_DTYPE_NAMES
    sums: tuple[str, ...] = ()
    step: Any = field(default=None, repr=False)
    parts: tuple[Operation, ...] | None = field(default=None, repr=False)
    totals: Mapping[str, str] = field(default_factory=dict, repr=False)
    everywhere: Callable[..., Any] | None = field(default=None, repr=False)
    changed: Callable[[Mapping[str, Any]], Any] | None = field(default=None, repr=False)
    functor: str = field(default="", repr=False)
    checked: bool = field(default=False, repr=False)

    def __repr__(self) -> str:
        return f"<operation {self.name}>"

    @property
    def group(self) -> str:
        """The part of the name before the dot; the file with the body has the same name."""
        return self.name.partition(".")[0]

    @property
    def symbol(self) -> str:
        """The name in C++; each new definition of a step gets a new one."""
        version = f"_{self.step.version}" if self.step is not None and self.step.version else ""
        return self.name.replace(".", "_") + version

    @cached_property
    def stores(self) -> Mapping[str, tuple[str, ...]]:
        """The dtypes ``S`` for each ``T``, other than ``T``; empty if there is no ``S``."""
        if any(p.stored or p.kind == "S" for p in self.parameters):
            return {T: STORED_UNDER[T] for T in self.dtypes if T in STORED_UNDER}
        return {}

    @cached_property
    def writes_arguments(self) -> bool:
        """Whether the operation overwrites an argument; others return a new object."""
        return any(p.intent in ("out", "inout") for p in self.parameters)

    @cached_property
    def adds_up(self) -> bool:
        """Whether it sums over the rows of vectors, which the members of a group share.

        Integer counts do not qualify: they belong to the rows of one matrix.
        """
        return bool(self.sums) and set(self.sums) <= {"T", "R", "largest"}

    @property
    def is_map(self) -> bool:
        """Whether the body is a unified functor over rows and columns."""
        return self.over is not None

    def extents(self, arguments: tuple[Any, ...]) -> dict[str, int]:
        """Return the extents of the signature's dimensions, from the shapes of ``arguments``."""
        extents: dict[str, int] = {}
        for parameter, argument in zip(self.parameters, arguments, strict=True):
            if parameter.dims:
                extents.update(
                    (d, n)
                    for d, n in zip(parameter.dims, argument.shape, strict=True)
                    if d.isidentifier()
                )
            if parameter.is_matrix:
                extents["nnz"] = extents.get("nnz", 0) + argument.nnz
        return extents

    def cost(self, *arguments: Any) -> Cost:
        """Return the bytes and flops of a call with ``arguments``.

        Each input is read once and each output is written once; an ``inout`` argument counts twice.
        """
        if self.cost_of is not None:
            return self.cost_of(*arguments)
        moved = sum(
            (2 if parameter.intent == "inout" and not parameter.is_matrix else 1) * argument.nbytes
            for parameter, argument in zip(self.parameters, arguments, strict=True)
            if parameter.is_array or parameter.is_matrix
        )
        return Cost(moved, self.flops(self.extents(arguments)))


class OperationTable:
    """All declared operations by name, in the order of their declaration."""

    def __init__(self) -> None:
        self._operations: dict[str, Operation] = {}
        self._origins: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"<table of {counted(len(self._operations), 'operation')}>"

    def add(self, operation: Operation, origin: str = "") -> Operation:
        """Add an operation and return it.

        ``origin`` names the place of the definition. A new definition from the same place, as in a
        notebook, replaces the operation; another operation of the same name is refused.
        """
        name = operation.name
        if name in self._operations and not (origin and self._origins.get(name) == origin):
            raise InvalidArgument(
                f"operation {name} is declared twice, and not alike: take another name, or declare "
                "it within `with OPERATIONS.locally():`"
            )
        if operation.step is not None and name in self._operations:
            operation.step.version = self._operations[name].step.version + 1
        self._operations[name] = operation
        self._origins[name] = origin
        return operation

    def declare(
        self,
        name: str,
        signature: str,
        summary: str,
        *,
        flops: Callable[[Mapping[str, int]], int] = lambda extents: 0,
        over: tuple[str, str] | None = None,
        cost: Callable[..., Cost] | None = None,
        dtypes: tuple[str, ...] = VALUE_DTYPE_NAMES,
        sums: tuple[str, ...] = (),
        parts: tuple[Operation, ...] | None = None,
        totals: Mapping[str, str] | None = None,
        changed: Callable[[Mapping[str, Any]], Any] | None = None,
        functor: str | Path = "",
        checked: bool = False,
    ) -> Operation:
        """Declare an operation and return it.

        If the declaration is repeated in the same words (for example, when a notebook cell runs
        twice), the existing operation is returned.

        Raises
        ------
        InvalidArgument
            If the signature is invalid, if another operation has the name, or if the text of the
            functor has no struct for it.
        """
        parameters = parse_signature(signature)
        _require_name(name)
        text = functor.read_text(encoding="utf-8") if isinstance(functor, Path) else functor
        if text:
            _require_struct(name, over, text)
        sums_of_all = [p for p in parameters if p.name in (totals or {})]
        if changed is None and any(p.intent == "inout" for p in sums_of_all):
            raise InvalidArgument(
                f"{name} reads sums that it makes: say of which columns, changed="
            )
        if over is not None and not sums and any(_is_of_column(p, over) for p in parameters):
            raise InvalidArgument(f"{name} writes one value a column: name its sums, sums=")
        made = Operation(
            name,
            parameters,
            summary,
            flops,
            over,
            cost,
            dtypes,
            sums,
            parts=parts,
            totals=totals or {},
            changed=changed,
            functor=text,
            checked=checked,
        )
        before = self._operations.get(name)
        return before if before is not None and _alike(before, made) else self.add(made)

    @contextmanager
    def locally(self) -> Iterator[None]:
        """Remove declarations made in a ``with`` block at the end of the block.

        This is for programs that declare operations temporarily, such as tests.
        """
        before = dict(self._operations), dict(self._origins)
        try:
            yield
        finally:
            self._operations, self._origins = before

    def __iter__(self) -> Iterator[Operation]:
        return iter(self._operations.values())

    def __len__(self) -> int:
        return len(self._operations)

    def __getitem__(self, name: str) -> Operation:
        return self._operations[name]


def _alike(one: Operation, other: Operation) -> bool:
    """Return whether two declarations are equal, except for their functions."""
    names = (
        "parameters",
        "summary",
        "over",
        "dtypes",
        "sums",
        "parts",
        "totals",
        "step",
        "functor",
    )
    return all(getattr(one, name) == getattr(other, name) for name in names)


def _require_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z]\w*\.[A-Za-z]\w*", name):
        raise InvalidArgument(
            f"an operation is named by its group and a verb, as in 'example.shrink', got {name!r}"
        )


def _require_struct(name: str, over: tuple[str, str] | None, text: str) -> None:
    symbol = name.replace(".", "_")
    if over is None:
        raise InvalidArgument(
            f"{name}: a functor works on rows and columns: name these dimensions, "
            'as in over=("n", "k")'
        )
    if not re.search(rf"\bstruct\s+{symbol}\b", text):
        raise InvalidArgument(f"{name}: the text of its functor has no `struct {symbol}`")


def _is_of_column(parameter: Parameter, over: tuple[str, str]) -> bool:
    written = parameter.intent in ("out", "inout")
    return written and (parameter.is_status or parameter.dims == over[1:])


OPERATIONS = OperationTable()
declare = OPERATIONS.declare


class KernelTable:
    """The kernels of one backend, a function for each operation.

    A kernel is called as ``kernel(executor, *arguments)``.

    Parameters
    ----------
    backend : str
        The name of the column in the support matrix.
    parent : KernelTable, optional
        The table that is searched next: backends that share kernels have a common parent.
    """

    def __init__(self, backend: str, parent: KernelTable | None = None) -> None:
        self.backend = backend
        self.parent = parent
        self._kernels: dict[Operation, Callable[..., Any]] = {}
        self._of_steps: Callable[[Operation], Callable[..., Any]] | None = None
        self._of_functors: Callable[[Operation], Callable[..., Any]] | None = None
        #: Compiles the functor of another package's operation for a value dtype and an index dtype,
        #: given by name. It needs no device if the compiler needs none.
        self.compile_functor: Callable[[Operation, str, str], object] | None = None
        #: The two halves of map operations with sums: the first visits the elements and leaves its
        #: sums in slots, the second finishes each column. Both are called as
        #: ``half(executor, operation, slots, arguments)``.
        self.halves: tuple[Callable[..., None], Callable[..., None]] | None = None

    def __repr__(self) -> str:
        shared = f", and those of {self.parent.backend}" if self.parent is not None else ""
        return f"<kernels of {self.backend}: {counted(len(self._kernels), 'operation')}{shared}>"

    def __call__(self, operation: Operation) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorate a function to register it as this backend's kernel of ``operation``."""
        if not isinstance(operation, Operation):
            raise TypeError(f"a kernel is that of an Operation, not of {operation!r}")

        def register(kernel: Callable[..., Any]) -> Callable[..., Any]:
            self._kernels[operation] = kernel
            return kernel

        return register

    def of_steps(
        self, make: Callable[[Operation], Callable[..., Any]]
    ) -> Callable[[Operation], Callable[..., Any]]:
        """Decorate a function that makes this backend's kernels of steps."""
        self._of_steps = make
        return make

    def of_functors(
        self, make: Callable[[Operation], Callable[..., Any]]
    ) -> Callable[[Operation], Callable[..., Any]]:
        """Decorate a function that makes this backend's kernels of other packages' functors."""
        self._of_functors = make
        return make

    def find_halves(self) -> tuple[Callable[..., None], Callable[..., None]] | None:
        """Return the two halves of map operations with sums, or None."""
        if self.halves is None and self.parent is not None:
            return self.parent.find_halves()
        return self.halves

    def has(self, operation: Operation) -> bool:
        """Return whether there is a kernel of ``operation``, or kernels of all its parts."""
        if self.find(operation) is not None:
            return True
        return operation.parts is not None and all(map(self.has, operation.parts))

    def find(self, operation: Operation) -> Callable[..., Any] | None:
        """Return the kernel of ``operation``, or None."""
        table = self
        while (kernel := table._kernels.get(operation)) is None and table.parent is not None:
            table = table.parent  # a loop: recursive calls would take longer than a launch
        if kernel is None and operation.everywhere is not None:
            return operation.everywhere
        if kernel is None:
            make = table._of_steps if operation.step is not None else None
            make = table._of_functors if operation.functor else make
            if make is not None:
                kernel = table._kernels[operation] = make(operation)
        return kernel
