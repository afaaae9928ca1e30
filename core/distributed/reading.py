"""Reading of files by all members of a group together."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..errors import InvalidArgument, InvalidMatrix
from ..executor import Executor
from ..files import matrix_market
from ..files.lines import Lines
from ..files.source import Source
from .assembly import assembled
from .build import host_rows, partitions, raise_first, reported, share_from_first
from .group import Group
from .partition import Partition
from .shared import Shared

if TYPE_CHECKING:
    from ..files.read import Readable

T = TypeVar("T")


def read(file: Readable, group: Any, *, partition: Any = "rows", format: str | None = None) -> Any:
    """Read a matrix and distribute its rows over the members of a group.

    Each member reads a byte range of an uncompressed Matrix Market file, and sends the entries to
    the owners of their rows. The first member reads all other files and sends the other members
    their rows.

    Parameters
    ----------
    file : str, Path or open file
        As for :func:`wollemi.read`.
    group : Group or MpiGroup
        The group that shares the matrix.
    partition : {'rows', 'weights', 'metis'}, Partition or sequence of int
        As for :func:`wollemi.distribute`; METIS supports only files that the first member reads.
    format : str, optional
        ``"csr"``; other formats are not supported.

    Returns
    -------
    Shared or Csr
        As in :func:`wollemi.distribute`.

    Raises
    ------
    InvalidMatrix
        As in :func:`wollemi.read`, on all members.
    """
    if format not in (None, "csr"):
        raise InvalidArgument(f"format: a group shares matrices in csr, got {format!r}")

    def program(member: Executor) -> Any:
        return _read(file, member, partition)

    if isinstance(group, Group):
        return Shared(group, group.call(program))
    return group.run(lambda member: reported(program(member)))


def _read(file: Readable, member: Executor, partition: Any) -> Any:
    links: Any = member.links
    shared = together(links, lambda: _is_divisible(file) and partition != "metis")
    if shared:
        return _by_ranges(Path(os.fspath(file)), member, partition)  # type: ignore[arg-type]

    def whole() -> Any:
        from ..files.read import read as read_whole

        matrix = read_whole(file, executor="reference")
        return host_rows(matrix) if links.rank == 0 else None

    found = together(links, lambda: whole() if links.rank == 0 else None)
    return share_from_first(found, member, partition, None)


def together(links: Any, work: Callable[[], T]) -> T:
    """Return the result of a member's work; if it fails on one member, raise on all."""
    error: Exception | None = None
    result: Any = None
    try:
        result = work()
    except Exception as raised:  # report any error to the other members
        error = raised
    told = links.all(None if error is None else f"{type(error).__name__}: {error}")
    if error is not None:
        raise error
    raise_first(told, told)
    return result


def _is_divisible(file: Readable) -> bool:
    """Return whether members can read ranges of a file."""
    if not isinstance(file, (str, os.PathLike)):
        return False
    path = Path(file)
    if path.suffix != ".mtx" or not path.is_file():
        return False
    with path.open("rb") as stream:
        return b"coordinate" in stream.read(100).lower()


def _by_ranges(path: Path, member: Executor, partition: Any) -> Any:
    links: Any = member.links
    header, entries = together(links, lambda: _own_entries(path, links.rank, links.size))
    counts = links.all(entries.nnz)
    if sum(counts) != header.stored:
        raise InvalidMatrix(
            f"{header.place} announces {header.stored} entries, and the file has {sum(counts)}"
        )
    mirrored = matrix_market.mirrored(entries, header.symmetry)
    rows, columns = mirrored.row.astype(np.int64), mirrored.col.astype(np.int64)
    parted, other = together(links, lambda: _partitions(links, partition, header.shape, rows))
    places = parted.places(rows)
    owners = parted.owner(places)
    sent = []
    for rank in range(links.size):
        mine = owners == rank
        sent.append((places[mine] - parted.offsets[rank], columns[mine], mirrored.data[mine]))
    received = links.alltoall(sent)
    local = _summed(received, parted.count(links.rank), header.shape[1])
    return assembled(
        member, parted, other, local.indptr.astype(np.int64), local.indices.astype(np.int64),
        local.data,
    )  # fmt: skip


def _partitions(
    links: Any, partition: Any, shape: tuple[int, int], rows: Any
) -> tuple[Partition, Partition]:
    if isinstance(partition, str) and partition == "weights":
        counts = sum(links.all(np.bincount(rows, minlength=shape[0])))
        indptr = np.concatenate([[0], np.cumsum(counts)])
        partition = Partition.by_weight(indptr, links.size, links.block or 1)
    return partitions(partition, None, shape, links.size, links.block)


def _summed(received: list[Any], rows: int, columns: int) -> Any:
    """Return a member's rows as compressed rows with summed duplicates."""
    from scipy.sparse import coo_array

    row, col, data = (np.concatenate([part[i] for part in received]) for i in range(3))
    values = data.astype(np.result_type(data.dtype, np.float64))
    result = coo_array((values, (row, col)), shape=(rows, columns)).tocsr()
    result.sum_duplicates()
    return result


def _own_entries(path: Path, rank: int, size: int) -> tuple[matrix_market.Header, Any]:
    """Return the header of a file, and the entries in a member's byte range."""
    source = Source(path)
    with source.open() as stream:
        lines = Lines(stream, source.name)
        header = matrix_market.read_header(lines, source)
        begin = lines.taken
        whole = os.path.getsize(path)
        first, last = (begin + (whole - begin) * at // size for at in (rank, rank + 1))
        first, last = (_next_line(stream, at, begin, whole) for at in (first, last))
        stream.seek(first)
        text = stream.read(last - first)
    stored = sum(1 for line in text.splitlines() if line.strip())
    name = source.name if size == 1 else f"{source.name}, bytes {first} to {last}"
    entries = matrix_market.part_of_entries(io.BytesIO(text), header, stored, name)
    matrix_market.check_diagonal_entries(entries, header)
    return header, entries


def _next_line(stream: IO[bytes], at: int, begin: int, whole: int) -> int:
    """Return the start of the first line that begins at or after an offset."""
    if at <= begin or at >= whole:
        return min(max(at, begin), whole)
    stream.seek(at - 1)
    stream.readline()
    return stream.tell()
