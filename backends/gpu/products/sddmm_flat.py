"""Sampled products split by entries instead of rows, for short rows or one long row."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ....core.algorithm import Facts
from ....core.calls import SddmmCall
from ....core.executor import Array
from ...unified.wrappers import SimtKernel
from . import choice as product_choice
from . import declarations as ml
from .algorithm import GpuAlgorithm
from .dots import dot_constants, itemsize

if TYPE_CHECKING:
    from types import ModuleType

    from ....core.formats.csr import Csr
    from .adapter import Adapter

flat_sddmm = SimtKernel(
    "flat_sddmm",
    "simt/sddmm_flat.hpp",
    "nnz: i64, k: i64, batch: i64, rows: in I[z], indices: in I[z], values: in T[z], "
    "values_step: i64, C: in T[l], C_ld: i64, C_step: i64, B: in T[l], B_ld: i64, B_step: i64, "
    "sampled: inout T[z], sampled_step: i64, alpha: T, beta: T",
    ml.csr_sddmm.template,
    block=64,
    variants=(),
    resident=16,
)


def rows_of(xp: ModuleType, indptr: Array, nnz: int) -> Array:
    """Return the row of every entry, int64."""
    return xp.searchsorted(indptr[1:], xp.arange(nnz, dtype=indptr.dtype), side="right")


def narrow_rows_of(xp: ModuleType, indptr: Array, nnz: int) -> Array:
    """Return the row of every entry, in the dtype of indices."""
    return rows_of(xp, indptr, nnz).astype(indptr.dtype)


def planned_rows(on: Adapter, A: Csr) -> Array:
    """Return the row of every entry of a matrix."""
    size = max(A.nnz, A.shape[0])
    result: Array = on.executor.planned(size, narrow_rows_of, A.indptr, nnz=A.nnz)
    return result


class Flat(GpuAlgorithm):
    """Each wave has one entry per lane; the entries may belong to several rows."""

    name: ClassVar[str] = "flat"
    copies: ClassVar[bool] = True
    repeats: ClassVar[bool] = True

    def reason(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return why to split by entries, or None."""
        s = facts.statistics
        nbytes = facts.columns * itemsize(facts.dtype)
        if nbytes > on.rules.flat_bytes:
            return None
        if product_choice.choose("sddmm", s, on.waves, rules=on.rules).kernel != "row-split":
            return f"the longest row has {s.longest} entries: waves have entries, not rows"
        if nbytes <= on.rules.flat_few_bytes and s.mean < on.rules.flat_short:
            return f"rows have {s.mean:.1f} entries on average: waves have entries, not rows"
        return None

    def prepare(self, on: Adapter, A: Csr, facts: Facts) -> Array:
        """Return the row of every entry."""
        return planned_rows(on, A)

    def run(self, on: Adapter, state: Array, call: SddmmCall) -> None:
        """Assign an equal share of entries to every wave."""
        A, C, S = call.A, call.C, call.S
        batch, _, k = C.shape
        index = A.indices.dtype
        of_C, of_B = on.read(C, index), on.read(call.B, index)
        weights, step = on.weights(call.values)
        distance = int(S.strides[0] // C.dtype.itemsize) if batch > 1 else 0
        constants = dot_constants(C.dtype, k, batch, of_C, of_B)
        on.launch(
            flat_sddmm,
            -(-A.nnz // on.wave) * batch * on.wave,
            (
                A.nnz, k, batch, state, A.indices, weights, step, *of_C, *of_B, S, distance,
                *call.factors,
            ),
            C.dtype,
            index,
            **{**constants, "A": max(1, constants["A"] // 2)},
        )  # fmt: skip
