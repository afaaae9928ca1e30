"""Published algorithms for sampled products on GPUs.

:class:`Entry` is the plainest one; :class:`SmL2` comes with the sizes of tiles that its search
tries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from wollemi.backends.gpu.products import declarations as ml
from wollemi.backends.gpu.products.algorithm import GpuAlgorithm
from wollemi.backends.gpu.products.dots import itemsize
from wollemi.backends.gpu.products.sddmm_flat import planned_rows, rows_of
from wollemi.backends.unified.wrappers import SimtKernel
from wollemi.core.algorithm import Facts
from wollemi.core.calls import SddmmCall
from wollemi.core.executor import Array

from . import TEXTS

if TYPE_CHECKING:
    from types import ModuleType

    from wollemi.backends.gpu.products.adapter import Adapter
    from wollemi.core.formats.csr import Csr

_SAMPLES = (
    "indices: in I[z], values: in T[z], values_step: i64, C: in T[l], C_ld: i64, C_step: i64, "
    "B: in T[l], B_ld: i64, B_step: i64, sampled: inout T[z], sampled_step: i64, alpha: T, beta: T"
)

entry_sddmm = SimtKernel(
    "entry_sddmm",
    str(TEXTS / "sddmm_entry.hpp"),
    f"nnz: i64, k: i64, batch: i64, rows: in I[z], {_SAMPLES}",
    "{E}, {T}, {I}",
    variants=(),
)
sm_l2_sddmm = SimtKernel(
    "sm_l2_sddmm",
    str(TEXTS / "sddmm_sm_l2.hpp"),
    "tiles: i64, k: i64, batch: i64, first_entry: in I[l], first_row: in I[l], rows: in I[l], "
    f"local: in i32[z], order: in I[z], {_SAMPLES}",
    "{L}, {E}, {SLICE}, {T}, {I}",
    variants=(),
)

#: Entries of a tile of ``sddmm_sm_l2.hpp`` at most, and bytes of all its slices of rows.
ENTRIES, KEPT = 1024, 1 << 15
#: Lanes of an entry there.
LANES = 8
#: Bytes of rows of ``B`` that a panel has: half of the second-level cache of an H200.
PANEL_BYTES = 30 << 20


class Entry(GpuAlgorithm):
    """One work-item for an entry."""

    name: ClassVar[str] = "entry"
    copies: ClassVar[bool] = True
    by_rule: ClassVar[bool] = False
    repeats: ClassVar[bool] = True

    def reason(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return None: it is there to be measured against."""
        return None

    def prepare(self, on: Adapter, A: Csr, facts: Facts) -> Array:
        """Return the row of every entry."""
        return planned_rows(on, A)

    def run(self, on: Adapter, state: Array, call: SddmmCall) -> None:
        """Give every entry a work-item."""
        A, C = call.A, call.C
        batch, _, k = C.shape
        each, operands = sampled_operands(on, call)
        on.launch(
            entry_sddmm,
            A.nnz * batch,
            (A.nnz, k, batch, state, A.indices, *operands, *call.factors),
            C.dtype,
            A.indices.dtype,
            E=each,
        )


class Tiles(NamedTuple):
    """Entries by panels of columns and tiles of rows; see ``sddmm_sm_l2.hpp``."""

    many: int
    first_entry: Array
    first_row: Array
    rows: Array
    local: Array
    order: Array


