"""NumPy's .npy files, and SciPy's .npz: an archive with the arrays of a sparse matrix.

Headers are read before the arrays, so that no memory is allocated for missing data.
"""

from __future__ import annotations

import io
import math
import zipfile
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from ..dtypes import NUMBER_KINDS
from ..errors import InvalidMatrix
from ..formats import validate
from .entries import Compressed, Coordinates, HostArray
from .memory import require
from .source import CHUNK, Source, truncated

#: Maximum length in bytes of archive members that hold a word.
_LONGEST_WORD = 64

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def parse_npy(stream: IO[bytes], source: Source) -> HostArray:
    """Return the vector or matrix in a .npy file.

    Raises
    ------
    InvalidMatrix
        If the file has another format, is truncated, or needs more memory than available.
    """
    header = _header(stream)
    _check_numbers(header, "its values")
    if len(header.shape) not in (1, 2):
        raise InvalidMatrix(f"expected a vector or a matrix, got {header}")
    if source.largest is not None and header.nbytes > source.largest:
        raise truncated(source.name, f"{header} are {header.nbytes} bytes, it has {source.largest}")
    require(header.nbytes, f"{header} need")
    return _body(stream, header, "its values")


def parse_npz(stream: IO[bytes], source: Source) -> Compressed | Coordinates:
    """Return the entries of a matrix that ``scipy.sparse.save_npz`` wrote.

    Raises
    ------
    InvalidMatrix
        If the file is not such an archive, or contains other arrays.
    """
    seekable = stream if stream.seekable() else io.BytesIO(stream.read())
    with zipfile.ZipFile(seekable) as archive:
        return _Archive(archive).entries()


class _Archive:
    """The arrays of a .npz file, by name."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._names = set(archive.namelist())
        self._headers: dict[str, _Header] = {}

    def entries(self) -> Compressed | Coordinates:
        """Return the entries that the arrays describe."""
        format, shape = self._word("format"), self._shape()
        if format in ("csr", "csc", "bsr"):
            names = ("data", "indices", "indptr")
            self._check_memory(*names)
            return Compressed(format, shape, *(self._numbers(name) for name in names))
        if format == "coo":
            if "coords.npy" in self._names:
                self._check_memory("data", "coords")
                coordinates = self._numbers("coords")
                if coordinates.ndim != 2 or len(coordinates) != 2:
                    raise InvalidMatrix(
                        f"coords: expected shape (2, entries), got {coordinates.shape}"
                    )
                row, col = coordinates
            else:
                self._check_memory("data", "row", "col")
                row, col = self._numbers("row"), self._numbers("col")
            return _checked(shape, self._numbers("data"), row, col)
        if format == "dia":
            self._check_memory("data", "offsets")
            return _of_diagonals(shape, self._numbers("data"), self._numbers("offsets"))
        raise InvalidMatrix(f"format: expected csr, csc, bsr, coo or dia, got {format!r}")

    def _open(self, name: str) -> IO[bytes]:
        if f"{name}.npy" not in self._names:
            found = ", ".join(sorted(self._names)[:8]) or "nothing"
            raise InvalidMatrix(
                f"no sparse matrix of scipy.sparse.save_npz: there is no array {name!r}, only "
                f"{found[:200]}"
            )
        return self._archive.open(f"{name}.npy")

    def _header(self, name: str) -> _Header:
        if name not in self._headers:
            with self._open(name) as member:
                self._headers[name] = self._checked_header(name, member)
        return self._headers[name]

    def _checked_header(self, name: str, member: IO[bytes]) -> _Header:
        """Read a header; the member must be as long as the header says."""
        header = _header(member)
        there = self._archive.getinfo(f"{name}.npy").file_size
        if header.nbytes > there:
            raise InvalidMatrix(f"{name}: truncated: {header} in {there} bytes")
        return header

    def _check_memory(self, *names: str) -> None:
        require(sum(self._header(name).nbytes for name in names), "its arrays need")

    def _array(self, name: str) -> HostArray:
        header = self._header(name)
        with self._open(name) as member:
            _skip_header(member)
            return _body(member, header, name)

    def _numbers(self, name: str) -> HostArray:
        _check_numbers(self._header(name), name)
        return self._array(name)

    def _word(self, name: str) -> str:
        with self._open(name) as member:
            header = self._checked_header(name, member)
            self._check_word(name, header)
            word = _body(member, header, name).ravel()[0]
        return word.decode("ascii", "replace") if isinstance(word, bytes) else str(word)

    @staticmethod
    def _check_word(name: str, header: _Header) -> None:
        if header.dtype.kind not in "SU" or header.nbytes > _LONGEST_WORD or not header.nbytes:
            raise InvalidMatrix(f"{name}: expected a word, got {header}")

    def _shape(self) -> tuple[int, int]:
        with self._open("shape") as member:
            header = self._checked_header("shape", member)
            if header.shape != (2,) or header.dtype.kind not in "iu":
                raise InvalidMatrix(f"shape: expected two integers, got {header}")
            rows, columns = _body(member, header, "shape").tolist()
        if rows < 0 or columns < 0:
            raise InvalidMatrix(f"shape: expected rows and columns, got {rows}, {columns}")
        return rows, columns


class _Header(NamedTuple):
    """The dtype, order and shape of an array."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """The size of all its elements in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"an array of shape {self.shape} and dtype {self.dtype}"


