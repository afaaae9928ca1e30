"""Choosing a solver and a preconditioner for a matrix, and saying which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ...core.distributed.shared import over_groups
from ...core.errors import InvalidArgument
from ...core.formats import Matrix
from ...core.linop import LinOp
from ...core.loggers import Logger
from ...core.operations import triangular
from ...core.operator import as_linop
from ...core.result import Result
from ...core.settings import Settings, option_names
from ...core.stopping import Criterion
from ..krylov.gmres import RESTART
from ..preconditioners import Amg, Ic, Ilu, Jacobi, Polynomial
from ..preconditioners.names import parsed
from ..registry import LEAST_SQUARES, SOLVERS
from ..scipy_api.least_squares import solve_rectangular
from .attempts import DIRECT, SHORT, Attempt, Attempts
from .facts import Facts, find_facts
from .kept import facts_of, kept_with
from .restarts import WHOLE_BASIS, about_restart, asked_restart, restart_for

#: The same for a last attempt, when others have failed: 2900 unknowns and one column.
LAST_BASIS = 2**23

#: Bytes of a dense matrix up to which factors are made: 8192 unknowns in float64. However much
#: fills in, they do not take more than twice that.
DIRECT_BYTES = 2**29

#: The same of larger matrices, whose factors are guessed: entries a row of a matrix with so many
#: rows, as nested dissection leaves of a grid in space, and the bytes that they may take.
FILL, FACTOR_BYTES = 8.0, 2**32

#: Iterations of an attempt with incomplete factors. Of the square matrices of public projects that
#: docs/solve-table.md lists, those that such factors solve take fewer.
FACTORED = 500

#: Iterations of CG with Jacobi before multigrid has its turn on a host: what its set-up and solve
#: take. On two cores of an EPYC (22 November 2026; 7-point Poisson, 20^3 to 60^3 points, rtol 1e-5
#: and 1e-8) that is the time of 370 to 550 such iterations, whatever the size.
WORTH_A_HIERARCHY = 500

#: Rows from which on multigrid comes first: on hosts where CG with Jacobi takes more than those
#: iterations even for the Poisson equation in space (3.7 for each point of an edge), on devices
#: from about 40^3 points on. Below, one kernel there does all iterations of CG.
ROWS_FOR_MULTIGRID = {"host": 150**3, "device": 40**3}

#: Iterations of CG with multigrid before the others have their turn. The Poisson equation takes 10,
#: rotated anisotropy 40, a biharmonic equation on 70^2 points 124.
CYCLES = 200

#: What M is where the diagonal has values without an inverse.
REPLACEMENT = 1.0


@over_groups
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
    A : LinOp, matrix of wollemi, SciPy, CuPy or PyTorch, or array, shape (n, n) or (m, n)
        The operator. If it is not square, ``|A x - b|`` is minimized by :class:`Lsmr`, with the
        columns scaled, and ``rtol`` is its ``atol`` and ``btol``.
    b : array, shape (m,) or (m, k)
        Right-hand sides.
    x0 : array, of the shape of b, optional
        Where to start; zero by default.
    method : str
        ``'auto'`` or the name of a solver, ``'cg'``. By default CG first for a Hermitian matrix
        with a positive diagonal, GMRES or MINRES for other Hermitian ones, BiCGSTAB or GMRES for
        all others, then the others as long as columns are not solved. With an ``M`` that varies,
        such as another solver, FCG and FGMRES take their places.
    M : {'auto', 'jacobi', 'none'}, Settings, LinOp or callable
        The preconditioner; by default Jacobi, with 1 where the diagonal has no inverse, and none
        when that does not do.
    rtol, atol : float
        Stop at ``norm(b - A x) <= max(rtol * norm(b), atol)``, per column.
    maxiter : int, optional
        Iterations of each attempt at most; ``10 n`` by default.
    restart : int, optional
        Cycle length of GMRES, or of the method that is asked for; by default 30, or as many as
        there are unknowns in a small system.
    stop : Criterion, optional
        Replaces ``rtol``, ``atol`` and ``maxiter``; see :mod:`wollemi.stop`. Its limit on
        iterations is that of each attempt, its limit on time that of all together.
    callback, progress, loggers
        As for :meth:`KrylovSolver.solve`, in every attempt.

    Returns
    -------
    Result
        That of the attempt that succeeded, or the best one, with the time of all; unpacks into
        ``x, info``. Columns that are solved by one attempt stay as they are in the next.

    Raises
    ------
    InvalidArgument, InvalidMatrix, ShapeMismatch
        If the input does not make a system, or ``restart`` is given to a method without cycles.
    SolveInterrupted
        On Ctrl-C; its ``result`` has the best that was reached, with the notes up to there.

    Notes
    -----
    Every attempt starts at ``x0``. Those that are likely to succeed have 1000 iterations at first.
    A matrix looks elliptic if it is symmetric and most of its rows have a positive diagonal and
    add up to nearly zero. Algebraic multigrid is then tried with CG: at once if the matrix is large
    (64,000 rows on devices, 3.4 million on hosts), else after 500 iterations with Jacobi (1000 on
    devices), which are sooner done than multigrid's set-up.
    If neither ``stop`` nor ``M`` is given, incomplete factors come next: ``Ic`` for CG (on devices
    a polynomial of degree 4), ``Ilu`` for the others, as the matrix is and with its rows matched to
    a diagonal of the largest product. If ``maxiter`` is not given either, then comes the direct
    solver, on the host, if a dense matrix of this size took at most 512 MiB, or factors with the
    fill of a grid in space took at most 4 GiB. Then come all methods that ran into their limit,
    with the whole budget, and the others. So a system that one of the methods solves by
    itself, with the same tolerance, ``M`` and ``maxiter``, is solved here too. Without ``maxiter``
    and ``stop`` only the first method has ``10 n`` iterations whatever happens, and of the others
    those whose residual falls fast enough for it.

    What is found out about a matrix, and arrays and recorded iterations up to 64 MiB or the bytes
    of the matrix, are kept with a matrix of wollemi for the next call.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> result = wl.solve(wl.Csr(np.array([[4.0, 1.0], [1.0, 3.0]])), np.array([1.0, 2.0]))
    >>> result.notes
    ['cg: the matrix is symmetric and its diagonal positive', 'M: jacobi, the diagonal has no zero']
    """
    operator = as_linop(A)
    if method != "auto" and method not in SOLVERS and method not in LEAST_SQUARES:
        known = ", ".join(["auto", *SOLVERS, *LEAST_SQUARES])
        raise InvalidArgument(f"no method is called {method!r}; known: {known}")
    rectangular = operator.shape[0] != operator.shape[1]
    if rectangular if method == "auto" else method in LEAST_SQUARES:
        unused = {"restart": restart, "stop": stop, "progress": progress, "loggers": loggers}
        return solve_rectangular(
            operator, b, x0, method=method, M=M, rtol=rtol, atol=atol, maxiter=maxiter,
            callback=callback, unused=unused,
        )  # fmt: skip
    asked = _Asked(method, M, _columns(b), restart, maxiter is not None, stop is not None)
    choices, notes = _chosen(operator, asked)
    attempts = Attempts(
        operator, b, x0, rtol, atol, maxiter, stop,
        notes=list(notes),
        watching={"callback": callback, "progress": progress, "loggers": loggers},
    )  # fmt: skip
    return attempts.run(choices)


