"""Data that functional calls keep with a matrix, to skip the set-up in the next call.

``wl.solve(A, b)`` and ``wl.linalg.cg(A, b)`` create a solver in every call. Its workspaces are
expensive: arrays, recorded iterations, CUDA graphs. Small workspaces are kept with ``A`` and freed
with it. For larger systems, the set-up takes less time than the solve.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import cached_property
from sys import is_finalizing
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from ...core.errors import WollemiError
from ...core.formats import Matrix
from ...core.iteration import Cycles, Iteration, Replay
from ...core.linop import LinOp
from ...core.settings import Settings
from ...core.stopping import Criterion, linear
from ..direct import Direct
from ..driver.scaling import largest_values
from ..krylov.base import KrylovSolver
from ..preconditioners import Jacobi, Preconditioner
from ..preconditioners.names import parsed
from .facts import FACTS_RUN, SystemFacts, find_facts

if TYPE_CHECKING:
    from ..driver.workspace import Workspace
    from .dense import SmallMatrix

#: Upper bound in bytes of the workspaces that are kept with one matrix; the size of the matrix if
#: that is larger, unless the matrix is lean. The bound suffices for GMRES with cycles of 30 and
#: 250,000 unknowns in float64, of which one cycle takes longer than the set-up. CG for a 7-point
#: stencil needs three quarters of the size of the matrix.
LIMIT = 64 * 2**20

#: Upper bounds of the vectors of a workspace, without the vectors of a cycle, and of the bytes of a
#: value.
VECTORS, LARGEST_VALUE = 256, 16

#: Types of options that may be part of a solver's cache key.
_PLAIN_KINDS = (int, float, str, type(None))
_PLAIN = frozenset(_PLAIN_KINDS)

#: Upper bound of the kinds of solvers, each with its preconditioner, for which workspaces are kept
#: with one matrix.
KINDS = 8

#: Types of workspace attributes that hold no arrays, or refer to arrays of other attributes.
_WITHOUT_BYTES = frozenset((int, float, str, type(None), Iteration, Replay, Cycles))

#: NumPy checks arrays on the host with at most this many values: a compiled call takes longer.
FEW_ENTRIES = 10_000

Free = dict[tuple[str, int], "list[Workspace]"]


class Kept:
    """The data that solvers keep with one matrix.

    Attributes
    ----------
    twin : Matrix
        Represents the matrix in the kept data. A reference to the matrix itself would keep it, and
        its device memory, alive until the garbage collector finds the cycle.
    matrix_bytes : int
        Size of the matrix in bytes, an alternative limit of the kept data; 0 for a lean matrix.
    """

    def __init__(self, A: Matrix) -> None:
        #: Free workspaces, by solver class, cycle length and preconditioner.
        self.workspaces: OrderedDict[Any, Free] = OrderedDict()
        self._alive = ref(A)
        self.matrix_bytes = 0 if getattr(A, "is_lean", False) else int(A.nbytes)
        self.version = A._values_version
        self.lock = Lock()
        self.facts: SystemFacts | None = None
        #: Whether the values are finite, and the null space of constants; None until requested.
        self.finite: bool | None = None
        self.null: Any = None
        #: Why the matrix is singular, "" without a sign of it; None until requested.
        self.singular: str | None = None
        #: The ratio of the largest to the smallest row, 1 if it is moderate; None until requested.
        self.ratio_of_rows: float | None = None
        self.preconditioners: OrderedDict[str, Preconditioner] = OrderedDict()
        #: Solvers, by class, name of the preconditioner and options.
        self.solvers: OrderedDict[Any, KrylovSolver] = OrderedDict()
        #: The result of :meth:`_held` when the workspaces were last trimmed.
        self.trimmed: list[int] = []
        #: Plans of ``wl.solve`` for the current values, by question.
        self.choices: dict[Any, Any] = {}
        #: Data that depend on the pattern alone.
        self.structure: dict[str, Any] = {}
        #: The candidate that solved the last system, with its iteration limit, by question.
        self.winners: dict[Any, Any] = {}
        #: Direct solvers with small factors, by options.
        self.direct: dict[Any, Direct] = {}
        #: The matrix as a dense one, if it is small.
        self.small: SmallMatrix | None = None
        #: Preconditioners that users passed, by identity: a weak reference, a twin, and the version
        #: of the values.
        self.operands: dict[int, tuple[ref[Matrix], Matrix, int]] = {}

    @cached_property
    def twin(self) -> Matrix:
        """The representative of the matrix, created when a solver first needs it."""
        A = self._alive()
        assert A is not None, "the store is freed with its matrix"
        result = A._twin()
        result._is_representative = True  # callers have read the values of A
        return result

    def __del__(self, python_ends: Callable[[], bool] = is_finalizing) -> None:
        if python_ends():  # modules may already be cleared, and exit frees the memory
            return
        for free in self.workspaces.values():
            _release(free)

    def follow(self, A: Matrix) -> None:
        """Drop or update the data that depend on values, if these changed."""
        version = A._values_version
        if version == self.version:
            return
        with self.lock:
            if version == self.version:
                return
            self.facts = self.finite = self.null = self.small = self.singular = None
            self.ratio_of_rows = None
            self.choices.clear()
            self.winners.clear()
            self.direct.clear()
            self.solvers.clear()  # they may hold results about the old values
            for name, M in list(self.preconditioners.items()):
                if not _follows(M):
                    del self.preconditioners[name]
                    self._drop(name)
            self._drop_copies()
            self.version = version

    def preconditioner(self, M: Any) -> tuple[Any, Any]:
        """Return the solver's argument for ``M``, and its name in keys; None if it has no name."""
        if M is None:
            return None, ()
        if isinstance(M, str):
            M = parsed(M)
            if M is None:
                return None, ()
        if isinstance(M, Settings):
            return self._preconditioner_of(M)
        if type(M) is Jacobi:
            M = M.inverse
        if isinstance(M, Matrix) and M.executor == self.twin.executor:
            return self._operand(M)
        return M, None

    def _preconditioner_of(self, settings: Settings) -> tuple[Any, Any]:
        name = repr(settings)
        with self.lock:
            M = self.preconditioners.get(name)
            if M is None:
                M = settings.on(self.twin)
                self.preconditioners[name] = M
            self.preconditioners.move_to_end(name)
            while len(self.preconditioners) > KINDS:
                stale, _ = self.preconditioners.popitem(last=False)
                self._drop(stale)
        return M, name

    def _operand(self, M: Matrix) -> tuple[Any, Any]:
        name, version = id(M), M._values_version
        with self.lock:
            for stale in [n for n, (alive, _, _) in self.operands.items() if alive() is None]:
                del self.operands[stale]
                self._drop(stale)
            if name not in self.operands:
                self.operands[name] = (ref(M), M._twin(), version)
            alive, twin, known = self.operands[name]
            if known != version:
                self._drop_copies(name)
                self.operands[name] = (alive, twin, version)
        return twin, name

    def solver(
        self, kind: type[KrylovSolver], M: Any, name: Any, options: dict[str, Any]
    ) -> KrylovSolver:
        """Return a solver for the matrix: a kept one if possible."""
        for value in options.values():
            if type(value) not in _PLAIN and not (
                isinstance(value, _PLAIN_KINDS) or _is_value(value)
            ):
                return kind(self.twin, M, **options)
        key = (kind, name, *options.items(), *map(type, options.values()))
        solver = self.solvers.get(key)
        if solver is None or (solver.M is not M and name != ()):
            solver = kind(self.twin, M, **options)
        with self.lock:
            self.solvers[key] = solver
            self.solvers.move_to_end(key)
            while len(self.solvers) > KINDS:
                self.solvers.popitem(last=False)
        return solver

    def keep_choice(self, key: Any, choice: Any) -> None:
        """Keep the choice of ``wl.solve``, until the values change."""
        with self.lock:
            if len(self.choices) >= KINDS:
                self.choices.clear()
            self.choices[key] = choice

    def free(self, kind: type[KrylovSolver], cycle: int | None, name: Any) -> Free:
        """Return the free workspaces of one kind of solver."""
        with self.lock:
            free_workspaces = self.workspaces.setdefault((kind, cycle, name), {})
            self.workspaces.move_to_end((kind, cycle, name))
        return free_workspaces

    def trim(self) -> None:
        """Free the data that exceed the limits, the least recently used first."""
        with self.lock:
            if self._surely_fits() or self._held() == self.trimmed:
                return
            left = self._limit()
            for place, key in enumerate(reversed(list(self.workspaces))):
                size = sum(_nbytes(w, self.twin) for w in _all(self.workspaces[key]))
                left -= size
                if place >= KINDS or (size and left < 0):
                    _release(self.workspaces.pop(key))
            used = {key[2] for key in self.workspaces}
            self.operands = {n: o for n, o in self.operands.items() if n in used}
            for key in [key for key in self.solvers if isinstance(key[1], int)]:
                if key[1] not in self.operands:  # its memory must be freed as well
                    del self.solvers[key]
            self.trimmed = self._held()

    def _surely_fits(self) -> bool:
        """Return whether an upper bound of the workspaces' bytes is below the limit."""
        if self.operands or len(self.workspaces) > KINDS:
            return False
        if any(isinstance(key[1], int) for key in self.solvers):
            return False
        most, rows = 0, self.twin.shape[0]
        for (_, cycle, _), free in self.workspaces.items():
            for (_, columns), works in free.items():
                vectors = LARGEST_VALUE * rows * columns * (VECTORS + (cycle or 0))
                most += len(works) * (vectors + 2 * self.matrix_bytes)
        return most <= LIMIT

    def _limit(self) -> int:
        return max(LIMIT, self.matrix_bytes)

    def _held(self) -> list[int]:
        """Return the limit, and the number of workspaces of each kind and size."""
        free = self.workspaces.values()
        return [self._limit(), *[len(works) for sizes in free for works in sizes.values()]]

    def _drop(self, name: Any) -> None:
        """Drop the solvers and the workspaces that use a preconditioner."""
        for key in [key for key in self.solvers if key[1] == name]:
            del self.solvers[key]
        for key in [key for key in self.workspaces if key[2] == name]:
            _release(self.workspaces.pop(key))

    def _drop_copies(self, *names: Any) -> None:
        """Drop workspaces with operators of another dtype: these copies have old values."""
        for key in self.workspaces:
            if names and key[2] not in names:
                continue
            M: LinOp | None = self.preconditioners.get(key[2])
            if key[2] in self.operands:
                M = self.operands[key[2]][1]
            dtypes = {str(op.dtype) for op in (self.twin, M) if op is not None}
            free = self.workspaces[key]
            for size in [size for size in free if dtypes != {size[0]}]:
                _release({size: free.pop(size)})


