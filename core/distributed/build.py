"""Construction of distributed matrices from a whole matrix, or from the rows of the members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..checksums import Checksum, checksum, compared_parts, pattern_checksum
from ..dtypes import is_narrow, value_dtype
from ..errors import (
    GroupMismatch,
    InvalidArgument,
    InvalidMatrix,
    ShapeMismatch,
    UnsupportedDtype,
    UnsupportedOperation,
)
from ..executor import Executor
from ..formats import Csr as LocalCsr
from ..formats import Matrix, validate
from ..formats.given import checked_shape
from .assembly import assembled
from .group import Group
from .halo import index_dtype
from .partition import Partition, make_partition
from .shared import Shared

HostArray = np.ndarray[Any, Any]
Rows = tuple[HostArray, HostArray, HostArray]

#: Maximum number of ranks that a message lists.
_LISTED = 8


def distribute(
    A: Any,
    group: Any,
    *,
    partition: Any = "rows",
    columns: Any = None,
    reproducible: bool = False,
) -> Any:
    """Distribute the rows of a matrix over the members of a group.

    Parameters
    ----------
    A : matrix of wollemi or SciPy, or dense array, shape (m, n)
        The matrix. In a group of processes, either every rank passes it, or only rank 0 does and
        the others pass None. If the group shares the matrix already, members send rows to their new
        owners.
    group : Group, str, or sequence of str or Executor
        The members: a group, or an argument of :class:`wollemi.distributed.Group`, such as
        ``"cuda:*"`` or ``["omp:4", "omp:4"]``.
    partition : {'rows', 'weights', 'metis'}, Partition or sequence of int
        ``'rows'``: equal numbers of rows; ``'weights'``: equal numbers of entries; ``'metis'``:
        parts with few entries between them (needs pymetis). Or the first row of each member,
        followed by the number of rows; or the owner of each row.
    columns : Partition or sequence of int, optional
        The partition of the vectors to which ``A`` is applied. By default it is ``partition`` for a
        square matrix, and equal numbers of rows otherwise.
    reproducible : bool
        For a group that is made here; see :class:`wollemi.distributed.Group`.

    Returns
    -------
    Shared or wollemi.distributed.Csr
        For a group in one process, an operator that accepts whole vectors; in a group of processes,
        this rank's part.

    Raises
    ------
    InvalidArgument
        If the partition does not fit the matrix and the group.
    GroupMismatch
        If ranks pass different matrices, or a matrix that another group shares.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> A = wl.distribute(np.diag([2.0, 4.0, 8.0]), ["omp:1", "omp:1"])
    >>> A @ np.ones(3)
    array([2., 4., 8.])
    >>> wl.solve(A, np.array([2.0, 4.0, 8.0])).x
    array([1., 1., 1.])
    """
    group = as_group(group, reproducible)
    if isinstance(A, Shared):
        A = A.to_local()
    if not isinstance(group, Group):
        return group.run(
            lambda member: reported(_distributed_by_ranks(A, member, partition, columns))
        )
    shape, rows = host_rows(A)
    parted, other = partitions(partition, columns, shape, group.size, group.block, rows)

    def program(member: Executor) -> Any:
        assert member.links is not None
        return assembled(member, parted, other, *rows_of(parted, member.links.rank, *rows))

    return Shared(group, group.call(program))


def as_group(group: Any, reproducible: bool = False) -> Any:
    """Return a group unchanged, or make a group from the names of its members."""
    if hasattr(group, "run") and hasattr(group, "size") and not isinstance(group, Executor):
        if reproducible and not group.block:
            raise InvalidArgument("reproducible=True is said where the group is made")
        return group
    return Group(group, reproducible=reproducible)


def partitions(
    partition: Any,
    columns: Any,
    shape: tuple[int, int],
    size: int,
    block: int,
    rows: Rows | None = None,
) -> tuple[Partition, Partition]:
    """Return the partitions of rows and of columns."""
    m, n = shape
    pattern = None if rows is None else (rows[0], rows[1])
    if m != n and isinstance(partition, str) and partition == "metis":
        raise InvalidArgument("partition='metis' is for square matrices")
    made = make_partition(partition, m, size, pattern, block)
    if columns is None and m == n:
        return made, made
    return made, make_partition("rows" if columns is None else columns, n, size, None, block)


def host_rows(A: Any) -> tuple[tuple[int, int], Rows]:
    """Return the shape, and the row pointers, columns and values of a matrix on the host."""
    matrix = A if isinstance(A, Matrix) else LocalCsr(A, executor="reference")
    matrix = matrix.asformat("csr")
    if is_narrow(matrix.dtype):
        raise UnsupportedDtype(f"a group shares no matrix of {matrix.dtype}: A.astype('float32')")
    to_host = matrix.executor.to_host
    indptr, indices = (np.asarray(to_host(a)) for a in (matrix.indptr, matrix.indices))
    return matrix.shape, (
        indptr.astype(np.int64), indices.astype(np.int64), np.asarray(to_host(matrix.data))
    )  # fmt: skip


def rows_of(partition: Partition, rank: int, *rows: HostArray) -> Rows:
    """Return a member's rows of a whole matrix."""
    indptr, indices, data = rows
    if partition.numbers is None:
        begin, end = (int(at) for at in partition.offsets[rank : rank + 2])
        first, last = indptr[begin], indptr[end]
        return indptr[begin : end + 1] - first, indices[first:last], data[first:last]
    return rows_of_places(partition.rows(rank), *rows)


