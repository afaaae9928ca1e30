"""Solvers that have no recorded solves: the host takes part in each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ...core.equivalents import OF_SOLVERS
from ...core.suggest import NamesReplacements


class Unrecorded(NamesReplacements):
    """A solver that names the methods to record where it is asked for ``recorded``."""

    _replacements: ClassVar[Mapping[str, str]] = OF_SOLVERS
