"""``wollemi solve``: a system from files, its solution and the verdict."""

from __future__ import annotations

import inspect
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from ..core import io
from ..core.distributed import Group, world
from ..core.errors import InvalidArgument, SolveInterrupted
from ..core.registry import default_executor
from ..core.result import Result
from ..core.settings import Settings
from ..solvers import read_settings
from ..solvers.choose import RESTART
from ..solvers.choose import solve as solve_system
from ..solvers.preconditioners import BY_NAME
from ..solvers.registry import SOLVERS
from .console import INTERRUPTED, NOT_CONVERGED, SOLVED, console

DTYPES = ("float32", "float64", "complex64", "complex128")
WRITABLE = (".mtx", ".mtx.gz", ".mtx.bz2", ".mtx.xz", ".npy")


def solve(
    matrix: Annotated[
        Path,
        typer.Argument(metavar="A", help="A: .mtx or .smtx (.gz, .bz2, .xz too), .npz or .npy."),
    ],
    right_hand_side: Annotated[
        Path | None, typer.Argument(metavar="B", help="b; A @ ones by default.")
    ] = None,
    method: Annotated[str, typer.Option(help=f"auto, {', '.join(SOLVERS)}.")] = "auto",
    precond: Annotated[str, typer.Option(help=f"auto, none, {', '.join(BY_NAME)}.")] = "auto",
    executor: Annotated[
        str,
        typer.Option(
            "--executor",
            "--on",
            help="reference, omp, omp:4, cuda, ...; a group: cuda:*, omp:2,omp:2, or mpi.",
        ),
    ] = "omp",
    rtol: Annotated[float, typer.Option(help="Relative tolerance on the true residual.")] = 1e-5,
    atol: Annotated[float, typer.Option(help="Absolute tolerance on the true residual.")] = 0.0,
    maxiter: Annotated[int | None, typer.Option(help="Iterations at most; 10 n.")] = None,
    restart: Annotated[
        int | None,
        typer.Option(help=f"Cycle length of gmres; {RESTART}, or all of a small system."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="A file of JSON with the solver and its options, in place of those."),
    ] = None,
    dtype: Annotated[str | None, typer.Option(help=f"{', '.join(DTYPES)}.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the convergence into this file.")] = None,
    out: Annotated[Path | None, typer.Option(help=f"Write x: {', '.join(WRITABLE)}.")] = None,
    progress: Annotated[
        bool | None, typer.Option(help="A progress bar; by default on a terminal.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no table.")] = False,
) -> None:
    """Solve A x = b for the matrix in a file.

    Exit status: 0 solved, 1 not converged, 2 bad input, 130 interrupted.
    """
    _check_targets(plot, out)
    options = {
        "method": method,
        "M": precond,
        "rtol": rtol,
        "atol": atol,
        "maxiter": maxiter,
        "restart": restart,
    }
    settings = None if config is None else _read_config(config, options)
    if dtype is not None and dtype not in DTYPES:
        raise InvalidArgument(f"no dtype is called {dtype!r}; known: {', '.join(DTYPES)}")
    group = group_named(executor)
    first = getattr(group, "rank", 0) == 0  # of the ranks of MPI one speaks
    quiet = quiet or not first
    with nullcontext() if group else default_executor(executor):
        A, b = read_system(matrix, right_hand_side, dtype, group)
        shown = sys.stderr.isatty() and not quiet if progress is None else progress
        interrupted = False
        try:
            if settings is None:
                result = solve_system(A, b, **options, progress=shown)  # type: ignore[arg-type]
            else:
                solved = settings.on(A).solve(b, progress=shown)
                result = replace(solved, notes=[f"{settings}, from {config}"])
        except SolveInterrupted as interruption:
            result, interrupted = interruption.result, True  # type: ignore[assignment]
        if not quiet:
            known = None if right_hand_side else np.ones(A.shape[1])
            console().print(result_table(matrix.name, A, b, result, known))
        if out is not None and first:
            io.write(out, result.x)
        if plot is not None and first:
            result.plot(plot)
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(SOLVED if result.converged else NOT_CONVERGED)


def _read_config(config: Path, options: dict[str, Any]) -> Settings:
    """Return the settings of a file, unless an option says something else."""
    defaults = inspect.signature(solve_system).parameters
    given = [name for name, value in options.items() if value != defaults[name].default]
    if given:
        names = ", ".join("--precond" if name == "M" else f"--{name}" for name in given)
        raise InvalidArgument(
            f"--config has all options of the solver: write {names} into {config}"
        )
    return read_settings(config)