class _Asked(NamedTuple):
    """What a user asked for, as far as the attempts depend on it."""

    method: str
    M: Any
    columns: int
    restart: int | None
    counted: bool
    stops: bool


def _chosen(operator: LinOp, asked: _Asked) -> tuple[list[Attempt], list[str]]:
    """Return the attempts to make, and notes on the first; kept with the values of a matrix."""
    restart = asked.restart
    plain = isinstance(asked.M, (str, type(None))) and isinstance(restart, (int, type(None)))
    if not plain or not isinstance(operator, Matrix) or operator.shape[0] != operator.shape[1]:
        return _choose(operator, asked)
    kept = kept_with(operator)
    key = (*asked, type(restart))  # True is 1, and not a length
    found = kept.choices.get(key)
    if found is None:
        found = _choose(operator, asked)
        kept.keep_choice(key, found)
    return found


def _choose(operator: LinOp, asked: _Asked) -> tuple[list[Attempt], list[str]]:
    """Return the attempts to make, and notes on the first."""
    method, M, columns, restart, counted, stops = asked
    length = restart_for(operator, columns) if restart is None else asked_restart(restart, method)
    M, varies = _looked_at(M, operator)
    facts = _facts(operator, method, M)
    preconditioners, about_M = _preconditioners(M, facts)
    methods, about_method = _methods(method, facts, length >= operator.shape[0])
    if method == "auto" and varies:
        methods, why = _flexible(facts)
        about_method = f"{about_method}, and M varies: {why}"
    elif method == "auto" and facts is not None and not facts.may_be_definite:
        # Jacobi of such a diagonal is not positive definite, as the M of MINRES must be
        methods = [f"{name} without M" if name == "minres" else name for name in methods]
        if methods[0] != "gmres" and facts.hermitian:
            about_M = ["M: none at first, since that of minres must be positive definite"]
    choices = _choices(methods, preconditioners, length, asked=restart is not None)
    about_M += about_restart(choices[0], restart, operator.shape[0])
    if method == "auto":
        # what a set-up takes is no iteration, and it ends at no limit on time
        factors = _is_auto(M) and not stops
        factored = _factored(methods, facts, operator, length) if factors else []
        choices = _in_turn(
            choices, factored, operator, columns, restart, unlimited=not (counted or stops)
        )
        if _is_auto(M) and facts is not None and facts.looks_elliptic:
            choices, about_M = _with_multigrid(choices, facts, operator, about_M)
    return choices, [f"{methods[0]}: {about_method}", *about_M]


