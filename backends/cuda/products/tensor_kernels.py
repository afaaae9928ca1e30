"""The tensor-core kernels: declarations, tile shapes, and programs."""

from __future__ import annotations

from typing import NamedTuple

from ...unified.wrappers import SimtKernel

#: Upper bound of pipeline stages, as in ``tensor.hpp``, and bytes of their barriers.
MOST_STAGES, BARRIERS = 16, 256
#: Columns of a wave that multiplies entry by entry, as in ``tensor_join.hpp``.
JOIN_COLUMNS = 128


class TensorShape(NamedTuple):
    """The shape of a tile of the result.

    Attributes
    ----------
    columns, groups : int
        Columns of the tile, and number of warpgroups with 64 rows each.
    """

    columns: int
    groups: int


SHAPES = {
    "float32": (TensorShape(32, 4), TensorShape(64, 3), TensorShape(128, 2)),
    "float16": (TensorShape(32, 4), TensorShape(64, 4), TensorShape(128, 4)),
    "bfloat16": (TensorShape(32, 4), TensorShape(64, 4), TensorShape(128, 4)),
}


def tile_shape(dtype: str, columns: int) -> TensorShape:
    """Return the tile shape for a product with ``columns`` columns."""
    return next((shape for shape in SHAPES[dtype] if columns <= shape.columns), SHAPES[dtype][-1])


def dense_bytes(dtype: str, columns: int) -> int:
    """Return the bytes of 64 rows of a panel of B, as in ``tensor_tiles.hpp``."""
    if dtype == "float32":
        return 64 * columns * 2 * 2 + 4 * columns
    return 64 * columns * 2


scale_rows = SimtKernel(
    "tensor_scale_rows",
    "cuda/products/tensor_pack.hpp",
    "m: i64, indptr: in I[l], values: in T[z], exponents: out i32[l]",
    "{I}",
    variants=(),
)
pack_values = SimtKernel(
    "tensor_pack_values",
    "cuda/products/tensor_pack.hpp",
    "m: i64, steps: i64, pieces: i64, indptr: in I[l], starts: in i32[l], order: in u8[l], "
    "values: in T[z], packed: out u8[l], exponents: in i32[l], bad: out i32[l]",
    "{T}, {I}",
    variants=(),
)
#: Blocks of threads that pack the values of one block of rows.
PIECES = 8


def window_steps(columns: int) -> int:
    """Return the number of a panel's steps that share a scale, as in ``tensor_tiles.hpp``."""
    return 2 if columns < 128 else 1


def pack_dense(columns: int) -> SimtKernel:
    """Return the kernel that packs panels of ``columns`` columns."""
    return SimtKernel(
        "tensor_pack_dense",
        "cuda/products/tensor_pack.hpp",
        "n: i64, k: i64, steps: i64, B: in T[l], B_ld: i64, packed: out u8[l], bad: out i32[l]",
        "{N}, {T}",
        block=256 * window_steps(columns),
        variants=(),
    )


#: Columns per block of the kernel.
STRIP = 32


def product(groups: int) -> SimtKernel:
    """Return the kernel of blocks with ``groups`` warpgroups that multiply."""
    return SimtKernel(
        "tensor_product",
        "cuda/products/tensor.hpp",
        "m: i64, k: i64, row_blocks: i64, steps: i64, panels: i64, stages: i64, value_bytes: i64, "
        "masks: in u8[l], starts: in i32[l], values: in u8[l], exponents: in i32[l], "
        "dense: in u8[l], bad_rows: in i32[l], bad_row_count: i64, bad_columns: in i32[l], "
        "bad_column_count: i64, verdict: out i32[l], C: inout T[l], C_ld: i64, alpha: T, beta: T, "
        "partial: out u8[l]",
        "{N}, {W}, {T}",
        block=128 * (groups + 1),
        resident=1,
        variants=(),
    )


join = SimtKernel(
    "tensor_join",
    "cuda/products/tensor_join.hpp",
    "m: i64, k: i64, row_blocks: i64, steps: i64, panels: i64, shares: i64, exponents: in i32[l], "
    "verdict: in i32[l], indptr: in I[l], indices: in I[l], values: in T[z], B: in T[l], "
    "B_ld: i64, C: inout T[l], C_ld: i64, alpha: T, beta: T, partial: in u8[l]",
    "{N}, {W}, {T}, {I}",
    variants=(),
)
