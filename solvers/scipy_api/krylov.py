"""Krylov solvers with SciPy's signatures, defaults and ``info`` codes.

SciPy accepts one right-hand side; these functions also accept a block. ``docs/first-solve.md``
lists the other differences.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ...core.batch import BatchMatrix
from ...core.distributed.shared import over_groups
from ...core.errors import InvalidArgument, InvalidMatrix
from ...core.factors import whole_number
from ...core.linop import LinOp
from ...core.operator_conversions import as_linop
from ...core.result import Result
from ...core.status import Stop
from ...core.stopping import Iterations
from ...core.suggest import checked_keywords
from ..auto.kept import borrowed_solver
from ..batch.choose import is_batch
from ..driver.hermitian import gives_numbers
from ..krylov.base import KrylovSolver
from ..krylov.bicgstab import Bicgstab
from ..krylov.cg import Cg
from ..krylov.cgs import Cgs
from ..krylov.gmres import Gmres

Callback = Callable[[Any], Any] | None

#: The warning of gmres if ``callback_type`` is not specified, as in SciPy.
_UNSPECIFIED = (
    "gmres was called without specifying `callback_type`. SciPy will change the default; say "
    "callback_type='pr_norm' for norms and maxiter in cycles, or 'legacy' for norms and maxiter in "
    "iterations"
)


def _run(
    kind: type[KrylovSolver], A: Any, b: Any, x0: Any, M: Any, callback: Callback, **settings: Any
) -> tuple[Any, int]:
    if is_batch(A):
        return _of_batch(kind, A, b, x0, M, callback, settings)
    result = _solve(kind, as_linop(A), b, x0, M, {"callback": callback}, settings)
    return result.x, result.info


def _of_batch(
    kind: type[KrylovSolver],
    A: Any,
    b: Any,
    x0: Any,
    M: Any,
    callback: Callback,
    settings: dict[str, Any],
) -> tuple[Any, Any]:
    """Solve the systems of a batch; ``info`` has one code for each."""
    if callback is not None or isinstance(x0, str):
        raise InvalidArgument(
            "a batch of systems takes neither a callback nor x0='Mb'; solve A[k] with them"
        )
    x, info = kind(A, M, **settings).solve(b, x0)
    return x, info


def _solve(
    kind: type[KrylovSolver],
    A: LinOp,
    b: Any,
    x0: Any,
    M: Any,
    callbacks: dict[str, Any],
    settings: dict[str, Any],
) -> Result:
    b = _vector(b, A.shape[0])
    A._follow_writes()
    with borrowed_solver(kind, A, M, **settings) as solver:
        result = solver.solve(b, _start(solver, b, x0), **callbacks)
        require_numbers(solver, result)
    return result


def require_numbers(solver: KrylovSolver, result: Result) -> None:
    """Raise InvalidMatrix if a solve met NaN because the matrix has NaN or Inf."""
    if Stop.NOT_FINITE not in result.stops or solver.partition is not None:
        return  # members of a group hold different rows
    if not gives_numbers(solver.A):
        raise InvalidMatrix(
            f"{type(solver).__name__.lower()}: A has NaN or Inf, or its products have: there is no "
            "solution. Replace these entries; numpy.isfinite(A.data) shows them"
        )


def _start(solver: KrylovSolver, b: Any, x0: Any) -> Any:
    """Return the initial guess: ``x0``, or ``M @ b`` for ``'Mb'``."""
    if isinstance(x0, str):
        if x0 != "Mb":
            raise InvalidArgument(f"x0: expected an array or 'Mb' for M @ b, got {x0!r}")
        return b if solver.M is None else solver.M.apply(b)
    return None if x0 is None else _vector(x0, solver.shape[0])


def _vector(b: Any, rows: int) -> Any:
    """Return one column as a vector, as SciPy does; other shapes are not changed."""
    shape = getattr(b, "shape", None)
    if shape is None:
        shape = np.shape(b) if isinstance(b, (list, tuple)) else ()
    if tuple(shape) != (rows, 1):
        return b
    b = b if hasattr(b, "reshape") and not isinstance(b, np.matrix) else np.asarray(b)
    return b.reshape(rows)


class SolverFunction(Protocol):
    """A function with the signature that SciPy gives most solvers of square systems."""

    def __call__(
        self,
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
        """Solve ``A x = b``."""


def scipy_function(kind: type[KrylovSolver], method: str) -> SolverFunction:
    """Return SciPy's function for a solver, named like the solver in lower case.

    Parameters
    ----------
    kind : type
        The solver class. Its parameters ``rtol``, ``atol``, ``maxiter`` and ``M`` get SciPy's
        defaults.
    method : str
        The method's name in the first line of the documentation.
    """
    name = kind.__name__.lower()

    def solver(
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
        return _run(kind, A, b, x0, M, callback, rtol=rtol, atol=atol, maxiter=maxiter)

    solver.__name__ = solver.__qualname__ = name
    solver.__doc__ = f"""Solve ``A x = b`` by {method}.

    See ``scipy.sparse.linalg.{name}`` and :class:`wollemi.solvers.{kind.__name__}`.

    Parameters
    ----------
    A : LinOp, matrix or array, shape (n, n)
        The operator.
    b : array, shape (n,) or (n, k)
        The right-hand sides.
    x0 : array or 'Mb', optional
        The first iterate; zeros by default.
    rtol, atol : float
        A column has converged if its residual norm is at most ``max(rtol * norm(b), atol)``.
    maxiter : int, optional
        The largest number of iterations.
    M : LinOp, matrix, callable or str, optional
        The preconditioner.
    callback : callable, optional
        Called with the iterate after each iteration.

    Returns
    -------
    x : array, shape (n,) or (n, k)
        The solution, or the best iterate; a single column is returned as a vector.
    info : int
        0 converged, positive the iterations done without success, negative a breakdown.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> x, info = wl.linalg.{name}(wl.Csr(np.diag([2.0, 4.0])), np.array([2.0, 2.0]))
    >>> np.round(x, 6), info
    (array([1. , 0.5]), 0)
    """
    return checked_keywords()(over_groups(solver))


cg = scipy_function(Cg, "conjugate gradients")
bicgstab = scipy_function(Bicgstab, "BiCGSTAB")
cgs = scipy_function(Cgs, "CGS")


@checked_keywords()
@over_groups
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
    x0 : array or 'Mb', optional
        Initial guess; ``'Mb'`` means ``M @ b``, in all these functions.
    maxiter : int, optional
        Limit of restart cycles, as in SciPy, or of iterations with a callback of type ``legacy``.
        ``10 n`` by default.
    callback_type : {'x', 'pr_norm', 'legacy'}, optional
        The callback's argument: the iterate at every restart, or the relative residual norm at
        every iteration (also for ``legacy``, the default, as in SciPy). ``M`` is applied from the
        right, so that the norm belongs to the original system.

    Returns
    -------
    x : array, shape (n,) or (n, k)
        The solution, or the best iterate; a single column is returned as a vector.
    info : int
        0 after convergence, else ``maxiter``, as in SciPy.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0], [2.0, 3.0]]))
    >>> x, info = wl.linalg.gmres(A, np.array([[1.0], [2.0]]), rtol=1e-10)
    >>> np.round(10 * x, 6), info
    (array([1., 6.]), 0)
    """
    if callback is not None and callback_type is None:
        warnings.warn(_UNSPECIFIED, DeprecationWarning, stacklevel=2)
    kind = callback_type or "legacy"
    if kind not in ("x", "pr_norm", "legacy"):
        raise InvalidArgument(
            f"callback_type: expected 'x', 'pr_norm' or 'legacy', got {callback_type!r}"
        )
    batch = isinstance(A, BatchMatrix)
    operator = A if batch else as_linop(A)
    n = max(operator.shape[0], 1)
    limit = 10 * n if maxiter is None else Iterations(maxiter).count
    length = min(whole_number(20 if restart is None else restart, "restart", 1), n)
    in_iterations = callback is not None and kind == "legacy"
    settings = {
        "rtol": rtol,
        "atol": atol,
        "restart": length,
        "maxiter": limit if in_iterations else limit * length,
    }
    if batch:
        return _of_batch(Gmres, A, b, x0, M, callback, settings)
    callbacks = {"callback" if kind == "x" else "norm_callback": callback}
    result = _solve(Gmres, operator, b, x0, M, callbacks, settings)
    return result.x, 0 if result.converged else max(int(limit), 1)
