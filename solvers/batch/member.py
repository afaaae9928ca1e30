"""A matrix that holds the values of one system after the other, with its solver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.batch import BatchMatrix
from ...core.batch.systems import MemberPrograms
from ...core.formats import Csr
from ...core.iteration import Replay
from ...core.operations import vector
from ...core.settings import Settings
from ...core.stopping import AbsoluteResidual, Criterion, Iterations, RelativeResidual
from ..preconditioners.base import Preconditioner
from ..preconditioners.names import parsed
from .preconditioner import BatchPreconditioner

if TYPE_CHECKING:
    from ...core.batch.csr import BatchCsr
    from ...core.executor import Array, Executor
    from ..krylov.base import KrylovSolver


class Member:
    """The matrix of the current system of a batch, and the solver that all systems share.

    Parameters
    ----------
    kind : type
        The class of the solver.
    A : BatchCsr
        The batch, in the dtype of the solve.
    M : object
        The preconditioner as the user gave it.
    options : dict
        Options of the solver, without tolerances.
    executor : Executor
        The executor of the member, which reads the arrays of the batch.
    """

    def __init__(
        self,
        kind: type[KrylovSolver],
        A: BatchCsr,
        M: Any,
        options: dict[str, Any],
        executor: Executor,
    ) -> None:
        self.kind, self.A, self.options, self.executor = kind, A, options, executor
        self.matrix = _member_matrix(A, executor)
        self.M: Any = parsed(M) if isinstance(M, str) else M
        self._own_M: tuple[BatchCsr, Csr] | None = None
        if isinstance(M, BatchPreconditioner):
            if M.A is A or (M.A.dtype == A.dtype and _same_values(M.A, A)):
                self.M = M.settings
            else:
                batch = M.A.tocsr().astype(A.dtype)
                self._own_M = (batch, _member_matrix(batch, executor))
        elif isinstance(M, BatchMatrix):
            batch = M.tocsr().astype(A.dtype)
            self._own_M = (batch, _member_matrix(batch, executor))
            self.M = self._own_M[1]
        elif hasattr(M, "to") and hasattr(M, "shape"):
            self.M = M.to(executor)
        self.solver: KrylovSolver | None = None
        #: The programs for one system; None until they were requested.
        self.known: MemberPrograms | None = None
        self.is_known = False

    def load(self, k: int, stop: Criterion) -> KrylovSolver:
        """Return the solver for matrix ``k`` with a stopping criterion.

        Raises
        ------
        WollemiError
            If the preconditioner cannot be built for the matrix; the next call rebuilds it.
        """
        self.matrix.update_values(_values_of(self.A, k, self.executor))
        if self._own_M is not None:
            batch, own_M = self._own_M
            own_M.update_values(_values_of(batch, k, self.executor))
        if self.solver is None or not self._follows_exactly(self.solver):
            M = self.M
            if isinstance(M, BatchPreconditioner):
                assert self._own_M is not None
                M = M.settings.on(self._own_M[1])
            self.solver = self.kind(self.matrix, M=M, stop=stop, **self.options)
        elif isinstance(self.M, BatchPreconditioner):
            self.solver.M.update()  # type: ignore[union-attr]
        elif not self._is_fixed(self.solver):
            self.solver.update()
        self.solver._stop_at(stop)
        return self.solver

    def _follows_exactly(self, solver: KrylovSolver) -> bool:
        """Return whether an update has the same result as a new set-up, in every bit.

        Then results do not depend on the previous system of the member.
        """
        if solver._has_numbers_of_A:
            return False
        return self._is_fixed(solver) or bool(getattr(solver.M, "_follows_exactly", False))

    # ---- programs of one system, for executors that solve many

    def programs(self) -> MemberPrograms | None:
        """Return the recorded programs of the loaded solver, or None if there are none.

        There are none if the host takes part in iterations or determines the length of cycles, or
        if recorded operations cannot rebuild the preconditioner.
        """
        solver = self.solver
        if solver is None or solver._linear is None or not solver._linear.tolerated:
            return None
        if not solver._goes_straight or solver._period is not None or solver.BY_HOST:
            return None
        is_fixed = self._is_fixed(solver)
        refresh, flags = (None, None) if is_fixed else self._refreshing(solver)
        if refresh is None and not is_fixed:
            return None
        work = solver.take_workspace(self.A.dtype, 1)  # it is not returned: the member keeps it
        if not work.iteration.resident or not work.beginning.resident:
            return None
        work.vectors("b")
        work.of_batch = True
        on, status = self.executor, work.status

        def measure() -> None:
            solver.begin(work)
            on.run(vector.norm, work.b, status.first)

        def restart() -> None:
            on.run(vector.axpby, work.b, work.r, 1.0, 0.0)
            work.verify()
            solver.initialize(work)

        def judge() -> None:
            on.run(vector.axpby, work.b, work.spare, 1.0, 0.0)
            work.residual.make(work.x, work.spare)
            on.run(vector.norm, work.spare, status.true)
            on.run(vector.largest, work.x, status.largest)

        # operators prepare their one-time data, such as plans, before a program is recorded
        for body in (measure, restart, work.iteration.body, lambda: solver.finish(work), judge):
            body()
        copies = len(self.matrix._copies) or self.matrix.plan.algorithm.copies
        if (on.systems_by_plans and copies) or "A_T" in vars(work):
            return None  # copies would keep the values of the first matrix
        return MemberPrograms(
            values=self.matrix.data,
            b=work.b,
            x=work.x,
            status=status,
            refresh=refresh,
            flags=flags,
            measure=Replay(measure),
            restart=Replay(restart),
            iterate=work.iteration,
            finish=Replay(lambda: solver.finish(work)),
            judge=Replay(judge),
            cycle=min(solver.cycle or status.capacity, status.capacity),
            progress=solver.PROGRESS,
        )

    def _refreshing(self, solver: KrylovSolver) -> tuple[Replay | None, Array | None]:
        M = solver.M
        has_own_values = solver._has_numbers_of_A or self._own_M is not None
        if not isinstance(M, Preconditioner) or has_own_values:
            return None, None
        recording = M._recorded_refresh(self.matrix)
        return (None, None) if recording is None else (Replay(recording.body), recording.failures)

    def _is_fixed(self, solver: KrylovSolver) -> bool:
        """Return whether all systems share the solver and the preconditioner of the first one.

        An operator or a function serves all systems. A class, a name or settings create a
        preconditioner for each matrix, as does the default of the method.
        """
        if solver._has_numbers_of_A or self._own_M is not None:
            return False
        is_made_from_A = isinstance(self.M, (type, Settings)) or self.M is None
        return solver.M is None or not is_made_from_A


def _member_matrix(A: BatchCsr, executor: Executor) -> Csr:
    pattern = A.pattern.to(executor)
    data = executor.zeros((A.nnz,), A.dtype)
    member = Csr._from_arrays(executor, A.shape, data, pattern.indices, pattern.indptr, _lean=True)
    member._pattern = pattern._pattern
    return member


def _values_of(A: BatchCsr, k: int, executor: Executor) -> Array:
    """Return the values of one matrix as a native array of the member's executor."""
    return executor.brought(A.executor, A._values[k])


def _same_values(A: BatchMatrix, B: BatchMatrix) -> bool:
    a, b = A.tocsr()._values, B.tocsr()._values
    return a.shape == b.shape and bool((a == b).all())


def criterion(relative: float, absolute: float, count: int) -> Criterion:
    """Return the criterion of one system."""
    return RelativeResidual(relative) | AbsoluteResidual(absolute) | Iterations(count)
