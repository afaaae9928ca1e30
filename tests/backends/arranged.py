"""Inputs of operations that depend on one another, beyond their signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from wollemi.core.operation import OPERATIONS
from wollemi.core.registry import executor as executor_by_name

from .edge_functions import text_of_outputs
from .graphs import ARRANGE_GRAPHS
from .incomplete import ARRANGE_INCOMPLETE
from .selected import ARRANGE_SELECTED
from .triangles import ARRANGE_TRIANGLES

REFERENCE = executor_by_name("reference")

# Vectors of a basis: few, so that its end is met.
STEPS = 4


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    """Return numbers of either sign (any phase) between 1/2 and 3/2 in size."""
    size = rng.uniform(0.5, 1.5, shape)
    if np.dtype(dtype).kind == "c":
        return (size * np.exp(2j * np.pi * rng.random(shape))).astype(dtype)
    return (size * rng.choice([-1.0, 1.0], shape)).astype(dtype)


def _sorted(values: dict[str, Any], extents: dict[str, int]) -> None:
    values["A"] = values["A"].sort()


def _the_softmax(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Store the results of the forward product as inputs of its gradients."""
    given = (values[name] for name in ("A", "values", "C", "B", "D") if name in values)
    results = values["E"], values["log_totals"]
    is_mask = "values" not in values
    forward = OPERATIONS["mask.fusedmm_softmax" if is_mask else "csr.fusedmm_softmax"]
    REFERENCE.run(forward, *given, *results, values["alpha"], "auto")


