"""The candidates for a question: a matrix with a requested method, preconditioner and limits."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ...core.distributed.matrix import Csr as SharedCsr
from ...core.errors import InvalidMatrix
from ...core.formats import Matrix
from ...core.linop import LinOp
from ...core.notes import Note, Topic
from ...core.settings import Settings, option_names
from ..driver.as_preconditioner import as_preconditioner
from ..driver.hermitian import is_hermitian_in_products
from ..driver.host_writes import is_own
from ..driver.scaling import largest_values
from ..krylov.gmres import RESTART
from ..preconditioners import Amg, Jacobi
from ..preconditioners.names import described
from ..registry import SOLVERS
from .attempts import SHORT, Attempts
from .candidates import DIRECT, Candidate, Candidates
from .facts import SystemFacts, find_facts
from .kept import facts_of, is_finite, kept_with
from .methods import RequestedMethod
from .pool import Pool
from .properties import Hints, Properties
from .restarts import WHOLE_BASIS, about_restart, requested_restart, restart_for

#: When other candidates have failed, run GMRES without restarts if its basis has at most this many
#: values over all columns: 2900 unknowns and one column.
LAST_BASIS = 2**23

#: For a matrix that a group shares, multigrid comes first from ROWS_FOR_MULTIGRID rows on. Smaller
#: ones first run JACOBI_LIMIT iterations of CG with Jacobi. MULTIGRID_LIMIT is the iteration limit
#: of CG with multigrid.
ROWS_FOR_MULTIGRID, JACOBI_LIMIT, MULTIGRID_LIMIT = 150**3, 500, 200

#: Methods that need a Hermitian preconditioner, and may be the first choice.
HERMITIAN = ("cg", "minres")

#: Jacobi replaces diagonal values without an inverse by this value.
REPLACEMENT = 1.0


@dataclass(frozen=True)
class Question:
    """The parts of a user's request that determine the candidates."""

    method: RequestedMethod
    columns: int
    rtol: float
    restart: int | None
    counted: bool
    stops: bool
    effort: str
    hints: Hints

    @property
    def unlimited(self) -> bool:
        """Whether neither ``maxiter`` nor ``stop`` limits the solve."""
        return not (self.counted or self.stops)


@dataclass
class SolvePlan:
    """The candidates for one question."""

    question: Question
    operator: LinOp | None
    notes: list[str]
    first: list[Candidate]
    #: Creates the candidates that are tried when all others have failed.
    tail: Callable[[], list[Candidate]] = list
    #: The first candidate of the pool and the cycle length of GMRES; None without a pool.
    pooled: tuple[Candidate, int] | None = None
    key: Any = None
    #: Seconds spent on building the preconditioner for the plan; 0 for a kept plan.
    setup_seconds: float = 0.0

    def pool(self) -> Pool | None:
        """Return the candidates that are tried in the order of expected time, if there are any."""
        if self.pooled is None:
            return None
        assert isinstance(self.operator, Matrix)
        return _pool(self.operator, self.question, *self.pooled)

    def winner(self) -> list[Candidate]:
        """Return the candidate that solved the last system with this matrix, if there was one."""
        if self.key is None or self.pooled is None:
            return []
        winner = kept_with(self.operator).winners.get(self.key)  # type: ignore[arg-type]
        return [] if winner is None else [winner]

    def differs_from(self, winner: Candidate) -> bool:
        """Return whether the candidate that solved the last system is not the first choice."""
        if self.pooled is None:
            return False
        first = self.pooled[0]
        return (first.method, first.label) != (winner.method, winner.label)

    def keep(self, attempts: Attempts) -> None:
        """Keep the candidate that solved the system, for the next system."""
        if self.key is None or attempts.winner is None or self.pooled is None:
            return
        winner = attempts.winner
        name = (winner.method, winner.label)
        iterations = max(a.iterations for a in attempts.tried if (a.method, a.M) == name)
        limit = 4 * iterations + 100
        winners = kept_with(self.operator).winners  # type: ignore[arg-type]
        if winners.get(self.key) is not winner or winner.limit != limit:
            winners[self.key] = replace(winner, patient=False, limit=limit)


