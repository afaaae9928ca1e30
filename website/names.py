"""The public names of wollemi as the site shows them: modules, classes, functions and members.

``tests/api/record.py`` says which names are public. Members that only authors of solvers and
formats meet, such as ``iterate``, are left out; the pages on extensions describe them.
"""

from __future__ import annotations

import inspect
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.api.record import MODULES, names_of, public_members, public_module

INTERNALS = {
    owner: frozenset(members.split())
    for owner, members in tomllib.loads(
        Path(__file__).with_name("internals.toml").read_text()
    ).items()
}


def is_internal(cls: type, member: str) -> bool:
    """Return whether a member of a class is for extensions alone: see ``internals.toml``.

    Parameters
    ----------
    cls : type
        A public class.
    member : str
        The name of its method or property.
    """
    return any(member in INTERNALS.get(base.__name__, ()) for base in cls.__mro__)


@dataclass(frozen=True)
class Member:
    """A method or property of a public class.

    Attributes
    ----------
    name : str
        Without the class.
    kind : str
        ``"method"`` or ``"property"``.
    value : object
        The function or the property.
    """

    name: str
    kind: str
    value: Any


@dataclass(frozen=True)
class Name:
    """A public name of a module.

    Attributes
    ----------
    module, name : str
        The module that offers it, and its name there.
    value : object
        The class, the function or the object.
    """

    module: str
    name: str
    value: Any

    @property
    def path(self) -> str:
        """The full name."""
        return f"{self.module}.{self.name}"

    @property
    def kind(self) -> str:
        """One of ``class``, ``exception``, ``function`` and ``data``."""
        if isinstance(self.value, type):
            return "exception" if issubclass(self.value, BaseException) else "class"
        return "function" if callable(self.value) else "data"

    @property
    def summary(self) -> str:
        """The first sentence of its docstring."""
        return first_line(self.value)


def first_line(value: Any) -> str:
    """Return the first line of the docstring of an object; empty where it has none."""
    if isinstance(value, (str, int, float, tuple, dict, frozenset)):
        return ""
    text = (inspect.getdoc(value) or "").strip()
    return " ".join(text.partition("\n\n")[0].split())


@cache
def modules() -> dict[str, tuple[Name, ...]]:
    """Return the names of each public module that can be imported here.

    ``wollemi.nn`` needs PyTorch, for example. A module that belongs to another one is a module of
    its own, and no name of it.
    """
    found = {}
    for module in MODULES:
        try:
            offered = public_module(module)
        except ImportError:
            continue
        found[module] = tuple(
            Name(module, name, getattr(offered, name))
            for name in names_of(offered)
            if not inspect.ismodule(getattr(offered, name))
        )
    return found


def missing_modules() -> list[str]:
    """Return the public modules with requirements that are not installed."""
    return [module for module in MODULES if module not in modules()]


@cache
def owners() -> dict[type, str]:
    """Return the full name of each public class; of two names, that of the defining module."""
    return {
        name.value: name.path
        for names in reversed(modules().values())
        for name in names
        if isinstance(name.value, type)
    }


@cache
def own_members(path: str) -> tuple[Member, ...]:
    """Return the members of a class that no public base of it documents.

    Parameters
    ----------
    path : str
        The full name of the class.
    """
    cls = next(value for value, name in owners().items() if name == path)
    found = []
    for entry in public_members(path, cls, owners()):
        name = entry.name.rpartition(".")[2]
        hidden = name.startswith("_") or is_internal(cls, name)
        if entry.kind not in ("method", "property") or hidden:
            continue
        value = inspect.getattr_static(cls, name, None)
        if inspect.getdoc(value):
            found.append(Member(name, entry.kind, value))
    return tuple(sorted(found, key=lambda member: member.name))


@cache
def inherited_members(path: str) -> dict[str, tuple[Member, ...]]:
    """Return the members that a class has from its public bases, by the name of the base."""
    cls = next(value for value, name in owners().items() if name == path)
    seen = {member.name for member in own_members(path)}
    found = {}
    for base in cls.__mro__[1:]:
        if base not in owners() or owners()[base] == path:
            continue
        members = [m for m in own_members(owners()[base]) if m.name not in seen]
        seen |= {member.name for member in members}
        if members:
            found[owners()[base]] = tuple(members)
    return found


class Places:
    """Where the reference documents each name.

    Attributes
    ----------
    paths : frozenset of str
        The full names of the pages and of the members on them.
    """

    def __init__(self) -> None:
        full = [name.path for names in modules().values() for name in names]
        last = [path.rpartition(".")[2] for path in full]
        self._short = {
            name: path for name, path in zip(last, full, strict=True) if last.count(name) == 1
        }
        classes = set(owners().values())
        members = {f"{path}.{m.name}": f"{path}.{m.name}" for path in classes
                   for m in own_members(path)}  # fmt: skip
        for path in classes:
            for base, inherited in inherited_members(path).items():
                members |= {f"{path}.{m.name}": f"{base}.{m.name}" for m in inherited}
        self._full = {path: path for path in full} | members | {m: m for m in modules()}
        self.paths = frozenset(self._full.values())

    def find(self, target: str, where: str = "") -> str | None:
        """Return the full name of a target, none where the reference does not have it.

        Parameters
        ----------
        target : str
            A name as a docstring writes it: ``Cg``, ``KrylovSolver.solve``, ``update``.
        where : str
            The public name of the object with the docstring.
        """
        head, _, rest = target.partition(".")
        module = where.rpartition(".")[0]
        candidates = [target, f"wollemi.{target}", f"{where}.{target}", f"{module}.{target}"]
        if target.startswith("wl."):
            candidates.append(f"wollemi.{target.removeprefix('wl.')}")
        if head in self._short:
            candidates.append(".".join([self._short[head], *filter(None, [rest])]))
        return next((self._full[c] for c in candidates if c in self._full), None)


@cache
def places() -> Places:
    """Return where all names are documented, which takes a second the first time."""
    return Places()
