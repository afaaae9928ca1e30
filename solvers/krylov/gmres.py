"""The restarted generalized minimal residual method."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import name_of, real_dtype, storage_dtype
from ...core.errors import InvalidArgument
from ...core.factors import whole_number
from ...core.operations import gmres, vector
from ...core.step import BREAKDOWN, NOT_FINITE, Steps, finite, norm2, sqrt
from ..driver.workspace import Workspace
from .base import SIDES, KrylovSolver

#: Default cycle length of all restarted methods. SciPy's 20 stalls on many real matrices for which
#: 30 does not. :mod:`wollemi.linalg` uses SciPy's value.
RESTART = 30

#: If the first cycle was not enough, the norm of ``M r``, which replaces the norm of ``r``, must
#: fall below the threshold divided by this factor.
CAUTION = 10.0

step = Steps("gmres_left", vectors="r z", reals="length ratio caution")

#: At the end of a cycle, columns that have stopped are completed as well.
ending = Steps("gmres_end", vectors="x w", reals="ratio", status=False)


@step
def measure(w: Workspace) -> None:
    """Set length = caution |r|, ratio = |z| / length, caution = 10; halt where |z| is 0.

    The status uses length as the norm.
    """
    length, own = w.caution * sqrt(norm2(w.r)), sqrt(norm2(w.z))
    w.length, w.ratio = length, own / length
    w.caution = CAUTION
    w.begin(length)
    w.halt(NOT_FINITE, when=~finite(own))
    w.halt(BREAKDOWN, when=own == 0)


@step
def scale(w: Workspace) -> None:
    """Set r = z / ratio, which has the norm of the status."""
    w.r = w.z / w.ratio


@ending
def correct(w: Workspace) -> None:
    """Set x += ratio w."""
    w.x += w.ratio * w.w


class Gmres(KrylovSolver):
    """Restarted GMRES, for any square operator.

    Parameters
    ----------
    A : LinOp or matrix, shape (n, n)
        The operator.
    M : LinOp, matrix or callable, optional
        An approximate inverse of ``A``. It must not vary between iterations; for a varying one,
        such as another solver, use :class:`Fgmres`.
    side : {"right", "left"}
        The side from which ``M`` is applied. From the right, ``A M y = b``, the norm of the
        residual itself is minimized and observed. From the left, ``M A x = M b``, the norm of
        ``M (b - A x)`` is minimized, which is closer to the error if ``M`` is good and ``A`` badly
        scaled. The observed value is then this norm relative to its initial value, times the
        residual norm at the start of the cycle (ten times as much after the first cycle).
    restart : int
        Iterations of a cycle, and number of stored vectors; at most ``n``.
    basis : {"float32", "float16", "bfloat16"}, optional
        The storage dtype of the basis, lower than the solver's dtype; by default, vectors are not
        rounded. All computations use the solver's dtype. A complex solver stores pairs of real
        numbers, in float32 only. See the notes.
    rtol, atol, maxiter, stop, dtype, executor
        As for :class:`Cg`; ``maxiter`` counts iterations, not cycles.

    Notes
    -----
    The basis is orthogonalized by classical Gram-Schmidt, which reads it twice per iteration, and a
    second time if the first pass left less than a tenth of the vector's norm.

    Iteration ``j`` without ``M`` reads the matrix once and moves ``2 j + 10`` vectors.

    With ``basis``, the ``2 j`` vectors have half or a quarter of the bytes. A cycle then reduces a
    residual by at most the digits of that dtype, even if its recurrence shows more: about seven for
    float32, three for float16, two for bfloat16. The next cycle starts with the true residual, so
    that the final residual is as small as without ``basis``, after more cycles if ``rtol`` demands
    them. Elements in float16 are multiplied by 2^15, so that elements of long vectors keep their
    digits.

    Raises
    ------
    InvalidArgument
        If ``side`` or ``restart`` is invalid.
    UnsupportedDtype
        If values of the solver's dtype cannot be stored in ``basis``.

    References
    ----------
    Y. Saad and M. H. Schultz, SIAM J. Sci. Stat. Comput. 7 (1986); Y. Saad, Iterative Methods for
    Sparse Linear Systems, 2003, algorithm 9.5. L. Giraud, J. Langou and M. Rozloznik, The loss of
    orthogonality in the Gram-Schmidt orthogonalization process, Comput. Math. Appl. 50 (2005).
    ``basis``: J. I. Aliaga, H. Anzt, T. Gruetzmacher, E. S. Quintana-Orti and A. E. Tomas,
    Compressed basis GMRES on high-performance graphics processing units, Int. J. High Perform.
    Comput. Appl. 37 (2023).

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.array([[4.0, 1.0], [2.0, 3.0]]))
    >>> x, info = wl.solvers.Gmres(A, rtol=1e-10).solve(np.array([1.0, 2.0]))
    >>> np.round(10 * x, 6), info
    (array([1., 6.]), 0)
    """

    keeps_iterate = False

    def __init__(
        self,
        A: Any,
        M: Any = None,
        *,
        restart: int = RESTART,
        side: str = "right",
        basis: str | None = None,
        **settings: Any,
    ) -> None:
        if side not in SIDES:
            raise InvalidArgument(f"side: expected one of {', '.join(SIDES)}, got {side!r}")
        super().__init__(A, M, **settings)
        #: The side of ``M``; without ``M``, both are equal.
        self.side = side if self.M is not None else SIDES[0]
        self.restart = whole_number(restart, "restart", 1)
        #: The dtype in which the basis is stored; None for the dtype of the solver.
        self.basis = None if basis is None else name_of(storage_dtype(basis, self.dtype))
        self.cycle = max(min(self.restart, self.shape[0]), 1)

    @property
    def longest(self) -> int:
        """Iterations of the longest cycle that the arrays can hold."""
        return self.cycle or 1

    def allocate(self, work: Workspace) -> None:
        """Allocate the basis and the small arrays of the least squares problem."""
        s, k = self.longest + 1, work.k
        real = real_dtype(work.dtype)
        work.vectors("v", "w")
        stored = work.dtype if self.basis is None else storage_dtype(self.basis, work.dtype)
        work.array("basis", (s, work.n, k), stored)
        for name in ("h", "correction", "g", "sine", "y"):
            work.array(name, (s, k), work.dtype)
        work.array("cosine", (s, k), real)
        work.array("hessenberg", (s, s, k), work.dtype)
        work.reals("before", "after")
        work.array("count", (k,), np.int64)
        work.array("step", (1,), np.int64)
        if work.M is None:
            work.z = work.v
        else:
            work.vectors("z")
        if self.side == "left":
            work.make(step)

    def begin(self, work: Workspace) -> None:
        """Use the norm of M r, relative to the first one, instead of the norm of r."""
        if self.side == "left":
            work.executor.run(vector.fill, work.caution.reshape(work.k, 1), 1.0)

    def initialize(self, work: Workspace) -> None:
        """v_1 = r / |r| (line 1)."""
        w = work
        if self.side == "left":
            assert w.M is not None
            w.M._apply(w.r, w.z, 1.0, 0.0)
            measure(w)
            scale(w)
        w.executor.run(gmres.start, w.r, w.v, w.basis, w.g, w.count, w.step, w.status)

    def iterate(self, work: Workspace) -> None:
        """Lines 3 to 9, and the rotation that makes line 11 a triangular solve."""
        w = work
        if self.side == "left":
            assert w.M is not None
            w.A._apply(w.v, w.z, 1.0, 0.0)
            w.M._apply(w.z, w.w, 1.0, 0.0)  # w = M A v_j
        else:
            if w.M is not None:
                w.M._apply(w.v, w.z, 1.0, 0.0)
            w.A._apply(w.z, w.w, 1.0, 0.0)  # 3: w = A M v_j
        self.extend(w)

    def extend(self, work: Workspace) -> None:
        """Orthogonalize ``w`` against the basis, append it, and compute the next rotation."""
        w, run = work, work.executor.run
        # 4 to 8: h_i = <v_i, w>, w -= sum h_i v_i, v_(j+1) = w / |w|, and the j-th rotation
        run(
            gmres.extend,
            w.basis, w.w, w.h, w.correction, w.before, w.after, w.hessenberg, w.cosine, w.sine,
            w.g, w.count, w.v, w.step, w.status,
        )  # fmt: skip

    def finish(self, work: Workspace) -> None:
        """Set x += M V y (line 12)."""
        w, run = work, work.executor.run
        run(gmres.solve, w.hessenberg, w.g, w.count, w.y)
        run(gmres.combine, w.basis, w.y, w.count, w.w)
        if w.M is None:
            run(vector.axpby, w.w, w.x, 1.0, 1.0)
        elif self.side == "left":
            correct(w)
        else:
            w.M._apply(w.w, w.x, 1.0, 1.0)
