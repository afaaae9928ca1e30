"""Operations on index arrays of a member: on its device if they are long, otherwise in NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..executor import Array, Executor

HostArray = np.ndarray[Any, Any]


def index_array(executor: Executor, array: Array) -> Any:
    """Return an index array of a member in the form for :func:`namespace`.

    A long array stays on a device that has its own links. Any other array is copied to NumPy: at
    the first use a device compiles its array functions, which takes longer than the copy.
    """
    if isinstance(array, np.ndarray) or not keeps_whole(executor):
        return np.asarray(executor.to_host(array))
    on_host = getattr(executor, "plans_on_host", None)
    few = on_host is not None and on_host(int(array.size))
    return np.asarray(executor.to_host(array)) if few else array


def keeps_whole(executor: Executor) -> bool:
    """Return whether a member's rows stay one block, because its links work on its device."""
    links = executor.links
    return links is not None and links.on_device and not links.alone


def namespace(executor: Executor, array: Any) -> Any:
    """Return NumPy for NumPy arrays, otherwise the array namespace of the executor."""
    return np if isinstance(array, np.ndarray) else executor.xp


def like(executor: Executor, array: Any, other: Any) -> Any:
    """Return an array in the memory of another array: on the host or on the executor."""
    if isinstance(other, np.ndarray):
        return host(executor, array)
    return executor.from_host(array) if isinstance(array, np.ndarray) else array


def values_here(executor: Executor, data: Array) -> Any:
    """Return a member's values where they are selected: on the host, or as in :func:`here`."""
    return data if keeps_whole(executor) else host(executor, data)


def host(executor: Executor, array: Any) -> HostArray:
    """Return an array on the host."""
    return array if isinstance(array, np.ndarray) else np.asarray(executor.to_host(array))


def stacked(executor: Executor, before: Any, middle: Any, after: Any) -> Any:
    """Concatenate a member's own numbers with numbers before and after, in their memory."""
    parts = [
        like(executor, part.astype(middle.dtype, copy=False), middle) for part in (before, after)
    ]
    return namespace(executor, middle).concatenate([parts[0], middle, parts[1]])


def stored(executor: Executor, array: Any, dtype: np.dtype[Any]) -> Array:
    """Return an index array on the executor in the given dtype."""
    if isinstance(array, np.ndarray):
        return executor.from_host(np.ascontiguousarray(array, dtype))
    return array.astype(dtype, copy=False)


def numbered(
    executor: Executor, away: Any, others: Any, local_columns: int, numbers: Any
) -> HostArray:
    """Assign numbers from ``local_columns`` on to the ghosts, in ascending order of their columns.

    Parameters
    ----------
    away : array of int
        Positions of the entries with columns of other members.
    others : array of int
        The new numbers of the columns of these entries.
    local_columns : int
        Number of columns of the member.
    numbers : array of int, shape (entries,)
        Overwritten at the positions ``away``.

    Returns
    -------
    array
        The new numbers of the ghosts, on the host.
    """
    if not others.size:
        return np.zeros(0, np.int64)
    xp = namespace(executor, numbers)
    ghosts, which = xp.unique(others, return_inverse=True)
    numbers[away] = (which + local_columns).reshape(-1).astype(numbers.dtype, copy=False)
    return host(executor, ghosts).astype(np.int64)


def numbered_by_table(
    executor: Executor, columns_of_entries: Any, first: int, local_columns: int, columns: int
) -> tuple[Any, Any]:
    """Renumber columns of the whole matrix: a member's own from 0 on, then its ghosts.

    Parameters
    ----------
    executor : Executor
        The member's executor.
    columns_of_entries : array of int
        Columns in the whole matrix.
    first, own : int
        The first column of the member, and the number of its columns.
    columns : int
        Number of columns of the whole matrix.

    Returns
    -------
    numbers : array of int
        The number of each column in ``columns_of_entries``.
    ghosts : array of int
        The columns of other members that occur, in ascending order, in the memory of
        ``columns_of_entries``.
    """
    xp, kind = namespace(executor, columns_of_entries), columns_of_entries.dtype
    table = xp.zeros(columns, kind)
    table[columns_of_entries] = 1
    table[first : first + local_columns] = 0
    ghosts = xp.flatnonzero(table)
    table[first : first + local_columns] = xp.arange(local_columns, dtype=kind)
    if ghosts.size:
        table[ghosts] = xp.arange(local_columns, local_columns + int(ghosts.size), dtype=kind)
    return table[columns_of_entries], ghosts


def interior(executor: Executor, indptr: Any, numbers: Any, local_columns: int) -> tuple[int, int]:
    """Return the longest run of rows without ghosts among their columns."""
    xp = namespace(executor, numbers)
    entries, rows = xp.flatnonzero(numbers >= local_columns), int(indptr.size) - 1
    if not entries.size:
        return 0, rows
    found = xp.searchsorted(like(executor, indptr, numbers), entries, side="right") - 1
    outer = host(executor, distinct_of_sorted(executor, found))
    cuts = np.concatenate([[-1], outer, [rows]])
    longest = int(np.argmax(np.diff(cuts)))
    begin, end = int(cuts[longest]) + 1, int(cuts[longest + 1])
    return (begin, end) if end > begin else (0, 0)


def distinct_of_sorted(executor: Executor, numbers: Any) -> Any:
    """Return the distinct numbers of a nondecreasing array, in its memory.

    NumPy's own function uses a hash table, which takes a hundred times as long.
    """
    first = namespace(executor, numbers).ones(numbers.size, bool)
    first[1:] = numbers[1:] != numbers[:-1]
    return numbers[first]


#: If the range of the numbers is at most this multiple of their count, a table is faster than
#: sorting.
TABLE = 16


def distinct(executor: Executor, numbers: Any) -> tuple[HostArray, Any]:
    """Return the distinct numbers in ascending order, and the position of each number in them.

    The positions are in the memory of the numbers.

    Numbers in a small range, as in adjacent rows, are counted in a table: sorting takes ten times
    as long.
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