def planned(operator: LinOp, question: Question) -> SolvePlan:
    """Return the plan for a question; it is kept with the values of a matrix."""
    method = question.method
    plain = method.is_plain and isinstance(question.restart, (int, type(None)))
    plain = plain and not question.hints.any_stated
    keeps = plain and isinstance(operator, Matrix) and operator.shape[0] == operator.shape[1]
    key: Any = None
    known: SolvePlan | None = None
    if keeps:
        key = (method.name, method.M, question.columns, question.rtol, question.restart,
               type(question.restart), question.counted, question.stops,
               question.effort)  # fmt: skip  # True is 1, and not a length
        known = kept_with(operator).choices.get(key)  # type: ignore[arg-type]
        # members of a group check together in every solve that all values are finite
        if known is not None and operator.partition is None:
            return _known(known, operator, key)
    if not _has_finite_entries(operator, method):
        raise InvalidMatrix("A has NaN or Inf: there is no solution")
    if known is not None:
        return _known(known, operator, key)
    plan = _plan(operator, question)
    if not keeps:
        return plan
    # the matrix keeps the plan: the plan must not refer to the matrix
    kept_with(operator).keep_choice(  # type: ignore[arg-type]
        key, replace(plan, operator=None, setup_seconds=0.0)
    )
    plan.key = key
    return plan


def _known(plan: SolvePlan, operator: LinOp, key: Any) -> SolvePlan:
    """Return a kept plan with its matrix, for the next solve."""
    # field by field: ``replace`` takes four times as long
    first, tail, pooled = plan.first, plan.tail, plan.pooled
    return SolvePlan(plan.question, operator, plan.notes, first, tail, pooled, key)


def _has_finite_entries(A: LinOp, method: RequestedMethod) -> bool:
    """Return whether a matrix has neither NaN nor Inf; all members of a group must call this."""
    if (
        method.is_open
        and isinstance(A, Matrix)
        and A.partition is None
        and A.shape[0] == A.shape[1]
    ):
        facts_of(A)  # needed next; for small matrices it also checks the values
    if isinstance(A, SharedCsr):
        data = A.own_block.data.reshape(-1, 1)
        if not data.size:
            data = A.executor.zeros((1, 1), data.dtype)
        return bool(np.all(np.isfinite(largest_values(A.executor, data))))  # of the group
    return not isinstance(A, Matrix) or A.partition is not None or is_finite(A)


def _with_restart_of_method(question: Question) -> Question:
    """Return the question with the cycle length of the method's options, if there is one."""
    if question.restart is None and "restart" in question.method.options:
        return replace(question, restart=question.method.options["restart"])
    return question


def _plan(operator: LinOp, question: Question) -> SolvePlan:
    """Return the plan for a question."""
    question = _with_restart_of_method(question)
    method, restart = question.method, question.restart
    if method.is_direct:
        direct = Candidate(DIRECT, options=dict(method.options))
        return SolvePlan(
            question, operator, [Note("direct: as asked", Topic.FIRST_CHOICE)], [direct]
        )
    length = (
        restart_for(operator, question.columns)
        if restart is None
        else requested_restart(restart, method)
    )
    began = time.perf_counter()
    M, varies = _looked_at(method.M, operator)
    setup = time.perf_counter() - began
    facts = _stated(_facts(operator, method.name, M), question.hints)
    about = "that of the method" if method.owns_M else "as asked"
    preconditioners, about_M = _preconditioners(M, facts, about)
    methods, about_method = _methods(method.name, facts, length >= operator.shape[0])
    if method.is_auto and varies:
        methods, why = _flexible(facts)
        about_method = f"{about_method}, and M varies: {why}"
    elif method.is_auto and methods[0] in HERMITIAN and not _is_hermitian(M, operator):
        methods = _methods("auto", replace(facts, hermitian=False), False)[0] if facts else methods
        about_method = f"{about_method}, but M is not Hermitian, as cg and minres need it"
    bare = False
    if method.is_auto and facts is not None and not facts.may_be_definite and "minres" in methods:
        # Jacobi with such a diagonal is not positive definite, as M of MINRES must be
        bare = facts.hermitian and facts.positive < facts.rows
        if methods[0] == "minres" and bare:
            about_M = ["M: none at first, since that of minres must be positive definite"]
    made = partial(_choices, method, restart=length, asked_length=restart is not None, bare=bare)
    (first,) = made(methods[:1], preconditioners[:1])
    about_M += about_restart(first, restart, operator.shape[0])
    about_first = [f"{methods[0]}: {about_method}", *about_M]
    notes: list[str] = [Note(text, Topic.FIRST_CHOICE) for text in about_first]
    choices = partial(made, methods, preconditioners)
    if not method.is_auto:
        return SolvePlan(question, operator, notes, choices(), setup_seconds=setup)
    plan = _in_turn(operator, question, facts, first, choices, notes, length, _is_auto(M))
    plan.setup_seconds = setup
    return plan


