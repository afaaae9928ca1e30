"""Kernels that assign a row, or a piece of a long row, to each wave, for all products.

``row-split`` is the algorithm of Zubair and Bauinger (2023) with one wave per row, and
``row-segments`` cuts its long rows. If no other algorithm suits, the rule selects one of these two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ....core.algorithm import Facts
from ....core.calls import FusedmmCall, SddmmCall, SpmmCall, TracedCall
from ....core.edge_functions.program import program_of
from ...unified.wrappers import SimtKernel
from . import choice as product_choice
from . import declarations as ml
from .adapter import Adapter
from .algorithm import RowAlgorithm
from .dots import FusedLanes, dot_constants, dot_kernel
from .gradients import FusedAlgorithm
from .spmm_kernels import by_rows

if TYPE_CHECKING:
    from ....core.formats.csr import Csr


class _Rows(RowAlgorithm):
    """Waves get rows or pieces of rows."""

    def piece(self, on: Adapter, facts: Facts) -> int:
        """Return the number of entries per piece; 0 if rows are whole."""
        return 0

    def prepare(self, on: Adapter, A: Csr, facts: Facts) -> product_choice.Pieces:
        """Return the rows, or cut them."""
        return on.pieces(A, self.piece(on, facts), sampled=self.product == "sddmm")


class SpmmRowSplit(_Rows):
    """Each wave has a row."""

    name: ClassVar[str] = "row-split"
    source: ClassVar[str] = "Zubair and Bauinger (2023)"
    product: ClassVar[str] = "spmm"

    def run(self, on: Adapter, state: product_choice.Pieces, call: SpmmCall) -> None:
        """Multiply, then sum the pieces of cut rows."""
        by_rows(on, state, call)


class SpmmRowSegments(SpmmRowSplit):
    """Each wave has a row, or a segment of a long row; segments are summed afterwards."""

    name: ClassVar[str] = "row-segments"
    source: ClassVar[str] = ""

    def piece(self, on: Adapter, facts: Facts) -> int:
        """Return the number of entries per segment."""
        return product_choice.summed_piece(facts.statistics, facts.columns, on.rules)


class SddmmRowSplit(_Rows):
    """Each wave has a row; a few of its lanes compute the dot product of an entry."""

    name: ClassVar[str] = "row-split"
    source: ClassVar[str] = "Zubair and Bauinger (2023)"
    product: ClassVar[str] = "sddmm"

    def run(self, on: Adapter, state: product_choice.Pieces, call: SddmmCall) -> None:
        """Assign some entries of a row to each wave."""
        A, C, S = call.A, call.C, call.S
        batch, _, k = C.shape
        index, dtype = A.indices.dtype, C.dtype
        of_C, of_B = on.read(C, index), on.read(call.B, index)
        weights, step = on.weights(call.values)
        constants = dot_constants(dtype, k, batch, of_C, of_B)
        on.launch(
            dot_kernel(ml.csr_sddmm, dtype, constants["WHOLE"]),
            state.items * batch * on.wave,
            (
                state.items, k, batch, state.bounds, state.target, A.indices, weights, step, *of_C,
                *of_B, S, int(S.strides[0] // dtype.itemsize) if batch > 1 else 0,
                *call.factors,
            ),
            dtype,
            index,
            **constants,
        )  # fmt: skip


class SddmmRowSegments(SddmmRowSplit):
    """Each wave has a row or a segment of one; a few lanes compute an entry's dot product."""

    name: ClassVar[str] = "row-segments"
    source: ClassVar[str] = ""

    def piece(self, on: Adapter, facts: Facts) -> int:
        """Return the number of entries per segment."""
        return on.rules.sampled_piece


class FusedmmRowSplit(_Rows, FusedAlgorithm):
    """Each wave has a row; samples stay in registers."""

    name: ClassVar[str] = "row-split"
    source: ClassVar[str] = "Rahman et al. (2021)"
    product: ClassVar[str] = "fusedmm"

    def has_rows(self, state: product_choice.Pieces) -> bool:
        """Return whether no row was cut."""
        return not state.lines

    def run(self, on: Adapter, state: product_choice.Pieces, call: FusedmmCall) -> None:
        """Assign rows or pieces to waves; if D is B, its rows are loaded only once."""
        self._launch(on, state, call, call.edge, ml.csr_fusedmm, ())

    def run_traced(self, on: Adapter, state: product_choice.Pieces, call: TracedCall) -> None:
        """Do the same with a user-defined function, before a softmax or alone."""
        kernel = ml.with_function(ml.csr_fusedmm_traced, call.function)
        inputs = sum((on.operand(given) for given in call.inputs), ())
        self._launch(on, state, call, program_of(call.function).final, kernel, inputs)

    def _launch(
        self,
        on: Adapter,
        state: product_choice.Pieces,
        call: FusedmmCall | TracedCall,
        edge: str,
        kernel: SimtKernel,
        inputs: tuple[Any, ...],
    ) -> None:
        A, C, D, E, alpha = call.A, call.C, call.D, call.E, call.alpha
        batch, _, p = E.shape
        k = int(C.shape[2])
        index, dtype = A.indices.dtype, C.dtype
        of_C, of_B, of_D = (on.read(array, index) for array in (C, call.B, D))
        of_E, logs = on.operand(E), on.of_rows(call.log_totals)
        weights, step = on.weights(call.values)
        dense = (of_C, of_B, of_D, of_E)
        shape = FusedLanes.of(dtype, k, p, same=of_B == of_D and k == p, dense=dense)
        tiles, constants = shape.of_product(batch, k, p, edge, of_C, of_B, of_D)
        partial = on.lines(batch * state.lines * (p + 2), dtype)
        on.launch(
            dot_kernel(kernel, dtype, constants["WHOLE"]),
            state.items * tiles * batch * on.wave,
            (
                state.items, k, p, batch, state.bounds, state.target, A.indices, weights, step,
                *of_C, *of_B, *of_D, *inputs, *of_E, *logs, alpha, state.lines, partial,
            ),
            dtype,
            index,
            **constants,
        )  # fmt: skip
        if state.lines:
            assert state.cut_rows is not None
            cuts = int(state.cut_rows.size)
            on.launch(
                ml.fusedmm_join,
                cuts * max(p, 1) * batch,
                (
                    cuts, p, batch, state.cut_rows, state.first_line, state.lines, partial, *of_E,
                    *logs,
                ),
                dtype,
                index,
                EDGE=constants["EDGE"],
            )  # fmt: skip


class FusedmmRowSegments(FusedmmRowSplit):
    """Each wave has a row, or a segment of a long row; samples stay in registers."""

    name: ClassVar[str] = "row-segments"
    source: ClassVar[str] = ""

    def piece(self, on: Adapter, facts: Facts) -> int:
        """Return the number of entries per segment."""
        return on.rules.summed_piece
