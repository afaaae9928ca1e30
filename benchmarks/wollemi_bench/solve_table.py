"""``wl.solve`` and every single method, on every square matrix of a folder.

``python -m wollemi_bench.solve_table FOLDER PAGE`` writes a page with the table. Right-hand sides
are ``A @ ones``; every attempt of every contender has the same budget of iterations.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import wollemi as wl
from wollemi.core.errors import WollemiError
from wollemi.core.result import Result

METHODS = ("cg", "bicgstab", "cgs", "gmres")
PRECONDITIONERS = {"none": "none", "jacobi": "jacobi:replacement=1.0"}

RTOL = 1e-10

#: Bytes of a dense matrix up to which a system is solved without a limit on the work.
DIRECT_BYTES = 2**29

#: Iterations of an attempt at most, and of as many unknowns as there are.
BUDGET, PER_UNKNOWN = 2000, 10


@dataclass(frozen=True)
class Single:
    """The result of one method with one preconditioner."""

    label: str
    converged: bool
    iterations: int
    seconds: float


@dataclass(frozen=True)
class Row:
    """The content of the table for one matrix."""

    name: str
    unknowns: int
    entries: int
    singles: list[Single]
    limited: Result
    free: Result
    superlu: Result | None
    twins: int

    @property
    def best(self) -> Single | None:
        """The quickest of the methods that solve the system."""
        solved = [s for s in self.singles if s.converged]
        return min(solved, key=lambda s: s.seconds, default=None)

    @property
    def holds(self) -> bool:
        """Whether ``wl.solve`` solves it, or no method does, with the same budget."""
        return self.limited.converged or self.best is None


def square_systems(folder: Path) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name, the matrix and the right-hand side of every square matrix of a folder."""
    endings = (".mtx", ".mtx.gz", ".smtx.gz")
    for path in sorted(p for p in folder.rglob("*") if p.name.endswith(endings)):
        A = wl.read(path)
        if A.shape[0] == A.shape[1] and A.shape[0] > 1:
            name = str(path.relative_to(folder)).removesuffix(".gz").rpartition(".")[0]
            yield name, A, A @ np.ones(A.shape[1], A.dtype)


def measured(name: str, A: Any, b: Any) -> Row:
    """Solve one system in all ways."""
    settings: dict[str, Any] = {"rtol": RTOL, "maxiter": min(BUDGET, PER_UNKNOWN * A.shape[0])}
    singles = []
    for M, options in PRECONDITIONERS.items():
        for method in METHODS:
            try:
                found = wl.solve(A, b, method=method, M=options, **settings)
            except WollemiError as error:
                print(f"{name}, {method}, {M}: {error}", file=sys.stderr)
                continue
            label = f"{method}, {M}"
            singles.append(Single(label, found.converged, found.iterations, found.seconds))
    limited = wl.solve(A, b, **settings)
    # without a limit a large unsolved system would take hours
    small = A.shape[0] ** 2 * A.dtype.itemsize <= DIRECT_BYTES
    free = wl.solve(A, b, rtol=RTOL) if small and not limited.converged else limited
    superlu = factorized(A, b) if small else None
    return Row(name, A.shape[0], A.nnz, singles, limited, free, superlu, equal_rows(A))


def equal_rows(A: Any) -> int:
    """Return how many rows are equal to an earlier one: where there are any, A is singular."""
    S = A.to_scipy().tocsr()
    S.sum_duplicates()
    bounds = zip(S.indptr[:-1], S.indptr[1:], strict=True)
    rows = {(S.indices[a:b].tobytes(), S.data[a:b].tobytes()) for a, b in bounds}
    return int(A.shape[0]) - len(rows)


def factorized(A: Any, b: Any) -> Result | None:
    """Return SuperLU's result with its set-up, None if the matrix has no factors."""
    start = time.perf_counter()
    try:
        solved = wl.solvers.Direct(A, engine="superlu", rtol=RTOL).solve(b)
    except WollemiError:
        return None
    return replace(solved, seconds=time.perf_counter() - start)


def table(rows: list[Row]) -> str:
    """Return the table in Markdown."""
    lines = [
        "| matrix | unknowns | entries | methods that solve it, of 8 | the quickest | iterations, "
        "ms | `wl.solve`, same budget | iterations, ms | `wl.solve`, no limit | SuperLU, ms |",
        "| --- | --: | --: | --: | --- | --: | --- | --: | --- | --: |",
    ]
    for row in rows:
        solved = sum(single.converged for single in row.singles)
        best = row.best
        quickest = (best.label, _cost(best.iterations, best.seconds)) if best else ("", "")
        limited = row.limited
        ours = (
            (limited.solver, _cost(limited.iterations, limited.seconds))
            if limited.converged
            else ("not solved", f"{limited.seconds * 1e3:.3g} ms")
        )
        free = "" if row.free is limited else _told(row.free)
        cells = [row.name, row.unknowns, row.entries, solved, *quickest, *ours, free, _lu(row)]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def _cost(iterations: int, seconds: float) -> str:
    return f"{iterations}, {seconds * 1e3:.3g}"


def _lu(row: Row) -> str:
    if row.superlu is None and row.twins:
        return f"singular: {row.twins} equal rows"
    if row.superlu is None:
        return "none" if row.unknowns**2 * 8 <= DIRECT_BYTES else "not tried"
    time_taken = f"{row.superlu.seconds * 1e3:.3g}"
    return time_taken if row.superlu.converged else f"{time_taken}, not solved"


def _told(result: Result) -> str:
    how = result.solver if result.converged else f"not solved: {result.reason.partition(':')[0]}"
    return f"{how}, {result.seconds * 1e3:.3g} ms"


def page(rows: list[Row]) -> str:
    """Return the whole page."""
    held = sum(row.holds for row in rows)
    some = sum(row.best is not None for row in rows)
    ours = sum(row.limited.converged for row in rows)
    free = sum(row.free.converged for row in rows)
    return f"""# Systems that `wl.solve` solves

Every square matrix of a folder of real matrices, with `b = A @ ones` and a relative tolerance of
{RTOL:g} on the true residual. Each of the four methods was asked for by name, without a
preconditioner and with Jacobi (1 where the diagonal has no inverse); then `wl.solve` chose. Every
attempt had {BUDGET} iterations, or {PER_UNKNOWN} times the number of unknowns if that is less. The
time of `wl.solve` is that of all its attempts.

- Of {len(rows)} systems some method solves {some} within the budget, `wl.solve` {ours}: in {held}
  of {len(rows)} cases it does at least as well as the best method.
- Without a limit on the iterations the direct solver has its turn: {free} are solved.
- The last column is the time of SciPy's SuperLU: analysis, factors, solve and refinement; "none"
  where it finds the matrix singular, "not tried" where its factors could be too large, and how many
  rows are equal to others where that makes the matrix singular.

{table(rows)}

Times are in milliseconds, on {wl.get_default_executor().name}, and so short that they tell the
order of size alone. `python -m wollemi_bench.solve_table FOLDER docs/solve-table.md` makes this
page.
"""


def main(folder: str, target: str) -> None:
    """Measure, and write the page."""
    rows = []
    for name, A, b in square_systems(Path(folder)):
        rows.append(measured(name, A, b))
        row = rows[-1]
        verdict = "solved" if row.limited.converged else "not solved"
        print(f"{name}: {verdict}, at least as good as the best: {row.holds}", flush=True)
        Path(target).write_text(page(rows), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m wollemi_bench.solve_table FOLDER PAGE")
    main(*sys.argv[1:])
