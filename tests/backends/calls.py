"""Calls of operations, made from their signatures: what is declared tomorrow is tested tomorrow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wollemi.core.dtypes import real_dtype
from wollemi.core.executor import Executor
from wollemi.core.formats import Bsr, Csr, Matrix
from wollemi.core.operation import OPERATIONS, Operation, Parameter
from wollemi.core.registry import executor as executor_by_name
from wollemi.core.status import Status, Stop

from .awkward import Block, Pattern
from .graphs import ARRANGE_GRAPHS

REFERENCE = executor_by_name("reference")

# Vectors of a basis, iterations of a ring, a batch: small, so that their ends are met.
STEPS, CAPACITY, BATCH = 4, 3, 2
# No norm of these tests is near either: a column converges by both executors' sums, or by none.
NEVER, ALWAYS = 0.0, 1e6
# What must survive between the rows of a strided block, and in memory that is not asked for.
GAP, GARBAGE = -1234.5, {"i": -77, "u": 201, "f": np.nan, "c": np.nan, "V": np.nan}
BLOCK_SHAPES = ((1, 1), (2, 2), (3, 3), (2, 3), (4, 4), (5, 1))
SLICE_SIZES = (32, 4, 8, 64, 3)
# What parameters of kind str may be, where a kernel need not be the automatic one.
CHOICES = {
    "edge": ("identity", "sigmoid", "softmax"),
    "product": ("spmv", "spmm", "sddmm", "fusedmm"),
    "kernel": ("auto",),
    "dtype": ("float32", "float64", "float16"),
}


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    """Return numbers of either sign (any phase) between 1/2 and 3/2 in size."""
    size = rng.uniform(0.5, 1.5, shape)
    if np.dtype(dtype).kind == "c":
        return (size * np.exp(2j * np.pi * rng.random(shape))).astype(dtype)
    return (size * rng.choice([-1.0, 1.0], shape)).astype(dtype)


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
        # What belongs to a basis is contiguous as the basis is; other blocks have rows any distance
        # apart.
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
        """Run the operation; return every array after it, and what it returned, on the host."""
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
    if argument.parameter.is_matrix:
        return replace(argument, value=value._with_data(change(value.data)))
    if argument.parameter.is_status:
        return replace(argument, value=value | {"norm": change(value["norm"])})
    if kind not in ("T", "R"):
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
        self.real = real_dtype(dtype)
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
        self.matrices: dict[str, Matrix] = {}
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
        if kind == "T":
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

    def _matrix(self, parameter: Parameter) -> Matrix:
        bound = [self.extents.get(d) for d in parameter.dims] if self.matrices else []
        pattern = self.pattern if not bound else self._random_pattern(parameter)
        assert pattern is not None
        if parameter.kind == "Bsr":
            return self._bsr(pattern)
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


def _sorted(values: dict[str, Any], extents: dict[str, int]) -> None:
    values["A"] = values["A"].sort()


def _the_product(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Give C the pattern of the product."""
    values["C"] = values["A"] @ values["B"]


