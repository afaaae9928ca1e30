"""``make bench``: every suite, into a folder, and the report that people read.

The harness is the package ``wollemi_bench`` in this folder; ``wollemi bench`` calls it too.
"""

from pathlib import Path
from typing import Annotated

import typer

from wollemi.cli import main

#: With its running contests, a run ends within 20 minutes on two cores, and 8 on a GPU.
CPU_MINUTES, GPU_MINUTES = 18.0, 7.0


def everything(
    executor: Annotated[str, typer.Option(help="reference, omp, omp:4, cuda, ...")] = "omp",
    out: Annotated[Path, typer.Option(help="The folder for records and report.")] = Path(
        "benchmarks/out"
    ),
    suite: Annotated[
        list[str] | None, typer.Option(help="Run this suite alone; may be repeated.")
    ] = None,
    scale: Annotated[int | None, typer.Option(help="Divide the sizes of suites by this.")] = None,
    budget: Annotated[
        float | None, typer.Option(help="Seconds that a comparison may take.")
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(help="Start no case after these minutes: 18, on a GPU 7."),
    ] = None,
    matrices: Annotated[
        Path | None, typer.Option(help="The folder of graphs and layers of the suites.")
    ] = None,
    every_file: Annotated[
        bool, typer.Option("--every-file", help="Of tca-dlmc: all .smtx files below that folder.")
    ] = False,
    against: Annotated[
        list[str] | None, typer.Option(help="Compare with this library alone; may be repeated.")
    ] = None,
) -> None:
    """Run the suites; ends with 1 if any result of wollemi was wrong."""
    out.mkdir(parents=True, exist_ok=True)
    name = executor.replace(":", "-")
    records = out / f"{name}.jsonl"
    options = ["--executor", executor, "--json", str(records)]
    if minutes is None:
        minutes = GPU_MINUTES if executor.startswith(("cuda", "hip")) else CPU_MINUTES
    options += ["--minutes", str(minutes)]
    for option, value in (("--scale", scale), ("--budget", budget)):
        options += [] if value is None else [option, str(value)]
    options += [] if matrices is None else ["--matrices", str(matrices)]
    options += ["--every-file"] if every_file else []
    for peer in against or ():
        options += ["--against", peer]
    status = ran("bench", "suite", *(suite or ["all"]), *options)
    status = ran("bench", "report", str(records), "--out", str(out / name)) or status
    raise typer.Exit(status)


def ran(*words: str) -> int:
    """Return the exit status of a command."""
    try:
        main([*words])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


if __name__ == "__main__":
    typer.run(everything)
