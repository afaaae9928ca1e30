"""Verdicts on the systems of a batch; on a device they stay there until they are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..wording import counted

if TYPE_CHECKING:
    from ..executor import Array, Executor

Numbers = np.ndarray[Any, Any]

#: The code of a system that must be solved on its own.
UNDECIDED = 255

#: The dtype of each array, and the value for a system without a verdict.
FIELDS: Mapping[str, tuple[Any, Any]] = {
    "codes": (np.uint8, UNDECIDED),
    "iterations": (np.int64, 0),
    "norms": (np.float64, np.nan),
    "thresholds": (np.float64, np.nan),
}


class Verdicts:
    """One verdict for each solve of a batch.

    Initially all solves are undecided. An executor writes to the arrays, or passes its own arrays.
    Each of these is copied to the host when it is first read.

    Parameters
    ----------
    count : int
        Number of solves.

    Attributes
    ----------
    codes : array of uint8, shape (count,)
        Stop codes of the solves, ``Stop(code)``, or UNDECIDED.
    iterations : array of int64, shape (count,)
        Iterations of each solve.
    norms, thresholds : arrays of float64, shape (count,)
        Norms of the true residuals, and their thresholds.

    Examples
    --------
    >>> from wollemi.core.batch.verdicts import Verdicts
    >>> verdicts = Verdicts(2)
    >>> verdicts.codes[0] = 1
    >>> verdicts.undecided.tolist()
    [1]
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._host: dict[str, Numbers] = {}
        self._native: dict[str, Array] = {}
        self._executor: Executor | None = None
        self._all_decided = False

    def __repr__(self) -> str:
        return f"<verdicts on {counted(self.count, 'solve')}>"

    @property
    def codes(self) -> Numbers:
        """Stop codes of the solves, or UNDECIDED."""
        return self._read("codes")

    @property
    def iterations(self) -> Numbers:
        """Iterations of each solve."""
        return self._read("iterations")

    @property
    def norms(self) -> Numbers:
        """Norms of the true residuals."""
        return self._read("norms")

    @property
    def thresholds(self) -> Numbers:
        """Thresholds of the residual norms."""
        return self._read("thresholds")

    @property
    def undecided(self) -> Numbers:
        """The numbers of the solves without a verdict."""
        if self._all_decided:
            return np.empty(0, np.int64)
        return np.flatnonzero(self.codes == UNDECIDED)

    def hold(self, executor: Executor, arrays: Mapping[str, Array], undecided: int) -> None:
        """Replace the host arrays by arrays of an executor.

        Parameters
        ----------
        executor : Executor
            The executor of the arrays; all work on them must be complete.
        arrays : mapping of str to array
            The arrays by the names of the attributes.
        undecided : int
            Number of systems without a verdict.
        """
        self._executor, self._native = executor, dict(arrays)
        self._host.clear()
        self._all_decided = undecided == 0

    def _read(self, name: str) -> Numbers:
        if name not in self._host:
            if name in self._native:
                assert self._executor is not None
                self._host[name] = self._executor.transfer(self._native.pop(name)).read()[0]
            else:
                dtype, none = FIELDS[name]
                self._host[name] = np.full(self.count, none, dtype)
        return self._host[name]

    def take(self, rows: Numbers, other: Verdicts) -> None:
        """Store the verdicts of some solves in the memory that holds the arrays."""
        on = self._executor
        places = on.from_host(rows) if on is not None and self._native else None
        for name in FIELDS:
            values = other._read(name)
            if name in self._native:
                assert on is not None
                self._native[name][places] = on.from_host(values)
            else:
                self._read(name)[rows] = values

    def __getstate__(self) -> dict[str, Any]:
        host = {name: self._read(name) for name in FIELDS}
        plain: dict[str, Any] = {"_native": {}, "_executor": None, "_host": host}
        return {**self.__dict__, **plain}
