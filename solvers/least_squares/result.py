"""The result of a least squares solve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.result import Result
from ...core.status import Stop

#: The meaning of each rule, by SciPy's numbers.
RULES = {
    0: "converged: the start is a solution",
    1: "converged: A x = b to within atol and btol",
    2: "converged: x solves the least squares problem to within atol",
    3: "the condition number has reached conlim",
    4: "converged: A x = b to the precision of the dtype",
    5: "converged: x solves the least squares problem to the precision of the dtype",
    6: "the condition number has reached the inverse of the precision",
    7: "the iteration limit was reached",
}

#: The reason instead of a rule if the initial guess is no solution of ``A x = b``, and no x is
#: better than zero.
BEST_START = "converged: the start solves the least squares problem"
ORTHOGONAL = (
    "converged: b is orthogonal to the columns of A, so that x = 0 is the shortest least squares "
    "solution"
)


@dataclass(frozen=True, eq=False, repr=False)
class LeastSquaresResult(Result):
    """The outcome of a least squares solve; unpacks into ``x, info``.

    It has the attributes of :class:`Result`, and these. Norms are true ones, computed from ``x``:
    numbers for one right-hand side, else arrays of shape (k,).

    Attributes
    ----------
    residuals : array, shape (iterations + 1,) or (iterations + 1, k)
        Norms of ``A.H @ (b - A x)`` in the iterations.
    residual_norm : float or array
        The norm of ``b - A x``.
    normal_residual_norm : float or array
        The norm of ``A.H @ (b - A x) - damp^2 (x - x0)``.
    damped_norm : float or array
        The norm of ``b - A x`` with ``damp (x - x0)`` appended.
    operator_norm, condition : float or array
        Estimates of the operator's Frobenius norm and condition number, with damping and in the
        metric of ``M``; 0 without an iteration.
    x_norm : float or array
        The norm of ``x``.
    rules : array of int, shape (k,)
        SciPy's ``istop``: the rule that ended each column; 7 for all other reasons.
    variance : array, shape (n,) or (n, k), or None
        The variances of :class:`Lsqr` with ``calc_var``.
    """

    normal_residual_norm: Any = 0.0
    damped_norm: Any = 0.0
    operator_norm: Any = 0.0
    condition: Any = 0.0
    x_norm: Any = 0.0
    rules: Any = None
    variance: Any = None

    @property
    def reason(self) -> str:
        """The reason for the end, in a sentence: of the first column that did not converge."""
        for stop in self.stops:
            if stop != Stop.CONVERGED:
                return super().reason
        if not len(self.rules):
            return Stop.CONVERGED.sentence
        if Stop.CONVERGED in self.explained:
            return self.explained[Stop.CONVERGED]
        rule = int(np.max(self.rules))
        if rule == 0 and np.any(np.asarray(self.residual_norm) > 0):
            return BEST_START
        return RULES[rule]

    __repr__ = Result.__repr__
