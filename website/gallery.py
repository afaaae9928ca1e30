"""The gallery: a page for each program of ``examples/``, with its output and plots."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .menu import card
from .packages import description, packages
from .places import PAGES, ROOT, WORK, version

#: The programs, in reading order.
GROUPS = {
    "First steps": (
        "first_solve",
        "minimal_gpu",
        "watch_a_solve",
        "settings_file",
        "files",
        "choosing_a_solver",
        "demo",
    ),
    "Equations": ("poisson", "nine_point", "heat", "schroedinger", "batched_systems"),
    "Preconditioners": (
        "preconditioned",
        "choosing_a_preconditioner",
        "ilu",
        "ilu_convergence",
        "block_jacobi",
        "multigrid",
        "multigrid_by_hand",
        "reorder",
        "export_preconditioner",
    ),
    "Precision": ("refinement", "mixed_precision", "stored_precision"),
    "Eigenvalues": ("inverse_iteration", "drum"),
    "Several devices, other libraries, time": (
        "several_devices",
        "other_libraries",
        "where_time_goes",
    ),
    "Machine learning": (
        "graph_attention",
        "train_models",
        "learn_coefficients",
        "gaussian_field",
        "inverse_eigenvalues",
    ),
    "Parts of your own": (
        "own_operator",
        "own_criterion",
        "own_step",
        "own_kernel",
        "own_backend",
    ),
}

#: Arguments with which a program draws, or takes seconds where it would take a minute.
ARGUMENTS = {
    "choosing_a_preconditioner.py": ["16", "choosing-a-preconditioner.png"],
    "choosing_a_solver.py": ["choosing-a-solver.png"],
    "demo.py": ["60"],
    "drum.py": ["40", "drum.png"],
    "heat.py": ["64", "8"],
}
SECONDS = 600

HEAD = """\
# Examples

Programs to copy from. `make site` ran each of them and shows its output and plots; the tests
run them, too. Users of Ginkgo find
[its example programs next to wollemi's](../docs/coming-from-ginkgo.md).
"""


#: The group of programs that no other group names.
OTHERS = "More"


def groups() -> dict[str, tuple[str, ...]]:
    """Return the names of all programs by group; one that is new and in no group comes last."""
    named = {name for names in GROUPS.values() for name in names}
    there = sorted(file.stem for file in (ROOT / "examples").glob("*.py"))
    others = tuple(name for name in there if name not in named)
    return {**GROUPS, OTHERS: others} if others else dict(GROUPS)


def examples() -> list[Path]:
    """Return the programs of the gallery, in its order."""
    return [ROOT / f"examples/{name}.py" for names in groups().values() for name in names]


def title_of(example: Path) -> str:
    """Return the title of a program: the first line of its docstring up to a colon."""
    return _first_line(example).partition(": ")[0]


def _first_line(example: Path) -> str:
    about = ast.get_docstring(ast.parse(example.read_text())) or example.stem
    return about.splitlines()[0].rstrip(".")


def sentence_of(example: Path) -> str:
    """Return a sentence about a program: the rest of that line, or the first sentence below it."""
    rest = _first_line(example).partition(": ")[2]
    if rest:
        return f"{rest[0].upper()}{rest[1:]}."
    about = ast.get_docstring(ast.parse(example.read_text())) or ""
    paragraphs = [" ".join(part.split()) for part in about.split("\n\n")[1:]]
    prose = [part for part in paragraphs if re.match(r"[A-Z]", part)]
    sentence = re.match(r".+?[.](?= [A-Z]|$)", prose[0]) if prose else None
    return sentence[0] if sentence else ""


def outcome(example: Path) -> dict[str, Any]:
    """Return the output of an example, and its pictures, as files.

    It runs once for each version of its text; ``build/site/outcomes`` keeps the output.
    """
    arguments = ARGUMENTS.get(example.name, [])
    text = example.read_bytes() + f"{version()} {arguments}".encode()
    kept = WORK / "outcomes" / f"{example.stem}-{hashlib.sha256(text).hexdigest()[:16]}"
    record = kept / "record.json"
    if not record.exists():
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, example, *arguments],
                cwd=folder, capture_output=True, text=True, timeout=SECONDS,
                env={**os.environ, "OMP_WAIT_POLICY": "passive", "COLUMNS": "100"},
            )  # fmt: skip
            if done.returncode and (need := missing_package(done.stderr)):
                print(f"site: {example.name} is shown without its output: {need}", flush=True)
                return {"printed": "", "pictures": [], "folder": kept}
            if done.returncode:
                sys.exit(f"{example.name} ended with {done.returncode}:\n{done.stderr}")
            shutil.rmtree(kept, ignore_errors=True)
            kept.mkdir(parents=True)
            pictures = sorted(Path(folder).glob("*.png"))
            for picture in pictures:
                shutil.copy(picture, kept)
        found = {"printed": done.stdout, "pictures": [picture.name for picture in pictures]}
        record.write_text(json.dumps(found))
    return {**json.loads(record.read_text()), "folder": kept}


def missing_package(errors: str) -> str:
    """Return the last line of a traceback if a package is missing, and nothing otherwise.

    Parameters
    ----------
    errors : str
        The output for errors of a program that failed.
    """
    last = errors.strip().rpartition("\n")[2]
    return last if re.match(r"(ModuleNotFound|Import)Error|.*pip install", last) else ""


def write_gallery() -> None:
    """Write a page for each example, and one with a card for each."""
    folder = PAGES / "examples"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [HEAD]
    for group, names in groups().items():
        cards = []
        for name in names:
            example = ROOT / f"examples/{name}.py"
            pictures = _write_page(example, folder)
            image = pictures[0][1] if pictures else ""
            cards.append(card(title_of(example), f"/examples/{name}", sentence_of(example), image))
        lines.append(_group(group, cards, names))
    names = tuple(path.name for path in packages())
    cards = [card(path.name, f"/examples/{path.name}", description(path)) for path in packages()]
    lines.append(_group("Packages", cards, names))
    (folder / "index.md").write_text("\n".join(lines) + "\n")


def _group(title: str, cards: Sequence[str], names: Sequence[str]) -> str:
    """Return a group of the gallery: its cards, and the menu of its pages."""
    pages = "\n".join(f"/examples/{name}" for name in names)
    menu = f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n{pages}\n```"
    grid = ["::::{grid} 1 2 3 3\n:gutter: 3", *cards, "::::"]
    return "\n\n".join([f"## {title}", *grid, menu, ""])


def _write_page(example: Path, folder: Path) -> list[tuple[str, str]]:
    """Write the page of an example; return its pictures with their texts."""
    found = outcome(example)
    shutil.copy(example, folder)
    pictures = []
    for name in found["pictures"]:
        file = f"{example.stem}-{name}"
        shutil.copy(found["folder"] / name, folder / file)
        subject = Path(name).stem.replace("-", " ").replace("_", " ")
        pictures.append((f"{title_of(example)}: {subject}", file))
    parts = [f"# {title_of(example)}", *(f"![{alt}]({file})" for alt, file in pictures)]
    parts += [f"[Download {example.name}]({example.name})", f"```python\n{example.read_text()}```"]
    if found["printed"].strip():
        parts += ["## Output", output(found["printed"])]
    (folder / f"{example.stem}.md").write_text("\n\n".join(parts) + "\n")
    return pictures


def output(text: str) -> str:
    """Return a block of MyST for the output of a program, which looks unlike a program."""
    return f"````{{code-block}} text\n:class: output\n\n{text.strip(chr(10)).rstrip()}\n````"