class SmL2(GpuAlgorithm):
    """Tiles that keep their active rows on the chip (Nisa et al. 2018), slices of 256 bytes."""

    name: ClassVar[str] = "sm-l2"
    copies: ClassVar[bool] = True
    source: ClassVar[str] = "Nisa et al. (2018)"
    by_rule: ClassVar[bool] = False
    repeats: ClassVar[bool] = True
    #: Bytes of a row that a tile keeps at a time: 64 columns of float32.
    slice_bytes: ClassVar[int] = 256

    def reason(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return None: it is there to be measured against."""
        return None

    def prepare(self, on: Adapter, A: Csr, facts: Facts) -> Tiles:
        """Return the tiles."""
        each = max(facts.columns, 1) * itemsize(facts.dtype)
        width = max(PANEL_BYTES // each, 1)
        return make_tiles(on.executor.xp, A, width, KEPT // self.slice_bytes)

    def run(self, on: Adapter, state: Tiles, call: SddmmCall) -> None:
        """Give every tile a block."""
        A, C = call.A, call.C
        batch, _, k = C.shape
        each, operands = sampled_operands(on, call)
        on.launch(
            sm_l2_sddmm,
            state.many * batch * sm_l2_sddmm.block,
            (
                state.many, k, batch, state.first_entry, state.first_row, state.rows, state.local,
                state.order, A.indices, *operands, *call.factors,
            ),
            C.dtype,
            A.indices.dtype,
            L=LANES,
            E=each,
            SLICE=self.slice_bytes,
        )  # fmt: skip


class SmL2Slice32(SmL2):
    """SM-L2 with tiles of 128-byte slices, 32 columns of float32, of 256 rows."""

    name: ClassVar[str] = "sm-l2-32"
    slice_bytes: ClassVar[int] = 128


class SmL2Slice128(SmL2):
    """SM-L2 with tiles of 512-byte slices, 128 columns of float32, of 64 rows."""

    name: ClassVar[str] = "sm-l2-128"
    slice_bytes: ClassVar[int] = 512


class SmL2Slice256(SmL2):
    """SM-L2 with tiles of 1024-byte slices, 256 columns of float32, of 32 rows."""

    name: ClassVar[str] = "sm-l2-256"
    slice_bytes: ClassVar[int] = 1024


#: In the order in which the table lists them.
ALGORITHMS = (Entry(), SmL2(), SmL2Slice32(), SmL2Slice128(), SmL2Slice256())


def sampled_operands(on: Adapter, call: SddmmCall) -> tuple[int, tuple[Any, ...]]:
    """Return the elements of a vector, and operands as kernels take them."""
    C, S = call.C, call.S
    index, item = call.A.indices.dtype, C.dtype.itemsize
    of_C, of_B = on.read(C, index), on.read(call.B, index)
    weights, step = on.weights(call.values)
    each = ml.elements(item, (int(C.shape[2]),), of_B.places(item) + of_C.places(item))
    distance = int(S.strides[0] // item) if S.shape[0] > 1 else 0
    return each, (weights, step, *of_C, *of_B, S, distance)


def make_tiles(xp: ModuleType, A: Csr, width: int, most_rows: int) -> Tiles:
    """Return tiles of entries, panels of ``width`` columns one after the other.

    Within a panel a tile ends after :data:`ENTRIES` entries and after ``most_rows`` rows, counted
    from the beginning of the panel.

    Parameters
    ----------
    xp : module
        NumPy, or a module with its functions for the arrays of a device.
    A : Csr
        The pattern.
    width : int
        Columns of a panel.
    most_rows : int
        Rows of a tile.
    """
    kind, nnz = A.indices.dtype, A.nnz
    rows = rows_of(xp, A.indptr, nnz)
    panel = A.indices.astype(np.int64) // width
    order = xp.argsort(panel * A.shape[0] + rows, kind="stable")
    rows, panel = rows[order], panel[order]
    place = xp.arange(nnz)

    def begins(*keys: Array) -> Array:
        """Return whether an entry differs from the one before it in any key."""
        new = xp.zeros(nnz, bool)
        new[:1] = True
        for key in keys:
            new[1:] |= key[1:] != key[:-1]
        return new

    def since(new: Array, counted: Array) -> Array:
        """Return ``counted`` from the last index where ``new``."""
        return counted - counted[xp.flatnonzero(new)][xp.cumsum(new) - 1]

    of_panel = begins(panel)
    of_row = begins(panel, rows)
    number = xp.cumsum(of_row)
    of_tile = begins(panel, since(of_panel, place) // ENTRIES, since(of_panel, number) // most_rows)
    # A row that a tile ends in is a row of the next tile too.
    active = of_row | of_tile
    line = xp.cumsum(active) - 1
    first_entry = xp.flatnonzero(of_tile)
    first_row = line[first_entry]
    local = line - first_row[xp.cumsum(of_tile) - 1]
    end = xp.zeros(1, np.int64) + nnz
    lines = xp.zeros(1, np.int64) + int(active.sum())
    return Tiles(
        int(first_entry.size),
        xp.concatenate([first_entry, end]).astype(kind),
        xp.concatenate([first_row, lines]).astype(kind),
        rows[active].astype(kind),
        local.astype(np.int32),
        order.astype(kind),
    )
