"""Steps and stopping rules of the Golub-Kahan process, which LSQR and LSMR share.

The process computes ``A v_i = beta_(i+1) u_(i+1) + alpha_i u_i`` and
``A^H u_i = alpha_i v_i + beta_i v_(i-1)``. Vectors are stored as the products return them, without
a pass that normalizes them: ``u`` has the norm ``nu``, ``v`` the norm ``nv``. The factor ``scale``,
``1 / alpha_1``, keeps these norms near one for every size of ``A``.

With a Hermitian positive definite preconditioner ``M = L L^H``, the process is applied to ``A L``,
without computing ``L``: ``p`` is the product with ``A^H`` and ``v = M p``, and their norm is
``sqrt(<p, v>)``. Without a preconditioner, ``v`` is ``p``.

References
----------
G. Golub and W. Kahan, Calculating the singular values and pseudo-inverse of a matrix, SIAM J.
Numer. Anal. 2 (1965). S. R. Arridge, M. M. Betcke and L. Harhanen, Iterated preconditioned LSQR
method for inverse problems on unstructured grids, Inverse Problems 30 (2014), algorithm 2, for
``M`` without a factor.
"""

from __future__ import annotations

from typing import Any

from ...core.step import CONVERGED, Steps, dot, norm2, real, sqrt, where

step = Steps("bidiagonal", vectors="u q p t v", reals="scale nu nv alpha beta")

#: For the true residual, for running and finished columns: vectors of m rows and of n rows.
measured = Steps(
    "least", vectors="r x t z", reals="true_r2 true_normal2 true_t2 true_x2", status=False
)


@measured
def measure_residual(w: Any) -> None:
    """Set true_r2 = |r|^2."""
    w.true_r2 = norm2(w.r)


@measured
def measure_normal(w: Any) -> None:
    """Set true_normal2 = <t, z>, true_t2 = |t|^2, true_x2 = |x|^2 with t = A^H r, z = M t."""
    w.true_normal2 = real(dot(w.t, w.z))
    w.true_t2 = norm2(w.t)
    w.true_x2 = norm2(w.x)


@step
def left(w: Any) -> None:
    """Set u = A v / alpha - (alpha / beta) u with q = A v, in the stored norms."""
    w.u = (w.scale / w.nv) * w.q - (w.scale * w.alpha / w.nu) * w.u
    w.nu = sqrt(norm2(w.u))
    w.beta = w.nu / w.scale


def next_right(w: Any) -> None:
    """Set p = A^H u / beta - (beta / alpha) p with t = A^H u; p = 0 for u = 0."""
    w.p = where(w.nu > 0, w.scale / w.nu, 0) * w.t - (w.scale * w.beta / w.nv) * w.p


@step
def right(w: Any) -> None:
    """Set p = A^H u / beta - (beta / alpha) p with t = A^H u; M is applied next."""
    next_right(w)


def rotation(a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Return ``c, s, r`` of the rotation that takes ``(a, b)`` to ``(r, 0)``."""
    r = sqrt(a * a + b * b)
    safe = where(r > 0, r, 1)
    return where(r > 0, a / safe, 1), b / safe, r


def smaller(a: Any, b: Any) -> Any:
    """Return the smaller of two values of a column."""
    return where(a < b, a, b)


def larger(a: Any, b: Any) -> Any:
    """Return the larger of two values of a column."""
    return where(a > b, a, b)


def stop_by_rules(w: Any, test2: Any, inverse_condition: Any, norm_x: Any) -> None:
    """Halt if a rule of Paige and Saunders holds, and set istop to its number.

    1: ``|r| <= btol |b| + atol |A| |x|``; 2: ``|A^H r| <= atol |A| |r|``; 3: the condition number
    has reached conlim; 4 to 6: the same with the precision instead of the tolerances. With M, the
    norm of x in its metric is not known, and |b| serves as a lower bound of ``|A| |x|``.
    """
    product = where(w.preconditioned, w.norm_b, w.norm_a * norm_x)
    test1 = w.norm_r / w.norm_b
    ratio = product / w.norm_b
    relative = test1 / (1 + ratio)
    precision = 0.5 * w.epsilon
    by_precision = where(
        relative <= precision,
        4,
        where(test2 <= precision, 5, where(inverse_condition <= precision, 6, 0)),
    )
    w.istop = where(
        test1 <= w.btol + w.atol * ratio,
        1,
        where(test2 <= w.atol, 2, where(inverse_condition <= w.ctol, 3, by_precision)),
    )
    w.observe(w.norm_normal)
    w.halt(CONVERGED, when=w.istop > 0)
