"""``wollemi bench``: an operation against its floor and its peers."""

from __future__ import annotations

import typer

bench = typer.Typer(no_args_is_help=True, help="Time an operation against its floor and its peers.")