def _header(stream: IO[bytes]) -> _Header:
    """Read the header of an array."""
    version = npy.read_magic(stream)
    if version not in _HEADERS:  # 3.0 has field names, which numbers lack
        raise InvalidMatrix(f"expected an array of numbers, got version {version} of the format")
    shape, fortran, dtype = _HEADERS[version](stream)
    if any(length < 0 for length in shape):
        raise InvalidMatrix(f"a negative length in shape {shape}")
    return _Header(tuple(int(length) for length in shape), fortran, dtype)


def _skip_header(stream: IO[bytes]) -> None:
    """Read a header that is known, without parsing it."""
    version = npy.read_magic(stream)
    length = 2 if version == (1, 0) else 4
    stream.read(int.from_bytes(stream.read(length), "little"))


def _body(stream: IO[bytes], header: _Header, name: str) -> HostArray:
    """Return the elements that follow the header.

    They are read in pieces, so that memory for missing data is never touched.
    """
    array = np.empty(math.prod(header.shape), header.dtype)
    space, filled = memoryview(array.view(np.uint8).data), 0
    while filled < array.nbytes:
        piece = stream.read(min(CHUNK, array.nbytes - filled))
        if not piece:
            raise InvalidMatrix(f"{name}: truncated: {filled} of {array.nbytes} bytes are there")
        space[filled : filled + len(piece)] = piece
        filled += len(piece)
    if header.fortran:
        return array.reshape(header.shape[::-1]).T
    return array.reshape(header.shape)


def _check_numbers(header: _Header, name: str) -> None:
    if header.dtype.kind not in NUMBER_KINDS:
        raise InvalidMatrix(f"{name}: expected numbers, got {header}")


def _checked(
    shape: tuple[int, int], data: HostArray, row: HostArray, col: HostArray
) -> Coordinates:
    """Return entries after checking that all positions are within the matrix."""
    data = validate.values(data)
    row, col = (
        validate.indices(places, bound, name)
        for places, bound, name in ((row, shape[0], "row"), (col, shape[1], "col"))
    )
    validate.equal_lengths(data=data, row=row, col=col)
    # unsigned or 8-bit indices would overflow in sums
    return _coordinates(shape, data, row.astype(np.int64), col.astype(np.int64))


def _of_diagonals(shape: tuple[int, int], data: HostArray, offsets: HostArray) -> Coordinates:
    """Return the entries of SciPy's dia format: ``data[k, j]`` is in column ``j``."""
    data = validate.values(data, ndim=2)
    offsets = validate.integers(offsets, "offsets")
    validate.equal_lengths(data=data, offsets=offsets)
    if len(np.unique(offsets)) != len(offsets):
        raise InvalidMatrix("offsets: a diagonal is there twice")
    rows, columns = shape
    parts = []
    for diagonal, offset in zip(data, offsets.tolist(), strict=True):
        begin, end = max(0, offset), min(rows + offset, columns, diagonal.size)
        if begin < end:
            col = np.arange(begin, end)
            parts.append((diagonal[begin:end], col - offset, col))
    if not parts:
        none = np.zeros(0, np.int64)
        return _coordinates(shape, data[:0].ravel(), none, none)
    values, row, col = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    stored = values != 0  # zeros are padding, also in SciPy
    return _coordinates(shape, values[stored], row[stored], col[stored])


def _coordinates(
    shape: tuple[int, int], data: HostArray, row: HostArray, col: HostArray
) -> Coordinates:
    from scipy.sparse import coo_array

    return Coordinates(coo_array((data, (row, col)), shape=shape))
