"""The distribution of rows over the members of a group."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from zlib import crc32

import numpy as np

from ..errors import InvalidArgument

if TYPE_CHECKING:
    from .report import PartitionReport

HostArray = np.ndarray[Any, Any]

#: The names of automatic partitions.
NAMES = ("rows", "weights", "metis")


class Partition:
    """The distribution of the rows of a matrix, or of vectors, over the members of a group.

    Rows are renumbered so that each member's rows are consecutive: member ``r`` has the new numbers
    ``offsets[r]:offsets[r + 1]``.

    Parameters
    ----------
    offsets : array of int64, shape (size + 1,)
        The first new number of each member, followed by the number of all rows.
    numbers : array of int64, shape (n,), optional
        The original row of each new number; by default the numbers are unchanged.

    Raises
    ------
    InvalidArgument
        If the arrays do not describe a partition.

    Examples
    --------
    >>> from wollemi.distributed import Partition
    >>> Partition([0, 2, 5])
    Partition of 5 rows: 2, 3
    >>> Partition.of_owners([1, 0, 1], 2).rows(1)
    array([0, 2])
    """

    def __init__(self, offsets: Any, numbers: Any = None) -> None:
        given = np.asarray(offsets)
        self.offsets = np.array(given, np.int64)
        rising = self.offsets.ndim == 1 and self.offsets.size >= 2
        rising = rising and self.offsets[0] == 0 and bool(np.all(np.diff(self.offsets) >= 0))
        if not rising or not np.array_equal(given, self.offsets):
            raise InvalidArgument(
                "partition: offsets begin at 0, do not fall, and end with the number of rows; got "
                f"{given!r}"
            )
        self.numbers = None if numbers is None else np.array(numbers, np.int64)
        if self.numbers is not None:
            n = self.size_of_vectors
            fits = self.numbers.shape == (n,)
            if not fits or not np.array_equal(np.sort(self.numbers), np.arange(n)):
                raise InvalidArgument(
                    f"partition: numbers must have each of the {n} rows once, got an array of "
                    f"shape {self.numbers.shape}"
                )

    def reporting(self, make: Callable[[], PartitionReport]) -> Partition:
        """Return this partition as the one of a matrix; ``make()`` reports its shares."""
        result = copy(self)
        result._make_report = make
        return result

    #: Reports the shares of a matrix.
    _make_report: Callable[[], PartitionReport] | None = None

    def report(self) -> PartitionReport:
        """Return rows, entries, ghosts, bytes of a product and memory of each member.

        It requires the partition of a matrix, ``A.partition``. If :func:`wollemi.distribute`,
        :meth:`Csr.from_rows` or a reader made the matrix, every rank knows the shares, so a single
        rank may call this method. If the matrix was made from others, such as ``A.T`` or ``A @ B``,
        the first call is collective in a group of processes: a single rank would wait for the
        others.

        Raises
        ------
        InvalidArgument
            If the partition does not belong to a matrix.

        Examples
        --------
        >>> import numpy as np, wollemi as wl
        >>> A = wl.distribute(np.diag([1.0, 2.0, 3.0]), ["reference", "reference"])
        >>> [share.rows for share in A.partition.report()]
        [1, 2]
        """
        if self._make_report is None:
            raise InvalidArgument(
                "partition: a report is of a matrix and its entries: A.partition.report()"
            )
        return self._make_report()

    @classmethod
    def even(cls, n: int, size: int, block: int = 1) -> Partition:
        """Return ranges with equal numbers of rows, as far as whole blocks allow."""
        blocks = -(-n // block)
        return cls([min(n, blocks * r // size * block) for r in range(size)] + [n])

    @classmethod
    def by_weight(cls, indptr: HostArray, size: int, block: int = 1) -> Partition:
        """Return ranges of rows in which entries plus rows have equal sums."""
        n = indptr.size - 1
        weights = np.asarray(indptr, np.int64) + np.arange(n + 1)
        wanted = weights[-1] * np.arange(1, size) / size
        cuts = np.searchsorted(weights, wanted)
        cuts = np.minimum((cuts + block // 2) // block * block, n)
        return cls([0, *np.maximum.accumulate(cuts).tolist(), n])

    @classmethod
    def of_owners(cls, owners: Any, size: int) -> Partition:
        """Return the partition in which row ``i`` belongs to member ``owners[i]``."""
        given = np.asarray(owners)
        if given.ndim != 1 or given.dtype.kind not in "iu":
            raise InvalidArgument(f"partition: owners are one integer for each row, got {given!r}")
        if given.size and not (given.min() >= 0 and given.max() < size):
            raise InvalidArgument(
                f"partition: owners are numbers from 0 to {size - 1}, got some between "
                f"{given.min()} and {given.max()}"
            )
        counts = np.bincount(given, minlength=size)
        return cls([0, *np.cumsum(counts).tolist()], np.argsort(given, kind="stable"))

    # ---- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the partition to a NumPy file (``.npz``) for :meth:`load`.

        A restarted program can then distribute matrices as before, without running METIS again.
        Every rank has the whole partition; one rank or all ranks may write it, because the file is
        written under another name and then renamed. Ranks that load a file of another rank must
        wait for it: call ``group.barrier()`` after ``save`` and before ``load``.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from wollemi.distributed import Partition
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "partition.npz")
        ...     Partition.of_owners([1, 0, 1], 2).save(file)
        ...     Partition.load(file).rows(1)
        array([0, 2])
        """
        arrays = {"offsets": self.offsets}
        if self.numbers is not None:
            arrays["numbers"] = self.numbers
        target = os.fspath(path)
        begun = f"{target}.{uuid4().hex}"
        try:
            with open(begun, "xb") as file:
                np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
            os.replace(begun, target)
        except BaseException:  # also on Ctrl-C, remove the incomplete file
            with suppress(FileNotFoundError):
                os.remove(begun)
            raise

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Partition:
        """Return the partition in a file that :meth:`save` has written.

        Raises
        ------
        InvalidArgument
            If the file does not contain a partition.
        """
        try:
            with np.load(path, allow_pickle=False) as found:
                arrays = {name: found[name] for name in found.files}
            return cls(arrays["offsets"], arrays.get("numbers"))
        except (ValueError, KeyError, AttributeError, zipfile.BadZipFile, EOFError) as error:
            raise InvalidArgument(
                f"partition: expected a file that Partition.save has written, got {path}: {error}"
            ) from error

    # ---- questions

    @property
    def size(self) -> int:
        """The number of members."""
        return int(self.offsets.size) - 1

    @property
    def size_of_vectors(self) -> int:
        """The number of rows."""
        return int(self.offsets[-1])

    def count(self, rank: int) -> int:
        """Return the number of rows of a member."""
        return int(self.offsets[rank + 1] - self.offsets[rank])

    def rows(self, rank: int) -> HostArray:
        """Return the original numbers of a member's rows, in the member's order."""
        begin, end = self.offsets[rank : rank + 2]
        return np.arange(begin, end) if self.numbers is None else self.numbers[begin:end]

    def part(self, whole: Any, rank: int) -> Any:
        """Return a member's rows of a whole array, as a view if they are consecutive."""
        begin, end = (int(at) for at in self.offsets[rank : rank + 2])
        return whole[begin:end] if self.numbers is None else whole[self.numbers[begin:end]]

    @cached_property
    def _places(self) -> HostArray | None:
        if self.numbers is None:
            return None
        places = np.empty_like(self.numbers)
        places[self.numbers] = np.arange(self.numbers.size)
        return places

    def places(self, rows: HostArray) -> HostArray:
        """Return the new numbers of rows, given their original numbers."""
        return rows if self._places is None else self._places[rows]

    def owner(self, places: HostArray) -> HostArray:
        """Return the owners of rows, given their new numbers."""
        return np.searchsorted(self.offsets, places, side="right") - 1

    def whole(self, stacked: HostArray) -> HostArray:
        """Return an array in the original order from the members' parts, in rank order."""
        return stacked if self._places is None else stacked[self._places]

    def fits_blocks(self, block: int) -> bool:
        """Return whether all members but the last begin and end at a multiple of a block."""
        inner = self.offsets[(self.offsets > 0) & (self.offsets < self.offsets[-1])]
        return self.numbers is None and not np.any(inner % block)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Partition) or not np.array_equal(self.offsets, other.offsets):
            return False
        if self.numbers is None or other.numbers is None:
            return self.numbers is other.numbers
        return np.array_equal(self.numbers, other.numbers)

    @property
    def fingerprint(self) -> int:
        """A checksum by which ranks compare partitions."""
        numbers = b"" if self.numbers is None else self.numbers.tobytes()
        return crc32(numbers, crc32(self.offsets.tobytes()))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        counts = ", ".join(str(count) for count in np.diff(self.offsets))
        return f"Partition of {self.size_of_vectors} rows: {counts}"


