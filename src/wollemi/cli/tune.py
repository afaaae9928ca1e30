"""``wollemi tune``: measure the constants by which kernels and methods are selected."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from ..core.registry import executor as executor_by_name
from ..tune import fit
from ..tune.experiments import Experiment
from .console import console


def tune(
    executor: Annotated[str, typer.Argument(help="The executor: omp, cuda, cuda:1, hip.")] = "omp",
    seconds: Annotated[
        float,
        typer.Option(
            help="No measurement but the first begins after this time; call again to go on."
        ),
    ] = 60.0,
    again: Annotated[bool, typer.Option("--again", help="Repeat earlier measurements.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Remove the file of constants.")] = False,
) -> None:
    """Measure the constants of a device and store a file that later calls select by.

    The file is in the folder of caches ($WOLLEMI_CACHE_DIR). Without it, the constants of the
    nearest device that wollemi knows are used.
    """
    out, on = console(), executor_by_name(executor)
    file = fit.file_of(on)
    if forget:
        there = fit.forget(on)
        said = "is removed" if there else "does not exist"
        out.print(f"{escape(str(file))} {said}; {escape(repr(on.constants))} serve {on.name}")
        return

    def began(experiment: Experiment) -> None:
        out.print(f"{experiment.name}: {experiment.description} ...")

    left = 0
    for outcome in fit.tune(on, seconds=seconds, again=again, began=began):
        left += outcome.status == "left"
        values = ", ".join(f"{name} {value:.3g}" for name, value in outcome.constants.items())
        dropped = ", ".join(f"{name} {value:.3g}" for name, value in outcome.dropped.items())
        text = {
            "measured": f"  {values} ({outcome.seconds:.1f} s)",
            "known": f"{outcome.experiment}: known",
            "left": f"{outcome.experiment}: left for the next call",
            "failed": f"  {outcome.reason}",
        }[outcome.status]
        out.print(escape(text), highlight=False)
        if dropped:
            out.print(f"  dropped, a disturbed measurement: {dropped}", highlight=False)
    if left:
        out.print(f"call `wollemi tune {executor}` again for the other measurements", markup=False)
    out.print(f"constants: {file}", markup=False, soft_wrap=True)
