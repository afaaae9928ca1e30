"""Sampled products of patterns whose rows are short: entries are dealt to waves, not rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ...core.executor import Array
from ..unified.wrappers import SimtKernel
from . import ml
from .dots import dot_constants
from .ml_extra import Algorithm, Facts

if TYPE_CHECKING:
    from .ml_calls import Adapter

flat_sddmm = SimtKernel(
    "flat_sddmm",
    "sddmm_flat.hpp",
    "nnz: i64, k: i64, batch: i64, rows: in I[z], indices: in I[z], values: in T[z], "
    "values_step: i64, C: in T[l], C_ld: i64, C_step: i64, B: in T[l], B_ld: i64, B_step: i64, "
    "sampled: inout T[z], sampled_step: i64, alpha: T, beta: T",
    ml.csr_sddmm.template,
    block=64,
    variants=(),
    resident=16,
)

#: Entries of a row that has any, on average, below which rows of ``C`` are loaded for each of them.
SHORT = 4


def rows_of(xp: Any, indptr: Array, nnz: int) -> Array:
    """Return the row of every entry, int64."""
    return xp.searchsorted(indptr[1:], xp.arange(nnz, dtype=indptr.dtype), side="right")


class Flat(Algorithm):
    """A wave has as many entries as it has lanes, of whatever rows."""

    name: ClassVar[str] = "flat"

    def objection(self, to: Adapter, A: Any, facts: Facts) -> str | None:
        """Return None: it runs everywhere."""
        return None

    def reason(self, to: Adapter, A: Any, facts: Facts) -> str | None:
        """Return why entries should be dealt, or None."""
        s = facts.statistics
        mean = s.nnz / max(s.rows * (1.0 - s.empty), 1.0)
        if mean >= SHORT:
            return None
        return f"rows that have entries have {mean:.1f} on average: waves have entries, not rows"

    def plan(self, to: Adapter, A: Any, facts: Facts) -> Array:
        """Return the row of every entry."""
        return rows_of(to.executor.xp, A.indptr, A.nnz).astype(A.indices.dtype)

    def run(self, to: Adapter, A: Any, state: Array, *arguments: Any) -> None:
        """Give every wave its share of entries."""
        values, C, B, S, alpha, beta = arguments
        batch, _, k = C.shape
        index = A.indices.dtype
        C, of_C = to.read(C, index)
        B, of_B = to.read(B, index)
        weights, step = to.weights(values)
        distance = int(S.strides[0] // C.dtype.itemsize) if batch > 1 else 0
        constants = dot_constants(C.dtype, k, batch, of_C, of_B)
        to.launch(
            flat_sddmm,
            -(-A.nnz // to.wave) * batch * to.wave,
            (
                A.nnz, k, batch, state, A.indices, weights, step, *of_C, *of_B, S, distance,
                alpha, beta,
            ),
            C.dtype,
            index,
            **{**constants, "A": max(1, constants["A"] // 2)},
        )  # fmt: skip
