"""Singular values by thick-restart Golub-Kahan bidiagonalization."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ...core.described import Described
from ...core.dtypes import common_dtype
from ...core.errors import InvalidArgument
from ...core.factors import whole_number
from ...core.operator_conversions import as_linop
from ...core.settings import Configurable, Settings, settings_of
from ...core.setup_time import setup_seconds
from ...core.status import Stop
from ...core.vector_conversions import GroupVectorConverter, vector_converter
from ..driver.unrecorded import Unrecorded
from . import residual, tall
from .base import agreement_of, basis_size, left_at, require_tolerances, started
from .multiplicity import CopySearch, distance_of_copies, notes_on_copies
from .pencil import survive, verdicts
from .result import SingularResult
from .scale import ROUNDING, exponent_of, rescaled
from .slow import is_long, warn_of_slowness
from .vectors import Vectors

if TYPE_CHECKING:
    from ...core.executor import Array, Executor

Numbers = np.ndarray[Any, Any]


#: The remedy for slow searches of small singular values.
_OF_SQUARES = (
    "wl.linalg.eigsh(A.H @ A, sigma=0) finds their squares in a few iterations, with half of the "
    "digits"
)


class SingularValues(Unrecorded, Described, metaclass=Configurable):
    """A few largest or smallest singular triplets of an operator of any shape.

    Parameters
    ----------
    A : LinOp or matrix, shape (m, n)
        An operator with a conjugate transpose ``A.H``.
    k : int
        Number of triplets.
    which : {"LM", "SM"}
        The largest or the smallest singular values.
    ncv : int, optional
        Size of each basis; ``max(2 k + 1, 20)`` by default.
    rtol, atol : float
        A triplet has converged if the joint norm of ``A v - s u`` and ``A.H u - s v`` is at most
        ``max(rtol * s, atol)``; 0 means rounding error.
    maxiter : int, optional
        Limit of restarts; ``10 min(m, n)`` by default.
    seed : int
        Seed of the random initial vector.
    executor : Executor or str, optional
        The executor to which ``A`` is moved if it has none.

    Notes
    -----
    ``A V = U B`` and ``A.H U = V B.H + beta v e.T`` are built by alternating products with ``A``
    and ``A.H``; Gram-Schmidt, applied twice, keeps both bases orthonormal. Singular values are
    computed from the small ``B``, not as square roots of eigenvalues, so that small ones keep their
    digits. The process finds a multiple singular value once, and its other copies by rounding, late
    or never. If the values contain a zero or copies, the search starts again orthogonal to their
    vectors, until it finds no further copy; ``notes`` say so.

    References
    ----------
    V. Hernandez, J. E. Roman and A. Tomas, A robust and efficient parallel SVD solver based on
    restarted Lanczos bidiagonalization, ETNA 31 (2008), algorithm 3; J. Baglama and L. Reichel,
    Augmented implicitly restarted Lanczos bidiagonalization methods, SIAM J. Sci. Comput. 27
    (2005).

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.diag(np.arange(1.0, 51.0))[:40])
    >>> result = wl.solvers.SingularValues(A, k=2).solve()
    >>> np.round(result.s, 6), result.converged
    (array([39., 40.]), True)
    """

    SHARED = True

    #: The key of a solver in dictionaries of settings.
    ROLE: ClassVar[str] = "eigensolver"

    _options: dict[str, Any]

    def __init__(
        self,
        A: Any,
        *,
        k: int = 6,
        which: str = "LM",
        ncv: int | None = None,
        rtol: float = 0.0,
        atol: float = 0.0,
        maxiter: int | None = None,
        seed: int = 0,
        executor: Executor | str | None = None,
    ) -> None:
        require_tolerances(rtol, atol, 0 if maxiter is None else maxiter)
        self.A = as_linop(A, executor)
        rows, columns = self.A.shape
        least = min(rows, columns)
        count = whole_number(k, "k", 1, least)
        if which not in ("LM", "SM"):
            raise InvalidArgument(f"which: expected 'LM' or 'SM', got {which!r}")
        self.k, self.which, self.seed = count, which, seed
        self.ncv = basis_size(ncv, self.k, least)
        self.rtol, self.atol = float(rtol), float(atol)
        self.maxiter = 10 * least if maxiter is None else int(maxiter)
        self.executor = self.A.executor
        self.shape, self.dtype = self.A.shape, self.A.dtype
        #: Whether the process uses the adjoint, of a wide operator: the initial vector is then
        #: shorter.
        self.turned = columns > rows
        adjoint = self.A.H
        self.tall, self.wide = (adjoint, self.A) if self.turned else (self.A, adjoint)
        self._measured: tuple[Any, float, int] | None = None

    def measures(self) -> tuple[float, int]:
        """Return a norm of ``A`` in units ``2**exponent``, and the exponent."""
        version = getattr(self.A, "_values_version", 0)
        if self._measured is None or self._measured[0] != version:
            self._measured = version, *exponent_of(self.A)
        return self._measured[1:]

    @property
    def settings(self) -> Settings:
        """The class and the options of this solver, without the matrix."""
        return settings_of(self)

    def solve(self, v0: Any = None) -> SingularResult:
        """Compute the triplets.

        Parameters
        ----------
        v0 : array, shape (min(m, n),), optional
            Initial vector; random by default.

        Raises
        ------
        ShapeMismatch, InvalidArgument
            If ``v0`` does not match the operator, is not finite, or is zero.
        """
        began = time.perf_counter()
        self.A._follow_writes()
        converter = vector_converter(self.tall)
        start = started(converter, agreement_of(self), v0)
        dtype = common_dtype(self.A.dtype, *([] if start is None else [start.dtype]))
        process = _Process(self, dtype, start)
        with np.errstate(invalid="ignore", over="ignore"):  # verdicts report such numbers
            found = self._iterate(process)
        P, s, Q = found.P, found.s, found.Q
        order = np.argsort(s, kind="stable")
        s = s[order]
        left = process.U.combined(P[:, order])
        right = process.V.combined(Q[:, order])
        norms = process.residuals(left, right, s)
        eps = float(np.finfo(dtype).eps)
        limits = np.maximum(self.rtol * s, np.ldexp(self.atol, -process.exponent))
        limits = np.maximum(limits, ROUNDING * eps * process.largest)
        why = Stop.MAX_ITERATIONS if found.restarts >= self.maxiter else Stop.STAGNATED
        stops = process.stops(left, right, s, norms, limits, why)
        # left vectors have the rows of the tall operator, right ones its columns
        other = vector_converter(self.wide)
        if isinstance(other, GroupVectorConverter):
            other.whole = v0 is None or converter.whole  # type: ignore[attr-defined]
        left, right = left_at(converter, left, v0), left_at(other, right, v0)
        u, v = (right, left) if self.turned else (left, right)
        return SingularResult(
            u=u,
            s=np.ldexp(s, process.exponent),
            vt=v.conj().T,
            residual_norms=np.ldexp(norms, process.exponent),
            thresholds=np.ldexp(limits, process.exponent),
            stops=stops,
            iterations=found.restarts,
            products=process.products,
            seconds=time.perf_counter() - began,
            solver=type(self).__name__,
            executor=self.executor.name,
            setup_seconds=setup_seconds(self),
            notes=notes_on_copies(
                "singular value",
                s,
                distance_of_copies(process.largest, eps),
                lambda values: np.ldexp(values, process.exponent),
                found.checked,
            ),
        )

    def _iterate(self, process: _Process) -> _Triplets:
        eps = float(np.finfo(process.dtype).eps)
        copies = CopySearch(min(self.shape))
        tolerance, restarts, slow = max(self.rtol, eps), 0, False
        while True:
            process.grow()
            used = process.used
            B = process.B[:used, :used]
            if not np.all(np.isfinite(B)):
                nothing = np.eye(used, self.k)
                return _Triplets(nothing, np.full(self.k, np.nan), nothing, restarts)
            P, s, Q = _svd(B)
            process.largest = max(process.largest, float(s[0]))
            order = np.arange(used)[:: 1 if self.which == "LM" else -1]
            wanted = order[: self.k]
            errors = np.abs(process.beta * P[-1, wanted])
            done = errors <= np.maximum(tolerance * s[wanted], eps * process.largest)
            unwanted = order[self.k : self.k + 1]
            is_open = copies.open(s[unwanted], np.abs(process.beta * P[-1, unwanted]))
            over = restarts >= self.maxiter or process.complete
            if over or (done.all() and not is_open):
                near = distance_of_copies(process.largest, eps)
                again = not over and copies.begins(s[wanted], near)
                if not again or not process.restart_apart(P[:, wanted], s[wanted], Q[:, wanted]):
                    checked = copies.begun and not is_open
                    return _Triplets(P[:, wanted], s[wanted], Q[:, wanted], restarts, checked)
                restarts += 1
                continue
            if self.which == "SM" and not slow and self._takes_long(process):
                call, met = 'SingularValues(which="SM")', int(np.count_nonzero(done))
                warn_of_slowness(call, met, self.k, process.products, _OF_SQUARES)
                slow = True
            extra = max(int(np.count_nonzero(done)), (self.ncv - self.k) // 2)
            kept = order[: min(self.k + extra, self.ncv - 1)]
            process.restart(P[:, kept], s[kept], Q[:, kept])
            restarts += 1

    def _takes_long(self, process: _Process) -> bool:
        entries = 2 * getattr(self.A, "nnz", 0)
        return is_long(process.products, max(self.shape), self.ncv, entries)


def _svd(B: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return the singular values of a small matrix, and both sides' vectors as columns."""
    P, s, Qh = np.linalg.svd(B)
    return P, s, Qh.conj().T


