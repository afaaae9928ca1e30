"""Conversions of blocks of vectors to a lower precision and back.

``L`` is the dtype with half the width of ``T``: float32 for float64, complex64 for complex128. For
float32 and complex64 ``L`` is the same dtype.
"""

from ..operation import declare

ROWS = ("n", "k")

lower = declare(
    "precision.lower",
    "x: in T[n,k], scale: in R[k], y: out L[n,k]",
    "y = x / scale_c, rounded to L; y = x where scale_c is 0 or not finite",
    flops=lambda e: e["n"] * e["k"],
    over=ROWS,
)

raised = declare(
    "precision.raised",
    "x: in L[n,k], scale: in R[k], y: inout T[n,k], alpha: T, beta: T",
    "y = alpha scale_c x + beta y; beta = 0 does not read y; scale_c is 1 where it is 0 or not "
    "finite",
    flops=lambda e: 4 * e["n"] * e["k"],
    over=ROWS,
)
