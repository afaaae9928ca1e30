"""Declare the kernels of products of sparse and dense matrices, and their lane shapes.

Each shape is compiled at its first use, as a separate program: with all dtypes, there are some
hundred shapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ...unified.edge_functions import program_text
from ...unified.wrappers import SimtKernel

if TYPE_CHECKING:
    import numpy as np

_LIST = "bounds: in I[l], target: in I[l], indices: in I[z], values: in T[z], values_step: i64"


def operand(name: str, intent: str = "in") -> str:
    """Return the declaration of ``b`` blocks with any stride of rows and blocks."""
    return f"{name}: {intent} T[l], {name}_ld: i64, {name}_step: i64"


def log_totals(intent: str = "out") -> str:
    """Return the declaration of one number per row of ``b`` blocks."""
    return f"log_totals: {intent} R[l], log_totals_step: i64"


csr_spmm = SimtKernel(
    "csr_spmm",
    "simt/spmm.hpp",
    f"items: i64, k: i64, batch: i64, {_LIST}, {operand('B')}, {operand('C', 'inout')}, "
    "alpha: T, beta: T, lines: i64, partial: out u8[l]",
    "{L}, {V}, {E}, {A}, {WAVES}, {WHOLE}, {T}, {I}",
    variants=(),
    # Small blocks finish as soon as their rows are done: R-MAT 1571, blocks of 128 1586, of 256
    # 1677.
    block=64,
    # Bound of 64 registers. 32 columns: 2 % 16.7, unbounded 19.1; 10 % 65.6 and 73.8. 128 columns:
    # 2 % 53.7 and 62.8. 48 registers leave only four loads in flight: 20.9.
    resident=16,
)


@cache
def team_spmm(waves: int, wave: int) -> SimtKernel:
    """Return ``csr_spmm`` for blocks of ``waves`` waves that share a row."""
    return replace(csr_spmm, block=waves * wave, resident=csr_spmm.resident * 2 // waves)


spmm_join = SimtKernel(
    "spmm_join",
    "simt/spmm.hpp",
    "cuts: i64, k: i64, batch: i64, rows: in I[l], first: in I[l], lines: i64, "
    f"partial: in u8[l], {operand('C', 'inout')}, alpha: T, beta: T",
    variants=(),
)
csr_sddmm = SimtKernel(
    "csr_sddmm",
    "simt/sddmm.hpp",
    f"items: i64, k: i64, batch: i64, {_LIST}, {operand('C')}, {operand('B')}, "
    "sampled: inout T[z], sampled_step: i64, alpha: T, beta: T",
    "{L}, {V}, {E}, {A}, {WHOLE}, {T}, {I}",
    block=64,
    variants=(),
    resident=20,
)
csr_fusedmm = SimtKernel(
    "csr_fusedmm",
    "simt/fusedmm.hpp",
    f"items: i64, k: i64, p: i64, batch: i64, {_LIST}, {operand('C')}, {operand('B')}, "
    f"{operand('D')}, {operand('out', 'out')}, {log_totals()}, alpha: T, lines: i64, "
    "partial: out u8[l]",
    "{L}, {VK}, {VP}, {E}, {A}, {EDGE}, {SAME}, {WHOLE}, {T}, {I}",
    block=64,
    variants=(),
    resident=16,
)
_OF_FUNCTION = ", ".join(
    f"{name}: in R[l], {name}_ld: i64, {name}_step: i64"
    for name in ("of_rows", "of_columns", "of_entries")
)
csr_fusedmm_traced = replace(
    csr_fusedmm,
    name="csr_fusedmm_traced",
    signature=(
        f"items: i64, k: i64, p: i64, batch: i64, {_LIST}, {operand('C')}, {operand('B')}, "
        f"{operand('D')}, {_OF_FUNCTION}, {operand('out', 'out')}, {log_totals()}, alpha: T, "
        "lines: i64, partial: out u8[l]"
    ),
    template="{L}, {VK}, {VP}, {E}, {A}, {EDGE}, {SAME}, {WHOLE}, wl::edge_program, {T}, {I}",
    resident=8,
)
csr_edge_function = SimtKernel(
    "csr_edge_function",
    "simt/fusedmm.hpp",
    f"m: i64, batch: i64, indptr: in I[l], indices: in I[z], scores: in T[l], scores_step: i64, "
    f"{_OF_FUNCTION}, {operand('results', 'out')}",
    "wl::edge_program, {T}, {I}",
    variants=(),
)


@cache  # devices identify kernels by object identity
def with_function(kernel: SimtKernel, function: str) -> SimtKernel:
    """Return a kernel that includes the program of an edge function."""
    return replace(kernel, text=program_text(function))


fusedmm_join = SimtKernel(
    "fusedmm_join",
    "simt/fusedmm.hpp",
    "cuts: i64, p: i64, batch: i64, rows: in I[l], first: in I[l], lines: i64, "
    f"partial: in u8[l], {operand('out', 'out')}, {log_totals()}",
    "{EDGE}, {T}, {I}",
    variants=(),
)

_STORED = "m: i64, batch: i64, indptr: in I[l]"
edge_rows = SimtKernel(
    "edge_rows",
    "simt/edge.hpp",
    f"{_STORED}, samples: inout T[z], apart: i64, {log_totals()}",
    "{EDGE}, {T}, {I}",
    variants=(),
)
edge_gradients = SimtKernel(
    "edge_gradients",
    "simt/edge.hpp",
    f"{_STORED}, weights: in T[z], weights_apart: i64, gradients: inout T[z], gradients_apart: i64",
    "{EDGE}, {T}, {I}",
    variants=(),
)

#: The arrays of a pattern with one interval of columns per row.
INTERVALS = "first: in I[l], last: in I[l]"
_BY_ROWS = "m: i64, k: i64, batch: i64, indptr: in I[l], indices: in I[z]"
csr_spmm_max = SimtKernel(
    "csr_spmm_max",
    "simt/spmm_max.hpp",
    f"{_BY_ROWS}, {operand('B')}, {operand('C', 'out')}",
    "{L}, {V}, {E}, {WHOLE}, {T}, {I}",
    variants=(),
)
csr_spmm_where_equal = SimtKernel(
    "csr_spmm_where_equal",
    "simt/spmm_max.hpp",
    f"{_BY_ROWS}, {operand('X')}, {operand('Y')}, {operand('G')}, {operand('Z', 'out')}",
    "{L}, {V}, {E}, {WHOLE}, {T}, {I}",
    variants=(),
)

_OF_HEADS = (
    "items: i64, k: i64, p: i64, batch: i64, bounds: in I[l], goes_to: in I[l], indices: in I[z]"
)
_OF_CUTS = (
    "cuts: i64, k: i64, p: i64, batch: i64, rows: in I[l], first: in I[l], lines: i64, "
    "partial: in T[l]"
)
_ATTENDED = ", ".join(operand(name, "out") for name in ("E", "positive", "log_totals", "shares"))
_ATTENDING = ", ".join(operand(name, "out") for name in ("of_D", "steep", "of_means"))
_GIVEN = ", ".join(operand(name) for name in ("target", "source", "G", "log_totals", "means"))
csr_additive_attention = SimtKernel(
    "csr_additive_attention",
    "simt/additive_attention.hpp",
    f"{_OF_HEADS}, {operand('target')}, {operand('source')}, {operand('D')}, {_ATTENDED}, "
    "slope: T, lines: i64, partial: out T[l]",
    "{L}, {V}, {E}, {WHOLE}, {GRADIENTS}, {T}, {I}",
    block=64,
    variants=(),
    resident=16,
)
additive_attention_join = SimtKernel(
    "additive_attention_join",
    "simt/additive_attention.hpp",
    f"{_OF_CUTS}, {_ATTENDED}",
    "{GRADIENTS}, {T}, {I}",
    variants=(),
)
additive_columns = SimtKernel(
    "additive_columns",
    "simt/additive_attention.hpp",
    f"{_OF_HEADS}, {_GIVEN}, {_ATTENDING}, slope: T, lines: i64, partial: out T[l]",
    "{L}, {V}, {E}, {WHOLE}, {T}, {I}",
    block=64,
    variants=(),
    resident=16,
)
additive_columns_join = SimtKernel(
    "additive_columns_join",
    "simt/additive_attention.hpp",
    f"{_OF_CUTS}, {_ATTENDING}",
    "{T}, {I}",
    variants=(),
)
additive_join = SimtKernel(
    "additive_join",
    "simt/additive_attention.hpp",
    f"n: i64, heads: i64, p: i64, batch: i64, {operand('D')}, {operand('steep')}, "
    f"{operand('of_source', 'inout')}",
    "{T}",
    variants=(),
)

#: Kernels that support only float32 and float64.
WIDE_ONLY = (
    *(csr_additive_attention, additive_attention_join, additive_columns, additive_columns_join),
    additive_join,
)

#: Codes of edge functions, as in the kernels' text.
EDGES = {"identity": 0, "sigmoid": 1, "softmax": 2}

#: Bytes that a lane loads at once.
VECTOR_BYTES = 16
# Measured on an H200 with float32 and 8192 x 8192, 10 % unless stated otherwise; microseconds.

#: Upper bound of lanes per row of a sum. 128 columns, 2 % and 10 %: 32 lanes of one vector 53.7 and
#: 202, 16 of two 55.9 and 201, 8 of four 60.0 and 225. 32 columns: 8 of one 16.7 and 65.6, 4 of two
#: 22.1 and 75.4.
MOST_ROW_LANES = 32
#: Upper bound of vectors per lane.
MOST_VECTORS = 4
#: Vectors that a lane has in flight. 128 columns, 10 %: eight 201; in prototypes, four lost 13 to
#: 20 %, sixteen 20 %.
IN_FLIGHT = 8
#: Vectors per lane of a row in dot products, for rows with enough vectors. 128 columns, 2 % and
#: R-MAT 2^20: 16 lanes of two 59 and 1333, 8 of four 58 and 1370, 32 of one 65 and 1367.
DOT_VECTORS = 2
#: Vectors that a lane of sddmm and fusedmm has in flight, such that 40 and 32 waves have registers:
#: four 59 and 1333, eight 65 and 1393.
DOTS_IN_FLIGHT = 4


class RowShape(NamedTuple):
    """Lanes per row of a dense operand, and vectors per lane."""

    lanes: int
    vectors: int


def _power(count: int, most: int) -> int:
    power = 1
    while power < min(count, most):
        power *= 2
    return power


def row_shape(vectors: int, most_lanes: int = MOST_ROW_LANES) -> RowShape:
    """Return the shape for sums of rows of ``vectors`` vectors; wider rows are cut into tiles.

    Examples
    --------
    >>> row_shape(8), row_shape(32), row_shape(64)
    (RowShape(lanes=8, vectors=1), RowShape(lanes=32, vectors=1), RowShape(lanes=32, vectors=2))
    """
    lanes = _power(vectors, most_lanes)
    return RowShape(lanes, _power(-(-vectors // lanes), MOST_VECTORS))


def steps_ahead(lanes: int, vectors: int) -> int:
    """Return the number of rows that a lane loads before it adds the first one."""
    return min(lanes, max(1, IN_FLIGHT // vectors))


def dot_shape(vectors: int) -> RowShape:
    """Return the shape for dot products of rows of ``vectors`` vectors; longer rows use strips.

    Examples
    --------
    >>> dot_shape(8), dot_shape(32), dot_shape(128)
    (RowShape(lanes=4, vectors=2), RowShape(lanes=16, vectors=2), RowShape(lanes=32, vectors=4))
    """
    lanes = _power(-(-vectors // DOT_VECTORS), MOST_ROW_LANES)
    return RowShape(lanes, _power(-(-vectors // lanes), MOST_VECTORS))


def dots_ahead(lanes: int, vectors: int) -> int:
    """Return the number of rows that a lane loads before it multiplies the first one."""
    return min(lanes, max(1, DOTS_IN_FLIGHT // vectors))


def fused_shape(k: int, p: int, *, same: bool) -> tuple[int, int, int]:
    """Return lanes, vectors of the multiplied rows, and vectors of the summed rows.

    If ``D`` is not ``B``, there are as many lanes as vectors, which leaves registers for rows of
    both: 128 columns, 2 % and R-MAT 2^20, 32 lanes 120 and 3050, 16 of two vectors 120 and 3170. If
    ``D`` is ``B``: 81 and 1800, and 67 and 1730.
    """
    most = max(k, p)
    lanes = dot_shape(most).lanes if same else _power(most, MOST_ROW_LANES)
    return (
        lanes,
        _power(-(-k // lanes), MOST_VECTORS),
        _power(-(-p // lanes), MOST_VECTORS),
    )


def elements(itemsize: int, columns: tuple[int, ...], places: tuple[int, ...]) -> int:
    """Return the number of elements that a lane loads at once.

    Parameters
    ----------
    itemsize : int
        Bytes per element.
    columns : tuple of int
        Columns of all operands.
    places : tuple of int
        Addresses and strides of all rows in bytes: a vector may begin at each of them.
    """
    each = VECTOR_BYTES // itemsize
    whole = all(place % VECTOR_BYTES == 0 for place in places)
    return each if whole and all(count % each == 0 for count in columns) else 1


def samples(wave: int) -> Iterator[tuple[SimtKernel, dict[str, int]]]:
    """Yield kernels with constants that cover all code paths, to test compilers.

    Parameters
    ----------
    wave : int
        Lanes per wave.
    """
    for lanes, vectors, each, waves, whole in (
        (1, 1, 1, 1, 0),
        (4, 1, 0, 0, 1),
        (8, 1, 0, 1, 2),
        (32, 1, 0, 1, 2),
        (32, 4, 0, 1, 1),
        (8, 1, 0, 4, 2),
        (32, 2, 0, 8, 1),
    ):
        ahead = steps_ahead(lanes, vectors)
        yield (
            csr_spmm if waves < 2 else team_spmm(waves, wave),
            {"L": lanes, "V": vectors, "E": each, "A": ahead, "WAVES": waves, "WHOLE": whole},
        )
    for lanes, vectors, each, whole in ((1, 1, 1, 0), (8, 1, 0, 1), (16, 2, 0, 2), (32, 4, 0, 0)):
        ahead = dots_ahead(lanes, vectors)
        yield csr_sddmm, {"L": lanes, "V": vectors, "E": each, "A": ahead, "WHOLE": whole}
    fused = (
        {"L": 16, "VK": 2, "VP": 2, "E": 0, "A": 2, "SAME": 1, "WHOLE": 2},
        {"L": 4, "VK": 1, "VP": 4, "E": 1, "A": 1, "SAME": 0, "WHOLE": 0},
    )
    for edge in EDGES.values():
        for constants in fused:
            yield csr_fusedmm, {**constants, "EDGE": edge}
        yield fusedmm_join, {"EDGE": edge}
        yield edge_rows, {"EDGE": edge}
        yield edge_gradients, {"EDGE": edge}
    yield spmm_join, {}
    for lanes, vectors, each, whole in ((1, 1, 1, 0), (8, 1, 0, 1), (32, 2, 0, 0)):
        shape = {"L": lanes, "V": vectors, "E": each, "WHOLE": whole}
        yield csr_spmm_max, shape
        yield csr_spmm_where_equal, shape
        yield additive_columns, shape
        for wanted in (0, 1):
            yield csr_additive_attention, {**shape, "GRADIENTS": wanted}
            yield additive_attention_join, {"GRADIENTS": wanted}
    yield additive_columns_join, {}
    yield additive_join, {}


def sample_variants(kernel: SimtKernel, value: str, constants: dict[str, int]) -> dict[str, int]:
    """Return the constants of a sample for values of a dtype; E = 0 stands for a whole vector."""
    if constants.get("E", 1):
        return constants
    return constants | {"E": VECTOR_BYTES // item_bytes(value)}


def item_bytes(value: str) -> int:
    """Return the size in bytes of a value with the given dtype code."""
    return int(value[1:])


@cache
def value_code(dtype: np.dtype[Any]) -> str:
    """Return the code of a value dtype, including 16-bit dtypes."""
    return "b2" if dtype.name == "bfloat16" else str(dtype.str[1:])
