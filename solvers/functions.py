"""The solvers with SciPy's signatures, defaults and ``info`` codes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.errors import InvalidArgument
from ..core.stopping import Iterations
from .bicgstab import Bicgstab
from .cg import Cg
from .cgs import Cgs
from .gmres import Gmres
from .krylov import KrylovSolver

Callback = Callable[[Any], Any] | None


def _run(
    solver: type[KrylovSolver], A: Any, b: Any, x0: Any, M: Any, callback: Callback, **settings: Any
) -> tuple[Any, int]:
    x, info = solver(A, M, **settings).solve(b, x0, callback=callback)
    return x, info


def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callback = None,
) -> tuple[Any, int]:
    """Solve ``A x = b`` by conjugate gradients; see ``scipy.sparse.linalg.cg`` and :class:`Cg`.

    Returns
    -------
    x : array, of the shape of b
        The solution, or the last iterate.
    info : int
        0 converged, positive the iterations done without success, negative a breakdown.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> x, info = wl.linalg.cg(wl.Csr(np.diag([2.0, 4.0])), np.array([2.0, 2.0]))
    >>> np.round(x, 6), info
    (array([1. , 0.5]), 0)
    """
    return _run(Cg, A, b, x0, M, callback, rtol=rtol, atol=atol, maxiter=maxiter)


def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callback = None,
) -> tuple[Any, int]:
    """Solve ``A x = b`` by BiCGSTAB; see ``scipy.sparse.linalg.bicgstab`` and :class:`Bicgstab`.

    Returns
    -------
    x : array, of the shape of b
        The solution, or the last iterate.
    info : int
        As for :func:`cg`.
    """
    return _run(Bicgstab, A, b, x0, M, callback, rtol=rtol, atol=atol, maxiter=maxiter)


def cgs(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callback = None,
) -> tuple[Any, int]:
    """Solve ``A x = b`` by CGS; see ``scipy.sparse.linalg.cgs`` and :class:`Cgs`.

    Returns
    -------
    x : array, of the shape of b
        The solution, or the last iterate.
    info : int
        As for :func:`cg`.
    """
    return _run(Cgs, A, b, x0, M, callback, rtol=rtol, atol=atol, maxiter=maxiter)


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    restart: int | None = None,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callback = None,
    callback_type: str | None = None,
) -> tuple[Any, int]:
    """Solve ``A x = b`` by restarted GMRES; see ``scipy.sparse.linalg.gmres`` and :class:`Gmres`.

    Parameters
    ----------
    maxiter : int, optional
        Restart cycles at most, as in SciPy; ``10 n`` by default.
    callback_type : {'x', 'pr_norm', 'legacy'}, optional
        What the callback gets: the iterate at every restart, or the relative residual norm at
        every iteration (``legacy`` too, and the default, as in SciPy). ``M`` is used from the
        right, so the norm is that of the system itself.

    Returns
    -------
    x : array, of the shape of b
        The solution, or the last iterate.
    info : int
        As for :func:`cg`.
    """
    kind = callback_type or "legacy"
    if kind not in ("x", "pr_norm", "legacy"):
        raise InvalidArgument(
            f"callback_type: expected 'x', 'pr_norm' or 'legacy', got {callback_type!r}"
        )
    restart = 20 if restart is None else restart
    solver = Gmres(A, M, restart=restart, rtol=rtol, atol=atol)
    cycles = 10 * max(solver.shape[0], 1) if maxiter is None else Iterations(maxiter).count
    count = cycles * (solver.cycle or 1)
    solver = Gmres(solver.A, solver.M, restart=restart, rtol=rtol, atol=atol, maxiter=count)
    if callback is None:
        result = solver.solve(b, x0)
    elif kind == "x":
        result = solver.solve(b, x0, callback=callback)
    else:
        result = solver.solve(b, x0, norm_callback=callback)
    return result.x, result.info