class _Triplets(NamedTuple):
    """Wanted singular triplets of ``B``, the number of restarts, and whether copies were sought."""

    P: Numbers
    s: Numbers
    Q: Numbers
    restarts: int
    checked: bool = False


class _Process:
    """The bases ``U`` and ``V``, and the small matrix ``B`` of ``A V = U B``."""

    def __init__(self, solver: SingularValues, dtype: Any, start: Array | None) -> None:
        #: The user's operator is ``2**exponent`` times the operator of this process.
        self.exponent = solver.measures()[1]
        self.A, self.AH = (
            rescaled(operator.astype(dtype), -self.exponent)
            for operator in (solver.tall, solver.wide)
        )
        self.dtype = np.dtype(dtype)
        m, n = self.A.shape
        executor, size = solver.executor, solver.ncv
        rows, columns = self.A.local_rows, self.A.local_columns
        self.U = Vectors(executor, rows, size, dtype, None, solver.seed + 1, dimension=m)
        self.V = Vectors(executor, columns, size, dtype, None, solver.seed, dimension=n)
        self.size = self.used = size
        self.B = np.zeros((size, size), self.V.small)
        self.beta = self.largest = 0.0
        self.count = self.products = 0
        self.complete = False
        self.V.begin(start)

    def grow(self) -> None:
        """Continue the process until the bases are full."""
        for j in range(self.count, self.size):
            self.A._apply(self.V.row(j), self.U.w, 1.0, 0.0)
            left = self.U.orthogonalize(j)
            self.B[:j, j] = left.coefficients
            self.B[j, j] = 0.0 if left.exhausted else left.length
            if not np.isfinite(left.length):
                self.B[:] = np.nan
                return
            if left.exhausted:
                self.U.random(j)
            else:
                self.U.append(j)
            self.AH._apply(self.U.row(j), self.V.w, 1.0, 0.0)
            self.products += 2
            right = self.V.orthogonalize(j + 1)
            if not np.isfinite(right.length):
                self.B[:] = np.nan
                return
            self.beta = 0.0 if right.exhausted else right.length
            if right.exhausted:
                self.complete = not self.V.random(j + 1)
                if self.complete:
                    self.used = j + 1
                    return
            else:
                self.V.append(j + 1)
        self.count = self.size

    def restart(self, P: Numbers, s: Numbers, Q: Numbers) -> None:
        """Keep singular vectors of ``B``, followed by the last vector of the process."""
        kept = s.size
        self.U.replace(P, self.size)
        self.V.replace(Q, self.size)
        tall.copy(self.V.executor, self.V.row(self.size), self.V.row(kept))
        self.B[:] = 0
        self.B[np.arange(kept), np.arange(kept)] = s
        self.count = kept

    def restart_apart(self, P: Numbers, s: Numbers, Q: Numbers) -> bool:
        """Keep singular vectors of ``B``, followed by a random vector orthogonal to them.

        Returns
        -------
        bool
            Whether there is such a vector.
        """
        kept = s.size
        self.U.replace(P, self.size)
        self.V.replace(Q, self.size)
        self.B[:] = 0
        self.B[np.arange(kept), np.arange(kept)] = s
        self.count = kept
        return self.V.random(kept)

    def residuals(self, left: Array, right: Array, s: Numbers) -> Numbers:
        """Return the joint norms of ``A v - s u`` and ``A^H u - s v``."""
        executor = self.V.executor
        total = np.zeros(s.size)
        for operator, x, y in ((self.A, right, left), (self.AH, left, right)):
            product = executor.allocate(tuple(y.shape), self.dtype)
            operator._multiply(x, product, 1.0, 0.0)
            self.products += s.size
            total += residual.norms(executor, product, y, product, s)[0] ** 2
        return np.sqrt(total)

    def stops(
        self, left: Array, right: Array, s: Numbers, norms: Numbers, limits: Numbers, why: Stop
    ) -> list[Stop]:
        """Return the verdict on each triplet; the vectors of both sides must be orthonormal."""
        found = verdicts(norms, limits, why)
        eps = float(np.finfo(self.dtype).eps)
        kept, orthonormal = survive(s, self.exponent, eps), np.ones(s.size, bool)
        if np.all(np.isfinite(norms)):
            for block in (left, right):
                G = tall.gram(self.V.executor, block, block)
                orthonormal &= (np.abs(G - np.eye(s.size)) <= eps**0.5).all(axis=1)
        for c, stop in enumerate(found):
            if stop != Stop.NOT_FINITE and not kept[c]:
                found[c] = Stop.OUT_OF_RANGE
            elif stop == Stop.CONVERGED and not orthonormal[c]:
                found[c] = Stop.STAGNATED
        return found