def rows_of_places(places: HostArray, *rows: HostArray) -> Rows:
    """Return rows of a matrix, given their numbers."""
    indptr, indices, data = rows
    lengths = indptr[places + 1] - indptr[places]
    pointers = np.concatenate([[0], np.cumsum(lengths)])
    entries = np.repeat(indptr[places] - pointers[:-1], lengths) + np.arange(pointers[-1])
    return pointers, indices[entries], data[entries]


class _Facts(NamedTuple):
    """Properties of a matrix that the ranks compare."""

    shape: tuple[int, int]
    dtype: str
    entries: int
    pattern: int
    values: Checksum

    @classmethod
    def of(cls, shape: tuple[int, int], rows: Rows) -> _Facts:
        indptr, indices, data = rows
        pattern = pattern_checksum(indptr, indices)
        values = checksum(*compared_parts(data))
        return cls(shape, str(data.dtype), int(indices.size), pattern, values)

    def __str__(self) -> str:
        return f"{self.shape[0]} x {self.shape[1]} {self.dtype}, {self.entries} entries"

    def difference(self, other: _Facts) -> str | None:
        """Return how another matrix differs, or None if it does not."""
        if str(self) != str(other):
            return str(other)
        if self.pattern != other.pattern:
            return "entries at other places"
        return None if self.values.agrees(other.values) else "other values"


def _require_one_matrix(descriptions: list[Any]) -> None:
    """Raise an error unless all ranks have the same matrix."""
    found = [(rank, descriptions[0].difference(facts)) for rank, facts in enumerate(descriptions)]
    different = [f"rank {rank}: {how}" for rank, how in found if how]
    if different:
        more = [f"and {len(different) - _LISTED} more ranks"] if len(different) > _LISTED else []
        raise GroupMismatch(
            f"distribute: the ranks have different matrices: rank 0: {descriptions[0]}; "
            f"{'; '.join(different[:_LISTED] + more)}. Pass the same A on every rank, A on rank 0 "
            "and None on the others, or the rows of each rank to wollemi.distributed.Csr.from_rows"
        )


def _distributed_by_ranks(A: Any, member: Executor, partition: Any, columns: Any) -> Any:
    """Distribute a matrix that every rank has, or only rank 0, or that the group shares."""
    links: Any = member.links
    error: Exception | None = None
    found: tuple[tuple[int, int], Rows] | None = None
    facts: _Facts | _SharedFacts | None = None
    try:
        if getattr(A, "partition", None) is not None:
            facts = _facts_of_shared(A, member)
        elif A is not None:
            found = host_rows(A)
            facts = _Facts.of(*found)
    except Exception as raised:  # report any error to the other members
        error = raised
    told = links.all((facts, None if error is None else f"{type(error).__name__}: {error}"))
    if error is not None:
        raise error
    raise_first(told, [failed for _, failed in told])
    given = [facts for facts, _ in told]
    if any(isinstance(facts, _SharedFacts) for facts in given):
        if given.count(given[0]) != links.size:
            raise GroupMismatch(
                "distribute: a matrix that the group shares is handed over by every rank, and some "
                "ranks have another one, or None"
            )
        return _redistributed(A, member, partition, columns)
    if all(facts is not None for facts in given):
        _require_one_matrix(given)
        assert found is not None
        parted, other = partitions(partition, columns, found[0], links.size, links.block, found[1])
        return assembled(member, parted, other, *rows_of(parted, links.rank, *found[1]))
    if given[0] is None or any(facts is not None for facts in given[1:]):
        who = [rank for rank, facts in enumerate(given) if facts is not None]
        raise GroupMismatch(
            f"distribute: every rank hands over the matrix, or rank 0 alone and the others None; "
            f"of {links.size} ranks {who} did"
        )
    return share_from_first(found, member, partition, columns)


class _SharedFacts(NamedTuple):
    """Properties of a shared matrix that the ranks compare."""

    shape: tuple[int, int]
    dtype: str
    entries: int