def _stated(facts: SystemFacts | None, hints: Hints) -> SystemFacts | None:
    """Return the facts with the user's hints, which take precedence."""
    if facts is None:
        return None
    if hints.positive_definite:
        facts = replace(facts, hermitian=True, positive=facts.rows, negative_for_constants=False)
        facts = replace(facts, stated="positive_definite")
    elif hints.symmetric is not None:
        stated = "symmetric" if hints.symmetric and not facts.hermitian else None
        facts = replace(facts, hermitian=hints.symmetric, stated=stated)
    if hints.positive_definite is False:
        facts = replace(facts, positive=min(facts.positive, facts.rows - 1))
    return facts


def _is_auto(M: Any) -> bool:
    return isinstance(M, str) and M == "auto"


def _facts(A: LinOp, method: str, M: Any) -> SystemFacts | None:
    """Return the facts about the entries, if they are needed and the entries are known."""
    is_auto = method == "auto" or _is_auto(M)
    if not is_auto or A.shape[0] != A.shape[1]:
        return None
    if hasattr(type(A), "host_rows"):  # the type of a matrix that a group shares
        return find_facts(A)  # type: ignore[arg-type]
    return facts_of(A) if isinstance(A, Matrix) else None


def _methods(method: str, facts: SystemFacts | None, whole: bool) -> tuple[list[str], str]:
    """Return the methods in the order of trial, and the reason for the first one.

    ``whole`` says that GMRES is not restarted. For Hermitian indefinite matrices, MINRES comes
    first, and GMRES second if its whole basis fits: both minimize the residual, and GMRES accepts
    any ``M``.
    """
    if method != "auto":
        return [method], "as asked"
    if facts is None:
        return ["gmres", "bicgstab", "cgs", "cg"], "the operator's entries are not known"
    hermitian = ["minres", "gmres", "bicgstab"] if whole else ["minres", "bicgstab", "gmres"]
    if not facts.hermitian:
        return ["bicgstab", "gmres", "cgs", "cg"], "the matrix is not symmetric"
    known = "the matrix is symmetric" if facts.stated is None else f"{facts.stated}=True was passed"
    if facts.leans_indefinite:
        why = f"{known} and most of its rows have a negative sum: it may be indefinite"
        return [hermitian[0], "cg", *hermitian[1:], "cgs"], why
    if facts.may_be_definite:
        why = known if facts.stated == "positive_definite" else f"{known} and its diagonal positive"
        return ["cg", *hermitian, "cgs"], why
    why = f"{known} but not every diagonal value is positive, so CG may fail"
    if facts.negative_for_constants:
        why = f"{known} and its entries have a negative sum: it is indefinite"
    return [*hermitian, "cgs", "cg"], why


