"""The gradients of fusedmm: by kernels of an algorithm, by rows and columns, or by steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.algorithm import multiply
from ....core.dtypes import is_narrow
from ....core.executor import Array
from ....core.store import Key
from . import choice as ml_choice
from .adapter import Adapter
from .algorithm import GpuAlgorithm
from .gradient_kernels import OF_ENTRIES, OF_VALUED_ENTRIES, GradientKernels, launch_gradients
from .rowwise import weigh, weigh_gradients


class FusedAlgorithm(GpuAlgorithm):
    """An algorithm for fusedmm, and for its gradients."""

    def gradients(self, on: Adapter, A: Any, state: Any, *arguments: Any) -> None:
        """Compute what ``csr.fusedmm_backward`` or ``csr.fusedmm_softmax_backward`` is asked for.

        Parameters
        ----------
        on : Adapter
            The device.
        A : Csr
            The pattern.
        state : object
            Of the plan.
        *arguments
            Those of the operations after ``A``: ``E`` and ``log_totals`` are None where they are
            not known.
        """
        if self.by_rows(on, A, state, *arguments):
            gradients_by_rows(on, A, *arguments)
        else:
            gradients_by_steps(on, A, *arguments)

    def launches_gradients(self, on: Adapter, A: Any, state: Any, *arguments: Any) -> bool:
        """Return whether launches are all that :meth:`gradients` does for these arguments."""
        return self.by_rows(on, A, state, *arguments)

    def by_rows(self, on: Adapter, A: Any, state: Any, *arguments: Any) -> bool:
        """Return whether gradients go by the kernels by rows and by columns."""
        return self.has_rows(state) and rows_do(on, A, *arguments)

    def has_rows(self, state: Any) -> bool:
        """Return whether waves have whole rows, so that they have them for gradients too."""
        return False


_EVEN: Key[bool] = Key("whether no column is long")


def rows_do(on: Adapter, A: Any, *arguments: Any) -> bool:
    """Return whether kernels by rows and by columns do for gradients, where no row is long.

    A long column would be that of one wave. Gradients of values that are not given, which nobody
    asks for, go by steps. The transposed pattern is made here, before launches are noted.
    """
    values, *_, of_values, _, of_B, of_D, _, _ = arguments
    if values is None and of_values is not None:
        return False
    if of_B is None and of_D is None:
        return True

    def even() -> bool:
        transposed, _ = A.transposed_pattern()
        choice = ml_choice.choose("fusedmm", transposed.row_statistics, on.waves)
        return choice.kernel == "row-split"

    return A._pattern.get(_EVEN, even)


def gradients_by_rows(on: Adapter, A: Any, *arguments: Any) -> None:
    """Launch the kernels by rows and by columns, which store nothing for entries but results."""
    values, C, B, D, G, E, log_totals, of_values, of_C, of_B, of_D, alpha, edge = arguments
    kernels: GradientKernels = OF_ENTRIES
    rows: tuple[Any, ...] = (A.indptr, A.indices)
    weights = on.weights(values)
    if values is not None:
        kernels, rows = OF_VALUED_ENTRIES, (*rows, *weights, *on.of_entries(of_values))

    def turned() -> tuple[Any, ...]:
        transposed, order = A.transposed_pattern()
        pattern = transposed.indptr, transposed.indices
        return pattern if values is None else (*pattern, order, *weights)

    launch_gradients(
        on, kernels, rows, turned, (C, B, D, G), (E, log_totals), (of_values, of_C, of_B, of_D),
        alpha, edge,
    )  # fmt: skip


def gradients_by_steps(
    on: Adapter,
    A: Any,
    values: Array | None,
    C: Array,
    B: Array,
    D: Array,
    G: Array,
    E: Array | None,
    log_totals: Array | None,
    of_values: Array | None,
    of_C: Array | None,
    of_B: Array | None,
    of_D: Array | None,
    alpha: float,
    edge: str,
) -> None:
    """Sample scores and gradients of weights, and multiply with them; 16 bits in float32.

    Arrays of entries are stored: up to four of float32 or of the operands' dtype. Softmax is a pass
    over one of them whether the logarithms of its totals are known or not.
    """
    executor, xp = on.executor, on.executor.xp
    asked = (of_values, of_C, of_B, of_D)
    dtype = C.dtype
    if is_narrow(dtype):
        dtype = np.dtype(np.float32)
        values, C, B, D, G = (None if x is None else x.astype(dtype) for x in (values, C, B, D, G))
        of_values, of_C, of_B, of_D = (
            None if x is None else executor.allocate(x.shape, dtype) for x in asked
        )
    sampled = C.shape[0], A.nnz
    scores = executor.allocate(sampled, dtype)
    multiply(on, "sddmm", A, None, C, B, scores, alpha, 0.0, "auto")
    weights = scores * values if values is not None else executor.copy(scores)
    weigh(on, A, edge, weights)
    transposed, order = A.transposed_pattern()
    if of_D is not None:
        turned = xp.take(weights, order, axis=1)
        multiply(on, "spmm", transposed, turned, G, of_D, 1.0, 0.0, "auto")
    if not (of_values is None and of_C is None and of_B is None):
        found = executor.allocate(sampled, dtype)
        multiply(on, "sddmm", A, None, G, D, found, 1.0, 0.0, "auto")
        weigh_gradients(on, A, edge, weights, found)
        if of_values is not None:
            xp.multiply(found, scores, out=of_values)
        if values is not None:
            found = found * values
        if of_C is not None:
            multiply(on, "spmm", A, found, B, of_C, alpha, 0.0, "auto")
        if of_B is not None:
            turned = xp.take(found, order, axis=1)
            multiply(on, "spmm", transposed, turned, C, of_B, alpha, 0.0, "auto")
    for given, made in zip(asked, (of_values, of_C, of_B, of_D), strict=True):
        if given is not None and made is not given:
            given[...] = made