def kept_with(A: Matrix) -> Kept:
    """Return the kept data of a matrix, for its current values; created on first use."""
    cache: Kept | None = A.__dict__.get("_for_solvers")
    if cache is None:
        cache = A.__dict__.setdefault("_for_solvers", Kept(A))
    if cache.version != A._values_version:
        cache.follow(A)
    return cache


def kept_direct(A: LinOp, options: dict[str, Any]) -> Direct:
    """Return a direct solver for a matrix; small factors are kept with the matrix.

    Raises
    ------
    InvalidMatrix
        If the matrix is singular to working precision.
    """
    if not isinstance(A, Matrix):
        return Direct(A, **options)  # raises: it has no entries
    cache = kept_with(A)
    key = tuple(sorted(options.items()))
    factors = cache.direct.get(key)
    if factors is None:
        factors = Direct(cache.twin, **options)
        if factors.factors_nnz * (A.dtype.itemsize + 4) <= LIMIT:
            with cache.lock:
                cache.direct = {key: factors}
    return factors


def is_finite(A: Matrix) -> bool:
    """Return whether a matrix has neither NaN nor Inf; computed once for its values."""
    cache = kept_with(A)
    if cache.finite is None:
        data = A.asformat("csr").data
        if A.executor.xp is np and data.size <= FEW_ENTRIES:
            cache.finite = bool(np.isfinite(data).all())
        else:
            largest = largest_values(A.executor, data.reshape(-1, 1)) if data.size else 0.0
            cache.finite = bool(np.all(np.isfinite(largest)))
    return cache.finite


