"""The contents of a file of a sparse matrix, before they become a matrix."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..dtypes import value_dtype
from ..errors import InvalidArgument, InvalidMatrix
from ..executor import Executor
from ..formats import Bsr, Coo, Csc, Csr, Matrix, validate
from ..formats.convert import _AT_ONCE, FORMATS, load_format
from ..formats.given import place
from ..suggest import hint
from .memory import require

HostArray = np.ndarray[Any, Any]

#: Row pointers may take ``_POINTERS`` bytes for any number of entries; above that, at most
#: ``_TIMES_ENTRIES`` times the bytes of the entries, unless the caller requests compressed rows by
#: name.
_POINTERS, _TIMES_ENTRIES = 1 << 28, 16

#: Number of rows per entry above which row pointers cost more than a sort.
_MANY_ROWS = 8

_COMPRESSED: dict[str, type[Csr] | type[Csc] | type[Bsr]] = {"csr": Csr, "csc": Csc, "bsr": Bsr}


class Coordinates(NamedTuple):
    """Entries with their positions, in any order; duplicates add up.

    Parameters
    ----------
    entries : scipy.sparse.coo_array
        The entries; all positions are within the shape.
    place : str
        The place in the file that states the shape.
    """

    entries: Any
    place: str = "shape"

    def matrix(self, format: str | None, executor: Executor | str | None) -> Matrix:
        """Return a matrix; a Csr by default."""
        shape, nnz = self.entries.shape, self.entries.nnz
        if format == "coo":
            return Coo(_by_rows(self.entries), shape=shape, executor=executor)
        check_pointers(self.place, shape, nnz, format)
        compressed, where = self.entries.tocsr(), place(executor)
        arrays = (
            np.ascontiguousarray(compressed.data, value_dtype(compressed.dtype)),
            *validate.of_one_dtype(max(*shape, nnz), compressed.indices, compressed.indptr),
        )
        made = Csr._from_arrays(where, shape, *(where.from_host(a) for a in arrays))
        return in_format(made, format)

    def dense(self) -> HostArray:
        """Return all entries as a dense array."""
        check_dense(self.entries.shape, self.entries.dtype)
        return np.asarray(self.entries.toarray())


def _by_rows(entries: Any) -> tuple[HostArray, tuple[HostArray, HostArray]]:
    """Return values and positions sorted by row; within a row the given order is kept."""
    row, col = entries.row, entries.col
    rows = entries.shape[0]
    if rows > _MANY_ROWS * entries.nnz or not np.any(row[1:] < row[:-1]):
        return entries.data, (row, col)  # Coo sorts the rest
    entries.has_canonical_format = True  # so that SciPy neither sorts nor sums them
    compressed = entries.tocsr()
    counts = np.diff(compressed.indptr)
    return compressed.data, (
        np.repeat(np.arange(rows, dtype=row.dtype), counts),
        compressed.indices,
    )


class Compressed(NamedTuple):
    """Entries in compressed rows, columns or blocks, which are not yet checked."""

    format: str
    shape: tuple[int, int]
    data: HostArray
    indices: HostArray
    indptr: HostArray

    def matrix(self, format: str | None, executor: Executor | str | None) -> Matrix:
        """Return a matrix; a Csr by default."""
        if self.format != (format or "csr"):
            check_pointers("shape", self.shape, self.data.size, format)
        made = _COMPRESSED[self.format](
            (self.data, self.indices, self.indptr), shape=self.shape, executor=executor
        )
        return in_format(made, format)

    def dense(self) -> HostArray:
        """Return all entries as a dense array."""
        checked = self.matrix(self.format, "reference")
        check_dense(self.shape, checked.dtype)
        return checked.to_dense()


def known_format(format: str | None) -> None:
    """Raise InvalidArgument unless matrices can be read in the given format."""
    if format is not None:
        load_format(format)
    known = sorted(FORMATS.keys() - {"diagonal"})
    if format is not None and format not in known:
        raise InvalidArgument(
            f"format: expected None or one of {', '.join(known)}, got {format!r}; "
            f"{hint(format, known)}"
        )


def in_format(matrix: Matrix, format: str | None) -> Matrix:
    """Return a matrix in a format, Csr by default."""
    if format == "dense":
        check_dense(matrix.shape, matrix.dtype)
    result: Matrix = matrix.asformat(format or "csr")
    return result


def check_dense(shape: tuple[int, int], dtype: Any) -> None:
    """Raise InvalidMatrix if there is not enough memory for all entries."""
    nbytes = shape[0] * shape[1] * max(np.dtype(dtype).itemsize, 8)
    require(nbytes, f"{shape[0]} x {shape[1]} entries, most of them zero, need")


def check_pointers(place: str, shape: tuple[int, int], nnz: int, format: str | None) -> None:
    """Raise InvalidMatrix if row pointers need too much memory, or waste it unrequested."""
    rows = max(shape) if format == "csc" else shape[0]
    width = 8 if max(*shape, nnz) > np.iinfo(np.int32).max else 4
    nbytes = rows * width
    remedy = ': read it with format="coo", which needs none'
    try:
        require(_AT_ONCE * nbytes, f"{place}: {rows} rows need pointers, while they are made, of")
    except InvalidMatrix as error:
        raise InvalidMatrix(f"{error}{remedy}") from None
    if format is None and nbytes > max(_POINTERS, _TIMES_ENTRIES * nnz * (8 + width)):
        raise InvalidMatrix(
            f"{place}: {rows} rows need pointers of {nbytes / 2**30:.3g} GiB for {nnz} entries"
            f"{remedy}; "
            'format="csr" makes them all the same'
        )
