"""Sampled products by dense tiles on tensor cores, for patterns that are not very sparse.

A tile of 128 x 128 sums costs the same for any number of samples; from some 3 % on, that is less
than one dot product per sample. float32 is multiplied as two 16-bit halves, with three products of
them, and stays within some 1e-7 of float64. The device detects operands without this guarantee
(Inf, NaN, rows of numbers further than 2^28 apart, or beyond 2^60) and then runs the general
kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ....core.algorithm import Facts, Unsuited
from ....core.calls import SddmmCall
from ....core.executor import Array
from ....core.store import Key
from ...gpu.products import choice as product_choice
from ...gpu.products import declarations as ml
from ...gpu.products.adapter import Adapter, AddressedOperand
from ...gpu.products.algorithm import GpuAlgorithm
from ...gpu.products.dots import dot_constants, dot_kernel
from ...gpu.products.sddmm_flat import rows_of
from ...gpu.reductions import some
from ...unified.wrappers import SimtKernel
from .constants import TileConstants, by_columns
from .launches import launch_kernel

if TYPE_CHECKING:
    from types import ModuleType

    from ....core.formats.csr import Csr
    from ...gpu.device import GpuDevice
    from ..runtime.device import CudaDevice


def _source(name: str) -> str:
    return (
        f"{name}_rows: i64, {name}_padded: i64, {name}: in T[l], {name}_ld: i64, "
        f"{name}_packed: out u8[l], {name}_scales: out R[l]"
    )


tile_pack = SimtKernel(
    "tile_pack",
    "cuda/products/tile_pack.hpp",
    f"k: i64, first: i64, {_source('C')}, {_source('B')}, wide: out i32[l]",
    "{KP}, {H}, {PARTS}, {E}, {WHOLE}, {T}",
    variants=(),
)
tile_sddmm = SimtKernel(
    "tile_sddmm",
    "cuda/products/tile_sddmm.hpp",
    "tiles: i64, units: i64, blocks: in i32[l], places: in I[l], codes: in u8[l], "
    "values: in T[z], C: in u8[l], B: in u8[l], scale_C: in R[l], scale_B: in R[l], words: i64, "
    "wide: in i32[l], verdict: out i32[l], sampled: inout T[z], alpha: T, beta: T",
    "{KP}, {PARTS}, {U}, {VALUED}, {T}, {I}",
    block=512,
    variants=(),
)
tile_mma = SimtKernel(
    "tile_mma",
    "cuda/products/tile_mma.hpp",
    tile_sddmm.signature,
    "{KP}, {PARTS}, {STAGES}, {U}, {VALUED}, {T}, {I}",
    block=512,
    variants=(),
)
sddmm_if_wide = SimtKernel(
    "sddmm_if_wide",
    "cuda/products/tile_sample.hpp",
    f"verdict: in i32[l], {ml.csr_sddmm.signature}",
    ml.csr_sddmm.template,
    block=ml.csr_sddmm.block,
    variants=(),
    resident=ml.csr_sddmm.resident,
)

#: Rows and columns of a tile; rows per list of entries; entries per block of a list. As in the
#: text.
TILE, HALF, BLOCK = 128, 64, 512
#: Columns of ``C`` and ``B`` that a tile multiplies at once, by the parts of a number.
WIDTHS = {2: (32, 64, 128), 1: (64, 128, 256)}
#: Upper bounds of a list's blocks to prefetch, and if values or earlier samples are read too,
#: because registers are limited. At 30 % and 128 columns: two 365, four 265, six 192.
MOST_AHEAD, MOST_AHEAD_READ = 6, 3
#: Upper bound of the lists' heads in bytes, beyond which a pattern is not cut into tiles.
MOST_HEADS = 1 << 30

#: Bytes of memory per entry while lists are made: ten arrays of int64.
BYTES_TO_PLAN = 80


class TileLists(NamedTuple):
    """The entries of tiles, and the work list of the general kernel; see ``tile_sddmm.hpp``.

    Attributes
    ----------
    panels, tiles : int
        Tiles per column, and tiles per row.
    ahead : int
        Blocks of a list to prefetch.
    blocks : array, shape (2 panels tiles + 1,)
        The first block of each list, int32.
    places : array, shape (128 panels tiles,)
        For each row of a list: the index of its first entry in the matrix, minus its index in the
        list.
    codes : array, shape (512 blocks,)
        Row * 128 + column of each entry, uint16; 0xffff pads blocks.
    plain : Pieces
        The work list of the general kernel.
    """

    panels: int
    tiles: int
    ahead: int
    blocks: Array
    places: Array
    codes: Array
    plain: product_choice.Pieces


class TileEntries(NamedTuple):
    """The arrays of :class:`TileLists` that hold the entries."""

    ahead: int
    blocks: Array
    places: Array
    codes: Array


def make_lists(xp: ModuleType, A: Csr) -> TileEntries:
    """Return the entries of all tiles.

    Parameters
    ----------
    xp : module
        NumPy, or a module with its functions for the arrays of a device.
    A : Csr
        The matrix, with sorted rows.
    """
    m, n = A.shape
    panels, tiles, nnz = -(-m // TILE), -(-n // TILE), A.nnz
    count = 2 * panels * tiles
    rows = rows_of(xp, A.indptr, nnz).astype(np.int64)
    columns = A.indices.astype(np.int64)
    of_list = rows // HALF * tiles + columns // TILE
    order = xp.argsort(of_list, kind="stable")
    of_list = of_list[order]
    entries = xp.bincount(of_list, minlength=count)
    ends = xp.cumsum(entries)
    number = xp.arange(nnz) - (ends - entries)[of_list]
    of_blocks = (entries + BLOCK - 1) // BLOCK
    blocks = xp.concatenate([xp.zeros(1, np.int64), xp.cumsum(of_blocks)])
    codes = xp.full(int(blocks[-1]) * BLOCK, 0xFFFF, np.uint16)
    lane, turn = number % BLOCK % 128, number % BLOCK // 128
    place = (blocks[of_list] + number // BLOCK) * BLOCK + lane * 4 + turn
    code = rows % HALF * TILE + columns % TILE
    codes[place] = code[order].astype(np.uint16)
    # All entries of a list's row store the same value.
    places = xp.zeros(count * HALF, A.indices.dtype)
    places[of_list * HALF + rows[order] % HALF] = (order - number).astype(A.indices.dtype)
    usual = float(of_blocks.sum()) / int(of_blocks.size) if count else 0.0
    ahead = min(max(int(np.ceil(usual)), 1), MOST_AHEAD)
    return TileEntries(ahead, blocks.astype(np.int32), places, codes)


def shared_bytes(width: int, parts: int, itemsize: int, stages: int = 2) -> int:
    """Return a block's shared memory in bytes: barriers, tiles of B, sums, and cached entries."""
    known = 2 * 2 * (HALF * itemsize + 4 * HALF + 4 * TILE)
    return 128 + stages * parts * TILE * width * 2 + TILE * (TILE + 8) * 4 + known


