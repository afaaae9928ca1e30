"""The steps of multigrid cycles: smoothing, residuals, and the short Krylov method of K-cycles.

``b`` is the right-hand side of a level, ``x`` its iterate, ``q`` the product ``A x``, ``d`` the
last correction, and ``inverse`` the inverse of the diagonal. Smoothing stores no residual: each
step reads ``b - q``. Steps alternate between ``x`` and ``y``: a step that overwrites the vector
from which the preceding product gathers could not share a kernel with the product.
"""

from __future__ import annotations

from typing import Any

from ...core.step import Steps, absolute, conj, dot, where

step = Steps("smooth", vectors="b x y q d", rows="inverse", numbers="last next", status=False)


@step
def begin(w: Any) -> None:
    """Set d = next D^-1 b, y = d: the first step of a polynomial from 0."""
    correction = w.next * w.inverse * w.b
    w.d = correction
    w.y = correction


@step
def resume(w: Any) -> None:
    """Set d = next D^-1 (b - q), y = x + d: the first step from any x."""
    correction = w.next * w.inverse * (w.b - w.q)
    w.d = correction
    w.y = w.x + correction


@step
def go_on(w: Any) -> None:
    """Set d = last d + next D^-1 (b - q), y = x + d: the following steps."""
    correction = w.last * w.d + w.next * w.inverse * (w.b - w.q)
    w.d = correction
    w.y = w.x + correction


@step
def resume_in_place(w: Any) -> None:
    """Set d = next D^-1 (b - q), x += d: the first of an odd number of steps."""
    correction = w.next * w.inverse * (w.b - w.q)
    w.d = correction
    w.x += correction


@step
def residual(w: Any) -> None:
    """Set q = b - q."""
    w.q = w.b - w.q


krylov = Steps("kcycle", vectors="b x c v d w", scalars="cv cb dv dw db", status=False)


@krylov
def measure(w: Any) -> None:
    """Set cv = <c, v>, cb = <c, b> with v = A c."""
    w.cv, w.cb = dot(w.c, w.v), dot(w.c, w.b)


@krylov
def advance(w: Any) -> None:
    """Set b -= (cb / cv) v: the residual after the first direction; nothing where cv = 0."""
    usable = absolute(w.cv) > 0
    w.b -= where(usable, w.cb / where(usable, w.cv, 1.0), 0.0) * w.v


@krylov
def measure_again(w: Any) -> None:
    """Set dv = <d, v>, dw = <d, w>, db = <d, b> with w = A d."""
    w.dv, w.dw, w.db = dot(w.d, w.v), dot(w.d, w.w), dot(w.d, w.b)


@krylov
def combine(w: Any) -> None:
    """Set x = first c + second d, the best of both directions; c alone where d adds none."""
    usable = absolute(w.cv) > 0
    pivot = where(usable, w.cv, 1.0)
    vd = conj(w.dv) / pivot  # <c, A d> = conj(<d, A c>) for a Hermitian A
    left = w.dw - vd * w.dv
    further = absolute(left) > 16 * w.epsilon * absolute(w.dw)
    second = where(further, w.db / where(further, left, 1.0), 0.0)
    first = where(usable, w.cb / pivot - vd * second, 0.0)
    w.x = first * w.c + second * w.d
