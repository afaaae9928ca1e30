"""The results of eigenvalue and singular value solvers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.described import facts_table, rows_table, side_by_side
from ...core.status import Stop
from ...core.wording import counted

Numbers = np.ndarray[Any, Any]

#: Number of pairs in the card of a notebook.
CARD_ROWS = 12

#: Reasons with another remedy for pairs than for systems.
SENTENCES = {
    Stop.STAGNATED: (
        "stagnated: the true residual no longer falls, or the vectors are not orthonormal; the "
        "tolerance is below the accuracy of the products or of the inverse: loosen rtol, or take "
        "a wider dtype"
    ),
    Stop.NOT_FINITE: (
        "not finite: products with A, B, M or an inverse have NaN or Inf; replace them, and check "
        "functions that were given as operators"
    ),
    Stop.MAX_ITERATIONS: (
        "not converged: the iteration limit was reached; raise maxiter or ncv, loosen rtol, or "
        "give sigma (Lanczos) or a preconditioner (Lobpcg)"
    ),
    Stop.OUT_OF_RANGE: (
        "out of range: the eigenvalue overflows or underflows double precision in the units of A "
        "and B; scale them"
    ),
}


def sentence(stop: Stop) -> str:
    """Return the reason for which a pair stopped, with the remedy."""
    return SENTENCES.get(stop, stop.sentence)


def first_reason(kind: str, stops: list[Stop]) -> str:
    """Return the sentence of the first pair or triplet that did not converge."""
    for number, stop in enumerate(stops):
        if stop != Stop.CONVERGED:
            return f"{kind} {number}: {sentence(stop)}"
    return Stop.CONVERGED.sentence


def summary(result: EigenResult | SingularResult, kind: str, unit: str) -> str:
    """Return a result in one line; ``unit`` is the noun of its iterations."""
    done = sum(stop == Stop.CONVERGED for stop in result.stops)
    worst = float(np.max(result.residual_norms, initial=0.0))
    return (
        f"<{type(result).__name__} of {result.solver} on {result.executor}: {done} of "
        f"{len(result.stops)} {kind}s converged, {counted(result.iterations, unit)}, largest "
        f"residual norm {worst:.3g}, {result.seconds:.3g} s, after {result.setup_seconds:.3g} s of "
        "set-up>"
    )


@dataclass(frozen=True, eq=False)
class EigenResult:
    """Eigenpairs with their residuals; unpacks into the pair ``eigenvalues, eigenvectors``.

    Attributes
    ----------
    eigenvalues : array, shape (k,)
        Real NumPy array, in the order that the solver's docstring defines.
    eigenvectors : array, shape (n, k)
        NumPy or native array, like the initial vectors; ``X.H @ B @ X`` is the identity.
    residual_norms : array, shape (k,)
        Norms of ``A x - lambda B x``, computed from these pairs.
    thresholds : array, shape (k,)
        The thresholds of these norms.
    stops : list of Stop
        The stop of each pair.
    iterations : int
        Number of iterations of LOBPCG, or of restarts of Lanczos.
    products : int
        Number of products of the operator with one vector.
    eigenvalue_history, residual_history : array, shape (iterations + 1, k)
        Eigenvalues and residual norms in the iterations.
    seconds : float
        Wall time.
    solver, executor : str
        The solver and its executor.
    notes : list of str
        The choices that were made, and their reasons.
    setup_seconds : float
        Wall time of building the solver, with its preconditioner or factors; not part of
        ``seconds``.
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
    setup_seconds: float = 0.0

    @property
    def converged(self) -> bool:
        """Whether the true residual of every pair meets its threshold."""
        return all(stop == Stop.CONVERGED for stop in self.stops)

    @property
    def reason(self) -> str:
        """The reason for the end, in a sentence: of the first pair that did not converge."""
        return first_reason("pair", self.stops)

    def __iter__(self) -> Iterator[Any]:
        yield self.eigenvalues
        yield self.eigenvectors

    def _repr_html_(self) -> str:
        """Return the card of a notebook: the report, and a row for each pair."""
        return card(
            {
                "solver": f"{self.solver} on {self.executor}",
                "iterations": f"{self.iterations}, {self.products} products with A",
                "time": f"{self.seconds:.3g} s, after {self.setup_seconds:.3g} s of set-up",
                "verdict": self.reason,
                **{f"note {number}": note for number, note in enumerate(self.notes, 1)},
            },
            "eigenvalue",
            self.eigenvalues,
            self,
        )

    def __repr__(self) -> str:
        return summary(self, "pair", "iteration")


@dataclass(frozen=True, eq=False)
class SingularResult:
    """Singular triplets with their residuals; unpacks into ``u, s, vt``.

    Attributes
    ----------
    u : array, shape (m, k)
        Left singular vectors.
    s : array, shape (k,)
        Singular values in ascending order.
    vt : array, shape (k, n)
        Conjugates of the right singular vectors, as rows.
    residual_norms, thresholds : array, shape (k,)
        Joint norms of ``A v - s u`` and ``A.H u - s v``, computed from these triplets, and their
        thresholds.
    stops : list of Stop
        The stop of each triplet.
    iterations, products, seconds, solver, executor, setup_seconds, notes
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
    setup_seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    @property
    def converged(self) -> bool:
        """Whether every triplet meets its threshold."""
        return all(stop == Stop.CONVERGED for stop in self.stops)

    @property
    def reason(self) -> str:
        """The reason for the end, in a sentence: of the first triplet that did not converge."""
        return first_reason("triplet", self.stops)

    def __iter__(self) -> Iterator[Any]:
        yield self.u
        yield self.s
        yield self.vt

    def __repr__(self) -> str:
        return summary(self, "triplet", "restart")

    def _repr_html_(self) -> str:
        """Return the card of a notebook: the report, and a row for each triplet."""
        return card(
            {
                "solver": f"{self.solver} on {self.executor}",
                "restarts": f"{self.iterations}, {self.products} products with A and A.H",
                "time": f"{self.seconds:.3g} s, after {self.setup_seconds:.3g} s of set-up",
                "verdict": self.reason,
                **{f"note {number}": note for number, note in enumerate(self.notes, 1)},
            },
            "singular value",
            self.s,
            self,
        )


def card(
    facts: dict[str, str], name: str, values: Numbers, result: EigenResult | SingularResult
) -> str:
    """Return a table of facts and a table of values with their residuals as HTML."""
    rows: list[tuple[str, ...]] = [
        (f"{value:.10g}", f"{norm:.2e}", f"{limit:.2e}", stop.name.lower().replace("_", " "))
        for value, norm, limit, stop in zip(
            values[:CARD_ROWS], result.residual_norms, result.thresholds, result.stops, strict=False
        )
    ]
    more = len(values) - CARD_ROWS
    if more > 0:
        rows.append((f"and {more} more", "", "", ""))
    table = rows_table("", (name, "residual norm", "limit", "verdict"), rows)
    return side_by_side(facts_table(type(result).__name__, facts), table)
