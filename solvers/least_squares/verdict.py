"""The verdict on the columns of a least squares solve, from their true residuals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.status import Stop

if TYPE_CHECKING:
    from .base import LeastSquaresSolver, LeastSquaresWorkspace

Numbers = np.ndarray[Any, Any]

#: The excess of the true residual over its tolerance must fall by this factor for a recurrence to
#: go on, and by the second for another one to begin.
GOING_ON, AGAIN = 0.9, 0.5

#: By how much tolerances are tightened when the recurrence was wrong about the true residual.
TIGHTER = 0.5

#: Tolerances are tightened by the inverse of the excess, with this margin, and by no more than the
#: second in one step.
TIGHTEST, TIGHTEST_STEP = 0.9, 1e-2

#: The codes of a recurrence that ended by its precision: it cannot go on.
_EXHAUSTED = (4, 5, 6)


class LeastSquaresVerdict:
    """The part of a least squares solve that judges.

    Attributes
    ----------
    norm_r, norm_normal, norm_x, norm_b : array, shape (k,)
        Norms of ``b - A x``, of ``A^H`` times it, of ``x`` and of ``b``, of the scaled system.
    in_metric : array, shape (k,)
        The norm of ``A^H r`` in the metric of ``M``.
    longest, longest_in_metric : array, shape (k,)
        Norms of ``A``, of ``A`` in the metric of ``M``, that are not estimated too large.
    """

    solver: LeastSquaresSolver
    work: LeastSquaresWorkspace
    real: np.dtype[Any]
    rules: Numbers
    iterations: Numbers
    norm_a: Numbers
    norm_r: Numbers
    norm_normal: Numbers
    norm_x: Numbers
    norm_b: Numbers
    in_metric: Numbers
    longest: Numbers
    longest_in_metric: Numbers
    atol: Numbers
    btol: Numbers
    left_before: Numbers
    left_at_start: Numbers

    def _left(self, norm_a: Numbers) -> Numbers:
        """Return the true residual relative to the limits of the rules; at most 1 meets one."""
        solver = self.solver
        product = self.norm_b if self.work.M is not None else norm_a * self.norm_x
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            first = self.norm_r / (solver.btol * self.norm_b + solver.atol * product)
            second = np.maximum(
                self.norm_normal / (solver.atol * self.longest * self.norm_r),
                self.in_metric / (solver.atol * self.longest_in_metric * self.norm_r)
                if self.work.M is not None
                else 0.0,
            )
            left: Numbers = np.fmin(first, second)
        return np.where(np.isnan(left), np.inf, left)

    def _judge(self, c: int, ended: Stop, rule: int) -> tuple[Stop, bool]:
        """Return the verdict on a column, and whether the process would begin again."""
        if not (np.isfinite(self.norm_r[c]) and np.isfinite(self.norm_x[c])):
            return Stop.NOT_FINITE, True
        met = self._rule_met(c)
        if met is not None:
            self.rules[c] = met
            return Stop.CONVERGED, True
        if ended in (Stop.INDEFINITE, Stop.NOT_FINITE, Stop.BREAKDOWN):
            return ended, True
        if ended == Stop.CONVERGED and rule in (3, 6):
            self.rules[c] = rule
            return Stop.ILL_CONDITIONED, True
        if self.iterations[c] >= self.solver.maxiter:
            return Stop.MAX_ITERATIONS, True
        if ended == Stop.RUNNING:
            return Stop.RUNNING, False
        left = float(self._left(self.norm_a)[c])
        if rule not in _EXHAUSTED and left <= GOING_ON * self.left_before[c]:
            self.left_before[c] = left
            tighter = float(np.clip(TIGHTEST / left, TIGHTEST_STEP, TIGHTER))
            self.atol[c] *= tighter
            self.btol[c] *= tighter
            return Stop.RUNNING, False
        if left <= AGAIN * self.left_at_start[c]:
            self.atol[c], self.btol[c] = self.solver.atol, self.solver.btol
            return Stop.RUNNING, True
        return Stop.STAGNATED, True

    def _rule_met(self, c: int) -> int | None:
        """Return the number of the rule that the true residual meets, or None."""
        solver, eps = self.solver, float(np.finfo(self.real).eps)
        norm_a, norm_r = self.longest[c], self.norm_r[c]
        product = self.norm_b[c] if self.work.M is not None else norm_a * self.norm_x[c]
        if norm_r <= solver.btol * self.norm_b[c] + solver.atol * product:
            return 1
        if self._is_small(c, solver.atol):
            return 2
        if norm_r <= eps * (self.norm_b[c] + product):
            return 4
        return 5 if self._is_small(c, eps) else None

    def _is_small(self, c: int, tolerance: float) -> bool:
        """Return whether ``|A^H r|`` is at most a tolerance times ``|A| |r|``; with M, twice.

        A singular M does not see all of ``A^H r``, and columns of small norms are not seen without
        M: both metrics have to agree.
        """
        allowed = tolerance * self.norm_r[c]
        met = bool(self.norm_normal[c] <= allowed * self.longest[c])
        if self.work.M is None:
            return met
        return met and bool(self.in_metric[c] <= allowed * self.longest_in_metric[c])
