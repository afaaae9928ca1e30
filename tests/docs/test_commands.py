"""Every command of the pages is one that works, and programs in plain blocks run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg
import typer.main

import wollemi as wl
from wollemi.cli.app import app
from wollemi.core.errors import ExecutorUnavailable
from wollemi.core.registry import executor

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted((ROOT / "docs").glob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "website/index.md")),
]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

#: Commands of other programs.
OTHERS = {
    ".",
    "cd",
    "export",
    "git",
    "module",
    "nvidia-smi",
    "playwright",
    "source",
    "srun",
    "torchrun",
}

#: Modules that ask for the entry points of other packages.
READERS_OF_GROUPS = ("core/registry.py", "solvers/third_party.py")

#: Files that readers have and the repository has not.
OF_READERS = {"program.py", "solve.py"}


def commands() -> list[tuple[str, str]]:
    """Return the commands of all blocks for a shell, each with the name of its page."""
    found = []
    for page in PAGES:
        for block in re.findall(r"^```(?:sh|bash)\n(.*?)^```", page.read_text(), re.M | re.S):
            for line in re.sub(r"\\\n\s*", " ", block).splitlines():
                parts = line.partition(" #")[0].split("&&")
                found += [(page.name, part.strip()) for part in parts if not part.startswith("#")]
    return sorted({pair for pair in found if pair[1]})


@pytest.mark.parametrize(("page", "command"), commands(), ids=lambda text: text[:60])
def test_a_command_is_one_that_works(page: str, command: str) -> None:
    words = shlex.split(command)
    while re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words.pop(0)
    check(words)


def test_the_package_of_the_page_is_found_by_its_name(tmp_path: Path) -> None:
    """As if it was installed: its files, and the entry points that pip would write."""
    page = (ROOT / "docs/extend.md").read_text().partition("## A package\n")[2]
    table = re.findall(r"^```toml\n(.*?)^```", page, re.M | re.S)[0]
    module, tests = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)[:2]
    project = tomllib.loads(table)["project"]
    names = tomllib.loads(table)["tool"]["setuptools"]["packages"]
    (tmp_path / names[0]).mkdir()
    (tmp_path / names[0] / "__init__.py").write_text(module)
    (tmp_path / "test_sweeps.py").write_text(tests)
    info = tmp_path / f"{names[0]}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    points = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(points))
    wl.write(tmp_path / "A.mtx", sp.diags_array(np.arange(1.0, 20.0)).tocsr())
    (line,) = [one for name, one in commands() if name == "extend.md" and "precond" in one]
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    for words in (shlex.split(line), ["pytest", "-q", "-p", "no:cacheprovider", "test_sweeps.py"]):
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def of_any_machine() -> list[str]:
    """Return the solves that need no GPU; tests of the README and of the command run the others."""
    places = re.compile("executor (?!omp)")
    others = ("README.md", "extend.md")  # tests above and of the README run these
    found = {line for page, line in commands() if page not in others and not places.search(line)}
    return sorted(line for line in found if line.startswith(("wollemi solve", "wollemi info A")))


@pytest.mark.parametrize("command", of_any_machine())
def test_a_command_of_the_guide_runs(command: str, tmp_path: Path) -> None:
    S = sp.diags_array([-1.0, 2.5, -1.0], offsets=[-1, 0, 1], shape=(50, 50)).tocsr()
    wl.write(tmp_path / "A.mtx", S)
    for name in ("b.mtx", "b.txt"):
        wl.write(tmp_path / name, S @ np.ones(50))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    words = [sys.executable, "-m", *shlex.split(command)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return the kind and the text of each block of a page."""
    found: list[tuple[str, list[str]]] = []
    inside = False
    for line in page.read_text().splitlines():
        if line.startswith("```"):
            inside = not inside
            if inside:
                found.append((line.strip("`"), []))
        elif inside:
            found[-1][1].append(line)
    return [(kind, "\n".join(lines)) for kind, lines in found]


def test_every_block_is_of_a_kind_that_a_test_reads() -> None:
    """Python runs in test_examples.py, commands and plain programs here; trees need no test."""
    found = [(page.name, *block) for page in PAGES for block in blocks(page) if block[0][:1] != "{"]
    assert {kind for _, kind, _ in found} <= {"python", "sh", "bash", "toml", "text", "c", ""}
    plain = [(name, body) for name, kind, body in found if kind in ("", "text")]
    assert [(name, body.split()[0]) for name, body in plain if "import " not in body] == [
        ("design.md", "core/"),  # a tree of folders
        ("distributed.md", "member"),  # a picture
    ]


def test_tables_for_pyproject_name_groups_that_are_read() -> None:
    source = "".join((ROOT / name).read_text() for name in READERS_OF_GROUPS)
    tables = [body for page in PAGES for kind, body in blocks(page) if kind == "toml"]
    groups = {group for text in tables for group in tomllib.loads(text)["project"]["entry-points"]}
    assert groups == {"wollemi.backends", "wollemi.preconditioners", "wollemi.solvers"}
    assert all(f'"{group}"' in source for group in groups)


