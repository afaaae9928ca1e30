"""The page "How fast is it?": whole solves by wollemi and by other libraries, from the records.

``python -m website.how_fast`` writes ``docs/how-fast.md`` and its picture. A test compares both
with ``benchmarks/results``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from . import products
from .places import ROOT
from .speed import RESULTS, drawn, named
from .wrap_prose import wrapped

PAGE = ROOT / "docs/how-fast.md"
PICTURE = ROOT / "docs/img/how-fast.svg"

#: The records, and the first words of their bars, which begin with GPU or CPU.
FILES = {
    "races-h200.jsonl": "GPU H200",
    "races-h100.jsonl": "GPU H100",
    "races-omp-2-threads.jsonl": "CPU",
}

#: Names of libraries as their users write them.
NAMES = {
    "warp": "Warp", "torch-sla": "torch-sla", "jax": "JAX", "cupy": "CuPy", "scipy": "SciPy",
    "pyamg": "PyAMG", "petsc": "PETSc", "petsc gamg": "PETSc GAMG", "hypre": "hypre",
    "pypardiso": "PARDISO",
}  # fmt: skip

#: Names of methods.
METHODS = {
    "cg-jacobi": "CG, Jacobi", "bicgstab-jacobi": "BiCGSTAB, Jacobi", "cg-amg": "CG, multigrid",
    "solve": "direct",
}  # fmt: skip


#: Unknowns of a large system: the host takes less time than the device.
LARGE = 50_000


@dataclass(frozen=True)
class Solve:
    """A whole solve by one library, set-up included."""

    library: str
    method: str
    milliseconds: float


@dataclass
class Race:
    """The solves of one system.

    Attributes
    ----------
    system : str
        Its name.
    rows : int
        Its unknowns.
    chosen : Solve or None
        By ``wl.solve``.
    named, others : list of Solve
        By methods of wollemi that were asked for by name, and by other libraries.
    """

    system: str
    rows: int
    chosen: Solve | None = None
    named: list[Solve] = field(default_factory=list)
    others: list[Solve] = field(default_factory=list)

    @property
    def fastest(self) -> Solve:
        """The fastest solve by another library, with any of its methods."""
        return min(self.others, key=lambda one: one.milliseconds)

    @property
    def ratio(self) -> float:
        """The time of the fastest other library divided by that of ``wl.solve``."""
        assert self.chosen is not None
        return self.fastest.milliseconds / self.chosen.milliseconds

    @property
    def same_method(self) -> tuple[Solve, Solve] | None:
        """Our Krylov method and the fastest other library with that method."""
        for one in self.named:
            same = [s for s in self.others if s.method == one.method]
            if one.method in ("cg-jacobi", "bicgstab-jacobi") and same:
                return one, min(same, key=lambda s: s.milliseconds)
        return None


def lines_of(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a file of records."""
    for line in file.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def groups_of_records(file: Path) -> list[list[dict[str, Any]]]:
    """Return the timed records of each system and method, of the run with the most libraries.

    Times that are compared come from one run, so that a change of the machine meets all libraries.
    Of runs with the same number of libraries the last one counts.
    """
    found: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for line in lines_of(file):
        if line["kind"] == "result" and line["seconds"]:
            runs = found.setdefault((line["case"], line["benchmark"]), {})
            runs.setdefault(line["run"], []).append(line)
    return [max(reversed(runs.values()), key=len) for runs in found.values()]


def races(file: Path) -> list[Race]:
    """Return the races of a file in which ``wl.solve`` and another library took part."""
    made: dict[str, Race] = {}
    for lines in groups_of_records(file):
        for line in lines:
            race = made.setdefault(line["case"], Race(line["case"], line["rows"]))
            method = line["benchmark"].partition("/")[2]
            solve = Solve(line["contender"], method, 1e3 * float(line["seconds"]))
            if not line["ours"]:
                race.others.append(solve)
            elif method == "solve":
                race.chosen = solve
            else:
                race.named.append(solve)
    return [race for race in made.values() if race.chosen is not None and race.others]


def environments(file: Path) -> list[dict[str, Any]]:
    """Return the environments of the runs with times that are shown, the earliest first."""
    runs = {records[0]["run"] for records in groups_of_records(file)}
    return [e for e in lines_of(file) if e["kind"] == "environment" and e["run"] in runs]


def device(file: Path) -> str:
    """Return the device of the runs of a file whose times are shown, in words.

    Raises
    ------
    ValueError
        If they ran on several.
    """
    found = {named(line["device"]) for line in environments(file)}
    if len(found) != 1:
        raise ValueError(f"{file} has runs on {sorted(found)}; keep those of one device")
    return found.pop()


def load(file: Path) -> str:
    """Return how many cores other programs used meanwhile, as a sentence; "" if it is not known."""
    cores = [
        line["other_cores"]
        for records in groups_of_records(file)
        for line in records
        if line.get("other_cores") is not None
    ]
    if not cores:
        return ""
    about = environments(file)[-1]
    low, middle, high = (float(q) for q in np.percentile(cores, (0, 50, 100)))
    spare = ", also the core that a library of one thread leaves" * ("threads" in about["device"])
    return (
        f"While a library was timed, other programs used {middle:.1f} of {about['cores']} cores "
        f"(median; {low:.1f} to {high:.1f}){spare}."
    )


