"""TCA-SpMM, sparse times dense on tensor cores straight from compressed rows: a published baseline.

TCA-SpMM is of Electronics 2024, 13(20), 3981. No rule chooses it; ask for it by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from wollemi.backends.cuda.products.launches import launch_kernel
from wollemi.backends.gpu import launch
from wollemi.backends.gpu.products import choice as product_choice
from wollemi.backends.gpu.products import declarations as ml
from wollemi.backends.gpu.products.adapter import Adapter
from wollemi.backends.gpu.products.algorithm import GpuAlgorithm
from wollemi.backends.unified.wrappers import SimtKernel
from wollemi.core.algorithm import Facts
from wollemi.core.calls import SpmmCall

from . import TEXTS

if TYPE_CHECKING:
    from wollemi.core.formats.csr import Csr

tca_spmm = SimtKernel(
    "tca_spmm",
    str(TEXTS / "tca.hpp"),
    "items: i64, k: i64, batch: i64, bounds: in I[l], target: in I[l], indices: in I[z], "
    "values: in T[z], values_step: i64, B: in T[l], B_ld: i64, B_step: i64, C: inout T[l], "
    "C_ld: i64, C_step: i64, alpha: T, beta: T, lines: i64, partial: out u8[l]",
    "{J}, {E}, {WHOLE}, {T}, {I}",
    variants=(),
)

#: Tiles of 16 columns of a warp at most. For TF32 a lane has half the entries at a time, and
#: registers for twice the bytes.
MOST_TILES = {2: 8, 4: 4}


def tiles_of(columns: int, itemsize: int) -> int:
    """Return how many tiles of 16 columns a warp has of a row.

    Examples
    --------
    >>> tiles_of(10, 2), tiles_of(32, 2), tiles_of(300, 2), tiles_of(300, 4)
    (1, 2, 8, 4)
    """
    tiles = 1
    while 16 * tiles < columns and tiles < MOST_TILES[itemsize]:
        tiles *= 2
    return tiles


class Tca(GpuAlgorithm):
    """TCA-SpMM of numbers of 16 bits, added up in float32."""

    name = "tca"
    source: ClassVar[str] = "TCA-SpMM, Electronics 13 (20), 3981 (2024)"
    by_rule: ClassVar[bool] = False
    repeats: ClassVar[bool] = True
    dtypes: ClassVar[tuple[str, ...]] = ("float16", "bfloat16")
    remedy: ClassVar[str] = "'tca-tf32' rounds float32 to TF32"

    def objection(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return the missing requirement: tensor cores for this dtype."""
        capability = on.executor.device.capability
        if capability < (8, 0):
            return f"it is made for compute capability 8.0 on, and this device has {capability}"
        if facts.dtype not in self.dtypes:
            return f"it multiplies {' and '.join(self.dtypes)}, not {facts.dtype}; {self.remedy}"
        return None

    def reason(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return None: it is there to be measured against."""
        return None

    def prepare(self, on: Adapter, A: Csr, facts: Facts) -> product_choice.Pieces:
        """Return the items of warps: rows, or row segments where some rows are long."""
        choice = product_choice.of_waves(
            facts.statistics, on.waves, on.rules.summed_piece, rules=on.rules
        )
        return on.pieces(A, choice.piece, sampled=False)

    def run(self, on: Adapter, state: product_choice.Pieces, call: SpmmCall) -> None:
        """Give warps rows or pieces of them, and add up the pieces."""
        items = state
        A, values, B, C = call.A, call.values, call.B, call.C
        alpha, beta = call.alpha, call.beta
        batch, _, k = C.shape
        index, dtype = A.indices.dtype, C.dtype
        of_B, of_C = on.read(B, index), on.operand(C)
        weights, step = on.weights(values)
        item = dtype.itemsize
        tiles = tiles_of(k, item)
        vector = min(2 * tiles * item, ml.VECTOR_BYTES)
        places = (k * item, *of_B.places(item), *of_C.places(item))
        each = vector // item if all(place % vector == 0 for place in places) else 1
        width = 16 * tiles
        partial = on.lines(batch * items.lines * k, dtype)
        launch_kernel(
            on,
            tca_spmm,
            launch.row_blocks(items.items * -(-k // width) * batch * on.wave, tca_spmm.block),
            (
                items.items, k, batch, items.bounds, items.target, A.indices, weights, step, *of_B,
                *of_C, alpha, beta, items.lines, partial,
            ),
            dtype,
            index,
            J=tiles,
            E=each,
            WHOLE=int(k % width == 0),
        )  # fmt: skip
        if items.lines:
            assert items.cut_rows is not None
            cuts = int(items.cut_rows.size)
            on.launch(
                ml.spmm_join,
                cuts * k * batch,
                (
                    cuts, k, batch, items.cut_rows, items.first_line, items.lines, partial, *of_C,
                    alpha, beta,
                ),
                dtype,
                index,
            )  # fmt: skip


class TcaTf32(Tca):
    """TCA-SpMM of float32 numbers rounded to TF32: 11 bits of each."""

    name = "tca-tf32"
    dtypes: ClassVar[tuple[str, ...]] = ("float32",)
    remedy: ClassVar[str] = "'tca' multiplies float16 and bfloat16"


#: In the order in which the table lists them.
ALGORITHMS = (Tca(), TcaTf32())
