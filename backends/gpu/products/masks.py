"""fusedmm and its gradients by rows, for patterns with one interval of columns per row.

Nothing is stored per entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from ....core.call_kernels import takes_call
from ....core.calls import FusedmmCall, GradientCall, TracedCall
from ....core.edge_functions.program import program_of
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
    "simt/fusedmm.hpp",
    f"m: i64, k: i64, p: i64, batch: i64, {ml.INTERVALS}, {_DENSE}, {ml.operand('out', 'out')}, "
    f"{ml.log_totals()}, alpha: T",
    f"{_SHAPE}, {{A}}, {{EDGE}}, {{SAME}}, {{WHOLE}}, {{T}}, {{I}}",
    block=64,
    variants=(),
    resident=16,
)

_OF_FUNCTION = ", ".join(
    f"{name}: in R[l], {name}_ld: i64, {name}_step: i64" for name in ("of_rows", "of_columns")
)
mask_fusedmm_traced = replace(
    mask_fusedmm,
    name="mask_fusedmm_traced",
    signature=(
        f"m: i64, k: i64, p: i64, batch: i64, {ml.INTERVALS}, {_DENSE}, {_OF_FUNCTION}, "
        f"{ml.operand('out', 'out')}, {ml.log_totals()}, alpha: T"
    ),
    template=f"{_SHAPE}, {{A}}, {{EDGE}}, {{SAME}}, {{WHOLE}}, wl::edge_program, {{T}}, {{I}}",
    resident=8,
)

if TYPE_CHECKING:
    from ....core.formats.mask import Mask


def samples() -> Iterator[tuple[SimtKernel, dict[str, int]]]:
    """Yield kernels with constants that cover all code paths, to test compilers."""
    shapes = (
        {"L": 16, "VK": 2, "VP": 2, "E": 0},
        {"L": 4, "VK": 1, "VP": 4, "E": 1},
    )
    for edge in ml.EDGES.values():
        for shape in shapes:
            whole = 2 if shape["E"] == 0 else 0
            same = {"EDGE": edge, "SAME": int(whole > 0), "WHOLE": whole}
            yield mask_fusedmm, {**shape, "A": 2 if whole else 1, **same}


#: A product with a mask, or its gradients.
MaskCall: TypeAlias = "FusedmmCall[Mask] | GradientCall[Mask]"


class MaskAlgorithm:
    """An algorithm for fusedmm with a mask and its gradients that only launches kernels."""

    name: ClassVar[str]

    def suits(self, on: Adapter, call: MaskCall) -> bool:
        """Return whether the rule chooses this algorithm for a call."""
        raise NotImplementedError

    def objection(self, on: Adapter, call: MaskCall) -> str | None:
        """Return why this algorithm cannot run, or None."""
        return None

    def run(self, on: Adapter, call: FusedmmCall[Mask]) -> None:
        """Compute the product."""
        raise NotImplementedError

    def gradients(self, on: Adapter, call: GradientCall[Mask]) -> None:
        """Compute the requested gradients."""
        raise NotImplementedError


class MaskRows(MaskAlgorithm):
    """Each wave has a row; samples stay in registers."""

    name: ClassVar[str] = "row-split"

    def suits(self, on: Adapter, call: MaskCall) -> bool:
        """Return True: this algorithm supports every mask."""
        return True

    def run(self, on: Adapter, call: FusedmmCall[Mask]) -> None:
        """Assign rows to waves; if D is B, its rows are loaded only once."""
        self._launch(on, call, call.edge, mask_fusedmm, ())

    def run_traced(self, on: Adapter, call: TracedCall[Mask]) -> None:
        """Do the same with a user-defined function, before a softmax or alone."""
        kernel = ml.with_function(mask_fusedmm_traced, call.function)
        inputs = sum((on.operand(given) for given in call.inputs[:2]), ())
        self._launch(on, call, program_of(call.function).final, kernel, inputs)

    def _launch(
        self,
        on: Adapter,
        call: FusedmmCall[Mask] | TracedCall[Mask],
        edge: str,
        kernel: SimtKernel,
        inputs: tuple[Any, ...],
    ) -> None:
        A, C, D, E = call.A, call.C, call.D, call.E
        batch, m, p = E.shape
        k, dtype, index = int(C.shape[2]), C.dtype, A.index_dtype
        of_C, of_B, of_D = (on.read(array, index) for array in (C, call.B, D))
        of_E = on.operand(E)
        dense = (of_C, of_B, of_D, of_E)
        shape = FusedLanes.of(dtype, k, p, same=of_B == of_D and k == p, dense=dense)
        tiles, constants = shape.of_product(batch, k, p, edge, of_C, of_B, of_D)
        on.launch(
            dot_kernel(kernel, dtype, constants["WHOLE"]),
            m * tiles * batch * on.wave,
            (
                m, k, p, batch, A.first, A.last, *of_C, *of_B, *of_D, *inputs,
                *of_E, *on.of_rows(call.log_totals), call.alpha,
            ),
            dtype,
            index,
            **constants,
        )  # fmt: skip

    def gradients(self, on: Adapter, call: GradientCall[Mask]) -> None:
        """Launch the kernels by rows and by columns of the mask."""
        A = call.A

        def turned() -> tuple[Array, Array]:
            return A.T.first, A.T.last

        launch_gradients(on, OF_MASKS, (A.first, A.last), turned, call)


class _Repeats:
    """The launches for a mask, by the layout of operands, as in a plan."""

    def __init__(self) -> None:
        self.prepared: dict[Any, Any] = {}


_REPEATS: Key[_Repeats] = Key("launches for a mask")

#: The algorithms in the order of the rule; the last one supports every mask.
ALGORITHMS: tuple[MaskAlgorithm, ...] = (MaskRows(),)


def chosen(algorithms: tuple[MaskAlgorithm, ...], on: Adapter, call: MaskCall) -> MaskAlgorithm:
    """Return the algorithm that a call names, or the first suitable one for ``"auto"``.

    Raises
    ------
    InvalidArgument
        If there is no algorithm with that name, or if it cannot run.
    """
    edge, name = call.edge, call.kernel
    if edge not in ml.EDGES:
        raise InvalidArgument(f"no edge function is called {edge!r}; there are: {list(ml.EDGES)}")
    if name == "auto":
        return next(result for result in algorithms if result.suits(on, call))
    for result in algorithms:
        if result.name == name:
            objection = result.objection(on, call)
            if objection is not None:
                raise InvalidArgument(f"kernel: {name!r} does not run here: {objection}")
            return result
    names = ", ".join(("auto", *(result.name for result in algorithms)))
    raise InvalidArgument(
        f"kernel: there is no {name!r} for masks on {on.executor.backend}; there are {names}"
    )


def product(
    executor: GpuExecutor, algorithms: tuple[MaskAlgorithm, ...], call: FusedmmCall[Mask]
) -> Repeatable | None:
    """Run the first suitable algorithm, or the named one."""
    algorithm = chosen(algorithms, csr.CupyAdapter(executor), call)
    if not call.has_output:
        return None

    def compute(on: Adapter) -> None:
        algorithm.run(on, call)

    return _again(executor, call, (*call.factors, algorithm.name), compute)


def gradients(
    executor: GpuExecutor, algorithms: tuple[MaskAlgorithm, ...], call: GradientCall[Mask]
) -> Repeatable | None:
    """Compute the gradients with the first suitable algorithm, or with the named one."""
    algorithm = chosen(algorithms, csr.CupyAdapter(executor), call)

    def compute(on: Adapter) -> None:
        algorithm.gradients(on, call)

    return _again(executor, call, (*call.factors, algorithm.name, "gradients"), compute)


def _again(
    executor: GpuExecutor,
    call: MaskCall | TracedCall[Mask],
    factors: tuple[complex | str, ...],
    compute: Callable[[Adapter], None],
) -> Repeatable | None:
    """Compute, or repeat launches if the work consists only of launches."""
    plan = call.A._pattern.get(_REPEATS, _Repeats)
    return csr.again(executor, plan, call.arrays, factors, compute, repeats=lambda _: True)


def register(algorithms: tuple[MaskAlgorithm, ...], kernel: KernelTable) -> None:
    """Add the kernels of masks to a backend's table."""

    def forward(executor: GpuExecutor, call: FusedmmCall[Mask]) -> Repeatable | None:
        return product(executor, algorithms, call)

    def backward(executor: GpuExecutor, call: GradientCall[Mask]) -> Repeatable | None:
        return gradients(executor, algorithms, call)

    def traced(executor: GpuExecutor, call: TracedCall[Mask]) -> Repeatable | None:
        if call.kernel not in ("auto", MaskRows.name):
            raise InvalidArgument(
                f"kernel: {call.kernel!r} takes no function of one's own; there are auto, row-split"
            )
        if not call.has_output:
            return None
        rows = MaskRows()

        def compute(on: Adapter) -> None:
            rows.run_traced(on, call)

        return _again(executor, call, (*call.factors, "traced"), compute)

    takes_call(kernel, operations.fusedmm_traced)(traced)
    for operation in (operations.fusedmm, operations.fusedmm_softmax):
        takes_call(kernel, operation)(forward)
    for operation in (operations.fusedmm_backward, operations.fusedmm_softmax_backward):
        takes_call(kernel, operation)(backward)


register(ALGORITHMS, kernel)
