"""Patterns of one interval of columns in each row: fusedmm and its gradients by rows.

Nothing is stored for entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from ....core.errors import InvalidArgument
from ....core.executor import Array
from ....core.operation import KernelTable
from ....core.operations import masks as operations
from ....core.store import Key
from ...unified.wrappers import SimtKernel
from ..base import GpuExecutor
from ..repeatable import Repeatable
from ..table import kernel
from . import csr
from . import declarations as ml
from .adapter import Adapter
from .dots import FusedLanes, dot_kernel
from .gradient_kernels import OF_MASKS, launch_gradients

_DENSE = ", ".join(ml.operand(name) for name in "CBD")
_SHAPE = "{L}, {VK}, {VP}, {E}"

mask_fusedmm = SimtKernel(
    "mask_fusedmm",
    "fusedmm.hpp",
    f"m: i64, k: i64, p: i64, batch: i64, {ml.INTERVALS}, {_DENSE}, {ml.operand('out', 'out')}, "
    f"{ml.log_totals()}, alpha: T",
    f"{_SHAPE}, {{A}}, {{EDGE}}, {{SAME}}, {{WHOLE}}, {{T}}, {{I}}",
    block=64,
    variants=(),
    resident=16,
)


def samples() -> Iterator[tuple[SimtKernel, dict[str, int]]]:
    """Yield kernels with constants that every kind of code occurs in, for compilers to see."""
    shapes = (
        {"L": 16, "VK": 2, "VP": 2, "E": 0},
        {"L": 4, "VK": 1, "VP": 4, "E": 1},
    )
    for edge in ml.EDGES.values():
        for shape in shapes:
            whole = 2 if shape["E"] == 0 else 0
            same = {"EDGE": edge, "SAME": int(whole > 0), "WHOLE": whole}
            yield mask_fusedmm, {**shape, "A": 2 if whole else 1, **same}


class MaskAlgorithm:
    """A way to compute fusedmm with a mask, and its gradients, by launches alone."""

    name: ClassVar[str]

    def suits(self, on: Adapter, A: Any, C: Array, D: Array, edge: str) -> bool:
        """Return whether the rule takes it."""
        raise NotImplementedError

    def objection(self, on: Adapter, A: Any, C: Array, D: Array, edge: str) -> str | None:
        """Return why it cannot run, or None."""
        return None

    def run(self, on: Adapter, A: Any, *arguments: Any) -> None:
        """Compute the product."""
        raise NotImplementedError

    def gradients(self, on: Adapter, A: Any, *arguments: Any) -> None:
        """Compute the gradients that are asked for."""
        raise NotImplementedError


class MaskRows(MaskAlgorithm):
    """A wave has a row; samples stay in registers."""

    name: ClassVar[str] = "row-split"

    def suits(self, on: Adapter, A: Any, C: Array, D: Array, edge: str) -> bool:
        """Return True: it does for every mask."""
        return True

    def run(self, on: Adapter, A: Any, *arguments: Any) -> None:
        """Give waves rows; where D is B its rows are loaded once."""
        C, B, D, E, log_totals, alpha, edge = arguments
        batch, m, p = E.shape
        k, dtype, index = int(C.shape[2]), C.dtype, A.index_dtype
        of_C, of_B, of_D = (on.read(array, index) for array in (C, B, D))
        of_E = on.operand(E)
        dense = (of_C, of_B, of_D, of_E)
        shape = FusedLanes.of(dtype, k, p, same=of_B == of_D and k == p, dense=dense)
        tiles, constants = shape.of_product(batch, k, p, edge, of_C, of_B, of_D)
        on.launch(
            dot_kernel(mask_fusedmm, dtype, constants["WHOLE"]),
            m * tiles * batch * on.wave,
            (
                m, k, p, batch, A.first, A.last, *of_C, *of_B, *of_D, *of_E,
                *on.of_rows(log_totals), alpha,
            ),
            dtype,
            index,
            **constants,
        )  # fmt: skip

    def gradients(self, on: Adapter, A: Any, *arguments: Any) -> None:
        """Launch the kernels by rows and by columns of the mask."""
        C, B, D, G, E, log_totals, of_C, of_B, of_D, alpha, edge = arguments

        def turned() -> tuple[Array, Array]:
            return A.T.first, A.T.last

        launch_gradients(
            on, OF_MASKS, (A.first, A.last), turned, (C, B, D, G), (E, log_totals),
            (None, of_C, of_B, of_D), alpha, edge,
        )  # fmt: skip


class _Repeats:
    """What was launched for a mask, by the layout of its operands; as a plan has it."""

    def __init__(self) -> None:
        self.prepared: dict[Any, Any] = {}


_REPEATS: Key[_Repeats] = Key("launches for a mask")

#: In the order in which the rule asks; the last one suits every mask.
ALGORITHMS: tuple[MaskAlgorithm, ...] = (MaskRows(),)


def chosen(
    algorithms: tuple[MaskAlgorithm, ...],
    on: Adapter,
    A: Any,
    C: Array,
    D: Array,
    edge: str,
    name: str,
) -> MaskAlgorithm:
    """Return the algorithm of that name, or with ``"auto"`` what the rule takes.

    Raises
    ------
    InvalidArgument
        If there is none of that name, or it cannot run here.
    """
    if edge not in ml.EDGES:
        raise InvalidArgument(f"no edge function is called {edge!r}; there are: {list(ml.EDGES)}")
    if name == "auto":
        return next(found for found in algorithms if found.suits(on, A, C, D, edge))
    for found in algorithms:
        if found.name == name:
            objection = found.objection(on, A, C, D, edge)
            if objection is not None:
                raise InvalidArgument(f"kernel: {name!r} does not run here: {objection}")
            return found
    names = ", ".join(("auto", *(found.name for found in algorithms)))
    raise InvalidArgument(
        f"kernel: there is no {name!r} for masks on {on.executor.backend}; there are {names}"
    )


def forward(
    executor: GpuExecutor,
    algorithms: tuple[MaskAlgorithm, ...],
    A: Any,
    *arguments: Any,
) -> Repeatable | None:
    """Run what the rule takes of some algorithms, or what is named.

    Parameters
    ----------
    executor : GpuExecutor
        Of the arrays.
    algorithms : tuple of MaskAlgorithm
        In the order of the rule.
    A : Mask
    *arguments
        Arrays ``C``, ``B``, ``D``, ``E`` and ``log_totals`` or None, a factor, an edge function and
        the name of an algorithm.
    """
    *arrays, alpha, edge, name = arguments
    C, _, D, *results = arrays
    on = csr.Adapter(executor)
    algorithm = chosen(algorithms, on, A, C, D, edge, name)
    if not any(x is not None and x.size for x in results):
        return None

    def compute(on: Adapter) -> None:
        algorithm.run(on, A, *arrays, alpha, edge)

    return _again(executor, A, arrays, (alpha, edge, algorithm.name), compute)


def backward(
    executor: GpuExecutor,
    algorithms: tuple[MaskAlgorithm, ...],
    A: Any,
    *arguments: Any,
) -> Repeatable | None:
    """Do the same for the gradients; after ``G``, ``E`` and ``log_totals`` are known or None."""
    *arrays, alpha, edge, name = arguments
    C, _, D, *_ = arrays
    algorithm = chosen(algorithms, csr.Adapter(executor), A, C, D, edge, name)

    def compute(on: Adapter) -> None:
        algorithm.gradients(on, A, *arrays, alpha, edge)

    return _again(executor, A, arrays, (alpha, edge, algorithm.name, "gradients"), compute)


def _again(
    executor: GpuExecutor,
    A: Any,
    arrays: list[Any],
    factors: tuple[Any, ...],
    compute: Callable[[Adapter], None],
) -> Repeatable | None:
    """Compute, or repeat what was launched: launches are all that there is."""
    plan = A._pattern.get(_REPEATS, _Repeats)
    return csr.again(executor, plan, arrays, factors, compute, repeats=lambda _: True)


def register(algorithms: tuple[MaskAlgorithm, ...], kernel: KernelTable) -> None:
    """Add the kernels of masks to a backend's table."""

    @kernel(operations.fusedmm)
    def fusedmm(executor: GpuExecutor, A: Any, *arguments: Any) -> Repeatable | None:
        *arrays, alpha, edge, name = arguments
        return forward(executor, algorithms, A, *arrays, None, alpha, edge, name)

    @kernel(operations.fusedmm_softmax)
    def fusedmm_softmax(executor: GpuExecutor, A: Any, *arguments: Any) -> Repeatable | None:
        *arrays, alpha, name = arguments
        return forward(executor, algorithms, A, *arrays, alpha, "softmax", name)

    @kernel(operations.fusedmm_backward)
    def fusedmm_backward(executor: GpuExecutor, A: Any, *arguments: Any) -> Repeatable | None:
        return backward(executor, algorithms, A, *arguments[:4], None, None, *arguments[4:])

    @kernel(operations.fusedmm_softmax_backward)
    def fusedmm_softmax_backward(
        executor: GpuExecutor, A: Any, *arguments: Any
    ) -> Repeatable | None:
        *arrays, alpha, name = arguments
        return backward(executor, algorithms, A, *arrays, alpha, "softmax", name)


register(ALGORITHMS, kernel)
