"""Attention with additive scores, and its gradients, in one pass over the rows each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....core.algorithm import facts_of
from ....core.executor import Array
from ....core.operations import attention as operations
from ...unified.wrappers import SimtKernel
from ..base import GpuExecutor
from ..table import kernel
from . import declarations as ml
from .choice import of_waves, summed_piece
from .csr import CupyAdapter
from .rowwise import shape_of

if TYPE_CHECKING:
    from ....core.formats.csr import Csr


def launch(
    on: CupyAdapter,
    kernel: SimtKernel,
    join: SimtKernel,
    A: Csr,
    heads: int,
    inputs: tuple[Array, ...],
    outputs: tuple[Array | None, ...],
    slope: float,
    numbers: int,
    **constants: int,
) -> None:
    """Launch a kernel that processes the entries of each row for several heads at a time.

    Parameters
    ----------
    on : CupyAdapter
        The adapter of the device.
    kernel, join : SimtKernel
        The kernels over rows and row segments, and the kernel that sums the segments.
    A : Csr
        The pattern of the pass.
    heads : int
        Number of heads.
    given, made : tuple of array, shape (b, m or n, w or h), or None
        The operands and results, in the kernel's order. Rows with the most columns are loaded and
        stored as vectors.
    slope : float
        Slope of the leaky ReLU for negative scores.
    numbers : int
        Numbers per head that a piece stores, besides two sums.
    **constants
        Additional constants of both kernels.
    """
    facts = facts_of(A, int(inputs[2].shape[2]), inputs[2].dtype)
    batch, _, k = inputs[2].shape
    dtype, index = inputs[2].dtype, A.indices.dtype
    piece = summed_piece(facts.statistics, int(k), on.rules)
    choice = of_waves(facts.statistics, on.waves, piece, rules=on.rules)
    state = on.pieces(A, choice.piece, sampled=False)
    wide = [on.operand(x) for x in (*inputs, *outputs) if x is not None and x.shape[2] == k]
    places = sum((place.places(dtype.itemsize) for place in wide), ())
    each = ml.elements(dtype.itemsize, (int(k) // heads,), places)
    lanes, vectors = shape_of(int(k) // each)
    covered = lanes * vectors * each
    partial = on.lines(batch * state.lines * (2 * int(k) + numbers * heads), dtype)
    results = sum((on.operand(x) for x in outputs), ())
    sizes = (k, int(k) // heads, batch)
    on.launch(
        kernel,
        state.items * batch * -(-int(k) // covered) * on.wave,
        (
            state.items, *sizes, state.bounds, state.target, A.indices,
            *sum((on.operand(x) for x in inputs), ()), *results, slope, state.lines, partial,
        ),
        dtype,
        index,
        L=lanes,
        V=vectors,
        E=each,
        WHOLE=int(k % covered == 0),
        **constants,
    )  # fmt: skip
    if state.lines:
        assert state.cut_rows is not None
        cuts = int(state.cut_rows.size)
        of_cuts = (cuts, *sizes, state.cut_rows, state.first_line, state.lines, partial, *results)
        on.launch(join, cuts * int(k) * batch, of_cuts, dtype, index, **constants)


@kernel(operations.csr_additive_attention)
def csr_additive_attention(
    executor: GpuExecutor,
    A: Csr,
    target: Array,
    source: Array,
    D: Array,
    E: Array,
    positive: Array | None,
    log_totals: Array | None,
    shares: Array | None,
    slope: float,
) -> None:
    """Assign rows to waves, with all heads of a row at once."""
    if not E.size:
        return
    made = (E, positive, log_totals, shares)
    launch(
        CupyAdapter(executor), ml.csr_additive_attention, ml.additive_attention_join, A,
        target.shape[2], (target, source, D), made, slope, 3, GRADIENTS=int(positive is not None),
    )  # fmt: skip


@kernel(operations.csr_additive_attention_backward)
def csr_additive_attention_backward(
    executor: GpuExecutor,
    A: Csr,
    target: Array,
    source: Array,
    D: Array,
    G: Array,
    log_totals: Array,
    means: Array,
    of_source: Array,
    of_D: Array,
    slope: float,
) -> None:
    """Process the columns as rows of the transpose, then sum over the columns of heads."""
    if not D.size:
        return
    on = CupyAdapter(executor)
    transposed, _ = A.transposed_pattern()
    steep = executor.allocate(D.shape, D.dtype)
    given, made = (target, source, G, log_totals, means), (of_D, steep, of_source)
    heads = target.shape[2]
    launch(
        on, ml.additive_columns, ml.additive_columns_join, transposed, heads, given, made, slope, 1
    )
    batch, n, k = D.shape
    operands = (*on.operand(D), *on.operand(steep), *on.operand(of_source))
    on.launch(
        ml.additive_join, batch * n * heads, (n, heads, k // heads, batch, *operands), D.dtype,
        A.indices.dtype,
    )  # fmt: skip
