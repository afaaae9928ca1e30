"""Flexible GMRES: the preconditioner may be a different one in every iteration."""

from __future__ import annotations

from typing import Any, ClassVar

from ...core.dtypes import real_dtype
from ...core.operations import gmres, vector
from ..driver.workspace import Workspace
from .gmres import RESTART, Gmres


class Fgmres(Gmres):
    """Restarted flexible GMRES, for any square operator and a preconditioner that may vary.

    The preconditioned vectors are stored in addition to the basis, and the correction is their
    combination. Hence ``M`` may be another solver, or any varying operator; for a fixed one,
    :class:`Gmres` gives the same iterates with half the memory. In exact arithmetic, the iterates
    equal the iterates of GCR.

    Parameters
    ----------
    A : LinOp or matrix, shape (n, n)
        The operator.
    M : LinOp, matrix or callable, optional
        An approximate inverse of ``A``, applied from the right; it need not be linear.
    restart : int
        Iterations of a cycle; twice as many vectors are stored.
    basis : {"float32", "float16", "bfloat16"}, optional
        As for :class:`Gmres`; the preconditioned vectors, which are read once a cycle, stay in the
        solver's dtype.
    rtol, atol, maxiter, stop, dtype, executor
        As for :class:`Cg`; ``maxiter`` counts iterations, not cycles.

    Notes
    -----
    Iteration ``j`` reads the matrix once and moves ``2 j + 13`` vectors, plus the traffic of ``M``.
    Without ``M``, it is :class:`Gmres`.

    References
    ----------
    Y. Saad, A flexible inner-outer preconditioned GMRES algorithm, SIAM J. Sci. Comput. 14 (1993),
    algorithm 2.2.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0], [2.0, 3.0]]))
    >>> inner = wl.solvers.Bicgstab(rtol=0.1)
    >>> x, info = wl.solvers.Fgmres(A, inner, rtol=1e-10).solve(np.array([1.0, 2.0]))
    >>> np.round(10 * x, 6), info
    (array([1., 6.]), 0)
    """

    FLEXIBLE: ClassVar[bool] = True

    def __init__(self, A: Any, M: Any = None, *, restart: int = RESTART, **settings: Any) -> None:
        super().__init__(A, M, restart=restart, **settings)

    def allocate(self, work: Workspace) -> None:
        """Allocate the arrays of :class:`Gmres`, and the same number of directions."""
        super().allocate(work)
        if self._keeps_directions(work):
            work.array("directions", (self.longest + 1, work.n, work.k), work.dtype)
            self.allocate_extra(work)

    def _keeps_directions(self, work: Workspace) -> bool:
        return work.M is not None

    def allocate_extra(self, work: Workspace) -> None:
        """Allocate no vectors for the correction at the end of a cycle: they are stored."""
        work.extra, work.first = work.directions, self.longest + 1
        work.array("size", (self.longest + 1, work.k), real_dtype(work.dtype))

    def iterate(self, work: Workspace) -> None:
        """Lines 3 to 9."""
        if not self._keeps_directions(work):
            super().iterate(work)
            return
        w, run = work, work.executor.run
        if w.M is not None:
            w.M._apply(w.v, w.z, 1.0, 0.0)  # 3: z_j = M_j v_j
        run(gmres.augment, w.z, w.extra, w.size, w.first, w.directions, w.step, w.status)
        w.A._apply(w.z, w.w, 1.0, 0.0)  # 4: w = A z_j
        self.extend(w)  # 5 to 9

    def finish(self, work: Workspace) -> None:
        """X += Z y (line 12)."""
        if not self._keeps_directions(work):
            super().finish(work)
            return
        w, run = work, work.executor.run
        run(gmres.solve, w.hessenberg, w.g, w.count, w.y)
        run(gmres.combine, w.directions, w.y, w.count, w.w)
        run(vector.axpby, w.w, w.x, 1.0, 1.0)
