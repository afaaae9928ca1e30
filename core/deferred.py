"""Public names that are imported from their modules at the first use (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def deferred_names(
    package: str, sources: Mapping[str, str], others: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package that defers imports of its names.

    Parameters
    ----------
    package : str
        ``__name__`` of the package.
    sources : mapping
        For each module, relative to the package, its names separated by blanks. A name may be a
        submodule; ``""`` is the package itself.
    others : sequence of str
        Submodules that users may look for as names of the package.

    Notes
    -----
    Type checkers and editors do not run this code: the package imports the same names under
    ``if TYPE_CHECKING``. A test compares both lists.

    Examples
    --------
    In the ``__init__.py`` of a package::

        __getattr__, __dir__ = deferred_names(__name__, {"core.formats": "Coo Csr"})
    """
    source_of = {name: module for module, names in sources.items() for name in names.split()}

    def __getattr__(name: str) -> Any:
        if name not in source_of:
            from .suggest import no_attribute

            places = [f"{package}.{other}" for other in others]
            raise no_attribute(sys.modules[package], name, source_of, places)
        source = f"{package}.{source_of[name]}" if source_of[name] else package
        module = import_module(source)
        is_submodule = name not in vars(module)
        value = import_module(f"{source}.{name}") if is_submodule else vars(module)[name]
        vars(sys.modules[package])[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *source_of})

    return __getattr__, __dir__
