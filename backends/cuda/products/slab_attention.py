"""16-bit attention for patterns that do not fill tiles: entries of 8 rows on tensor cores.

Rows of ``B`` and ``D`` are read into shared memory slab by slab, once per block of rows instead of
once per entry; see ``slab_entries.hpp``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from ....core.algorithm import Facts, multiply
from ....core.calls import FusedmmCall, GradientCall
from ...gpu.products import choice as product_choice
from ...gpu.products import declarations as ml
from ...gpu.products.adapter import Adapter
from ...gpu.products.gradients import FusedAlgorithm
from ...unified.wrappers import SimtKernel
from . import attention_operands
from .launches import launch_kernel
from .slab_lists import BATCH, PANEL, SlabLists, lists_of, transposed_lists_of

if TYPE_CHECKING:
    from ....core.formats.csr import Csr
    from ...gpu.device import GpuDevice

_SIZES = "m: i64, n: i64, k: i64, p: i64, shares: i64, slabs: i64"
_LISTS = "starts: in i32[l], entries: in u8[l]"
_OPERANDS = ", ".join(ml.operand(name) for name in "CBD")

slab_attention = SimtKernel(
    "slab_attention",
    "cuda/products/slab_attention.hpp",
    f"{_SIZES}, {_LISTS}, {_OPERANDS}, {ml.operand('out', 'out')}, {ml.log_totals()}, alpha: T",
    "{DIM}, {HEIGHT}, {WHOLE}, {T}",
    block=512,
    variants=(),
    resident=1,
)
slab_row_gradients = SimtKernel(
    "slab_row_gradients",
    "cuda/products/slab_gradients.hpp",
    f"{_SIZES}, padded: i64, {_LISTS}, {_OPERANDS}, {ml.operand('G')}, {ml.operand('out')}, "
    f"{ml.log_totals('in')}, facts: out R[l], {ml.operand('of_C', 'out')}, alpha: T",
    "{DIM}, {HEIGHT}, {WHOLE}, {T}",
    block=512,
    variants=(),
    resident=1,
)
slab_column_gradients = SimtKernel(
    "slab_column_gradients",
    "cuda/products/slab_gradients.hpp",
    f"{_SIZES}, padded: i64, {_LISTS}, {_OPERANDS}, {ml.operand('G')}, facts: in R[l], "
    f"{ml.operand('of_B', 'out')}, {ml.operand('of_D', 'out')}, alpha: T",
    "{DIM}, {HEIGHT}, {WHOLE}, {T}",
    block=512,
    variants=(),
    resident=1,
)

#: Stages of slabs in shared memory, bytes of their barriers and counters, and bytes of the facts of
#: a row; as in ``slab_stages.hpp``.
STAGES, BARRIERS, FACTS = 2, 40, 8
#: Minimum shared memory of a block, in bytes, for slabs with enough rows to pay.
LEAST_BYTES = 96 << 10
#: Rows that a kernel's threads copy together: heights of slabs are multiples of this number.
STEP = 16
#: Warps per block.
WARPS = 16
#: Columns of dense operands that the kernels support: more would take more registers.
WIDTHS = (32, 64)
#: Largest number of positions of a matrix for which 63 bits identify an entry's sort key.
MOST_PLACES = 2**52


class SlabKernel(NamedTuple):
    """A kernel for a device and a width: its constants, shared memory in bytes, rows per block."""

    kernel: SimtKernel
    constants: dict[str, int]
    shared: int
    rows: int


def width_of(k: int, p: int) -> int:
    """Return the columns of the kernel for operands with ``k`` and ``p`` columns."""
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
def made_for(kernel: SimtKernel, shared: int, width: int, warps: int) -> SlabKernel:
    """Return a kernel for rows of dense operands of ``width`` values, one of :data:`WIDTHS`.

    Parameters
    ----------
    kernel : SimtKernel
    shared : int
        Shared memory available to a block, in bytes.
    width : int
        Columns of dense operands.
    warps : int
        Warps per block.
    """
    height = height_of(shared, width)
    facts = FACTS if kernel is slab_column_gradients else 0
    made = replace(kernel, block=32 * warps)
    rows = 2 * PANEL * warps
    bytes_of_block = STAGES * height * (4 * width + facts) + BARRIERS
    return SlabKernel(made, {"DIM": width, "HEIGHT": height}, bytes_of_block, rows)


def kernel_for(device: GpuDevice, kernel: SimtKernel, width: int) -> SlabKernel:
    """Return a kernel for a device and a width of rows."""
    return made_for(kernel, device.shared_bytes, width, WARPS)


AttentionCall: TypeAlias = FusedmmCall | GradientCall


class SlabState(NamedTuple):
    """The state of a plan.

    Attributes
    ----------
    other_algorithm : str
        The algorithm for calls that slabs do not support.
    tiles : int
        Estimated number of dense tiles per head; 0 if no rule compares slabs with tiles.
    """

    other_algorithm: str
    tiles: int = 0


class SlabAttention(FusedAlgorithm):
    """Scores and sums of entries of 8 rows on tensor cores, with slabs in shared memory."""

    name: ClassVar[str] = "slab-mma"
    copies: ClassVar[bool] = True
    by_rule: ClassVar[bool] = False
    repeats: ClassVar[bool] = True

    def objection(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return why slabs cannot be used, or None."""
        return obstacle(on, A, facts)

    def reason(self, on: Adapter, A: Csr, facts: Facts) -> str | None:
        """Return None: the number of blocks of a batch decides, see :class:`SlabsOrRows`."""
        return None

    def prepare(self, on: Adapter, A: Csr, facts: Facts) -> Any:
        """Return the fallback's state. The lists are made at their first use."""
        return SlabState(
            product_choice.choose("fusedmm", facts.statistics, on.waves, rules=on.rules).kernel
        )

    def run(self, on: Adapter, state: SlabState, call: FusedmmCall) -> None:
        """Compute attention by slabs if they support the call."""
        plain = call.edge == "softmax" and call.values is None and fit(call)
        if plain and self.pays(on, state, call):
            attend(on, call)
        else:
            multiply(on, call._replace(kernel=state.other_algorithm))

    def gradients(self, on: Adapter, state: SlabState, call: GradientCall) -> None:
        """Compute the gradients of attention by slabs if they support the call."""
        if self.slabs_do(on, state, call):
            gradients_of_attention(on, call)
        else:
            rest = self._rest(state, call)
            rest.algorithm.gradients(on, rest.state, call)

    def launches_gradients(self, on: Adapter, state: SlabState, call: GradientCall) -> bool:
        """Return whether slabs, or else the algorithm for other calls, only launch kernels."""
        if self.slabs_do(on, state, call):
            return True
        rest = self._rest(state, call)
        launches: bool = rest.algorithm.launches_gradients(on, rest.state, call)
        return launches

    @staticmethod
    def _rest(state: SlabState, call: GradientCall) -> Any:
        return call.A.plan_for("fusedmm", call.C.shape[2], state.other_algorithm, call.C.dtype)

    def slabs_do(self, on: Adapter, state: SlabState, call: GradientCall) -> bool:
        """Return whether slabs run: for softmax without values and with known totals."""
        known = call.E is not None and call.log_totals is not None
        plain = call.edge == "softmax" and call.values is None and call.of_values is None
        return bool(known and plain and fit(call) and self.pays(on, state, call))

    def pays(self, on: Adapter, state: SlabState, call: AttentionCall) -> bool:
        """Return True: slabs were requested by name."""
        return True


