"""The step of eigenvalue solvers: residuals of Ritz pairs."""

from __future__ import annotations

from typing import Any

from ...core.step import Steps, norm2

step = Steps("ritz", vectors="ax bx r", reals="value r2 b2", status=False)


@step
def residual(w: Any) -> None:
    """Set r = A x - value B x, r2 = |r|^2, b2 = |B x|^2."""
    w.r = w.ax - w.value * w.bx
    w.r2 = norm2(w.r)
    w.b2 = norm2(w.bx)
