"""Harwell-Boeing and Rutherford-Boeing files: compressed columns in fields of fixed width.

The header has four lines: a title, the numbers of lines, the type and the sizes, and the Fortran
formats of the three parts. A fifth line describes right-hand sides, which are not read. References:
I. S. Duff, R. G. Grimes, J. G. Lewis, Users' Guide for the Harwell-Boeing Sparse Matrix Collection,
1992; The Rutherford-Boeing Sparse Matrix Collection, 1997.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from ..errors import InvalidMatrix
from .entries import Coordinates, HostArray
from .lines import Lines
from .matrix_market import integers, mirrored, require_diagonal
from .memory import require
from .numbers import Grammar, WrongLine
from .source import Source, truncated

#: The type of a matrix: its values, its symmetry, and whether it is assembled.
_TYPE = re.compile(rb"\s*([rcpiq])([suhzr])([ae])(?=\s)", re.IGNORECASE)

_SYMMETRIES = {
    "s": "symmetric",
    "u": "general",
    "h": "hermitian",
    "z": "skew-symmetric",
    "r": "general",
}

#: A Fortran format such as (16I5), (1P,5D16.8) or (4E20.12E3).
_FORMAT = re.compile(
    rb"\(\s*(?:([+-]?[0-9]+)P\s*,?\s*)?([0-9]*)\s*([IFEDG])\s*([0-9]+)(?:\.[0-9]+)?(?:E[0-9]+)?\s*\)",
    re.IGNORECASE,
)
_PARENTHESES = re.compile(rb"\([^()]*\)")

#: Maximum width of a field of a number, and maximum number of fields in a line.
_WIDEST, _MOST = 256, 1 << 12

#: Bytes of an entry in memory: a value, a row and a column.
_BYTES_PER_ENTRY = 24

#: Number of lines that are parsed at once.
_AT_ONCE = 4096


@dataclass(frozen=True)
class _Fields:
    """A Fortran format: ``repeat`` fields of ``width`` characters in each line."""

    text: str
    repeat: int
    width: int
    is_integer: bool
    scale: int

    def lines(self, count: int) -> int:
        """Return the number of lines that ``count`` fields take."""
        return -(-count // self.repeat)


@dataclass(frozen=True)
class _Header:
    """The data of a header on which the entries depend."""

    values: str
    symmetry: str
    rows: int
    columns: int
    stored: int
    formats: list[_Fields]
    place: str

    @property
    def numbers(self) -> int:
        """The number of real numbers in the values."""
        return {"p": 0, "q": 0, "c": 2}.get(self.values, 1) * self.stored


def parse(stream: IO[bytes], source: Source) -> Coordinates:
    """Return the entries of a file.

    Raises
    ------
    InvalidMatrix
        If the file is malformed, truncated or not assembled, or needs more memory than available.
    """
    lines = Lines(stream, source.name)
    header = _read_header(lines, source)
    require(
        header.stored * _BYTES_PER_ENTRY + 8 * header.columns,
        f"{header.place}: {header.columns} columns and {header.stored} entries need",
    )
    of_pointers, of_rows, *of_values = header.formats
    pointers = _integers(lines, header.columns + 1, of_pointers, "column pointers")
    if pointers[0] != 1 or pointers[-1] != header.stored + 1 or np.any(np.diff(pointers) < 0):
        raise InvalidMatrix(
            f"{source.name}: the column pointers must rise from 1 to {header.stored + 1}, "
            "the number of entries and 1"
        )
    row = _integers(lines, header.stored, of_rows, "row indices") - 1
    if row.size and (row.min() < 0 or row.max() >= header.rows):
        wrong = row[(row < 0) | (row >= header.rows)][0] + 1
        raise InvalidMatrix(f"{source.name}: row {wrong} is not one of 1 to {header.rows}")
    values: HostArray = np.ones(header.stored)
    if of_values:
        values = _reals(lines, header.numbers, of_values[0])
        values = values.view(np.complex128) if header.values == "c" else values
    return _coordinates(header, values, row, np.diff(pointers))


def _coordinates(
    header: _Header, values: HostArray, row: HostArray, lengths: HostArray
) -> Coordinates:
    """Return the entries with their columns; add the other triangle of a symmetric matrix."""
    from scipy.sparse import coo_array

    column = np.repeat(np.arange(header.columns), lengths)
    require_diagonal(
        values[row == column],
        header.symmetry,
        header.place,
        "Correct the entry, or write 'u' for the second letter of the type",
    )
    shape = (header.rows, header.columns)
    entries: Any = coo_array((values, (row, column)), shape=shape)
    return Coordinates(mirrored(entries, header.symmetry), header.place)


def _read_header(lines: Lines, source: Source) -> _Header:
    """Read and check the header; its sizes must be consistent with the length of the file."""
    if not lines.skip_blank():
        raise truncated(source.name, "expected a title, got nothing")
    lines.skip_line()
    place = lines.place
    words = lines.line().split()
    counts = integers(b" ".join(words), place, 5 if len(words) >= 5 else 4)
    place = lines.place
    line = lines.line()
    found = _TYPE.match(line + b" ")
    if found is None:
        shown = line[:14].decode(errors="replace")
        raise InvalidMatrix(
            f"{place}: expected a type of three letters such as rua or psa, got {shown!r}"
        )
    values, structure, assembled = (letter.decode().lower() for letter in found.groups())
    if assembled == "e":
        raise InvalidMatrix(
            f"{place}: the matrix is a sum of elements; only assembled ones are read"
        )
    if values == "q":
        raise InvalidMatrix(f"{place}: the values are in another file, which is not read")
    rows, columns, stored = integers(
        b" ".join(line[found.end() :].split()[:3]), place, 3
    )  # fmt: skip
    symmetry = _SYMMETRIES[structure]
    if symmetry != "general" and rows != columns:
        raise InvalidMatrix(f"{place}: a {symmetry} matrix is square, got {rows} x {columns}")
    formats = _formats(lines, 2 if values == "p" else 3)
    if any(counts[4:]):
        lines.skip_line()  # type and number of right-hand sides
    header = _Header(values, symmetry, rows, columns, stored, formats, place)
    _check_length(header, lines, source)
    return header


def _formats(lines: Lines, count: int) -> list[_Fields]:
    """Return the formats of pointers, indices and values from this line."""
    place, line = lines.place, lines.line()
    texts = _PARENTHESES.findall(line)
    if len(texts) < count:
        shown = line[:72].decode(errors="replace").strip()
        raise InvalidMatrix(f"{place}: expected {count} Fortran formats, got {shown!r}")
    result = []
    for text, is_integer in zip(texts[:count], (True, True, False), strict=False):
        shown, found = text.decode(errors="replace"), _FORMAT.fullmatch(text)
        if found is None:
            raise InvalidMatrix(f"{place}: expected a format such as (16I5), got {shown}")
        scale, repeat, letter, width = found.groups()
        fields = _Fields(
            shown, int(repeat or 1), int(width), letter in b"iI", int(scale or 0)
        )  # fmt: skip
        if not (0 < fields.repeat <= _MOST and 0 < fields.width <= _WIDEST):
            raise InvalidMatrix(f"{place}: fields have 1 to {_WIDEST} characters, got {shown}")
        if is_integer and not fields.is_integer:
            raise InvalidMatrix(f"{place}: expected a format of integers, got {shown}")
        result.append(fields)
    return result


def _check_length(header: _Header, lines: Lines, source: Source) -> None:
    """Raise InvalidMatrix if the file is too short for its fields."""
    if source.largest is None:
        return
    counts = (header.columns + 1, header.stored, header.numbers)
    # Trailing blanks may be missing, so a field needs at least one character and a separator.
    least = sum(count + f.lines(count) for count, f in zip(counts, header.formats, strict=False))
    left = source.largest - lines.taken
    if least > left + 1:
        line = header.place.removeprefix(f"{source.name}, ")
        raise truncated(
            source.name,
            f"{line} announces {header.columns} columns and {header.stored} entries, and at most "
            f"{left} bytes follow",
        )


def _integers(lines: Lines, count: int, fields: _Fields, name: str) -> HostArray:
    parts = [
        _numbers(text, place, Grammar("array", "integer"), np.int64)
        for text, place, _ in _texts(lines, count, fields, name)
    ]
    return np.concatenate([np.empty(0, np.int64), *parts])


def _reals(lines: Lines, count: int, fields: _Fields) -> HostArray:
    parts, grammar = [], Grammar("array", "integer" if fields.is_integer else "real")
    for text, place, cells in _texts(lines, count, fields, "values"):
        if not fields.is_integer:
            _require_plain(cells, fields, place)
        parts.append(_numbers(text, place, grammar, np.float64))
    return np.concatenate([np.empty(0), *parts])


def _require_plain(cells: HostArray, fields: _Fields, place: str) -> None:
    """Raise InvalidMatrix where Fortran would scale the digits of a field by a power of ten."""
    has_point = (cells == ord(".")).any(axis=1)
    letters = np.isin(cells, np.frombuffer(b"eEdDnN", np.uint8)).any(axis=1)  # also nan and inf
    if not np.all(has_point | letters):
        raise InvalidMatrix(
            f"{place}: a value without a decimal point in the format {fields.text}: Fortran and "
            "other programs differ in its meaning; write the point"
        )
    if fields.scale and not np.all(letters):
        raise InvalidMatrix(
            f"{place}: a value without an exponent in the format {fields.text}, by which Fortran "
            "multiplies it by a power of ten; write the exponent"
        )


def _texts(
    lines: Lines, count: int, fields: _Fields, name: str
) -> Iterator[tuple[bytes, str, HostArray]]:
    """Yield fields as text, one per line, with the place of the first field and the bytes."""
    length = fields.repeat * fields.width
    while count > 0:
        place, held = lines.place, []
        for number in range(min(_AT_ONCE, fields.lines(count))):
            at = lines.place
            if not (line := lines.line().rstrip()):
                left = count - number * fields.repeat
                raise InvalidMatrix(f"{at}: expected {left} more {name}, got an empty line")
            held.append(line[:length].ljust(length))
        cells = np.frombuffer(b"".join(held), np.uint8).reshape(-1, fields.width)[:count]
        text = np.full((len(cells), fields.width + 1), ord("\n"), np.uint8)
        text[:, :-1] = cells
        count -= len(cells)
        yield text.tobytes(), place, cells


def _numbers(text: bytes, place: str, grammar: Grammar, dtype: Any) -> HostArray:
    """Return the numbers in a text with one number per line."""
    lines = text.count(b"\n")
    try:
        checked = grammar.checked(text)
    except WrongLine as wrong:
        raise InvalidMatrix(f"{place}, and following lines: {wrong.message}") from None
    words = checked.split()
    if len(words) != lines:
        raise InvalidMatrix(f"{place}, and following lines: {lines - len(words)} fields are blank")
    try:
        return np.array(words).astype(dtype)
    except (ValueError, OverflowError) as error:
        raise InvalidMatrix(f"{place}, and following lines: {error}") from None
