"""Preconditioners by name, as ``M="jacobi"`` and files of settings have them."""

from __future__ import annotations

import ast
from collections import ChainMap
from difflib import get_close_matches
from typing import Any, cast

from ...core.errors import InvalidArgument
from ...core.linop import LinOp
from ...core.settings import Settings
from .. import third_party
from .base import Preconditioner
from .block_jacobi import BlockJacobi
from .block_schwarz import BlockSchwarz
from .chebyshev import Chebyshev
from .composite import Additive, Sequence
from .ilu import Ic, Ilu
from .ilut import Ict, Ilut
from .isai import Fsai, Isai
from .jacobi import Jacobi
from .l1jacobi import L1Jacobi
from .multigrid import Amg, Multigrid
from .polynomial import Polynomial
from .schwarz import Schwarz
from .sor import Sor, Ssor

#: The values of ``M="..."`` that wollemi has.
OWN: dict[str, type[Preconditioner]] = {
    "jacobi": Jacobi,
    "blockjacobi": BlockJacobi,
    "blockschwarz": BlockSchwarz,
    "polynomial": Polynomial,
    "ilu": Ilu,
    "ic": Ic,
    "ilut": Ilut,
    "ict": Ict,
    "schwarz": Schwarz,
    "l1jacobi": L1Jacobi,
    "chebyshev": Chebyshev,
    "amg": Amg,
    "multigrid": Multigrid,
    "isai": Isai,
    "fsai": Fsai,
    "sor": Sor,
    "ssor": Ssor,
    "sequence": Sequence,
    "additive": Additive,
}

#: These, and the preconditioners of other packages.
BY_NAME: ChainMap[str, type[Preconditioner]] = ChainMap(OWN, cast(Any, third_party.PRECONDITIONERS))


def preconditioner(M: Any, A: LinOp) -> Any:
    """Return the preconditioner for ``A`` that ``M`` describes.

    Parameters
    ----------
    M : str, Settings or other
        A name, with options after a colon (``"ilu:level=1,order=rcm"``), or settings. Other objects
        are returned as they are; ``"none"`` gives None.
    A : LinOp
        The operator.

    Raises
    ------
    InvalidArgument
        If nothing has that name, or no such option.
    """
    if isinstance(M, str):
        M = parsed(M)
    if isinstance(M, Settings):
        return M.on(A)
    return M


def parsed(text: str) -> Settings | None:
    """Return the settings of ``"name"`` or ``"name:option=value,option=value"``."""
    name, _, rest = text.partition(":")
    name = name.lower()
    if name == "none" and not rest:
        return None
    if name not in BY_NAME:
        known = ["none", *BY_NAME]
        near = get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise InvalidArgument(
            f"no preconditioner is called {name!r}; {hint}known: {', '.join(known)}"
        )
    options = {}
    for part in filter(None, (part.strip() for part in rest.split(","))):
        key, equals, value = part.partition("=")
        if not equals:
            raise InvalidArgument(f"M: expected option=value after the colon, got {part!r}")
        options[key.strip()] = _value(value.strip())
    return Settings(BY_NAME[name], options)


def _value(text: str) -> Any:
    """Return a number, a boolean or None that is written as in Python, else the text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
