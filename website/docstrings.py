"""Docstrings as Griffe, which reads them for the reference of the site, needs them.

Griffe gives all names of one entry, ``rtol, atol, maxiter``, the type and the default of the first,
calls options ``required`` that a solver hands on to its base, and takes the roles of Sphinx for
text. Here each name has an entry of its own with the default of the signature that Python shows,
and a role is a link to the public name that it means, or code where there is none or more than one.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Mapping
from typing import Any

from tests.api.record import MODULES, names_of, public_module

#: ``A, b : LinOp`` at the margin; names alone are an entry without a type.
ENTRY = re.compile(r"(?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)*)(?:\s*:\s*(?P<type>.*))?")
ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):`~?(?P<target>[^`]+)`")


def separated(text: str, signature: Mapping[str, inspect.Parameter]) -> str:
    r"""Return a docstring with an entry for each parameter, and their defaults.

    Parameters
    ----------
    text : str
        A docstring, without the indentation of its source.
    signature : mapping
        The parameters that Python shows, by name.

    Examples
    --------
    >>> def f(a, b=1): ...
    >>> text = "Parameters\n----------\na, b : int\n    Lengths."
    >>> separated(text, inspect.signature(f).parameters).splitlines()[2:]
    ['a : int', '    Lengths.', 'b : int, default: 1', '    Lengths.']
    """
    lines = text.splitlines()
    out: list[str] = []
    section = ""
    i = 0
    while i < len(lines):
        if i + 1 < len(lines) and lines[i] and re.fullmatch(r"-{3,}", lines[i + 1].strip()):
            section = lines[i].strip()
        entry = ENTRY.fullmatch(lines[i]) if section == "Parameters" else None
        i += 1
        if entry is None or lines[i - 1] == section:
            out.append(lines[i - 1])
            continue
        end = i
        while end < len(lines) and (lines[end].startswith(" ") or not lines[end]):
            end += 1
        about = lines[i:end]
        while about and not about[-1]:
            about.pop()
        for name in entry["names"].split(", "):
            out += [_entry(name, entry["type"], signature.get(name)), *about]
        out += lines[i + len(about) : end]
        i = end
    return "\n".join(out)


def _entry(name: str, kind: str | None, parameter: inspect.Parameter | None) -> str:
    """Return the line that says a parameter's name, its type and its default."""
    if kind is None and parameter is not None and isinstance(parameter.annotation, str):
        kind = parameter.annotation
    if kind is None:
        return name
    kind = re.sub(r"^\{(.*?)\}", r"one of \1", kind)  # Griffe calls the first choice the default
    default = inspect.Parameter.empty if parameter is None else parameter.default
    plain = default is None or isinstance(default, (bool, int, float, str, tuple))
    return f"{name} : {kind}, default: {default!r}" if plain else f"{name} : {kind}"


def signature_of(place: str) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a class or function by its path, none where Python shows none."""
    parts = place.split(".")
    value: Any = None
    for i in range(len(parts) - 1, 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:i]))
        except ImportError:
            continue
        for part in parts[i:]:
            value = getattr(value, part, None)
        break
    try:
        return inspect.signature(value).parameters
    except (TypeError, ValueError):
        return {}


def public_names() -> dict[str, str]:
    """Return where the site has each name, by its last part and in full.

    A name that more than one module has is there in full only.
    """
    full = [f"{module}.{name}" for module in MODULES for name in names_of(public_module(module))]
    last = [place.rpartition(".")[2] for place in full]
    short = {name: place for name, place in zip(last, full, strict=True) if last.count(name) == 1}
    return short | {place: place for place in full}


def linked(text: str, places: dict[str, str]) -> str:
    """Return a docstring with links in place of the roles of Sphinx.

    Parameters
    ----------
    text : str
        A docstring.
    The path of each name on the site, as of :func:`public_names`.
        Where the site has each name, as of :func:`public_names`.

    Examples
    --------
    >>> linked("As :class:`Cg`; see :meth:`update`.", {"Cg": "wollemi.solvers.Cg"})
    'As [`Cg`][wollemi.solvers.Cg]; see `update`.'
    """

    def link(match: re.Match[str]) -> str:
        target = match["target"]
        place = places.get(target)
        shown = target.removeprefix(".")
        return f"[`{shown}`][{place}]" if place else f"`{shown}`"

    return ROLE.sub(link, text)