def _looked_at(M: Any, A: LinOp) -> tuple[Any, bool]:
    """Return ``M``, and whether it varies between applications.

    If this depends on settings, their preconditioner is built here. Functional calls keep
    preconditioners that are built for a matrix, so that the settings are returned; otherwise the
    preconditioner itself is returned.
    """
    if _is_auto(M):
        return M, False
    M = described(M)
    if isinstance(M, Settings):
        if isinstance(A, Matrix):
            return M, kept_with(A).preconditioner(M)[0].varies
        M = M.on(A)
    return M, isinstance(M, LinOp) and M.varies


def _is_hermitian(M: Any, A: LinOp) -> bool:
    """Return whether a requested preconditioner is Hermitian, tested by two products."""
    if M is None or _is_auto(M) or A.partition is not None:
        return True
    if isinstance(M, Settings):
        M = kept_with(A).preconditioner(M)[0] if isinstance(A, Matrix) else M.on(A)
    return is_hermitian_in_products(as_preconditioner(M, A))


def _flexible(facts: SystemFacts | None) -> tuple[list[str], str]:
    """Return the methods that accept a varying ``M``, in order, and a note on the first one."""
    if facts is not None and facts.hermitian and facts.may_be_definite:
        return ["fcg", "fgmres"], "fcg makes each direction orthogonal to the last one itself"
    return ["fgmres"], "fgmres keeps the vectors that M made"


def _preconditioners(
    M: Any, facts: SystemFacts | None, about: str
) -> tuple[list[tuple[Any, str]], list[str]]:
    """Return preconditioners with their labels in the order of trial, and notes on the first.

    ``about`` is the reason for an ``M`` that the user or the method determines.
    """
    if not _is_auto(M):
        return [(M, _label(M))], [f"M: {_shown(M)}, {about}"]
    if facts is None or facts.not_invertible == facts.rows:
        why = (
            []
            if facts is None or not facts.rows
            else ["M: none, no value of the diagonal has an inverse"]
        )
        return [(None, "")], why
    if facts.constant_diagonal:
        return [(None, "")], ["M: none, the diagonal is constant, so Jacobi would change nothing"]
    if not facts.not_invertible:
        jacobi, note = Settings(Jacobi, {}), "M: jacobi, the diagonal has no zero"
    else:
        jacobi = Settings(Jacobi, {"replacement": REPLACEMENT})
        some = f"{facts.not_invertible} of {facts.rows}"
        note = f"M: jacobi, with 1 for {some} diagonal values, which have no inverse"
    return [(jacobi, "jacobi"), (None, "")], [note]


def _label(M: Any) -> str:
    """Return the name of a preconditioner in tables."""
    if M is None:
        return ""
    return M.name if isinstance(M, Settings) else type(M).__name__.lstrip("_").lower()


def _shown(M: Any) -> str:
    """Return the name of a preconditioner in notes."""
    if M is None:
        return "none"
    return repr(M) if isinstance(M, Settings) else type(M).__name__


def _choices(
    method: RequestedMethod,
    methods: list[str],
    preconditioners: list[Any],
    *,
    restart: int,
    asked_length: bool,
    bare: bool,
) -> list[Candidate]:
    """Return the candidates, each with the whole budget; all methods with the first ``M`` first.

    A requested cycle length holds for every method with cycles. ``bare`` says that MINRES runs
    without ``M``.
    """

    def candidate(name: str, M: Any, label: str) -> Candidate:
        kind = method.kind or SOLVERS[name]
        cyclic = name in ("gmres", "fgmres") or (asked_length and "restart" in option_names(kind))
        options = dict(method.options) | ({"restart": restart} if cyclic else {})
        if name == "minres" and bare:
            M, label = None, ""
        # a user's class may accept no preconditioner; its first solve then raises
        optional = M is not None and _is_auto(method.M) and not is_own(kind)
        return Candidate(name, M, label, options, kind=method.kind, optional=optional)

    return [candidate(name, M, label) for M, label in preconditioners for name in methods]


