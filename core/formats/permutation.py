"""Permutations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike

from ..assembled import Assembled
from ..dtypes import index_dtype, requested_dtype
from ..errors import InvalidMatrix
from ..linop import FACTS
from ..operands import to_host
from ..operations import vector
from ..registry import executor as executor_by_name
from . import validate
from .csr import Csr
from .given import homeless, owned_array, place

if TYPE_CHECKING:
    from ..executor import Array, Executor
    from .csr import Csr


class Permutation(Assembled):
    """The operator that permutes rows: ``(P @ x)[i] == x[indices[i]]``, like ``x[indices]``.

    Parameters
    ----------
    indices : array of int, shape (n,)
        Each of ``0..n-1`` exactly once.
    dtype, executor
        As for :class:`Csr`.

    Raises
    ------
    InvalidMatrix
        If an index is missing; the message names it.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> wl.Permutation([2, 0, 1]) @ np.array([10.0, 20.0, 30.0])
    array([30., 10., 20.])
    """

    indices: Array

    _has_entries = True
    _is_light = True
    _fixed_attributes: ClassVar[dict[str, str]] = FACTS | {
        "indices": "make a new wl.Permutation(indices)"
    }

    def __init__(
        self,
        indices: Any,
        *,
        dtype: DTypeLike = np.float32,
        executor: Executor | str | None = None,
    ) -> None:
        where = place(executor, indices)
        there = _checked_there(where, indices)
        checked = _checked(to_host(indices)) if there is None else there
        n = int(checked.size)
        self.shape = (n, n)
        self.dtype = requested_dtype(dtype)
        self.executor = where
        self.indices = owned_array(where, checked, indices) if there is None else there
        self._follows = homeless(executor, indices)

    def _entries(self) -> Csr:
        indices = np.asarray(self.executor.to_host(self.indices))
        starts = np.arange(indices.size + 1, dtype=indices.dtype)
        arrays = (np.ones(indices.size, self.dtype), indices, starts)
        return Csr(arrays, self.shape, executor=self.executor)._following(self)

    @property
    def index_dtype(self) -> np.dtype[Any]:
        """The dtype of the indices."""
        return np.dtype(self.indices.dtype)

    def _remade(self, indices: Any, dtype: DTypeLike, executor: Executor) -> Self:
        result = type(self).__new__(type(self))
        result.shape, result.dtype, result.executor = self.shape, requested_dtype(dtype), executor
        result.indices = indices
        result._follows = self._follows and executor is self.executor
        return result

    def _apply(self, x: Array, y: Array, alpha: complex, beta: complex) -> None:
        self.executor.run(vector.gather, self.indices, x, y, alpha, beta)

    @property
    def T(self) -> Self:
        """The inverse."""
        host = self.executor.to_host(self.indices)
        inverse = np.empty_like(host)
        inverse[host] = np.arange(host.size, dtype=host.dtype)
        return self._remade(self.executor.from_host(inverse), self.dtype, self.executor)

    @property
    def H(self) -> Self:
        """The inverse."""
        return self.T

    def to(self, executor: Executor | str) -> Self:
        """Return this permutation on another executor; itself if it is there already."""
        target = executor_by_name(executor)
        if target == self.executor:
            return self
        indices = target.brought(self.executor, self.indices)
        return self._remade(indices, self.dtype, target)

    def astype(self, dtype: DTypeLike) -> Self:
        """Return this permutation for vectors of ``dtype``; itself if it has that dtype."""
        if requested_dtype(dtype) == self.dtype:
            return self
        return self._remade(self.indices, dtype, self.executor)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "indices": np.asarray(self.executor.to_host(self.indices)),
            "dtype": self.dtype,
            "executor": self.executor.name,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


def _checked(host: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a host array as the indices of a permutation.

    Raises
    ------
    InvalidMatrix
        If it is not a permutation.
    """
    n = int(np.size(host))
    checked = validate.indices(host, n, "indices")
    missing = np.flatnonzero(np.bincount(checked, minlength=n) == 0) if n else checked
    if missing.size:
        raise InvalidMatrix(f"indices: not a permutation, {missing[0]} does not occur")
    (result,) = validate.of_one_dtype(n, checked)
    return result


def _checked_there(executor: Executor, indices: Any) -> Array | None:
    """Return a copy of a device array that is a permutation; otherwise None.

    In that case the host finds the error.
    """
    xp = executor.xp
    if xp is np or not executor.owns(indices) or indices.ndim != 1 or indices.size == 0:
        return None
    n = int(indices.size)
    if indices.dtype.kind not in "iu" or int(xp.min(indices)) < 0 or int(xp.max(indices)) >= n:
        return None
    seen = xp.zeros(n, np.bool_)
    seen[indices] = True
    if not bool(xp.all(seen)):
        return None
    return indices.astype(index_dtype(n, indices.dtype))
