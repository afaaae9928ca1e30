"""GMRES with the corrections of earlier cycles in its search space."""

from __future__ import annotations

from typing import Any

from ...core.dtypes import real_dtype
from ...core.factors import whole_number
from ...core.operations import vector
from ..driver.workspace import Workspace
from .fgmres import Fgmres
from .gmres import RESTART


class Lgmres(Fgmres):
    """Restarted GMRES with corrections of the last cycles in its Krylov space: "loose" GMRES.

    Residuals of restarted GMRES often alternate between two directions. A few corrections of
    earlier cycles, which approximate the error, prevent this. Use it if :class:`Gmres` needs many
    cycles; within one cycle, both are equal.

    Parameters
    ----------
    A : LinOp or matrix, shape (n, n)
        The operator.
    M : LinOp, matrix or callable, optional
        An approximate inverse of ``A``, applied from the right.
    restart : int
        Number of Krylov vectors in a cycle.
    augmentation : int
        Number of corrections that are kept; a cycle has as many additional iterations. Usual values
        are 1 to 3.
    basis : {"float32", "float16", "bfloat16"}, optional
        As for :class:`Fgmres`.
    rtol, atol, maxiter, stop, dtype, executor
        As for :class:`Cg`; ``maxiter`` counts iterations, not cycles.

    Raises
    ------
    InvalidArgument
        If ``restart`` is below 1 or ``augmentation`` below 0.

    Notes
    -----
    The first cycles have fewer corrections and are shorter. A new solve starts without corrections,
    so that solves are reproducible.

    Iteration ``j`` reads the matrix once and moves ``2 j + 13`` vectors, plus the traffic of ``M``.

    References
    ----------
    A. H. Baker, E. R. Jessup and T. Manteuffel, A technique for accelerating the convergence of
    restarted GMRES, SIAM J. Matrix Anal. Appl. 26 (2005), figure 1.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0], [2.0, 3.0]]))
    >>> x, info = wl.solvers.Lgmres(A, rtol=1e-10).solve(np.array([1.0, 2.0]))
    >>> np.round(10 * x, 6), info
    (array([1., 6.]), 0)
    """

    def __init__(
        self,
        A: Any,
        M: Any = None,
        *,
        restart: int = RESTART,
        augmentation: int = 3,
        **settings: Any,
    ) -> None:
        count = whole_number(augmentation, "augmentation")
        super().__init__(A, M, restart=restart, **settings)
        self.augmentation = count
        #: Corrections, of shape (n, k), with which a solve starts, the newest last.
        self.start_vectors: list[Any] = []
        #: Number of Krylov vectors of a cycle, and its number of iterations.
        self.krylov = int(self.cycle or 1)
        self.cycle = max(min(self.krylov + self.augmentation, self.shape[0]), 1)

    def _keeps_directions(self, work: Workspace) -> bool:
        return True

    def allocate_extra(self, work: Workspace) -> None:
        """Allocate the corrections, the oldest first, and their norms; the norm 0 means none."""
        places = max(self.augmentation, 1)
        work.first = self.krylov if self.augmentation else self.longest + 1
        work.array("extra", (places, work.n, work.k), work.dtype)
        work.array("size", (places, work.k), real_dtype(work.dtype))

    def begin(self, work: Workspace) -> None:
        """Drop the corrections of earlier solves, or copy the given ones."""
        super().begin(work)
        run, k = work.executor.run, work.k
        for size in work.size:
            run(vector.fill, size.reshape(k, 1), 0.0)
        given = self.start_vectors[-self.augmentation :] if self.augmentation else []
        for i, correction in enumerate(given):
            place = self.augmentation - len(given) + i
            work.executor.copy_into(work.extra[place], correction.astype(work.dtype))
            run(vector.norm, work.extra[place], work.size[place])
        work.corrections = len(given)

    def next_cycle(self, work: Workspace) -> int | None:
        """Return the length of a cycle with the current number of corrections."""
        length = min(self.krylov + work.corrections, self.longest)
        work.corrections = min(work.corrections + 1, self.augmentation)
        return length

    def finish(self, work: Workspace) -> None:
        """Set x += Z y, and store Z y over the oldest correction."""
        super().finish(work)
        w, run, k = work, work.executor.run, work.k
        if not self.augmentation:
            return
        for i in range(self.augmentation - 1):
            run(vector.axpby, w.extra[i + 1], w.extra[i], 1.0, 0.0)
            run(vector.axpby, w.size[i + 1].reshape(k, 1), w.size[i].reshape(k, 1), 1.0, 0.0)
        run(vector.axpby, w.w, w.extra[self.augmentation - 1], 1.0, 0.0)
        run(vector.norm, w.w, w.size[self.augmentation - 1])
