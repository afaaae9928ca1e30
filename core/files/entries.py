"""The contents of a file of a sparse matrix, before it becomes a matrix."""

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

#: Row pointers may take this number of bytes for any number of entries, and beyond it a multiple of
#: the entries' bytes, unless compressed rows are asked for by name.
_POINTERS, _TIMES_ENTRIES = 1 << 28, 16

#: Rows for each entry, beyond which pointers cost more than a sort.
_MANY_ROWS = 8

_COMPRESSED: dict[str, type[Csr] | type[Csc] | type[Bsr]] = {"csr": Csr, "csc": Csc, "bsr": Bsr}


class Coordinates(NamedTuple):
    """Entries by their positions, in any order; duplicates add up.

    Parameters
    ----------
    entries : scipy.sparse.coo_array
        The entries, with positions within its shape.
    place : str
        Where the file announces the shape.
    """

    entries: Any
    place: str = "shape"

    def matrix(self, format: str | None, executor: Executor | str | None) -> Matrix:
        """Return a matrix; Csr if no format is asked for."""
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
        """Return all entries as an array."""
        check_dense(self.entries.shape, self.entries.dtype)
        return np.asarray(self.entries.toarray())


def _by_rows(entries: Any) -> tuple[HostArray, tuple[HostArray, HostArray]]:
    """Return values and positions by rising rows, entries of a row in the order given."""
    row, col = entries.row, entries.col
    rows = entries.shape[0]
    if rows > _MANY_ROWS * entries.nnz or not np.any(row[1:] < row[:-1]):
        return entries.data, (row, col)  # Coo sorts the rest
    entries.has_canonical_format = True  # SciPy then neither sorts them nor adds them up
    compressed = entries.tocsr()
    counts = np.diff(compressed.indptr)
    return compressed.data, (
        np.repeat(np.arange(rows, dtype=row.dtype), counts),
        compressed.indices,
    )


class Compressed(NamedTuple):
    """Entries by compressed rows, columns or blocks; not yet checked."""

    format: str
    shape: tuple[int, int]
    data: HostArray
    indices: HostArray
    indptr: HostArray

    def matrix(self, format: str | None, executor: Executor | str | None) -> Matrix:
        """Return a matrix; Csr if no format is asked for."""
        if self.format != (format or "csr"):
            check_pointers("shape", self.shape, self.data.size, format)
        made = _COMPRESSED[self.format](
            (self.data, self.indices, self.indptr), shape=self.shape, executor=executor
        )
        return in_format(made, format)

    def dense(self) -> HostArray:
        """Return all entries as an array."""
        checked = self.matrix(self.format, "reference")
        check_dense(self.shape, checked.dtype)
        return checked.to_dense()


def known_format(format: str | None) -> None:
    """Raise InvalidArgument unless ``format`` names a format that matrices are read in."""
    if format is not None:
        load_format(format)
    known = sorted(FORMATS.keys() - {"diagonal"})
    if format is not None and format not in known:
        raise InvalidArgument(
            f"format: expected None or one of {', '.join(known)}, got {format!r}; "
            f"{hint(format, known)}"
        )


def in_format(matrix: Matrix, format: str | None) -> Matrix:
    """Return a matrix in a format, Csr if none is asked for."""
    if format == "dense":
        check_dense(matrix.shape, matrix.dtype)
    made: Matrix = matrix.asformat(format or "csr")
    return made


def check_dense(shape: tuple[int, int], dtype: Any) -> None:
    """Raise InvalidMatrix if no memory is there for all entries."""
    nbytes = shape[0] * shape[1] * max(np.dtype(dtype).itemsize, 8)
    require(nbytes, f"{shape[0]} x {shape[1]} entries, most of them zero, need")


def check_pointers(place: str, shape: tuple[int, int], nnz: int, format: str | None) -> None:
    """Raise InvalidMatrix if row pointers have no memory, or waste it without a request."""
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