def facts_of(A: Matrix) -> SystemFacts:
    """Return the facts about a square matrix; computed once for its values."""
    cache = kept_with(A)
    if cache.facts is None:
        A.executor.compile_ahead(FACTS_RUN, A.dtype)
        cache.facts = find_facts(A)
        if cache.facts.bound is not None:
            cache.finite = True  # the single pass refuses matrices with NaN or Inf
    return cache.facts


class borrowed_solver:
    """Context manager: a solver for one solve, with the kept data of the matrix.

    It is a class because a solve of few iterations takes no longer than some generators.

    Parameters
    ----------
    kind : type
        The class of the solver.
    A : LinOp
        The operator; data are kept with matrices only.
    M : str, Settings, LinOp, callable or None
        The preconditioner.
    **options
        Options of the solver. They may differ from call to call: of all options, the kept
        workspaces depend on the cycle length only.
    """

    def __init__(self, kind: type[KrylovSolver], A: LinOp, M: Any = None, **options: Any) -> None:
        known = isinstance(A, Matrix) and A.shape[0] == A.shape[1]
        self.cache: Kept | None = kept_with(A) if known else None  # type: ignore[arg-type]
        name = None
        if self.cache is None:
            self.solver = kind(A, M, **options)
        else:
            M, name = self.cache.preconditioner(M)
            if name is None:
                self.solver = kind(self.cache.twin, M, **options)
            else:
                self.solver = self.cache.solver(kind, M, name, options)
                free = self.cache.free(kind, self.solver.cycle, name)
                self.solver._workspaces = free
        self.keeps = name is not None

    def __enter__(self) -> KrylovSolver:
        return self.solver

    def __exit__(self, *reason: object) -> None:
        if self.cache is not None and self.keeps:
            self.cache.trim()
        else:
            _release(self.solver._workspaces)


