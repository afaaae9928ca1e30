"""The options that the commands of ``wollemi bench`` have in common."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from wollemi.core.errors import InvalidArgument

if TYPE_CHECKING:
    from .contest import Settings


@dataclass(frozen=True)
class How:
    """Where and how long something is measured, against whom, and where records go."""

    executor: Annotated[str, typer.Option(help="reference, omp, omp:4, cuda, ...")] = "omp"
    json: Annotated[Path | None, typer.Option(help="Write every record, a line each.")] = None
    plot: Annotated[Path | None, typer.Option(help="Draw the roofline.")] = None
    batches: Annotated[
        int | None, typer.Option(help="Rounds in which every contender has its turn.", min=1)
    ] = None
    budget: Annotated[
        float | None, typer.Option(help="Seconds that a contest may take, about.")
    ] = None
    against: Annotated[list[str] | None, typer.Option(help="Only this peer; may be repeated.")] = (
        None
    )
    one_process: Annotated[
        bool, typer.Option("--one-process", help="On a CPU too: all contenders in this process.")
    ] = False

    def settings(self, batches: int, cold: bool = False, busy: int = 0) -> Settings:
        """Return the lengths of measurements: the default rounds unless others were requested."""
        from .contest import BUDGET, Settings

        budget = self.budget or BUDGET
        return Settings(batches=self.batches or batches, budget=budget, cold=cold, busy=busy)

    def check(self) -> None:
        """Raise InvalidArgument if a file cannot be written: before anything is measured."""
        for target in (self.json, self.plot):
            if target is not None and not target.parent.is_dir():
                raise InvalidArgument(f"{target}: there is no folder {target.parent}")


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of :class:`How` instead of its parameter ``how``.

    Typer reads options from a function's signature and knows no groups of them.
    """
    shared = _parameters(How)
    own = [parameter for parameter in _parameters(command) if parameter.name != "how"]

    @wraps(command)
    def called(**given: Any) -> None:
        how = How(**{parameter.name: given.pop(parameter.name) for parameter in shared})
        command(**given, how=how)

    called.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    called.__annotations__ = {p.name: p.annotation for p in (*own, *shared)}
    return called


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters with types instead of their names, all of them by keyword."""
    types = get_type_hints(function, include_extras=True)
    return [
        parameter.replace(annotation=types[name], kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(function).parameters.items()
    ]
