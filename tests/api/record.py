"""The public names with their signatures, as lines of text: ``make api`` writes them down.

A line is a name, its kind, and its signature without annotations::

    wollemi.solve function (A, b, *, method='auto', M='auto', rtol=1e-05)
    wollemi.Csr.T property

Public are the names in ``__all__`` of the modules of :data:`MODULES`, the members of these classes
that do not begin with an underscore, and the options of the commands. A member that a class
inherits from another public class is listed with that one alone.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RECORD = Path(__file__).with_name("public_names.txt")
PROJECT = Path(__file__).parents[2] / "pyproject.toml"

#: The modules that a program may import.
MODULES = (
    "wollemi",
    "wollemi.distributed",
    "wollemi.errors",
    "wollemi.extend",
    "wollemi.graph",
    "wollemi.interop.jax",
    "wollemi.interop.lineax",
    "wollemi.interop.petsc",
    "wollemi.interop.torch",
    "wollemi.io",
    "wollemi.linalg",
    "wollemi.loggers",
    "wollemi.masks",
    "wollemi.nn",
    "wollemi.preconditioners",
    "wollemi.reorder",
    "wollemi.solvers",
    "wollemi.sparse",
    "wollemi.stop",
)

#: This is there with lineax alone.
OF_LINEAX = "wollemi.interop.lineax"

#: These are there with PyTorch alone.
OF_TORCH = ("wollemi.interop.torch", "wollemi.nn")


@dataclass(frozen=True)
class Entry:
    """A public name.

    Attributes
    ----------
    name : str
        With its module.
    kind : str
        class, base, function, method, property, attribute, module, command or option.
    signature : str
        The text of its parameters; empty where there are none to name.
    """

    name: str
    kind: str
    signature: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.kind} {self.signature}".rstrip()


def parsed(line: str) -> Entry:
    """Return the entry that a line of the record says."""
    name, kind, *signature = line.split(" ", 2)
    return Entry(name, kind, *signature)


def entries(modules: tuple[str, ...] = MODULES) -> dict[str, Entry]:
    """Return the public names as they are now."""
    found = [*_of_modules(modules), *_options()]
    return {entry.name: entry for entry in sorted(found, key=lambda entry: entry.name)}


def recorded() -> tuple[str, dict[str, Entry]]:
    """Return the version and the names of the record."""
    first, *lines = RECORD.read_text().splitlines()
    return first.removeprefix("wollemi "), {e.name: e for e in map(parsed, filter(None, lines))}


def version() -> str:
    """Return the version that the checkout has."""
    (found,) = re.findall(r'^version = "(.+)"', PROJECT.read_text(), re.MULTILINE)
    return str(found)


def public_module(name: str) -> types.ModuleType:
    """Return a public module; ``wollemi.errors`` and ``wollemi.io`` are names of ``wollemi``."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
    parent, _, last = name.rpartition(".")
    module = getattr(importlib.import_module(parent), last)
    assert isinstance(module, types.ModuleType)
    return module


def names_of(module: types.ModuleType) -> list[str]:
    """Return the names that a module offers: its ``__all__``, or the classes that it defines."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return sorted(listed)
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    )


def _of_modules(modules: tuple[str, ...]) -> Iterator[Entry]:
    offered = {
        f"{name}.{inner}": getattr(module, inner)
        for name in modules
        for module in (public_module(name),)
        for inner in names_of(module)
    }
    classes = {value: name for name, value in offered.items() if isinstance(value, type)}
    for name, value in offered.items():
        yield from _of_object(name, value, classes)


def _of_object(name: str, value: Any, classes: dict[type, str]) -> Iterator[Entry]:
    if isinstance(value, types.ModuleType):
        yield Entry(name, "module")
    elif isinstance(value, type):
        yield Entry(name, "class", signature_text(value))
        bases = sorted(classes[base] for base in value.__mro__[1:] if base in classes)
        yield from (Entry(f"{name}({base})", "base") for base in bases)
        yield from public_members(name, value, classes)
    elif callable(value):
        yield Entry(name, "function", signature_text(value))
    else:
        yield Entry(name, "attribute")


def public_members(name: str, cls: type, classes: dict[type, str]) -> Iterator[Entry]:
    """Yield the members that a class has from itself and from classes that are not public.

    Members that come from other packages are theirs to promise.
    """
    seen: set[str] = set()
    for base in cls.__mro__:
        if not base.__module__.startswith("wollemi."):
            continue
        declared = [*vars(base), *inspect.get_annotations(base)]
        if base is not cls and base in classes:
            seen.update(declared)
            continue
        for inner in declared:
            if inner.startswith("_") or inner in seen:
                continue
            seen.add(inner)
            value = inspect.getattr_static(cls, inner, None)
            if isinstance(value, (classmethod, staticmethod)) or inspect.isfunction(value):
                yield Entry(f"{name}.{inner}", "method", signature_text(getattr(cls, inner)))
            elif isinstance(value, property) or hasattr(type(value), "__get__"):
                yield Entry(f"{name}.{inner}", "property")
            else:
                yield Entry(f"{name}.{inner}", "attribute")


def signature_text(value: Any) -> str:
    """Return a signature without annotations, in one line; ``(...)`` where Python has none."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty, default=_shown(parameter.default))
        for parameter in signature.parameters.values()
    ]
    if inspect.isfunction(value) and parameters and parameters[0].name == "self":
        parameters = parameters[1:]
    return str(inspect.Signature(parameters))


class _Text:
    """A default that is shown by a text of ours: addresses of objects differ between runs."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _shown(default: Any) -> Any:
    if default is inspect.Parameter.empty:
        return default
    if isinstance(default, enum.Enum):
        return _Text(f"{type(default).__name__}.{default.name}")
    text = repr(default)
    if " at 0x" in text or text.startswith("<"):
        text = getattr(default, "__name__", type(default).__name__)
    return _Text(" ".join(text.split()))


def _options() -> Iterator[Entry]:
    """Yield the commands and their options, as a shell takes them."""
    import typer.main

    from wollemi.cli.app import app

    top: Any = typer.main.get_command(app)
    for name, command in top.commands.items():
        arguments = []
        for parameter in command.params:
            if parameter.param_type_name == "argument":
                argument = str(parameter.metavar or parameter.name.upper()).strip("[]")
                arguments.append(argument if parameter.required else f"{argument}=None")
                continue
            for option in (*parameter.opts, *parameter.secondary_opts):
                yield Entry(f"$wollemi.{name}.{option}", "option")
        yield Entry(f"$wollemi.{name}", "command", f"({', '.join(arguments)})")


def main() -> None:
    """Write the record."""
    lines = [f"wollemi {version()}", *map(str, entries().values())]
    RECORD.write_text("\n".join(lines) + "\n")
    print(f"{RECORD}: {len(lines) - 1} names of wollemi {version()}")


if __name__ == "__main__":
    main()