def check(words: list[str]) -> None:
    """Compare a command with the files, targets, extras and options of this checkout."""
    name, *rest = words
    if name == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
        assert next(word for word in rest if "=" not in word) in targets
    elif name == "pip":
        assert rest[0] == "install"
        for extra in re.findall(r"(?:\.|wollemi)\[([\w,]+)\]", " ".join(rest)):
            assert set(extra.split(",")) <= EXTRAS.keys()
    elif name == "wollemi":
        parse(rest)
    elif name.endswith(("python", "python3")):
        assert_program(rest)
    elif name == "mpiexec":
        check(rest[2:])
    elif "/" in name:
        assert (ROOT / name).exists() or name.startswith(".venv/bin/")
    else:
        assert name in OTHERS


def assert_program(words: list[str]) -> None:
    """Compare the program that Python is given with the files and modules that exist."""
    if words[0] != "-m":
        assert words[0] in OF_READERS or (ROOT / words[0]).exists()
        return
    assert words[1] == "mpi4py" or find_spec(words[1].partition(".")[0]) is not None
    for word in words[2:]:
        if word.startswith("tests/"):
            assert (ROOT / word.partition("::")[0]).exists(), word


def parse(words: list[str]) -> None:
    """Let the command line read the words of a command, and run nothing."""
    group: Any = typer.main.get_command(app)
    if words[0].startswith("-") or "--help" in words:
        return
    command = group.commands[words[0]]
    command.make_context(words[0], list(words[1:]))


def plain_programs(page: str) -> list[str]:
    """Return the blocks without a language that are Python."""
    text = (ROOT / "docs" / page).read_text()
    return [b for b in re.findall(r"^```text\n(.*?)^```", text, re.M | re.S) if "import " in b]


def run(program: str, folder: Path, *before: str) -> str:
    (folder / "solve.py").write_text(program)
    command = [*before, sys.executable, *(["-m", "mpi4py"] if before else []), "solve.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("page", ["cuda.md", "coming-from-cupy.md", "hip.md"])
def test_a_program_for_gpus_runs_on_arrays_of_numpy(tmp_path: Path, page: str) -> None:
    (program,) = plain_programs(page)
    for old, new in [
        ("import cupy as cp", "import numpy as cp"),
        ("import cupyx.scipy.sparse as csp", "import scipy.sparse as csp"),
        ('executor="cuda"', 'executor="omp"'),
        ('executor="hip"', 'executor="omp"'),
        ("10**6", "10**4"),
    ]:
        program = program.replace(old, new)
    run(program, tmp_path)


@pytest.mark.gpu
@pytest.mark.parametrize("page", ["cuda.md", "coming-from-cupy.md"])
def test_a_program_for_gpus_runs_on_one(tmp_path: Path, page: str) -> None:
    try:
        executor("cuda")
    except ExecutorUnavailable as reason:
        pytest.skip(f"{reason}; make test-gpu runs this where there is a GPU")
    run(plain_programs(page)[0], tmp_path)


def test_the_program_for_clusters_runs_on_two_ranks(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py", reason="make test installs it")
    mpiexec = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or "mpiexec"
    S = sp.diags_array([-1.0, 2.5, -1.0], offsets=[-1, 0, 1], shape=(60, 60)).tocsr()
    wl.write(tmp_path / "A.mtx", S)
    _, program, _ = plain_programs("distributed.md")
    check_x = 'print(f"<{np.abs(x).max()}><{np.abs(y).max()}>")'  # lines of ranks may join
    said = run(f"{program}\n{check_x}\n", tmp_path, mpiexec, "-n", "2")
    largest = np.array(re.findall("<(.*?)>", said), float)
    assert len(largest) == 4
    np.testing.assert_allclose(largest, np.linalg.solve(S.toarray(), np.ones(60)).max(), rtol=1e-4)


def test_a_run_that_was_stopped_starts_from_its_checkpoint_on_two_ranks(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py", reason="make test installs it")
    mpiexec = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or "mpiexec"
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(30, 30))
    S = sp.kronsum(line, line, format="csr")
    wl.write(tmp_path / "A.mtx", S)
    *_, program = plain_programs("distributed.md")
    stopped = program.replace("maxiter=500", "maxiter=20").replace("range(20)", "range(1)")
    counted = 'print(f"<{result.iterations}>")'
    assert "<20>" in run(f"{stopped}\n{counted}\n", tmp_path, mpiexec, "-n", "2")
    assert np.linalg.norm(S @ np.load(tmp_path / "x.npy") - 1) > 1e-6
    said = run(f"{program}\n{counted}\n", tmp_path, mpiexec, "-n", "2")
    assert 0 < int(re.findall("<(.*?)>", said)[0]) < 500
    assert np.linalg.norm(S @ np.load(tmp_path / "x.npy") - 1) <= 30 * 1e-10
    assert not (tmp_path / "next.npy").exists()


def test_the_program_of_ranks_that_assemble_their_rows_runs_on_two(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py", reason="make test installs it")
    mpiexec = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or "mpiexec"
    program, _, _ = plain_programs("distributed.md")
    check = 'print(f"<{np.abs(x).max()}>")'
    said = run(f"{program}\n{check}\n", tmp_path, mpiexec, "-n", "2")
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(60, 60))
    x = scipy.sparse.linalg.spsolve(sp.kronsum(line, line, format="csc"), np.ones(3600))
    assert "converged" in said and "(3600,)" in said
    largest = np.array(re.findall("<(.*?)>", said), float)
    np.testing.assert_allclose(largest, [x.max()] * 2, rtol=1e-6)
