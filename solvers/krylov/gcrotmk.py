"""Flexible GMRES with a subspace that is kept between cycles, or between systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.factors import whole_number
from ...core.operations import gmres, vector
from ...core.operations import status as status_steps
from ...core.status import Status
from ...core.step import Steps, where
from ..driver.workspace import Workspace
from .fgmres import Fgmres
from .gmres import RESTART

#: ``c`` and ``u`` are the newest vectors of C and U, ``t`` and ``w`` their candidates.
step = Steps("gcrot", vectors="w t c u", reals="left before", status=False)

#: Keep a vector of ``A U`` if its norm after projection is at least this fraction of its norm
#: before.
LEAST_KEPT_LENGTH = 1e-10


@step
def keep(w: Workspace) -> None:
    """Set c = t / left, u = w / left; both 0 where left <= 1e-10 before."""
    kept = w.left > LEAST_KEPT_LENGTH * w.before
    w.c = where(kept, w.t / w.left, 0)
    w.u = where(kept, w.w / w.left, 0)


class Gcrotmk(Fgmres):
    """GCROT(m,k), for any square operator: flexible GMRES with recycled vectors.

    Each cycle keeps its correction ``u`` and ``c = A u``. Later cycles work in the space orthogonal
    to the last ``k`` vectors ``c``. With ``recycle=True``, the vectors are kept for later systems:
    for other right-hand sides they give an initial approximation, and for another matrix
    (``solver.update(A)``), the ``c`` are recomputed from the ``u``. Use it for sequences of
    systems, and if :class:`Gmres` needs many cycles.

    Parameters
    ----------
    A : LinOp or matrix, shape (n, n)
        The operator.
    M : LinOp, matrix or callable, optional
        An approximate inverse of ``A``, applied from the right; it need not be linear.
    restart : int
        Iterations of a cycle, the m of the name.
    k : int, optional
        Number of vectors that are kept; ``restart`` by default.
    recycle : bool
        Whether vectors are kept for the next solve. Solves then depend on earlier ones.
    basis : {"float32", "float16", "bfloat16"}, optional
        As for :class:`Fgmres`; the recycled vectors keep the solver's dtype.
    rtol, atol, maxiter, stop, dtype, executor
        As for :class:`Cg`; ``maxiter`` counts iterations, not cycles.

    Raises
    ------
    InvalidArgument
        If ``restart`` is below 1 or ``k`` below 0.

    Notes
    -----
    A new vector replaces the oldest one. The first cycles are longer by the number of missing
    vectors.

    Iteration ``j`` reads the matrix once and moves ``2 j + 2 k + 16`` vectors (``k``: their current
    number), plus the traffic of ``M``; a cycle reads the matrix once more and moves ``8 k``
    vectors. ``2 (restart + k)`` vectors are stored.

    References
    ----------
    J. E. Hicken and D. W. Zingg, A simplified and flexible variant of GCROT for solving
    nonsymmetric linear systems, SIAM J. Sci. Comput. 32 (2010), algorithm 2; M. L. Parks, E. de
    Sturler, G. Mackey, D. D. Johnson and S. Maiti, Recycling Krylov subspaces for sequences of
    linear systems, SIAM J. Sci. Comput. 28 (2006), section 3.2.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0], [2.0, 3.0]]))
    >>> x, info = wl.solvers.Gcrotmk(A, rtol=1e-10).solve(np.array([1.0, 2.0]))
    >>> np.round(10 * x, 6), info
    (array([1., 6.]), 0)
    """

    def __init__(
        self,
        A: Any,
        M: Any = None,
        *,
        restart: int = RESTART,
        k: int | None = None,
        recycle: bool = False,
        **settings: Any,
    ) -> None:
        count = None if k is None else whole_number(k, "k")
        super().__init__(A, M, restart=restart, **settings)
        #: Number of vectors that are kept.
        self.outer = min(self.restart if count is None else count, self.shape[0])
        #: Vectors u, of shape (n, k), with which a solve starts, the newest last.
        self.start_vectors: list[Any] = []
        self.recycle = bool(recycle)

    def _keeps_directions(self, work: Workspace) -> bool:
        return True

    def update(self, A: Any = None) -> None:
        """Update to new values of the matrix, or to another matrix; recycled vectors are kept.

        See :meth:`KrylovSolver.update`.
        """
        held = {key: works[-1] for key, works in self._workspaces.items() if works}
        super().update(A)
        if self.recycle and self.outer:
            for (dtype, columns), old in held.items():
                if old not in self._workspaces.get((dtype, columns), []):
                    work = self.workspace(dtype, columns)
                    work.executor.copy_into(work.outer_u, old.outer_u)
                    work.has_outer, work.outer_count = True, old.outer_count

    def allocate(self, work: Workspace) -> None:
        """Allocate the arrays of :class:`Fgmres`, C and U, the newest vectors first."""
        super().allocate(work)
        p, work.outer_count = self.outer, 0
        if not p:
            return
        for name in ("outer_c", "outer_u"):
            work.array(name, (p, work.n, work.k), work.dtype)
        work.array("q", (p, work.k), work.dtype)
        work.vectors("t")
        work.reals("left", "before_c")
        # indices of vectors of C, for kernels that read a basis up to an index; the first is 0
        # without vectors
        for name in ("last", "place"):
            work.array(name, (1,), np.int64)
        #: Status that completes finished columns as well: all of them run as long as it does.
        work.always = Status(work.executor, work.k, work.dtype)
        work.has_outer, work.outer_of = False, None

    @property
    def longest(self) -> int:
        """Iterations of the first cycle, without recycled vectors."""
        return min((self.cycle or 1) + self.outer, max(self.shape[0], 1))

    def next_cycle(self, work: Workspace) -> int | None:
        """Return the length of a cycle with the current number of vectors."""
        length = min((self.cycle or 1) + self.outer - work.outer_count, self.longest)
        if self.outer:  # the residual is already orthogonal to the vectors of this solve
            work.executor.copy_into(work.last, np.array([max(work.outer_count - 1, 0)]))
        work.outer_count = min(work.outer_count + 1, self.outer)
        return length

    def begin(self, work: Workspace) -> None:
        """Drop the vectors of an earlier solve, or recompute C from U for the current values."""
        super().begin(work)
        if not self.outer:
            return
        now = (id(work.A), getattr(work.A, "_values_version", None))
        if self.start_vectors or not self.recycle or not work.has_outer:
            for block in (work.outer_c, work.outer_u):
                work.executor.run(vector.fill, _flat(block), 0.0)
            work.outer_count = 0
        for i, u in enumerate(reversed(self.start_vectors[-self.outer :])):
            work.executor.copy_into(work.outer_u[i], u.astype(work.dtype))
            work.outer_count = i + 1
        if self.start_vectors or (work.outer_count and work.outer_of != now):
            self._make_outer(work)
        work.has_outer, work.outer_of = True, now
        work.executor.copy_into(work.last, np.array([max(work.outer_count - 1, 0)]))

    def _make_outer(self, work: Workspace) -> None:
        """Set C to an orthonormal basis of A U, with U such that C = A U."""
        w, run = work, work.executor.run
        for i in range(w.outer_count):
            run(vector.axpby, w.outer_u[i], w.w, 1.0, 0.0)
            w.A._apply(w.w, w.t, 1.0, 0.0)
            run(vector.norm, w.t, w.before_c)
            run(vector.norm, w.t, w.left)
            w.executor.copy_into(w.place, np.array([i - 1]))
            for _ in range(2 if i else 0):  # twice: the vectors may be almost dependent
                self._take_off(w, w.place)
            self._keep(w, i)

    def _take_off(self, work: Workspace, place: Any) -> None:
        """Orthogonalize t against C up to an index, and update w: left = |t|."""
        w, run = work, work.executor.run
        run(gmres.project, w.outer_c, w.t, w.q, w.before, place, w.always)
        run(gmres.subtract, w.outer_c, w.t, w.q, w.left, place, w.always)
        run(gmres.subtract, w.outer_u, w.w, w.q, w.after, place, w.always)

    def _keep(self, work: Workspace, i: int) -> None:
        w = work
        keep.run(
            w.executor, w=w.w, t=w.t, c=w.outer_c[i], u=w.outer_u[i], left=w.left, before=w.before_c
        )

    def initialize(self, work: Workspace) -> None:
        """Set x += U C^H r, r -= C C^H r, and begin the basis with r."""
        if not self.outer:
            super().initialize(work)
            return
        w, run = work, work.executor.run
        run(gmres.project, w.outer_c, w.r, w.q, w.before, w.last, w.status)
        run(gmres.subtract, w.outer_c, w.r, w.q, w.after, w.last, w.status)
        run(vector.axpby, w.q, w.q, -1.0, 0.0)
        run(gmres.subtract, w.outer_u, w.x, w.q, w.after, w.last, w.status)
        status_steps.start(w)
        super().initialize(w)

    def iterate(self, work: Workspace) -> None:
        """One iteration of flexible GMRES in the space orthogonal to C."""
        if not self.outer:
            super().iterate(work)
            return
        w, run = work, work.executor.run
        if w.M is not None:
            w.M._apply(w.v, w.z, 1.0, 0.0)  # z_j = M_j v_j
        run(gmres.augment, w.z, w.extra, w.size, w.first, w.directions, w.step, w.status)
        w.A._apply(w.z, w.w, 1.0, 0.0)  # w = A z_j
        run(gmres.project, w.outer_c, w.w, w.q, w.before, w.last, w.status)
        run(gmres.subtract, w.outer_c, w.w, w.q, w.after, w.last, w.status)  # w -= C C^H w
        self.extend(w)

    def finish(self, work: Workspace) -> None:
        """Set u = Z y - U C^H A Z y, x += u, and store u and A u over the oldest."""
        if not self.outer:
            super().finish(work)
            return
        w, run = work, work.executor.run
        run(gmres.solve, w.hessenberg, w.g, w.count, w.y)
        run(gmres.combine, w.directions, w.y, w.count, w.w)
        w.A._apply(w.w, w.t, 1.0, 0.0)
        run(vector.norm, w.t, w.before_c)
        self._take_off(w, w.last)
        run(vector.axpby, w.w, w.x, 1.0, 1.0)
        for block in (w.outer_c, w.outer_u):
            for i in reversed(range(self.outer - 1)):
                run(vector.axpby, block[i], block[i + 1], 1.0, 0.0)
        self._keep(w, 0)


def _flat(block: Any) -> Any:
    """Return vectors of a basis as one block."""
    vectors, n, k = block.shape
    return block.reshape(vectors * n, k)
