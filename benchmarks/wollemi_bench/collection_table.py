"""The suite collection by family: ``python -m wollemi_bench.collection_table FILE.jsonl``.

``--peer`` names the other library. The table has the number of matrices, the time of the
peer by that of wollemi (geometric mean, least, most), and the share of the time in which
the minimal bytes are read.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from .page.numbers import geometric_mean, times_ours
from .results import RecordedContest, read, recorded_contests

#: The names of two rows: of all matrices, and of the matrices from files.
ALL, FILES = "all", "files"


def rows(contests: Iterable[RecordedContest], peer: str) -> list[str]:
    """Return the rows of the table, families first.

    Parameters
    ----------
    contests : iterable of RecordedContest
        Of products.
    peer : str
        The other library.
    """
    ratios: dict[str, list[float]] = {}
    shares: dict[str, list[float]] = {}
    for contest in contests:
        ours, other = contest.ours, contest.of(peer)
        spread = None if ours is None or other is None else times_ours(ours, other)
        if ours is None or spread is None:
            continue
        for family in (ours.family or FILES, ALL):
            ratios.setdefault(family, []).append(spread.median)
            if ours.floor_share is not None:
                shares.setdefault(family, []).append(ours.floor_share)
    ordered = sorted(ratios, key=lambda family: (family == ALL, family == FILES, family))
    return [_row(family, ratios[family], shares.get(family, [])) for family in ordered]


def _row(family: str, ratios: list[float], shares: list[float]) -> str:
    slower = sum(ratio < 1 for ratio in ratios)
    cells = [family, str(len(ratios)), f"{geometric_mean(ratios):.2f}"]
    cells += [f"{min(ratios):.2f}", f"{max(ratios):.2f}", str(slower)]
    cells += [f"{np.median(shares):.2f}", f"{min(shares):.2f}"] if shares else ["", ""]
    return f"| {' | '.join(cells)} |"


def main(file: Path, peer: Annotated[str, typer.Option(help="Of the records.")] = "cupy") -> None:
    """Print the table."""
    heads = ("matrices", "number", f"{peer} by wollemi, mean", "least", "most", "below 1")
    print(f"| {' | '.join((*heads, 'share, median', 'least'))} |")
    print("| --- | --: | --: | --: | --: | --: | --: | --: |")
    print("\n".join(rows(recorded_contests(read(file)), peer)))


if __name__ == "__main__":
    typer.run(main)
