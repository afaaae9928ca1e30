"""``wollemi solve``: solve a system from files, and print the solution's verdict."""

from __future__ import annotations

import inspect
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from json import dumps
from pathlib import Path
from typing import Annotated, Any, TextIO

import numpy as np
import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from ..core import io
from ..core.distributed import Group, world
from ..core.errors import InvalidArgument, SolveInterrupted
from ..core.notes import Topic, is_about
from ..core.registry import default_executor, host_name
from ..core.result import ATTEMPT_COLUMNS, Result
from ..core.settings import Settings
from ..core.wording import counted
from ..solvers import read_settings
from ..solvers.auto.choose import solve as solve_system
from ..solvers.krylov.gmres import RESTART
from ..solvers.least_squares.result import LeastSquaresResult
from ..solvers.preconditioners import BY_NAME
from ..solvers.preconditioners.names import DIRECT, parsed
from ..solvers.registry import LEAST_SQUARES, SOLVERS
from . import INTERRUPTED
from .advice import warn_ranks_alone
from .console import NOT_CONVERGED, SOLVED, console
from .report import page as report_page
from .report import write as write_report

DTYPES = ("float32", "float64", "complex64", "complex128")
WRITABLE = (".mtx", ".mtx.gz", ".mtx.bz2", ".mtx.xz", ".npy", ".txt", ".dat", ".csv")


METHODS = ("auto", "direct", *SOLVERS, *LEAST_SQUARES)
NONE = "none"
PRECONDITIONERS = ("auto", NONE, DIRECT, *BY_NAME)
EXECUTORS = ("reference", "omp", "cuda", "hip", "dpcpp", "mpi")

#: The file name that means standard input.
STANDARD_INPUT = "-"


def completion(names: tuple[str, ...]) -> Callable[[str], list[str]]:
    """Return a function that completes the beginning of a name."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete.lower())]

    return complete


# The command's parameters with their help texts.
MatrixFile = Annotated[
    Path,
    typer.Argument(
        metavar="A",
        help="The file of the matrix: .mtx, .smtx, .hb or .rb (.gz, .bz2, .xz too), .npz, .npy, "
        ".mat or .txt; - reads .mtx from standard input.",
    ),
]
RightHandSideFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="B",
        help="The file of the right-hand side, such as .mtx or .txt with one number on each line; "
        "without it, b is A @ ones.",
    ),
]
Method = Annotated[
    str,
    typer.Option(
        help=f"The solver: auto (chosen for the matrix), {', '.join(METHODS[1:])}; with options as "
        "in idr:s=8.",
        autocompletion=completion(METHODS),
    ),
]
Precond = Annotated[
    str,
    typer.Option(
        help=f"The preconditioner, M= in Python: {', '.join(PRECONDITIONERS)}; with options "
        "as in amg:theta=0.25.",
        autocompletion=completion(PRECONDITIONERS),
    ),
]
Place = Annotated[
    str | None,
    typer.Option(
        "--executor",
        "--on",
        help="Where to compute; by default the cores of this machine. One of reference, omp, "
        "omp:4 (threads), cuda, ...; several devices: cuda:*, omp:2,omp:2, or mpi.",
        autocompletion=completion(EXECUTORS),
    ),
]
Rtol = Annotated[float, typer.Option(help="Relative tolerance on the true residual.")]
Atol = Annotated[float, typer.Option(help="Absolute tolerance on the true residual.")]
Maxiter = Annotated[
    int | None,
    typer.Option(help="The largest number of iterations; by default 10 times the unknowns."),
]
Restart = Annotated[
    int | None,
    typer.Option(
        help="Iterations between two restarts of gmres and its relatives; by default "
        f"{RESTART}, and no restart for a small system."
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        help="A JSON file with the solver and its options; replaces --method, --precond and "
        "the tolerances."
    ),
]
Dtype = Annotated[
    str | None,
    typer.Option(
        help=f"The numbers to compute with: {', '.join(DTYPES)}; by default as in the file."
    ),
]
Plot = Annotated[
    Path | None, typer.Option(help="Draw the residual norms into this file, such as c.png.")
]
Report = Annotated[
    Path | None,
    typer.Option(help="Write a page about the solve into this file, such as report.html."),
]
Out = Annotated[
    Path | None, typer.Option(help=f"Write the solution into this file: {', '.join(WRITABLE)}.")
]
ShowProgress = Annotated[
    bool | None, typer.Option(help="Show a progress bar; by default only on a terminal.")
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print no table, only the reason of a failure.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")]


def solve(
    matrix: MatrixFile,
    right_hand_side: RightHandSideFile = None,
    method: Method = "auto",
    precond: Precond = "auto",
    executor: Place = None,
    rtol: Rtol = 1e-5,
    atol: Atol = 0.0,
    maxiter: Maxiter = None,
    restart: Restart = None,
    config: Config = None,
    dtype: Dtype = None,
    plot: Plot = None,
    report: Report = None,
    out: Out = None,
    progress: ShowProgress = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Solve A x = b for the matrix in a file.

    Exit status: 0 solved, 1 not converged, 2 bad input, 130 interrupted.
    """
    _check_targets(plot, out, report)
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
    place = executor or host_name()
    group = group_named(place)
    first = getattr(group, "rank", 0) == 0  # with MPI, only the first rank prints
    quiet = quiet or not first
    if group is None and not quiet:
        warn_ranks_alone()
    with nullcontext() if group else default_executor(place):
        A, b = read_system(matrix, right_hand_side, dtype, group)
        shown = sys.stderr.isatty() and not quiet if progress is None else progress
        interrupted = False
        try:
            if settings is None:
                result = _solved(A, b, options, shown)
            else:
                solved = settings.on(A).solve(b, progress=shown)
                result = replace(solved, notes=[f"{settings}, from {config}"])
        except SolveInterrupted as interruption:
            result, interrupted = interruption.result, True  # type: ignore[assignment]
        known = None if right_hand_side else np.ones(A.shape[1])
        name = "standard input" if str(matrix) == STANDARD_INPUT else matrix.name
        entries = int(A.nnz)  # all ranks take part, because each has its own entries
        solved = _Solved(name, A, b, result, known, entries)
        if first:
            solved.tell(json, quiet)
            solved.write(report, out, plot, None if quiet else sys.stderr if json else sys.stdout)
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(SOLVED if result.converged else NOT_CONVERGED)


