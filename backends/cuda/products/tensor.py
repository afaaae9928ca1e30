"""Sparse times dense on Hopper's tensor cores: A is loaded sparse and multiplied dense."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ....core.algorithm import Estimate, Facts, Unsuited
from ....core.calls import ProductCall, SpmmCall
from ....core.executor import Array
from ....core.store import Key
from ...gpu import launch
from ...gpu.products.adapter import Adapter
from ...gpu.products.algorithm import GpuAlgorithm
from . import tensor_choice
from . import tensor_kernels as kernels
from .constants import TensorCoreConstants
from .launches import launch_kernel
from .tensor_pattern import META, TILE, UNIT, TilePattern, tile_pattern

if TYPE_CHECKING:
    from ....core.formats.csr import Csr

DTYPES = ("float32", "float16", "bfloat16")

#: Upper bound of a pattern's masks in bytes: with more, hardly any position has an entry.
MOST_MASKS = 1 << 32
#: Largest number of entries in a block of 64 rows that ``order`` can number.
MOST_ENTRIES = 1 << 26


class AlignedMemory:
    """Arrays in one piece of memory, each at a multiple of 256 bytes."""

    def __init__(self, **sizes: int) -> None:
        self.offsets: dict[str, int] = {}
        self.nbytes = 0
        for name, size in sizes.items():
            self.offsets[name] = self.nbytes
            self.nbytes += -(-size // 256) * 256

    def at(self, address: int) -> dict[str, int]:
        """Return the address of each array if the memory begins at ``address``."""
        return {name: address + offset for name, offset in self.offsets.items()}


def places_of_values(m: int, pattern: TilePattern, dtype: np.dtype[Any]) -> AlignedMemory:
    """Return the sizes of packed values of a dtype; float32 also has exponents of row scales."""
    scaled = dtype.name == "float32"
    return AlignedMemory(
        values=int(pattern.order.size) * dtype.itemsize,
        exponents=4 * m * scaled,
        bad=4 * pattern.blocks * kernels.PIECES * scaled,
    )


def pack_values(
    on: Adapter,
    A: Csr,
    pattern: TilePattern,
    values: Array,
    dtype: np.dtype[Any],
    place: dict[str, int],
) -> None:
    """Pack values, given as an array or an address, in the order of tiles."""
    m, index = A.shape[0], A.indptr.dtype
    if dtype.name == "float32":
        launch_kernel(
            on,
            kernels.scale_rows,
            launch.row_blocks(m * on.wave, kernels.scale_rows.block),
            (m, A.indptr, values, place["exponents"]),
            dtype,
            index,
        )
    launch_kernel(
        on,
        kernels.pack_values,
        pattern.blocks * kernels.PIECES,
        (
            m, pattern.steps, kernels.PIECES, A.indptr, pattern.starts, on.address(pattern.order),
            values, place["values"], place["exponents"], place["bad"],
        ),
        dtype,
        index,
    )  # fmt: skip


class PackedCopy:
    """The values of a matrix in the order of tiles; updated when the matrix's values change."""

    def __init__(self, on: Adapter, A: Csr, pattern: TilePattern) -> None:
        self.on, self.pattern = on, pattern
        places = places_of_values(A.shape[0], pattern, A.dtype)
        self.memory = on.executor.allocate((max(places.nbytes, 1),), np.uint8)
        self.place = places.at(on.address(self.memory))
        self.update_values(A)

    def update_values(self, matrix: Csr) -> None:
        """Pack the matrix's new values."""
        with self.on.executor.device.handle:  # with several GPUs, another one may be current
            pack_values(self.on, matrix, self.pattern, matrix.data, matrix.dtype, self.place)


class Tiling(NamedTuple):
    """The division of a product into tiles, and of tiles into blocks.

    Attributes
    ----------
    shape : tensor_kernels.TensorShape
        The shape of a tile.
    panels : int
        Tiles per row of tiles.
    shares : int
        Blocks of threads; each gets an equal share of all steps of all tiles.
    stages : int
        Steps that a block holds in shared memory.
    value_bytes : int
        Bytes per stage for the values of a step of 64 rows.
    shared : int
        Total shared memory in bytes.
    """

    shape: kernels.TensorShape
    panels: int
    shares: int
    stages: int
    value_bytes: int
    shared: int


