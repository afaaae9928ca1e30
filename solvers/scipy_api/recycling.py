"""Krylov solvers with SciPy's signatures that reuse vectors of earlier cycles or systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.distributed.shared import over_groups
from ...core.errors import InvalidArgument, UnsupportedOperation
from ...core.operator_conversions import as_linop
from ...core.suggest import checked_keywords
from ..batch.choose import is_batch
from ..krylov.base import KrylovSolver
from ..krylov.gcrotmk import Gcrotmk
from ..krylov.lgmres import Lgmres
from .krylov import Callback, _of_batch, _start, _vector, require_numbers


@checked_keywords()
@over_groups
def lgmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int = 1000,
    M: Any = None,
    callback: Callback = None,
    inner_m: int = 30,
    outer_k: int = 3,
    outer_v: list[Any] | None = None,
    store_outer_Av: bool = True,
    prepend_outer_v: bool = False,
) -> tuple[Any, int]:
    """Solve ``A x = b`` by LGMRES; see ``scipy.sparse.linalg.lgmres`` and :class:`Lgmres`.

    Parameters
    ----------
    maxiter : int
        Cycles at most, as in SciPy; the callback is called at the end of each.
    inner_m, outer_k : int
        Numbers of Krylov vectors of a cycle, and of corrections that are kept.
    outer_v : list of (v, A v), optional
        Initial corrections, the newest last, to which the corrections of this solve are added, one
        column each. The products are recomputed.
    store_outer_Av : bool
        Whether ``A v`` is stored in ``outer_v``, or None.
    prepend_outer_v : bool
        False: corrections come after the Krylov vectors.

    Returns
    -------
    x : array, shape (n,) or (n, k)
        The solution, or the best iterate; a single column is returned as a vector.
    info : int
        0 after convergence, else the number of cycles.

    Raises
    ------
    UnsupportedOperation
        If ``prepend_outer_v`` is True.
    """
    if prepend_outer_v:
        raise UnsupportedOperation(
            "lgmres: corrections come after the Krylov vectors; leave prepend_outer_v at False"
        )
    if is_batch(A):
        _refuse_kept("outer_v", outer_v)
        limit = int(maxiter) * max(min(inner_m + outer_k, A.shape[0]), 1)
        options = {
            "rtol": rtol, "atol": atol, "restart": inner_m, "augmentation": outer_k,
            "maxiter": limit,
        }  # fmt: skip
        return _of_batch(Lgmres, A, b, x0, M, callback, options)
    operator = as_linop(A)
    n, first = operator.shape[0], len(outer_v or [])
    lengths = [min(inner_m + min(first + i, outer_k), n) for i in range(outer_k + 1)]
    solver = Lgmres(
        operator, M, rtol=rtol, atol=atol, restart=inner_m, augmentation=outer_k,
        maxiter=_iterations(maxiter, lengths),
    )  # fmt: skip
    solver.start_vectors = [_column(solver, v) for v, _ in outer_v or []]
    b = _vector(b, operator.shape[0])
    result = solver.solve(b, _start(solver, b, x0), callback=callback)
    require_numbers(solver, result)
    if outer_v is not None:
        work = solver.workspace(result.x.dtype, 1)
        sizes = np.asarray(solver.executor.to_host(work.size))[:, 0]
        for place in range(solver.augmentation):
            if place >= solver.augmentation - work.corrections and sizes[place] > 0:
                v = np.array(solver.executor.to_host(work.extra[place]))[:, 0] / sizes[place]
                outer_v.append((v, solver.A.apply(v) if store_outer_Av else None))
        del outer_v[: max(len(outer_v) - outer_k, 0)]
    return result.x, 0 if result.converged else _cycles(result.iterations, lengths)


@checked_keywords()
@over_groups
def gcrotmk(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int = 1000,
    M: Any = None,
    callback: Callback = None,
    m: int = 20,
    k: int | None = None,
    CU: list[Any] | None = None,
    discard_C: bool = False,
    truncate: str = "oldest",
) -> tuple[Any, int]:
    """Solve ``A x = b`` by GCROT(m,k); see ``scipy.sparse.linalg.gcrotmk`` and :class:`Gcrotmk`.

    Parameters
    ----------
    maxiter : int
        Cycles at most, as in SciPy; the callback is called at the end of each.
    m, k : int
        Numbers of iterations of a cycle, and of vectors that are kept; ``k`` is ``m`` by default.
    CU : list of (c, u), optional
        Initial vectors, to which the vectors of this solve are added, one column each; each ``c``
        is recomputed from its ``u``.
    discard_C : bool
        Whether None replaces each ``c`` in ``CU``.
    truncate : {'oldest'}
        The vector that a new one replaces.

    Returns
    -------
    x : array, shape (n,) or (n, k)
        The solution, or the best iterate; a single column is returned as a vector.
    info : int
        0 after convergence, else the number of cycles.

    Raises
    ------
    UnsupportedOperation
        If ``truncate`` is SciPy's ``'smallest'``.
    """
    if truncate == "smallest":
        raise UnsupportedOperation(
            "gcrotmk: a new vector replaces the oldest; leave truncate at 'oldest'"
        )
    if truncate != "oldest":
        raise InvalidArgument(f"truncate: expected 'oldest', got {truncate!r}")
    count = m if k is None else k
    if is_batch(A):
        _refuse_kept("CU", CU)
        limit = int(maxiter) * max(min(m + count, A.shape[0]), 1)
        options = {"rtol": rtol, "atol": atol, "restart": m, "k": count, "maxiter": limit}
        return _of_batch(Gcrotmk, A, b, x0, M, callback, options)
    operator = as_linop(A)
    n, first = operator.shape[0], len(CU or [])
    lengths = [min(m + max(count - first - i, 0), n) for i in range(count + 1)]
    solver = Gcrotmk(
        operator, M, rtol=rtol, atol=atol, restart=m, k=count, maxiter=_iterations(maxiter, lengths)
    )
    solver.start_vectors = [_column(solver, u) for _, u in CU or []]
    b = _vector(b, operator.shape[0])
    result = solver.solve(b, _start(solver, b, x0), callback=callback)
    require_numbers(solver, result)
    if CU is not None:
        work, to_host = solver.workspace(result.x.dtype, 1), solver.executor.to_host
        CU.clear()
        for i in reversed(range(solver.outer)):
            c, u = (np.array(to_host(block[i]))[:, 0] for block in (work.outer_c, work.outer_u))
            if c.any():
                CU.append((None if discard_C else c, u))
    return result.x, 0 if result.converged else _cycles(result.iterations, lengths)


def _refuse_kept(name: str, vectors: list[Any] | None) -> None:
    """Raise InvalidArgument if vectors of earlier systems are given for a batch."""
    if vectors is not None:
        raise InvalidArgument(
            f"{name}: a batch of systems keeps no vectors; leave it out, or solve A[k] with it"
        )


def _iterations(cycles: int, lengths: list[int]) -> int:
    """Return the number of iterations of ``cycles`` cycles; later cycles have the last length."""
    count = int(cycles)
    return sum(lengths[:count]) + max(count - len(lengths), 0) * lengths[-1]


def _cycles(iterations: int, lengths: list[int]) -> int:
    """Return the number of cycles of ``iterations`` iterations, at least one."""
    count = 0
    while count < len(lengths) and iterations > 0:
        iterations -= lengths[count]
        count += 1
    return max(count + -(-max(iterations, 0) // max(lengths[-1], 1)), 1)


def _column(solver: KrylovSolver, v: Any) -> Any:
    """Return a vector as a block on the solver's executor."""
    executor = solver.executor
    if not executor.owns(v) or isinstance(v, (list, tuple)):
        v = executor.from_host(np.asarray(v))
    return v.reshape(solver.shape[0], 1)
