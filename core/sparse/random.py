"""Random matrices, generated on their executor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..capture import MAKES
from ..dtypes import held_dtype, index_dtype, is_complex, is_exact, requested_dtype
from ..errors import InvalidArgument
from ..formats.csr import Csr
from ..formats.given import checked_shape, place
from ..formats.rowwise import known_canonical
from ..operands import native
from .given import finished, without_home

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ..executor import Array, Executor

#: If there are at most this number of positions per entry, all positions get a random key, and the
#: positions with the smallest keys are chosen.
_KEYS = 4


def random(
    m: int,
    n: int,
    density: float = 0.01,
    format: str = "coo",
    dtype: DTypeLike | None = None,
    rng: Any = None,
    data_rvs: Callable[[int], Any] | None = None,
    *,
    executor: Executor | str | None = None,
) -> Any:
    """Return a matrix with entries at random positions.

    Parameters
    ----------
    m, n : int
        Rows and columns.
    density : float
        The fraction of positions with an entry, between 0 and 1.
    format : str
        The format of the result.
    dtype : dtype, optional
        Dtype of the entries; float64 by default.
    rng : int, numpy.random.Generator or generator of the executor, optional
        The seed, or the generator of the random numbers. On a device, a NumPy generator provides
        the seed. Different executors generate different numbers from the same seed.
    data_rvs : callable, optional
        Returns the requested number of values. By default values are uniform: from 0 to 1, or
        integers over the range of their dtype.
    executor : Executor or str, optional
        Executor of the matrix; the default executor by default.

    Returns
    -------
    Matrix, shape (m, n)

    Raises
    ------
    InvalidArgument
        If the density is not between 0 and 1.

    Examples
    --------
    >>> import wollemi as wl
    >>> A = wl.sparse.random(100, 50, density=0.1, rng=1, format="csr")
    >>> A.shape, A.nnz
    ((100, 50), 500)
    """
    shape, where = checked_shape((m, n)), place(executor)
    where.refuse_capture(MAKES)
    if not 0 <= density <= 1:
        raise InvalidArgument(f"density: expected a number between 0 and 1, got {density!r}")
    positions = shape[0] * shape[1]
    if positions > 1 << 53:
        raise InvalidArgument(f"random: a matrix of shape {shape} has more positions than 2**53")
    held = np.dtype(np.float64) if dtype is None else requested_dtype(dtype, held_dtype)
    generator = _generator(where, rng)
    count = round(density * positions)
    chosen = _distinct(where, generator, positions, count)
    index = index_dtype(max(*shape, count))
    width, xp = max(shape[1], 1), where.xp
    indptr = xp.searchsorted(chosen // width, xp.arange(shape[0] + 1)).astype(index)
    data = _values(where, generator, count, held) if data_rvs is None else data_rvs(count)
    data = where.copy(native(where, data, "data_rvs").astype(held, copy=False))
    if tuple(data.shape) != (count,):
        raise InvalidArgument(
            f"data_rvs({count}): expected {count} values, got shape {tuple(data.shape)}"
        )
    columns = (chosen % width).astype(index)
    made = known_canonical(Csr._from_arrays(where, shape, data, columns, indptr))
    return without_home(finished(made, format), executor)


def _generator(where: Executor, rng: Any) -> Any:
    """Return a random generator of the executor."""
    own = getattr(where.xp.random, "Generator", None)
    if own is not None and isinstance(rng, own):
        return rng
    if isinstance(rng, np.random.RandomState):
        rng = int(rng.randint(1 << 31))
    if isinstance(rng, np.random.Generator):
        rng = int(rng.integers(1 << 62))
    if rng is not None and not isinstance(rng, (int, np.integer)):
        raise InvalidArgument(
            f"rng: expected a seed or a generator of NumPy's or of {where.name}'s, got {rng!r}"
        )
    return where.xp.random.default_rng(rng)


def _drawn(where: Executor, generator: Any, count: int) -> Array:
    """Return uniform random numbers between 0 and 1 on the executor."""
    numbers = generator.random(count)
    return numbers if where.owns(numbers) else where.from_host(numbers)


def _distinct(where: Executor, generator: Any, positions: int, count: int) -> Array:
    """Return ``count`` distinct numbers below ``positions``; all sets are equally likely."""
    xp = where.xp
    if positions <= _KEYS * count or count == 0:
        keys = _drawn(where, generator, positions)
        return xp.sort(xp.argsort(keys)[:count])
    chosen = xp.zeros(0, np.int64)
    while chosen.size < count:
        missing = count - int(chosen.size)
        more = (_drawn(where, generator, missing + missing // 2 + 8) * positions).astype(np.int64)
        chosen = xp.unique(xp.concatenate([chosen, xp.minimum(more, positions - 1)]))
    kept = xp.argsort(_drawn(where, generator, int(chosen.size)))[:count]
    return xp.sort(chosen[kept])


def _values(where: Executor, generator: Any, count: int, dtype: np.dtype[Any]) -> Array:
    if is_exact(dtype):
        if dtype == np.bool_:
            return where.xp.ones(count, np.bool_)
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        span = float(high) - float(low)
        scaled = _drawn(where, generator, count) * span + float(low)
        return where.xp.clip(scaled, float(low), float(high) * (1 - 2.0**-52)).astype(dtype)
    values = _drawn(where, generator, count)
    if is_complex(dtype):
        return values + 1j * _drawn(where, generator, count)
    return values