def tiling(
    pattern: TilePattern, columns: int, dtype: str, multiprocessors: int, shared_bytes: int
) -> Tiling:
    """Return the tiling of a product with ``columns`` columns for a device."""
    itemsize = 4 if dtype == "float32" else 2
    shape = kernels.tile_shape(dtype, columns)
    panels = -(-columns // shape.columns)
    value_bytes = -(-pattern.most * UNIT * itemsize // 128) * 128
    stage = kernels.dense_bytes(dtype, shape.columns) + shape.groups * (META + value_bytes)
    stages = min(kernels.MOST_STAGES, (shared_bytes - kernels.BARRIERS) // stage)
    tiles = -(-pattern.blocks // shape.groups) * panels
    shares = tensor_choice.shares(tiles, pattern.steps, multiprocessors)
    return Tiling(shape, panels, shares, stages, value_bytes, kernels.BARRIERS + stages * stage)


_TILES: Key[TilePattern | None] = Key("tiles of tensor cores")
_PACKED: Key[PackedCopy] = Key("values in tiles of tensor cores")


class TensorCores(GpuAlgorithm):
    """``load sparse, compute dense``: masks and values become fragments of dense tiles."""

    name = "tensor-cores"
    copies = True
    repeats_other_values = True

    def launches_only(self, on: Adapter, call: ProductCall) -> bool:
        """Return True: :meth:`own_memory` distinguishes launches with the matrix's own values."""
        return True

    def own_memory(self, on: Adapter, call: ProductCall) -> tuple[int, ...]:
        """Return the address of the packed copy of the matrix's own values."""
        assert isinstance(call, SpmmCall)
        values, pattern = on.weights(call.values)[0], self._pattern(on, call.A)
        if pattern is None or values is None:
            return ()
        packed = self._copy_of(on, call.A, pattern, values)
        return () if packed is None else (packed.place["values"],)

    def objection(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return the missing requirement: Hopper, a dtype, or enough entries to pay for masks."""
        capability = on.executor.device.capability
        if capability != (9, 0):
            return f"it is made for compute capability 9.0, and this device has {capability}"
        if facts.dtype not in DTYPES:
            return f"it multiplies {', '.join(DTYPES)}, not {facts.dtype}"
        m, n = A.shape
        masks = -(-m // TILE) * -(-n // TILE) * META
        if masks > MOST_MASKS:
            return f"masks of all {m} x {n} positions would take {masks / 2**30:.0f} GiB"
        if facts.statistics.longest * TILE > MOST_ENTRIES:
            return f"rows of {facts.statistics.longest} entries are too long for it"
        return None

    def reason(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return why it is faster, if measurements show it and no position repeats; or None."""
        reason = tensor_choice.reason(
            facts, on.waves, on.executor.constants.of(TensorCoreConstants), on.rules
        )
        return reason if reason and self._pattern(on, A) is not None else None

    def estimate(self, on: Adapter, A: Csr, facts: Facts) -> Estimate:
        """Return the expected cost of a product."""
        rules = on.executor.constants.of(TensorCoreConstants)
        return Estimate(tensor_choice.with_tensor_cores(facts, rules))

    def prepare(self, on: Adapter, A: Csr, facts: Facts) -> TilePattern:
        """Return the pattern in tiles, the same for all dtypes and numbers of columns.

        Raises
        ------
        Unsuited
            If the matrix stores a position twice.
        """
        pattern = self._pattern(on, A)
        if pattern is None:
            raise Unsuited(
                "the matrix stores a position twice; A.sum_duplicates() adds such entries up"
            )
        return pattern

    def _pattern(self, on: Adapter, A: Csr) -> TilePattern | None:
        return A._pattern.get(
            _TILES, lambda: tile_pattern(on.executor.xp, A.indptr, A.indices, A.shape[1])
        )

    def run(self, on: Adapter, state: TilePattern, call: SpmmCall) -> None:
        """Repack B, multiply, and sum tiles that were cut; three launches per block."""
        pattern = state
        A, values, B, C = call.A, call.values, call.B, call.C
        alpha, beta = call.alpha, call.beta
        device, dtype, (m, n) = on.executor.device, C.dtype, A.shape
        batch, _, k = C.shape
        of_B, of_C = on.operand(B), on.operand(C)
        values, step = on.weights(values)
        cut = tiling(pattern, k, dtype.name, device.multiprocessors, device.shared_bytes)
        width, groups = cut.shape
        packed = self._copy_of(on, A, pattern, values)
        of_values = places_of_values(m, pattern, dtype)
        steps = pattern.steps
        windows = -(-steps // kernels.window_steps(width))
        strips = cut.panels * windows * (width // kernels.STRIP)
        places = AlignedMemory(
            verdict=4,
            dense=cut.panels * steps * kernels.dense_bytes(dtype.name, width),
            bad_dense=4 * strips,
            partial=2 * cut.shares * groups * TILE * width * 4,
            packed=0 if packed else of_values.nbytes,
        )
        place = places.at(on.scratch(places.nbytes))
        of_A = packed.place if packed else of_values.at(place["packed"])
        bad_rows = pattern.blocks * kernels.PIECES if dtype.name == "float32" else 0
        item, tile = dtype.itemsize, {"N": width, "W": groups}
        for b in range(batch):
            here = on.address(values) + b * step * item
            dense = of_B.address + b * of_B.blocks * item
            out = of_C.address + b * of_C.blocks * item
            if packed is None and (b == 0 or step):
                pack_values(on, A, pattern, here, dtype, of_A)
            launch_kernel(
                on,
                kernels.pack_dense(width),
                strips,
                (n, k, steps, dense, of_B.rows, place["dense"], place["bad_dense"]),
                dtype,
                N=width,
            )
            launch_kernel(
                on,
                kernels.product(groups),
                cut.shares,
                (
                    m, k, pattern.blocks, steps, cut.panels, cut.stages, cut.value_bytes,
                    pattern.masks, pattern.starts, of_A["values"], of_A["exponents"],
                    place["dense"], of_A["bad"], bad_rows, place["bad_dense"], strips,
                    place["verdict"], out, of_C.rows, alpha, beta, place["partial"],
                ),
                dtype,
                np.int32,
                True,
                shared=cut.shared,
                **tile,
            )  # fmt: skip
            launch_kernel(
                on,
                kernels.join,
                launch.row_blocks(m * -(-k // kernels.JOIN_COLUMNS) * on.wave, kernels.join.block),
                (
                    m, k, pattern.blocks, steps, cut.panels, cut.shares, of_A["exponents"],
                    place["verdict"], A.indptr, A.indices, here, dense, of_B.rows, out, of_C.rows,
                    alpha, beta, place["partial"],
                ),
                dtype,
                A.indices.dtype,
                True,
                **tile,
            )  # fmt: skip

    def _copy_of(
        self, on: Adapter, A: Csr, pattern: TilePattern, values: Array
    ) -> PackedCopy | None:
        """Return the packed copy if the values are the matrix's own; otherwise None."""
        if values.dtype != A.dtype or on.address(values) != on.address(A.data):
            return None
        if values.shape[0] > 1 and values.strides[0]:
            return None
        return A._copies.get(_PACKED, lambda: PackedCopy(on, A, pattern))
