"""The grammar of number lines in Matrix Market files, checked before SciPy reads them.

SciPy's parser stops where a number becomes invalid and ignores the rest of the line. Therefore each
line is first compared with a grammar. The shape of a line has one mark for each run of digits or
blanks. A piece of text contains few distinct shapes, so most pieces cost one NumPy pass and one
comparison of sets.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass

import numpy as np

#: Marks in a shape: one for blanks, one for digits. Every other byte that occurs in numbers marks
#: itself, and all unknown bytes are marked "?".
_BLANK, _DIGIT, _UNKNOWN = 1, 2, ord("?")


def _marks() -> bytes:
    marks = bytearray([_UNKNOWN]) * 256
    for byte in b" \t\r\f\v":
        marks[byte] = _BLANK
    for byte in b"0123456789":
        marks[byte] = _DIGIT
    for byte in b"\n.+-":
        marks[byte] = byte
    for byte in b"eEdD":
        marks[byte] = ord("e")
    return bytes(marks)


_MARKS = _marks()

#: Possessive quantifiers ensure linear time for lines of 64 KiB.
_POINT = rb"(?:[0-9]++\.[0-9]*+|\.[0-9]++)"
_EXPONENT = rb"[eEdD][+-]?+[0-9]++"
#: Fortran writes three-digit exponents without a letter: 1.5-100.
_REAL = (
    rb"[+-]?+(?:" + _POINT + rb"(?:" + _EXPONENT + rb"|[+-][0-9]{3})?+"
    rb"|[0-9]++(?:" + _EXPONENT + rb")?+|(?i:nan|inf(?:inity)?+))"
)
_PLACE = rb"[0-9]++"
_INTEGER, _UNSIGNED = rb"[+-]?+[0-9]++", rb"\+?+[0-9]++"

#: For each field: the patterns of an entry's values after its indices, and their name in errors.
_NUMBERS: dict[str, tuple[list[bytes], str]] = {
    "pattern": ([], ""),
    "integer": ([_INTEGER], "an integer"),
    "unsigned-integer": ([_UNSIGNED], "an integer without a sign"),
    "real": ([_REAL], "a number"),
    "complex": ([_REAL, _REAL], "a real and an imaginary part"),
}

#: The shapes of numbers that SciPy reads unchanged.
_SHAPES = {
    _REAL: rb"-?+(?:\x02(?:\.\x02?+)?+|\.\x02)(?:e[+-]?+\x02)?+",
    _INTEGER: rb"-?+\x02",
    _UNSIGNED: rb"\x02",
    _PLACE: rb"\x02",
}

_SHOWN = 60


@dataclass
class WrongLine(Exception):
    """Raised for a line that does not match the grammar.

    Parameters
    ----------
    before : int
        Number of bytes before the line in the text.
    message : str
        The expected form, and the beginning of the line.
    """

    before: int
    message: str


def _line(words: list[bytes], blank: bytes) -> bytes:
    return blank + rb"*+(?:" + (blank + rb"++").join(words) + blank + rb"*+)?+"


@dataclass
class Grammar:
    """The allowed lines of one kind of file; blank lines are ignored.

    Parameters
    ----------
    layout, field : str
        The values in the banner of the file.
    """

    layout: str
    field: str
    _plain: set[bytes] = dataclasses.field(default_factory=set)

    def __post_init__(self) -> None:
        numbers, name = _NUMBERS[self.field]
        places = [_PLACE, _PLACE] if self.layout == "coordinate" else []
        words = places + numbers
        self._shape = re.compile(_line([_SHAPES[word] for word in words], rb"\x01"))
        self._lines = re.compile(rb"(?:" + _line(words, rb"[ \t\r\f\v]") + rb"\n)*+")
        self._expected = " and ".join(
            part for part in ("a row, a column" if places else "", name) if part
        )

    def checked(self, text: bytes) -> bytes:
        """Return whole lines in a form that SciPy reads.

        Parameters
        ----------
        text : bytes
            Lines, including their ends.

        Raises
        ------
        WrongLine
            For the first line that does not match the grammar.
        """
        if self._are_plain(text):
            return text.translate(_LETTERS) if b"d" in text or b"D" in text else text
        end = self._lines.match(text).end()  # type: ignore[union-attr]
        if end < len(text):
            line = text[end:].partition(b"\n")[0].strip()
            shown = line[:_SHOWN].decode(errors="replace") + ("..." if len(line) > _SHOWN else "")
            raise WrongLine(end, f"expected {self._expected}, got {shown!r}")
        text = text.translate(_LETTERS)
        text = _SIGN.sub(b"", text)
        return _LETTERLESS.sub(rb"e\1", text)

    def _are_plain(self, text: bytes) -> bool:
        """Return whether the shapes of all lines are such that SciPy reads them unchanged."""
        marks = np.frombuffer(text.translate(_MARKS), np.uint8)
        first = marks > _DIGIT  # only runs of blanks and digits are joined
        first[1:] |= marks[1:] != marks[:-1]
        first[:1] = True
        unknown = set(marks[first].tobytes().split(b"\n")) - self._plain
        for shape in unknown:
            if self._shape.fullmatch(shape) is None:
                return False
        self._plain |= unknown
        return True


#: SciPy does not read Fortran's D, plus signs, or exponents without a letter.
_LETTERS = bytes.maketrans(b"dD", b"eE")
_SIGN = re.compile(rb"(?<![0-9.eE])\+")
_LETTERLESS = re.compile(rb"(?<=[0-9.])([+-])")
