"""Steps from source files, for the build: NumPy, which solvers import, is not there yet.

Of a file only its steps are executed, with what they name: the functions and constants of the file,
and steps and functions of its neighbours. This module needs the standard library alone.
"""

from __future__ import annotations
import __future__

import ast
import sys
from pathlib import Path
from types import ModuleType

#: What a step may import besides what stands beside it.
STEP_PACKAGE = "core.step"


def load_steps(package: str, folder: Path) -> None:
    """Execute the steps of all modules of a folder, which fills the table of operations.

    Parameters
    ----------
    package : str
        The package whose ``core.step`` the steps are made with; the folder's name is a package
        within it.
    folder : Path
        Such as that of the solvers.
    """
    loader = _Loader(package, folder)
    for path in sorted(folder.glob("*.py")):
        loader.module(path.stem)


class _Loader:
    def __init__(self, package: str, folder: Path) -> None:
        self.package = f"{package}.{folder.name}"
        self.folder = folder
        self._modules: dict[str, ModuleType] = {}
        parent = sys.modules.setdefault(self.package, ModuleType(self.package))
        parent.__path__ = getattr(parent, "__path__", [])

    def module(self, name: str, *wanted: str) -> ModuleType:
        """Return a module that has a file's steps, what is wanted of it, and nothing else."""
        path = self.folder / f"{name}.py"
        tree = ast.parse(path.read_text(encoding="utf-8"))
        made = self._modules.get(name)
        if made is None:
            made = self._modules[name] = ModuleType(f"{self.package}.{name}")
            made.__package__ = self.package
            self._execute(_wanted(tree, _steps(tree)), made, path)
        missing = [one for one in wanted if not hasattr(made, one)]
        if missing:
            self._execute(_wanted(tree, missing), made, path)
        return made

    def _execute(
        self, statements: list[tuple[ast.stmt, set[str]]], module: ModuleType, path: Path
    ) -> None:
        for statement, names in statements:
            if isinstance(statement, ast.ImportFrom) and statement.level == 1:
                aliases = [a for a in statement.names if (a.asname or a.name) in names]
                beside = self.module(statement.module or "", *(a.name for a in aliases))
                for alias in aliases:
                    setattr(module, alias.asname or alias.name, getattr(beside, alias.name))
                continue
            tree = ast.Module(body=[statement], type_ignores=[])
            flags = __future__.annotations.compiler_flag
            code = compile(tree, str(path), "exec", flags=flags, dont_inherit=True)
            exec(code, module.__dict__)


def _steps(tree: ast.Module) -> list[str]:
    """Return the names of the steps of a file."""
    makers = {
        target.id
        for statement in tree.body
        if isinstance(statement, ast.Assign) and _calls(statement.value, "Steps")
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    return [
        statement.name
        for statement in tree.body
        if isinstance(statement, ast.FunctionDef)
        and makers & {d.id for d in statement.decorator_list if isinstance(d, ast.Name)}
    ]


def _wanted(tree: ast.Module, names: list[str]) -> list[tuple[ast.stmt, set[str]]]:
    """Return the statements that define names and what those name, in the order of the file.

    With each statement come the names that are wanted of it.
    """
    definitions = _definitions(tree)
    found: dict[ast.stmt, set[str]] = {}

    def want(name: str) -> None:
        statement = definitions.get(name)
        if statement is None or name in found.get(statement, ()):
            return
        known = statement in found
        found.setdefault(statement, set()).add(name)
        if not known:
            for inner in _names(statement):
                want(inner)

    for name in names:
        want(name)
    return [(_importable(s), found[s]) for s in tree.body if s in found]


def _definitions(tree: ast.Module) -> dict[str, ast.stmt]:
    """Return the statements of a file that define a name, by name."""
    found: dict[str, ast.stmt] = {}
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef):
            found[statement.name] = statement
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                found.update({n.id: statement for n in ast.walk(target) if isinstance(n, ast.Name)})
        elif isinstance(statement, ast.ImportFrom):
            found.update({alias.asname or alias.name: statement for alias in statement.names})
    return found


def _names(statement: ast.stmt) -> set[str]:
    """Return the names that a statement uses, those of annotations left out."""
    if isinstance(statement, ast.FunctionDef):
        parts: list[ast.AST] = [*statement.body, *statement.decorator_list]
        parts += [d for d in (*statement.args.defaults, *statement.args.kw_defaults) if d]
    else:
        parts = [statement]
    return {n.id for part in parts for n in ast.walk(part) if isinstance(n, ast.Name)}


def _calls(value: ast.expr, name: str) -> bool:
    return (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == name
    )


def _importable(statement: ast.stmt) -> ast.stmt:
    """Return a statement, or raise if it imports what the build does not have."""
    if isinstance(statement, ast.ImportFrom):
        beside = statement.level == 1 and statement.module
        if not beside and not (statement.level == 2 and statement.module == STEP_PACKAGE):
            names = ", ".join(alias.name for alias in statement.names)
            if statement.module == f"wollemi.{STEP_PACKAGE}":
                raise ImportError(
                    f"line {statement.lineno}: the build has no package wollemi yet; write "
                    f"from ..{STEP_PACKAGE} import {names}"
                )
            raise ImportError(
                f"line {statement.lineno}: a step uses {names} of {statement.module}; steps use "
                f"the functions of {STEP_PACKAGE} and of the modules beside theirs alone"
            )
    return statement