def make_partition(
    partition: Any, n: int, size: int, pattern: tuple[HostArray, HostArray] | None, block: int = 0
) -> Partition:
    """Return the requested partition.

    Parameters
    ----------
    partition : str, Partition or sequence of int
        ``"rows"``, ``"weights"``, ``"metis"``, offsets (``size + 1`` numbers) or owners (``n``
        numbers).
    n, size : int
        Number of rows and number of members.
    pattern : (indptr, indices), or None
        The pattern of the whole matrix, for methods that need it.
    block : int
        Number of rows in a block of a reproducible sum; each member must begin at a block. Or 0.
    """
    step = block or 1
    if isinstance(partition, Partition):
        result = partition
    elif isinstance(partition, str):
        result = _named(partition, n, size, pattern, step)
    else:
        result = _listed(partition, n, size)
    if result.size != size or result.size_of_vectors != n:
        raise InvalidArgument(
            f"partition: expected {n} rows for {size} members, got one of "
            f"{result.size_of_vectors} rows for {result.size}"
        )
    if block and not result.fits_blocks(block):
        raise InvalidArgument(
            f"reproducible sums are sums of blocks of {block} rows: members must begin at "
            f'multiples of {block}; use partition="rows" or "weights"'
        )
    return result


def _named(
    name: str, n: int, size: int, pattern: tuple[HostArray, HostArray] | None, block: int
) -> Partition:
    if name not in NAMES:
        known = ", ".join(map(repr, NAMES))
        raise InvalidArgument(f"no partition is called {name!r}; known: {known}, offsets, owners")
    if name == "rows" or size == 1:
        return Partition.even(n, size, block)
    if pattern is None:
        raise InvalidArgument(f"partition={name!r} looks at the entries of the whole matrix")
    if name == "weights":
        return Partition.by_weight(pattern[0], size, block)
    return Partition.of_owners(_by_metis(*pattern, size), size)


