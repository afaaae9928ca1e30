"""Attention of 16-bit numbers by entries of 8 rows on tensor cores, for patterns without tiles.

Rows of ``B`` and ``D`` are read slab by slab into shared memory, once for each block of rows and
not once for each entry; see ``slab_entries.hpp``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ....core.algorithm import Facts, multiply
from ....core.executor import Array
from ...gpu.products import choice as ml_choice
from ...gpu.products import declarations as ml
from ...gpu.products.adapter import Adapter
from ...gpu.products.gradients import FusedAlgorithm
from ...unified.wrappers import SimtKernel
from . import attention_operands
from .sddmm_tile import launch
from .slab_lists import BATCH, PANEL, Lists, lists_of, transposed_lists_of

_SIZES = "m: i64, n: i64, k: i64, p: i64, shares: i64, slabs: i64"
_LISTS = "starts: in i32[l], entries: in u8[l]"
_OPERANDS = ", ".join(ml.operand(name) for name in "CBD")

slab_attention = SimtKernel(
    "slab_attention",
    "slab_attention.hpp",
    f"{_SIZES}, {_LISTS}, {_OPERANDS}, {ml.operand('out', 'out')}, {ml.log_totals()}, alpha: T",
    "{DIM}, {HEIGHT}, {WHOLE}, {T}",
    block=512,
    variants=(),
    resident=1,
)
slab_row_gradients = SimtKernel(
    "slab_row_gradients",
    "slab_gradients.hpp",
    f"{_SIZES}, padded: i64, {_LISTS}, {_OPERANDS}, {ml.operand('G')}, {ml.operand('out')}, "
    f"{ml.log_totals('in')}, facts: out R[l], {ml.operand('of_C', 'out')}, alpha: T",
    "{DIM}, {HEIGHT}, {WHOLE}, {T}",
    block=512,
    variants=(),
    resident=1,
)
slab_column_gradients = SimtKernel(
    "slab_column_gradients",
    "slab_gradients.hpp",
    f"{_SIZES}, padded: i64, {_LISTS}, {_OPERANDS}, {ml.operand('G')}, facts: in R[l], "
    f"{ml.operand('of_B', 'out')}, {ml.operand('of_D', 'out')}, alpha: T",
    "{DIM}, {HEIGHT}, {WHOLE}, {T}",
    block=512,
    variants=(),
    resident=1,
)

#: Stages of slabs in shared memory, bytes of their barriers and counters, and of the facts of a
#: row. As in ``slab_stages.hpp``.
STAGES, BARRIERS, FACTS = 2, 40, 8
#: Bytes of shared memory of a block from which slabs have enough rows to be worth it.
LEAST_BYTES = 96 << 10
#: Rows that the kernels' threads copy together: heights of slabs are multiples of them.
STEP = 16
#: Warps of a block.
WARPS = 16
#: Columns of dense operands that there are kernels for: more would take more registers.
WIDTHS = (32, 64)
#: Places of a matrix whose entries are told apart in 63 bits.
MOST_PLACES = 2**52


class Made(NamedTuple):
    """A kernel for a device and a width: its constants, bytes of shared memory, rows of a block."""

    kernel: SimtKernel
    constants: dict[str, int]
    shared: int
    rows: int


def width_of(k: int, p: int) -> int:
    """Return the columns that a kernel is made for."""
    return next(width for width in WIDTHS if width >= max(k, p))


@cache
def height_of(shared: int, width: int) -> int:
    """Return the rows of a slab: two stages of two operands and facts fill the shared memory.

    Examples
    --------
    >>> height_of(227 * 1024, 64), height_of(99 * 1024, 64)
    (432, 192)
    """
    return (shared - BARRIERS) // STAGES // (4 * width + FACTS) // STEP * STEP


@cache
def made_for(kernel: SimtKernel, shared: int, width: int, warps: int) -> Made:
    """Return a kernel for rows of dense operands of so many numbers, one of :data:`WIDTHS`.

    Parameters
    ----------
    kernel : SimtKernel
    shared : int
        Bytes that a block may have.
    width : int
        Columns of dense operands.
    warps : int
        Of a block.
    """
    height = height_of(shared, width)
    facts = FACTS if kernel is slab_column_gradients else 0
    made = replace(kernel, block=32 * warps)
    rows = 2 * PANEL * warps
    bytes_of_block = STAGES * height * (4 * width + facts) + BARRIERS
    return Made(made, {"DIM": width, "HEIGHT": height}, bytes_of_block, rows)


def kernel_for(device: Any, kernel: SimtKernel, width: int) -> Made:
    """Return a kernel for a device, and for rows of so many numbers."""
    return made_for(kernel, device.shared_bytes, width, WARPS)


class SlabAttention(FusedAlgorithm):
    """Scores and sums of the entries of 8 rows on tensor cores; slabs pass by in shared memory."""

    name: ClassVar[str] = "slab-mma"
    copies: ClassVar[bool] = True
    by_rule: ClassVar[bool] = False
    repeats: ClassVar[bool] = True

    def objection(self, on: Adapter, A: Any, facts: Facts) -> str | None:
        """Return why slabs do not do here."""
        return obstacle(on, A, facts)

    def reason(self, on: Adapter, A: Any, facts: Facts) -> str | None:
        """Return None: how many blocks there are in a batch decides, see :class:`SlabsOrRows`."""
        return None

    def prepare(self, on: Adapter, A: Any, facts: Facts) -> Any:
        """Return what does the rest. Lists are made when they are first asked for."""
        return State(ml_choice.choose("fusedmm", facts.statistics, on.waves).kernel)

    def run(self, on: Adapter, A: Any, state: Any, *arguments: Any) -> None:
        """Attend where slabs do."""
        values, C, B, D, E, log_totals, alpha, edge = arguments
        plain = edge == "softmax" and values is None and fit(C, B, D)
        if plain and self.pays(on, A, state, C, B, D, gradients=False):
            attend(on, A, C, B, D, E, log_totals, alpha)
        else:
            multiply(on, "fusedmm", A, *arguments, state.rest)

    def gradients(self, on: Adapter, A: Any, state: Any, *arguments: Any) -> None:
        """Compute the gradients of attention where slabs do."""
        _, C, B, D, G, E, log_totals, _, of_C, of_B, of_D, alpha, _ = arguments
        if self.slabs_do(on, A, state, *arguments):
            given, asked = (C, B, D, G), (of_C, of_B, of_D)
            gradients_of_attention(on, A, given, (E, log_totals), asked, alpha)
        else:
            rest = self._rest(A, state, C)
            rest.algorithm.gradients(on, A, rest.state, *arguments)

    def launches_gradients(self, on: Adapter, A: Any, state: Any, *arguments: Any) -> bool:
        """Return whether slabs do, or what does the rest only launches."""
        if self.slabs_do(on, A, state, *arguments):
            return True
        rest = self._rest(A, state, arguments[1])
        launches: bool = rest.algorithm.launches_gradients(on, A, rest.state, *arguments)
        return launches

    @staticmethod
    def _rest(A: Any, state: Any, C: Array) -> Any:
        return A.plan_for("fusedmm", C.shape[2], state.rest, C.dtype)

    def slabs_do(self, on: Adapter, A: Any, state: Any, *arguments: Any) -> bool:
        """Return whether slabs do: for softmax without values whose totals are known."""
        values, C, B, D, _, E, log_totals, of_values, *_, edge = arguments
        known = E is not None and log_totals is not None
        plain = edge == "softmax" and values is None and of_values is None
        return bool(
            known and plain and fit(C, B, D) and self.pays(on, A, state, C, B, D, gradients=True)
        )

    def pays(
        self, on: Adapter, A: Any, state: Any, C: Array, B: Array, D: Array, *, gradients: bool
    ) -> bool:
        """Return True: slabs were asked for by name."""
        return True


class State(NamedTuple):
    """What a plan keeps: the name of the algorithm for what slabs do not do."""

    rest: str


def fit(*operands: Array) -> bool:
    """Return whether there is something to multiply, and no row is wider than kernels are."""
    return all(x.size and x.shape[2] <= WIDTHS[-1] for x in operands)


def attend(
    on: Adapter,
    A: Any,
    C: Array,
    B: Array,
    D: Array,
    E: Array,
    log_totals: Array | None,
    alpha: float,
) -> None:
    """Launch the kernel of softmax."""
    (batch, m, k), (n, p) = C.shape, D.shape[1:]
    operands = [*(attention_operands.read(on, array) for array in (C, B, D)), on.operand(E)]
    made = kernel_for(on.executor.device, slab_attention, width_of(k, p))
    lists = lists_of(on.executor.xp, A, made.constants["HEIGHT"], made.constants["DIM"])
    shares = -(-m // made.rows)
    launch(
        on, made.kernel, shares * batch,
        (
            m, n, k, p, shares, lists.slabs, *_flat(on, lists), *sum(operands, ()),
            *on.of_rows(log_totals), alpha,
        ),
        C.dtype, np.int32, shared=made.shared, **made.constants,
        WHOLE=attention_operands.whole(C.dtype.itemsize, (k, p), operands),
    )  # fmt: skip


def gradients_of_attention(
    on: Adapter,
    A: Any,
    given: tuple[Array, ...],
    made: tuple[Array, Array],
    asked: tuple[Array | None, ...],
    alpha: float,
) -> None:
    """Launch the kernel by rows, whose facts that by columns reads.

    Parameters
    ----------
    on : Adapter
        The device.
    A : Csr
        The pattern.
    given : tuple of array
        ``C``, ``B``, ``D`` and ``G``.
    made : tuple of array
        ``E`` and ``log_totals`` of the forward product.
    asked : tuple of array or None
        Gradients of ``C``, ``B`` and ``D``.
    alpha : float
    """
    C, _, D, _ = given
    (batch, m, k), (n, p) = C.shape, D.shape[1:]
    width, dtype, xp = width_of(k, p), C.dtype, on.executor.xp
    device = on.executor.device
    by_rows = kernel_for(device, slab_row_gradients, width)
    by_columns = kernel_for(device, slab_column_gradients, width)
    height = by_rows.constants["HEIGHT"]
    padded = -(-m // height) * height
    facts = on.scratch(FACTS * batch * padded)
    sources = [attention_operands.read(on, array) for array in given]
    of_E = attention_operands.read(on, made[0])
    targets = [on.operand(x) for x in asked]
    whole = attention_operands.whole(dtype.itemsize, (k, p), (*sources, of_E, *targets))
    operands = sum(sources, ())
    lists = lists_of(xp, A, height, width)
    shares = -(-m // by_rows.rows)
    launch(
        on, by_rows.kernel, shares * batch,
        (
            m, n, k, p, shares, lists.slabs, padded, *_flat(on, lists), *operands, *of_E,
            *on.of_rows(made[1]), facts, *targets[0], alpha,
        ),
        dtype, np.int32, shared=by_rows.shared, **by_rows.constants, WHOLE=whole,
    )  # fmt: skip
    if asked[1] is None and asked[2] is None:
        return
    turned = transposed_lists_of(xp, A, height, width)
    shares = -(-n // by_columns.rows)
    launch(
        on, by_columns.kernel, shares * batch,
        (
            m, n, k, p, shares, turned.slabs, padded, *_flat(on, turned), *operands, facts,
            *targets[1], *targets[2], alpha,
        ),
        dtype, np.int32, shared=by_columns.shared, **by_columns.constants, WHOLE=whole,
    )  # fmt: skip


def obstacle(on: Adapter, A: Any, facts: Facts) -> str | None:
    """Return why slabs do not do on a device, for a pattern and operands."""
    device = on.executor.device
    found = attention_operands.obstacle(device, facts.dtype, facts.columns, WIDTHS[-1])
    if found is not None:
        return found
    if device.shared_bytes < LEAST_BYTES:
        return f"it needs {LEAST_BYTES} bytes of shared memory, and there are {device.shared_bytes}"
    m, n = A.shape
    height = height_of(device.shared_bytes, WIDTHS[-1])
    lists = 2 * max(-(-m // (2 * PANEL)) * -(-n // height), -(-n // (2 * PANEL)) * -(-m // height))
    if m * n >= MOST_PLACES or A.nnz + BATCH * lists >= 2**31:
        return "the matrix is too large for its lists of entries"
    return None


def _flat(on: Adapter, lists: Lists) -> tuple[Any, ...]:
    return lists.starts, on.address(lists.entries)
