"""The reference: a page for each public class and function, and summary tables.

Sphinx takes signatures and docstrings from the code. The pages here list their contents:
the object, its methods, its inherited methods, and the pages and programs that use it.
"""

from __future__ import annotations

import inspect
import re
from functools import cache
from pathlib import Path

from .docstrings import linked, signature_of
from .gallery import examples, title_of
from .menu import OF_REFERENCE
from .names import (
    Member,
    Name,
    inherited_members,
    missing_modules,
    modules,
    own_members,
    owners,
    places,
)
from .places import PAGES, ROOT

#: The headings of the tables of a module, by kind.
KINDS = {
    "class": "Classes",
    "function": "Functions",
    "exception": "Exceptions",
    "data": "Constants",
}


def page_of(path: str) -> str:
    """Return the path of the page of a public name, without the suffix."""
    return f"reference/{path}"


def pages() -> dict[str, str]:
    """Return the text of each page of the reference, by its path without the suffix."""
    made = {"reference/index": _index()}
    for module, names in modules().items():
        made[page_of(module)] = _module_page(module, names)
        made |= {page_of(name.path): _page(name) for name in names}
    return made


def write_reference() -> None:
    """Write the pages into ``build/site/pages``."""
    folder = PAGES / "reference"
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in pages().items():
        (PAGES / f"{path}.rst").write_text(text)


def _heading(text: str, line: str = "=") -> str:
    return f"{text}\n{line * len(text)}"


def _table(rows: list[tuple[str, str]]) -> str:
    """Return a table of names and sentences."""
    lines = [".. list-table::", "   :class: summary", "   :widths: 35 65", ""]
    for name, about in rows:
        lines += [f"   * - {name}", f"     - {about or ' '}"]
    return "\n".join(lines)


def _toctree(entries: list[str], *options: str) -> str:
    shown = "\n   ".join(entries)
    return "\n   ".join([".. toctree::", ":hidden:", *options, "", shown])


def _index() -> str:
    rows = [(f":doc:`{module} </{page_of(module)}>`", _about(module)) for module in modules()]
    parts = [
        _heading("Reference"),
        "Every public class and function, a page each. ``wl`` is ``wollemi`` in all examples.",
        _table(rows),
        "See also :doc:`/docs/api`, the names by subject, :doc:`/docs/support-matrix`, the "
        "operations of each executor, and :ref:`genindex`.",
    ]
    if absent := missing_modules():
        listed = ", ".join(f"``{module}``" for module in absent)
        parts.append(f"These modules need packages that this site was made without: {listed}.")
    parts.append(_toctree([f"/{page}" for page in OF_REFERENCE], ":caption: Overview"))
    parts.append(_toctree([f"/{page_of(module)}" for module in modules()], ":caption: Modules"))
    return "\n\n".join(parts) + "\n"


def _about(module: str) -> str:
    text = inspect.getdoc(_module(module)) or ""
    return linked(" ".join(text.partition("\n\n")[0].split()), module, places())


def _module(name: str) -> object:
    from tests.api.record import public_module

    return public_module(name)


def _module_page(module: str, names: tuple[Name, ...]) -> str:
    parts = [_heading(module), f".. py:module:: {module}", _about(module)]
    for kind, title in KINDS.items():
        rows = [
            (f":py:obj:`{name.name} <{name.path}>`", linked(name.summary, name.path, places()))
            for name in names
            if name.kind == kind
        ]
        if rows:
            parts += [_heading(title, "-"), _table(rows)]
    parts.append(_toctree([f"{name.name} </{page_of(name.path)}>" for name in names]))
    return "\n\n".join(parts) + "\n"


def _page(name: Name) -> str:
    parts = [_heading(name.path), f".. py:currentmodule:: {name.module}"]
    path = owners().get(name.value, name.path) if isinstance(name.value, type) else name.path
    if path != name.path:
        parts.append(f"Another name of :py:class:`{path}`, which has the documentation.")
        return "\n\n".join(["", *parts]) + "\n"
    directive = {"class": "class", "exception": "exception", "function": "function"}.get(name.kind)
    if directive:
        parts.append(f".. auto{directive}:: {name.path}")
    else:
        parts.append(f".. py:data:: {name.path}\n\n   {type(name.value).__name__}")
    parts.append(_uses(name))
    if isinstance(name.value, type):
        parts += _class_parts(name)
    return "\n\n".join(part for part in parts if part) + "\n"


def _class_parts(name: Name) -> list[str]:
    own = own_members(name.path)
    parts = []
    for kind, title in (("method", "Methods"), ("property", "Properties")):
        members = [member for member in own if member.kind == kind]
        if members:
            parts += [_heading(title, "-"), _table([_row(name.path, m) for m in members])]
    for base, inherited in inherited_members(name.path).items():
        parts += [
            _heading(f"Inherited from {base.rpartition('.')[2]}", "-"),
            _table([_row(base, member) for member in inherited]),
        ]
    if own:
        parts.append(_heading("Details", "-"))
        directives = {"method": "automethod", "property": "autoattribute"}
        parts += [
            f".. {directives[member.kind]}:: {name.path}.{member.name}"
            + ("\n   :no-value:" if member.kind == "property" else "")
            for member in own
        ]
    return parts


def _row(path: str, member: Member) -> tuple[str, str]:
    function = member.value
    if isinstance(function, (classmethod, staticmethod)):
        function = function.__func__
    signature = signature_of(function) if member.kind == "method" else None
    shown = member.name if signature is None else f"{member.name}({_short(signature)})"
    text = inspect.getdoc(member.value) or ""
    about = " ".join(text.partition("\n\n")[0].split())
    role = f":py:obj:`{shown} <{path}.{member.name}>`".replace("*", "\\*")
    return role, linked(about, path, places())


def _short(signature: inspect.Signature) -> str:
    """Return the names of the parameters, options as ``...``."""
    kinds = inspect.Parameter
    parameters = list(signature.parameters.values())
    names = [p.name for p in parameters if p.kind in (kinds.POSITIONAL_ONLY,
                                                      kinds.POSITIONAL_OR_KEYWORD)]  # fmt: skip
    more = len(parameters) > len(names)
    return ", ".join([*names, *["..."] * more])


@cache
def _texts() -> dict[str, tuple[str, str]]:
    """Return the title and the text of each page and program that may use a name."""
    found = {}
    for page in sorted((ROOT / "docs").glob("*.md")):
        if not page.name.startswith(("api", "design", "add-", "algorithms", "support")):
            text = page.read_text()
            found[f"/docs/{page.stem}"] = (text.partition("\n")[0].removeprefix("# "), text)
    for program in examples():
        found[f"/examples/{program.stem}"] = (title_of(program), Path(program).read_text())
    return found


def _uses(name: Name) -> str:
    """Return links to pages and programs that use a name, at most six."""
    short = name.path.removeprefix("wollemi.")
    pattern = re.compile(rf"\b(?:wl|wollemi)\.{re.escape(short)}\b")
    counts = {page: len(pattern.findall(text)) for page, (_, text) in _texts().items()}
    found = sorted((page for page in counts if counts[page]), key=lambda page: -counts[page])
    links = [f":doc:`{_texts()[page][0].replace('`', '')} <{page}>`" for page in found[:6]]
    return f".. rubric:: Used in\n\n{', '.join(links)}" if links else ""
