"""The locally optimal block preconditioned conjugate gradient method."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ...core.distributed.matrix import Csr as SharedCsr
from ...core.distributed.shared import guarded
from ...core.dtypes import common_dtype
from ...core.errors import InvalidArgument, ShapeMismatch
from ...core.formats import Matrix
from ...core.linop import LinOp
from ...core.precision import in_precision
from ...core.settings import Configurable, Settings
from ...core.small_values import as_dtype
from ...core.status import Stop
from ...core.vector_conversions import VectorConverter, vector_converter
from ..driver.as_preconditioner import as_preconditioner
from ..driver.scaling import largest_values
from ..preconditioners import preconditioner
from ..preconditioners.names import described
from . import tall
from .base import EigenSolver, agreement_of, require_tolerances
from .block_basis import BlockBasis, wide
from .complement import STEPS, better_vector
from .result import EigenResult
from .scale import with_scaled_entries

if TYPE_CHECKING:
    from ...core.executor import Array, Executor

Numbers = np.ndarray[Any, Any]

#: Recompute A X after this many iterations, to remove its accumulated rounding error.
REFRESH = 50

#: Pairs that converge within this many iterations may be the wrong ones.
FEW_ITERATIONS = 3

#: Number of steps of a short search in the complement of other pairs.
FEW_STEPS = 8


class Lobpcg(EigenSolver, metaclass=Configurable):
    """A block of smallest or largest eigenpairs of a Hermitian operator or pencil.

    Parameters
    ----------
    A : LinOp or matrix, shape (n, n)
        A Hermitian operator.
    M : str, LinOp, matrix, Settings or callable, optional
        An approximate inverse of ``A``, Hermitian positive definite; for smallest eigenvalues.
    B : LinOp or matrix, shape (n, n), optional
        A Hermitian positive definite operator: the pencil ``A x = lambda B x``.
    k : int
        Number of pairs; if initial vectors are given, their number.
    largest : bool
        Whether to compute the largest eigenvalues instead of the smallest.
    rtol, atol : float
        A pair has converged if the norm of ``A x - lambda B x`` is at most
        ``max(rtol * |lambda| * norm(B x), atol)``, or the rounding error of ``A``.
    maxiter : int
        Iteration limit.
    seed : int
        Seed of the random initial vectors.
    executor : Executor or str, optional
        The executor to which ``A`` is moved if it has none.

    Notes
    -----
    Converged pairs stay in the basis and get no new directions (soft locking). The basis of old
    vectors, directions and preconditioned residuals is kept orthonormal. Directions are computed in
    the small coordinates, orthogonal to the new vectors. Dependent directions are dropped, so that
    rank-deficient initial vectors and small matrices do not fail. A singular or indefinite ``M``
    may lead to the wrong eigenvectors. With ``M``, and if pairs of a small space converge within
    three iterations, a short search in their complement looks for better vectors before the
    verdict: 8 products, or 24 if ``M r`` had no new direction.

    An iteration applies the matrix and ``M`` once to all active vectors, and computes three kinds
    of dense products, about 42 n k^2 operations. LAPACK on the host solves Rayleigh-Ritz problems
    of 3 k unknowns.

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
        self.rtol, self.atol, self.maxiter = float(rtol), float(atol), int(maxiter)
        self._described = described(M)
        self._versions_of_M = self._versions()
        M = preconditioner(self._described, self._scaled_for_M())
        self.M: LinOp | None = None if M is None else as_preconditioner(M, self.A)
        self.k = self._size(k, self.shape[0])
        self.largest, self.seed = bool(largest), seed
        if self.M is not None:
            self.dtype = common_dtype(self.dtype, self.M.dtype)

    def _scaled_for_M(self) -> LinOp:
        """Return ``A``, in units in which its inverse is in range if its entries are known."""
        exponent = self.measures()[0].exponent
        if exponent == 0 or not isinstance(self.A, (Matrix, SharedCsr)):
            return self.A
        return with_scaled_entries(self.A, -exponent)

    def solve(
        self,
        X: Any = None,
        *,
        Y: Any = None,
        callback: Callable[[EigenResult], Any] | None = None,
    ) -> EigenResult:
        """Compute the eigenpairs.

        Parameters
        ----------
        X : array, shape (n, k), optional
            Initial vectors; random by default. They are not changed.
        Y : array, shape (n, m), optional
            Constraints: vectors are kept orthogonal to them, in the inner product of ``B``.
        callback : callable, optional
            Called as ``callback(eigenvalues, residual_norms)`` after each iteration. The solve ends
            if it returns True.

        Returns
        -------
        EigenResult
            Smallest eigenvalues in ascending order, largest in descending order, with true residual
            norms, each with a verdict; unpacks into ``eigenvalues, eigenvectors``.

        Raises
        ------
        ShapeMismatch, InvalidArgument
            If ``X`` or ``Y`` do not match the operator, or are not finite.
        """
        if isinstance(self._described, Settings) and self._versions_of_M != self._versions():
            made = preconditioner(self._described, self._scaled_for_M())
            self.M, self._versions_of_M = as_preconditioner(made, self.A), self._versions()
        # verdicts report such numbers
        with guarded((self.A,), {}), np.errstate(invalid="ignore", over="ignore"):
            return _Solve(self, X, Y, callback).run()

    def to(self, executor: Executor | str) -> Self:
        """Return this solver with its operators on another executor."""
        options = {
            **self._options,
            "M": self._moved(executor),
            "B": None if self.B is None else self.B.to(executor),
        }
        made: Self = type(self)(self.A.to(executor), **options)
        return made

    def _moved(self, executor: Executor | str) -> Any:
        """Return the preconditioner on another executor, or its settings."""
        if self.M is None or isinstance(self._described, Settings):
            return self._described
        return self.M.to(executor)


