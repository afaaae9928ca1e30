"""The gradients of fusedmm: by an algorithm's kernels, by row and column kernels, or by steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.algorithm import multiply
from ....core.calls import GradientCall, SddmmCall, SpmmCall
from ....core.dtypes import is_narrow
from ....core.store import Key
from . import choice as product_choice
from .adapter import Adapter
from .algorithm import GpuAlgorithm
from .gradient_kernels import OF_ENTRIES, OF_VALUED_ENTRIES, GradientKernels, launch_gradients
from .rowwise import weigh, weigh_gradients


class FusedAlgorithm(GpuAlgorithm):
    """An algorithm for fusedmm and its gradients."""

    def gradients(self, on: Adapter, state: Any, call: GradientCall) -> None:
        """Compute the requested gradients; ``state`` is the plan's state."""
        if self.by_rows(on, state, call):
            gradients_by_rows(on, call)
        else:
            gradients_by_steps(on, call)

    def launches_gradients(self, on: Adapter, state: Any, call: GradientCall) -> bool:
        """Return whether :meth:`gradients` only launches kernels for this call."""
        return self.by_rows(on, state, call)

    def by_rows(self, on: Adapter, state: Any, call: GradientCall) -> bool:
        """Return whether the row and column kernels compute the gradients."""
        return self.has_rows(state) and rows_do(on, call)

    def has_rows(self, state: Any) -> bool:
        """Return whether waves have whole rows, so that gradient kernels may assign them too."""
        return False


_EVEN: Key[bool] = Key("whether no column is long")


def rows_do(on: Adapter, call: GradientCall) -> bool:
    """Return whether the row and column kernels support the gradients and no row is long.

    One wave would process an entire long column. Gradients of values that are not given use steps.
    The transposed pattern is made here, before launches are recorded.
    """
    if call.values is None and call.of_values is not None:
        return False
    if call.of_B is None and call.of_D is None:
        return True

    def even() -> bool:
        transposed, _ = call.A.transposed_pattern()
        choice = product_choice.choose(
            "fusedmm", transposed.row_statistics, on.waves, rules=on.rules
        )
        return choice.kernel == "row-split"

    return call.A._pattern.get(_EVEN, even)


def gradients_by_rows(on: Adapter, call: GradientCall) -> None:
    """Launch the row kernel and the column kernel, which store nothing per entry but results."""
    A, values = call.A, call.values
    kernels: GradientKernels = OF_ENTRIES
    rows: tuple[Any, ...] = (A.indptr, A.indices)
    weights = on.weights(values)
    if values is not None:
        kernels, rows = OF_VALUED_ENTRIES, (*rows, *weights, *on.of_entries(call.of_values))

    def turned() -> tuple[Any, ...]:
        transposed, order = A.transposed_pattern()
        pattern = transposed.indptr, transposed.indices
        return pattern if values is None else (*pattern, order, *weights)

    launch_gradients(on, kernels, rows, turned, call)


def gradients_by_steps(on: Adapter, call: GradientCall) -> None:
    """Sample scores and gradients of weights, and multiply by them; use float32 for 16 bits.

    Up to four arrays of entries are stored, in float32 or the operands' dtype. The softmax is a
    pass over one of them, whether its log-totals are known or not.
    """
    executor, xp = on.executor, on.executor.xp
    A, values, C, B, D, G = call.A, call.values, call.C, call.B, call.D, call.G
    of_values, of_C, of_B, of_D = call.outputs
    alpha, edge, dtype = call.alpha, call.edge, C.dtype
    if is_narrow(dtype):
        dtype = np.dtype(np.float32)
        values, C, B, D, G = (None if x is None else x.astype(dtype) for x in (values, C, B, D, G))
        of_values, of_C, of_B, of_D = (
            None if x is None else executor.allocate(x.shape, dtype) for x in call.outputs
        )
    sampled = C.shape[0], A.nnz
    transposed, order = A.transposed_pattern()  # made by the first call, before any launch
    scores = executor.allocate(sampled, dtype)
    multiply(on, SddmmCall(A, None, C, B, scores, alpha, 0.0))
    weights = scores * values if values is not None else executor.copy(scores)
    weigh(on, A, edge, weights)
    if of_D is not None:
        turned = xp.take(weights, order, axis=1)
        multiply(on, SpmmCall(transposed, turned, G, of_D, 1.0, 0.0))
    if not (of_values is None and of_C is None and of_B is None):
        found = executor.allocate(sampled, dtype)
        multiply(on, SddmmCall(A, None, G, D, found, 1.0, 0.0))
        weigh_gradients(on, A, edge, weights, found)
        if of_values is not None:
            xp.multiply(found, scores, out=of_values)
        if values is not None:
            found = found * values
        if of_C is not None:
            multiply(on, SpmmCall(A, found, B, of_C, alpha, 0.0))
        if of_B is not None:
            turned = xp.take(found, order, axis=1)
            multiply(on, SpmmCall(transposed, turned, C, of_B, alpha, 0.0))
    for given, made in zip(call.outputs, (of_values, of_C, of_B, of_D), strict=True):
        if given is not None and made is not given:
            given[...] = made
