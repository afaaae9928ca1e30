"""The commands, and the reporting of their errors."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import version as installed_version
from typing import Annotated, Any, NoReturn

import typer
import typer.core

from ..core.errors import WollemiError
from .advice import as_options, completed
from .bench import bench
from .console import BAD_INPUT, complain, guarded
from .doctor import doctor
from .info import info
from .kernels import kernels
from .solve import solve
from .tune import tune


class _Command(typer.core.TyperCommand):
    """A command with usage in the usual form ``A [B]``, without braces."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words after the name of the command."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words after the command; errors suggest the intended option."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            known = [name for parameter in self.get_params(ctx) for name in parameter.opts]
            completed(error, [name for name in known if name.startswith("--")])
            raise


app = typer.Typer(
    name="wollemi",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
for command in (info, doctor, solve, kernels, tune):
    app.command(cls=_Command)(guarded(command))
# All arguments, even --help, go to the command of another package.
app.command(
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)(guarded(bench))


def _show_version(wanted: bool) -> None:
    if wanted:
        print(installed_version("wollemi"))
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_show_version, help="Print the version of wollemi."
        ),
    ] = False,
) -> None:
    """Sparse linear algebra on any executor."""


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit with its status; see :func:`wollemi.cli.main`."""
    try:
        app(None if arguments is None else list(arguments), prog_name="wollemi")
    except WollemiError as error:
        complain(as_options(str(error)))
    except MemoryError:
        complain("there is not enough memory for this system")
    except OSError as error:
        where = f"{error.filename}: " if error.filename and error.strerror else ""
        complain(f"{where}{error.strerror or error}")
    sys.exit(BAD_INPUT)
