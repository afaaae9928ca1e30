"""Steps: element-wise operations with their sums, each written once as a Python function.

A step is a function of a workspace; it uses the names of the workspace ::

    step = Steps("cg", vectors="x r p q", scalars="rho rho_old pq")

    @step
    def update(w):
        '''Set x += alpha p, r -= alpha q; rho = |r|^2; observes |r|.'''
        alpha = w.rho / w.pq
        w.x += alpha * w.p
        w.r -= alpha * w.q
        w.rho_old, w.rho = w.rho, norm2(w.r)
        w.observe(sqrt(w.rho))

Run on NumPy arrays, the function is the reference. Run on symbols, it yields its reads, writes,
sums and costs, and the text of a functor for the compiled backends.

Tracing imposes these rules. A step does not branch on values; ``where`` selects between values. It
calls only functions of this package. No element depends on a sum of the same step, which would
require two steps. All names are read before any is written: an assignment is visible in the rest of
the step and in all later steps.

Except for :mod:`.numeric` this package needs only the standard library: the build traces steps
before NumPy is installed.
"""

from .declare import Step, Steps
from .functions import (
    BREAKDOWN,
    CONVERGED,
    INDEFINITE,
    NOT_FINITE,
    absolute,
    conj,
    dot,
    finite,
    largest,
    norm2,
    real,
    sqrt,
    total,
    where,
)

__all__ = [
    "BREAKDOWN",
    "CONVERGED",
    "INDEFINITE",
    "NOT_FINITE",
    "Step",
    "Steps",
    "absolute",
    "conj",
    "dot",
    "finite",
    "largest",
    "norm2",
    "real",
    "sqrt",
    "total",
    "where",
]
