"""The speed that the README states: a table and a picture of five bars, from the records.

``python -m website.speed`` writes ``docs/img/speed.svg`` and prints the table. A test compares both
with ``benchmarks/results``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from .places import ROOT

RESULTS = ROOT / "benchmarks/results"
PICTURE = ROOT / "docs/img/speed.svg"

#: The records of the table.
CPU, CPU_GMRES, GPU = "suites-omp-2-threads.jsonl", "omp-2-threads.jsonl", "suites-h200.jsonl"


@dataclass(frozen=True)
class Pair:
    """A time of wollemi and that of another library in the same record.

    Attributes
    ----------
    ours, theirs : float
        Milliseconds.
    library : str
        The name of the other library.
    """

    ours: float
    theirs: float
    library: str

    @property
    def ratio(self) -> float:
        """How many times the time of wollemi the other library takes."""
        return self.theirs / self.ours


@dataclass(frozen=True)
class Task:
    """A row of the table.

    Attributes
    ----------
    title : str
        The task in plain words.
    cpu, gpu : Pair
        The times on two cores and on a GPU.
    """

    title: str
    cpu: Pair
    gpu: Pair


@cache
def _records(file: str) -> tuple[dict[str, object], ...]:
    lines = (RESULTS / file).read_text().splitlines()
    return tuple(json.loads(line) for line in lines)


def pair(file: str, benchmark: str, case: str, contender: str, library: str) -> Pair:
    """Return the last recorded times of wollemi and of a library.

    Parameters
    ----------
    file : str
        A file of ``benchmarks/results``.
    benchmark, case, contender : str
        The fields of its records.
    library : str
        The name of the other library as its users write it.
    """
    times = {}
    for record in _records(file):
        if (record.get("benchmark"), record.get("case")) == (benchmark, case) and record["seconds"]:
            times[record["contender"]] = 1e3 * float(str(record["seconds"]))
    return Pair(times["wollemi"], times[contender], library)


def named(device: Mapping[str, object]) -> str:
    """Return a device of a record in words.

    Examples
    --------
    >>> from website.speed import named
    >>> named({"name": "Intel(R) Xeon(R) Processor", "threads": 2})
    'two cores of an Intel Xeon'
    """
    name = re.sub(r"\((R|TM)\)| Processor$| 80GB HBM3$", "", str(device["name"]))
    if "threads" not in device:
        return f"one {name}"
    threads = device["threads"]
    article = "an" if name[0] in "AEIOU" else "a"
    return f"{'two' if threads == 2 else threads} cores of {article} {name}"


def machines() -> str:
    """Return the devices of the table in words; raises ValueError if there are more than two."""
    found = {
        named(line["device"])  # type: ignore[arg-type]
        for file in (CPU, CPU_GMRES, GPU)
        for line in _records(file)
        if line["kind"] == "environment"
    }
    cpu, gpu = sorted(found, key=lambda name: name.startswith("one"))
    return f"{cpu}, or {gpu}"


def multigrid_ratio() -> float:
    """Return the time of PyAMG divided by that of ``Amg``: diffusion on 100^3 points."""
    text = (RESULTS / "multigrid-omp-2-threads.md").read_text()
    found = re.search(r"^\| diffusion 100\^3 \|.*\| ([\d.]+) \|$", text, re.MULTILINE)
    assert found is not None
    return float(found[1])


def tasks() -> tuple[Task, ...]:
    """Return the rows of the table."""
    cpu, gpu, grid = CPU, GPU, "stencil7:100"
    graph = "rmat:16,1000000"
    return (
        Task(
            "matrix times vector, 3-D Poisson",
            pair(cpu, "spmv", grid, "scipy", "SciPy"),
            pair(gpu, "spmv", grid, "cupy", "CuPy"),
        ),
        Task(
            "one iteration of CG, 3-D Poisson",
            pair(cpu, "solve/cg", grid, "scipy", "SciPy"),
            pair(gpu, "solve/cg", grid, "cupy", "CuPy"),
        ),
        Task(
            "one iteration of GMRES(30), 3-D Poisson",
            pair(CPU_GMRES, "solve/gmres", grid, "scipy", "SciPy"),
            pair(gpu, "solve/gmres", grid, "cupy", "CuPy"),
        ),
        Task(
            "sparse attention with 128 features, a graph",
            pair(cpu, "fusedmm/128", graph, "torch", "PyTorch"),
            pair(gpu, "fusedmm/128", graph, "torch", "PyTorch"),
        ),
    )


def _cell(one: Pair) -> str:
    ours, theirs = (f"{value:.3g}" for value in (one.ours, one.theirs))
    return f"{ours} | {theirs} ({one.library}) | {one.ratio:.1f}"


def table() -> str:
    """Return the table of the README."""
    lines = [
        "| milliseconds | 2 CPU cores | other library | ratio | H200 | other library | ratio |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [f"| {task.title} | {_cell(task.cpu)} | {_cell(task.gpu)} |" for task in tasks()]
    return "\n".join(lines)


def bars() -> list[tuple[str, float]]:
    """Return the label and the length of each bar."""
    product, cg, _, attention = tasks()
    return [
        ("CPU, matrix times vector: SciPy", product.cpu.ratio),
        ("CPU, iteration of CG: SciPy", cg.cpu.ratio),
        ("CPU, multigrid set-up and solve: PyAMG", multigrid_ratio()),
        ("GPU, iteration of CG: CuPy", cg.gpu.ratio),
        ("GPU, sparse attention: PyTorch", attention.gpu.ratio),
    ]


def picture() -> str:
    """Return the five bars as SVG."""
    return drawn(bars(), "Time of the other library / time of wollemi (longer is better)")


def drawn(rows: list[tuple[str, float]], title: str, unit: int = 90) -> str:
    """Return bars as SVG.

    Parameters
    ----------
    rows : list of (str, float)
        The label and the ratio of each bar. Labels begin with CPU or GPU, which have colours.
    title : str
        The heading.
    unit : int
        The length of a ratio of 1.
    """
    left, step = 330, 44
    width, height = 760, 90 + step * len(rows)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="15" role="img">',
        "<title>The time of other libraries divided by the time of wollemi</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="16" y="28" font-size="17" font-weight="bold" fill="#1b1f1d">{title}</text>',
    ]
    for i, (label, ratio) in enumerate(rows):
        y = 48 + step * i
        colour = "#0f766e" if label.startswith("CPU") else "#7c3aed"
        lines += [
            f'<text x="{left - 10}" y="{y + 20}" text-anchor="end" fill="#1b1f1d">{label}</text>',
            f'<rect x="{left}" y="{y}" width="{unit * ratio:.0f}" height="28" rx="3" '
            f'fill="{colour}"/>',
            f'<text x="{left + unit * ratio + 8:.0f}" y="{y + 20}" fill="#1b1f1d">'
            f"{ratio:.1f}</text>",
        ]
    bottom = 48 + step * len(rows)
    lines += [
        f'<line x1="{left + unit}" y1="42" x2="{left + unit}" y2="{bottom - 8}" stroke="#1b1f1d" '
        'stroke-dasharray="4 4"/>',
        f'<text x="{left + unit}" y="{bottom + 10}" text-anchor="middle" fill="#1b1f1d">'
        "1: as fast as wollemi</text>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the picture and print the table."""
    PICTURE.write_text(picture())
    print(table())


if __name__ == "__main__":
    main()
