"""Decide when attention by slabs is faster than by rows or by tiles."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from ....core.algorithm import Facts, Unsuited
from ....core.calls import GradientCall
from ....core.statistics import RowStatistics
from ....core.store import Key
from ...gpu.products import choice as product_choice
from ...gpu.products.adapter import Adapter
from . import row_times, tile_shapes
from .constants import ATTENTION, SLAB_ATTENTION, AttentionRules, SlabAttentionConstants
from .row_times import MANY
from .slab_attention import WARPS, AttentionCall, SlabAttention, SlabState, height_of, width_of
from .slab_lists import BATCH, PANEL
from .tile_attention import TilesOrRows
from .tile_pattern import COLUMNS, ROWS, filled

if TYPE_CHECKING:
    from ....core.formats.csr import Csr
    from ..runtime.device import CudaDevice

#: Numbers of columns must be multiples of this for copies of 16 bytes.
OF_VECTOR = 8
#: Bytes of memory per entry while lists are made.
BYTES_TO_PLAN = 100


class SlabSizes(NamedTuple):
    """The sizes of a product or its gradients, and of the device.

    Attributes
    ----------
    m, n, entries, batch, k, p : int
        Sizes and entries of the pattern, heads, and columns of ``C`` and ``D``.
    shared, multiprocessors : int
        Of the device: shared memory of a block in bytes, and number of simultaneous blocks.
    rules : AttentionRules
        The rules of the device.
    """

    m: int
    n: int
    entries: int
    batch: int
    k: int
    p: int
    shared: int
    multiprocessors: int
    rules: AttentionRules = ATTENTION

    @property
    def of_rows(self) -> row_times.RowSizes:
        """The sizes that do not depend on a device."""
        return row_times.RowSizes(self.m, self.n, self.entries, self.batch, self.k, self.p)

    @property
    def turned(self) -> SlabSizes:
        """The sizes for the transposed pattern."""
        return self._replace(m=self.n, n=self.m)

    def of_kernel(self, rates: dict[int, tuple[float, float]]) -> float:
        """Return the estimated time of a kernel in microseconds."""
        width, rules = width_of(self.k, self.p), self.rules.slabs
        height, (slab, batch) = height_of(self.shared, width), rates[width]
        rounds = ceil(ceil(self.m / (2 * PANEL * WARPS)) * self.batch / self.multiprocessors)
        slabs = ceil(self.n / height)
        # On average, half of a list's last batch is filled; a warp has two lists per slab.
        batches = 2 * max(self.entries * PANEL / self.m / slabs / BATCH + 0.5, 1.0)
        part = height / height_of(rules.measured_bytes, width)
        of_slab = max(rules.copied[width] * part, slab * part + batch * batches)
        return rules.launch + rounds * (rules.round + slabs * of_slab)

    def by_slabs(self, *, gradients: bool) -> float:
        """Return the estimated time of slabs in microseconds."""
        if gradients:
            rules = self.rules.slabs
            return self.of_kernel(rules.by_rows) + self.turned.of_kernel(rules.by_columns)
        return self.of_kernel(self.rules.slabs.forward)

    def by_rows(self, *, gradients: bool, same: bool = False) -> float:
        """Return the estimated time of the row kernels in microseconds."""
        return row_times.time_of(self.of_rows, self.rules.rows, gradients=gradients, same=same)

    def by_tiles(self, device: CudaDevice, tiles: int, *, gradients: bool) -> float:
        """Return the estimated time of ``tiles`` dense tiles per head in microseconds."""
        shapes = tile_shapes.shapes_for(device, self.rules.tiles)
        most = min(ceil(self.n / COLUMNS), tiles)
        return tile_shapes.time_of(shapes, tiles, most, self.of_rows, gradients=gradients)


_EVEN: Key[bool] = Key("whether columns are even for slabs")


class SlabsOrRows(SlabAttention):
    """Slabs if a batch has enough heads for them to be faster, else tiles or rows."""

    name: ClassVar[str] = "slabs-or-rows"
    by_rule: ClassVar[bool] = True

    def reason(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return why slabs are faster on a full device, or None."""
        device = on.executor.device
        rules: SlabAttentionConstants = on.executor.constants.of(SlabAttentionConstants)
        if A.nnz == 0 or device.shared_bytes < rules.least_bytes:
            return None
        if not is_even(facts.statistics, rules):
            return None
        if not are_wide(facts.columns, rules=rules) or not are_many(A, rules):
            return None
        if A.nnz * BYTES_TO_PLAN > on.executor.free_memory():
            return None
        full = sizes_of(on, A, MANY, facts.columns, facts.columns)
        rows = [
            full.by_slabs(gradients=g) < rules.margin * full.by_rows(gradients=g)
            for g in (False, True)
        ]
        if not any(rows):
            return None
        tiles = tiles_of(on, A)
        if not any(
            ok and full.by_slabs(gradients=g) < full.by_tiles(device, tiles, gradients=g)
            for g, ok in zip((False, True), rows, strict=True)
        ):
            return None
        return f"rows have {facts.statistics.mean:.0f} entries on average, all over the columns"

    def prepare(self, on: Adapter, A: Csr, facts: Facts) -> SlabState:
        """Return the state of the fallback: tiles or rows, or rows alone."""
        tiles = TilesOrRows()
        rest = product_choice.choose("fusedmm", facts.statistics, on.waves, rules=on.rules).kernel
        if tiles.objection(on, A, facts) is None and tiles.reason(on, A, facts) is not None:
            try:
                tiles.prepare(on, A, facts)
                rest = tiles.name
            except Unsuited:
                pass
        return SlabState(rest, tiles_of(on, A))

    def pays(self, on: Adapter, state: SlabState, call: AttentionCall) -> bool:
        """Return whether slabs are expected to be faster for a batch."""
        A, C, B, D = call.A, call.C, call.B, call.D
        gradients = isinstance(call, GradientCall)
        (batch, _, k), p = C.shape, D.shape[2]
        rules: SlabAttentionConstants = on.executor.constants.of(SlabAttentionConstants)
        if not are_wide(k, p, rules=rules) or (gradients and not _columns_are_even(A, rules)):
            return False
        sizes = sizes_of(on, A, batch, k, p)
        same = B.shape == D.shape and on.operand(B) == on.operand(D)
        others = sizes.by_rows(gradients=gradients, same=same)
        if state.other_algorithm == TilesOrRows.name:
            others = min(
                others, sizes.by_tiles(on.executor.device, state.tiles, gradients=gradients)
            )
        return sizes.by_slabs(gradients=gradients) < rules.margin * others


