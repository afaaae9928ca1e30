"""Every example of the documentation runs."""

from __future__ import annotations

import doctest
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from wollemi.core.errors import ExecutorUnavailable
from wollemi.core.registry import algorithm_tables, backend, backend_names, executor

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "website/index.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES_WITH_PYTHON = [page for page in PAGES if "```python\n" in page.read_text()]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.py"))
FOLDERS = ("core", "solvers", "backends", "src/wollemi")

#: Packages that a page or an example needs beyond the tests' own: it is skipped without them.
NEEDED = {
    "pde-assembly.md": "skfem",
    "lineax.md": "lineax",
    "petsc.md": "petsc4py",
    "petsc_options.py": "petsc4py",
}

#: A full demo takes seconds; a coarse plate shows as well that it runs.
ARGUMENTS = {
    "choosing_a_preconditioner.py": ["8", "residuals.png"],
    "demo.py": ["20"],
    "heat.py": ["24", "4"],
    "train_models.py": ["--small"],
}


def run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program as a user would, in a folder of its own."""
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "OMP_WAIT_POLICY": "passive"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def python_blocks(page: Path) -> str:
    """Return the Python blocks of a page as one program, lines kept in place."""
    lines, inside = [], False
    for line in page.read_text().splitlines():
        fence = line.startswith("```")
        lines.append(line if inside and not fence else "")
        inside = (line == "```python") if fence else inside
    return "\n".join(lines)


@pytest.mark.parametrize("page", PAGES_WITH_PYTHON, ids=lambda p: p.name)
def test_the_python_blocks_of_a_page_run_in_order(page, tmp_path):
    if page.name in NEEDED:
        pytest.importorskip(NEEDED[page.name], reason=f"{page.name} needs {NEEDED[page.name]}")
    (tmp_path / "page.py").write_text(python_blocks(page))
    done = run("page.py", folder=tmp_path)
    assert done.returncode == 0, f"{page.name}:\n{done.stderr}"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.name)
def test_an_example_runs(example, tmp_path):
    if example.name in NEEDED:
        pytest.importorskip(NEEDED[example.name], reason="tests/interop/test_petsc.py runs it")
    done = run(str(example), *ARGUMENTS.get(example.name, []), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    if example.name == "demo.py":
        assert (tmp_path / "convergence.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda p: p.name)
def test_a_tutorial_runs(tutorial, tmp_path):
    done = run(str(tutorial), folder=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.gpu
def test_attention_learns_on_a_gpu_what_it_learns_on_a_cpu(tmp_path):
    try:
        executor("cuda")
    except ExecutorUnavailable as reason:
        pytest.skip(f"{reason}; make test-gpu runs this where there is a GPU")
    example = str(ROOT / "examples/graph_attention.py")
    runs = [run(example, "40", device, folder=tmp_path) for device in ("cpu", "cuda")]
    assert [done.returncode for done in runs] == [0, 0], "".join(done.stderr for done in runs)
    cpu, gpu = ([float(loss) for loss in re.findall(r"loss (\S+)", done.stdout)] for done in runs)
    assert len(cpu) == 5 and cpu[-1] < cpu[0]
    assert gpu == pytest.approx(cpu, rel=1e-4)


def modules_with_examples() -> list[str]:
    """Return the modules with a session in their docstrings."""
    found = []
    for folder in FOLDERS:
        for file in (ROOT / folder).rglob("*.py"):
            inside = file.relative_to(ROOT / folder)
            if ">>>" not in file.read_text():
                continue
            package = "" if folder.startswith("src") else f"{folder}."
            if not package and inside.parts[0] in ("core", "solvers", "backends"):
                continue
            name = f"{package}{'.'.join(inside.with_suffix('').parts)}"
            found.append(f"wollemi.{name}".removesuffix(".__init__"))
    return sorted(found)


@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_in_docstrings_are_true(name):
    parts = name.split(".")
    if parts[1:2] == ["backends"] and parts[2] in backend_names():
        try:
            backend(parts[2]).devices()
        except ExecutorUnavailable as reason:
            pytest.skip(f"{reason}; make test runs this where that executor is")
    if name.endswith("lineax_operators"):
        pytest.importorskip("lineax")
    result = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    assert result.failed == 0


def test_the_support_matrix_lists_every_operation():
    # in a process of its own: other tests declare operations in this one
    command = [sys.executable, "-m", "wollemi", "kernels", "--markdown"]
    page = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert page.startswith("# Support matrix")
    for name in ("`csr.spmv`", "`cg.update`", "`gmres.extend`", "`spgemm.fill`"):
        assert f"| {name} |" in page, name


def test_the_page_of_algorithms_is_current():
    from wollemi.cli.kernels import algorithms_page

    tables = algorithm_tables()
    missing = [name for name in ("cuda", "hip", "dpcpp") if name not in tables]
    if missing:
        pytest.skip(f"not loaded here: {', '.join(missing)}; make test installs their requirements")
    made = algorithms_page(tables)
    kept = (ROOT / "docs/algorithms.md").read_text()
    assert kept == made, "run: wollemi kernels --algorithms --markdown > docs/algorithms.md"


@pytest.mark.parametrize(
    "page", [*PAGES, *TUTORIALS, ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name
)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