def _five_outputs(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Let the program have as many outputs as there is room for."""
    values["function"] = text_of_outputs()


def _a_softmax_last(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Let the program end with a softmax, which has logarithms of totals."""
    values["function"] = values["function"].replace("identity", "softmax")


def _no_inputs_of_entries(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Let the program read no numbers of entries, which a mask does not list."""
    _a_softmax_last(values, extents)
    head, rest = values["function"].split(";", 1)
    values["function"] = f"{head.rsplit(' ', 1)[0]} 0;{rest}"


def _the_product(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Give C the pattern of the product."""
    values["C"] = values["A"] @ values["B"]


def _columns_of_heads(values: dict[str, Any], extents: dict[str, int]) -> None:
    values["columns"] = extents["w"] // extents["h"]


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
    """Let there be no extra vectors for half of the columns, and NaN instead."""
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
    if "starts" in values:
        values |= _two_lanes(n, index)
    elif "bounds" in values:
        values |= {"rows": rows, "bounds": bounds}
    else:
        values["rows"] = rows[level[rows] == min(1, level.max(initial=0))]


def _two_lanes(n: int, index: Any) -> dict[str, Any]:
    """Return lanes of every other row, each of which waits for the row before."""
    even, odd = np.arange(0, n, 2), np.arange(1, n, 2)
    begin, needed = np.concatenate([even, odd]), np.concatenate([even // 2, odd // 2 + 1])
    made = {
        "starts": [0, even.size, n],
        "begin": begin,
        "end": begin + 1,
        "waits": np.arange(n + 1),
        "of": np.repeat([1, 0], [even.size, odd.size]),
        "needed": needed,
    }
    return {name: np.asarray(array).astype(index) for name, array in made.items()}


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


def _factors_of_a_matrix(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Put the factors of a matrix that its diagonal dominates there, in its own order."""
    n, rng = extents["p"] - 1 if extents["p"] > 1 else 5, np.random.default_rng(extents["p"])
    index, dtype = values["rows"].dtype, values["lower"].dtype
    values["symmetric"] = n % 2
    dense = np.where(rng.random((n, n)) < 2 / n, numbers(rng, (n, n), dtype), 0).astype(dtype)
    if values["symmetric"]:
        dense = dense + dense.T
    np.fill_diagonal(dense, 1 + 2 * np.abs(dense).sum(axis=1) + np.abs(dense).sum(axis=0))
    rows, columns = np.nonzero(dense)
    L, U = np.eye(n, dtype=dtype), dense.copy()
    for k in range(n):
        L[k + 1 :, k] = U[k + 1 :, k] / U[k, k]
        U[k + 1 :] -= np.outer(L[k + 1 :, k], U[k])
        U[k + 1 :, k] = 0
    lower, upper = sp.csc_array(L - (n % 3 > 0) * np.eye(n, dtype=dtype)), sp.csr_array(U)
    values |= {"rows": rows.astype(index), "columns": columns.astype(index)}
    for name, factor, other in (("lower", lower, "rows"), ("upper", upper, "columns")):
        factor.sort_indices()
        values[f"{name}_begin"] = factor.indptr.astype(index)
        values[f"{name}_{other}"] = factor.indices.astype(index)
        values[name] = factor.data.astype(dtype)
    values["inverse"] = np.full(rows.size, np.nan, dtype)


def _an_elimination(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Put a pattern there, an order of its rows, and a limit that small ones do not reach."""
    _a_pattern_with_its_diagonal(values, extents)
    n = values["indptr"].size - 1
    rng = np.random.default_rng(n)
    values["order"] = rng.permutation(n).astype(values["indptr"].dtype)
    values["most"] = 4 * n
    for name in ("entries", "operations"):
        values[name] = np.full(1, -77, np.int64)


def _a_search(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Put a pattern there, a start, and a row that is left out."""
    _a_pattern_with_its_diagonal(values, extents)
    n = values["indptr"].size - 1
    values["level"] = np.full(n, -1, values["indptr"].dtype)
    values["start"] = n // 2
    if n > 6:
        values["level"][3] = -2


def _a_scrambled_triangle(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Put a triangular pattern there, with rows and columns in random order."""
    n, rng = min(extents["n"], 12), np.random.default_rng(extents["n"])
    index = values["indptr"].dtype
    full = np.tril(rng.random((n, n)) < 0.4) | np.eye(n, dtype=bool)
    rows, indices = np.nonzero(full[rng.permutation(n)][:, rng.permutation(n)])
    values["indptr"] = np.searchsorted(rows, np.arange(n + 1)).astype(index)
    values["indices"] = indices.astype(index)
    for name in ("row", "column"):
        values[name] = np.full(n, -77, index)


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


def _nearly_symmetric_rows(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Make the rows of a matrix of which all entries have a mirror image, or most."""
    m, index, dtype = extents["m"], values["indices"].dtype, values["values"].dtype
    offsets = np.array([-7, -1, 0, 1, 7])
    i, j = (a.ravel() for a in np.broadcast_arrays(*np.ogrid[:m, :5]))
    i, j, offset = i, i + offsets[j], np.abs(offsets[j])
    inside = (j >= 0) & (j < m)
    i, j, offset = i[inside], j[inside], offset[inside]
    drawn = numbers(np.random.default_rng(m), (m + 1, 8), dtype)
    entries = drawn[np.minimum(i, j), offset]
    entries = np.where(i > j, entries.conj(), np.where(i == j, entries.real, entries))
    entries[: m % 3] *= 2  # of every third size all have one
    ends = np.searchsorted(i, np.arange(m + 1)).astype(index)
    values["begin"], values["end"] = ends[:-1], ends[1:]
    values["indices"], values["values"] = j.astype(index), entries.astype(dtype)


def _nearly_symmetric_square(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Make such a matrix; some have an entry that is not finite, or a row out of order."""
    m = extents["p"]
    rows = {name: values[name] for name in ("indices", "values")}
    _nearly_symmetric_rows(rows, {"m": m})
    values["indptr"] = np.append(rows["begin"], rows["end"][-1:])
    values["indices"], values["values"] = rows["indices"], rows["values"]
    values["least"], values["most"] = 0.5, 1.5
    if m % 5 == 2:
        values["values"][m] = np.inf
    if m % 7 == 3:
        values["indices"][:2] = values["indices"][1::-1].copy()


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
    if "row" in values:
        values["row"] = np.full(int(values["end"].max(initial=0)), -77, index)
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


def _positions(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Name positions of a matrix of eight sorted rows: empty ones, and duplicates in one."""
    rng, index = np.random.default_rng(extents["m"]), values["rows"].dtype
    columns = [[0, 2, 5], [], [1], [1, 3, 3, 3, 4], [], [], [0, 5], [2]]
    values["indptr"] = np.cumsum([0, *map(len, columns)]).astype(index)
    entries = np.concatenate(columns).astype(index)
    _entries(values, "", entries, values["values"].dtype, rng)
    values["rows"] = rng.integers(0, len(columns), extents["m"]).astype(index)
    values["columns"] = rng.integers(0, 6, extents["m"]).astype(index)


def _terms(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Make rows of a few terms, empty ones, and a row of more terms than one piece of a sum has."""
    rng, index = np.random.default_rng(extents["m"]), values["begin"].dtype
    lengths = rng.integers(0, 6, extents["m"])
    lengths[len(lengths) // 2 : len(lengths) // 2 + 1] = 700
    ends = np.cumsum(lengths)
    values |= {"begin": (ends - lengths).astype(index), "end": ends.astype(index)}
    for name, numbers in (("first", "x"), ("second", "y")):
        size = max(values[numbers].size, 1)
        values[numbers] = np.resize(values[numbers], size)
        values[name] = rng.integers(0, size, lengths.sum()).astype(index)


def _rows_of_blocks(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Make sorted rows, some of them empty, in block rows of more rows than a kernel holds."""
    index, height, width = values["indptr"].dtype, 3 if extents["m"] % 2 else 11, 2
    m, rng = extents["m"] * height, np.random.default_rng(extents["m"])
    columns = [np.sort(rng.choice(WIDTH, int(rng.integers(0, 5)), replace=False)) for _ in range(m)]
    values |= {"height": height, "width": width}
    values["indptr"] = np.cumsum([0] + [c.size for c in columns]).astype(index)
    values["indices"] = np.concatenate([*columns, []]).astype(index)
    if "values" in values:
        dtype = values["values"].dtype
        _entries(values, "", values["indices"], dtype, rng)
        lengths = np.empty(extents["m"], index)
        known = values | {"lengths": lengths, "total": np.empty(1, np.int64)}
        operation = OPERATIONS["rows.count_blocks"]
        REFERENCE.run(operation, *(known[p.name] for p in operation.parameters))
        values["lengths"] = lengths
        values["target"] = np.cumsum([0, *lengths]).astype(index)
        blocks = int(values["target"][-1])
        values["new_indices"] = np.full(blocks, -77, index)
        values["new_values"] = np.full(blocks * height * width, np.nan, dtype)


def _room_for_rows(values: dict[str, Any]) -> None:
    """Say where the rows of a new matrix begin, as counting its entries would."""
    if "target" not in values:
        return
    index = values["target"].dtype
    if "rows" in values:
        lengths = np.diff(values["indptr"])[values["rows"]]
    else:
        of_two = "count_union" if "alpha" in values else "count_products"
        count = of_two if "other_begin" in values else "count_nonzeros"
        operation = OPERATIONS[f"rows.{count}"]
        lengths = np.empty(values["begin"].size, index)
        known = values | {"lengths": lengths, "total": np.empty(1, np.int64)}
        REFERENCE.run(operation, *(known[p.name] for p in operation.parameters))
    values["target"] = np.cumsum([0, *lengths]).astype(index)
    room = int(values["target"][-1])
    values["new_indices"] = np.full(room, -77, index)
    values["new_values"] = np.full(room, np.nan, values["values"].dtype)


# Properties of an operation's inputs that its signature cannot state.
def _norms_in_and_out_of_range(values: dict[str, Any], extents: dict[str, int]) -> None:
    """Let every third column meet its threshold at once, and every third be out of range."""
    values["least"][:] = 0
    values["most"][:] = 1e6
    values["relative"] *= 1e-3
    values["absolute"][::3] = 1e5
    values["most"][1::3] = 1e-6


ARRANGE: dict[str, Callable[[dict[str, Any], dict[str, int]], None]] = {
    **ARRANGE_GRAPHS,
    **ARRANGE_INCOMPLETE,
    **ARRANGE_SELECTED,
    **ARRANGE_TRIANGLES,
    **{
        f"rows.{name}": _rows
        for name in ("examine", "count_nonzeros", "total", "largest", "smallest", "diagonal")
    },
    **{
        f"rows.{name}": _rows
        for name in ("set_diagonal", "scale", "drop_zeros", "number", "longest")
    },
    **{f"rows.{name}": _rows for name in ("count_products", "multiply")},
    "rows.count_union": _rows,
    "rows.add": _rows,
    "rows.lengths": _taken_rows,
    "rows.take": _taken_rows,
    "rows.at": _positions,
    "rows.contract": _terms,
    "rows.count_blocks": _rows_of_blocks,
    "rows.fill_blocks": _rows_of_blocks,
    "scan.pointers": _scan,
    "csr.sum_duplicates": _sorted,
    "csr.matmul_values": _the_product,
    "attention.row_gradients": _columns_of_heads,
    "csr.fusedmm_softmax_backward": _the_softmax,
    "mask.fusedmm_softmax_backward": _the_softmax,
    "csr.edge_function": _five_outputs,
    "csr.fusedmm_traced": _a_softmax_last,
    "mask.fusedmm_traced": _no_inputs_of_entries,
    "gmres.reproject": _some_lost_digits,
    "gmres.resubtract": _some_lost_digits,
    "gmres.extend": _first_residual,
    "gmres.augment": _some_are_missing,
    "facts.symmetry": _nearly_symmetric,
    "facts.mirrored": _nearly_symmetric_rows,
    "summary.square": _nearly_symmetric_square,
    "parilu.sweep": _a_pattern_with_its_diagonal,
    "triangular.factorize": _a_pattern_with_its_diagonal,
    "triangular.levels": _a_triangle,
    "triangular.level": _a_triangle,
    "triangular.substitute": _a_triangle,
    "triangular.lanes": _a_triangle,
    "triangular.threshold": _factors_by_thresholds,
    "inverse.selected": _factors_of_a_matrix,
    "isai.triangle": _an_inverse_on_a_pattern,
    "isai.general": _an_inverse_on_a_pattern,
    "ordering.matching": _costs,
    "ordering.colors": _costs,
    "ordering.fill": _an_elimination,
    "ordering.search": _a_search,
    "ordering.substitution": _a_scrambled_triangle,
    "gmres.rotate": _first_residual,
    "gmres.solve": _only_what_counts,
    "gmres.combine": _only_what_counts,
    "vector.enter": _norms_in_and_out_of_range,
}
