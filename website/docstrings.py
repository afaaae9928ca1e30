"""Docstrings and signatures as the reference shows them: an extension of Sphinx.

Roles such as ``:class:`Cg``` are links to the public name, or code where there is none. A class
that is called through its metaclass is shown with the parameters of its ``__init__``.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

from .names import Places, places

if TYPE_CHECKING:
    from sphinx.application import Sphinx

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
    function = type.__getattribute__(value, "__init__") if isinstance(value, type) else value
    try:
        signature = inspect.signature(function)
        if isinstance(value, type) and _takes_anything(signature):
            signature = inspect.signature(value)
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


def _on_docstring(
    app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    lines[:] = linked("\n".join(lines), name, places()).split("\n")


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
