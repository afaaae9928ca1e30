"""``wollemi bench``: the commands of the package ``wollemi_bench``, if it is installed."""

from __future__ import annotations

import typer

from ..core.errors import WollemiError


def bench(context: typer.Context) -> None:
    """Time an operation against its floor and its peers (the extra "bench")."""
    try:
        from wollemi_bench.commands import bench as commands
    except ModuleNotFoundError as error:
        if error.name != "wollemi_bench":
            raise
        raise WollemiError(
            "the benchmarks are a package of their own, wollemi_bench, which is not installed: "
            'pip install "wollemi[bench]"'
        ) from error
    commands(context.args, prog_name="wollemi bench")
