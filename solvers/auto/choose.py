"""``wl.solve``: choose a solver and a preconditioner for a matrix, and report the choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...core.capture import SOLVES
from ...core.distributed.shared import over_groups
from ...core.errors import InvalidArgument
from ...core.factors import whole_number
from ...core.formats import Csr, Matrix
from ...core.linop import LinOp
from ...core.loggers import Logger
from ...core.operator_conversions import as_linop
from ...core.result import Result
from ...core.stopping import Criterion
from ...core.suggest import checked_keywords
from ..batch.choose import is_batch, solve_batch
from .accuracy import with_note_on_rows
from .attempts import Attempts
from .components import solve_components
from .dense import is_small, shortest_of_small, solve_small
from .methods import RequestedMethod, SolveLimits, belongs_to, parsed_method
from .null_space import constant_null_space, solve_projected
from .plan import Question, SolvePlan, planned
from .properties import Hints, hints_of
from .rectangular import solve_rectangular

#: The values of ``effort``.
EFFORTS = ("fast", "normal", "thorough")


@checked_keywords(remedy=belongs_to)
@over_groups
def solve(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    method: Any = "auto",
    M: Any = "auto",
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    restart: int | None = None,
    stop: Criterion | None = None,
    near_null: Any = None,
    coordinates: Any = None,
    block_size: int | None = None,
    symmetric: bool | None = None,
    positive_definite: bool | None = None,
    budget: float | None = None,
    effort: str = "normal",
    callback: Callable[[Any], Any] | None = None,
    progress: bool = False,
    loggers: Sequence[Logger] = (),
) -> Result:
    """Solve ``A x = b``; the method and the preconditioner are chosen for the matrix.

    Parameters
    ----------
    A : LinOp, matrix of wollemi, SciPy, CuPy or PyTorch, or array, shape (n, n) or (m, n)
        The operator, or a batch of matrices. CG or BiCGSTAB solves the systems of a batch, and each
        failed system is solved separately. For a rectangular matrix, :class:`Lsmr` minimizes
        ``|A x - b|``, and ``rtol`` is its ``atol`` and ``btol`` unless ``method`` sets them.
    b : array, shape (m,) or (m, k)
        Right-hand sides.
    x0 : array, of the shape of b, optional
        Initial guess; zero by default.
    method : str, type, Settings or solver
        ``"auto"``; ``"direct"`` or the name of a solver, ``"cg"``, also with options,
        ``"idr:s=8"``; its class; settings, ``Gmres(restart=50)``; or a solver, with its options.
        Tolerances and limits of settings take precedence over the limits of the call.
    M : {"auto", "none"}, str, Settings, LinOp or callable
        The preconditioner; chosen with the method by default.
    rtol, atol : float
        Stop at ``norm(b - A x) <= max(rtol * norm(b), atol)``, per column.
    maxiter : int, optional
        Iteration limit of each attempt; ``10 n`` by default.
    restart : int, optional
        Cycle length of GMRES, or of the requested method. The default is 30, or the number of
        unknowns of a small system.
    stop : Criterion, optional
        Replaces ``rtol``, ``atol`` and ``maxiter``; see :mod:`wollemi.stop`. An iteration limit
        holds for each attempt, a time limit for all attempts together.
    near_null : array, shape (n,) or (n, m), optional
        Vectors that the matrix nearly maps to zero, for multigrid.
    coordinates : array, shape (nodes, d), optional
        Positions of the nodes of an elasticity problem, for its rigid body modes.
    block_size : int, optional
        Unknowns per node; by default, blocks are searched for in the pattern.
    symmetric, positive_definite : bool, optional
        Known properties of the matrix; by default, its entries are examined.
    budget : float, optional
        Time limit in seconds of all attempts together. It interrupts neither a set-up nor a
        factorization.
    effort : {"normal", "fast", "thorough"}
        ``"fast"`` stops when the candidates that are likely to succeed have failed; ``"thorough"``
        finally gives every method the full number of iterations.
    callback, progress, loggers
        As for :meth:`KrylovSolver.solve`, in every attempt.

    Returns
    -------
    Result, or BatchResult of a batch
        The result of the attempt that succeeded, or the best result, with the time of all attempts;
        unpacks into ``x, info``. Columns that one attempt solved keep their solution in the next
        one. ``result.attempts`` lists the attempts.

    Raises
    ------
    InvalidArgument, InvalidMatrix, ShapeMismatch
        If the input does not define a system or is not finite, or if ``restart`` is given for a
        method without cycles.
    SolveInterrupted
        On Ctrl-C; its ``result`` is the best one so far, with the attempts until then.

    Notes
    -----
    Dense factors solve systems of up to about 250 unknowns if they are regular and ``x0``,
    ``maxiter``, ``stop``, ``restart`` and the properties of the matrix are left out: this takes
    less time than the set-up of an iterative solver. ``result.condition`` is then a lower bound of
    the condition number.

    The candidates for other systems depend on the matrix: CG with Jacobi, incomplete Cholesky
    factors or multigrid for a Hermitian one with a positive diagonal, MINRES for other Hermitian
    ones, BiCGSTAB and GMRES with Jacobi, incomplete LU factors or multigrid for others, and a
    factorization (banded, dense or sparse). The time of set-up, iterations and factorization of
    each candidate is estimated, and the cheapest candidate comes first. An attempt ends early if
    another candidate is expected to finish before its remaining iterations. Candidates that gave up
    are retried if the others fail. If ``maxiter`` or ``stop`` is given, there is no factorization;
    with ``stop``, there are no incomplete factors either.

    Finally, all methods are tried one after the other: with 1000 iterations each, or with the full
    number if ``maxiter`` or ``stop`` is given. Hence a system that one of the methods solves by
    itself with the same tolerance, ``M`` and ``maxiter`` is also solved here.

    Properties, arrays, recorded iterations and small factors, of up to 64 MiB or the size of the
    matrix, are kept with a wollemi matrix for the next call, which then starts with the candidate
    that solved the last system.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0], [1.0, 3.0]]))
    >>> result = wl.solve(A, np.array([1.0, 2.0]))
    >>> result.notes[0]
    'direct: the matrix is small; dense factors take less time than the set-up of iterations'
    >>> wl.solve(A, np.array([1.0, 2.0]), maxiter=10).notes
    ['cg: the matrix is symmetric and its diagonal positive', 'M: jacobi, the diagonal has no zero']
    """
    limits_of_call = SolveLimits(rtol, atol, maxiter, stop)
    requested_method, limits = parsed_method(method, M).without_limits(limits_of_call)
    hints = hints_of(near_null, coordinates, block_size, symmetric, positive_definite)
    call = SolveCall(
        requested_method, limits, restart, hints, budget, effort, callback, progress, loggers
    )
    if isinstance(A, np.ndarray) and A.ndim > 2:
        A = Csr(A)  # its first axes count matrices
    if is_batch(A):
        return _solve_batch(A, b, x0, call)
    if isinstance(x0, str):
        raise InvalidArgument(f"x0: expected an array, got {x0!r}; write method={x0!r}")
    operator = as_linop(A)
    operator.executor.refuse_capture(SOLVES)
    rectangular = operator.shape[0] != operator.shape[1]
    _require_valid(call, operator, rectangular)
    if rectangular if requested_method.is_auto else requested_method.is_least_squares:
        rtol, atol, maxiter, stop = limits
        unused = {
            "restart": restart, "stop": stop, "budget": budget, "progress": progress,
            "loggers": loggers,
        }  # fmt: skip
        return solve_rectangular(
            operator, b, x0, method=requested_method, rtol=rtol, atol=atol, maxiter=maxiter,
            callback=callback, unused=unused,
        )  # fmt: skip
    result = _solve_square(operator, b, x0, call, _conversion_notes(A, operator))
    return with_note_on_rows(operator, b, result, limits.rtol)


class SolveCall(NamedTuple):
    """The options of a call of :func:`solve`; limits of the method are moved to ``limits``."""

    method: RequestedMethod
    limits: SolveLimits
    restart: int | None
    hints: Hints
    budget: float | None
    effort: str
    callback: Callable[[Any], Any] | None
    progress: bool
    loggers: Sequence[Logger]

    @property
    def is_watched(self) -> bool:
        """Whether the caller observes the iterations."""
        return self.callback is not None or self.progress or bool(self.loggers)

    @property
    def is_free(self) -> bool:
        """Whether method and preconditioner are to be chosen, with no limits but tolerances."""
        limits = self.limits
        limited = limits.maxiter is not None or limits.stop is not None or self.restart is not None
        return self.method.is_open and not (limited or self.is_watched or self.hints.any_stated)

    def repeated(self) -> Callable[..., Result]:
        """Return :func:`solve` with these options, but for ``rtol``, ``atol`` and ``stop``."""
        return partial(
            solve, method=self.method.settings, M=self.method.M, maxiter=self.limits.maxiter,
            restart=self.restart, budget=self.budget, effort=self.effort, callback=self.callback,
            progress=self.progress, loggers=self.loggers, near_null=self.hints.near_null,
            coordinates=self.hints.coordinates, block_size=self.hints.block_size,
            symmetric=self.hints.symmetric, positive_definite=self.hints.positive_definite,
        )  # fmt: skip


def _solve_batch(A: Any, b: Any, x0: Any, call: SolveCall) -> Any:
    """Solve the systems of a batch; options without a meaning for batches are refused."""
    hints = call.hints
    unused: dict[str, Any] = {
        "restart": call.restart, "near_null": hints.near_null is not None, "budget": call.budget,
        "coordinates": hints.coordinates is not None, "block_size": hints.block_size,
        "callback": call.callback, "progress": call.progress, "loggers": call.loggers,
    }  # fmt: skip
    return solve_batch(
        A, b, x0, kind=call.method.kind, M=call.method.M, alone=solve,
        settings=call.limits._asdict() | dict(call.method.options), unused=unused,
    )  # fmt: skip


def _require_valid(call: SolveCall, operator: LinOp, rectangular: bool) -> None:
    """Raise InvalidArgument unless the options suit the shape of the operator."""
    if call.method.is_direct and rectangular:
        raise InvalidArgument(
            f"method: the direct solver needs a square matrix, got {operator.shape[0]}x"
            f"{operator.shape[1]}; use method='lsmr'"
        )
    if call.limits.maxiter is not None:
        whole_number(call.limits.maxiter, "maxiter, the limit of iterations")
    effort, budget = call.effort, call.budget
    if effort not in EFFORTS:
        raise InvalidArgument(f"effort: expected one of {', '.join(EFFORTS)}, got {effort!r}")
    if budget is not None and not (isinstance(budget, (int, float, np.number)) and budget > 0):
        raise InvalidArgument(f"budget: expected a positive number of seconds, got {budget!r}")


def _conversion_notes(source: Any, operator: LinOp) -> list[str]:
    """Return a note if a solve converted integers or booleans, otherwise nothing."""
    dtype = getattr(source, "dtype", None)
    if getattr(dtype, "kind", "f") not in "bui" or operator.dtype == dtype:
        return []
    return [f"A: values of {dtype} were converted to {operator.dtype}, in which solvers compute"]


def _column_count(b: Any) -> int:
    """Return the number of right-hand sides."""
    shape: tuple[int, ...] = getattr(b, "shape", ())
    return int(shape[1]) if len(shape) == 2 else 1


def _solve_square(
    operator: LinOp, b: Any, x0: Any, call: SolveCall, converted: list[str]
) -> Result:
    """Solve a square system: a small one by dense factors, another one by attempts.

    ``converted`` are the notes on the conversion of the user's matrix.
    """
    operator._follow_writes()
    requested_method, hints, (rtol, atol, maxiter, stop) = call.method, call.hints, call.limits
    if hints.any_stated and operator.partition is None:  # members of a group give their own rows
        hints.check(operator.shape[0])
    matrix = None
    if x0 is None and call.is_free and isinstance(operator, Matrix) and operator.partition is None:
        matrix = operator
    tiny = matrix is not None and is_small(matrix)
    small = solve_small(operator, b, rtol, atol) if tiny else None
    if small is not None:
        return replace(small, notes=[*converted, *small.notes])
    counted, stops = maxiter is not None, stop is not None
    columns = _column_count(b)
    question = Question(
        requested_method, columns, rtol, call.restart, counted, stops, call.effort, hints
    )
    plan = planned(operator, question)
    again = call.repeated()
    if (
        x0 is None
        and stop is None
        and (null := constant_null_space(operator, requested_method)) is not None
    ):
        return solve_projected(operator, null, partial(again, operator), b, rtol, atol)
    small = shortest_of_small(operator, b, rtol, atol) if tiny else None
    if small is not None:
        return replace(small, notes=[*converted, *small.notes])
    separately = None
    if matrix is not None:
        separately = partial(solve_components, matrix, b, again, rtol, atol)
    return _solve_by_attempts(operator, b, x0, call, plan, converted, separately)


def _solve_by_attempts(
    operator: LinOp,
    b: Any,
    x0: Any,
    call: SolveCall,
    plan: SolvePlan,
    converted: list[str],
    separately: Callable[[bool], Result | None] | None,
) -> Result:
    """Try the candidates of a plan, the one that solved the last system first."""
    rtol, atol, maxiter, stop = call.limits
    winner = plan.winner()
    remembered = [f"{c.name}: it solved the last system" for c in winner if plan.differs_from(c)]
    attempts = Attempts(
        operator, b, x0, rtol, atol, maxiter, stop,
        notes=[*converted, *plan.notes, *remembered],
        watching={"callback": call.callback, "progress": call.progress, "loggers": call.loggers},
        seconds_left=call.budget,
        make_pool=plan.pool,
        is_open=call.method.is_auto,
        separately=separately,
        made_in=plan.setup_seconds,
        is_remembered=bool(remembered),
    )  # fmt: skip
    result = attempts.run([*winner, *plan.first], plan.tail)
    plan.keep(attempts)
    return result
