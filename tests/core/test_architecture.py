"""Who may know whom (docs/design.md, The folders)."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from .sources import ROOT, parsed

# The shared parts of backends: text that all compile, and the common part of the two on CuPy.
SHARED = {"unified": set(), "simt": {"unified"}, "cpu": set(), "gpu": {"unified", "simt"}}
BACKENDS = {"reference", "omp", "cuda", "hip", "dpcpp"}
# Run by the build, outside of the package.
BUILD_SCRIPTS = {Path("backends/omp/generate.py")}
OPTIONAL = (
    "cupy",
    "dpctl",
    "torch",
    "jax",
    "matplotlib",
    "jinja2",
    "cuda",
    "pandas",
    "sparse_dot_mkl",
)


def modules(folder: str) -> list[Path]:
    files = sorted((ROOT / folder).rglob("*.py"))
    return [f for f in (file.relative_to(ROOT) for file in files) if f not in BUILD_SCRIPTS]


@cache
def imports(file: Path) -> set[tuple[str, ...]]:
    """Return the imports of a module, as the parts of absolute names within the checkout."""
    package = file.parts[:-1]
    found: set[tuple[str, ...]] = set()
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.Import):
            found.update(tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            base += tuple(node.module.split(".")) if node.module else ()
            found.update((*base, alias.name) for alias in node.names)
    return found


def ours(file: Path) -> set[tuple[str, ...]]:
    return {name for name in imports(file) if name[0] in ("core", "solvers", "backends", "src")}


def others_known(folder: str, *known: str) -> dict[str, list[str]]:
    """Return the imports of a folder's modules from folders of ours other than the known ones."""
    found = {
        str(file): sorted(".".join(name) for name in ours(file) if name[0] not in known)
        for file in modules(folder)
    }
    return {file: names for file, names in found.items() if names}


def test_core_knows_core_alone() -> None:
    assert not others_known("core", "core")


def test_solvers_know_core_alone() -> None:
    assert not others_known("solvers", "core", "solvers")


def test_every_folder_of_backends_is_known() -> None:
    folders = {file.parts[1] for file in modules("backends") if len(file.parts) > 2}
    assert folders == BACKENDS | set(SHARED)


def test_the_package_knows_the_benchmarks_in_one_place() -> None:
    knows = {
        str(file)
        for folder in ("core", "solvers", "backends", "src/wollemi")
        for file in modules(folder)
        for name in imports(file)
        if name[0] == "wollemi_bench"
    }
    assert knows == {"src/wollemi/cli/bench.py"}


def test_no_part_imports_graph_learning_when_it_is_loaded() -> None:
    """Its public names, and the registration of operands, are the only ways to it."""
    faces = {"graph.py", "masks.py", "nn.py", "_operand_handlers.py"}
    knows = {
        str(file.relative_to("src/wollemi"))
        for file in modules("src/wollemi")
        for name in imports(file)
        if name[:3] == ("src", "wollemi", "learning") and file.parts[2] != "learning"
    }
    assert knows == faces


def test_a_backend_knows_core_and_itself_alone() -> None:
    others = others_known("backends", "core", "backends")
    for file in modules("backends"):
        itself = file.parts[1]
        allowed = {itself} | SHARED.get(itself, set(SHARED))
        names = {name[1] for name in ours(file) if name[0] == "backends"} - allowed
        if names:
            others[str(file)] = sorted(names)
    assert not others


def test_imports_within_the_package_are_relative() -> None:
    files = modules("core") + modules("solvers") + modules("backends")
    assert not [file for file in files if any(name[0] == "wollemi" for name in imports(file))]


def test_solvers_ask_for_no_backend_by_name() -> None:
    names = {"omp", "cuda", "hip", "dpcpp"}
    asking = {
        str(file): node.value
        for file in modules("solvers")
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names
    }
    assert not asking


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_a_library_of_others_is_imported_in_folders_of_its_name(library: str) -> None:
    homes = [ROOT / "src/wollemi/interop" / library, ROOT / "src/wollemi/learning"]
    importing = {
        (ROOT / file).resolve()
        for folder in ("core", "solvers", "src/wollemi")
        for file in modules(folder)
        for name in imports(file)
        if name[0] == library
    }
    assert importing
    elsewhere = {file for file in importing if not any(home in file.parents for home in homes)}
    assert not elsewhere


def test_importing_the_package_imports_nothing_optional(run_python) -> None:
    run_python(
        "import sys, wollemi; "
        f"loaded = [name for name in {OPTIONAL!r} if name in sys.modules]; "
        "assert not loaded, loaded"
    )


#: Slow imports that few users need: the package takes 0.25 s, NumPy included.
SLOW = ("scipy", "importlib.metadata", "email", "asyncio", "multiprocessing", "unittest")


def test_importing_the_package_imports_nothing_slow(run_python) -> None:
    run_python(
        "import sys, numpy; before = set(sys.modules); import wollemi; "
        f"loaded = [name for name in {SLOW!r} if name in set(sys.modules) - before]; "
        "assert not loaded, loaded"
    )


def test_importing_the_package_loads_no_backend(run_python) -> None:
    run_python(
        "import sys, wollemi; "
        "loaded = [n for n in sys.modules if n.startswith('wollemi.backends.')]; "
        "assert not loaded, loaded"
    )


def test_listing_the_kernels_needs_no_device(run_python) -> None:
    run_python(
        "from wollemi.core.registry import kernel_tables; assert kernel_tables()['reference']"
    )


def test_matrices_work_without_what_is_optional(run_python) -> None:
    blocked = "; ".join(f"sys.modules[{name!r}] = None" for name in OPTIONAL)
    run_python(
        f"import sys; {blocked}; import numpy as np, wollemi as wl; "
        "wl.set_default_executor('reference'); "
        "assert (wl.Csr(np.eye(3)) @ np.ones(3)).sum() == 3"
    )