def _facts_of_shared(A: Any, member: Executor) -> _SharedFacts:
    if getattr(A.executor, "links", None) is not member.links:
        raise GroupMismatch(
            "distribute: another group shares this matrix: pass A.to_local(), which all of its "
            "members ask for, or the group that shares it"
        )
    if not hasattr(A, "host_rows"):
        raise UnsupportedOperation(
            f"distribute: a {type(A).__name__} that a group shares has no rows to send; pass the "
            "matrix that it was made of"
        )
    return _SharedFacts(tuple(A.shape), str(A.dtype), int(A.nnz))


def _redistributed(A: Any, member: Executor, partition: Any, columns: Any) -> Any:
    """Redistribute a matrix of the group: every member sends its rows to their new owners."""
    links: Any = member.links
    if columns is None and A.shape[0] != A.shape[1]:
        columns = A.column_partition
    parted, other = partitions(partition, columns, A.shape, links.size, links.block)
    if len(set(links.all((parted.fingerprint, other.fingerprint)))) > 1:
        raise GroupMismatch("distribute: the ranks have different partitions")
    mine, places = A.host_rows(), parted.places(A.partition.rows(links.rank))
    owner, pointers = parted.owner(places), mine.indptr.astype(np.int64)
    chosen = [np.flatnonzero(owner == rank) for rank in range(links.size)]
    sent = [
        (places[rows], *rows_of_places(rows, pointers, mine.indices, mine.data)) for rows in chosen
    ]
    found = links.alltoall(sent)
    lengths = np.concatenate([np.diff(starts) for _, starts, _, _ in found])
    stacked = (
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([part for _, _, part, _ in found]).astype(np.int64),
        np.concatenate([part for _, _, _, part in found]),
    )
    order = np.argsort(np.concatenate([numbers for numbers, _, _, _ in found]))
    return assembled(member, parted, other, *rows_of_places(order, *stacked))


def reported(A: Any) -> Any:
    """Return a new matrix of a group after telling all members the shares of all others.

    Afterwards a single rank can print the report.
    """
    A.partition_report()
    return A


def share_from_first(ordering: Any, member: Executor, partition: Any, columns: Any) -> Any:
    """Distribute a matrix that only rank 0 has, by its shape and rows; others pass None."""
    links: Any = member.links
    sent: list[Any] = [None] * links.size
    failed = None
    if ordering is not None:
        try:
            parted, other = partitions(
                partition, columns, ordering[0], links.size, links.block, ordering[1]
            )
            sent = [
                (parted, other, rows_of(parted, rank, *ordering[1])) for rank in range(links.size)
            ]
        except Exception as error:  # report any error to the other members
            failed = error
    told = links.all(None if failed is None else f"{type(failed).__name__}: {failed}")
    if failed is not None:
        raise failed
    raise_first(told, told)
    parted, other, rows = links.alltoall(sent)[0]
    return assembled(member, parted, other, *rows)


def raise_first(reasons: list[Any], failed: list[str | None]) -> None:
    """Raise the error of another member on members without their own error."""
    for rank, why in enumerate(failed):
        if why is not None:
            raise GroupMismatch(f"member {rank} of {len(reasons)} was given: {why}")


# ---- matrices from the rows of the members


def from_rows(
    group: Any, rows: Any, shape: tuple[int, int], columns: Any = None, partition: Any = None
) -> Any:
    """Return the matrix that consists of the members' rows; see :meth:`Csr.from_rows`."""
    shape = checked_shape(shape)
    asked = partition, columns
    if not isinstance(group, Group):
        return group.run(lambda member: reported(member_rows(member, rows, shape, *asked)))
    if callable(rows):
        return Shared(group, group.run(lambda m: member_rows(m, rows, shape, *asked)))
    if not isinstance(rows, Sequence) or len(rows) != group.size:
        raise InvalidArgument(
            f"rows: expected a list of {group.size}, the rows of each member, for a group of one "
            "process, or a function of a member that returns its rows"
        )
    return Shared(
        group,
        group.call(lambda m: member_rows(m, rows[m.links.rank], shape, *asked)),  # type: ignore[union-attr]
    )