def _is_value(option: Any) -> bool:
    """Return whether an option is a criterion of the package, which compares by its settings."""
    return isinstance(option, Criterion) and linear(option) is not None


def _follows(M: Preconditioner) -> bool:
    """Update a preconditioner to new values; return False if recordings of it are out of date.

    Recorded iterations hold constants, such as the bounds of a polynomial, and the arrays of a
    preconditioner. Only Jacobi updates its arrays in place.
    """
    if type(M) is not Jacobi:
        return False
    try:
        M.update()
    except WollemiError:
        return False
    return True


def _release(free: Free) -> None:
    for workspaces in list(free.values()):
        while workspaces:
            workspaces.pop().release()


def _all(free: Free) -> Iterator[Workspace]:
    for workspaces in list(free.values()):
        yield from list(workspaces)


def _nbytes(work: Workspace, A: Matrix) -> int:
    """Return the bytes of a workspace without the matrix, measured once."""
    known: int | None = work.__dict__.get("_nbytes")
    if known is None:
        known, counted_ids = 0, {id(A)}
        for value in (*work.__dict__.values(), *work.status.__dict__.values()):
            if type(value) not in _WITHOUT_BYTES and id(value) not in counted_ids:
                counted_ids.add(id(value))
                known += int(getattr(value, "nbytes", 0))
        work.__dict__["_nbytes"] = known
    return known
