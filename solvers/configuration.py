"""Create solvers from dictionaries and files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.errors import InvalidArgument
from ..core.settings import Settings
from ..core.stopping import criterion
from ..core.suggest import hint
from .direct import Direct
from .krylov.base import KrylovSolver
from .preconditioners import BY_NAME as PRECONDITIONERS
from .preconditioners.names import present_name
from .registry import LEAST_SQUARES, SOLVERS


def from_settings(found: Mapping[str, Any]) -> Settings:
    """Return the settings that a dictionary describes, such as one of :meth:`Settings.to_dict`.

    Parameters
    ----------
    found : mapping
        ``{"solver": name, option: value, ...}``. ``M`` may be a name, or a dictionary with the key
        ``"preconditioner"`` or ``"solver"``; ``stop`` is a dictionary for
        :func:`wollemi.stop.criterion`.

    Returns
    -------
    Settings
        The settings; ``.on(A)`` creates the solver.

    Raises
    ------
    InvalidArgument
        If the name or an option is unknown.

    Examples
    --------
    >>> import wollemi as wl
    >>> wl.solvers.from_settings({"solver": "cg", "rtol": 1e-8, "M": {"preconditioner": "jacobi"}})
    Cg(rtol=1e-08, M=Jacobi())
    """
    return _settings("solver", found)


def read_settings(path: str | Path) -> Settings:
    """Return the settings of a solver in a JSON file; see :func:`from_settings`.

    Raises
    ------
    InvalidArgument
        If the file does not exist, or does not describe a solver; the message has the position.
    """
    try:
        settings = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidArgument(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidArgument(f"{path}: not a text in UTF-8") from None
    except json.JSONDecodeError as error:
        raise InvalidArgument(
            f"{path}, line {error.lineno}, column {error.colno}: not JSON: {error.msg}"
        ) from None
    try:
        return from_settings(settings)
    except InvalidArgument as error:
        raise InvalidArgument(f"{path}: {error}") from None


def _settings(role: str, settings: Any) -> Settings:
    if not isinstance(settings, Mapping) or role not in settings:
        raise InvalidArgument(f'expected a dictionary with the key "{role}", got {settings!r}')
    kinds: tuple[Mapping[str, type], ...] = (PRECONDITIONERS,)
    if role == KrylovSolver.ROLE:
        kinds = ({"direct": Direct}, SOLVERS, LEAST_SQUARES)
    options = dict(settings)
    name = options.pop(role)
    if role == "preconditioner" and isinstance(name, str):
        name = present_name(name)
    named = [known for known in kinds if isinstance(name, str) and name in known]
    if not named:
        names = [name for known in kinds for name in known]
        near = hint(name, names) if isinstance(name, str) else ""
        raise InvalidArgument(
            f"no {role} is called {name!r}; {near}known: {', '.join(names)}; a class of your own "
            f"is known after wl.{role}s.register(Class), or by an entry point of its package"
        )
    return Settings(named[0][name], {key: _option(key, value) for key, value in options.items()})


def _option(name: str, value: Any) -> Any:
    if name == "stop" and value is not None:
        return criterion(value)
    if isinstance(value, Mapping):
        return _settings("solver" if "solver" in value else "preconditioner", value)
    if isinstance(value, list):
        return [_option(name, item) for item in value]
    return value
