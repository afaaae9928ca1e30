"""Preconditioners by name, as in ``M="jacobi"`` and in settings files."""

from __future__ import annotations

import ast
from collections import ChainMap
from typing import TYPE_CHECKING, Any, cast

from ...core.deprecation import register_deprecation
from ...core.errors import InvalidArgument
from ...core.linop import LinOp
from ...core.settings import Configurable, Settings
from ...core.suggest import hint
from .. import third_party
from ..direct import Direct
from ..registry import OWN_PRECONDITIONERS

if TYPE_CHECKING:
    from .base import Preconditioner

#: Former names that warn: the current name of each, and the warning.
_RENAMED = {
    "sequence": (
        "multiplicative",
        register_deprecation("the name 'sequence'", "0.3", "0.5", "'multiplicative'"),
    )
}

#: The counterparts of PyAMG's smoothers, by the words in their names.
_OF_PYAMG = {
    "block_gauss_seidel": "'blockjacobi' computes a block of rows at once",
    "block_jacobi": "'blockjacobi'",
    "gauss_seidel": "'sor' is a forward sweep, 'ssor' a forward and a backward one",
    "richardson": "'jacobi' scales by the diagonal, 'chebyshev' by bounds of the spectrum",
    "sor": "'sor:omega=1.2'",
}

#: The direct solver: it is no class of preconditioners, but serves as one.
DIRECT = "direct"

#: The preconditioners of the package, and of other packages.
BY_NAME: ChainMap[str, type[Preconditioner]] = ChainMap(
    cast(Any, OWN_PRECONDITIONERS), cast(Any, third_party.PRECONDITIONERS)
)


def preconditioner(M: Any, A: LinOp) -> Any:
    """Return the preconditioner for ``A`` that ``M`` describes.

    Parameters
    ----------
    M : str, type, Settings or other
        A name, with options after a colon (``"ilu:level=1,order=rcm"``; a value that contains
        commas in parentheses: ``"amg:smoother=(ilu:level=1,order=rcm),cycle=W"``), the class of a
        preconditioner or a solver, or settings. Other objects are returned as they are; ``"none"``
        gives None.
    A : LinOp
        The operator.

    Raises
    ------
    InvalidArgument
        If the name or an option is unknown.
    """
    M = described(M)
    return M.on(A) if isinstance(M, Settings) else M


def described(M: Any) -> Any:
    """Return settings for a name or a class, None for ``"none"``; other objects as they are."""
    if isinstance(M, str):
        return parsed(M)
    return Settings(M, {}) if isinstance(M, Configurable) else M


def present_name(name: str) -> str:
    """Return the current name of a preconditioner, and warn if the given one is outdated."""
    if name in _RENAMED:
        name, entry = _RENAMED[name]
        entry.warn(stacklevel=4)
    return name


def parsed(text: str) -> Settings | None:
    """Return the settings of ``"name"`` or ``"name:option=value,option=value"``."""
    name, _, rest = text.partition(":")
    name = present_name(name.lower())
    if name == "none" and not rest:
        return None
    if name == DIRECT:
        return Settings(Direct, options_in(rest))
    if name not in BY_NAME:
        known = ["none", DIRECT, *sorted(BY_NAME)]
        unknown = InvalidArgument(
            f"no preconditioner is called {name!r}; {_of_pyamg(name) or hint(name, known)}known: "
            f"{', '.join(known)}"
        )
        # the command line omits notes: it has no classes to register
        unknown.add_note("One of your own has a name after wl.preconditioners.register(cls)")
        raise unknown
    return Settings(BY_NAME[name], options_in(rest))


def _of_pyamg(name: str) -> str:
    """Return the hint for the name of one of PyAMG's smoothers, or ""."""
    hints = (f"PyAMG's {known}: {ours}; " for known, ours in _OF_PYAMG.items() if known in name)
    return next(hints, "")


def options_in(text: str, argument: str = "M") -> dict[str, Any]:
    """Return the options of ``"option=value,option=value"``; errors name the argument.

    Commas within parentheses belong to a value: ``"smoother=(ilu:level=1,order=rcm),cycle=W"``.

    Raises
    ------
    InvalidArgument
        If a part has no ``=``, or a parenthesis is not closed.

    Examples
    --------
    >>> options_in("smoother=(ilu:level=1,order=rcm),sweeps=(1, 2)")
    {'smoother': 'ilu:level=1,order=rcm', 'sweeps': (1, 2)}
    """
    options = {}
    for part in filter(None, map(str.strip, _parts(text, argument))):
        key, equals, value = part.partition("=")
        if not equals:
            raise InvalidArgument(
                f"{argument}: expected option=value after the colon, got {part!r}"
            )
        options[key.strip()] = _value(value.strip())
    return options


def _parts(text: str, argument: str) -> list[str]:
    """Return the parts of a text between commas outside of parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            break
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    if depth:
        raise InvalidArgument(f"{argument}: expected as many ')' as '(', got {text!r}")
    return parts


def _value(text: str) -> Any:
    """Return the value of a Python number, boolean, tuple or None, else the text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text[1:-1] if text.startswith("(") and text.endswith(")") else text
