"""The result of a solve."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .described import convergence, facts_table, rows_table, side_by_side
from .errors import InvalidArgument
from .figures import save_figure
from .status import Stop
from .wording import counted, percentage

#: SciPy's return value after a breakdown.
_BREAKDOWN_INFO = -10


#: The reasons for which a solve can no longer meet its tolerance.
_BROKEN = (Stop.INDEFINITE, Stop.BREAKDOWN, Stop.NOT_FINITE, Stop.DIVERGED)
_UNMET = (Stop.MAX_ITERATIONS, Stop.STAGNATED)
_TOLERANCE_OF_ZERO = (
    "not converged: with rounding no residual becomes 0, which was the tolerance; give a positive "
    "rtol, such as 1e-12"
)


@dataclass(frozen=True)
class AttemptRecord:
    """One attempt of ``wl.solve`` at a system.

    Attributes
    ----------
    method, M : str
        Names of the method and its preconditioner; "" without a preconditioner.
    setup_seconds, seconds : float
        Wall time of the set-up and of the iterations, in seconds.
    iterations : int
        The largest iteration count of all columns.
    reason : str
        The reason why it ended.
    """

    method: str
    M: str
    setup_seconds: float
    iterations: int
    seconds: float
    reason: str


#: Column headers of the table of attempts.
ATTEMPT_COLUMNS = ("method", "M", "set-up, s", "iterations", "solve, s", "outcome")


@dataclass(frozen=True, eq=False)
class Result:
    """The outcome of a solve; unpacks into SciPy's pair ``x, info``.

    Attributes
    ----------
    x : array, shape (n,) or (n, k)
        The solution, a NumPy or native array like ``b``, and never an array of the caller. After a
        failed solve it is the best iterate with a computed true residual, at worst ``x0``. If the
        caller ended the solve (a callback, a user-defined criterion, a number of iterations without
        a tolerance), it is the last iterate.
    stops : list of Stop
        The reason why each column stopped.
    iterations : int
        The largest iteration count of all columns.
    residual_norm : float or array, shape (k,)
        The norm of the true residual ``b - A x`` of the returned ``x``.
    residuals : array, shape (iterations + 1,) or (iterations + 1, k)
        Residual norms as the iteration computed them, beginning with the initial one; NaN after a
        column has stopped.
    threshold : float or array, shape (k,)
        The threshold of the residual norm.
    seconds : float
        Wall time of the solve in seconds; for ``wl.solve`` it includes the set-up of all attempts.
    solver, executor : str
        Names of the solver and its executor.
    notes : list of str
        The choices that were made, and their reasons.
    attempts : list of AttemptRecord
        The attempts of ``wl.solve`` in order: method, preconditioner, set-up, iterations, time and
        outcome. It is empty for other solvers. ``print(result.table())`` shows them.
    condition : float or None
        A lower bound of the condition number of the matrix. Dense factors give it in the 1-norm. On
        hosts, CG without ``M`` or with Jacobi gives it in the 2-norm, with Jacobi for the matrix
        scaled by its diagonal. None elsewhere.
    error : float or None
        The estimated relative error of ``x``: from a factorization, or as an upper estimate from CG
        without ``M`` or with Jacobi on a host. None elsewhere.
    norm_of_b : float or array, shape (k,), or None
        The norm of the right-hand side, to which ``rtol`` is relative.
    M : str or None
        For ``wl.solve``: the preconditioner that led to this ``x``, "" without one. None for other
        solvers.
    is_shortest : bool
        Whether ``x`` is known to be the least squares solution of minimum norm.
    explained : dict of Stop to str
        Sentences about this solve that replace the standard sentences of its stops in
        :attr:`reason`.
    setup_before : float
        Wall time in seconds of the set-up of a solver object before the solve, including its
        preconditioner or factors; after an ``update``, the time of the last one. It is not included
        in ``seconds``. For ``wl.solve`` it is 0: :attr:`attempts` has the set-up times.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> result = wl.solvers.Cg(wl.Csr(np.diag([2.0, 4.0]))).solve(np.array([2.0, 2.0]))
    >>> result.converged, result.iterations, result.reason
    (True, 2, 'converged: the true residual meets the tolerance')
    >>> x, info = result
    >>> np.round(x, 6), info
    (array([1. , 0.5]), 0)
    """

    x: Any
    stops: list[Stop]
    column_iterations: np.ndarray[Any, Any]
    residual_norm: Any
    residuals: np.ndarray[Any, Any]
    threshold: Any
    seconds: float
    solver: str
    executor: str
    notes: list[str] = field(default_factory=list)
    attempts: list[AttemptRecord] = field(default_factory=list)
    condition: float | None = None
    error: float | None = None
    norm_of_b: Any = None
    M: str | None = None
    is_shortest: bool = False
    explained: dict[Stop, str] = field(default_factory=dict)
    setup_before: float = 0.0

    @property
    def converged(self) -> bool:
        """Whether the true residual of every column meets its threshold."""
        return self.stops.count(Stop.CONVERGED) == len(self.stops)

    @property
    def iterations(self) -> int:
        """The largest iteration count of all columns."""
        return max(self.column_iterations.tolist(), default=0)

    @property
    def total_iterations(self) -> int:
        """Iterations of all attempts; :attr:`iterations` counts only the successful one."""
        if not self.attempts:
            return self.iterations
        return sum(attempt.iterations for attempt in self.attempts)

    @property
    def setup_seconds(self) -> float:
        """Wall time of set-ups in seconds.

        For ``wl.solve`` it is the time of all attempts, which is included in :attr:`seconds`. For a
        solver object it is the time before the solve, :attr:`setup_before`, which is not included.
        """
        if not self.attempts:
            return self.setup_before
        return sum(attempt.setup_seconds for attempt in self.attempts)

    def rows_of_attempts(self) -> list[tuple[str, ...]]:
        """Return a row of strings for each attempt; the columns are :data:`ATTEMPT_COLUMNS`."""
        return [
            (
                a.method,
                a.M or "none",
                f"{a.setup_seconds:.3g}",
                str(a.iterations),
                f"{a.seconds:.3g}",
                a.reason,
            )
            for a in self.attempts
        ]

    def table(self) -> str:
        """Return the attempts as a text table.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.Csr(np.array([[4.0, 1.0], [1.0, 3.0]]))
        >>> print(wl.solve(A, np.array([1.0, 2.0])).table().splitlines()[0])
        method  M       set-up, s  iterations  solve, s  outcome
        """
        rows = [ATTEMPT_COLUMNS, *self.rows_of_attempts()]
        widths = [max(len(row[c]) for row in rows) for c in range(len(ATTEMPT_COLUMNS))]
        lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
        return "\n".join(lines)

    @property
    def reason(self) -> str:
        """The reason why the solve ended, of the first column that did not converge, if any."""
        for column, stop in enumerate(self.stops):
            if stop != Stop.CONVERGED:
                which = f"column {column}: " if len(self.stops) > 1 else ""
                unmet = stop in _UNMET and np.atleast_1d(self.threshold)[column] == 0
                return which + (_TOLERANCE_OF_ZERO if unmet else self._sentence(stop, column))
        return Stop.CONVERGED.sentence

    def _sentence(self, stop: Stop, column: int) -> str:
        if stop in self.explained:
            return self.explained[stop]
        if stop != Stop.LEAST_SQUARES:
            return stop.sentence
        said = "least squares: A is singular and b is not in its range"
        part = self._relative_norms()[column]
        if np.isfinite(part):
            said += f" ({percentage(part)} of its length lies outside)"
        if self.is_shortest:
            return f"{said}; x is the shortest least squares solution"
        return f"{said}; x is a least squares solution; use lsmr for the shortest one"

    def _relative_norms(self) -> np.ndarray[Any, Any]:
        """Return residual norms divided by norms of b; NaN if the latter are 0 or unknown."""
        norms = np.atleast_1d(np.asarray(self.residual_norm, np.float64))
        if self.norm_of_b is None:
            return np.full(norms.shape, np.nan)
        size = np.atleast_1d(np.asarray(self.norm_of_b, np.float64))
        with np.errstate(all="ignore"):
            return np.where(size > 0, norms / size, np.nan)

    @property
    def method(self) -> str:
        """The solver, with its preconditioner or its kind of factors if they are known."""
        return f"{self.solver} with {self.M}" if self.M else self.solver

    @property
    def info(self) -> int:
        """SciPy's code: 0 if converged, the iterations if not, negative after a breakdown."""
        failed = [stop for stop in self.stops if stop != Stop.CONVERGED]
        if not failed:
            return 0
        if any(s in _BROKEN for s in failed):
            return _BREAKDOWN_INFO
        return max(self.iterations, 1)

    def __iter__(self) -> Iterator[Any]:
        yield self.x
        yield self.info

    def __repr__(self) -> str:
        return (
            f"<Result of {self.method} on {self.executor}: {self.reason}; "
            f"{counted(self.iterations, 'iteration')}, residual norm {self._size_of_residual()}, "
            f"{self._time()}>"
        )

    def _time(self) -> str:
        """Return the times of the solve and of the set-ups as text."""
        setup = f"{self.setup_seconds:.3g} s"
        if self.attempts:
            return f"{self.seconds:.3g} s, of which {setup} for set-up"
        return f"{self.seconds:.3g} s" + (f", after {setup} of set-up" if self.setup_before else "")

    def _size_of_residual(self) -> str:
        """Return the largest residual norm as text, also relative to the norm of b."""
        norm = f"{np.max(self.residual_norm, initial=0.0):.3g}"
        known = [part for part in self._relative_norms().tolist() if np.isfinite(part)]
        return f"{norm} ({max(known):.2g} of b)" if known else norm

    def _repr_html_(self) -> str:
        """Return the card for notebooks: the values, the residual norms, and the attempts."""
        limit = float(np.max(self.threshold, initial=0.0))
        facts = {
            "verdict": self.reason,
            "solver": f"{self.method} on {self.executor}",
            "iterations": f"{self.iterations:,}",
            "residual norm": f"{self._size_of_residual()}, tolerance {limit:.3g}",
            "time": self._time(),
        }
        if self.condition is not None:
            facts["condition number"] = f"at least {self.condition:.1g}"
        if self.error is not None:
            facts["estimated error"] = f"{self.error:.1g}, relative to x"
        if len(self.attempts) > 1:
            facts["iterations"] += f" ({self.total_iterations:,} over all attempts)"
        facts |= {f"note {number}": note for number, note in enumerate(self.notes, 1)}
        attempts = ""
        if len(self.attempts) > 1:
            attempts = rows_table("Attempts", ATTEMPT_COLUMNS, self.rows_of_attempts())
        drawing = convergence(self.residuals, limit)
        return side_by_side(facts_table("Result", facts), drawing, attempts)

    def plot(self, path: str | Path | None = None) -> Any:
        """Plot the residual norms over the iterations.

        Parameters
        ----------
        path : str or Path, optional
            The file to write; its suffix determines the format.

        Returns
        -------
        matplotlib.figure.Figure
            The figure, to show or to change.

        Raises
        ------
        InvalidArgument
            If matplotlib is not installed, or has no format of the name of ``path``.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise InvalidArgument('plots need matplotlib: pip install "wollemi[plot]"') from None
        figure = Figure(figsize=(7, 4.2), layout="constrained")
        axes = figure.subplots()
        history = self.residuals.reshape(self.residuals.shape[0], -1)
        many = history.shape[1] > 1
        for column in range(history.shape[1]):
            axes.plot(history[:, column], lw=1.6, label=f"column {column}" if many else None)
        if np.any(history > 0):
            axes.set_yscale("log")
        threshold = float(np.max(self.threshold, initial=0.0))
        if threshold > 0:
            axes.axhline(threshold, color="0.4", ls="--", lw=1, label="tolerance")
        final = np.atleast_1d(self.residual_norm)
        axes.plot(self.column_iterations, final, "ko", ms=5, label="true residual")
        axes.set_xlabel("iteration")
        axes.set_ylabel("residual norm")
        verdict = "converged" if self.converged else self.reason.split(":")[0]
        axes.set_title(f"{self.method} on {self.executor}: {verdict}", fontsize=11)
        axes.grid(True, which="major", alpha=0.3)
        if history.shape[1] <= 8:
            axes.legend(frameon=False)
        if path is not None:
            save_figure(figure, path)
        return figure


def changed(result: Result, **fields: Any) -> Result:
    """Return a copy of a result with new values of some fields.

    ``dataclasses.replace`` takes eight times as long, and a repeated ``wl.solve`` calls this three
    times.
    """
    made = object.__new__(Result)
    made.__dict__.update(result.__dict__)
    made.__dict__.update(fields)
    return made
