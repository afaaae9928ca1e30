"""Docstrings and signatures as the reference shows them: an extension of Sphinx.

Roles such as ``:class:`Cg``` are links to the public name, or code where there is none. A class
that is called through its metaclass is shown with the parameters of its ``__init__``.
"""

from __future__ import annotations

import inspect
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .names import Places, places

if TYPE_CHECKING:
    from sphinx.application import Sphinx

#: The sections that list parameters.
SECTION = re.compile(
    r"(?:^|\n)(?:Parameters|Other Parameters|Attributes)\n-+\n(.*?)(?=\n\n?[A-Z][\w ]+\n-{3,}|\Z)",
    re.DOTALL,
)
ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):`(?P<short>~?)(?P<target>[^`]+)`")


def linked(text: str, where: str, known: Places) -> str:
    """Return a docstring with links to public names in place of the roles.

    Parameters
    ----------
    text : str
        A docstring.
    where : str
        The public name that it belongs to.
    known : Places
        The pages of the names.
    """

    def link(match: re.Match[str]) -> str:
        target = match["target"].removeprefix(".").removesuffix("()")
        place = known.find(target, where)
        shown = target.rpartition(".")[2] if match["short"] else target
        return f":py:obj:`{shown} <{place}>`" if place else f"``{shown}``"

    parts = ROLE.sub(link, text).split("``")
    # a star that opens no emphasis: shape (*batch_shape, n)
    parts[::2] = [re.sub(r"\(\*(?=\w)", r"(\\*", part) for part in parts[::2]]
    return "``".join(parts)


def signature_of(value: Any) -> inspect.Signature | None:
    """Return the signature that a user writes, without annotations and without ``self``.

    Parameters
    ----------
    value : object
        A class, a function or a method.
    """
    try:
        signature = inspect.signature(value)
        if isinstance(value, type) and _takes_anything(signature):
            own = type.__getattribute__(value, "__init__")
            signature = inspect.Signature() if own is object.__init__ else inspect.signature(own)
    except (TypeError, ValueError):
        return None
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for name, parameter in signature.parameters.items()
        if name not in ("self", "cls")
    ]
    return inspect.Signature(parameters)


def _takes_anything(signature: inspect.Signature) -> bool:
    kinds = {parameter.kind for name, parameter in signature.parameters.items() if name != "self"}
    return kinds <= {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


@cache
def shared_parameters() -> dict[str, tuple[str, str]]:
    """Return the type and the meaning of each entry of ``parameters.toml``."""
    entries = tomllib.loads(Path(__file__).with_name("parameters.toml").read_text())
    split = {name: text.split("|", 1) for name, text in entries.items()}
    return {name: (kind, meaning) for name, (kind, meaning) in split.items()}


def described(text: str) -> set[str]:
    """Return the parameters that a docstring lists or names.

    Parameters
    ----------
    text : str
        The docstring.
    """
    names = set(re.findall(r"``\*{0,2}(\w+)``", text))
    for section in SECTION.findall(text):
        for line in section.splitlines():
            if line and not line.startswith(" "):
                names |= {name.strip().lstrip("*") for name in line.split(" : ")[0].split(",")}
    return names


def missing_parameters(value: Any) -> list[str]:
    """Return the parameters of a class or function that its docstring does not describe.

    Parameters
    ----------
    value : object
        A class, function or method.
    """
    signature = signature_of(value)
    known = described(inspect.getdoc(value) or "")
    return [name for name in signature.parameters if name not in known] if signature else []


def completed(text: str, path: str, value: Any) -> str:
    """Return a docstring with the shared parameters that it does not describe.

    Parameters
    ----------
    text : str
        The docstring.
    path : str
        The public name of the object.
    value : object
        The class, function or method.
    """
    end = ".".join(path.split(".")[-2:])
    shared = shared_parameters()
    entries = []
    for name in missing_parameters(value):
        entry = shared.get(f"{end}.{name}") or shared.get(name)
        if entry is not None:
            entries += [f"{name} : {entry[0]}", f"    {entry[1]}"]
    if not entries:
        return text
    heading = "Parameters\n----------\n"
    added = "\n".join(entries)
    if f"\n{heading}" in text:
        before, _, after = text.partition(f"\n{heading}")
        return f"{before}\n{heading}{added}\n{after}"
    before, line, after = text.partition("\n\n")
    return f"{before}\n\n{heading}{added}{line}{after}"


def _on_docstring(
    app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    text = "\n".join(lines)
    if what in ("class", "function", "method"):
        text = completed(text, name, value)
    lines[:] = linked(text, name, places()).split("\n")


def _on_signature(
    app: Sphinx, what: str, name: str, value: Any, options: Any, text: str, returned: str
) -> tuple[str, str] | None:
    if what != "class":
        return None
    signature = signature_of(value)
    return None if signature is None else (str(signature), "")


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the two changes, before numpydoc reads the text."""
    app.connect("autodoc-process-docstring", _on_docstring, priority=10)
    app.connect("autodoc-process-signature", _on_signature, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
