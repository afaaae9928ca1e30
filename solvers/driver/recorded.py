"""A solve on fixed arrays, which a user's CUDA graph can capture.

The host makes no decision: the device computes the threshold, runs one cycle until the status says
stop, and computes the true residual. The host reads the status only on request.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.dtypes import real_dtype
from ...core.errors import InvalidArgument, UnsupportedOperation
from ...core.links import works_alone
from ...core.operands import as_block, is_host, native_in_place
from ...core.status import READ, Stop
from ...core.tracked import untracked
from ...core.wording import counted
from .scaling import LEAST_NORM, SAFE_NORMS, largest_values
from .verdict import ended_by, verdict

if TYPE_CHECKING:
    from ..krylov.base import KrylovSolver


class RecordedStatus(NamedTuple):
    """The state of a recorded solve after its last run.

    Attributes
    ----------
    stop : Stop
        The reason for its end.
    iterations : int
        Number of iterations.
    residual_norm : float
        The norm of the true residual.
    threshold : float
        The upper bound of the norm for convergence.
    """

    stop: Stop
    iterations: int
    residual_norm: float
    threshold: float

    def __repr__(self) -> str:
        return (
            f"<RecordedStatus: {self.reason}; {counted(self.iterations, 'iteration')}, residual "
            f"norm {self.residual_norm:.3g}, threshold {self.threshold:.3g}>"
        )

    @property
    def converged(self) -> bool:
        """Whether the true residual meets the tolerance."""
        return self.stop in (Stop.CONVERGED, Stop.ITERATIONS)

    @property
    def reason(self) -> str:
        """The reason as a sentence, with the remedy."""
        return self.stop.sentence


class RecordedSolve:
    """Solves ``A x = b`` for the current values of ``b``, by launches alone.

    :meth:`KrylovSolver.recorded` creates it. A call solves the system and writes ``x``. On
    ``cuda``, a call while the current stream is captured (``torch.cuda.graph``,
    ``stream.begin_capture()``) adds the solve to the graph, with its loop as a conditional node. A
    solve is one cycle from a zero guess, without checks of the scale of ``b``; :meth:`status` is
    the verdict on the last one.

    Parameters
    ----------
    solver : KrylovSolver
        The solver.
    b, x : array, shape (n,) or (n, 1)
        The right-hand side and the solution: arrays of the executor, which are used in place; on
        hosts also dense CPU tensors of other libraries.
    """

    def __init__(self, solver: KrylovSolver, b: Any, x: Any) -> None:
        executor = solver.executor
        arrays = {"b": b, "out": x}
        for name, array in arrays.items():
            if executor.owns(array):
                continue
            if not is_host(array):
                arrays[name] = native_in_place(executor, array, name)
            elif executor.xp is np and hasattr(array, "__dlpack__"):
                arrays[name] = np.from_dlpack(untracked(array, name))  # the same memory
            else:
                raise InvalidArgument(
                    f"{name}: expected an array of {executor.name}, where the solve is recorded, "
                    f"got {type(array).__name__}; make one with executor.from_host"
                )
        self.solver, self.executor = solver, executor
        self._user_arrays = b, x
        self._b, self._x = (
            as_block(executor, array, solver.shape[0], name) for name, array in arrays.items()
        )
        dtype = solver._precision_for(solver.dtype, self._b.dtype)
        # as_block converts integers into a copy: the solve would not see later values of the array.
        for (name, array), block in zip(arrays.items(), (self._b, self._x), strict=True):
            if np.dtype(array.dtype) != np.dtype(block.dtype):
                raise InvalidArgument(
                    f"{name}: expected an array of {dtype}, which the solve reads or writes in "
                    f"place, got {array.dtype}; convert it with {name}.astype({str(dtype)!r})"
                )
        if self._b.dtype != dtype or self._x.dtype != dtype or self._b.shape[1] != 1:
            raise InvalidArgument(
                f"b and out: expected one vector of {dtype} each, got {self._b.shape} of "
                f"{self._b.dtype} and {self._x.shape} of {self._x.dtype}"
            )
        self.work = work = solver._new_workspace(dtype, 1)
        self._require_straight()
        linear, real = solver._linear, real_dtype(dtype)
        assert linear is not None
        self.limit = (
            10 * max(solver.shape[0], 1) if linear.iterations is None else linear.iterations
        )
        cycle = solver.next_cycle(work)
        self.limit = self.limit if cycle is None else min(self.limit, cycle)
        low, high = SAFE_NORMS[real]
        status = work.status
        first = {
            "stop": 0, "running": 1, "threshold": 0, "iterations": 0, "norm": 0,
            "relative": linear.relative, "absolute": linear.absolute, "least": low, "most": high,
        }  # fmt: skip
        #: The initial values of the status, which are copied on the device before a solve.
        self._first = [
            (
                getattr(status, name),
                executor.from_host(np.full(1, value, _host_dtype(status, name))),
            )
            for name, value in first.items()
        ]
        work.residual.make(work.x, work.spare)  # operators prepare their one-time data
        self._loop = executor.recordable_loop(work.iteration)
        self()

    def _require_straight(self) -> None:
        """Raise if a solve needs decisions of the host."""
        solver, work = self.solver, self.work
        name = type(solver).__name__
        if not (solver._goes_straight and work.entering.resident):
            raise UnsupportedOperation(
                f"{name}.recorded: the host takes part in this solve (criteria of your own, a "
                "function in Python as A or M, or cycles of different lengths). Use rtol=, atol= "
                "and maxiter=, operators of wollemi, or wl.LinearOperator(..., capture=True)"
            )
        if not works_alone(self.executor) or work.residual.is_opaque or work.scales.A != 1.0:
            raise UnsupportedOperation(
                f"{name}.recorded: the operator is shared by a group, or its values are so large "
                "or small that the host rescales them; use solve"
            )

    def __call__(self) -> None:
        """Solve for the values in ``b``, or record the solve if the stream is captured."""
        self.solver.A._follow_writes()
        self.executor.submit(f"{type(self.solver).__name__}.recorded", self, self._run)

    def __repr__(self) -> str:
        name, n = type(self.solver).__name__, self.solver.shape[0]
        M = f" with {self.solver.M!r}" if self.solver.M is not None else ""
        return f"<recorded {name} for {n} unknowns, {self.work.dtype} on {self.executor.name}{M}>"

    #: Captures test whether the parts of an operator are prepared; the constructor has run them.
    resident = False

    def _run(self) -> None:
        executor, work = self.executor, self.work
        for target, value in self._first:
            executor.copy_into(target, value)
        executor.copy_into(work.r, self._b)
        work.entering.body()
        self._loop.run(self.limit)
        executor.copy_into(work.spare, self._b)
        work.leaving.body()
        executor.copy_into(self._x, work.x)

    def status(self) -> RecordedStatus:
        """Return the verdict on the last solve, after all submitted work."""
        solver = self.solver
        members = dict(zip(READ, self.work.status.read_together(*READ), strict=True))
        begun, norm, threshold = (float(members[n][0]) for n in ("first", "true", "threshold"))
        done, code = int(members["iterations"][0]), int(members["stop"][0])
        real = real_dtype(self.work.dtype)
        if begun == 0:  # or if squares underflow to 0
            is_zero = largest_values(self.executor, self._b)[0] == 0
            stop = Stop.CONVERGED if is_zero and norm == 0 else Stop.OUT_OF_RANGE
        else:
            stop = _verdict(solver, members, begun, norm, threshold, done, code, self.limit, real)
        return RecordedStatus(stop, done, norm, threshold)


def _host_dtype(status: Any, name: str) -> np.dtype[Any]:
    return np.dtype(getattr(status, name).dtype)


def _verdict(
    solver: KrylovSolver,
    members: dict[str, Any],
    begun: float,
    norm: float,
    threshold: float,
    done: int,
    code: int,
    limit: int,
    real: np.dtype[Any],
) -> Stop:
    low, high = SAFE_NORMS[real]
    if not isfinite(float(members["largest"][0])) or not isfinite(norm):
        return Stop.NOT_FINITE
    if not low <= begun <= high:
        return Stop.OUT_OF_RANGE
    if norm <= threshold:
        return Stop.CONVERGED if max(norm, threshold) >= LEAST_NORM[real] else Stop.OUT_OF_RANGE
    linear = solver._linear
    assert linear is not None
    capacity = members["history"].shape[0]
    last = members["history"][(done - 1) % capacity].item() if done else None
    stop = verdict(
        Stop.RUNNING,
        ended_by(solver, code, last, real),
        progress=norm <= solver.PROGRESS * begun,
        exhausted=done >= limit,
        tolerated=linear.tolerated,
        counted=linear.iterations is not None,
        ends=solver.FINAL,
    )
    return Stop.STAGNATED if stop is Stop.RUNNING else stop