def is_even(statistics: RowStatistics, rules: SlabAttentionConstants = SLAB_ATTENTION) -> bool:
    """Return whether no row is long enough for others to wait for it."""
    return statistics.longest <= rules.even * statistics.mean


def are_wide(*columns: int, rules: SlabAttentionConstants = SLAB_ATTENTION) -> bool:
    """Return whether operands have enough columns, and whole vectors of them."""
    return all(count >= rules.least_columns and count % OF_VECTOR == 0 for count in columns)


def are_many(A: Csr, rules: SlabAttentionConstants = SLAB_ATTENTION) -> bool:
    """Return whether rows and columns have enough entries on average."""
    return bool(A.nnz >= rules.least_mean * max(A.shape))


def _columns_are_even(A: Csr, rules: SlabAttentionConstants) -> bool:
    def even() -> bool:
        transposed, _ = A.transposed_pattern()
        return is_even(transposed.row_statistics, rules)

    return A._pattern.get(_EVEN, even)


def sizes_of(on: Adapter, A: Csr, batch: int, k: int, p: int) -> SlabSizes:
    """Return the sizes of a product with a pattern."""
    device = on.executor.device
    m, n = A.shape
    rules = AttentionRules.of(on.executor.constants)
    return SlabSizes(m, n, A.nnz, batch, k, p, device.shared_bytes, device.multiprocessors, rules)


def tiles_of(on: Adapter, A: Csr) -> int:
    """Return the number of dense tiles of a pattern, estimated from a sample of row panels."""
    part = filled(on.executor.xp, A, on.executor.to_host)
    return ceil(A.nnz / (max(part, 1e-9) * ROWS * COLUMNS))
