"""The extension of Griffe that rewrites docstrings for the reference of the site."""

from __future__ import annotations

from typing import Any

import griffe

from .docstrings import linked, public_names, separated, signature_of


class Docstrings(griffe.Extension):
    """Rewrite each docstring when Griffe has read it."""

    def __init__(self) -> None:
        self._places = public_names()

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is None:
            return
        text = obj.docstring.value
        if "\nParameters\n" in text:
            text = separated(text, signature_of(obj.path))
        obj.docstring.value = linked(text, self._places)
