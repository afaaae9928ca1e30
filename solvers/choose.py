"""Choosing a solver and a preconditioner for a matrix, and saying which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from ..core.errors import InvalidArgument, InvalidMatrix, SolveInterrupted
from ..core.formats import Csr, Matrix
from ..core.linop import LinOp
from ..core.loggers import Logger
from ..core.operator import as_linop
from ..core.result import Result
from ..core.status import Stop
from ..core.stopping import Criterion
from .gmres import Gmres, checked_restart
from .krylov import KrylovSolver
from .preconditioners import Jacobi, preconditioner
from .registry import SOLVERS

#: Cycle length of GMRES when nothing is known of the matrix: SciPy's 20 stalls on many real
#: matrices where 30 does not.
RESTART = 30

#: Numbers in a basis of GMRES, over all columns, up to which it is not restarted: those of 1000
#: unknowns and one column. On two cores of an EPYC (22 November 2026; rtol 1e-8, milliseconds,
#: restarted by 30 and not at all) that solves west0067 (40 without success, 0.8) and
#: dlmc_tf_vd80_ffn2 (340 without success, 65), and is sooner done with recirc_flow (8.7, 3.9) and
#: pde900 (22, 17). Larger ones that do not converge would pay for it: 1138_bus (180, 1180) and
#: cryg2500 (530, 13000).
WHOLE_BASIS = 2**20

#: Why a column that one method gave up on is worth another method.
_WORTH_ANOTHER = (Stop.INDEFINITE, Stop.BREAKDOWN, Stop.STAGNATED, Stop.NOT_FINITE)


def solve(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    method: str = "auto",
    M: Any = "auto",
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    restart: int | None = None,
    stop: Criterion | None = None,
    callback: Callable[[Any], Any] | None = None,
    progress: bool = False,
    loggers: Sequence[Logger] = (),
) -> Result:
    """Solve ``A x = b``, choosing what is not said; the result's ``notes`` say what was chosen.

    Parameters
    ----------
    A : LinOp, matrix of wollemi, SciPy, CuPy or PyTorch, or array, shape (n, n)
        The operator.
    b : array, shape (n,) or (n, k)
        Right-hand sides.
    x0 : array, of the shape of b, optional
        Where to start; zero by default.
    method : {'auto', 'cg', 'bicgstab', 'cgs', 'gmres'}
        By default CG for a Hermitian matrix with a positive diagonal, followed by GMRES should it
        turn out indefinite, and BiCGSTAB for all others, followed by GMRES should it break down.
    M : {'auto', 'jacobi', 'none'}, LinOp or callable
        The preconditioner; by default Jacobi where the diagonal has no zero.
    rtol, atol : float
        Stop at ``norm(b - A x) <= max(rtol * norm(b), atol)``, per column.
    maxiter : int, optional
        Iterations at most; ``10 n`` by default.
    restart : int, optional
        Cycle length of GMRES; by default 30, or as many as there are unknowns in a small system.
    stop : Criterion, optional
        Replaces ``rtol``, ``atol`` and ``maxiter``; see :mod:`wollemi.stop`.
    callback, progress, loggers
        As for :meth:`KrylovSolver.solve`.

    Returns
    -------
    Result
        Unpacks into ``x, info``.

    Raises
    ------
    InvalidArgument, InvalidMatrix, ShapeMismatch
        If the input does not make a system.
    SolveInterrupted
        On Ctrl-C; its ``result`` has what was reached, with the notes up to there.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> result = wl.solve(wl.Csr(np.array([[4.0, 1.0], [1.0, 3.0]])), np.array([1.0, 2.0]))
    >>> result.notes
    ['cg: the matrix is symmetric and its diagonal positive', 'M: jacobi, the diagonal has no zero']
    """
    operator = as_linop(A)
    # checked whether GMRES has its turn or not
    restart = _restart(operator, b) if restart is None else checked_restart(restart)
    names, why = _methods(method, operator)
    notes = [f"{names[0]}: {why}"]
    M, chosen = _preconditioner(M, operator)
    if chosen:
        notes.append(f"M: {chosen}")
    settings = {"rtol": rtol, "atol": atol, "maxiter": maxiter, "stop": stop}

    def attempt(name: str) -> Result:
        solver = _solver(name, operator, M, restart, settings)
        try:
            return solver.solve(b, x0, callback=callback, progress=progress, loggers=loggers)
        except SolveInterrupted as interruption:
            interruption.result = replace(cast(Result, interruption.result), notes=notes)
            raise

    result = attempt(names[0])
    for name in names[1:]:
        if not any(s in _WORTH_ANOTHER for s in result.stops):
            break
        notes.append(f"{name}: {names[0]} ended with {result.reason.partition(':')[0]}")
        second = attempt(name)
        result = replace(second, seconds=result.seconds + second.seconds)
    return replace(result, notes=notes)


def _solver(name: str, A: LinOp, M: Any, restart: int, settings: dict[str, Any]) -> KrylovSolver:
    if name == "gmres":
        return Gmres(A, M, restart=restart, **settings)
    return SOLVERS[name](A, M, **settings)


def _restart(A: LinOp, b: Any) -> int:
    n = A.shape[0]
    shape: tuple[int, ...] = getattr(b, "shape", ())
    columns = int(shape[1]) if len(shape) == 2 else 1
    return max(n, 1) if n * n * columns <= WHOLE_BASIS else RESTART


def _methods(method: str, A: LinOp) -> tuple[list[str], str]:
    """Return the methods to try in order, and why the first."""
    if method != "auto":
        if method not in SOLVERS:
            raise InvalidArgument(
                f"no method is called {method!r}; known: auto, {', '.join(SOLVERS)}"
            )
        return [method], "as asked"
    if not isinstance(A, Matrix):
        return ["gmres"], "the operator's entries are not known"
    if not _is_hermitian(A):
        return ["bicgstab", "gmres"], "the matrix is not symmetric"
    kind = "Hermitian" if A.dtype.kind == "c" else "symmetric"
    diagonal = A.executor.to_host(A.diagonal())
    if np.all(np.real(diagonal) > 0):
        return ["cg", "gmres"], f"the matrix is {kind} and its diagonal positive"
    return ["gmres"], f"the matrix is {kind} but its diagonal is not positive: it is indefinite"


def _is_hermitian(A: Matrix) -> bool:
    """Return whether the matrix equals its conjugate transpose to rounding."""
    if A.shape[0] != A.shape[1]:
        return False
    rows: Csr = A.asformat("csr").without_duplicates()
    columns = rows.transpose().conj()
    executor = A.executor
    pattern = zip((rows.indptr, rows.indices), (columns.indptr, columns.indices), strict=True)
    if not all(np.array_equal(executor.to_host(a), executor.to_host(b)) for a, b in pattern):
        return False
    a, b = executor.to_host(rows.data), executor.to_host(columns.data)
    slack = 8 * np.finfo(a.dtype).eps
    return bool(np.all(np.abs(a - b) <= slack * (np.abs(a) + np.abs(b))))


def _preconditioner(M: Any, A: LinOp) -> tuple[Any, str]:
    """Return the preconditioner and why it was chosen, if it was."""
    if not isinstance(M, str) or M != "auto":
        return preconditioner(M, A), ""
    if not isinstance(A, Matrix) or A.shape[0] != A.shape[1]:
        return None, ""
    try:
        return Jacobi(A), "jacobi, the diagonal has no zero"
    except InvalidMatrix as error:
        return None, str(error).partition("; ")[0].replace("Jacobi: ", "none, ")
