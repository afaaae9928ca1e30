"""LSQR and LSMR with SciPy's signatures and results."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.errors import InvalidMatrix
from ...core.linop import LinOp
from ...core.operator_conversions import as_linop
from ...core.status import Stop
from ...core.suggest import checked_keywords
from ..least_squares.base import LeastSquaresSolver
from ..least_squares.lsmr import Lsmr
from ..least_squares.lsqr import Lsqr
from ..least_squares.result import LeastSquaresResult
from .krylov import _vector


@checked_keywords()
def lsqr(
    A: Any,
    b: Any,
    damp: float = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    conlim: float = 1e8,
    iter_lim: int | None = None,
    show: bool = False,
    calc_var: bool = False,
    x0: Any = None,
) -> tuple[Any, ...]:
    """Minimize ``|A x - b|`` by LSQR; see ``scipy.sparse.linalg.lsqr`` and :class:`Lsqr`.

    Returns
    -------
    x : array, shape (n,) or (n, k)
        The solution, or the last iterate.
    istop : int
        The rule that ended the solve, as in SciPy: 1 and 2 (4 and 5 by the precision) are
        solutions, 3 and 6 the limit on the condition number, 7 any other reason. Rules are tested
        with true residuals.
    itn : int
        Number of iterations.
    r1norm, r2norm : float
        Norms of ``b - A x``, without and with ``damp (x - x0)`` appended.
    anorm, acond : float
        Estimates of the Frobenius norm and the condition number.
    arnorm, xnorm : float
        Norms of ``A.H @ (b - A x) - damp^2 (x - x0)`` and of ``x``.
    var : array, shape (n,)
        With ``calc_var``, estimates of the diagonal of the inverse of ``A.H @ A + damp^2``, else
        zeros.

    Raises
    ------
    InvalidMatrix
        If ``A`` has NaN or Inf, or its products have.

    Notes
    -----
    For a block of right-hand sides, the numbers are arrays of shape (k,).

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]))
    >>> x, istop, itn, *norms = wl.linalg.lsqr(A, np.array([0.0, 1.0, -1.0]))
    >>> np.round(x, 6) + 0.0, istop
    (array([ 0.666667, -0.333333]), 2)
    """
    operator = as_linop(A)
    options = {"damp": damp, "atol": atol, "btol": btol, "conlim": conlim, "calc_var": calc_var}
    limit = 2 * operator.shape[1] if iter_lim is None else iter_lim
    result = _solved(Lsqr, operator, b, x0, limit, show, options)
    variance = np.zeros(operator.shape[1]) if result.variance is None else result.variance
    return (
        result.x, *_rule_and_count(result), result.residual_norm, result.damped_norm,
        result.operator_norm, result.condition, result.normal_residual_norm, result.x_norm,
        variance,
    )  # fmt: skip


@checked_keywords()
def lsmr(
    A: Any,
    b: Any,
    damp: float = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    conlim: float = 1e8,
    maxiter: int | None = None,
    show: bool = False,
    x0: Any = None,
) -> tuple[Any, ...]:
    """Minimize ``|A x - b|`` by LSMR; see ``scipy.sparse.linalg.lsmr`` and :class:`Lsmr`.

    Returns
    -------
    x : array, shape (n,) or (n, k)
        The solution, or the last iterate.
    istop, itn : int
        As for :func:`lsqr`.
    normr, normar : float
        Norms of ``b - A x`` and of ``A.H @ (b - A x) - damp^2 (x - x0)``.
    norma, conda : float
        Estimates of the Frobenius norm and the condition number.
    normx : float
        Norm of ``x``.

    Raises
    ------
    InvalidMatrix
        If ``A`` has NaN or Inf, or its products have.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]))
    >>> x, istop, itn, *norms = wl.linalg.lsmr(A, np.array([1.0, 0.0, -1.0]))
    >>> np.round(x, 6), istop
    (array([ 1., -1.]), 1)
    """
    operator = as_linop(A)
    options = {"damp": damp, "atol": atol, "btol": btol, "conlim": conlim}
    limit = min(operator.shape) if maxiter is None else maxiter
    result = _solved(Lsmr, operator, b, x0, limit, show, options)
    return (
        result.x, *_rule_and_count(result), result.residual_norm, result.normal_residual_norm,
        result.operator_norm, result.condition, result.x_norm,
    )  # fmt: skip


def _solved(
    kind: type[LeastSquaresSolver],
    A: LinOp,
    b: Any,
    x0: Any,
    limit: int,
    show: bool,
    options: dict[str, Any],
) -> LeastSquaresResult:
    b = _vector(np.atleast_1d(b) if np.ndim(b) == 0 else b, A.shape[0])
    x0 = None if x0 is None else _vector(x0, A.shape[1])
    result = kind(A, maxiter=limit, **options).solve(b, x0)
    if show:
        print(result)
    if Stop.NOT_FINITE in result.stops:
        raise InvalidMatrix(
            f"{kind.__name__.lower()}: A has NaN or Inf, or its products have: there is no "
            "solution. Replace these entries; numpy.isfinite(A.data) shows them"
        )
    return result


def _rule_and_count(result: LeastSquaresResult) -> tuple[Any, Any]:
    """Return ``istop`` and the iterations, numbers for one right-hand side."""
    if np.ndim(result.residual_norm) == 0:
        return int(result.rules[0]), result.iterations
    return result.rules, result.column_iterations
