"""Preconditioners and solvers of wollemi inside programs that use petsc4py.

With the options ``-pc_type python -pc_python_type wollemi.interop.petsc.Preconditioner`` and
``-ksp_type python -ksp_python_type wollemi.interop.petsc.Solver``, PETSc's objects call the classes
of this module. Both work on matrices of one process; see ``docs/petsc.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import InvalidArgument
from ..core.formats import Csr
from ..core.linop import LinOp
from ..core.operator_conversions import as_linop
from ..core.result import Result
from ..core.settings import Settings
from ..core.status import Stop
from ..solvers.auto.choose import solve
from ..solvers.direct.solver import Direct
from ..solvers.preconditioners.multigrid.amg import Amg
from ..solvers.preconditioners.names import options_in, parsed
from ..solvers.registry import SOLVERS
from ._petsc_matrices import Reference, from_petsc, pattern_version, petsc, vector_map

if TYPE_CHECKING:
    from petsc4py import PETSc

__all__ = ["Preconditioner", "Solver"]


class _Operand:
    """A PETSc matrix and the wollemi matrix made from it.

    Attributes
    ----------
    matrix : LinOp
        The matrix or operator.
    is_new : bool
        Whether the last call of :meth:`follow` made another matrix.
    """

    matrix: LinOp
    is_new = True

    def __init__(self, executor: str | None) -> None:
        self._executor = executor
        self._mat: Reference | None = None
        self._pattern = self._state = -1

    def follow(self, mat: PETSc.Mat) -> bool:
        """Update to the current PETSc matrix; return whether anything changed."""
        pattern, state = pattern_version(mat), mat.stateGet()
        known = self._mat is not None and self._mat.handle == mat.handle
        self.is_new = not (known and pattern == self._pattern)
        if not self.is_new and state == self._state:
            return False
        if self.is_new:
            self.matrix = from_petsc(mat, executor=self._executor)
            # While this reference lives, no other matrix can have its address.
            self._mat = Reference(mat)
        elif isinstance(self.matrix, Csr):
            current = from_petsc(mat)
            assert isinstance(current, Csr)
            self.matrix.update_values(current.data)
        else:
            self.matrix, self.is_new = from_petsc(mat, executor=self._executor), True
        self._pattern, self._state = pattern, state
        return True


class Preconditioner:
    """A preconditioner of wollemi for ``-pc_type python``.

    Options, with the prefix of the PC: ``-pc_wollemi_type`` takes a name and options in the form of
    ``M=`` (``amg``, the default; ``ilu:level=1``; ``direct`` for factors), and
    ``-pc_wollemi_executor`` takes the name of an executor.

    Attributes
    ----------
    M : LinOp or None
        The preconditioner, after the set-up.

    Notes
    -----
    PETSc sets the preconditioner up again when the matrix has changed. If only values have changed,
    the set-up updates the preconditioner and keeps the parts that depend only on the pattern.
    ``Amg`` uses the block size and the near null space of the PETSc matrix. For the transpose it
    uses ``M.T``; it raises UnsupportedOperation if ``M`` has none.

    Examples
    --------
    ``python heat.py -ksp_type cg -pc_type python
    -pc_python_type wollemi.interop.petsc.Preconditioner -pc_wollemi_type amg``
    """

    M: Any = None

    def __init__(self) -> None:
        self._type, self._executor = "amg", None
        self._operand: _Operand | None = None

    def __repr__(self) -> str:
        made = "not set up" if self.M is None else repr(self.M)
        return f"<preconditioner {self._type} for PETSc: {made}>"

    def setFromOptions(self, pc: PETSc.PC) -> None:
        """Read the options."""
        options = petsc().Options(pc.getOptionsPrefix())
        self._type = options.getString("pc_wollemi_type", self._type)
        self._executor = options.getString("pc_wollemi_executor", self._executor or "") or None

    def setUp(self, pc: PETSc.PC) -> None:
        """Make or update the preconditioner, from the second operator of the PC."""
        mat = pc.getOperators()[1]
        if self._operand is None:
            self._operand = _Operand(self._executor)
        changed = self._operand.follow(mat)
        matrix = self._operand.matrix
        if self.M is None or self._operand.is_new:
            self.M = self._settings(mat).on(matrix)
        elif changed:
            self.M.update(matrix)

    def _settings(self, mat: PETSc.Mat) -> Settings:
        if self._type == "direct":
            return Settings(Direct, {})
        settings = parsed(self._type)
        if settings is None:
            raise InvalidArgument(
                "-pc_wollemi_type none makes no preconditioner: use -pc_type none"
            )
        if settings.kind is not Amg:
            return settings
        size = mat.getBlockSize()
        hints = {"near_null": _near_null_space(mat), "block_size": size if size > 1 else None}
        given = settings.options
        return settings.replace(
            **{name: hint for name, hint in hints.items() if hint is not None and name not in given}
        )

    def _ready(self) -> LinOp:
        if self.M is None:
            raise InvalidArgument("the preconditioner is not set up: call pc.setUp() first")
        result: LinOp = self.M
        return result

    def apply(self, pc: PETSc.PC, x: PETSc.Vec, y: PETSc.Vec) -> None:
        """Set ``y = M x``."""
        _apply(self._ready(), x, y)

    def applyTranspose(self, pc: PETSc.PC, x: PETSc.Vec, y: PETSc.Vec) -> None:
        """Set ``y = M^T x``."""
        _apply(self._ready().T, x, y)

    def view(self, pc: PETSc.PC, viewer: PETSc.Viewer) -> None:
        """Print the preconditioner, for ``-ksp_view``."""
        viewer.printfASCII(f"  wollemi: {self.M!r}, type {self._type}\n")
        for note in getattr(self.M, "notes", []):
            viewer.printfASCII(f"  {note}\n")

    def reset(self, pc: PETSc.PC) -> None:
        """Drop the matrix and the preconditioner."""
        self.M, self._operand = None, None


def _apply(operator: LinOp, x: PETSc.Vec, y: PETSc.Vec) -> None:
    """Apply an operator to a PETSc vector, into another vector."""
    image = operator.apply(np.asarray(x.getArray(readonly=True)))
    y.getArray()[:] = image


def _near_null_space(mat: PETSc.Mat) -> np.ndarray[Any, Any] | None:
    """Return the near null space of a PETSc matrix, one vector per column, or None."""
    space = mat.getNearNullSpace()
    if not space.handle:
        return None
    vectors = [vector.getArray(readonly=True).copy() for vector in space.getVecs()]
    if space.hasConstant():
        vectors.insert(0, np.ones(mat.getSize()[1], np.dtype(petsc().ScalarType)))
    return np.column_stack(vectors) if vectors else None


#: The default iteration limit of a KSP. It is not passed on, because wollemi.solve interprets any
#: explicit limit as a request to avoid factorizations.
DEFAULT_LIMIT = 10_000

#: PETSc's reasons for wollemi's reasons to stop.
_REASONS = {
    Stop.CONVERGED: "CONVERGED_RTOL",
    Stop.INDEFINITE: "DIVERGED_INDEFINITE_MAT",
    Stop.BREAKDOWN: "DIVERGED_BREAKDOWN",
    Stop.STAGNATED: "DIVERGED_BREAKDOWN",
    Stop.NOT_FINITE: "DIVERGED_NANORINF",
    Stop.DIVERGED: "DIVERGED_DTOL",
    Stop.OUT_OF_RANGE: "DIVERGED_NANORINF",
    Stop.MAX_ITERATIONS: "DIVERGED_MAX_IT",
    Stop.ITERATIONS: "CONVERGED_ITS",
    Stop.UNPREPARED: "DIVERGED_PCSETUP_FAILED",
}


class Solver:
    """A solver of wollemi for ``-ksp_type python``.

    Options, with the prefix of the KSP: ``-ksp_wollemi_type`` takes ``auto`` (the default),
    ``direct``, or the name and options of a Krylov solver (``gmres:restart=50``), and
    ``-ksp_wollemi_executor`` takes the name of an executor. Tolerances, the iteration limit and the
    initial guess come from the KSP; ``divtol`` has no effect.

    Attributes
    ----------
    result : Result or None
        The result of the last solve, with notes and attempts.

    Notes
    -----
    With ``auto``, :func:`wollemi.solve` chooses the method and the preconditioner, and the type of
    the PC becomes ``none`` unless it is a :class:`Preconditioner`. A Krylov solver uses the PC: a
    :class:`Preconditioner` is applied without the host, any other PC through calls from the host.
    Norms are norms of the true residual. Monitors receive them after the solve.

    Examples
    --------
    ``python heat.py -ksp_type python -ksp_python_type wollemi.interop.petsc.Solver
    -ksp_wollemi_type auto -ksp_wollemi_executor cuda``
    """

    result: Result | None = None

    def __init__(self) -> None:
        self._type, self._executor = "auto", None
        self._operand: _Operand | None = None
        self._solver: Any = None
        self._solver_M: LinOp | None = None
        self._settings: Settings | None = None

    def __repr__(self) -> str:
        last = "no solve yet" if self.result is None else repr(self.result)
        return f"<solver {self._type} for PETSc: {last}>"

    def setFromOptions(self, ksp: PETSc.KSP) -> None:
        """Read the options."""
        options = petsc().Options(ksp.getOptionsPrefix())
        self._type = options.getString("ksp_wollemi_type", self._type)
        self._executor = options.getString("ksp_wollemi_executor", self._executor or "") or None

    def setUp(self, ksp: PETSc.KSP) -> None:
        """Disable the PC if the solver chooses its own preconditioner."""
        if self._type in ("auto", "direct") and _own_preconditioner(ksp.getPC()) is None:
            ksp.getPC().setType("none")

    def solve(self, ksp: PETSc.KSP, b: PETSc.Vec, x: PETSc.Vec) -> None:
        """Solve, and pass the iterations, the norms and the reason to the KSP."""
        if self._operand is None:
            self._operand = _Operand(self._executor)
        changed = self._operand.follow(ksp.getOperators()[0])
        right = b.getArray(readonly=True)
        guess = x.getArray(readonly=True).copy() if ksp.getInitialGuessNonzero() else None
        result = self._solved(ksp, right, guess, changed)
        x.getArray()[:] = result.x
        space = ksp.getOperators()[0].getNullSpace()
        if space.handle:
            space.remove(x)
        self.result = result
        _tell(ksp, result)

    def _solved(
        self,
        ksp: PETSc.KSP,
        b: np.ndarray[Any, Any],
        x0: np.ndarray[Any, Any] | None,
        changed: bool,
    ) -> Result:
        assert self._operand is not None
        rtol, atol, _, limit = ksp.getTolerances()
        A, own = self._operand.matrix, _own_preconditioner(ksp.getPC())
        if self._type == "auto":
            M = "auto" if own is None else own.M
            maxiter = None if limit == DEFAULT_LIMIT else limit
            return solve(A, b, x0, M=M, rtol=rtol, atol=atol, maxiter=maxiter)
        if self._type == "direct":
            return self._factors(A, changed, rtol=rtol, atol=atol).solve(b)
        M = _applied(ksp.getPC(), A) if own is None else own.M
        settings = _krylov(self._type).replace(rtol=rtol, atol=atol, maxiter=limit)
        if changed or self._solver is None or M is not self._solver_M or settings != self._settings:
            self._solver, self._solver_M, self._settings = settings.replace(M=M).on(A), M, settings
        return self._solver.solve(b, x0)

    def _factors(self, A: LinOp, changed: bool, **tolerances: float) -> Any:
        assert self._operand is not None
        settings = Settings(Direct, tolerances)
        if self._solver is None or self._operand.is_new or settings != self._settings:
            self._solver, self._settings = settings.on(A), settings
        elif changed:
            self._solver.update(A)
        return self._solver

    def view(self, ksp: PETSc.KSP, viewer: PETSc.Viewer) -> None:
        """Print the last solve, for ``-ksp_view``."""
        viewer.printfASCII(f"  wollemi: type {self._type}\n")
        if self.result is not None:
            viewer.printfASCII(f"  {self.result.solver}: {self.result.reason}\n")
            for note in self.result.notes:
                viewer.printfASCII(f"  {note}\n")

    def reset(self, ksp: PETSc.KSP) -> None:
        """Drop the matrix and the solver."""
        self._operand = self._solver = self._solver_M = self._settings = None


def _krylov(text: str) -> Settings:
    """Return the settings of ``"name:option=value"``.

    Raises
    ------
    InvalidArgument
        If there is no Krylov solver with this name.
    """
    name, _, rest = text.partition(":")
    if name.lower() not in SOLVERS:
        raise InvalidArgument(
            f"-ksp_wollemi_type: no solver is called {name!r}; known: auto, direct, "
            f"{', '.join(sorted(SOLVERS))}"
        )
    return Settings(SOLVERS[name.lower()], options_in(rest))


def _own_preconditioner(pc: PETSc.PC) -> Preconditioner | None:
    """Return wollemi's object behind a PC, or None."""
    context = pc.getPythonContext() if pc.getType() == "python" else None
    return context if isinstance(context, Preconditioner) else None


def _applied(pc: PETSc.PC, A: LinOp) -> LinOp | None:
    """Return a PETSc PC as an operator, or None for the type ``none``."""
    if pc.getType() == "none":
        return None
    left, right = pc.getOperators()[1].createVecs()
    operator = vector_map(A.shape, right, left, pc.apply, pc.applyTranspose)
    return as_linop(operator, A.executor)


def _tell(ksp: PETSc.KSP, result: Result) -> None:
    """Pass the outcome of a solve to a KSP."""
    reasons = petsc().KSP.ConvergedReason
    norms = np.atleast_1d(result.residuals)
    for iteration, norm in enumerate(norms):
        ksp.logConvergenceHistory(float(norm))
        ksp.setIterationNumber(iteration)
        ksp.setResidualNorm(float(norm))
        ksp.monitor(iteration, float(norm))
    ksp.setIterationNumber(result.iterations)
    ksp.setResidualNorm(float(result.residual_norm))
    ksp.setConvergedReason(getattr(reasons, _REASONS.get(result.stops[0], "DIVERGED_NULL")))