def versions(file: Path) -> str:
    """Return the libraries of a file with their versions."""
    timed = {one["contender"] for records in groups_of_records(file) for one in records}
    found: dict[str, str] = {}
    for line in lines_of(file):
        if line["kind"] == "environment":
            found["wollemi"] = line["versions"]["wollemi"]
            for name, version in line["peers"].items():
                if name in timed and not version.startswith("absent"):
                    found[NAMES[name]] = version
    return ", ".join(f"{name} {version}" for name, version in found.items())


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:.3g}" if milliseconds < 1000 else f"{milliseconds:.0f}"


def table(file: Path) -> str:
    """Return the table of a file."""
    lines = [
        "| system | unknowns | `wl.solve`, ms | fastest other library, ms | ratio | same Krylov "
        "method, ms | other library, ms | ratio |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for race in races(file):
        assert race.chosen is not None
        other = race.fastest
        cells = [race.system, f"{race.rows:,}", _ms(race.chosen.milliseconds)]
        cells.append(f"{_ms(other.milliseconds)} ({NAMES[other.library]}: {METHODS[other.method]})")
        cells.append(f"{race.ratio:.2g}")
        pair = race.same_method
        if pair is None:
            cells += ["", "", ""]
        else:
            mine, theirs = pair
            cells.append(f"{_ms(mine.milliseconds)} ({METHODS[mine.method]})")
            cells.append(f"{_ms(theirs.milliseconds)} ({NAMES[theirs.library]})")
            cells.append(f"{theirs.milliseconds / mine.milliseconds:.2g}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def bars(least: int = 0) -> list[tuple[str, float]]:
    """Return the label and the length of each bar: the same Krylov method.

    ``least`` is the number of unknowns of the smallest system.
    """
    found = []
    for file, kind in FILES.items():
        for race in races(RESULTS / file):
            pair = race.same_method
            if pair is not None and race.rows >= least:
                ratio = pair[1].milliseconds / pair[0].milliseconds
                found.append((f"{kind}, {race.system}: {NAMES[pair[1].library]}", ratio))
    return found


def picture() -> str:
    """Return the bars as SVG."""
    title = "Whole solve by CG or BiCGSTAB: time of the fastest other library / time of wollemi"
    return drawn(bars(), title, unit=70)


def sentence() -> str:
    """Return the range of the ratios of large systems on each GPU, as the README states them."""
    found = []
    for file, kind in FILES.items():
        if kind.startswith("GPU"):
            ratios = [ratio for label, ratio in bars(LARGE) if label.startswith(f"{kind},")]
            others = {solve.library for race in races(RESULTS / file) for solve in race.others}
            *names, last = (name for library, name in NAMES.items() if library in others)
            found.append(
                f"{min(ratios):.1f} to {max(ratios):.1f} times as long as wollemi on "
                f"{device(RESULTS / file)} (of {', '.join(names)} and {last})"
            )
    return (
        f"A whole solve by CG or BiCGSTAB of {LARGE:,} unknowns or more takes the fastest other "
        f"library {', '.join(found)}"
    )


def slower() -> str:
    """Return the sentences that name the systems for which another library is faster."""
    found = [(race, race.rows >= LARGE) for file in FILES for race in races(RESULTS / file)]
    cases = {
        large: [
            f"{race.system} ({NAMES[race.fastest.library]}, {1 / race.ratio:.1f} times as fast)"
            for race, is_large in found
            if is_large == large and race.ratio < 1
        ]
        for large in (True, False)
    }
    said = []
    if cases[True]:
        said.append(f"Another library is faster for {_listed(cases[True])}.")
    if cases[False]:
        said.append(f"Of smaller systems it is faster for {_listed(cases[False])}.")
    return " ".join(said)


def _listed(words: list[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def page() -> str:
    """Return the page."""
    parts = [
        "# How fast is it?",
        "",
        "Whole solves, set-up included: from the matrix in compressed rows on the device to a "
        "solution with a true",
        "residual `|b - A x| / |b|` of at most 1e-6 (planes) or 1e-8 (all others). All libraries "
        "solve the same",
        "system on the same device in the same run. A ratio above 1 means that wollemi is faster; "
        "below 1, the",
        "other library is. [The records](../benchmarks/results) have iterations, residuals and "
        "spreads.",
        "",
        "![Bars: the time of the fastest other library with the same Krylov method divided by the "
        "time of wollemi](img/how-fast.svg)",
    ]
    for name in FILES:
        file = RESULTS / name
        parts += ["", f"## On {device(file)}", "", table(file), "", f"Versions: {versions(file)}."]
        parts += ["", load(file)] if load(file) else []
    parts += [
        "",
        slower(),
        "",
        "The real matrices (with names of files) are small: a new matrix and a new solver of "
        "wollemi take 2 to 7 ms",
        "of the host there, while JAX reuses a program that it has compiled before the clock "
        "starts.",
        "",
        "No other library with multigrid on a GPU could be installed; on the GPU the other "
        "libraries solve by Krylov methods.",
        "",
        products.section(),
        "",
        "## Your machine",
        "",
        "Measure your machine: `wollemi bench suite races --executor cuda`. "
        "[The harness](../benchmarks/README.md#races) says which libraries",
        "cannot be installed as packages. [Performance](performance.md) has the details of "
        "kernels. `python -m website.how_fast` makes this page.",
    ]
    return wrapped("\n".join(parts) + "\n")


def main() -> None:
    """Write the page and the picture."""
    PAGE.write_text(page(), encoding="utf-8")
    PICTURE.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