@dataclass(frozen=True)
class _Solved:
    """A system with its result, its solution if known, and its number of entries."""

    name: str
    A: Any
    b: Any
    result: Result
    known: Any
    entries: int

    def tell(self, json: bool, quiet: bool) -> None:
        """Print the result, as JSON or as tables."""
        if json:
            print(result_json(self))
        if quiet and not (json or self.result.converged):
            print(f"wollemi: {self.name}: {self.result.reason}", file=sys.stderr)
        if json or quiet:
            return
        console().print(result_table(self))
        if len(self.result.attempts) > 1:
            console().print(attempts_table(self.result))

    def write(
        self, report: Path | None, out: Path | None, plot: Path | None, stream: TextIO | None
    ) -> None:
        """Write the requested files, with a line about each of them."""
        for line in self._written(report, out, plot):
            if stream is not None:
                print(line, file=stream)

    def _written(self, report: Path | None, out: Path | None, plot: Path | None) -> Iterator[str]:
        """Write the files, and yield a line about each of them."""
        if report is not None:
            page = report_page(self.name, result_lines(self), self.A, self.result, _command())
            write_report(report, page)
            yield f"wrote {report}: the page about this solve"
        if out is not None:
            io.write(out, self.result.x)
            what = "the solution" if self.result.converged else "the best x, which did not converge"
            yield f"wrote {out}: {what}"
        if plot is not None:
            self.result.plot(plot)
            yield f"wrote {plot}: the residual norms"


def _solved(A: Any, b: Any, options: dict[str, Any], progress: bool) -> Result:
    """Solve the system; report wrong option types of a preconditioner as user errors."""
    if A.shape[0] != A.shape[1]:
        options = {name: value for name, value in options.items() if name != "restart" or value}
        progress = False  # least squares solvers do not report progress
    settings = parsed(options["M"]) if options["M"] != "auto" else None
    texts = [] if settings is None else [o for o in settings.options.values() if type(o) is str]
    if not texts:
        return solve_system(A, b, **options, progress=progress)
    try:
        return solve_system(A, b, **options, progress=progress)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"--precond {options['M']}: {error}") from None


def _read_config(config: Path, options: dict[str, Any]) -> Settings:
    """Return the settings from a file, unless an option overrides them."""
    defaults = inspect.signature(solve_system).parameters
    given = [name for name, value in options.items() if value != defaults[name].default]
    if given:
        names = ", ".join("--precond" if name == "M" else f"--{name}" for name in given)
        raise InvalidArgument(
            f"--config has all options of the solver: write {names} into {config}"
        )
    return read_settings(config)


