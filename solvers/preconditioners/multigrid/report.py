"""The levels of a hierarchy, as a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ....core.described import rows_table
from ....core.dtypes import name_of

if TYPE_CHECKING:
    from .multigrid import Multigrid


@dataclass(frozen=True)
class Report:
    """The levels of a hierarchy, the finest first.

    Attributes
    ----------
    title : str
        The preconditioner of the report.
    rows, entries : list of int
        Numbers of rows and entries of each level's matrix.
    interpolation : list of int
        Numbers of entries of the interpolation from the next level; 0 for the last level.
    nbytes : int
        Bytes of all matrices, including the finest level.
    seconds : dict of str to float
        Time of the set-up, or of the last update, by phase.
    work : str
        ``"set-up"`` or ``"update"``: the work that the seconds are of.
    """

    title: str
    rows: list[int]
    entries: list[int]
    interpolation: list[int]
    nbytes: int
    seconds: dict[str, float] = field(default_factory=dict)
    work: str = "set-up"

    @property
    def operator_complexity(self) -> float:
        """Entries of all levels divided by the entries of the finest."""
        return sum(self.entries) / max(self.entries[0], 1)

    @property
    def grid_complexity(self) -> float:
        """Rows of all levels divided by the rows of the finest."""
        return sum(self.rows) / max(self.rows[0], 1)

    def html(self) -> str:
        """Return the levels as a table of HTML, with a line of totals as its caption."""
        rows = [
            (number, f"{n:,}", f"{nnz:,}", f"{nnz / max(n, 1):.1f}", f"{p:,}" if p else "")
            for number, (n, nnz, p) in enumerate(
                zip(self.rows, self.entries, self.interpolation, strict=True)
            )
        ]
        totals = (
            f"{self.title}; operator complexity {self.operator_complexity:.2f}, "
            f"{self.nbytes / 2**20:.1f} MiB, {self.work} {sum(self.seconds.values()):.3g} s"
        )
        return rows_table(totals, ("level", "rows", "entries", "per row", "entries of P"), rows)

    def __str__(self) -> str:
        head = f"{'level':>5} {'rows':>12} {'entries':>14} {'per row':>8} {'entries of P':>14}"
        lines = [self.title, head]
        for number, (n, nnz, p) in enumerate(
            zip(self.rows, self.entries, self.interpolation, strict=True)
        ):
            lines.append(f"{number:>5} {n:>12,} {nnz:>14,} {nnz / max(n, 1):>8.1f} {p:>14,}")
        lines.append(
            f"operator complexity {self.operator_complexity:.2f}, grid complexity "
            f"{self.grid_complexity:.2f}, {self.nbytes / 2**20:.1f} MiB"
        )
        if self.seconds:
            phases = ", ".join(f"{name} {1e3 * t:.1f} ms" for name, t in self.seconds.items())
            total = 1e3 * sum(self.seconds.values())
            lines.append(f"{self.work} {total:.1f} ms: {phases}")
        return "\n".join(lines)


def report_of(M: Multigrid) -> Report:
    """Return the report of a hierarchy."""
    levels, last = _levels(M)
    matrices = [level.A for level in levels]
    name = type(M).__name__
    dtype = M.coarsest.dtype
    count = len(matrices) + 1
    stored = "" if M.level_storage is None else f" stored in {name_of(M.level_storage)}"
    title = (
        f"{name}: {count} level{'s' * (count > 1)} in {dtype}{stored}, {M.cycle}-cycle, "
        f"{M.executor.name}"
    )
    return Report(
        title,
        [*(A.shape[0] for A in matrices), last.shape[0]],
        [*(A.nnz for A in matrices), last.nnz],
        [*(level.P.nnz for level in levels), 0],
        sum(level.nbytes for level in levels) + int(getattr(M.coarsest, "nbytes", 0)),
        dict(M.seconds),
        "update" if M._updates else "set-up",
    )


def _levels(M: Multigrid) -> tuple[list[Any], Any]:
    """Return all levels except the last, and the last matrix; for a group, with gathered ones."""
    inner = getattr(M.coarsest, "inner", None)
    if inner is None or not hasattr(inner, "levels"):
        return M.levels, M._last
    below, last = _levels(inner)
    return [*M.levels, *below], last
