"""Krylov solvers with SciPy's signatures that need a transpose, or a symmetric matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import BatchMatrix
from ...core.distributed.shared import over_groups
from ...core.errors import InvalidArgument
from ...core.formats import Identity
from ...core.linop import LinOp
from ...core.operator_conversions import as_linop
from ...core.status import Stop
from ...core.suggest import checked_keywords
from ..batch.choose import is_batch
from ..driver.as_preconditioner import as_preconditioner
from ..krylov.bicg import Bicg
from ..krylov.minres import Minres
from ..krylov.qmr import Qmr
from ..krylov.tfqmr import Tfqmr
from ..preconditioners import preconditioner
from .krylov import Callback, _of_batch, _run, _solve, scipy_function

#: Iteration limit per unknown, as in SciPy's MINRES.
MINRES_LIMIT = 5

#: Tolerance of the symmetry test: the machine epsilon to this power, as in SciPy.
_POWER = 1.0 / 3.0


bicg = scipy_function(Bicg, "BiCG")


@checked_keywords()
@over_groups
def tfqmr(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callback = None,
    show: bool = False,
) -> tuple[Any, int]:
    """Solve ``A x = b`` by TFQMR; see ``scipy.sparse.linalg.tfqmr`` and :class:`Tfqmr`.

    Parameters
    ----------
    maxiter : int, optional
        Limit of products with ``A``, as in SciPy, rounded to an even number; ``min(10000, 10 n)``
        by default. The callback is called after every second product.
    show : bool
        Whether to print the reason for the end.

    Returns
    -------
    x : array, shape (n,) or (n, k)
        The solution, or the best iterate; a single column is returned as a vector.
    info : int
        As for :func:`cg`.
    """
    batch = isinstance(A, BatchMatrix)
    operator = A if batch else as_linop(A)
    limit = min(10000, 10 * max(operator.shape[0], 1)) if maxiter is None else maxiter
    settings = {"rtol": rtol, "atol": atol, "maxiter": -(-limit // 2)}
    if batch:
        return _of_batch(Tfqmr, A, b, x0, M, callback, settings)
    result = _solve(Tfqmr, operator, b, x0, M, {"callback": callback}, settings)
    ended = result.converged or Stop.MAX_ITERATIONS in result.stops
    if show and ended and np.any(result.column_iterations):
        how = "converged due to reach TOL"
        how = how if result.converged else "not converged due to reach MAXIT"
        print(f"TFQMR: Linear solve {how} iterations {2 * result.iterations}")
    return result.x, result.info


@checked_keywords()
@over_groups
def qmr(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M1: Any = None,
    M2: Any = None,
    callback: Callback = None,
) -> tuple[Any, int]:
    """Solve ``A x = b`` by QMR; see ``scipy.sparse.linalg.qmr`` and :class:`Qmr`.

    Parameters
    ----------
    M1, M2 : LinOp, matrix or callable, optional
        Their product ``M2 M1`` approximates the inverse of ``A``. It is applied from the right,
        where SciPy applies ``M1`` from the left.

    Returns
    -------
    x : array, shape (n,) or (n, k)
        The solution, or the best iterate; a single column is returned as a vector.
    info : int
        As for :func:`cg`.
    """
    if is_batch(A):
        if M1 is not None and M2 is not None:
            raise InvalidArgument("qmr: a batch of systems takes M1 or M2; leave one of them out")
        M = M2 if M1 is None else M1
        return _run(Qmr, A, b, x0, M, callback, rtol=rtol, atol=atol, maxiter=maxiter)
    operator = as_linop(A)
    parsed = [preconditioner(M, operator) for M in (M2, M1)]
    factors = [as_preconditioner(M, operator) for M in parsed if M is not None]
    M = factors[0] @ factors[1] if len(factors) == 2 else factors[0] if factors else None
    return _run(Qmr, operator, b, x0, M, callback, rtol=rtol, atol=atol, maxiter=maxiter)


@checked_keywords()
@over_groups
def minres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    shift: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callback = None,
    show: bool = False,
    check: bool = False,
) -> tuple[Any, int]:
    """Solve ``(A - shift I) x = b`` by MINRES; see ``scipy.sparse.linalg.minres``, :class:`Minres`.

    Parameters
    ----------
    rtol : float
        Stop at ``norm(b - A x) <= rtol * norm(b)``. SciPy compares with norms of ``A`` and ``x``,
        which is looser.
    shift : float
        The multiple of the identity that is subtracted from ``A``.
    maxiter : int, optional
        ``5 n`` by default, as in SciPy.
    show : bool
        Whether to show a progress bar.
    check : bool
        Whether to check that ``A`` and ``M`` are symmetric, by products with one vector.

    Returns
    -------
    x : array, shape (n,) or (n, k)
        The solution, or the best iterate; a single column is returned as a vector.
    info : int
        As for :func:`cg`.

    Raises
    ------
    InvalidArgument
        If ``check`` finds an operator that is not symmetric, or if a batch is given with ``shift``,
        ``check`` or ``show``.
    """
    if is_batch(A):
        if shift or check or show:
            raise InvalidArgument("minres: a batch of systems takes no shift, check or show")
        limit = MINRES_LIMIT * max(A.shape[0], 1) if maxiter is None else maxiter
        return _of_batch(Minres, A, b, x0, M, callback, {"rtol": rtol, "maxiter": limit})
    operator = as_linop(A)
    n = max(operator.shape[0], 1)
    if check:
        _require_symmetric("A", operator)
        parsed = preconditioner(M, operator)
        if parsed is not None:
            _require_symmetric("M", as_preconditioner(parsed, operator))
    if shift:
        operator = operator - shift * Identity(n, dtype=operator.dtype, executor=operator.executor)
    settings = {"rtol": rtol, "maxiter": MINRES_LIMIT * n if maxiter is None else maxiter}
    watching = {"callback": callback, "progress": bool(show)}
    result = _solve(Minres, operator, b, x0, M, watching, settings)
    return result.x, result.info


def _require_symmetric(name: str, operator: LinOp) -> None:
    """Raise unless ``<A v, A v> = <v, A A v>`` for a vector of many frequencies."""
    rows = operator.shape[0]
    v = np.random.default_rng(0).standard_normal(rows)
    once = operator.apply(v)
    twice = operator.apply(once)
    to_host = operator.executor.to_host
    once, twice = (a if isinstance(a, np.ndarray) else to_host(a) for a in (once, twice))
    size = float(np.linalg.norm(once)) ** 2
    off = abs(size - np.vdot(twice, v))
    if off > (size + np.finfo(operator.dtype).eps) * np.finfo(operator.dtype).eps ** _POWER:
        raise InvalidArgument(
            f"{name}: expected a symmetric operator, but <{name} v, {name} v> differs from "
            f"<v, {name} {name} v>; use gmres or bicgstab"
        )
