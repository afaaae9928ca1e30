"""What eigenvalue and singular value solvers come back with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.status import Stop

Numbers = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class EigenResult:
    """Eigenpairs with their residuals; unpacks into the pair ``eigenvalues, eigenvectors``.

    Attributes
    ----------
    eigenvalues : array, shape (k,)
        NumPy's, real; in the order that the solver's docstring says.
    eigenvectors : array, shape (n, k)
        NumPy's or native, as the start was; ``X.H @ B @ X`` is the identity.
    residual_norms : array, shape (k,)
        Norms of ``A x - lambda B x``, computed from these pairs.
    thresholds : array, shape (k,)
        What the norms had to reach.
    stops : list of Stop
        Why each pair stopped.
    iterations : int
        Iterations of LOBPCG; restarts of Lanczos.
    products : int
        Products of the operator with one vector.
    eigenvalue_history, residual_history : array, shape (iterations + 1, k)
        Eigenvalues and norms of residuals as the iteration saw them.
    seconds : float
        Wall time.
    solver, executor : str
        What solved it, and where.
    notes : list of str
        What was chosen on the way, and why.
    """

    eigenvalues: Numbers
    eigenvectors: Any
    residual_norms: Numbers
    thresholds: Numbers
    stops: list[Stop]
    iterations: int
    products: int
    eigenvalue_history: Numbers
    residual_history: Numbers
    seconds: float
    solver: str
    executor: str
    notes: list[str] = field(default_factory=list)

    @property
    def converged(self) -> bool:
        """Whether the true residual of every pair meets its threshold."""
        return all(stop == Stop.CONVERGED for stop in self.stops)

    @property
    def reason(self) -> str:
        """Why it ended, in a sentence; that of the first pair that did not converge."""
        for pair, stop in enumerate(self.stops):
            if stop != Stop.CONVERGED:
                return f"pair {pair}: {stop.sentence}"
        return Stop.CONVERGED.sentence

    def __iter__(self) -> Iterator[Any]:
        yield self.eigenvalues
        yield self.eigenvectors

    def __repr__(self) -> str:
        done = sum(stop == Stop.CONVERGED for stop in self.stops)
        worst = float(np.max(self.residual_norms, initial=0.0))
        return (
            f"<{type(self).__name__} of {self.solver} on {self.executor}: {done} of "
            f"{len(self.stops)} pairs converged, {self.iterations} iterations, largest residual "
            f"norm {worst:.3g}, {self.seconds:.3g} s>"
        )


@dataclass(frozen=True, eq=False)
class SingularResult:
    """Singular triplets with their residuals; unpacks into ``u, s, vt``.

    Attributes
    ----------
    u : array, shape (m, k)
        Left singular vectors.
    s : array, shape (k,)
        Singular values, rising.
    vt : array, shape (k, n)
        Conjugates of the right singular vectors, as rows.
    residual_norms, thresholds : array, shape (k,)
        Norms of ``A v - s u`` and ``A.H u - s v`` together, computed from these triplets, and what
        they had to reach.
    stops : list of Stop
        Why each triplet stopped.
    iterations, products, seconds, solver, executor
        As for :class:`EigenResult`.
    """

    u: Any
    s: Numbers
    vt: Any
    residual_norms: Numbers
    thresholds: Numbers
    stops: list[Stop]
    iterations: int
    products: int
    seconds: float
    solver: str
    executor: str

    @property
    def converged(self) -> bool:
        """Whether every triplet meets its threshold."""
        return all(stop == Stop.CONVERGED for stop in self.stops)

    def __iter__(self) -> Iterator[Any]:
        yield self.u
        yield self.s
        yield self.vt
