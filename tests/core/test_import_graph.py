"""Imports within functions, cycles of modules and untyped calls may become fewer, not more.

The limits are the counts of this version. Lower a limit when its count has fallen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from .sources import ROOT, parsed

#: Names of this package that functions import; the target is a decreasing number.
LATE_IMPORTS = 86
#: Modules that import each other in a circle, by imports within functions too:
#: formats of matrices and sparse vectors, which are made from each other.
LARGEST_CYCLE = 20
#: Functions that take their operands as ``*arguments``: kernels of any operation, and constructors.
UNTYPED_CALLS = 33
#: Parameters, results and attributes with the type ``Any`` in :data:`TYPED`.
UNTYPED = 114
#: Products, launchers of GPUs, persistent kernels and the parts for other libraries.
TYPED = (
    "core/products",
    "backends/gpu",
    "backends/cuda/products",
    "backends/cuda/loop",
    "src/wollemi/interop",
)


@cache
def modules() -> dict[str, Path]:
    """Return the files of the package by the names of their modules."""
    found = {}
    for folder in ("core", "solvers", "backends", "src/wollemi"):
        top = ROOT / folder
        for file in sorted(top.rglob("*.py")):
            inner = file.relative_to(ROOT / "src/wollemi" if folder == "src/wollemi" else ROOT)
            if folder == "src/wollemi" and inner.parts[0] in ("core", "solvers", "backends"):
                continue  # links to the folders
            name = ".".join(("wollemi", *inner.with_suffix("").parts))
            found[name.removesuffix(".__init__")] = file
    return found


def imports(name: str, file: Path) -> Iterator[tuple[str, bool]]:
    """Yield the modules of the package that a module imports, and whether a function does."""
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]

    def visit(node: ast.AST, late: bool) -> Iterator[tuple[str, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                for other in child.orelse:
                    yield from visit(ast.Module([other], []), late)
            elif isinstance(child, ast.ImportFrom):
                base = package.split(".")
                base = base[: len(base) - child.level + 1] if child.level else []
                path = ".".join([*base, *([child.module] if child.module else [])])
                for alias in child.names:
                    whole = f"{path}.{alias.name}"
                    target = whole if whole in modules() else path
                    if target in modules():
                        yield target, late
            else:
                function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
                yield from visit(child, late or function)

    yield from visit(parsed(file.relative_to(ROOT)), False)


def cycles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected components of a graph: each module's mutual ancestors."""

    def reached(start: str, edges: dict[str, set[str]]) -> set[str]:
        seen, waiting = {start}, [start]
        while waiting:
            for other in edges[waiting.pop()] - seen:
                seen.add(other)
                waiting.append(other)
        return seen

    back: dict[str, set[str]] = {name: set() for name in graph}
    for name, others in graph.items():
        for other in others:
            back[other].add(name)
    left, found = set(graph), []
    while left:
        name = next(iter(left))
        found.append(reached(name, graph) & reached(name, back))
        left -= found[-1]
    return found


def test_imports_within_functions_become_fewer() -> None:
    late = [
        f"{name} imports {target}"
        for name, file in modules().items()
        for target, within in imports(name, file)
        if within
    ]
    assert len(late) <= LATE_IMPORTS, f"{len(late)} late imports: move one to the top of its file"


def test_the_largest_cycle_of_modules_becomes_smaller() -> None:
    graph = {name: {target for target, _ in imports(name, f)} for name, f in modules().items()}
    largest = max(cycles(graph), key=len)
    assert len(largest) <= LARGEST_CYCLE, f"{len(largest)} modules: {', '.join(sorted(largest))}"


def test_calls_with_untyped_arguments_become_fewer() -> None:
    untyped = [
        f"{name}.{node.name}"
        for name, file in modules().items()
        for node in ast.walk(parsed(file.relative_to(ROOT)))
        if isinstance(node, ast.FunctionDef) and node.args.vararg is not None
        if node.args.vararg.arg == "arguments"
    ]
    assert len(untyped) <= UNTYPED_CALLS, (
        f"{len(untyped)} functions take *arguments: pass a record of wollemi.core.calls"
    )


def annotations(file: Path) -> Iterator[ast.expr]:
    """Yield the types of parameters, results and attributes of a file."""
    for node in ast.walk(parsed(file.relative_to(ROOT))):
        if isinstance(node, (ast.arg, ast.AnnAssign)) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.returns is not None:
            yield node.returns


def test_untyped_operands_become_fewer() -> None:
    untyped = [
        f"{file.relative_to(ROOT)}:{found.lineno}"
        for part in TYPED
        for file in sorted((ROOT / part).rglob("*.py"))
        for found in annotations(file)
        if isinstance(found, ast.Name) and found.id == "Any"
    ]
    assert len(untyped) <= UNTYPED, f"{len(untyped)} annotations are Any: name the type"