def _only_what_counts(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Put NaN wherever ``count`` says that nothing is."""
    for c, count in enumerate(values["count"]):
        if "basis" in values:
            values["basis"][count:, :, c] = np.nan
        if "hessenberg" in values:
            triangle = np.tri(STEPS, dtype=bool).T
            triangle[count:] = triangle[:, count:] = False
            values["hessenberg"][~triangle, c] = np.nan
            values["hessenberg"][range(count), range(count), c] *= 4


def _first_residual(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Put zeros behind ``g_j``, as ``gmres.start`` leaves them."""
    values["g"][values["step"][0] + 1 :] = 0


def _some_lost_digits(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Let half of the columns need a second projection."""
    values["after"][: (extents["k"] + 1) // 2] *= 1e-3


def _some_are_missing(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Let there be no extra vectors for half of the columns, and NaN in their place."""
    missing = slice(0, (extents["k"] + 1) // 2)
    values["size"][:, missing] = 0
    values["extra"][:, :, missing] = np.nan
    values["step"][0], values["first"] = 2, values["first"] % 4


def _a_pattern_with_its_diagonal(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Put a small matrix with sorted rows and a large diagonal where its arrays are expected."""
    n, rng = min(extents["n"], 12), np.random.default_rng(extents["n"])
    index = values["indptr"].dtype
    full = (rng.random((n, n)) < 0.4) | np.eye(n, dtype=bool)
    rows, indices = (part.astype(index) for part in np.nonzero(full))
    by_columns = np.lexsort((rows, indices)).astype(index)
    of_pattern = {
        "indptr": np.searchsorted(rows, np.arange(n + 1)).astype(index),
        "indices": indices,
        "rows": rows,
        "columns": np.searchsorted(indices[by_columns], np.arange(n + 1)).astype(index),
        "entries": by_columns,
        "diagonal": np.flatnonzero(rows == indices).astype(index),
    }
    values |= {name: array for name, array in of_pattern.items() if name in values}
    for name in ("a", "v", "next", "data"):
        if name in values:
            shape = (rows.size, *values[name].shape[1:])
            made = numbers(rng, shape, values[name].dtype)
            made[rows == indices] *= 8
            values[name] = made
    if "x" in values:
        values["x"] = numbers(rng, (n, values["x"].shape[1]), values["x"].dtype)


def _a_triangle(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Put a small matrix there, and the rows of a level, or all rows of a triangle in order."""
    upper = values["upper"] = values["upper"] % 2
    _a_pattern_with_its_diagonal(values, extents)
    n, index = values["indptr"].size - 1, values["indptr"].dtype
    if "level" in values:
        values["level"] = np.full(n, -77, index)
        return
    values["inverse"] = numbers(np.random.default_rng(n), (n,), values["data"].dtype)
    values["data"] /= 8
    level = np.zeros(n, index)
    arrays = (values["indptr"], values["indices"], upper)
    REFERENCE.run(OPERATIONS["triangular.levels"], *arrays, level)
    rows = np.argsort(level, kind="stable").astype(index)
    bounds = np.searchsorted(level[rows], np.arange(level.max(initial=-1) + 2)).astype(index)
    if "bounds" in values:
        values |= {"rows": rows, "bounds": bounds}
    else:
        values["rows"] = rows[level[rows] == min(1, level.max(initial=0))]


def _an_inverse_on_a_pattern(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Put a small matrix and a pattern there; a triangle has that of its own rows."""
    if "upper" in values:
        values["upper"] %= 2
    _a_pattern_with_its_diagonal(values, extents)
    n, index, dtype = values["indptr"].size - 1, values["indptr"].dtype, values["data"].dtype
    rng = np.random.default_rng(n + 1)
    pattern = (rng.random((n, n)) < 0.3) | np.eye(n, dtype=bool)
    if "upper" in values:
        half = np.triu if values["upper"] else np.tril
        pattern = half(pattern)
        row = np.repeat(np.arange(n), np.diff(values["indptr"]))
        inside = values["indices"] > row if values["upper"] else values["indices"] < row
        values["data"] = values["data"][inside]
        values["indices"] = values["indices"][inside]
        values["indptr"] = np.searchsorted(row[inside], np.arange(n + 1)).astype(index)
    row, columns = np.nonzero(pattern)
    values["pointers"] = np.searchsorted(row, np.arange(n + 1)).astype(index)
    values["columns"] = columns.astype(index)
    values["w"] = np.full(columns.size, np.nan, dtype)
    values["rows"] = np.arange(n)[:: 2 if n > 3 else 1].astype(index)
    if "work" in values:
        width = int(pattern.sum(axis=1).max(initial=0))
        values |= {"width": width, "count": values["rows"].size}
        values["work"] = np.zeros(width * (width + 1) * values["rows"].size, dtype)
        if n > 2:  # a row and its diagonal entry have no inverse
            values["data"][values["indptr"][2] : values["indptr"][3]] = 0


def _factors_by_thresholds(values: dict[str, Any], extents: dict[str, int]) -> None:
    _a_pattern_with_its_diagonal(values, extents)
    n, fill = values["indptr"].size - 1, 3
    values |= {"fill": fill, "drop": 0.05}
    for name, entries in (("lower", n * fill), ("upper", n * (fill + 1))):
        values[name] = np.full(entries, np.nan, values["a"].dtype)
        values[f"{name}_indices"] = np.full(entries, -77, values["indptr"].dtype)
        values[f"{name}_length"] = np.full(n, -77, values["indptr"].dtype)


def _costs(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Put real costs of a random pattern there; in some patterns a row is empty."""
    _a_pattern_with_its_diagonal(values, extents)
    n, rng = values["indptr"].size - 1, np.random.default_rng(extents["n"])
    if "cost" in values:
        values["cost"] = rng.random(values["indices"].size).astype(values["cost"].dtype)
    if n > 6:
        kept = np.repeat(np.arange(n), np.diff(values["indptr"])) != 4
        values |= {name: values[name][kept] for name in ("cost", "indices") if name in values}
        length = values["indptr"][5] - values["indptr"][4]
        values["indptr"] = values["indptr"].copy()
        values["indptr"][5:] -= length
    if "color" in values:
        values["color"] = np.full(n, -77, values["indptr"].dtype)
        return
    values["column"] = np.full(n, -77, values["indptr"].dtype)
    for name in ("u", "v"):
        values[name] = np.full(n, np.nan, values["cost"].dtype)


def _nearly_symmetric(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Make a square matrix of which most entries have a mirror image; a fifth is not sorted."""
    n, data, index = extents["n"], values["data"], values["indices"].dtype
    rows = values["rows"] = int(np.sqrt(1.4 * n)) + 2
    i, j = np.indices((rows, rows))
    i, j = (places[:n] for places in np.nonzero((i * j + i + j) % 7 != 6))
    image = np.searchsorted(i * rows + j, j * rows + i).clip(0, max(n - 1, 0))
    stored = (i[image] == j) & (j[image] == i)
    data[...] = np.where((i > j)[:, None], np.where(stored[:, None], data[image].conj(), 0), data)
    data[(i + j) % 11 == 0] *= 2  # a diagonal of this is not real, if numbers are complex
    values["indptr"] = np.searchsorted(i, np.arange(rows + 1)).astype(index)
    values["indices"] = (j[::-1] if n % 5 == 0 else j).astype(index)


def _scan(values: dict[str, Any], extents: dict[str, int]) -> None:
    values["lengths"] %= 5
    values["indptr"] = np.full(values["lengths"].size + 1, -77, values["lengths"].dtype)


WIDTH = 9  # columns of the rows below


def _rows(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Make rows of random lengths, some of them empty; two matrices are sorted."""
    m, index = extents["m"], next(v.dtype for v in values.values() if getattr(v, "ndim", 0))
    rng = np.random.default_rng(m)
    dtype = values["values"].dtype if "values" in values else np.dtype(np.float64)
    for other in ("", "other_"):
        if f"{other}begin" in values:
            columns = [
                (np.sort if "other_begin" in values else np.asarray)(
                    rng.choice(WIDTH, int(rng.integers(0, 5)), replace="other_begin" not in values)
                )
                for _ in range(m)
            ]
            ends = np.cumsum([0] + [c.size for c in columns]).astype(index)
            values[f"{other}begin"], values[f"{other}end"] = ends[:-1], ends[1:]
            _entries(values, other, np.concatenate([*columns, []]).astype(index), dtype, rng)
    if "dense" in values:
        values |= {"row_step": WIDTH, "column_step": 1, "dense": numbers(rng, (m * WIDTH,), dtype)}
        values["result"] = np.full_like(values["values"], np.nan)
    _room_for_rows(values)


def _entries(values: Any, other: str, indices: Any, dtype: Any, rng: Any) -> None:
    if f"{other}indices" in values:
        values[f"{other}indices"] = indices
    if f"{other}values" in values:
        made = numbers(rng, indices.shape, dtype)
        made[::3] = 0
        values[f"{other}values"] = made


def _taken_rows(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Name rows of a matrix of eight."""
    rng, index = np.random.default_rng(extents["m"]), values["rows"].dtype
    lengths = np.array([3, 0, 1, 4, 0, 0, 2, 1])
    values["indptr"] = np.cumsum([0, *lengths]).astype(index)
    values["rows"] = rng.integers(0, lengths.size, extents["m"]).astype(index)
    if "values" in values:
        entries = rng.integers(0, WIDTH, lengths.sum()).astype(index)
        _entries(values, "", entries, values["values"].dtype, rng)
    _room_for_rows(values)


def _room_for_rows(values: dict[str, Any]) -> None:
    """Say where the rows of a new matrix begin, as counting its entries would."""
    if "target" not in values:
        return
    index = values["target"].dtype
    if "rows" in values:
        lengths = np.diff(values["indptr"])[values["rows"]]
    else:
        count = "count_products" if "other_begin" in values else "count_nonzeros"
        operation = OPERATIONS[f"rows.{count}"]
        lengths = np.empty(values["begin"].size, index)
        known = values | {"lengths": lengths, "total": np.empty(1, np.int64)}
        REFERENCE.run(operation, *(known[p.name] for p in operation.parameters))
    values["target"] = np.cumsum([0, *lengths]).astype(index)
    room = int(values["target"][-1])
    values["new_indices"] = np.full(room, -77, index)
    values["new_values"] = np.full(room, np.nan, values["values"].dtype)


# What a signature cannot say of an operation's inputs.
ARRANGE: dict[str, Callable[[dict[str, Any], dict[str, int]], None]] = {
    **ARRANGE_GRAPHS,
    **{
        f"rows.{name}": _rows
        for name in ("examine", "count_nonzeros", "total", "largest", "smallest", "diagonal")
    },
    **{f"rows.{name}": _rows for name in ("scale", "drop_zeros", "count_products", "multiply")},
    "rows.lengths": _taken_rows,
    "rows.take": _taken_rows,
    "scan.pointers": _scan,
    "csr.sum_duplicates": _sorted,
    "csr.matmul_values": _the_product,
    "gmres.reproject": _some_lost_digits,
    "gmres.resubtract": _some_lost_digits,
    "gmres.extend": _first_residual,
    "gmres.augment": _some_are_missing,
    "facts.symmetry": _nearly_symmetric,
    "parilu.sweep": _a_pattern_with_its_diagonal,
    "triangular.factorize": _a_pattern_with_its_diagonal,
    "triangular.levels": _a_triangle,
    "triangular.level": _a_triangle,
    "triangular.substitute": _a_triangle,
    "triangular.threshold": _factors_by_thresholds,
    "isai.triangle": _an_inverse_on_a_pattern,
    "isai.general": _an_inverse_on_a_pattern,
    "ordering.matching": _costs,
    "ordering.colors": _costs,
    "gmres.rotate": _first_residual,
    "gmres.solve": _only_what_counts,
    "gmres.combine": _only_what_counts,
}
