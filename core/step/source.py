"""Loading of steps from source files for the build, which has no NumPy yet; solvers import it.

Only the steps of a file are executed, with the functions, records and constants that they use, from
this file and from other files of the folder. This module needs only the standard library.
"""

from __future__ import annotations
import __future__

import ast
from pathlib import Path
from types import ModuleType

#: The package that steps may import from, in addition to modules of their own folder.
STEP_PACKAGE = "core.step"

#: The module of the standard library that steps may import from: ``NamedTuple`` makes records.
RECORDS = "typing"


def load_steps(package: str, folder: Path) -> None:
    """Execute the steps in all modules of a folder; this fills the table of operations.

    Parameters
    ----------
    package : str
        The package that contains the ``core.step`` of the steps, and a subpackage with the folder's
        name.
    folder : Path
        The folder, such as the folder of the solvers.
    """
    loader = _Loader(package, folder)
    for path in sorted(folder.rglob("*.py")):
        if path.name != "__init__.py":
            loader.module(".".join(path.relative_to(folder).with_suffix("").parts))


class _Loader:
    def __init__(self, package: str, folder: Path) -> None:
        self.step_package = f"{package}.{STEP_PACKAGE}"
        self.package = f"{package}.{folder.name}"
        self.folder = folder
        self._modules: dict[str, ModuleType] = {}

    def module(self, name: str, *wanted: str) -> ModuleType:
        """Return a module that contains only the steps of a file and the wanted names.

        ``name`` is relative to the folder, with dots: ``krylov.cg``.
        """
        path = self.folder.joinpath(*name.split(".")).with_suffix(".py")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        result = self._modules.get(name)
        if result is None:
            result = self._modules[name] = ModuleType(f"{self.package}.{name}")
            result.__package__ = result.__name__.rpartition(".")[0]
            self._execute(self._wanted(result, tree, _steps(tree)), result, path)
        missing = [one for one in wanted if not hasattr(result, one)]
        if missing:
            self._execute(self._wanted(result, tree, missing), result, path)
        return result

    def _execute(
        self, statements: list[tuple[ast.stmt, set[str]]], module: ModuleType, path: Path
    ) -> None:
        for statement, names in statements:
            if isinstance(statement, ast.ImportFrom):
                source = _source(module, statement)
                if source.startswith(f"{self.package}."):
                    aliases = [a for a in statement.names if (a.asname or a.name) in names]
                    relative = source.removeprefix(f"{self.package}.")
                    defining = self.module(relative, *(a.name for a in aliases))
                    for alias in aliases:
                        setattr(module, alias.asname or alias.name, getattr(defining, alias.name))
                    continue
            tree = ast.Module(body=[statement], type_ignores=[])
            flags = __future__.annotations.compiler_flag
            code = compile(tree, str(path), "exec", flags=flags, dont_inherit=True)
            exec(code, module.__dict__)

    def _wanted(
        self, module: ModuleType, tree: ast.Module, names: list[str]
    ) -> list[tuple[ast.stmt, set[str]]]:
        """Return the statements that define names, and all names these use, in the file's order.

        Each statement comes with the names that it must define.
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
        wanted = [(s, found[s]) for s in tree.body if s in found]
        for statement, _ in wanted:
            if isinstance(statement, ast.ImportFrom):
                self._check_import(module, statement)
        return wanted

    def _check_import(self, module: ModuleType, statement: ast.ImportFrom) -> None:
        """Raise an error if a statement imports a module that the build does not have."""
        source = _source(module, statement)
        built = source == self.step_package or source.startswith(f"{self.package}.")
        if source == RECORDS or (statement.level and built):
            return
        names = ", ".join(alias.name for alias in statement.names)
        if statement.module == f"wollemi.{STEP_PACKAGE}":
            dots = "." * (module.__name__.count(".") - self.package.count(".") + 1)
            raise ImportError(
                f"line {statement.lineno}: the build has no package wollemi yet; write "
                f"from {dots}{STEP_PACKAGE} import {names}"
            )
        raise ImportError(
            f"line {statement.lineno}: a step uses {names} of {statement.module}; steps use "
            f"the functions of {STEP_PACKAGE} and of modules of {self.folder.name} alone"
        )


def _source(module: ModuleType, statement: ast.ImportFrom) -> str:
    """Return the full name of the module from which a statement imports."""
    if not statement.level:
        return statement.module or ""
    package = module.__name__.split(".")[: -statement.level]
    return ".".join([*package, *filter(None, [statement.module])])


def _steps(tree: ast.Module) -> list[str]:
    """Return the names of the steps in a file."""
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


def _definitions(tree: ast.Module) -> dict[str, ast.stmt]:
    """Return the defining statement of each name in a file."""
    result: dict[str, ast.stmt] = {}
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            result[statement.name] = statement
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                result.update(
                    {n.id: statement for n in ast.walk(target) if isinstance(n, ast.Name)}
                )
        elif isinstance(statement, ast.ImportFrom):
            result.update({alias.asname or alias.name: statement for alias in statement.names})
    return result


def _names(statement: ast.stmt) -> set[str]:
    """Return the names that a statement uses outside of annotations."""
    if isinstance(statement, ast.FunctionDef):
        parts: list[ast.AST] = [*statement.body, *statement.decorator_list]
        parts += [d for d in (*statement.args.defaults, *statement.args.kw_defaults) if d]
    elif isinstance(statement, ast.ClassDef):  # a record: annotations stay strings
        parts = [*statement.bases, *statement.decorator_list]
        parts += [d.value for d in statement.body if isinstance(d, ast.AnnAssign) and d.value]
    else:
        parts = [statement]
    return {n.id for part in parts for n in ast.walk(part) if isinstance(n, ast.Name)}


def _calls(value: ast.expr, name: str) -> bool:
    return (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == name
    )