def _command() -> str:
    """Return the command line as the user typed it."""
    return shlex.join(["wollemi", *sys.argv[1:]])


def _check_targets(plot: Path | None, out: Path | None, report: Path | None) -> None:
    """Check before the solve that the output files can be written."""
    for target in (plot, out, report):
        if target is not None and not target.parent.is_dir():
            raise InvalidArgument(f"{target}: there is no folder {target.parent}")
    if out is not None and not out.name.endswith(WRITABLE):
        raise InvalidArgument(f"{out}: a vector is written as one of {', '.join(WRITABLE)}")
    if report is not None and report.suffix.lower() not in (".html", ".htm"):
        raise InvalidArgument(f"{report}: a report is written as .html")
    if plot is not None or report is not None:
        try:
            from matplotlib.backend_bases import FigureCanvasBase
        except ImportError:
            raise InvalidArgument('plots need matplotlib: pip install "wollemi[plot]"') from None
        kinds = FigureCanvasBase.get_supported_filetypes()
        if plot is not None and plot.suffix[1:].lower() not in kinds:
            raise InvalidArgument(f"{plot}: a picture is written as one of {', '.join(kinds)}")


def group_named(name: str) -> Any:
    """Return the group with the given name, or None for a single executor."""
    if name == "mpi":
        return world()
    if name.endswith(":*"):
        return Group(name)
    return Group(name.split(",")) if "," in name else None


def _not_finite(A: Any) -> int:
    """Return the number of entries that are NaN or Inf."""
    members = getattr(A, "members", (A,))
    count = sum(
        int(np.count_nonzero(~np.isfinite(part.executor.to_host(part.data)))) for part in members
    )
    links = None if len(members) > 1 else members[0].executor.links
    return count if links is None else sum(links.all(count))


def read_system(
    matrix: Path, right_hand_side: Path | None, dtype: str | None, group: Any = None
) -> tuple[Any, Any]:
    """Read A and b; without a file for b, b is the product of A with ones."""
    A = read_matrix(matrix, group)
    rows, columns = A.shape
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
            f"{right_hand_side}: b has {counted(b.shape[0], 'row')} and {matrix.name} has {rows}"
        )
    return A, b if dtype is None else b.astype(np.result_type(b.dtype, dtype), copy=False)


def read_matrix(matrix: Path, group: Any = None) -> Any:
    """Return the matrix in a file, or from standard input if the name is ``-``."""
    if str(matrix) == STANDARD_INPUT:
        return read_standard_input()
    return io.read(matrix, executor=group)


