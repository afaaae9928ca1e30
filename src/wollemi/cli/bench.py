"""``wollemi bench``: the commands of the package ``wollemi_bench``, if it is installed."""

from __future__ import annotations

import typer

from ..core.errors import WollemiError


def bench(context: typer.Context) -> None:
    """Time an operation against its floor and its peers (pip install ./benchmarks)."""
    try:
        from wollemi_bench.commands import bench as commands
    except ModuleNotFoundError as error:
        if error.name != "wollemi_bench":
            raise
        raise WollemiError(
            "the benchmarks are a package of their own, wollemi_bench, which is not installed: in "
            "a checkout run pip install ./benchmarks, which brings MKL, PyAMG and other peers; "
            "pip install --no-deps ./benchmarks is enough for wollemi bench spmv"
        ) from error
    commands(context.args, prog_name="wollemi bench")
