"""The verdict on the columns of a least squares solve, from their true residuals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.status import Stop

if TYPE_CHECKING:
    from .base import LeastSquaresSolver, LeastSquaresWorkspace

Numbers = np.ndarray[Any, Any]

#: The recurrence continues if the excess of the true residual over its tolerance fell to the
#: fraction GOING_ON, and restarts if it fell to the fraction AGAIN.
GOING_ON, AGAIN = 0.9, 0.5

#: Tighten the tolerances by this factor if the recurrence's estimate of the true residual was
#: wrong.
TIGHTER = 0.5

#: Tolerances are divided by the excess and multiplied by TIGHTEST, but by no less than
#: TIGHTEST_STEP in one step.
TIGHTEST, TIGHTEST_STEP = 0.9, 1e-2

#: Codes of a recurrence that reached the limit of its precision and cannot continue.
_EXHAUSTED = (4, 5, 6)


class LeastSquaresVerdict:
    """The part of a least squares solve that judges columns.

    Attributes
    ----------
    norm_r, norm_normal, norm_x, norm_b : array, shape (k,)
        Norms of ``b - A x``, of its product with ``A^H``, of ``x`` and of ``b``, for the scaled
        system.
    in_metric : array, shape (k,)
        The norm of ``A^H r`` in the metric of ``M``.
    longest, longest_in_metric : array, shape (k,)
        Lower bounds of the norm of ``A``, and of this norm in the metric of ``M``.
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
        """Return the true residual relative to the limits of the rules; at most 1 if one is met."""
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
        """Return the verdict on a column, and whether the process would restart."""
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
        """Return whether ``|A^H r|`` is at most ``tolerance |A| |r|``; with M, in both metrics.

        A singular M hides a part of ``A^H r``, and columns of small norm are hidden without M: both
        metrics have to agree.
        """
        allowed = tolerance * self.norm_r[c]
        met = bool(self.norm_normal[c] <= allowed * self.longest[c])
        if self.work.M is None:
            return met
        return met and bool(self.in_metric[c] <= allowed * self.longest_in_metric[c])
