"""Matrix Market: https://math.nist.gov/MatrixMarket/formats.html.

SciPy's fast_matrix_market parses the entries on all cores. It trusts files: it divides by the
number of rows, reads beyond a last line without a line end, and ignores text after a number.
Therefore it gets a header written by wollemi, and lines that a :class:`.numbers.Grammar` has
checked. Files with plain lines need neither; see :mod:`.plain_entries`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import IO, Any, cast

import numpy as np

from ..errors import InvalidMatrix
from .entries import Coordinates, HostArray
from .lines import LONGEST_LINE, Lines
from .memory import require
from .numbers import Grammar, WrongLine
from .plain_entries import plain_entries
from .source import Source, truncated

#: Minimum length of an entry in a Matrix Market file in bytes: "1\n" (array), "1 1\n" (coordinate).
_SHORTEST = {"array": 2, "coordinate": 4}

_BANNER = re.compile(
    rb"%%MatrixMarket\s+matrix\s+(coordinate|array)\s+"
    rb"(real|double|complex|integer|unsigned-integer|pattern)\s+"
    rb"(general|symmetric|skew-symmetric|hermitian)\s*$",
    re.IGNORECASE,
)

#: SciPy's message about an invalid line.
_LINE = re.compile(r"^Line (\d+): (.*)", re.DOTALL)

_BYTES_PER_ENTRY = 16


@dataclass(frozen=True)
class Header:
    """The data of a file's header.

    Parameters
    ----------
    layout, field, symmetry : str
        The values in the banner.
    rows, columns : int
        The shape.
    stored : int
        Number of entries in the file.
    place : str
        The file and the line that contains the sizes.
    """

    layout: str
    field: str
    symmetry: str
    rows: int
    columns: int
    stored: int
    place: str

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.rows, self.columns

    def for_scipy(self) -> bytes:
        """Return a header of two lines for SciPy; symmetric coordinates are mirrored here."""
        if self.layout == "coordinate":
            sizes, symmetry = f"{self.rows} {self.columns} {self.stored}", "general"
        else:
            sizes, symmetry = f"{self.rows} {self.columns}", self.symmetry
        return f"%%MatrixMarket matrix {self.layout} {self.field} {symmetry}\n{sizes}\n".encode()


def parse(stream: IO[bytes], source: Source) -> HostArray | Coordinates:
    """Return the entries of a file.

    Raises
    ------
    InvalidMatrix
        If the file is malformed or truncated, or needs more memory than available.
    """
    lines = Lines(stream, source.name)
    header = read_header(lines, source)
    if header.layout == "array":
        nbytes = header.rows * header.columns * (16 if header.field == "complex" else 8)
        require(nbytes, f"{header.place}: {header.rows} x {header.columns} values need")
    else:
        require(header.stored * _BYTES_PER_ENTRY, f"{header.place}: {header.stored} entries need")
    if header.stored == 0:
        return _without_entries(lines, header)
    if header.layout == "array":
        dense = np.asarray(_by_scipy(_Body(lines, header, source.name), header, source.name))
        _check_diagonal(np.diagonal(dense), header)
        return dense
    found = _coordinates(stream, lines, header, source)
    check_diagonal_entries(found, header)
    return Coordinates(mirrored(found, header.symmetry), header.place)


def _coordinates(stream: IO[bytes], lines: Lines, header: Header, source: Source) -> Any:
    """Return the entries after the header; reread the file if a line is not plain."""
    if not source.can_be_read_again:
        return _by_scipy(_Body(lines, header, source.name), header, source.name)
    result = plain_entries(lines, header)
    if result is not None:
        return result
    stream.close()  # a decompressor takes up to 8 MB
    with source.open() as reopened:
        again = Lines(reopened, source.name)
        read_header(again, source)
        return _by_scipy(_Body(again, header, source.name), header, source.name)


def part_of_entries(stream: IO[bytes], header: Header, stored: int, name: str) -> Any:
    """Return the entries in a range of whole lines of a coordinate file.

    Parameters
    ----------
    stream : file
        The lines in the range.
    header : Header
        The header of the file.
    stored : int
        Number of lines with entries.
    name : str
        Name of the range in errors.

    Returns
    -------
    scipy.sparse.coo_array
        The entries, with the shape of the whole matrix; symmetric matrices are not mirrored.
    """
    part = replace(header, stored=stored, symmetry="general")
    lines = Lines(stream, name)
    if stored:
        return _by_scipy(_Body(lines, part, name), part, name)
    return cast(Coordinates, _without_entries(lines, part)).entries


def read_header(lines: Lines, source: Source) -> Header:
    """Read and check the header; its sizes must be consistent with the length of the file."""
    banner = lines.line()
    match = _BANNER.match(banner.strip())
    if match is None:
        shown = banner[:60].decode(errors="replace")
        raise InvalidMatrix(
            f"{source.name}, line 1: expected '%%MatrixMarket matrix ...' with a known field and "
            f"symmetry, got {shown!r}"
        )
    layout, field, symmetry = (match[i].decode().lower() for i in (1, 2, 3))
    field = "real" if field == "double" else field
    if layout == "array" and field == "pattern":
        raise InvalidMatrix(f"{source.name}, line 1: an array has values, it cannot be a pattern")
    while lines.skip_blank() and lines.starts_with(b"%"):
        lines.skip_line()
    place = lines.place
    if not lines.skip_blank():
        raise truncated(source.name, "there is no line with the sizes")
    sizes = integers(lines.line(), place, 3 if layout == "coordinate" else 2)
    rows, columns = sizes[:2]
    if symmetry != "general" and rows != columns:
        raise InvalidMatrix(f"{place}: {symmetry}, but {rows} x {columns} is not square")
    stored = sizes[2] if layout == "coordinate" else _stored(rows, columns, symmetry)
    header = Header(layout, field, symmetry, rows, columns, stored, place)
    if stored and layout == "coordinate" and not rows * columns:
        raise InvalidMatrix(f"{place}: {rows} x {columns} cannot hold {stored} entries")
    _check_length(header, lines, source)
    return header


def _check_length(header: Header, lines: Lines, source: Source) -> None:
    """Raise an error if the file is too short for the sizes in its header."""
    if source.largest is None:
        return
    left = source.largest - lines.taken
    if header.stored * _SHORTEST[header.layout] > left + 1:
        number = lines.number - 1
        raise truncated(
            source.name,
            f"line {number} announces {header.stored} entries, and at most {left} bytes follow",
        )


def _stored(rows: int, columns: int, symmetry: str) -> int:
    """Return the number of entries in a file with array layout."""
    if symmetry == "general":
        return rows * columns
    return rows * (rows - 1) // 2 if symmetry == "skew-symmetric" else rows * (rows + 1) // 2


def integers(line: bytes, place: str, count: int) -> list[int]:
    """Return the ``count`` sizes in a line.

    Raises
    ------
    InvalidMatrix
        If the number of sizes is wrong, or if a size is negative or exceeds 64 bits.
    """
    words = line.split()
    try:
        # Python refuses more than 4300 digits, whose conversion would take quadratic time.
        right = len(words) == count and all(word.isdigit() for word in words)
        sizes = [int(word) for word in words] if right else []
    except ValueError:
        sizes = []
    if not sizes:
        shown = line[:60].decode(errors="replace")
        raise InvalidMatrix(f"{place}: expected {count} sizes, got {shown!r}")
    if max(sizes) > np.iinfo(np.int64).max:
        raise InvalidMatrix(f"{place}: sizes beyond 64 bits: {sizes}")
    return sizes


def _without_entries(lines: Lines, header: Header) -> HostArray | Coordinates:
    if lines.skip_blank():
        raise InvalidMatrix(f"{lines.place}: {header.place} announces no entries")
    from scipy.sparse import coo_array

    dtype = np.complex128 if header.field == "complex" else np.float64
    if header.layout == "array":
        return np.zeros(header.shape, dtype)
    return Coordinates(coo_array(header.shape, dtype=dtype), header.place)


#: A line that SciPy refuses with its own message; it is sent after a line was refused here.
_REFUSED = b"9" * 30 + b"\n"

#: Blank pieces of at least this number of bytes are skipped here, because SciPy takes 40 s for 1
#: GB.
_MANY_BLANKS = 1 << 12


class _Body:
    """The entries as a file for SciPy, whose ``read`` returns whole, checked lines.

    SciPy requests 1024 bytes but accepts any number. Exceptions here must not pass through its C++
    code: they are stored in ``error``, and SciPy gets a line that it refuses.
    """

    def __init__(self, lines: Lines, header: Header, name: str) -> None:
        self.error: BaseException | None = None
        #: Number of the line in the file that caused the error.
        self.wrong_line: int | None = None
        #: Difference between line numbers in the file and in SciPy's messages.
        self.before = lines.number - 3
        self.blank_dropped = False
        self._grammar = Grammar(header.layout, header.field)
        self._header, self._name, self._line = header, name, lines.number
        self._pieces = self._until_error(lines)

    def read(self, size: int = -1) -> bytes:
        """Return the next lines, or nothing at the end."""
        return next(self._pieces, b"")

    def seek(self, offset: int, whence: int = 0) -> None:
        """Do nothing: SciPy seeks back over bytes that it did not need."""

    def _until_error(self, lines: Lines) -> Iterator[bytes]:
        yield self._header.for_scipy()
        try:
            for text in self._whole_lines(lines):
                yield from self._checked(text)
                if self.error is not None:
                    break
        except GeneratorExit:
            raise  # SciPy needs no more lines
        except BaseException as error:  # from the decompressor, the system, or Ctrl-C
            self.error = error
        if self.error is not None:
            yield _REFUSED

    def _whole_lines(self, lines: Lines) -> Iterator[bytes]:
        """Yield the text in pieces of whole lines."""
        held = b""
        for piece in lines.pieces():
            end = piece.rfind(b"\n") + 1
            if end:
                yield held + piece[:end]
                held = piece[end:]
            else:
                held += piece
            if len(held) > LONGEST_LINE:
                self._refuse(b"", f"is longer than {LONGEST_LINE} bytes")
                return
        if held:
            yield held + b"\n"

    def _checked(self, text: bytes) -> Iterator[bytes]:
        """Yield lines in a form that SciPy reads, up to the first invalid line."""
        if len(text) >= _MANY_BLANKS and text.isspace():
            self.blank_dropped = True
            self._line += text.count(b"\n")
            yield b"\n"
            return
        try:
            ready = self._grammar.checked(text)
        except WrongLine as wrong:
            good = text[: wrong.before]
            self._refuse(good, wrong.message)
            if good:  # empty bytes would mean the end of the file
                yield self._grammar.checked(good)
            return
        self._line += text.count(b"\n")
        yield ready

    def _refuse(self, good: bytes, message: str) -> None:
        """Store the error of the line after ``good``."""
        self.wrong_line = self._line + good.count(b"\n")
        self.error = InvalidMatrix(f"{self._name}, line {self.wrong_line}: {message}")


def _by_scipy(body: _Body, header: Header, name: str) -> Any:
    from scipy.io import mmread

    try:
        result = mmread(cast("IO[bytes]", body), spmatrix=False)
    except Exception as error:  # the reader passes on errors of its parser
        match = _LINE.match(str(error))
        line = int(match[1]) + body.before if match and not body.blank_dropped else None
        if body.error is not None and (
            line is None or body.wrong_line is None or line >= body.wrong_line
        ):
            raise body.error from None
        place = name if line is None else f"{name}, line {line}"
        label: object = match[2] if match else error
        if "Truncated" in str(error):
            line_of_sizes = header.place.removeprefix(f"{name}, ")
            count = re.search(r"another (\d+) lines", str(error))
            last = f"the last {count[1]} are" if count and count[1] != "1" else "the last one is"
            missing = f", and {last} missing" if count else ""
            raise truncated(
                name, f"{line_of_sizes} announces {header.stored} entries{missing}"
            ) from error
        raise InvalidMatrix(f"{place}: {label}") from error
    if body.error is not None:
        raise body.error
    return result


def check_diagonal_entries(entries: Any, header: Header) -> None:
    """Raise InvalidMatrix if a ``coo_array`` has a diagonal entry that its symmetry excludes."""
    if header.symmetry in _DIAGONAL:
        _check_diagonal(entries.data[entries.row == entries.col], header)


def _check_diagonal(values: HostArray, header: Header) -> None:
    remedy = "Correct the entry, or write 'general' in line 1"
    require_diagonal(values, header.symmetry, header.place, remedy)


def require_diagonal(values: HostArray, symmetry: str, place: str, remedy: str) -> None:
    """Raise InvalidMatrix if the symmetry excludes a value on the diagonal."""
    excluded = _DIAGONAL.get(symmetry)
    if excluded is None:
        return
    part, expectation = excluded
    wrong = values[part(values) != 0]
    if wrong.size:
        raise InvalidMatrix(
            f"{place}: the matrix is {symmetry}, so its diagonal is {expectation}; "
            f"got {wrong[0]} on the diagonal. {remedy}"
        )


#: For each symmetry: the part of diagonal entries that must be zero.
_DIAGONAL: dict[str, tuple[Callable[[HostArray], HostArray], str]] = {
    "hermitian": (np.imag, "real"),
    "skew-symmetric": (np.asarray, "zero"),
}


def mirrored(entries: Any, symmetry: str) -> Any:
    """Add the mirrored upper triangle to a ``coo_array`` with the lower triangle."""
    from scipy.sparse import coo_array

    if symmetry == "general":
        return entries
    data, i, j = entries.data, entries.row, entries.col
    if symmetry == "skew-symmetric" and data.dtype.kind in "ui":
        data = data.astype(np.float64)
    off = i != j
    many, more = data.size, int(np.count_nonzero(off))
    row, col = (np.empty(many + more, a.dtype) for a in (i, j))
    values = np.empty(many + more, data.dtype)
    row[:many], col[:many], values[:many] = i, j, data
    np.compress(off, j, out=row[many:])
    np.compress(off, i, out=col[many:])
    mirror = np.compress(off, data, out=values[many:])
    if symmetry == "skew-symmetric":
        np.negative(mirror, out=mirror)
    elif symmetry == "hermitian":
        np.conjugate(mirror, out=mirror)
    return coo_array((values, (row, col)), shape=entries.shape)