def _is_auto(M: Any) -> bool:
    return isinstance(M, str) and M == "auto"


def _columns(b: Any) -> int:
    shape: tuple[int, ...] = getattr(b, "shape", ())
    return int(shape[1]) if len(shape) == 2 else 1


def _facts(A: LinOp, method: str, M: Any) -> Facts | None:
    """Return what is known of the entries, if it is asked for and there are any."""
    asked = method == "auto" or _is_auto(M)
    if not asked or A.shape[0] != A.shape[1]:
        return None
    if hasattr(type(A), "host_rows"):  # a matrix that a group shares
        return find_facts(A)  # type: ignore[arg-type]
    return facts_of(A) if isinstance(A, Matrix) else None


def _methods(method: str, facts: Facts | None, whole: bool) -> tuple[list[str], str]:
    """Return the methods to try in order, and why the first; ``whole`` if GMRES is not restarted.

    Hermitian indefinite matrices have GMRES first where it has room, and MINRES where it has not:
    both minimize the residual, and GMRES takes any ``M``.
    """
    if method != "auto":
        return [method], "as asked"
    if facts is None:
        return ["gmres", "bicgstab", "cgs", "cg"], "the operator's entries are not known"
    hermitian = ["gmres", "minres", "bicgstab"] if whole else ["minres", "bicgstab", "gmres"]
    if not facts.hermitian:
        return ["bicgstab", "gmres", "cgs", "cg"], "the matrix is not symmetric"
    if facts.may_be_definite:
        why = "the matrix is symmetric and its diagonal positive"
        return ["cg", *hermitian, "cgs"], why
    why = "the matrix is symmetric but its diagonal is not positive: it is indefinite"
    return [*hermitian, "cgs", "cg"], why


def _looked_at(M: Any, A: LinOp) -> tuple[Any, bool]:
    """Return ``M``, and whether it is not one fixed linear map.

    Settings are made here where that depends on them; functional calls keep what is made of a
    matrix, and otherwise it is returned in place of the settings.
    """
    if _is_auto(M):
        return M, False
    if isinstance(M, str):
        M = parsed(M)
    if isinstance(M, Settings):
        if isinstance(A, Matrix):
            return M, kept_with(A).preconditioner(M)[0].varies
        M = M.on(A)
    return M, isinstance(M, LinOp) and M.varies


def _flexible(facts: Facts | None) -> tuple[list[str], str]:
    """Return the methods that take an ``M`` that varies, in order, and what the first does."""
    if facts is not None and facts.hermitian and facts.may_be_definite:
        return ["fcg", "fgmres"], "fcg makes each direction orthogonal to the last one itself"
    return ["fgmres"], "fgmres keeps the vectors that M made"


def _preconditioners(M: Any, facts: Facts | None) -> tuple[list[tuple[Any, str]], list[str]]:
    """Return preconditioners to try in order with their labels, and notes on the first."""
    if not _is_auto(M):
        made = parsed(M) if isinstance(M, str) else M
        return [(made, "")], [f"M: {_shown(made)}, as asked"]
    if facts is None or facts.not_invertible == facts.rows:
        why = (
            []
            if facts is None or not facts.rows
            else ["M: none, no value of the diagonal has an inverse"]
        )
        return [(None, "")], why
    if not facts.not_invertible:
        jacobi, note = Settings(Jacobi, {}), "M: jacobi, the diagonal has no zero"
    else:
        jacobi = Settings(Jacobi, {"replacement": REPLACEMENT})
        some = f"{facts.not_invertible} of {facts.rows}"
        note = f"M: jacobi, with 1 for {some} diagonal values, which have no inverse"
    return [(jacobi, ""), (None, " without M")], [note]


def _shown(M: Any) -> str:
    """Return how a preconditioner is called in notes."""
    if M is None:
        return "none"
    return repr(M) if isinstance(M, Settings) else type(M).__name__


def _choices(
    methods: list[str], preconditioners: list[Any], restart: int, *, asked: bool
) -> list[Attempt]:
    """Return the attempts with the whole budget each, all methods with the first ``M`` first.

    A cycle length that a user asked for is that of every method which has cycles.
    """

    def options(name: str) -> dict[str, Any]:
        cyclic = name in ("gmres", "fgmres") or (asked and "restart" in option_names(SOLVERS[name]))
        return {"restart": restart} if cyclic else {}

    return [
        Attempt(method, None, name, {})
        if (method := name.removesuffix(" without M")) != name
        else Attempt(name, M, name + label, options(name))
        for M, label in preconditioners
        for name in methods
    ]


