"""The gradients of fusedmm by a row kernel and a column kernel, without per-entry temporaries.

The row kernel computes two numbers per row of a softmax, and the gradients of ``C`` and of the
values. The column kernel processes the transposed pattern and computes the gradients of ``B`` and
``D``. Operands are read in their own dtype; sums use float32 or wider.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from ....core.calls import GradientCall
from ...unified.wrappers import SimtKernel
from . import declarations as ml
from .adapter import Adapter
from .dots import FusedLanes

_GIVEN = ", ".join(ml.operand(name) for name in "CBDG")
_SHAPE = "{L}, {VK}, {VP}, {E}, {A}"
_KNOWN = "{WHOLE}, {T}, {I}"

#: Numbers per row that the row kernel passes to the column kernel.
FACTS = 2


class GradientKernels(NamedTuple):
    """The two kernels for a kind of pattern.

    Registers of the row kernel are bounded for float32, unless it visits rows twice: unbounded, it
    has 80 registers and waits for some rows before it requests the next. 16 heads of 64, 1 %: 181
    microseconds and 201 with values; 169 and 188 with 10 and 8 blocks (H100).
    """

    by_rows: SimtKernel
    by_columns: SimtKernel
    by_rows_of_float32: SimtKernel

    @classmethod
    def of(
        cls, kind: str, rows: str, columns: str, *, header: str, float32_blocks: int
    ) -> GradientKernels:
        """Return the kernels with names that begin with ``kind``.

        ``rows`` and ``columns`` declare the arguments of the pattern and of its transpose.
        """
        by_rows, by_columns = (
            SimtKernel(
                f"{kind}_row_gradients",
                header,
                f"m: i64, k: i64, p: i64, batch: i64, {rows}, {_GIVEN}, {ml.operand('out')}, "
                f"{ml.log_totals('in')}, known: out u8[l], {ml.operand('of_C', 'out')}, alpha: T",
                f"{_SHAPE}, {{EDGE}}, {{KNOWN}}, {_KNOWN}",
                block=64,
                variants=(),
            ),
            SimtKernel(
                f"{kind}_column_gradients",
                header,
                f"m: i64, n: i64, k: i64, p: i64, batch: i64, {columns}, {_GIVEN}, "
                f"known: in u8[l], {ml.operand('of_B', 'out')}, {ml.operand('of_D', 'out')}, "
                "alpha: T",
                f"{_SHAPE}, {{EDGE}}, {_KNOWN}",
                block=64,
                variants=(),
            ),
        )
        return cls(by_rows, by_columns, replace(by_rows, resident=float32_blocks))


_LISTED = "indptr: in I[l], indices: in I[z]"
_VALUES = "values: in T[z], values_step: i64"

#: Kernels for patterns of entries, entries with values, and intervals of columns.
OF_ENTRIES = GradientKernels.of(
    "csr", _LISTED, _LISTED, header="simt/fusedmm_gradients.hpp", float32_blocks=10
)
OF_VALUED_ENTRIES = GradientKernels.of(
    "csr_valued",
    f"{_LISTED}, {_VALUES}, of_values: out T[z], of_values_step: i64",
    f"{_LISTED}, order: in I[z], {_VALUES}",
    header="simt/fusedmm_valued_gradients.hpp",
    float32_blocks=8,
)
OF_MASKS = GradientKernels.of(
    "mask", ml.INTERVALS, ml.INTERVALS, header="simt/fusedmm_gradients.hpp", float32_blocks=10
)


def samples() -> Iterator[tuple[SimtKernel, dict[str, int]]]:
    """Yield kernels with constants that cover all code paths, to test compilers."""
    shapes = (
        {"L": 8, "VK": 1, "VP": 1, "E": 0, "A": 2, "WHOLE": 1},
        {"L": 4, "VK": 1, "VP": 4, "E": 1, "A": 1, "WHOLE": 0},
    )
    for kernels in (OF_ENTRIES, OF_VALUED_ENTRIES, OF_MASKS):
        for name, edge in ml.EDGES.items():
            for shape in shapes:
                yield kernels.by_columns, {**shape, "EDGE": edge}
                for known in (0, 1) if name == "softmax" else (0,):
                    yield kernels.by_rows, {**shape, "EDGE": edge, "KNOWN": known}


def launch_gradients(
    on: Adapter,
    kernels: GradientKernels,
    rows: tuple[Any, ...],
    columns: Callable[[], tuple[Any, ...]],
    call: GradientCall,
) -> None:
    """Launch the gradient kernel by rows, then the kernel by columns, which reads its row sums.

    Parameters
    ----------
    on : Adapter
        The adapter of the device.
    kernels : GradientKernels
        The kernels for the pattern's kind.
    rows : tuple
        The arguments of the pattern, as the row kernel declares them.
    columns : callable
        Returns the arguments of the transposed pattern.
    call : GradientCall
        The operands; the edge function is one of :data:`.declarations.EDGES`.
    """
    edge, alpha, log_totals = call.edge, call.alpha, call.log_totals
    (batch, m, k), (n, p) = call.C.shape, call.D.shape[1:]
    dtype, index = call.C.dtype, rows[0].dtype
    sources = [on.read(array, index) for array in (call.C, call.B, call.D, call.G)]
    of_E = on.operand(call.E)
    of_values, of_C, of_B, of_D = call.outputs
    targets = [on.operand(x) for x in (of_C, of_B, of_D)]
    lanes = FusedLanes.of(dtype, k, p, same=False, dense=(*sources, of_E, *targets))
    constants = {
        **lanes.constants,
        "A": ml.dots_ahead(lanes.lanes, lanes.of_k + lanes.of_p),
        "EDGE": ml.EDGES[edge],
        "WHOLE": int(lanes.hold(k, p)),
    }
    facts = on.scratch(FACTS * max(dtype.itemsize, 4) * m * batch)
    operands = sum(sources, ())
    by_columns = of_B is not None or of_D is not None
    by_rows = of_C is not None or of_values is not None
    known = edge == "softmax" and log_totals is not None
    bounded = dtype.name == "float32" and (known or edge != "softmax")
    if m * batch and (by_rows or (by_columns and edge == "softmax")):
        tiles = lanes.tiles(k, 0) if of_C is not None else 1
        on.launch(
            kernels.by_rows_of_float32 if bounded else kernels.by_rows,
            m * tiles * batch * on.wave,
            (
                m, k, p, batch, *rows, *operands, *of_E, *on.of_rows(log_totals), facts,
                *targets[0], alpha,
            ),
            dtype,
            index,
            **constants,
            KNOWN=int(known),
        )  # fmt: skip
    if n * batch and by_columns:
        on.launch(
            kernels.by_columns,
            n * lanes.tiles(k, p) * batch * on.wave,
            (m, n, k, p, batch, *columns(), *operands, facts, *targets[1], *targets[2], alpha),
            dtype,
            index,
            **constants,
        )