def _listed(listed: Any, n: int, size: int) -> Partition:
    if not isinstance(listed, (np.ndarray, Sequence)):
        raise InvalidArgument(f"partition: expected a name, offsets or owners, got {listed!r}")
    if len(listed) == size + 1 and (n != size + 1 or listed[-1] == n):
        return Partition(listed)
    if len(listed) == n:
        return Partition.of_owners(listed, size)
    raise InvalidArgument(
        f"partition: expected {size + 1} offsets or {n} owners, one for each row, since the group "
        f"has {size} members; got {len(listed)} numbers, which are offsets for {len(listed) - 1}"
    )


def _by_metis(indptr: HostArray, indices: HostArray, size: int) -> HostArray:
    """Return the owner of each row, with few entries between members (METIS, by pymetis)."""
    try:
        import pymetis
    except ImportError:
        raise InvalidArgument(
            'partition="metis" needs pymetis: pip install "wollemi[metis]"; "weights" needs nothing'
        ) from None
    from scipy.sparse import csr_array

    n = indptr.size - 1
    ones = np.ones(indices.size, np.int8)
    graph = csr_array((ones, indices, indptr), shape=(n, n))
    graph = (graph + graph.T).tocoo()
    away = graph.row != graph.col
    neighbours = csr_array((graph.data[away], (graph.row[away], graph.col[away])), shape=(n, n))
    adjacency = pymetis.CSRAdjacency(neighbours.indptr, neighbours.indices)
    _, owners = pymetis.part_graph(size, adjacency)
    return np.asarray(owners, np.int64)
