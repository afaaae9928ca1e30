"""The declarations of the kernels that solve the systems of a batch directly."""

from __future__ import annotations

from functools import cache

from ..unified.wrappers import SimtKernel

_VERDICTS = (
    "codes: out u8[l], iterations: out i64[l], norms: out f64[l], thresholds: out f64[l], "
    "undecided: inout i32[l]"
)

_SYSTEMS = (
    "places: in i64[z], repeated: i64, starts: in i64[l], width: i64, entries: i64, "
    "indptr: in I[l], indices: in I[z], values: in T[l], b: in T[l], x: inout T[l], started: i64, "
    "relative: in f64[l], absolute: in f64[l], apart: i64, limits: in f64[l], refine: i64, "
    f"{_VERDICTS}, determines: i64, states: out u8[l], signs: out T[l], logarithms: out f64[l]"
)

#: Of kernels that solve a system without factors that are kept.
_ONCE = (
    "count: i64, n: i64, places: in i32[z], matrix: in i64[l], entries: i64, values: in T[l], "
    "b: in T[l], x: out T[l], relative: in f64[l], absolute: in f64[l], apart: i64, "
    f"limits: in f64[l], refine: i64, {_VERDICTS}"
)


@cache
def batch_dense(block: int, resident: int) -> SimtKernel:
    """Return the kernel that keeps the rows of a matrix in registers.

    Its constants are ``N``, the rows, and ``L``, the lanes that share a row of a residual.
    """
    return SimtKernel(
        "batch_dense",
        "simt/batch_dense.hpp",
        f"first: i64, {_SYSTEMS}",
        "{N}, {L}, {T}, {I}",
        block=block,
        variants=(),
        resident=resident,
    )


@cache
def batch_grid(block: int, resident: int) -> SimtKernel:
    """Return the kernel that keeps the inverse of a dense matrix in the registers of a block.

    Its constants are ``N``, the rows; ``OWN``, 1 where the launch gives a block its memory, which
    needs CUDA; ``B``, the size of a block; and ``L``, the lanes that share a row of a residual.
    """
    return SimtKernel(
        "batch_grid",
        "simt/batch_grid.hpp",
        f"first: i64, {_SYSTEMS}",
        "{N}, {OWN}, {B}, {L}, {T}, {I}",
        block=block,
        variants=(),
        resident=resident,
    )


@cache
def batch_elimination(block: int, resident: int) -> SimtKernel:
    """Return the kernel that eliminates in registers and keeps no factors.

    Its constants are ``N``, the rows, and ``P``, the rows of a work-item: 1 or 2.
    """
    return SimtKernel(
        "batch_elimination",
        "simt/batch_elimination.hpp",
        _ONCE,
        "{N}, {P}, {T}",
        block=block,
        variants=(),
        resident=resident,
    )


@cache
def batch_tiles(block: int, resident: int) -> SimtKernel:
    """Return the kernel that inverts in tiles in the registers of a wave, in double precision.

    Its constant is ``N``, the rows.
    """
    return SimtKernel(
        "batch_tiles",
        "simt/batch_tiles.hpp",
        _ONCE,
        "{N}",
        block=block,
        variants=(),
        resident=resident,
    )


@cache
def batch_band(block: int) -> SimtKernel:
    """Return the kernel that keeps a dense matrix or a band in memory.

    Its constants are ``CELLS``, elements of memory of a block, or 0; ``OWN``, 1 where the launch
    gives a block its memory, which needs CUDA; ``B``, the size of a block; and ``L``, the lanes
    that share a row of a residual. Without memory of its own a block has a part of the arena.
    """
    return SimtKernel(
        "batch_band",
        "simt/batch_band.hpp",
        "first: i64, n: i64, lower: i64, upper: i64, stride: i64, offset: i64, size: i64, "
        f"order: in i64[n], arena: inout T[l], each: i64, {_SYSTEMS}",
        "{CELLS}, {OWN}, {B}, {L}, {T}, {I}",
        block=block,
        variants=(),
    )


@cache
def batch_tridiagonal(block: int, resident: int) -> SimtKernel:
    """Return the kernel in which lanes share a tridiagonal system, without exchanges of rows.

    Its constants are ``R``, the rows of a lane, and ``L``, the lanes that share a system.
    """
    return SimtKernel(
        "batch_tridiagonal",
        "simt/batch_tridiagonal.hpp",
        _ONCE,
        "{R}, {L}, {T}",
        block=block,
        variants=(),
        resident=resident,
    )
