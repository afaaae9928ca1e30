"""``wollemi info``: show the available and the missing parts."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from ..core import cache
from ..core.errors import InvalidArgument
from ..core.registry import available_executors, backend_notes, has_native_modules
from .console import console
from .matrix_info import facts_of_file, matrix_table

if TYPE_CHECKING:
    from .links import LinkTimes

#: Optional packages: the distribution, its purpose, and the extra that installs it.
OPTIONAL = (
    (("matplotlib",), "plots", "wollemi[plot]"),
    (("cupy-cuda13x", "cupy-cuda12x", "cupy"), "the cuda executor", "wollemi[cuda]"),
    (("cupy-rocm-7-0",), "the hip executor", "wollemi[hip]"),
    (("dpctl",), "the dpcpp executor", "wollemi[dpcpp]"),
    (("torch",), "tensors in and out", "wollemi[torch]"),
    (("jax",), "arrays of JAX in and out", "wollemi[jax]"),
    (("mpi4py",), "groups of processes, with an MPI such as the wheel mpich", "wollemi[mpi]"),
    (("pymetis",), "partitions with few entries between members", "wollemi[metis]"),
    (("wollemi-bench",), "wollemi bench, in a checkout", "./benchmarks"),
    (("sparse_dot_mkl",), "MKL as a peer in benchmarks", "sparse_dot_mkl"),
    (("pyamg",), "PyAMG as a peer in benchmarks", "pyamg"),
)


#: Message for installations without compiled modules: a pure wheel, or a checkout before its build.
NO_NATIVE_MODULES = (
    "This installation has no native modules: reference (NumPy, slow) is the default executor. "
    "For omp run `pip install .` in a checkout with a C++17 compiler, or install a wheel for this "
    "platform; docs/install.md has the packages of the compiler."
)

#: Packages that are always installed.
REQUIRED = ("wollemi", "numpy", "scipy")


def info(
    matrix: Annotated[
        Path | None,
        typer.Argument(
            metavar="A",
            help="The file of a matrix, to show its size, entries, symmetry and the method that "
            "solve would try first; - reads .mtx from standard input.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    links: Annotated[
        bool, typer.Option("--links", help="Time sums over groups of threads and of GPUs.")
    ] = False,
) -> None:
    """Show executors, devices and versions, and how to install missing parts; or a matrix."""
    if matrix is not None:
        if links:
            raise InvalidArgument("--links times this machine: leave the file of the matrix out")
        _show_matrix(matrix, as_json)
        return
    times = _link_times() if links else None
    if times == []:  # only the first rank prints
        return
    if as_json:
        told = facts() if times is None else {**facts(), "links": [asdict(one) for one in times]}
        print(json.dumps(told, indent=2))
        return
    out = console()
    if times is not None:
        out.print(_links(times))
        for one in times:
            if one.reason:
                out.print(escape(f"{one.members}: {one.links}, because {one.reason}"))
        return
    out.print(_executors())
    if not has_native_modules():
        out.print(f"{NO_NATIVE_MODULES}\n")
    here = {line.name.partition(":")[0] for line in available_executors() if line.available}
    for name, note in backend_notes().items():
        if name in here:  # notes about a backend that cannot run here are useless
            out.print(f"{escape(note)}\n")
    out.print(_versions())


def _show_matrix(matrix: Path, as_json: bool) -> None:
    told = facts_of_file(matrix)
    if as_json:
        print(json.dumps(told, indent=2))
    else:
        console().print(matrix_table(told))


def facts() -> dict[str, Any]:
    """Return the content of ``wollemi info`` as JSON-compatible values.

    Returns
    -------
    dict
        ``executors``: a list of ``{"name", "available", "device", "memory", "reason"}``, with
        memory in bytes; ``native``: whether compiled modules are installed; ``notes`` by backend;
        ``versions`` of packages, None if a package is not installed; ``python``; ``platform``; and
        ``cache``: the folder of compiled code.
    """
    packages = {name: _installed(name) for name in REQUIRED}
    packages |= {names[0]: _installed(*names) for names, _, _ in OPTIONAL}
    return {
        "executors": [asdict(line) for line in available_executors()],
        "native": has_native_modules(),
        "notes": dict(backend_notes()),
        "versions": packages,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cache": str(cache.root()),
    }


def _link_times() -> list[LinkTimes]:
    from .links import link_times

    return link_times()


def _links(times: list[LinkTimes]) -> Table:
    table = Table(
        title="Sums over groups, in microseconds", title_justify="left", box=box.SIMPLE_HEAD
    )
    table.add_column("members", overflow="fold")
    table.add_column("links", no_wrap=True)
    table.add_column("1 number", justify="right", no_wrap=True)
    table.add_column("1,024 numbers", justify="right", no_wrap=True)
    for one in times:
        table.add_row(one.members, one.links, f"{one.one:.1f}", f"{one.many:.1f}")
    return table


def _executors() -> Table:
    table = Table(title="Executors", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("executor", no_wrap=True)
    table.add_column("device, or why there is none", overflow="fold")
    table.add_column("memory", justify="right", no_wrap=True)
    for line in available_executors():
        memory = f"{line.memory / 2**30:.1f} GiB" if line.memory else ""
        name = line.name if line.available else f"[dim]{line.name}[/]"
        table.add_row(name, escape(line.device if line.available else line.reason), memory)
    return table


def _installed(*names: str) -> str | None:
    for name in names:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return None


def _versions() -> Table:
    table = Table(title="Versions", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("package", no_wrap=True)
    table.add_column("version, or how to get it", overflow="fold")
    table.add_column("for", overflow="fold")
    table.add_row("python", platform.python_version(), "")
    table.add_row("platform", platform.platform(), "")
    for name in REQUIRED:
        table.add_row(name, _installed(name) or "", "")
    for names, purpose, requirement in OPTIONAL:
        found = _installed(*names)
        missing = f'[dim]missing[/]: pip install "{escape(requirement)}"'
        table.add_row(names[0], found or missing, purpose)
    return table