def _check_targets(plot: Path | None, out: Path | None) -> None:
    """Find out before the solve what would spoil its end."""
    for target in (plot, out):
        if target is not None and not target.parent.is_dir():
            raise InvalidArgument(f"{target}: there is no folder {target.parent}")
    if out is not None and not out.name.endswith(WRITABLE):
        raise InvalidArgument(f"{out}: a vector is written as one of {', '.join(WRITABLE)}")
    if plot is not None:
        try:
            from matplotlib.backend_bases import FigureCanvasBase
        except ImportError:
            raise InvalidArgument('plots need matplotlib: pip install "wollemi[plot]"') from None
        kinds = FigureCanvasBase.get_supported_filetypes()
        if plot.suffix[1:].lower() not in kinds:
            raise InvalidArgument(f"{plot}: a picture is written as one of {', '.join(kinds)}")


def group_named(name: str) -> Any:
    """Return the group that a name asks for, or None for one executor."""
    if name == "mpi":
        return world()
    if name.endswith(":*"):
        return Group(name)
    return Group(name.split(",")) if "," in name else None


def _not_finite(A: Any) -> int:
    """Return how many entries are NaN or Inf."""
    members = getattr(A, "members", (A,))
    count = sum(
        int(np.count_nonzero(~np.isfinite(part.executor.to_host(part.data)))) for part in members
    )
    links = None if len(members) > 1 else members[0].executor.links
    return count if links is None else sum(links.all(count))


def read_system(
    matrix: Path, right_hand_side: Path | None, dtype: str | None, group: Any = None
) -> tuple[Any, Any]:
    """Read A and b; without a file, b is what makes the solution all ones."""
    A = io.read(matrix, executor=group)
    rows, columns = A.shape
    if rows != columns:
        raise InvalidArgument(f"{matrix}: {rows} x {columns} is not square: solve needs n x n")
    bad = _not_finite(A)
    if bad:
        raise InvalidArgument(f"{matrix}: {bad} entries are NaN or Inf: there is no solution")
    if dtype is not None:
        A = A.astype(dtype)
    if right_hand_side is None:
        return A, A @ np.ones(columns, A.dtype)
    b = io.read_vector(right_hand_side)
    if b.shape[0] != rows:
        raise InvalidArgument(
            f"{right_hand_side}: b has {b.shape[0]} rows and {matrix.name} has {rows}"
        )
    return A, b if dtype is None else b.astype(np.result_type(b.dtype, dtype), copy=False)


def result_table(name: str, A: Any, b: Any, result: Result, known: Any = None) -> Table:
    """Return what a solve came to as a table for people.

    Parameters
    ----------
    name : str
        What to call the matrix.
    A, b : matrix and array
        The system.
    result : Result
        Its outcome.
    known : array, optional
        The solution, where it is known: the error is shown too.
    """
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    rows, columns = A.shape
    kind = type(getattr(A, "members", (A,))[0]).__name__
    table.add_row(
        "matrix", escape(f"{name}: {kind} {rows} x {columns}, {A.nnz} entries, {A.dtype}")
    )
    device = A.executor.properties.get("name", "")
    table.add_row(
        "executor", escape(f"{result.executor} ({device})" if device else result.executor)
    )
    table.add_row("method", result.solver)
    for note in result.notes:
        table.add_row("", f"[dim]{escape(note)}[/]")
    table.add_row("iterations", str(result.iterations))
    norms = np.atleast_1d(result.residual_norm)
    scale = np.atleast_1d(np.linalg.norm(b, axis=0))
    relative = np.divide(norms, scale, out=np.zeros_like(norms), where=scale > 0)
    worst = int(np.argmax(np.where(np.isnan(relative), np.inf, relative))) if norms.size else 0
    if norms.size > 1:
        table.add_row("right-hand sides", f"{norms.size}, the worst one below")
    if norms.size:
        table.add_row(
            "true residual",
            f"{norms[worst]:.3e} (relative {relative[worst]:.3e}, "
            f"asked {np.atleast_1d(result.threshold)[worst]:.3e})",
        )
    if known is not None and rows:
        table.add_row("error of x", f"{np.max(np.abs(result.x - known)):.3e} at most")
    table.add_row("time", f"{result.seconds:.4g} s")
    colour = "green" if result.converged else "red"
    table.add_row("verdict", f"[{colour}]{escape(result.reason)}[/]")
    return table
