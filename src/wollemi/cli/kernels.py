"""``wollemi kernels``: show which operations run on which backends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Annotated

import typer
from rich import box
from rich.console import RenderableType
from rich.markdown import Markdown
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..core.algorithm import PRODUCTS, Algorithm, AlgorithmTable
from ..core.batch.support import ALONE, NOTE, WAYS
from ..core.errors import InvalidArgument
from ..core.hooks import is_of_wollemi
from ..core.operation import OPERATIONS, KernelTable, Operation
from ..core.registry import algorithm_tables, backend_notes, kernel_tables
from ..core.unsupported import reason_of
from ..solvers.registry import discover
from .console import console

#: On terminals with fewer columns, the explanation does not fit next to the marks.
NARROW = 90

YES, NO, UNKNOWN = "✓", "·", "?"


#: Printed below the table of groups.
FURTHER = "wollemi kernels NAME shows the operations with NAME in their names, --all every one."


def kernels(
    name: Annotated[
        str | None, typer.Argument(help="Show the operations with this word in their names.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Show every operation, with its description.")
    ] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the page for the documentation.")
    ] = False,
    algorithms: Annotated[
        bool, typer.Option("--algorithms", help="Show the values of kernel= for each product.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Show the support matrix: which backends have kernels for which operations.

    Without a name, the table has one line per group of operations.
    """
    if algorithms:
        page = algorithms_page(algorithm_tables())
        if markdown:
            print(page, end="")
        else:
            console().print(Markdown(page))
        return
    tables = kernel_tables()
    if markdown:
        print(markdown_page(tables), end="")
        return
    out = console()
    shown = _operations(name)
    if not shown:
        raise InvalidArgument(f"no operation has {name!r} in its name; try a part of it")
    if as_json:
        print(json.dumps(_facts(tables, shown), indent=2))
        return
    if name is None and not every:
        out.print(_groups(tables, shown))
        out.print(FURTHER, markup=False)
        return
    for part in [_table(tables, shown)] if out.width >= NARROW else _paragraphs(tables, shown):
        out.print(part)
    if name is not None:
        for reason, where in _reasons(tables, shown).items():
            out.print(f"{', '.join(where)}: {reason}", markup=False)
    out.print(_legend(tables), markup=False)
    for note in backend_notes().values():
        out.print(note, markup=False)


def _facts(
    tables: dict[str, KernelTable | None], operations: list[Operation]
) -> list[dict[str, str | dict[str, bool | None]]]:
    """Return the support matrix as JSON-compatible values; None for unloaded backends."""
    return [
        {
            "operation": operation.name,
            "backends": {
                name: None if table is None else table.has(operation)
                for name, table in tables.items()
            },
            "description": operation.summary,
        }
        for operation in operations
    ]


def _groups(tables: dict[str, KernelTable | None], operations: list[Operation]) -> Table:
    """Return a table of the groups, with the number of operations that each backend supports."""
    shown = Table(box=box.SIMPLE_HEAD)
    shown.add_column("group", overflow="fold")
    for name in ("operations", *tables):
        shown.add_column(name, justify="right", overflow="fold")
    for group, members in groupby(operations, lambda operation: operation.name.partition(".")[0]):
        part = list(members)
        counts = [
            UNKNOWN if table is None else str(sum(map(table.has, part)))
            for table in tables.values()
        ]
        shown.add_row(group, str(len(part)), *counts)
    return shown


def _table(tables: dict[str, KernelTable | None], operations: list[Operation]) -> Table:
    shown = Table(box=box.SIMPLE_HEAD)
    shown.add_column("operation", no_wrap=True)
    for name in tables:
        shown.add_column(name, justify="center", no_wrap=True)
    shown.add_column("description", overflow="fold")
    for operation in operations:
        shown.add_row(operation.name, *_marks(operation, tables), operation.summary)
    return shown


def _paragraphs(
    tables: dict[str, KernelTable | None], operations: list[Operation]
) -> Iterator[RenderableType]:
    """Yield the support matrix for a narrow terminal, without the explanation beside it."""
    for operation in operations:
        marks = zip(tables, _marks(operation, tables), strict=True)
        yield Text(operation.name, "bold").append(
            "".join(f"  {name}\u00a0{mark}" for name, mark in marks), "not bold"
        )
        yield Padding(Text(operation.summary, "dim"), (0, 0, 0, 4))


def _operations(word: str | None = None) -> list[Operation]:
    """Return all operations by name, or only the ones with ``word`` in their names."""
    discover()
    found = [o for o in OPERATIONS if word is None or word.lower() in o.name.lower()]
    return sorted(found, key=lambda operation: operation.name)


def _marks(operation: Operation, tables: dict[str, KernelTable | None]) -> list[str]:
    return [
        UNKNOWN if table is None else YES if table.has(operation) else NO
        for table in tables.values()
    ]


def _is_of_wollemi(operation: Operation) -> bool:
    """Return whether wollemi declares an operation, and not its user."""
    return operation.step is None or is_of_wollemi(operation.step.function)


