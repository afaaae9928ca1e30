"""Calls of operations, made from their signatures: new operations are tested without new tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wollemi.core.dtypes import is_narrow, real_dtype
from wollemi.core.executor import Executor
from wollemi.core.formats import Bsr, Csr, Matrix
from wollemi.core.formats.mask import Mask
from wollemi.core.operation import Operation, Parameter
from wollemi.core.status import Status, Stop

from .arranged import ARRANGE, REFERENCE, STEPS, numbers
from .awkward import Block, Pattern
from .edge_functions import FUNCTIONS, text_of

# Iterations of a ring, a batch: small, so that their ends are met.
CAPACITY, BATCH = 3, 2
# No norm of these tests is near either: a column converges by both executors' sums, or by none.
NEVER, ALWAYS = 0.0, 1e6
# Values that must survive between the rows of a strided block, and in memory that is not written.
GAP, GARBAGE = -1234.5, {"i": -77, "u": 201, "f": np.nan, "c": np.nan, "V": np.nan}
BLOCK_SHAPES = ((1, 1), (2, 2), (3, 3), (2, 3), (4, 4), (5, 1))
SLICE_SIZES = (32, 4, 8, 64, 3)
# The values of parameters of kind str, where a kernel need not be the automatic one.
CHOICES = {
    "edge": ("identity", "sigmoid", "softmax"),
    "product": ("spmv", "spmm", "sddmm", "fusedmm"),
    "kernel": ("auto",),
    "function": tuple(map(text_of, FUNCTIONS)),
    "dtype": ("float32", "float64", "float16"),
}


def matrix(pattern: Pattern, dtype: Any, index: Any, rng: np.random.Generator) -> Csr:
    """Return a matrix of random values on the reference executor."""
    indices, indptr = pattern.compressed()
    return Csr._from_arrays(
        REFERENCE,
        pattern.shape,
        numbers(rng, indices.shape, dtype),
        indices.astype(index),
        indptr.astype(index),
    )


@dataclass(frozen=True)
class Argument:
    """One argument as the host knows it: a number, an array, a matrix, or a status's members."""

    parameter: Parameter
    value: Any
    gap: int = 0

    def place(self, executor: Executor) -> tuple[Any, dict[str, Any]]:
        """Return the native argument, and by name the native arrays that it is made of."""
        name = self.parameter.name
        if self.parameter.is_scalar:
            return self.value, {}
        if self.parameter.is_matrix:
            return self.value.to(executor), {}
        if self.parameter.is_status:
            status = Status(executor, self.value["stop"].size, self.value["norm"].dtype, CAPACITY)
            status.arm(self.value["stop"])
            for member in ("iterations", "norm", "threshold", "history"):
                executor.copy_into(getattr(status, member), self.value[member].copy())
            return status, {f"{name}.{m}": getattr(status, m) for m in Status.FIELDS}
        # Parts of a basis are contiguous like the basis; other blocks have any distance between
        # rows.
        if self.value.ndim != 2 or self.parameter.dims[0] == "s":
            native = executor.from_host(self.value.copy())
            return native, {name: native}
        columns = self.value.shape[1]
        whole = np.pad(self.value, ((0, 0), (0, self.gap)), constant_values=GAP)
        native = executor.from_host(whole)
        return native[:, :columns], {name: native}


@dataclass(frozen=True)
class Call:
    """An operation with arguments, to be run wherever there is a kernel."""

    operation: Operation
    arguments: tuple[Argument, ...]
    extents: dict[str, int]

    def run(self, executor: Executor) -> dict[str, Any]:
        """Run the operation; return every array after it, and its result, on the host."""
        native, arrays = [], {}
        for argument in self.arguments:
            placed, parts = argument.place(executor)
            native.append(placed)
            arrays.update(parts)
        returned = executor.run(self.operation, *native)
        executor.synchronize()
        after = {name: np.array(executor.to_host(array)) for name, array in arrays.items()}
        if isinstance(returned, tuple):
            after |= {
                f"returned[{i}]": np.array(executor.to_host(a)) for i, a in enumerate(returned)
            }
        elif returned is not None:
            after["returned"] = returned
        return after

    def mapped(self, change: Callable[[Any], Any]) -> Call:
        """Return this call with ``change`` done to every number of a value dtype."""
        return replace(self, arguments=tuple(_changed(a, change) for a in self.arguments))

    def __getitem__(self, name: str) -> Any:
        return next(a.value for a in self.arguments if a.parameter.name == name)


