"""The thick-restart Lanczos method for eigenpairs of Hermitian operators and pencils."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import common_dtype, real_dtype
from ...core.errors import InvalidArgument, InvalidMatrix, UnsupportedOperation
from ...core.executor import Executor
from ...core.formats import Identity, Matrix
from ...core.linop import LinOp
from ...core.operations import vector
from ...core.operator import LinearOperator
from ...core.operator_conversions import as_linop
from ...core.precision import in_precision
from ...core.settings import Configurable
from ...core.status import Stop
from ...core.vector_conversions import vector_converter
from ..direct import Direct
from .base import EigenSolver, agreement_of, basis_size, require_tolerances, started
from .krylov_basis import KrylovBasis
from .multiplicity import CopySearch, distance_of_copies, notes_on_copies
from .result import EigenResult
from .scale import ROUNDING, Measure, is_rounding, rescaled, with_scaled_entries
from .slow import is_long, remedy, warn_of_slowness
from .transformed import Transformed

if TYPE_CHECKING:
    from ...core.executor import Array
    from .pencil import Pencil

Numbers = np.ndarray[Any, Any]

#: Which eigenvalues: largest and smallest modulus, largest, smallest, or both ends.
WHICH = ("LM", "SM", "LA", "SA", "BE")

#: The transformations with ``sigma``, by SciPy's names.
MODES = ("normal", "buckling", "cayley")

#: Move a shift that is an eigenvalue by this distance, relative to the size of the matrix, in
#: single and in double precision. Eigenvalues at this distance lose as many digits in the inverse.
ASIDE = {np.dtype(np.float32): 3e-4, np.dtype(np.float64): 1e-6}

#: Check the true residuals after every LOOK restarts that did not halve the error, and end the
#: search after GIVE_UP of them. Errors of a transformed matrix cannot fall below the rounding error
#: of its inverse, which is not known: for a shift at an eigenvalue of 40 copies, it is 1e-12 of it.
LOOK, GIVE_UP = 10, 200


class Lanczos(EigenSolver, metaclass=Configurable):
    """A few extreme or interior eigenpairs of a Hermitian operator or pencil.

    Parameters
    ----------
    A : LinOp or matrix, shape (n, n)
        A Hermitian operator.
    B : LinOp or matrix, shape (n, n), optional
        A Hermitian positive definite operator: the pencil ``A x = lambda B x``.
    k : int
        Number of pairs.
    which : {"LM", "SM", "LA", "SA", "BE"}
        Largest or smallest modulus, largest, smallest, or both ends. With ``sigma``, this refers to
        the transformed eigenvalues, so that ``"LM"`` selects the eigenvalues nearest to ``sigma``.
        Without ``sigma``, the smallest ones of a large matrix take many restarts, and a warning
        names the remedy.
    sigma : float, optional
        Find eigenvalues near this value, with the inverse of ``A - sigma B``.
    mode : {"normal", "buckling", "cayley"}
        The transformation with ``sigma``: ``1 / (lambda - sigma)``, ``lambda / (lambda - sigma)``
        or ``(lambda + sigma) / (lambda - sigma)``. For "buckling", ``A`` must be positive definite,
        and ``B`` may be indefinite.
    OPinv : LinOp, matrix or callable, optional
        The inverse of ``A - sigma B``; by default, from :class:`Direct`.
    Binv : LinOp, matrix or callable, optional
        The inverse of ``B``, if there is no ``sigma``; by default, from :class:`Direct`.
    ncv : int, optional
        Size of the basis; ``max(2 k + 1, 20)`` by default.
    rtol, atol : float
        A pair has converged if the norm of ``A x - lambda B x`` is at most
        ``max(rtol * |lambda| * norm(B x), atol)``, or the rounding error of ``A``; 0 means the
        latter.
    maxiter : int, optional
        Limit of restarts; ``10 n`` by default.
    seed : int
        Seed of the random initial vector.
    executor : Executor or str, optional
        The executor to which ``A`` is moved if it has none.

    Notes
    -----
    Every vector is orthogonalized twice against the whole basis. When a space is exhausted, a new
    random vector extends it, so that zero matrices and small ones are no special cases. A Krylov
    space contains one vector of each eigenspace: rounding finds further copies of multiple
    eigenvalues late, or not at all, as in ARPACK. If the pairs contain a zero or copies, the search
    starts again orthogonal to them, until it finds no further copy; ``notes`` say so. A multiple
    eigenvalue of which the first search finds one copy alone, and which is not zero, is not
    noticed. :class:`Lobpcg` finds as many copies as its block has vectors.

    A search for small eigenvalues without ``sigma`` warns after about a second that ``sigma=0`` is
    faster. The search also ends if the residuals meet the tolerance, but the errors of the
    transformed matrix no longer fall, because of rounding in its inverse.

    A step reads the matrix once and the basis four times. Vectors are computed on the executor;
    LAPACK on the host solves the small tridiagonal problem.

    References
    ----------
    K. Wu and H. Simon, Thick-restart Lanczos method for large symmetric eigenvalue problems, SIAM
    J. Matrix Anal. Appl. 22 (2000). T. Ericsson and A. Ruhe, The spectral transformation Lanczos
    method, Math. Comp. 35 (1980).

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.Csr(np.diag(np.arange(1.0, 101.0)))
    >>> result = wl.solvers.Lanczos(A, k=2, sigma=50.2).solve()
    >>> np.round(result.eigenvalues, 6), result.converged
    (array([50., 51.]), True)
    """

    def __init__(
        self,
        A: Any,
        *,
        B: Any = None,
        k: int = 6,
        which: str = "LM",
        sigma: float | None = None,
        mode: str = "normal",
        OPinv: Any = None,
        Binv: Any = None,
        ncv: int | None = None,
        rtol: float = 0.0,
        atol: float = 0.0,
        maxiter: int | None = None,
        seed: int = 0,
        executor: Executor | str | None = None,
    ) -> None:
        require_tolerances(rtol, atol, 0 if maxiter is None else maxiter)
        for name, value, known in (("which", which, WHICH), ("mode", mode, MODES)):
            if value not in known:
                raise InvalidArgument(
                    f"{name}: expected one of {', '.join(map(repr, known))}, got {value!r}"
                )
        if sigma is None and (mode != "normal" or OPinv is not None):
            raise InvalidArgument("mode and OPinv need sigma: say which eigenvalues are sought")
        if sigma is not None and not (np.isreal(sigma) and np.isfinite(sigma)):
            raise InvalidArgument(f"sigma: expected a real number, got {sigma!r}")
        if sigma == 0 and mode != "normal":
            raise InvalidArgument(f"sigma: 0 makes every eigenvalue 1 with mode={mode!r}")
        self._inner_is_A = mode == "buckling"
        self._take(A, B, executor)
        n = self.shape[0]
        self.k = self._size(k, n)
        self.ncv = basis_size(ncv, self.k, n)
        self.which, self.mode, self.seed = which, mode, seed
        self.sigma = None if sigma is None else float(np.real(sigma))
        self.rtol, self.atol = float(rtol), float(atol)
        self.maxiter = 10 * n if maxiter is None else int(maxiter)
        self.notes: list[str] = []
        self._inverse_arguments = self.sigma, OPinv, Binv
        self._factorized = self._versions()
        self.inverse = self._inverse(OPinv, Binv)

    def _follow(self) -> None:
        """Factorize again if the values of ``A`` or ``B`` have changed."""
        sigma, OPinv, Binv = self._inverse_arguments
        given = Binv if sigma is None else OPinv
        if given is not None or self._factorized == self._versions():
            return
        self.sigma, self.notes = sigma, []
        self.inverse = self._inverse(OPinv, Binv)
        self._factorized = self._versions()

    def measures(self) -> tuple[Measure, Measure]:
        """Return the measures of ``A`` and ``B``; a zero matrix has the units of the shift."""
        of_A, of_B = super().measures()
        if of_A.size == 0 and self.sigma:
            most = 2 * np.finfo(self.dtype).maxexp - 16
            exponent = 2 * round(np.log2(abs(self.sigma)) / 2) + of_B.exponent
            of_A = of_A._replace(exponent=int(np.clip(exponent, -most, most)))
        return of_A, of_B

    def _inverse(self, OPinv: Any, Binv: Any) -> LinOp | None:
        """Return the inverse of ``B``, or of ``A - sigma B`` with ``sigma``.

        The default inverse is computed in the units of a pencil.
        """
        (of_A, of_B), self._of_inverse = self.measures(), 0
        if self.sigma is None:
            if self.B is None:
                return None
            if Binv is not None:
                return self._user_operator(Binv)
            self._of_inverse = of_B.exponent
            B = self._entries(self.B, "Binv")
            return Direct(with_scaled_entries(B, -of_B.exponent))
        if OPinv is not None:
            return self._user_operator(OPinv)
        self._entries(self.A, "OPinv")
        self._of_inverse = of_A.exponent
        scale = of_A.exponent - of_B.exponent
        sigma = float(np.ldexp(self.sigma, -scale))
        self._require_in_range(sigma, of_A, of_B)
        size = (of_A.size or 1.0) / (of_B.size or 1.0)
        try:
            made = Direct(self._shifted(sigma, of_A, of_B))
        except InvalidMatrix:
            if not np.isfinite(of_A.size):
                raise
        else:
            if not is_rounding(made, of_A.size / (of_B.size or 1.0)):
                return made
        moved = sigma + ASIDE[real_dtype(self.dtype)] * size
        made = Direct(self._shifted(moved, of_A, of_B))
        given, self.sigma = self.sigma, float(np.ldexp(moved, scale))
        self.notes = [f"sigma: {given} is an eigenvalue; the shift is {self.sigma}"]
        return made

    def _require_in_range(self, sigma: float, of_A: Measure, of_B: Measure) -> None:
        if not abs(sigma) * of_B.size < np.finfo(self.dtype).max / ROUNDING:
            size = np.ldexp(of_A.size / (of_B.size or 1.0), of_A.exponent - of_B.exponent)
            raise InvalidArgument(
                f"sigma: {self.sigma} is out of the range of {self.dtype} for A and B; their size "
                f"of which allows eigenvalues up to about {size:.1g}; give a sigma near them"
            )

    def _shifted(self, sigma: float, of_A: Measure, of_B: Measure) -> Any:
        """Return ``A - sigma B`` in the units of a pencil."""
        A = with_scaled_entries(self._entries(self.A, "OPinv"), -of_A.exponent)
        if sigma == 0:
            return A
        if self.B is None:
            B: Any = Identity(self.shape[0], dtype=A.dtype, executor=self.executor)
        else:
            B = with_scaled_entries(self._entries(self.B, "OPinv"), -of_B.exponent)
        return (A - sigma * B).tocsr()

    def _entries(self, operator: LinOp, name: str) -> Any:
        if operator.partition is not None:
            raise UnsupportedOperation(
                f"{name}: a group does not factorize the matrix that it shares; pass {name}=, an "
                "operator that applies the inverse, such as wl.solvers.Minres(A, rtol=1e-12)"
            )
        if not isinstance(operator, Matrix):
            raise InvalidArgument(
                f"{name}: a {type(operator).__name__} has no entries to factorize; pass {name}=, "
                "an operator that applies the inverse"
            )
        return operator

    def _user_operator(self, inverse: Any) -> LinOp:
        if callable(inverse) and not hasattr(inverse, "shape"):
            return LinearOperator(self.shape, inverse, dtype=self.dtype, executor=self.executor)
        return as_linop(inverse, self.executor)

    def solve(self, v0: Any = None) -> EigenResult:
        """Compute the eigenpairs.

        Parameters
        ----------
        v0 : array, shape (n,), optional
            Initial vector; random by default. It is not changed.

        Returns
        -------
        EigenResult
            Eigenvalues in ascending order with true residual norms, each with a verdict; unpacks
            into ``eigenvalues, eigenvectors``.

        Raises
        ------
        ShapeMismatch, InvalidArgument
            If ``v0`` does not match the operator, is not finite, or is zero.
        """
        began = time.perf_counter()
        self._follow()
        executor, converter = self.executor, vector_converter(self.A)
        start = started(converter, agreement_of(self), v0)
        dtype = common_dtype(self.dtype, *([] if start is None else [start.dtype]))
        operator = self._transformed(dtype)
        basis = KrylovBasis(
            executor, self.A.local_rows, self.ncv, dtype, operator.apply, operator.inner,
            self.seed, start, "A" if self.mode == "buckling" else "B", self.shape[0],
        )  # fmt: skip
        with np.errstate(invalid="ignore", over="ignore"):  # verdicts report such numbers
            found = self._iterate(basis, operator)
        pencil = operator.pencil
        order = np.argsort(found.values, kind="stable")
        X = executor.copy(found.X[:, order.tolist()])
        why = Stop.MAX_ITERATIONS if found.restarts >= self.maxiter else Stop.STAGNATED
        original = [pencil.values(operator.original(h[0])) for h in found.history]
        errors = [h[1] if self.sigma is not None else pencil.lengths(h[1]) for h in found.history]
        return self._result(
            pencil, X, found.values[order], found.norms[order], found.limits[order], why, v0,
            converter,
            iterations=found.restarts,
            products=basis.products,
            eigenvalue_history=np.array(original),
            residual_history=np.array(errors),
            seconds=time.perf_counter() - began,
            notes=[
                *self.notes,
                *found.notes,
                *getattr(self.inverse, "notes", []),
                *notes_on_copies(
                    "eigenvalue", found.values[order], _near(pencil), pencil.values, found.checked
                ),
            ],
        )  # fmt: skip

    def _transformed(self, dtype: Any) -> Transformed:
        """Return the operator of the process in the units of a pencil."""
        pencil = self.pencil(dtype)
        inverse = None if self.inverse is None else in_precision(self.inverse, dtype)
        if inverse is not None:
            of_operator = pencil.b if self.sigma is None else pencil.a
            inverse = rescaled(inverse, of_operator - self._of_inverse)
        sigma = None if self.sigma is None else pencil.shift(self.sigma)
        return Transformed(pencil, sigma, self.mode, inverse)

    def _iterate(self, basis: KrylovBasis, operator: Transformed) -> _Found:
        """Grow the basis and restart it until the true residuals of the wanted pairs are small."""
        import scipy.linalg  # slow to import, and rarely needed

        eps = float(np.finfo(basis.dtype).eps)
        tolerance = max(self.rtol, eps)
        restarts, progress = 0, _Progress()
        history: list[tuple[Numbers, Numbers]] = []
        slow: list[str] = []
        copies, near = CopySearch(self.shape[0]), _near(operator.pencil)
        while True:
            basis.grow()
            T = basis.T[: basis.used, : basis.used]
            if not np.all(np.isfinite(T)) or basis.used < self.k:
                nothing = np.full(self.k, np.nan)
                X = basis.combined(np.eye(basis.used, self.k))
                return _Found(nothing, X, nothing, nothing, restarts, history)
            values, Y = scipy.linalg.eigh(T)
            order = self._order(values)
            wanted = order[: self.k]
            errors = np.abs(basis.beta * Y[-1, wanted])
            history.append((values[wanted], errors))
            largest = float(np.abs(values).max())
            size = np.maximum(np.abs(values[wanted]), eps ** (2 / 3) * largest)
            unwanted = order[self.k : self.k + 1]
            is_open = copies.open(values[unwanted], np.abs(basis.beta * Y[-1, unwanted]))
            # smaller errors are rounding errors of T
            done = errors <= np.maximum(tolerance * size, eps * largest)
            with np.errstate(divide="ignore"):
                worst = float(np.max(errors / size))
            stuck = progress.stopped(worst, eps)
            over = restarts >= self.maxiter or basis.complete or (stuck and progress.hopeless)
            if over or ((done.all() or stuck) and not is_open):
                found = self._true_pairs(basis, operator, values[wanted], Y[:, wanted], largest)
                met = not np.any(found.norms > found.limits)
                again = met and not over and copies.begins(found.values, near)
                if again and basis.restart_apart(values[wanted], Y[:, wanted]):
                    restarts, progress = restarts + 1, _Progress()
                    continue
                if over or tolerance < 1e-3 * eps or met:
                    checked = copies.begun and not is_open
                    return replace(
                        found, restarts=restarts, history=history, notes=slow, checked=checked
                    )
                # the residual of the pencil is that of the operator, times the norm of A
                tolerance *= 0.1 if done.all() else 1.0
            slow = self._told_slowness(basis, int(np.count_nonzero(done)), slow)
            # converged pairs are locked, or the last pair waits for the others' vectors
            extra = max(int(np.count_nonzero(done)), (self.ncv - self.k) // 2)
            kept = order[: min(self.k + extra, self.ncv - 1)]
            basis.restart(values[kept], Y[:, kept])
            restarts += 1

    def _told_slowness(self, basis: KrylovBasis, done: int, told: list[str]) -> list[str]:
        """Warn once if a search for small eigenvalues without an inverse is slow; return notes."""
        if told or self.sigma is not None or self.which not in ("SM", "SA"):
            return told
        if not is_long(basis.products, self.shape[0], self.ncv, getattr(self.A, "nnz", 0)):
            return []
        words = remedy(self.which, self.A, self.k)
        call = f'Lanczos(which="{self.which}")'
        return [warn_of_slowness(call, done, self.k, basis.products, words)]

    def _true_pairs(
        self, basis: KrylovBasis, operator: Transformed, values: Numbers, Y: Numbers, largest: float
    ) -> _Found:
        """Return pairs of the pencil with the norms of their residuals.

        ``largest`` is the largest Ritz value.
        """
        # without known entries and a transformation, Ritz values estimate the size of A
        seen = largest if self.sigma is None and self.B is None else 0.0
        X, transformed = basis.combined(Y), values
        if operator.rescaled:
            self._normalize(operator, X)
        pencil = operator.pencil
        values = operator.original(values)
        norms, limits = pencil.judged(X, values, seen)
        if self.sigma is not None and np.any(norms > limits):
            candidates = [operator.purified(X, values)]
            if self.mode != "normal" and np.all(transformed):
                candidates.append(operator.applied(X, transformed))
            for candidate in candidates:
                self._normalize(operator, candidate)
                better, _ = pencil.judged(candidate, values)
                if np.max(better) < np.max(norms):
                    X, norms = candidate, better
        if self.sigma is not None and np.any(norms > limits):
            # operator values of eigenvalues far from the shift cluster, and magnify its rounding
            # errors
            quotients = pencil.quotients(X)
            better, its_limits = pencil.judged(X, quotients, seen)
            taken = better < norms
            values, norms, limits = (
                np.where(taken, *pair)
                for pair in ((quotients, values), (better, norms), (its_limits, limits))
            )
        return _Found(values, X, norms, limits, 0, [])

    def _order(self, values: Numbers) -> Numbers:
        """Return the indices of the Ritz values, the most wanted first."""
        rising = np.arange(values.size)
        if self.which == "LA":
            return rising[::-1]
        if self.which == "SA":
            return rising
        if self.which == "BE":
            ends = np.stack([rising[::-1], rising], axis=1).ravel()[: values.size]
            return ends
        by_modulus = np.argsort(np.abs(values), kind="stable")
        return by_modulus if self.which == "SM" else by_modulus[::-1]

    def _normalize(self, operator: Transformed, X: Array) -> None:
        """Normalize vectors in the inner product of B, if the process used another one."""
        executor = self.executor
        for c in range(int(X.shape[1])):
            x = X[:, c : c + 1]
            y = x if self.mode == "buckling" else operator.pencil.with_B(x)
            value = executor.allocate((1,), X.dtype)
            executor.run(vector.dot, x, y, value)
            length = float(np.sqrt(abs(executor.to_host(value)[0])))
            if length > 0 and np.isfinite(length):
                executor.run(vector.axpby, x, x, 1.0 / length, 0.0)


class _Progress:
    """The best error of a search, and the number of restarts since it halved."""

    def __init__(self) -> None:
        self.best, self.since = np.inf, 0

    def stopped(self, worst: float, eps: float) -> bool:
        """Count a restart; return whether true residuals are to be checked for lack of progress."""
        if worst < 0.5 * self.best:
            self.best, self.since = worst, 0
        else:
            self.since += 1
        return worst <= eps**0.5 and self.since > 0 and self.since % LOOK == 0

    @property
    def hopeless(self) -> bool:
        """Whether the search ends after the next check."""
        return self.since >= GIVE_UP


def _near(pencil: Pencil) -> float:
    """Return the distance below which eigenvalues of a pencil are copies of one."""
    return distance_of_copies((pencil.of_A or 1.0) / (pencil.of_B or 1.0), pencil.eps)


@dataclass(frozen=True)
class _Found:
    """Pairs, the norms of their residuals, and the number of restarts."""

    values: Numbers
    X: Any
    norms: Numbers
    limits: Numbers
    restarts: int
    history: list[Any]
    notes: list[str] = field(default_factory=list)
    checked: bool = False