def _reasons(
    tables: dict[str, KernelTable | None], operations: list[Operation]
) -> dict[str, list[str]]:
    """Return the unsupported operations and their backends, grouped by reason."""
    found: dict[str, list[str]] = {}
    for operation in operations:
        without: dict[str, list[str]] = {}
        for backend in tables:
            reason = reason_of(backend, operation.name)
            if reason:
                without.setdefault(reason, []).append(backend)
        for reason, backends in without.items():
            named = f"`{operation.name}` ({', '.join(backends)})"
            found.setdefault(reason, []).append(named)
    return found


def _legend(tables: dict[str, KernelTable | None]) -> str:
    legend = f"{YES} has a kernel   {NO} has none"
    missing = [name for name, table in tables.items() if table is None]
    if missing:
        legend += f"   {UNKNOWN} could not be loaded here: {', '.join(missing)} (see wollemi info)"
    return legend


def markdown_page(tables: dict[str, KernelTable | None]) -> str:
    """Return the support matrix as a page of the website."""
    lines = [
        "# Support matrix",
        "",
        "Which operation has a kernel on which backend.",
        "`wollemi kernels --markdown` makes this page.",
        "",
        f"{_legend(tables)}",
        "",
        "*Unified* operations have one text for all compiled backends: traced from steps, or in "
        "`backends/unified/`.",
        *(f"\n{note}" for name, note in backend_notes().items() if name in tables),
        "",
        f"| operation | {' | '.join(tables)} | unified | description |",
        f"| --- |{' :-: |' * (len(tables) + 1)} --- |",
    ]
    for operation in filter(_is_of_wollemi, _operations()):
        marks = [*_marks(operation, tables), YES if operation.is_map else ""]
        summary = operation.summary.replace("|", "\\|")
        lines.append(f"| `{operation.name}` | {' | '.join(marks)} | {summary} |")
    lines += [
        "",
        "## Operations without a kernel",
        "",
        "Each has a reason. A backend has all other operations; a test checks it.",
        "",
        "| operations and backends | reason |",
        "| --- | --- |",
    ]
    for reason, where in _reasons(tables, list(filter(_is_of_wollemi, _operations()))).items():
        lines.append(f"| {', '.join(where)} | {reason} |")
    lines += ["", *_batches(list(tables))]
    return "\n".join(lines) + "\n"


def _batches(backends: list[str]) -> list[str]:
    """Return the section about batches of systems."""
    lines = [
        "## Batches of systems",
        "",
        f"How systems are solved. {NOTE}",
        "",
        f"| task | {' | '.join(backends)} |",
        f"| --- |{' --- |' * len(backends)}",
    ]
    for task, ways in WAYS.items():
        lines.append(f"| {task} | {' | '.join(ways.get(name, ALONE) for name in backends)} |")
    return lines


def algorithms_page(tables: dict[str, AlgorithmTable]) -> str:
    """Return ``docs/algorithms.md``."""
    lines = [
        "# Algorithms",
        "",
        "The named ways to compute each product, in the order in which the rule asks them: it",
        "takes the first that can run for the matrix and says why it should.",
        "`A.plan_for(product, columns).reason` is its reason; `kernel=` (for spmv",
        "`A.with_kernel`) asks for one by name. The rule never selects some algorithms, which",
        "exist for measurements. `wollemi kernels --algorithms --markdown` makes this page; a",
        "test checks that it is current. In the tables of spmv, a mark under *stored* means",
        "that the algorithm multiplies values stored in a lower precision: `A.stored(dtype)`. A",
        "mark under *alone* means that the plan holds the entries, so that the matrix may give",
        "up its arrays:",
        "`A.with_kernel(name).plan_only()`.",
    ]
    for product in PRODUCTS:
        of_vectors = product == "spmv"
        lines += [
            "",
            f"## {product}",
            "",
            "| `kernel=` | description | where | published | by the rule |"
            + " stored | alone |" * of_vectors,
            "| --- | --- | --- | --- | :-: |" + " :-: | :-: |" * of_vectors,
        ]
        for name, (algorithm, backends) in _by_name(product, tables).items():
            chosen = YES if algorithm.by_rule else ""
            where = ", ".join(backends)
            line = f"| `{name}` | {algorithm.summary()} | {where} | {algorithm.source} | {chosen} |"
            if of_vectors:
                line += "".join(
                    f" {YES if mark else ''} |" for mark in (algorithm.converts, algorithm.alone)
                )
            lines.append(line)
    return "\n".join(lines) + "\n"


def _by_name(
    product: str, tables: dict[str, AlgorithmTable]
) -> dict[str, tuple[Algorithm, list[str]]]:
    """Return a product's algorithms, with the backends that have an algorithm of each name."""
    found: dict[str, tuple[Algorithm, list[str]]] = {}
    for backend, table in tables.items():
        for algorithm in table.of(product):
            found.setdefault(algorithm.name, (algorithm, []))[1].append(backend)
    return found