def _in_turn(
    operator: LinOp,
    question: Question,
    facts: SystemFacts | None,
    first: Candidate,
    choices: Callable[[], list[Candidate]],
    notes: list[str],
    length: int,
    automatic: bool,
) -> SolvePlan:
    """Return the plan of an automatic choice, with its candidates in the order of trial.

    ``choices`` creates all candidates, ``first`` is the first one.

    If the entries of the matrix are known and only iterations are limited, candidates are tried in
    the order of their expected time. Otherwise, the candidates that are likely to succeed come
    first, with an iteration limit.
    """
    unlimited = question.unlimited
    known = isinstance(operator, Matrix) and operator.partition is None and facts is not None
    tail = partial(_last, max(operator.shape[0], 1), question, choices)
    if known and automatic and not question.stops and facts is not None and facts.rows:
        return SolvePlan(question, operator, notes, [], tail, (first, length))
    early = _early(choices(), max(operator.shape[0], 1), unlimited=unlimited)
    direct = [Candidate(DIRECT)] if unlimited and _fits_directly(operator) else []
    if automatic and facts is not None and facts.looks_elliptic:
        early = _with_multigrid(early, facts.rows)
    return SolvePlan(question, operator, notes, [*early, *direct], tail)


def _pool(operator: Matrix, question: Question, first: Candidate, length: int) -> Pool:
    """Return the pool of candidates for a matrix with known entries."""
    cache = kept_with(operator)
    facts = _stated(facts_of(operator), question.hints)
    assert facts is not None
    properties = Properties(cache.twin, facts, cache.structure, question.hints)
    make = Candidates(cache.twin, properties, question.rtol, question.columns, length)
    return Pool(cache.twin, properties, make, first, direct=question.unlimited)


def _last(n: int, question: Question, make: Callable[[], list[Candidate]]) -> list[Candidate]:
    """Return the candidates that are tried when all others have failed, for n unknowns."""
    if question.effort == "fast":
        return []
    choices = make()
    columns = question.columns
    last: list[Candidate] = []
    if question.restart is None and n > RESTART and WHOLE_BASIS < n * n * columns <= LAST_BASIS:
        last += [
            replace(c, options={**c.options, "restart": n}, limit=2 * n)
            for c in choices
            if c.method == "gmres"
        ]
    if not question.unlimited or question.effort == "thorough":
        return [*last, *choices]
    # the full number of iterations for every candidate takes too long
    whole = [c for c in choices if c.options.get("restart", 0) >= n]
    last += [replace(c, limit=2 * n) for c in whole]
    last += [replace(c, limit=SHORT, repeated=False) for c in choices if c not in whole]
    return [*last, choices[0]]


def _early(choices: list[Candidate], n: int, *, unlimited: bool) -> list[Candidate]:
    """Return the candidates that are likely to succeed, with iteration limits.

    CG has the whole budget if it is the first choice: where it converges slowly, it does not
    converge at all. Otherwise, CG is not an early candidate.
    """
    early: list[Candidate] = []
    for choice in choices:
        whole = choice.options.get("restart", 0) >= n
        if choice is choices[0] and choice.method in ("cg", "fcg"):
            early.append(choice)
        elif choice.method in ("gmres", "fgmres", "minres", "bicgstab"):
            limit = max(SHORT, 2 * n if whole else 0)
            again = not unlimited or choice is choices[0]
            early.append(replace(choice, limit=limit, repeated=again))
    return early


def _with_multigrid(early: list[Candidate], rows: int) -> list[Candidate]:
    """Return the early candidates with multigrid among them, for a matrix that a group shares."""
    amg = Candidate(
        "cg", Settings(Amg, {}), "amg", limit=MULTIGRID_LIMIT, optional=True, needs_definite=True
    )
    if rows >= ROWS_FOR_MULTIGRID:
        return [amg, *early]
    first = replace(early[0], limit=JACOBI_LIMIT, extended=False)
    return [first, amg, *early]


def _fits_directly(A: LinOp) -> bool:
    """Return whether the factors of a matrix probably fit into memory."""
    if not isinstance(A, Matrix) or A.partition is not None:
        return False
    structure = kept_with(A).structure
    facts = facts_of(A)
    return Properties(A, facts, structure).fill.fits(A.dtype.itemsize)