def member_rows(
    member: Executor, rows: Any, shape: tuple[int, int], partition: Any, columns: Any
) -> Any:
    """Return a member's part of the matrix of the members' rows."""
    links: Any = member.links
    error: Exception | None = None
    made: Rows | None = None
    parted: Partition | None = None
    try:
        if partition is not None:
            parted = make_partition(partition, shape[0], links.size, None, links.block)
        made = _checked_rows(member, rows(member) if callable(rows) else rows, shape[1])
    except Exception as raised:  # report any error to the other members
        error = raised
    count = 0 if made is None else int(made[0].size) - 1
    kind = None if made is None else str(made[2].dtype)
    owners = None if parted is None else parted.fingerprint
    told = links.all((count, shape, kind, None if error is None else f"{error}", owners))
    if error is not None:
        raise error
    raise_first(told, [found[3] for found in told])
    assert made is not None
    if any(found[1] != shape for found in told):
        raise GroupMismatch(f"from_rows: different shapes: {[found[1] for found in told]}")
    if any(found[4] != owners for found in told):
        raise GroupMismatch("from_rows: the ranks have different partitions, or some have none")
    counts = [found[0] for found in told]
    if sum(counts) != shape[0]:
        raise InvalidMatrix(
            f"from_rows: the members have {' + '.join(map(str, counts))} = {sum(counts)} rows, and "
            f"the shape says {shape[0]}: one member has each row, with all its entries. "
            "Contributions to rows of other members, as of finite elements, are added up by "
            "wl.distributed.from_contributions"
        )
    if parted is None:
        parted = Partition(np.concatenate([[0], np.cumsum(counts)]))
    elif counts != np.diff(parted.offsets).tolist():
        raise InvalidMatrix(
            f"from_rows: the members have {', '.join(map(str, counts))} rows, and the partition "
            f"says {', '.join(map(str, np.diff(parted.offsets)))}: the member of a rank has the "
            "rows partition.rows(rank), in this order"
        )
    parted, other = partitions(parted, columns, shape, links.size, links.block)
    dtype = np.result_type(*(found[2] for found in told))
    return assembled(member, parted, other, made[0], made[1], made[2].astype(dtype, copy=False))


def _require_width(rows: Any, columns: int, rank: int) -> None:
    """Refuse a sparse matrix with a wrong width, and a list where a rank passes its rows."""
    if hasattr(rows, "tocsr") and tuple(rows.shape)[1:] != (columns,):
        raise ShapeMismatch(
            f"from_rows: the rows of member {rank} have the shape {tuple(rows.shape)}, and the "
            f"matrix has {columns} columns: give rows of shape (rows of the member, {columns}) "
            "with the column numbers of the whole matrix"
        )
    if isinstance(rows, (tuple, list)) and any(hasattr(one, "tocsr") for one in rows):
        raise InvalidMatrix(
            f"from_rows: got a list of {len(rows)} with matrices; a list is for a group of one "
            f"process: each rank passes its own rows alone, here item {rank} of the list"
        )


def _checked_rows(executor: Executor, rows: Any, columns: int) -> Rows:
    """Return row pointers, columns and values; arrays on the member's device stay there."""
    assert executor.links is not None
    _require_width(rows, columns, executor.links.rank)
    if hasattr(rows, "tocsr"):
        rows = rows.tocsr()
        rows = (rows.data, rows.indices, rows.indptr)
    if not isinstance(rows, (tuple, list)) or len(rows) != 3:
        raise InvalidMatrix(
            "from_rows: expected (data, indices, indptr) or a sparse matrix of SciPy, got "
            f"{type(rows).__name__}"
        )
    if executor.xp is not np and all(executor.owns(array) for array in rows):
        data, indices, indptr = rows
        if indices.dtype.kind not in "iu" or indptr.dtype.kind not in "iu":
            raise InvalidMatrix(
                f"from_rows: indices and indptr are integers; got {indices.dtype} and "
                f"{indptr.dtype}"
            )
    else:
        data = validate.values(np.asarray(rows[0]), "data", 1)
        indices = validate.integers(rows[1], "indices")
        indptr = validate.integers(rows[2], "indptr")
    falls = indptr.size < 1 or int(indptr[0]) != 0 or bool((indptr[1:] < indptr[:-1]).any())
    if falls:
        raise InvalidMatrix("from_rows: indptr begins at 0 and does not fall")
    if int(indptr[-1]) != indices.size or indices.size != data.size:
        raise InvalidMatrix(
            f"from_rows: indptr ends with {indptr[-1]}, for {indices.size} indices and {data.size} "
            "values"
        )
    if indices.size:
        least, most = int(indices.min()), int(indices.max())
        if not (least >= 0 and most < columns):
            raise InvalidMatrix(
                f"from_rows: columns are numbers of the whole matrix, from 0 to {columns - 1}; got "
                f"{least} to {most}"
            )
    kind = np.dtype(np.int64) if isinstance(indices, np.ndarray) else index_dtype(columns)
    return (
        indptr.astype(np.int64, copy=False), indices.astype(kind, copy=False),
        data.astype(value_dtype(data.dtype), copy=False),
    )  # fmt: skip