class _Solve:
    """One solve: the basis ``S = [X, P, W]``, its products with the operators, and the verdicts."""

    def __init__(self, solver: Lobpcg, X: Any, Y: Any, callback: Any) -> None:
        self.began = time.perf_counter()
        self.solver, self.user_X, self.callback = solver, X, callback
        executor = self.executor = solver.executor
        n, rows = solver.shape[0], solver.A.local_rows
        self.converter = vector_converter(solver.A)
        blocks = _checked(self.converter, agreement_of(solver), X=X, Y=Y)
        dtype = self.dtype = common_dtype(solver.dtype, *(b.dtype for b in blocks.values()))
        self.k = int(blocks["X"].shape[1]) if "X" in blocks else solver.k
        constraints = blocks.get("Y")
        free = n - (0 if constraints is None else int(constraints.shape[1]))
        if not 1 <= self.k <= free:
            raise ShapeMismatch(
                f"{self.k} vectors were asked for in a space of {free} dimensions: {n} rows"
                + ("" if constraints is None else f" less {n - free} constraints")
            )
        self.pencil = solver.pencil(dtype)
        self.M = None if solver.M is None else in_precision(solver.M, dtype)
        self.basis = BlockBasis(self.pencil, 3 * self.k)
        self.S, self.BS = self.basis.S, self.basis.BS
        self.AS = executor.zeros((rows, 3 * self.k), dtype)
        self.R = executor.zeros((rows, self.k), dtype)
        self.products = self.without_M = 0
        self.values: Numbers = np.full(self.k, np.nan)
        self.history: list[tuple[Numbers, Numbers]] = []
        self._forget_directions()
        if constraints is not None:
            self.basis.constrain(as_dtype(self.basis.executor, constraints, dtype))
        self.basis.fill(self.k, blocks.get("X"), solver.seed)
        self._begin()

    def _forget_directions(self) -> None:
        """Drop the old directions and their part of ``S^H A S`` from the basis."""
        self.P = 0
        self.PAP: Numbers = np.zeros((0, 0))

    def _begin(self) -> None:
        """Multiply X by A, and solve the Rayleigh-Ritz problem in the span of X."""
        k = self.k
        tall.apply(self.pencil.A, self.S[:, :k], self.AS[:, :k])
        self.products += k
        self._forget_directions()
        self._rayleigh_ritz(np.zeros((0, 0)), 0)

    # ---- iterations

    def run(self) -> EigenResult:
        """Iterate until all pairs have converged."""
        why, iteration, searched = Stop.MAX_ITERATIONS, 0, False
        while True:
            norms, limits = self._residuals()
            if not np.all(np.isfinite(norms)):
                why = Stop.NOT_FINITE
                break
            done = norms <= limits
            if done.all() or (iteration and iteration % REFRESH == 0):
                norms, limits = self._refreshed()
                done = norms <= limits
            self.history.append((self.pencil.values(self.values), self.pencil.lengths(norms)))
            if iteration >= self.solver.maxiter:
                break
            if done.all():
                steps = 0 if searched else self._search_steps(iteration)
                searched = True
                if not steps or not self._add_missed_direction(limits, steps):
                    break
                iteration += 1
                continue
            if self._callback_stops():
                why = Stop.CALLBACK
                break
            if not self._iterate(~done):
                why = Stop.NOT_FINITE if self.basis.overflowed else Stop.STAGNATED
                break
            iteration += 1
        return self._result(why, iteration)

    def _search_steps(self, iteration: int) -> int:
        """Return the number of steps of a search in the complement for wanted pairs; 0 for none.

        A singular ``M`` gives directions in its range only, and their span may contain an unwanted
        eigenvector. An indefinite ``M`` leads to others first. Eigenvalues with a difference
        slightly above the tolerance may converge before the basis contains the wanted ones.
        """
        few = iteration <= FEW_ITERATIONS
        if (few and self.basis.dimension - self.k <= STEPS) or self.without_M > 0:
            return STEPS
        if self.M is None or iteration == 0:
            return 0
        return STEPS if few else FEW_STEPS

    def _add_missed_direction(self, limits: Numbers, steps: int) -> bool:
        """Extend the basis by a vector that is better than one of the pairs; False without one."""
        largest = self.solver.largest
        margin = 4 * float(limits.max())
        bound = self.values.min() + margin if largest else self.values.max() - margin
        found = better_vector(
            self.basis, self.k, bound, steps, largest=largest, seed=self.solver.seed
        )
        if found is None:
            return False
        old = self.k + self.P
        tall.copy(self.executor, found, self.S[:, old : old + 1])
        added = self.basis.orthonormalize(old, 1)
        return added > 0 and self._extend(added, np.ones(self.k, bool))

    def _callback_stops(self) -> bool:
        if self.callback is None or len(self.history) < 2:
            return False
        answer = self.callback(*(part.copy() for part in self.history[-1]))
        return self.executor.agreed(isinstance(answer, (bool, np.bool_)) and bool(answer))

    def _residuals(self) -> tuple[Numbers, Numbers]:
        X, AX, BX = (block[:, : self.k] for block in (self.S, self.AS, self.BS))
        return self.pencil.residuals(X, AX, BX, self.R, self.values)

    def _refreshed(self) -> tuple[Numbers, Numbers]:
        """Orthonormalize X, multiply it by the operators again, and return true residuals."""
        self.basis.fill(self.k, None, -1)
        self._begin()
        return self._residuals()

    def _iterate(self, active: Numbers) -> bool:
        """Add directions for active pairs and solve the Rayleigh-Ritz problem; False if none is."""
        found = self._directions(active)
        return found > 0 and self._extend(found, active)

    def _extend(self, count: int, active: Numbers) -> bool:
        """Solve the Rayleigh-Ritz problem with new directions; False if products overflow."""
        old = self.k + self.P
        new = slice(old, old + count)
        tall.apply(self.pencil.A, self.S[:, new], self.AS[:, new])
        self.products += count
        T = wide(tall.gram(self.executor, self.S[:, : old + count], self.AS[:, new]))
        if not np.all(np.isfinite(T)):
            self.basis.overflowed = True
            return False
        self._rayleigh_ritz(T, count, active)
        return True

    def _directions(self, active: Numbers) -> int:
        """Append directions for active pairs to the basis and return their number.

        If the preconditioned residuals are in the span of the basis, the old directions are
        dropped, and then the preconditioner.
        """
        k, count = self.k, int(np.count_nonzero(active))
        R = self.R if count == k else self.executor.copy(self.R[:, np.flatnonzero(active).tolist()])
        for M in (None,) if self.M is None else (self.M, None):
            while True:
                old = k + self.P
                W = self.S[:, old : old + count]
                if M is None:
                    tall.copy(self.executor, R, W)
                else:
                    M._apply(R, W, 1.0, 0.0)
                found = self.basis.orthonormalize(old, count)
                if found or not self.P:
                    break
                self._forget_directions()
            if found or self.basis.overflowed:
                self.without_M += found > 0 and M is not self.M
                return found
        return 0

    def _rayleigh_ritz(self, T: Numbers, added: int, active: Numbers | None = None) -> None:
        """Compute the best vectors in the basis, and directions orthogonal to them.

        ``T`` is the last block of columns of ``S^H A S``. Without new columns, the problem is
        limited to X.
        """
        import scipy.linalg  # it takes long to import, and few need it

        k, executor = self.k, self.executor
        if added == 0:
            G = wide(tall.gram(executor, self.S[:, :k], self.AS[:, :k]))
        else:
            old = k + self.P
            G = np.zeros((old + added, old + added), T.dtype)
            G[:k, :k] = np.diag(self.values)
            G[k:old, k:old] = self.PAP
            G[:, old:] = T
            G[old:, :old] = T[:old].conj().T
        G = 0.5 * (G + G.conj().T)
        self._forget_directions()
        if not np.all(np.isfinite(G)):
            self.values = np.full(k, np.nan)
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
        X = self.executor.copy(self.S[:, : self.k])
        norms, limits = self.pencil.judged(X, self.values)
        self.products += self.k
        notes = []
        if self.without_M:
            notes.append(
                f"M: in {self.without_M} of {iterations} iterations the preconditioned residuals "
                "had no new direction, and the residuals themselves were taken; M is singular or "
                "of low rank"
            )
        if self.basis.Y is not None and why in (Stop.STAGNATED, Stop.MAX_ITERATIONS):
            notes.append(
                "Y: residuals fall if the constraints span eigenvectors, and keep their parts "
                "along B Y otherwise"
            )
        return self.solver._result(
            self.pencil, X, self.values, norms, limits, why, self.user_X, self.converter,
            iterations=iterations,
            products=self.products,
            eigenvalue_history=np.array([h[0] for h in self.history]).reshape(-1, self.k),
            residual_history=np.array([h[1] for h in self.history]).reshape(-1, self.k),
            seconds=time.perf_counter() - self.began,
            notes=notes,
        )  # fmt: skip


def _checked(converter: VectorConverter, about: tuple[str, ...], **arrays: Any) -> dict[str, Array]:
    """Return the given blocks, by their names, or raise."""
    entered = converter.to_blocks(about, **arrays)
    blocks = {name: block for name, block in zip(arrays, entered, strict=True) if block is not None}
    for name, block in blocks.items():
        if not np.all(np.isfinite(largest_values(converter.executor, block))):
            raise InvalidArgument(f"{name} has NaN or Inf; give finite vectors")
    return blocks


def _orthonormal_to(C: Numbers, D: Numbers) -> Numbers:
    """Return an orthonormal basis of the columns of ``D`` after projection out of ``C``."""
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