class Multiplier(NamedTuple):
    """A kernel of tiles, its shared memory, and its other compile-time constants."""

    kernel: SimtKernel
    shared: int
    constants: dict[str, int]


class Tile(GpuAlgorithm):
    """Dense tiles with Hopper's tensor-core instructions, sampled as they are computed."""

    name: ClassVar[str] = "tile"
    copies: ClassVar[bool] = True
    repeats: ClassVar[bool] = True

    def missing(self, device: CudaDevice) -> str | None:
        """Return the feature that a device lacks, or None."""
        if device.capability != (9, 0):
            return "it is made of words of compute capability 9.0"
        return None

    def kernel(self, device: GpuDevice, width: int, parts: int, itemsize: int) -> Multiplier:
        """Return the kernel that multiplies tiles of a width."""
        return Multiplier(tile_sddmm, shared_bytes(width, parts, itemsize), {})

    def objection(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return why tiles cannot be used, or None."""
        missing = self.missing(on.executor.device)
        if missing:
            return missing
        if facts.dtype not in ("float32", "float16", "bfloat16"):
            return f"tensor cores have no {facts.dtype}"
        if facts.columns < 1:
            return "there is nothing to multiply"
        if facts.dtype != "float32" and facts.columns > WIDTHS[1][-1]:
            return f"of 16-bit numbers it takes {WIDTHS[1][-1]} columns at most"
        m, n = A.shape
        lists = 2 * -(-m // TILE) * -(-n // TILE)
        if lists * HALF * facts.index_dtype.itemsize > MOST_HEADS:
            return "the matrix has too many tiles"
        return None

    def reason(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return why tiles are faster, or None."""
        m, n = A.shape
        rules = on.executor.constants.of(TileConstants)
        enough = by_columns(rules.density, facts.columns)
        if facts.density < enough or m * n < rules.few_tiles * TILE * TILE:
            return None
        if A.nnz * BYTES_TO_PLAN > on.executor.free_memory():
            return None
        return f"{facts.density:.1%} of the positions are entries: dense tiles are sampled"

    def prepare(self, on: Adapter, A: Csr, facts: Facts) -> TileLists:
        """Return the entries of all tiles."""
        if not sorted_rows(A):
            raise Unsuited("rows are not sorted: A.sort() returns a sorted matrix")
        m, n = A.shape
        plain = on.pieces(A, 0, sampled=True)
        entries = make_lists(on.executor.xp, A)
        return TileLists(-(-m // TILE), -(-n // TILE), **entries._asdict(), plain=plain)

    def run(self, on: Adapter, state: TileLists, call: SddmmCall) -> None:
        """Pack, multiply and sample, one block of the batch and one strip of columns at a time."""
        A, values, C, B, S = call.A, call.values, call.C, call.B, call.S
        alpha, beta = call.alpha, call.beta
        dtype, index = C.dtype, A.indices.dtype
        item = dtype.itemsize
        batch, m, k = C.shape
        n = B.shape[1]
        of_C, of_B = on.read(C, index), on.read(B, index)
        weights, step = on.weights(values)
        parts = 2 if dtype.name == "float32" else 1
        each = ml.elements(item, (k,), of_B.places(item) + of_C.places(item))
        each = min(each, 8)
        widest = next((w for w in WIDTHS[parts] if w >= k), WIDTHS[parts][-1])
        padded = state.panels * TILE, state.tiles * TILE
        sizes = (
            parts * 2 * padded[0] * widest, parts * 2 * padded[1] * widest, 4 * padded[0],
            4 * padded[1], sum(padded) // 2, 4,
        )  # fmt: skip
        offsets = np.concatenate([[0], np.cumsum([-(-size // 256) * 256 for size in sizes])])
        memory = on.scratch(int(offsets[-1]))
        at_C, at_B, scale_C, scale_B, wide, verdict = (memory + int(o) for o in offsets[:-1])
        units = state.panels * state.tiles
        many = on.executor.device.multiprocessors
        for b in range(batch):
            place_C = of_C.address + b * of_C.blocks * item
            place_B = of_B.address + b * of_B.blocks * item
            place_S = on.address(S) + b * int(S.strides[0])
            place_values = 0 if weights is None else on.address(weights) + b * step * item
            for first in range(0, k, WIDTHS[parts][-1]):
                rest = k - first
                width = next((w for w in WIDTHS[parts] if w >= rest), WIDTHS[parts][-1])
                launch_kernel(
                    on, tile_pack, -(-sum(padded) // 8 // (tile_pack.block // 32)),
                    (
                        k, first, m, padded[0], place_C, of_C.rows, at_C, scale_C, n, padded[1],
                        place_B, of_B.rows, at_B, scale_B, wide,
                    ),
                    dtype, index, KP=width, H=TILE, PARTS=parts, E=each,
                    WHOLE=int(k <= width),
                )  # fmt: skip
                before = beta if first == 0 else 1.0
                valued = int(weights is not None) + 2 * int(before != 0)
                multiplier = self.kernel(on.executor.device, width, parts, index.itemsize)
                launch_kernel(
                    on, multiplier.kernel, min(units, many),
                    (
                        state.tiles, units, state.blocks, state.places, on.address(state.codes),
                        place_values, at_C, at_B, scale_C, scale_B, sum(padded) // 8, wide, verdict,
                        place_S, alpha, before,
                    ),
                    dtype, index, shared=multiplier.shared, KP=width, PARTS=parts,
                    **multiplier.constants, VALUED=valued,
                    U=min(state.ahead, MOST_AHEAD_READ if valued else MOST_AHEAD),
                )  # fmt: skip
            if parts == 2:
                self._plain(
                    on, A, state.plain, verdict, k,
                    AddressedOperand(place_C, of_C.rows, 0),
                    AddressedOperand(place_B, of_B.rows, 0),
                    place_values, place_S, alpha, beta, dtype,
                )  # fmt: skip

    @staticmethod
    def _plain(
        on: Adapter,
        A: Csr,
        items: product_choice.Pieces,
        verdict: int,
        k: int,
        C: AddressedOperand,
        B: AddressedOperand,
        values: int,
        S: int,
        alpha: float,
        beta: float,
        dtype: np.dtype[Any],
    ) -> None:
        """Launch the general kernel, which computes only if the tiles did not."""
        constants = dot_constants(dtype, k, 1, C, B)
        resident = dot_kernel(ml.csr_sddmm, dtype, constants["WHOLE"]).resident
        many = on.executor.device.multiprocessors * max(resident, 1)
        launch_kernel(
            on, sddmm_if_wide, min(many, -(-items.items // (sddmm_if_wide.block // 32))),
            (
                verdict, items.items, k, 1, items.bounds, items.target, A.indices, values, 0, *C,
                *B, S, 0, alpha, beta,
            ),
            dtype, A.indices.dtype, **constants,
        )  # fmt: skip


class TileMma(Tile):
    """The same with the tensor-core instructions of compute capability 8.0 and above."""

    name: ClassVar[str] = "tile-mma"

    def missing(self, device: CudaDevice) -> str | None:
        """Return the feature that a device lacks, or None."""
        if device.capability < (8, 0):
            return "it is made of words of compute capability 8.0"
        need = shared_bytes(WIDTHS[2][-1], 2, 8, 1)
        if device.shared_bytes < need:
            return f"it needs {need} bytes of shared memory, and there are {device.shared_bytes}"
        return None

    def kernel(self, device: GpuDevice, width: int, parts: int, itemsize: int) -> Multiplier:
        """Return the kernel that multiplies tiles of a width, with two stages if they fit."""
        two = shared_bytes(width, parts, itemsize)
        if two <= device.shared_bytes:
            return Multiplier(tile_mma, two, {"STAGES": 2})
        return Multiplier(tile_mma, shared_bytes(width, parts, itemsize, 1), {"STAGES": 1})


SORTED: Key[bool] = Key("sorted rows")


def sorted_rows(A: Csr) -> bool:
    """Return whether each row's columns are in rising order, determined once per pattern."""

    def look() -> bool:
        falls = A.indices[1:] < A.indices[:-1]
        ends = A.indptr[1:-1]
        ends = ends[(ends > 0) & (ends < A.nnz)]
        falls[ends - 1] = False
        return not some(falls)

    return A._pattern.get(SORTED, look)
