"""``wl.solve`` of a batch: one solver for all systems, then each failed system separately."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from ...core.batch import BatchMatrix, BatchResult, MixedBatch
from ...core.errors import InvalidArgument, ShapeMismatch
from ...core.operands import to_host
from ..direct.solver import Direct
from ..registry import SOLVERS
from .mixed import MixedResult, MixedSolver

#: Mirror images of a Hermitian matrix may differ by this many unit roundoffs of its largest value.
SLACK = 8

#: Number of matrices of a batch that are examined.
SAMPLED = 8


def is_batch(A: Any) -> bool:
    """Return whether an operand is a batch of matrices."""
    return bool(getattr(type(A), "_is_batch", False))


def solve_batch(
    A: BatchMatrix | MixedBatch,
    b: Any,
    x0: Any,
    *,
    kind: type | None,
    M: Any,
    alone: Callable[..., Any],
    settings: dict[str, Any],
    unused: dict[str, Any],
) -> BatchResult | MixedResult:
    """Solve every system of a batch by a method that suits the matrices.

    Parameters
    ----------
    A : BatchMatrix or MixedBatch
        The matrices.
    b, x0 : array or list
        Right-hand sides and initial guesses, as for the batch solver.
    kind : type, optional
        The class of the solver; chosen by default.
    M : object
        The preconditioner; "auto" is Jacobi if no diagonal value is zero.
    alone : callable
        Solves one system: ``wl.solve``. It is called for each system that the batch solver did not
        solve.
    settings : dict
        Tolerances, limits and options of the solver.
    unused : dict
        Options of ``wl.solve`` that are not supported for batches.

    Raises
    ------
    InvalidArgument
        If an option is given that is not supported for batches.
    ShapeMismatch
        If the matrices are not square.
    """
    _refuse(unused, "a batch of systems")
    if not isinstance(A, MixedBatch) and A.shape[0] != A.shape[1]:
        raise ShapeMismatch(
            f"a batch of systems needs square matrices, got {A.shape[0]}x{A.shape[1]}; "
            "wl.solve(A[k], b[k]) solves one least squares problem"
        )
    chosen = kind is None
    if isinstance(A, MixedBatch):

        def solver_of_batch(batch: BatchMatrix, **options: Any) -> Any:
            return _solver(batch, kind, M, options)

        return MixedSolver(solver_of_batch, A, **settings).solve(b, x0)
    result: BatchResult = _solver(A, kind, M, settings).solve(b, x0)
    if not chosen or bool(result.converged.all()):
        return result
    return _completed(A, b, x0, result, alone, settings)


def _refuse(options: dict[str, Any], caller: str) -> None:
    for name, value in options.items():
        if value:
            raise InvalidArgument(
                f"{name}: {caller} does not take it; leave it out, or solve A[k] alone"
            )


def _solver(A: BatchMatrix, kind: type | None, M: Any, settings: dict[str, Any]) -> Any:
    """Return a batch solver: CG for Hermitian matrices with positive diagonals, else BiCGSTAB."""
    if kind is Direct:
        _refuse({name: settings.get(name) is not None for name in ("maxiter", "stop")}, "Direct")
        _refuse({"M": not (M is None or M in ("auto", "none"))}, "Direct")
        rest = {name: value for name, value in settings.items() if name not in ("maxiter", "stop")}
        return Direct(A, **rest)
    chosen = isinstance(M, str) and M == "auto"
    sample = _sample(A) if kind is None or chosen else []
    if chosen:
        M = "jacobi" if sample and all((S.diagonal() != 0).all() for S in sample) else None
    elif isinstance(M, str) and M == "none":
        M = None
    if kind is None:
        kind = SOLVERS["cg" if sample and all(_may_be_definite(S) for S in sample) else "bicgstab"]
    return kind(A, M=M, **settings)


def _sample(A: BatchMatrix) -> list[Any]:
    """Return some matrices of a batch in SciPy's format: a wrong choice only costs time."""
    if not A.count or not A.shape[0]:
        return []
    rows = A.tocsr()
    chosen = np.unique(np.linspace(0, A.count - 1, min(SAMPLED, A.count)).astype(np.int64))
    return [rows._member(int(k)).to_scipy() for k in chosen]


def _may_be_definite(S: Any) -> bool:
    """Return whether a matrix is Hermitian to rounding with a positive diagonal."""
    if not (S.diagonal().real > 0).all():
        return False
    slack = SLACK * np.finfo(S.dtype).eps * abs(S.data).max(initial=0)
    return bool(abs((S - S.conj().T).data).max(initial=0) <= slack)


def _completed(
    A: BatchMatrix,
    b: Any,
    x0: Any,
    result: BatchResult,
    alone: Callable[..., Any],
    settings: dict[str, Any],
) -> BatchResult:
    """Return a result in which the failed systems were solved separately."""
    count, began = prod(A.batch_shape), result.seconds
    x = result.x.reshape(count, *result.x.shape[len(A.batch_shape) :])
    width = result.columns[0] if result.columns else 1
    verdicts, explained = result.verdicts, dict(result.explained)
    solved, seconds = 0, 0.0
    failed = np.flatnonzero(~result.converged.ravel())
    for k in failed.tolist():
        place = np.unravel_index(k, A.batch_shape)
        side, start = _of_system(b, A, k), _of_system(x0, A, k)
        values = A.executor.to_host(A.tocsr()._values[k])
        if not all(map(_is_finite, (values, side, start))):
            continue  # its verdict stays: a separate solve would raise
        result_of_system = alone(A[tuple(int(i) for i in place)], side, start, **settings)
        seconds += result_of_system.seconds
        solves = slice(k * width, (k + 1) * width)
        verdicts.codes[solves] = [int(stop) for stop in result_of_system.stops]
        verdicts.iterations[solves] = result_of_system.column_iterations
        verdicts.norms[solves], verdicts.thresholds[solves] = (
            result_of_system.residual_norm,
            result_of_system.threshold,
        )
        x[k] = result_of_system.x
        explained.pop(k, None)
        if not result_of_system.converged:
            explained[k] = result_of_system.reason
        solved += bool(result_of_system.converged)
    note = f"solved alone after {result.solver.lower()} failed: {solved} of {failed.size}"
    return replace(
        result, x=x.reshape(result.x.shape), seconds=began + seconds,
        notes=[*result.notes, note], explained=explained,
    )  # fmt: skip


def _is_finite(operand: Any) -> bool:
    """Return whether an operand is None or all its values are finite."""
    return operand is None or bool(np.isfinite(to_host(operand)).all())


def _of_system(operand: Any, A: BatchMatrix, k: int) -> Any:
    """Return the right-hand side or the initial guess of one system."""
    if operand is None or len(np.shape(operand)) == 1:
        return operand
    array = operand if hasattr(operand, "reshape") else np.asarray(operand)
    return array.reshape(A.count, *array.shape[len(A.batch_shape) :])[k]
