"""Declarations of the kernels that solve batches of systems directly."""

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

#: Signature of the kernels that solve without keeping factors.
_ONCE = (
    "count: i64, n: i64, places: in i32[z], matrix: in i64[l], entries: i64, values: in T[l], "
    "b: in T[l], x: out T[l], relative: in f64[l], absolute: in f64[l], apart: i64, "
    f"limits: in f64[l], refine: i64, {_VERDICTS}"
)


@cache
def batch_dense(block: int, resident: int) -> SimtKernel:
    """Return the kernel that keeps the rows of a dense matrix in registers.

    Constants: ``N`` rows; ``L`` lanes per row of a residual.
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

    Constants: ``N`` rows; ``OWN`` is 1 if the launch gives a block its shared memory (CUDA only);
    ``PARTS`` waves share a row of tiles of double precision, 0 if the inverse is not in tiles;
    ``B`` work-items per block; ``L`` lanes per row of a residual.
    """
    return SimtKernel(
        "batch_grid",
        "simt/batch_grid.hpp",
        f"first: i64, {_SYSTEMS}",
        "{N}, {OWN}, {PARTS}, {B}, {L}, {T}, {I}",
        block=block,
        variants=(),
        resident=resident,
    )


@cache
def batch_elimination(block: int, resident: int) -> SimtKernel:
    """Return the kernel that eliminates in registers and keeps no factors.

    Constants: ``N`` rows; ``P`` rows per work-item, 1 or 2.
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
    """Return the kernel that inverts float64 matrices as tiles in the registers of a wave.

    Constant: ``N`` rows.
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
    """Return the kernel that keeps a dense or banded matrix in memory.

    Constants: ``CELLS`` elements of declared memory per block, or 0; ``OWN`` is 1 if the launch
    gives a block its shared memory (CUDA only); ``B`` work-items per block; ``L`` lanes per row of
    a residual. A block without shared memory for its matrix uses a part of the arena.
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
    """Return the kernel that shares a tridiagonal system among lanes, without row exchanges.

    Constants: ``R`` rows per lane; ``L`` lanes per system.
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