def _changed(argument: Argument, change: Callable[[Any], Any]) -> Argument:
    value, kind = argument.value, argument.parameter.kind
    if isinstance(value, Mask):
        return argument
    if argument.parameter.is_matrix:
        return replace(argument, value=value._with_data(change(value.data)))
    if argument.parameter.is_status:
        return replace(argument, value=value | {"norm": change(value["norm"])})
    if kind not in ("T", "R", "S"):
        return argument
    return replace(argument, value=change(value))


def make(
    operation: Operation,
    block: Block,
    rows: int,
    pattern: Pattern | None,
    dtype: Any,
    index: Any,
    rng: np.random.Generator,
    variant: int = 0,
) -> Call:
    """Return a call of ``operation``.

    Parameters
    ----------
    block
        How vectors look.
    rows : int
        The extent ``n`` of operations without a matrix.
    pattern
        The first matrix of operations that have one; others are random.
    variant : int
        Chooses block sizes and slice sizes.
    """
    maker = _Maker(operation, block, rows, pattern, np.dtype(dtype), index, rng, variant)
    return maker.call()


class _Maker:
    def __init__(self, operation, block, rows, pattern, dtype, index, rng, variant) -> None:
        self.operation, self.block, self.pattern = operation, block, pattern
        self.dtype, self.index, self.rng, self.variant = dtype, index, rng, variant
        self.real = np.dtype(np.float32) if is_narrow(dtype) else real_dtype(dtype)
        names = {p.name for p in operation.parameters}
        self.has_status = any(p.is_status for p in operation.parameters)
        self.beta_zero = "beta" in names and block.beta == 0
        self.extents = {
            "k": block.columns,
            "n": rows,
            "m": rows + 3 if rows else 0,
            "s": STEPS,
            "b": BATCH,
        }
        self.matrices: dict[str, Matrix | Mask] = {}
        for parameter in operation.parameters:
            if parameter.is_matrix:
                made = self._matrix(parameter)
                self.matrices[parameter.name] = made
                self.extents.update(zip(parameter.dims, made.shape, strict=True))
        if self.matrices:
            first = next(iter(self.matrices.values()))
            self.extents |= {"d": min(first.shape), "nnz": first.nnz}

    def call(self) -> Call:
        values = {p.name: self._value(p) for p in self.operation.parameters}
        arrange = ARRANGE.get(self.operation.name)
        if arrange is not None:
            arrange(values, self.extents)
        arguments = tuple(
            Argument(p, values[p.name], self.block.gap) for p in self.operation.parameters
        )
        return Call(self.operation, arguments, self.extents)

    def _value(self, parameter: Parameter) -> Any:
        if parameter.is_matrix:
            return self.matrices[parameter.name]
        if parameter.is_status:
            return self._status()
        if parameter.is_scalar:
            return self._scalar(parameter)
        shape = tuple(self._extent(d) for d in parameter.dims)
        array = self._array(parameter, shape)
        unread = parameter.intent == "inout" and self.beta_zero
        if parameter.intent == "out" or unread:
            array[...] = GARBAGE[array.dtype.kind]
        elif self.has_status and parameter.dims[-1] == "k":
            array[..., list(self.block.stopped)] = GARBAGE[array.dtype.kind]
        return array

    def _array(self, parameter: Parameter, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        kind, rng = parameter.kind, self.rng
        if kind in ("T", "S"):  # lower storage dtypes have tests of their own
            return numbers(rng, shape, self.dtype)
        if kind == "R":
            return rng.uniform(0.5, 1.5, shape).astype(self.real)
        if kind == "L":
            return numbers(rng, shape, np.complex64 if self.dtype.kind == "c" else np.float32)
        if kind == "I":
            return rng.integers(0, max(self.extents["n"], 1), shape).astype(self.index)
        if parameter.name == "step":
            return rng.integers(0, STEPS - 1, shape)
        if parameter.name == "count":
            return rng.integers(0, STEPS + 1, shape)
        return rng.integers(0, 2, shape).astype(
            {"u8": np.uint8, "i32": np.int32}.get(kind, np.int64)
        )

    def _scalar(self, parameter: Parameter) -> Any:
        if parameter.kind in ("int", "i64"):
            return int(self.rng.integers(1, 4))
        if parameter.kind == "str":
            choices = CHOICES[parameter.name]
            return choices[self.variant % len(choices)]
        given = getattr(self.block, parameter.name, None)
        value = numbers(self.rng, (), np.complex128).item() if given is None else complex(given)
        if parameter.kind == "R":
            return abs(value)
        return value if self.dtype.kind == "c" else value.real

    def _status(self) -> dict[str, np.ndarray[Any, Any]]:
        k, rng = self.block.columns, self.rng
        stopped = list(self.block.stopped)
        stop = np.zeros(k, np.uint8)
        stop[stopped] = rng.integers(1, len(Stop), len(stopped))
        norm = rng.uniform(0.5, 1.5, k).astype(self.real)
        norm[stopped] = np.nan
        return {
            "stop": stop,
            "iterations": rng.integers(0, 3 * CAPACITY, k),
            "norm": norm,
            "threshold": rng.choice([NEVER, ALWAYS], k).astype(self.real),
            "history": rng.uniform(0.5, 1.5, (CAPACITY, k)).astype(self.real),
        }

    def _matrix(self, parameter: Parameter) -> Matrix | Mask:
        bound = [self.extents.get(d) for d in parameter.dims] if self.matrices else []
        pattern = self.pattern if not bound else self._random_pattern(parameter)
        assert pattern is not None
        if parameter.kind == "Bsr":
            return self._bsr(pattern)
        if parameter.kind == "Mask":
            return self._mask(pattern)
        csr = matrix(pattern, self.dtype, self.index, self.rng)
        if parameter.kind == "Sellp":
            size = SLICE_SIZES[self.variant % len(SLICE_SIZES)]
            return csr.asformat("sellp", slice_size=size)
        return csr.asformat(parameter.kind.lower())

    def _random_pattern(self, parameter: Parameter) -> Pattern:
        first = next(iter(self.matrices.values())).shape
        known = dict(zip(self.operation.parameters[0].dims, first, strict=True))
        shape = tuple(known.get(d, 11) for d in parameter.dims)
        entries = 3 * shape[0] if shape[0] and shape[1] else 0
        places = zip(
            self.rng.integers(0, max(shape[0], 1), entries).tolist(),
            self.rng.integers(0, max(shape[1], 1), entries).tolist(),
            strict=True,
        )
        return Pattern("random", (shape[0], shape[1]), tuple(places))

    def _mask(self, pattern: Pattern) -> Mask:
        """Return a mask of the pattern's shape with a similar number of entries."""
        (m, n), rng = pattern.shape, self.rng
        first = np.sort(rng.integers(0, n + 1, m))
        reach = 2 * len(pattern.places) // max(m, 1) + 1
        last = np.sort(np.minimum(first + rng.integers(-1, reach + 1, m), n).clip(0))
        ends = (end.astype(self.index) for end in (first, last))
        return Mask(*ends, n, executor=REFERENCE)

    def _bsr(self, pattern: Pattern) -> Bsr:
        r, c = BLOCK_SHAPES[self.variant % len(BLOCK_SHAPES)]
        indices, indptr = pattern.compressed()
        return Bsr._from_arrays(
            REFERENCE,
            (pattern.shape[0] * r, pattern.shape[1] * c),
            numbers(self.rng, (indices.size, r, c), self.dtype),
            indices.astype(self.index),
            indptr.astype(self.index),
        )

    def _extent(self, dim: str) -> int:
        parts = dim.split("+")
        return sum(int(p) if p.isdigit() else self.extents.setdefault(p, 5) for p in parts)
