"""``make bench``: every benchmark with its usual cases, into a folder.

The harness is in the package (``wollemi bench``), so that an installed wheel has it too.
"""

from pathlib import Path
from typing import Annotated

import typer

from wollemi.cli import main

SUITES = ("spmv", "solve")


def everything(
    executor: Annotated[str, typer.Option(help="reference, omp, omp:4, cuda, ...")] = "omp",
    out: Annotated[Path, typer.Option(help="Where the records and pictures go.")] = Path(
        "benchmarks/out"
    ),
) -> None:
    """Run all suites; ends with 1 if any result of ours was wrong."""
    out.mkdir(parents=True, exist_ok=True)
    statuses = []
    for suite in SUITES:
        name = f"{suite}-{executor.replace(':', '-')}"
        files = ["--json", str(out / f"{name}.jsonl"), "--plot", str(out / f"{name}.png")]
        try:
            main(["bench", suite, "--executor", executor, *files])
        except SystemExit as end:
            statuses.append(end.code)
    raise typer.Exit(1 if any(statuses) else 0)


if __name__ == "__main__":
    typer.run(everything)
