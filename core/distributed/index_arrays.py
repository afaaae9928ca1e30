"""Work on the index arrays of a member: by its device if they are long, else by NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..executor import Array, Executor

HostArray = np.ndarray[Any, Any]


def here(executor: Executor, array: Array) -> Any:
    """Return an index array of a member for work by :func:`namespace`.

    A long one stays on a device that has links of its own. Any other is NumPy's: a device compiles
    functions of arrays when it first meets them, which takes longer than a copy.
    """
    if isinstance(array, np.ndarray) or not keeps_whole(executor):
        return np.asarray(executor.to_host(array))
    on_host = getattr(executor, "plans_on_host", None)
    few = on_host is not None and on_host(int(array.size))
    return np.asarray(executor.to_host(array)) if few else array


def keeps_whole(executor: Executor) -> bool:
    """Return whether a member's rows stay one block, since its links are work on its device."""
    links = executor.links
    return links is not None and links.on_device and not links.alone


def namespace(executor: Executor, array: Any) -> Any:
    """Return NumPy for its arrays, else the functions of the executor's arrays."""
    return np if isinstance(array, np.ndarray) else executor.xp


def like(executor: Executor, array: Any, other: Any) -> Any:
    """Return an array where another one is: on the host or on the executor."""
    if isinstance(other, np.ndarray):
        return host(executor, array)
    return executor.from_host(array) if isinstance(array, np.ndarray) else array


def values_here(executor: Executor, data: Array) -> Any:
    """Return the values of a member where they are selected: on the host, or with :func:`here`."""
    return data if keeps_whole(executor) else host(executor, data)


def host(executor: Executor, array: Any) -> HostArray:
    """Return an array on the host."""
    return array if isinstance(array, np.ndarray) else np.asarray(executor.to_host(array))


def stacked(executor: Executor, before: Any, own: Any, after: Any) -> Any:
    """Return a member's own numbers between others, where its own are."""
    parts = [like(executor, part.astype(own.dtype, copy=False), own) for part in (before, after)]
    return namespace(executor, own).concatenate([parts[0], own, parts[1]])


def stored(executor: Executor, array: Any, dtype: np.dtype[Any]) -> Array:
    """Return an index array on the executor, in a dtype."""
    if isinstance(array, np.ndarray):
        return executor.from_host(np.ascontiguousarray(array, dtype))
    return array.astype(dtype, copy=False)


def numbered(executor: Executor, away: Any, others: Any, own: int, numbers: Any) -> HostArray:
    """Give ghosts numbers from ``own`` on, in rising order of their places.

    Parameters
    ----------
    away : array of int
        The entries with columns of other members.
    others : array of int
        The places of the columns of these entries.
    own : int
        Columns of the member.
    numbers : array of int, shape (entries,)
        Overwritten at these entries.

    Returns
    -------
    array
        The places of the ghosts, on the host.
    """
    if not others.size:
        return np.zeros(0, np.int64)
    xp = namespace(executor, numbers)
    ghosts, which = xp.unique(others, return_inverse=True)
    numbers[away] = (which + own).reshape(-1).astype(numbers.dtype, copy=False)
    return host(executor, ghosts).astype(np.int64)


def numbered_by_table(
    executor: Executor, found: Any, first: int, own: int, columns: int
) -> tuple[Any, Any]:
    """Give columns of the whole matrix new numbers: a member's own from 0 on, then its ghosts.

    Parameters
    ----------
    executor : Executor
        Of the member.
    found : array of int
        Columns of the whole matrix.
    first, own : int
        The first column of the member, and how many it has.
    columns : int
        Of the whole matrix.

    Returns
    -------
    numbers : array of int
        For each of ``found``.
    ghosts : array of int
        The columns of other members that occur, in rising order; where ``found`` is.
    """
    xp, kind = namespace(executor, found), found.dtype
    table = xp.zeros(columns, kind)
    table[found] = 1
    table[first : first + own] = 0
    ghosts = xp.flatnonzero(table)
    table[first : first + own] = xp.arange(own, dtype=kind)
    if ghosts.size:
        table[ghosts] = xp.arange(own, own + int(ghosts.size), dtype=kind)
    return table[found], ghosts


def interior(executor: Executor, indptr: Any, numbers: Any, own: int) -> tuple[int, int]:
    """Return the longest run of rows without a ghost among their columns."""
    xp = namespace(executor, numbers)
    entries, rows = xp.flatnonzero(numbers >= own), int(indptr.size) - 1
    if not entries.size:
        return 0, rows
    found = xp.searchsorted(like(executor, indptr, numbers), entries, side="right") - 1
    outer = host(executor, distinct_of_sorted(executor, found))
    cuts = np.concatenate([[-1], outer, [rows]])
    longest = int(np.argmax(np.diff(cuts)))
    begin, end = int(cuts[longest]) + 1, int(cuts[longest + 1])
    return (begin, end) if end > begin else (0, 0)


def distinct_of_sorted(executor: Executor, numbers: Any) -> Any:
    """Return the distinct numbers of an array that does not fall, where it is.

    NumPy's own function makes a table of hashes, which takes a hundred times as long.
    """
    first = namespace(executor, numbers).ones(numbers.size, bool)
    first[1:] = numbers[1:] != numbers[:-1]
    return numbers[first]


#: A table of up to this multiple of the numbers is made sooner than a sorted list.
TABLE = 16


def distinct(executor: Executor, numbers: Any) -> tuple[HostArray, Any]:
    """Return the distinct numbers in rising order, and the position of each number among them.

    The positions are where the numbers are.

    Numbers that lie close together, as adjacent rows have them, are counted in a table: sorting
    takes ten times as long.
    """
    if not isinstance(numbers, np.ndarray):
        if not numbers.size:
            return np.zeros(0, np.int64), numbers
        found, at = executor.xp.unique(numbers, return_inverse=True)
        return host(executor, found), at.reshape(-1)
    if not numbers.size:
        return numbers, np.zeros(0, np.int64)
    low = int(numbers.min())
    span = int(numbers.max()) - low + 1
    if span > TABLE * numbers.size:
        found, at = np.unique(numbers, return_inverse=True)
        return found, at.reshape(-1)
    near = numbers - low
    flags = np.zeros(span, bool)
    flags[near] = True
    return np.flatnonzero(flags) + low, (np.cumsum(flags) - 1)[near]