def fit(call: AttentionCall) -> bool:
    """Return whether there are products to compute, and no row is wider than the kernels."""
    return all(x.size and x.shape[2] <= WIDTHS[-1] for x in (call.C, call.B, call.D))


def attend(on: Adapter, call: FusedmmCall) -> None:
    """Launch the kernel of the softmax product."""
    A, C, D = call.A, call.C, call.D
    (batch, m, k), (n, p) = C.shape, D.shape[1:]
    operands = [attention_operands.read(on, array) for array in (C, call.B, D)]
    operands.append(on.operand(call.E))
    made = kernel_for(on.executor.device, slab_attention, width_of(k, p))
    lists = lists_of(on.executor.xp, A, made.constants["HEIGHT"], made.constants["DIM"])
    shares = -(-m // made.rows)
    launch_kernel(
        on, made.kernel, shares * batch,
        (
            m, n, k, p, shares, lists.slabs, *_flat(on, lists), *sum(operands, ()),
            *on.of_rows(call.log_totals), call.alpha,
        ),
        C.dtype, np.int32, shared=made.shared, **made.constants,
        WHOLE=attention_operands.whole(C.dtype.itemsize, (k, p), operands),
    )  # fmt: skip


def gradients_of_attention(on: Adapter, call: GradientCall) -> None:
    """Launch the gradient kernel by rows, then the kernel by columns, which reads its row sums.

    Parameters
    ----------
    on : Adapter
        The executor's adapter.
    call : GradientCall
        The operands; ``E`` and ``log_totals`` must be known.
    """
    A, C, D, alpha = call.A, call.C, call.D, call.alpha
    (batch, m, k), (n, p) = C.shape, D.shape[1:]
    width, dtype, xp = width_of(k, p), C.dtype, on.executor.xp
    device = on.executor.device
    by_rows = kernel_for(device, slab_row_gradients, width)
    by_columns = kernel_for(device, slab_column_gradients, width)
    height = by_rows.constants["HEIGHT"]
    padded = -(-m // height) * height
    facts = on.scratch(FACTS * batch * padded)
    sources = [attention_operands.read(on, array) for array in (C, call.B, D, call.G)]
    of_E = attention_operands.read(on, call.E)
    to_C, to_B, to_D = targets = [on.operand(x) for x in (call.of_C, call.of_B, call.of_D)]
    whole = attention_operands.whole(dtype.itemsize, (k, p), (*sources, of_E, *targets))
    operands = sum(sources, ())
    lists = lists_of(xp, A, height, width)
    shares = -(-m // by_rows.rows)
    launch_kernel(
        on, by_rows.kernel, shares * batch,
        (
            m, n, k, p, shares, lists.slabs, padded, *_flat(on, lists), *operands, *of_E,
            *on.of_rows(call.log_totals), facts, *to_C, alpha,
        ),
        dtype, np.int32, shared=by_rows.shared, **by_rows.constants, WHOLE=whole,
    )  # fmt: skip
    if call.of_B is None and call.of_D is None:
        return
    turned = transposed_lists_of(xp, A, height, width)
    shares = -(-n // by_columns.rows)
    launch_kernel(
        on, by_columns.kernel, shares * batch,
        (
            m, n, k, p, shares, turned.slabs, padded, *_flat(on, turned), *operands, facts,
            *to_B, *to_D, alpha,
        ),
        dtype, np.int32, shared=by_columns.shared, **by_columns.constants, WHOLE=whole,
    )  # fmt: skip


def obstacle(on: Adapter, A: Csr, facts: Facts) -> str | None:
    """Return why a device, a pattern or operands prevent slabs, or None."""
    device = on.executor.device
    result = attention_operands.obstacle(device, facts.dtype, facts.columns, WIDTHS[-1])
    if result is not None:
        return result
    if device.shared_bytes < LEAST_BYTES:
        return f"it needs {LEAST_BYTES} bytes of shared memory, and there are {device.shared_bytes}"
    m, n = A.shape
    height = height_of(device.shared_bytes, WIDTHS[-1])
    lists = 2 * max(-(-m // (2 * PANEL)) * -(-n // height), -(-n // (2 * PANEL)) * -(-m // height))
    if m * n >= MOST_PLACES or A.nnz + BATCH * lists >= 2**31:
        return "the matrix is too large for its lists of entries"
    return None


def _flat(on: Adapter, lists: SlabLists) -> tuple[Any, ...]:
    return lists.starts, on.address(lists.entries)
