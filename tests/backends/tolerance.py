"""The permitted distance of a kernel from the reference: ten ulps of the summed terms.

Never a constant found by trial.

- Linear products with a matrix are sums of products. The same sums over absolute values say how
  large the terms are.
- Other operations also subtract, divide and take roots. A kernel's result may change as the
  reference's does if every input changes by ten ulps. Random changes cancel in a sum of n terms,
  where rounding need not: such results get the factor sqrt(n) between the two (Cauchy and Schwarz).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .calls import REFERENCE, Call

UNITS = 10
# Take a matrix, and put a function between its sums.
NOT_LINEAR = {
    *("csr.fusedmm", "csr.fusedmm_backward", "mask.fusedmm", "mask.fusedmm_backward"),
    *("csr.fusedmm_softmax", "csr.fusedmm_softmax_backward"),
    *("mask.fusedmm_softmax", "mask.fusedmm_softmax_backward"),
    *("csr.fusedmm_traced", "mask.fusedmm_traced", "csr.edge_function"),
    *("csr.softmax", "csr.softmax_backward"),
    *("csr.additive_attention", "csr.additive_attention_backward"),
}
# Subtract numbers that may be equal for all inputs: of two entries of one position.
SUBTRACT_EQUALS = {"csr.fusedmm_backward", "mask.fusedmm_backward"}
# Choose one of two given numbers: other inputs in their place could change the choice.
CHOOSE = {"rows.extremes"}
# Take the arrays of a matrix instead, and add up its values.
SUMS_OF_ENTRIES = {"rows.total", "rows.diagonal", "rows.at", "rows.contract"}
# Few numbers may move little by chance; the one that moves most of ten thousand does not.
DRAWS, DRAWS_OF_MANY, MANY = 8, 2, 10_000


def allowed(call: Call, expected: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return by name how much each array of values may differ from ``expected``.

    Arrays that are not named must not differ at all: indices, counts, and inputs of the operation.
    """
    read_only = {a.parameter.name for a in call.arguments if a.parameter.intent == "in"}
    values = {
        name: array
        for name, array in expected.items()
        if isinstance(array, np.ndarray)
        and array.dtype.kind in "fcV"
        and name.partition(".")[0] not in read_only
        and not name.endswith(".threshold")
    }
    if not values or call.operation.name in CHOOSE:
        return {}
    eps = UNITS * max(epsilon(a.dtype) for a in values.values())
    has_matrix = any(a.parameter.is_matrix for a in call.arguments)
    linear = has_matrix and call.operation.name not in NOT_LINEAR
    if linear or call.operation.name in SUMS_OF_ENTRIES:
        sizes = call.mapped(np.abs).run(REFERENCE)
        return {name: eps * np.abs(wide(sizes[name])) for name in values}
    moved = _moved(call, values, eps, rng)
    sizes = {name: np.abs(wide(array)) for name, array in values.items()}
    if call.operation.name in SUBTRACT_EQUALS:
        terms = _without_differences(call)
        sizes = {name: size + np.abs(wide(terms[name])) for name, size in sizes.items()}
    return {name: moved[name] + eps * np.nan_to_num(sizes[name], posinf=0.0) for name in values}


def _without_differences(call: Call) -> dict[str, Any]:
    """Return sums of absolute values: the identity as edge function subtracts nothing."""
    arguments = (
        replace(a, value="identity") if a.parameter.name == "edge" else a for a in call.arguments
    )
    return replace(call, arguments=tuple(arguments)).mapped(np.abs).run(REFERENCE)


def epsilon(dtype: np.dtype[Any]) -> float:
    """Return the distance of 1 from the next number of ``dtype``."""
    return 2.0**-7 if dtype.name == "bfloat16" else float(np.finfo(dtype).eps)


def wide(array: Any) -> Any:
    """Return 16-bit numbers in single precision, where differences of them can be taken."""
    return array.astype(np.float32) if array.dtype.itemsize == 2 else array


def _moved(
    call: Call, values: dict[str, Any], eps: float, rng: np.random.Generator
) -> dict[str, Any]:
    """Return how far relative changes of ``eps`` in the inputs move each column of the results."""

    def change(value: Any) -> Any:
        shape = np.shape(value)
        factor = 1 + eps * rng.choice([-1, 1], shape)
        if np.iscomplexobj(value):
            factor = factor + 1j * eps * rng.choice([-1, 1], shape)
        changed = value * factor
        return changed.astype(value.dtype) if isinstance(value, np.ndarray) else changed.item()

    moved = {name: np.zeros(array.shape) for name, array in values.items()}
    most_of_many = call.extents["n"] >= MANY and all(a.ndim > 1 for a in values.values())
    for _ in range(DRAWS_OF_MANY if most_of_many else DRAWS):
        after = call.mapped(change).run(REFERENCE)
        for name, array in values.items():
            with np.errstate(invalid="ignore"):
                distance = np.nan_to_num(np.abs(wide(after[name]) - wide(array)), posinf=0.0)
            moved[name] = np.maximum(moved[name], distance)
    for name, distance in moved.items():
        # an array of one dimension has a sum of its own in each element
        over = tuple(range(distance.ndim - 1))
        column = distance.max(axis=over, initial=0) if over else distance
        moved[name] = column * np.sqrt(max(_summed(call, name), 1))
    return moved


def _summed(call: Call, name: str) -> int:
    """Return how many terms a result of this name is the sum of."""
    dims = next(
        (a.parameter.dims for a in call.arguments if a.parameter.name == name.partition(".")[0]), ()
    )
    in_rows = call.operation.name in NOT_LINEAR
    return call.extents["n"] if in_rows or not {"n", "m"} & set(dims) else 1