def _factored(methods: list[str], facts: Facts | None, A: LinOp, restart: int) -> list[Attempt]:
    """Return attempts with incomplete factors, for those who know the entries."""
    if facts is None or not facts.rows or not isinstance(A, Matrix):
        return []
    made: list[Attempt] = []

    def add(method: str, M: Settings, label: str) -> None:
        options = {"restart": restart} if method == "gmres" else {}
        made.append(Attempt(method, M, f"{method} with {label}", options, FACTORED, optional=True))

    if methods[0] == "cg":
        if _on_host(A):
            add("cg", Settings(Ic, {}), "ic")
        else:
            add("cg", Settings(Polynomial, {"degree": 4}), "a polynomial")
    if not facts.not_invertible and methods[0] != "cg":
        add("bicgstab", Settings(Ilu, {}), "ilu")
    add("gmres", Settings(Ilu, {"match": True}), "ilu of the matched matrix")
    return made


def _on_host(A: LinOp) -> bool:
    """Return whether exact factors can be made where the matrix is, as on hosts."""
    return A.executor.supports(triangular.factorize)


def _with_multigrid(
    choices: list[Attempt], facts: Facts, A: LinOp, about_M: list[str]
) -> tuple[list[Attempt], list[str]]:
    """Return the attempts with CG and multigrid among them, and the notes on the first ``M``."""
    looks = f"the matrix looks elliptic: {facts.balanced} of {facts.rows} rows add up to nearly 0"
    amg = Attempt(
        "cg", Settings(Amg, {}), "cg with amg", {}, CYCLES, optional=True, needs_definite=True
    )
    place = "host" if _on_host(A) else "device"
    if facts.rows >= ROWS_FOR_MULTIGRID[place]:
        return [amg, *choices], [f"M: amg, {looks}"]
    limit = WORTH_A_HIERARCHY if place == "host" else SHORT
    first = replace(choices[0], limit=limit, extended=False)
    return [first, replace(amg, why=looks), *choices], about_M


def _fits_directly(A: LinOp) -> bool:
    """Return whether the factors of a matrix are likely to fit into memory."""
    if not isinstance(A, Matrix):
        return False
    n, itemsize = A.shape[0], A.dtype.itemsize
    if n * n * itemsize <= DIRECT_BYTES:
        return True
    per_entry = itemsize + 4
    return bool(DIRECT_BYTES and max(FILL * n ** (4 / 3), 4 * A.nnz) * per_entry <= FACTOR_BYTES)


def _in_turn(
    choices: list[Attempt],
    factored: list[Attempt],
    A: LinOp,
    columns: int,
    restart: int | None,
    *,
    unlimited: bool,
) -> list[Attempt]:
    """Return the attempts in the order in which they are made, short ones first.

    CG has the whole budget at once where it comes first and there are no factors to try: it does
    not converge where it is slow to. CG is not tried early elsewhere.
    """
    n = max(A.shape[0], 1)
    early = _early(choices, n, factored=bool(factored), unlimited=unlimited)
    direct = [Attempt(DIRECT, None, DIRECT)] if unlimited and _fits_directly(A) else []
    early[1:1] = [*factored, *direct] if factored else []
    last = [] if factored else direct
    if restart is None and n > RESTART and WHOLE_BASIS < n * n * columns <= LAST_BASIS:
        last += [
            Attempt("gmres", c.M, c.label + " not restarted", {"restart": n}, 2 * n)
            for c in choices
            if c.method == "gmres"
        ]
    if unlimited:  # nobody waits for ten times the unknowns of iterations, eight times over
        tried = {choice.key for choice in early}
        others = [c for c in choices if c.key not in tried]
        last += [replace(c, limit=SHORT, repeated=False) for c in others]
        return [*early, *last, choices[0]]
    return [*early, *last, *choices]


def _early(choices: list[Attempt], n: int, *, factored: bool, unlimited: bool) -> list[Attempt]:
    """Return the attempts that are likely to succeed, with few iterations."""
    early: list[Attempt] = []
    for choice in choices:
        whole = choice.options.get("restart", 0) >= n
        if choice is choices[0] and choice.method in ("cg", "fcg"):
            early.append(replace(choice, limit=SHORT) if factored else choice)
        elif choice.method in ("gmres", "fgmres", "minres", "bicgstab"):
            limit = max(SHORT, 2 * n if whole else 0)
            again = not unlimited or choice is choices[0]
            early.append(replace(choice, limit=limit, repeated=again))
    return early
