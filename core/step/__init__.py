"""Steps: element-wise operations and their sums, written once as Python functions.

A step is a function over the names of a workspace ::

    step = Steps("cg", vectors="x r p q", scalars="rho rho_old pq")

    @step
    def update(w):
        '''Set x += alpha p, r -= alpha q; rho = |r|^2; observes |r|.'''
        alpha = w.rho / w.pq
        w.x += alpha * w.p
        w.r -= alpha * w.q
        w.rho_old, w.rho = w.rho, norm2(w.r)
        w.observe(sqrt(w.rho))

Run on NumPy arrays it is the reference. Run on symbols it gives its reads, writes, sums and costs,
and the text of a functor for the compiled backends.

The rules that follow from being traced: a step does not branch on values (``where`` chooses), it
uses the functions of this package alone, and no element depends on a sum of the same step (that
would be two steps). All names are read before any is written: the rest of the step, and every later
step, sees an assignment.

Apart from :mod:`.numeric` this package needs the standard library alone: the build traces steps
before NumPy is there.
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