def read_standard_input() -> Any:
    """Return the matrix on standard input, in the Matrix Market format.

    Raises
    ------
    InvalidArgument
        If the input is empty or not in this format.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "standard-input.mtx"
        path.write_bytes(sys.stdin.buffer.read())
        return io.read(path)


def result_lines(solved: _Solved) -> list[tuple[str, str]]:
    """Return the result of a solve as pairs of a name and a text; the last pair is the verdict."""
    A, result, known, entries = solved.A, solved.result, solved.known, solved.entries
    rows, columns = A.shape
    kind = type(getattr(A, "members", (A,))[0]).__name__
    lines = [
        ("matrix", f"{solved.name}: {kind} {rows} x {columns}, {entries} entries, {A.dtype}"),
        ("executor", _place(solved)),
        ("method", result.method),
        *_reasons(result),
        ("iterations", _iterations(result)),
    ]
    norms = np.atleast_1d(result.residual_norm)
    scale = np.atleast_1d(np.linalg.norm(solved.b, axis=0))
    relative = np.divide(norms, scale, out=np.zeros_like(norms), where=scale > 0)
    worst = int(np.argmax(np.where(np.isnan(relative), np.inf, relative))) if norms.size else 0
    if norms.size > 1:
        lines.append(("right-hand sides", f"{norms.size}, the worst one below"))
    if norms.size:
        threshold, size = np.atleast_1d(result.threshold)[worst], scale[worst]
        about = [f"relative {relative[worst]:.2g}"] if size > 0 else []
        if isinstance(result, LeastSquaresResult):  # the threshold refers to A^H r
            if result.rules[worst] == 1:
                about.append("the limit is rtol (|b| + |A| |x|)")
        else:
            about.append(f"asked {threshold / size if size > 0 else threshold:.2g}")
        told = f" ({', '.join(about)})" if about else ""
        lines.append(("true residual", f"{norms[worst]:.3e}{told}"))
    if known is not None and rows:
        error = np.max(np.abs(result.x - known))
        lines.append(("error of x", f"{error:.3e} in the worst element (the exact x is all ones)"))
        limits = norms if isinstance(result, LeastSquaresResult) else result.threshold
        tolerance = float(np.max(np.atleast_1d(limits) / np.where(scale > 0, scale, 1)))
        if result.converged and error > np.sqrt(max(tolerance, 1e-16)):
            remedy = "use --rtol 1e-12" if tolerance > 1e-12 else "use --method direct"
            if result.solver == "Direct":
                remedy = "scale its rows and columns"
            advice = f"a small residual and a large error: A is ill-conditioned; {remedy}"
            if columns > rows:
                advice = "A has more columns than rows: x is the shortest of many solutions"
            elif any(is_about(note, Topic.SHORTEST) for note in result.notes):
                advice = "A is singular: x is the shortest of all solutions, all ones another one"
            lines.append(("", advice))
    setup = f" (set-up {result.setup_seconds:.4g} s)" if result.attempts else ""
    return [*lines, ("time", f"{result.seconds:.4g} s{setup}"), ("verdict", result.reason)]


def _preconditioner(result: Result) -> str | None:
    """Return the preconditioner of the final attempt, if it is known."""
    return result.M if result.M is None else result.M or NONE


def _reasons(result: Result) -> list[tuple[str, str]]:
    """Return the notes as lines without a name."""
    return [("", note) for note in result.notes]


def _iterations(result: Result) -> str:
    """Return the iterations of the final attempt, and the total if it is larger."""
    count, total = result.iterations, result.total_iterations
    if total == count:
        return str(count)
    return f"{count} ({total} in all {len(result.attempts)} attempts)"


def _place(solved: _Solved) -> str:
    """Return the executor, with the name of its device and the number of ranks."""
    A, told = solved.A, solved.result.executor
    if device := A.executor.properties.get("name", ""):
        told += f" ({device})"
    links = getattr(A.executor, "links", None)  # for a rank of a group
    return told if links is None else f"{told} on each of {links.size} ranks"


def result_json(solved: _Solved) -> str:
    """Return the result of a solve as a JSON object."""
    A, result = solved.A, solved.result
    norms = np.atleast_1d(result.residual_norm)
    found: dict[str, Any] = {
        "matrix": solved.name,
        "rows": A.shape[0],
        "columns": A.shape[1],
        "entries": solved.entries,
        "dtype": str(A.dtype),
        "executor": result.executor,
        "converged": result.converged,
        "reason": result.reason,
        "method": result.solver,
        "M": _preconditioner(result),
        "iterations": result.iterations,
        "total_iterations": result.total_iterations,
        "seconds": result.seconds,
        "setup_seconds": result.setup_seconds,
        "residual_norm": [_number(value) for value in norms],
        "threshold": [_number(value) for value in np.atleast_1d(result.threshold)],
        "norm_of_b": [_number(value) for value in np.atleast_1d(np.linalg.norm(solved.b, axis=0))],
        "notes": result.notes,
        "attempts": [asdict(attempt) | {"M": attempt.M or NONE} for attempt in result.attempts],
    }
    if solved.known is not None and A.shape[0]:
        found["error"] = _number(np.max(np.abs(result.x - solved.known)))
    return dumps(found, indent=2)


def _number(value: Any) -> float | None:
    """Return a finite number, or None, because JSON has no NaN and infinity."""
    return float(value) if np.isfinite(value) else None


def attempts_table(result: Result) -> Table:
    """Return the attempts of a solve as a printable table."""
    table = Table(box=box.SIMPLE, title="attempts", title_justify="left", pad_edge=False)
    for column in ATTEMPT_COLUMNS:
        table.add_column(column, overflow="fold")
    for row in result.rows_of_attempts():
        table.add_row(*map(escape, row))
    return table


def result_table(solved: _Solved) -> Table:
    """Return the result of a solve as a printable table."""
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    *lines, (last, verdict) = result_lines(solved)
    for label, text in lines:
        table.add_row(label, escape(text) if label else f"[dim]{escape(text)}[/]")
    colour = "green" if solved.result.converged else "red"
    table.add_row(last, f"[{colour}]{escape(verdict)}[/]")
    return table
