"""Operations: the requests to an executor, declared once.

An operation is a name, a typed signature, one sentence and a cost. Everything that has to
know all operations is derived from the declarations: the lookup in :meth:`Executor.run`, the C++
wrappers of the unified kernels, the support matrix, the tests that a backend owes, and the
profiler's bytes and flops.

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

This module needs the standard library alone: the build reads the declarations before NumPy is
there.
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
#: All types but the matrix formats, which are told by their capital letter.
KINDS = ARRAY_KINDS | {"Status", "int", "str", "float", "bool"}
INTENTS = frozenset({"in", "out", "inout"})
VALUE_DTYPE_NAMES = ("float32", "float64", "complex64", "complex128")
#: ``S`` by ``T``: the storage dtypes of values, besides the dtype of the computation.
STORED_UNDER: Mapping[str, tuple[str, ...]] = {
    "float64": ("float32", "float16", "bfloat16"),
    "float32": ("float16", "bfloat16"),
    "complex128": ("complex64",),
}

_PARAMETER = re.compile(r"(\w+):(?:(in|out|inout) )?(\w+)(?:<(S)>)?(?:\[([\w,+]*)\])?$")


@dataclass(frozen=True)
class Shrunk:
    """The running columns in which one number has fallen below a part of another.

    Attributes
    ----------
    after, before : str
        The arguments with these real numbers of each column; ``status`` says which columns run.
    part : float
        The factor of ``before``.
    """

    after: str
    before: str
    part: float

    def __call__(self, arguments: Mapping[str, Any]) -> Any:
        """Return which columns these are, as an array of booleans."""
        status, before, after = (arguments[name] for name in ("status", self.before, self.after))
        return (status.stop == 0) & (after < self.part * before)


@dataclass(frozen=True)
class Parameter:
    """One argument of an operation."""

    name: str
    kind: str
    intent: str
    dims: tuple[str, ...]
    stored: bool = False  #: whether the values of a matrix may be of another dtype than ``T``

    @cached_property
    def is_array(self) -> bool:
        """Whether the argument is an array of the executor."""
        return self.kind in ARRAY_KINDS and bool(self.dims)

    @cached_property
    def is_scalar(self) -> bool:
        """Whether the argument is a number handed over by value."""
        return not self.dims

    @cached_property
    def is_status(self) -> bool:
        """Whether the argument is the stopping status of the columns."""
        return self.kind == "Status"

    @cached_property
    def is_matrix(self) -> bool:
        """Whether the argument is a matrix in some format."""
        return bool(self.dims) and not self.is_array and not self.is_status

    @cached_property
    def is_block(self) -> bool:
        """Whether the argument is a block of vectors, with any distance between rows."""
        return self.kind in ("T", "R", "L") and len(self.dims) == 2


class Cost(NamedTuple):
    """The minimal cost of an operation: bytes through memory and floating-point operations."""

    bytes: int
    flops: int


def parse_signature(text: str) -> tuple[Parameter, ...]:
    """Turn the text of a signature into its parameters."""
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
    """Something an executor can be asked to do; compared and hashed by identity.

    Parameters
    ----------
    name : str
        Group and verb, ``csr.spmv``.
    parameters : tuple of Parameter
        The arguments in order.
    summary : str
        One sentence with the formula.
    flops : callable
        Floating-point operations, from the extents of the dimensions and ``nnz``.
    over : tuple of str, optional
        For element-wise operations the dimensions of rows and columns: the body is then one
        functor in ``backends/unified/``.
    dtypes : tuple of str
        The values of ``T``.
    sums : tuple of str
        The sums of an element-wise operation over the rows of each column, finished once a column:
        numbers ``T``, ``R`` or ``i64``, ``largest`` for a real maximum, ``extreme`` for the largest
        or smallest ``T``.
    step : Step, optional
        The function that an element-wise operation was traced from; if None its functor is written
        by hand.
    parts : tuple of Operation, optional
        For a composite operation: its parts in order, with parameters of the same names. An
        executor without a kernel for it runs them.
    totals : mapping
        Of an operation that is not element-wise: its outputs that are sums over rows, by name.
        ``sum`` is a plain one, ``norm`` the root of a sum of squares, ``largest`` a maximum. A
        group of executors adds up the sums of its members to totals after the operation.
    everywhere : callable, optional
        The kernel of every executor that has none of its own.
    changed : callable, optional
        For an operation with totals among its inputs: given the arguments by name, before it runs,
        it returns an array of booleans, the columns with sums that it will recompute. The sums of
        the others are totals already. GPUs find columns of a :class:`Shrunk` without the host.
    functor : str
        For an element-wise operation of another package: the C++ text of its functor, which every
        compiled backend compiles at run time.
    checked : bool
        Whether each call compares its arguments with the signature, as for declarations of other
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
        """The part of the name before the dot; also the name of the file that holds its body."""
        return self.name.partition(".")[0]

    @property
    def symbol(self) -> str:
        """The name as C++ spells it; a step that is defined anew gets another one."""
        version = f"_{self.step.version}" if self.step is not None and self.step.version else ""
        return self.name.replace(".", "_") + version

    @cached_property
    def stores(self) -> Mapping[str, tuple[str, ...]]:
        """The dtypes of ``S`` besides ``T``, by ``T``; empty if the signature has no ``S``."""
        if any(p.stored or p.kind == "S" for p in self.parameters):
            return {T: STORED_UNDER[T] for T in self.dtypes if T in STORED_UNDER}
        return {}

    @cached_property
    def writes_arguments(self) -> bool:
        """Whether it writes an argument; other operations return a new object."""
        return any(p.intent in ("out", "inout") for p in self.parameters)

    @cached_property
    def adds_up(self) -> bool:
        """Whether it adds up values over the rows of vectors, which a group of executors shares.

        Integer counts belong to the rows of one matrix.
        """
        return bool(self.sums) and set(self.sums) <= {"T", "R", "largest"}

    @property
    def is_map(self) -> bool:
        """Whether the body is a unified functor over rows and columns."""
        return self.over is not None

    def extents(self, arguments: tuple[Any, ...]) -> dict[str, int]:
        """Bind the signature's dimensions to the shapes of ``arguments``."""
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

        Each input is read once, each output written once; an argument that is both counts twice.
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

        ``origin`` names the place of the definition: a new definition from there, as in a notebook,
        replaces it; any other operation of the name is refused.
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

        A declaration repeated in the same words, as by a cell of a notebook that runs twice,
        returns the existing operation.

        Raises
        ------
        InvalidArgument
            If the signature is none, another operation has the name, or the text of the functor
            has no struct for it.
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
        """Remove the declarations of a ``with`` block at its end.

        For programs that declare operations and go on without them, such as tests.
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
    """Return whether two declarations say the same; functions are not compared."""
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
    """The kernels of one backend: operation to function.

    A kernel is called as ``kernel(executor, *arguments)``.

    Parameters
    ----------
    backend : str
        The name of the column in the support matrix.
    parent : KernelTable, optional
        The table searched next: backends that share kernels share a parent.
    """

    def __init__(self, backend: str, parent: KernelTable | None = None) -> None:
        self.backend = backend
        self.parent = parent
        self._kernels: dict[Operation, Callable[..., Any]] = {}
        self._of_steps: Callable[[Operation], Callable[..., Any]] | None = None
        self._of_functors: Callable[[Operation], Callable[..., Any]] | None = None
        #: Compiles the functor of an operation of another package for the names of a value and an
        #: index dtype, without a device where the compiler needs none.
        self.compile_functor: Callable[[Operation, str, str], object] | None = None
        #: The function that visits the elements of a map operation and leaves its sums in slots,
        #: and the function that finishes each column: called as
        #: ``half(executor, operation, slots, arguments)``.
        self.halves: tuple[Callable[..., None], Callable[..., None]] | None = None

    def __repr__(self) -> str:
        shared = f", and those of {self.parent.backend}" if self.parent is not None else ""
        return f"<kernels of {self.backend}: {counted(len(self._kernels), 'operation')}{shared}>"

    def __call__(self, operation: Operation) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorate a function to be this backend's kernel of ``operation``."""
        if not isinstance(operation, Operation):
            raise TypeError(f"a kernel is that of an Operation, not of {operation!r}")

        def register(kernel: Callable[..., Any]) -> Callable[..., Any]:
            self._kernels[operation] = kernel
            return kernel

        return register

    def of_steps(
        self, make: Callable[[Operation], Callable[..., Any]]
    ) -> Callable[[Operation], Callable[..., Any]]:
        """Decorate a function that makes this backend's kernels of steps of any declaration."""
        self._of_steps = make
        return make

    def of_functors(
        self, make: Callable[[Operation], Callable[..., Any]]
    ) -> Callable[[Operation], Callable[..., Any]]:
        """Decorate a function that makes this backend's kernels of functors of other packages."""
        self._of_functors = make
        return make

    def find_halves(self) -> tuple[Callable[..., None], Callable[..., None]] | None:
        """Return the two halves of map operations with sums, or None."""
        if self.halves is None and self.parent is not None:
            return self.parent.find_halves()
        return self.halves

    def has(self, operation: Operation) -> bool:
        """Return whether there is a kernel of ``operation``, or of all that it is made of."""
        if self.find(operation) is not None:
            return True
        return operation.parts is not None and all(map(self.has, operation.parts))

    def find(self, operation: Operation) -> Callable[..., Any] | None:
        """Return the kernel of ``operation``, or None."""
        table = self
        while (kernel := table._kernels.get(operation)) is None and table.parent is not None:
            table = table.parent  # a call for each table takes the host longer than a launch
        if kernel is None and operation.everywhere is not None:
            return operation.everywhere
        if kernel is None:
            make = table._of_steps if operation.step is not None else None
            make = table._of_functors if operation.functor else make
            if make is not None:
                kernel = table._kernels[operation] = make(operation)
        return kernel
