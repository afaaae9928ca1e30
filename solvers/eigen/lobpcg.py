"""The locally optimal block preconditioned conjugate gradient method."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ...core.dtypes import common_dtype
from ...core.errors import InvalidArgument, ShapeMismatch
from ...core.linop import LinOp
from ...core.operands import as_block
from ...core.precision import in_precision
from ...core.settings import Configurable
from ...core.status import Stop
from ..driver.as_preconditioner import as_preconditioner
from ..preconditioners import preconditioner
from . import residual, tall
from .base import EigenSolver, require_tolerances, verdicts
from .result import EigenResult

if TYPE_CHECKING:
    from ...core.executor import Array, Executor

Numbers = np.ndarray[Any, Any]

#: Digits that the new directions may lose to those that they are made orthogonal to, as a multiple
#: of the precision, before they are made orthogonal once more.
LOST = 1e3

#: Products with A are not repeated: what rounding adds to A X is removed this often.
REFRESH = 50


class Lobpcg(EigenSolver, metaclass=Configurable):
    """Some smallest or largest eigenpairs of a Hermitian operator or pencil, a block at a time.

    Parameters
    ----------
    A : LinOp or matrix, shape (n, n)
        Hermitian.
    M : str, LinOp, matrix, Settings or callable, optional
        Approximates the inverse of ``A``, Hermitian positive definite; for smallest eigenvalues.
    B : LinOp or matrix, shape (n, n), optional
        Hermitian positive definite: the pencil ``A x = lambda B x``.
    k : int
        Pairs; the number of vectors of the start, if one is given.
    largest : bool
        Whether the largest eigenvalues are wanted, and not the smallest.
    rtol, atol : float
        A pair has converged where the norm of ``A x - lambda B x`` is at most
        ``max(rtol * |lambda| * norm(B x), atol)``, or at the rounding of ``A``.
    maxiter : int
        Iterations at most.
    seed : int
        Of the random start.
    executor : Executor or str, optional
        Where ``A`` goes if it has no home.

    Notes
    -----
    Pairs that have converged stay in the basis and get no new directions (soft locking). The basis
    of old vectors, directions and preconditioned residuals is kept orthonormal, and the directions
    are chosen in the small coordinates, orthogonal to the new vectors. Directions that are
    dependent are left out, so that neither a start without full rank nor small matrices fail.

    An iteration moves the matrix and ``M`` once for all active vectors, and makes three kinds of
    dense products, about 42 n k^2 operations. Rayleigh-Ritz problems of 3 k unknowns are solved by
    LAPACK on the host.

    References
    ----------
    A. V. Knyazev, Toward the optimal preconditioned eigensolver, SIAM J. Sci. Comput. 23 (2001).
    J. A. Duersch, M. Shao, C. Yang and M. Gu, A robust and efficient implementation of LOBPCG,
    SIAM J. Sci. Comput. 40 (2018), algorithm 5 and section 4.2 for the basis. A. V. Knyazev, M. E.
    Argentati, I. Lashuk and E. E. Ovtchinnikov, Block locally optimal preconditioned eigenvalue
    xolvers (BLOPEX), SIAM J. Sci. Comput. 29 (2007), for soft locking.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.diag(np.arange(1.0, 101.0)))
    >>> result = wl.solvers.Lobpcg(A, M="jacobi", k=3, rtol=1e-8).solve()
    >>> np.round(result.eigenvalues, 6), result.converged
    (array([1., 2., 3.]), True)
    """

    def __init__(
        self,
        A: Any,
        M: Any = None,
        *,
        B: Any = None,
        k: int = 6,
        largest: bool = False,
        rtol: float = 1e-6,
        atol: float = 0.0,
        maxiter: int = 500,
        seed: int = 0,
        executor: Executor | str | None = None,
    ) -> None:
        require_tolerances(rtol, atol, maxiter)
        self._take(A, B, executor)
        M = preconditioner(M, self.A)
        self.M: LinOp | None = None if M is None else as_preconditioner(M, self.A)
        self.k = self._size(k, self.shape[0])
        self.largest, self.seed = bool(largest), seed
        self.rtol, self.atol, self.maxiter = float(rtol), float(atol), int(maxiter)
        if self.M is not None:
            self.dtype = common_dtype(self.dtype, self.M.dtype)

    def solve(
        self,
        X: Any = None,
        *,
        Y: Any = None,
        callback: Callable[[EigenResult], Any] | None = None,
    ) -> EigenResult:
        """Find the eigenpairs.

        Parameters
        ----------
        X : array, shape (n, k), optional
            Where to start; random by default. It is not changed.
        Y : array, shape (n, m), optional
            Constraints: vectors are kept orthogonal to them, in the inner product of ``B``.
        callback : callable, optional
            Called as ``callback(eigenvalues, residual_norms)`` after each iteration; returning True
            ends the solve.

        Returns
        -------
        EigenResult
            Smallest eigenvalues in rising order, largest in falling order, with the norms of true
            residuals and a verdict each; unpacks into ``eigenvalues, eigenvectors``.

        Raises
        ------
        ShapeMismatch, InvalidArgument
            If ``X`` or ``Y`` do not fit, or are not finite.
        """
        with np.errstate(invalid="ignore", over="ignore"):  # verdicts tell of such numbers
            return _Solve(self, X, Y, callback).run()

    def to(self, executor: Executor | str) -> Self:
        """Return this solver with its operators on another executor."""
        options = {
            **self._options,
            "M": None if self.M is None else self.M.to(executor),
            "B": None if self.B is None else self.B.to(executor),
        }
        made: Self = type(self)(self.A.to(executor), **options)
        return made


class _Solve:
    """One solve: the basis ``S = [X, P, W]``, its products with the operators, and the verdicts."""

    def __init__(self, solver: Lobpcg, X: Any, Y: Any, callback: Any) -> None:
        self.began = time.perf_counter()
        self.solver, self.asked, self.callback = solver, X, callback
        executor = self.executor = solver.executor
        n = solver.shape[0]
        given = [
            (name, as_block(executor, block, n, name))
            for name, block in (("X", X), ("Y", Y))
            if block is not None
        ]
        for name, block in given:
            if not bool(np.all(np.isfinite(executor.to_host(block)))):
                raise InvalidArgument(f"{name} has NaN or Inf; give finite vectors")
        blocks = dict(given)
        dtype = self.dtype = common_dtype(solver.dtype, *(b.dtype for b in blocks.values()))
        self.k = int(blocks["X"].shape[1]) if "X" in blocks else solver.k
        constraints = blocks.get("Y")
        free = n - (0 if constraints is None else int(constraints.shape[1]))
        if not 1 <= self.k <= free:
            raise ShapeMismatch(
                f"{self.k} vectors were asked for in a space of {free} dimensions: {n} rows"
                + ("" if constraints is None else f" less {n - free} constraints")
            )
        self.A = solver.A.astype(dtype)
        self.B = None if solver.B is None else solver.B.astype(dtype)
        self.M = None if solver.M is None else in_precision(solver.M, dtype)
        self.eps = float(np.finfo(dtype).eps)
        width = 3 * self.k
        self.S, self.AS = (executor.zeros((n, width), dtype) for _ in range(2))
        self.BS = self.S if self.B is None else executor.zeros((n, width), dtype)
        self.R = executor.zeros((n, self.k), dtype)
        self.products, self.P = 0, 0
        self.values: Numbers = np.full(self.k, np.nan)
        self.PAP: Numbers = np.zeros((0, 0))
        self.history: list[tuple[Numbers, Numbers]] = []
        self.Y: Array | None = None
        self.BY: Array | None = None
        if constraints is not None:
            self._constrain(constraints.astype(dtype))
        self._begin(blocks.get("X"))

    # ---- before

    def _constrain(self, given: Array) -> None:
        """Make the constraints orthonormal."""
        executor = self.executor
        Y = executor.copy(given)
        for _ in range(2):
            BY = self._with_B(Y)
            factor = tall.factor_of_basis(tall.gram(executor, Y, BY), self.eps)
            if factor.shape[1] < Y.shape[1]:
                raise InvalidArgument("Y: the constraints are linearly dependent; leave some out")
            tall.replace(executor, Y, factor)
        self.Y, self.BY = Y, self._with_B(Y)

    def _with_B(self, X: Array) -> Array:
        if self.B is None:
            return X
        made = self.executor.allocate(tuple(X.shape), self.dtype)
        tall.apply(self.B, X, made)
        return made

    def _begin(self, given: Array | None) -> None:
        """Make the start orthonormal, with random vectors in place of dependent ones."""
        executor, k, n = self.executor, self.k, self.solver.shape[0]
        filled = 0
        seed = self.solver.seed
        for attempt in range(4):
            if given is not None and attempt == 0:
                tall.copy(executor, given.astype(self.dtype), self.S[:, :k])
            else:
                new = tall.random_block(executor, n, k - filled, self.dtype, (seed, attempt))
                tall.copy(executor, new, self.S[:, filled:k])
            for _ in range(2):
                filled = self._orthonormalize(0, k) if filled == 0 else self._grown(filled)
                if filled < k:
                    break
            if filled == k:
                break
        if filled < k:
            raise InvalidArgument(
                f"no {k} independent vectors were found; B has to be positive definite"
            )
        tall.apply(self.A, self.S[:, :k], self.AS[:, :k])
        self.products += k
        self._rayleigh_ritz(np.zeros((0, 0)), 0)

    def _grown(self, filled: int) -> int:
        return filled + self._orthonormalize(filled, self.k - filled)

    def _orthonormalize(self, old: int, new: int) -> int:
        """Make ``new`` columns of S orthonormal, and to the ``old`` before; return what is left."""
        executor, S, BS = self.executor, self.S, self.BS
        for _ in range(4):
            W = S[:, old : old + new]
            if self.Y is not None:
                tall.times(executor, self.Y, tall.gram(executor, self.BY, W), W, -1.0)
            if self.B is not None:
                tall.apply(self.B, W, BS[:, old : old + new])
            T = self._wide(tall.gram(executor, BS[:, : old + new], W))
            E, G = T[:old], T[old:]
            if not np.all(np.isfinite(T)):
                return 0
            rest = G - E.conj().T @ E
            factor = tall.factor_of_basis(rest, self.eps)
            small = np.vstack([-E @ factor, factor])
            self._move(S, small, old)
            if self.B is not None:
                self._move(BS, small, old)
            before = np.sqrt(np.maximum(np.real(np.diag(G)), 0))
            new = factor.shape[1]
            if new == 0:
                return 0
            # how much longer the columns were that the new ones are differences of
            loss = float(np.max(np.abs(factor) * before[:, None], initial=0.0))
            if loss < LOST:
                break
        return new

    def _move(self, S: Array, small: Numbers, old: int) -> None:
        """Set the columns from ``old`` on to ``S small``."""
        xp, made = self.executor.xp, small.shape[1]
        C = self.executor.from_host(np.ascontiguousarray(small, dtype=self.dtype))
        rows = tall.rows_at_once(self.executor, S)
        for begin in range(0, int(S.shape[0]), rows):
            part = slice(begin, begin + rows)
            S[part, old : old + made] = xp.matmul(S[part, : small.shape[0]], C)

    def _wide(self, small: Numbers) -> Numbers:
        return small.astype(np.complex128 if small.dtype.kind == "c" else np.float64)

    # ---- iterations

    def run(self) -> EigenResult:
        """Iterate until all pairs have converged."""
        why, iteration = Stop.MAX_ITERATIONS, 0
        while True:
            norms, limits = self._residuals()
            if not np.all(np.isfinite(norms)):
                why = Stop.NOT_FINITE
                break
            done = norms <= limits
            if done.all() or (iteration and iteration % REFRESH == 0):
                norms, limits = self._refreshed()
                done = norms <= limits
            self.history.append((self.values.copy(), norms))
            if done.all() or iteration >= self.solver.maxiter:
                break
            if self._callback_stops(norms):
                why = Stop.CALLBACK
                break
            if not self._iterate(~done):
                why = Stop.STAGNATED
                break
            iteration += 1
        return self._result(why, iteration)

    def _callback_stops(self, norms: Numbers) -> bool:
        if self.callback is None or len(self.history) < 2:
            return False
        answer = self.callback(self.values.copy(), norms.copy())
        return isinstance(answer, (bool, np.bool_)) and bool(answer)

    def _residuals(self) -> tuple[Numbers, Numbers]:
        k = self.k
        norms, sizes = residual.norms(
            self.executor, self.AS[:, :k], self.BS[:, :k], self.R, self.values
        )
        return norms, self.solver.thresholds(self.values, sizes, self.dtype)

    def _refreshed(self) -> tuple[Numbers, Numbers]:
        """Multiply X and P by the operators again, orthonormal anew; return true residuals."""
        k = self.k
        self.P = 0
        self._orthonormalize(0, k)
        tall.apply(self.A, self.S[:, :k], self.AS[:, :k])
        self.products += k
        self._rayleigh_ritz(np.zeros((0, 0)), 0)
        return self._residuals()

    def _iterate(self, active: Numbers) -> bool:
        """Add directions for active pairs and solve the Rayleigh-Ritz problem; False if none is."""
        executor, k = self.executor, self.k
        count = int(np.count_nonzero(active))
        old = k + self.P
        R = self.R if count == k else executor.copy(self.R[:, np.flatnonzero(active).tolist()])
        W = self.S[:, old : old + count]
        if self.M is None:
            tall.copy(executor, R, W)
        else:
            self.M._apply(R, W, 1.0, 0.0)
        found = self._orthonormalize(old, count)
        if found == 0:
            if self.P == 0:
                return False
            self.P = 0  # begin again without the old directions
            return self._iterate(active)
        new = slice(old, old + found)
        tall.apply(self.A, self.S[:, new], self.AS[:, new])
        self.products += found
        T = self._wide(tall.gram(executor, self.S[:, : old + found], self.AS[:, new]))
        if not np.all(np.isfinite(T)):
            return False
        self._rayleigh_ritz(T, found, active)
        return True

    def _rayleigh_ritz(self, T: Numbers, found: int, active: Numbers | None = None) -> None:
        """Choose the best vectors in the basis, and directions that are orthogonal to them.

        ``T`` is the last block of columns of ``S^H A S``. Without new columns the problem is that
        of X alone.
        """
        import scipy.linalg  # it takes long to import, and few need it

        k, executor = self.k, self.executor
        if found == 0:
            self.P = 0
            G = self._wide(tall.gram(executor, self.S[:, :k], self.AS[:, :k]))
        else:
            old = k + self.P
            G = np.zeros((old + found, old + found), T.dtype)
            G[:k, :k] = np.diag(self.values)
            G[k:old, k:old] = self.PAP
            G[:, old:] = T
            G[old:, :old] = T[:old].conj().T
        G = 0.5 * (G + G.conj().T)
        if not np.all(np.isfinite(G)):
            self.values, self.PAP = np.full(k, np.nan), np.zeros((0, 0))
            return
        values, vectors = scipy.linalg.eigh(G)
        order = np.arange(values.size)[::-1] if self.solver.largest else np.arange(values.size)
        chosen = order[:k]
        C = vectors[:, chosen]
        self.values = values[chosen]
        directions = np.zeros((C.shape[0], 0), C.dtype)
        if active is not None:
            directions = C[:, active].copy()
            directions[:k] = 0
            directions = _orthonormal_to(C, directions)
        self.P = directions.shape[1]
        self.PAP = directions.conj().T @ G @ directions
        small = np.hstack([C, directions])
        for block in {id(b): b for b in (self.S, self.AS, self.BS)}.values():
            tall.replace(executor, block, small)

    # ---- after

    def _result(self, why: Stop, iterations: int) -> EigenResult:
        solver, k = self.solver, self.k
        X = self.executor.copy(self.S[:, :k])
        norms, limits = solver.judged(X, self.values)
        self.products += k
        return EigenResult(
            eigenvalues=self.values.copy(),
            eigenvectors=solver._returned(X, self.asked),
            residual_norms=norms,
            thresholds=limits,
            stops=verdicts(norms, limits, why),
            iterations=iterations,
            products=self.products,
            eigenvalue_history=np.array([h[0] for h in self.history]).reshape(-1, k),
            residual_history=np.array([h[1] for h in self.history]).reshape(-1, k),
            seconds=time.perf_counter() - self.began,
            solver=type(solver).__name__,
            executor=self.executor.name,
        )


def _orthonormal_to(C: Numbers, D: Numbers) -> Numbers:
    """Return an orthonormal basis of the columns of ``D`` less their parts along those of ``C``."""
    import scipy.linalg  # it takes long to import, and few need it

    size = np.linalg.norm(D, axis=0)
    D = D[:, size > 0] / size[size > 0]
    for _ in range(2):
        D = D - C @ (C.conj().T @ D)
    if not D.size:
        return D
    U, s, _ = scipy.linalg.svd(D, full_matrices=False)
    U = U[:, s > 1e-10 * max(float(s[0]), 1e-10)]
    # the singular vectors of small singular values have lost digits
    made: Numbers = scipy.linalg.qr(U - C @ (C.conj().T @ U), mode="economic")[0]
    return made
