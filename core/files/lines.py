"""A text that is read in pieces of bounded size, with the number of the current line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from ..errors import InvalidMatrix
from .source import CHUNK, truncated

HostArray = np.ndarray[Any, Any]

#: The characters that separate numbers.
BLANK = b" \t\r\n\f\v"

#: Maximum length in bytes of a line with entries or sizes. It protects against compressed files of
#: a few kilobytes that contain a line of gigabytes.
LONGEST_LINE = 1 << 16


class Lines:
    """A text that is read from its beginning.

    Parameters
    ----------
    stream : file
        The file in binary mode.
    name : str
        Name of the file in errors.

    Attributes
    ----------
    number : int
        Number of the current line, counted from 1.
    taken : int
        Number of bytes consumed so far.
    """

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream, self._name = stream, name
        self._held = b""
        self._at = 0
        self.number = 1
        self.taken = 0

    @property
    def place(self) -> str:
        """The name of the file and the number of the current line."""
        return f"{self._name}, line {self.number}"

    def _more(self) -> bool:
        """Replace the consumed buffer by the next piece."""
        self._held, self._at = self._stream.read(CHUNK), 0
        return bool(self._held)

    def _take(self, count: int) -> bytes:
        taken = self._held[self._at : self._at + count]
        self._at += len(taken)
        self.taken += len(taken)
        return taken

    def skip_blank(self) -> bool:
        """Skip blanks; return whether another byte follows."""
        while self._at < len(self._held) or self._more():
            rest = len(self._held) - self._at
            blank = self._take(rest - len(self._held[self._at :].lstrip(BLANK)))
            self.number += blank.count(b"\n")
            if len(blank) < rest:
                return True
        return False

    def skip_line(self) -> None:
        """Skip the rest of the current line, of any length."""
        while self._at < len(self._held) or self._more():
            end = self._held.find(b"\n", self._at)
            if end >= 0:
                self._take(end + 1 - self._at)
                self.number += 1
                return
            self._take(len(self._held))

    def starts_with(self, mark: bytes) -> bool:
        """Return whether the next byte is ``mark``."""
        return self._held.startswith(mark, self._at)

    def line(self) -> bytes:
        """Return the rest of the current line without its end, and advance to the next line.

        Raises
        ------
        InvalidMatrix
            If the line is longer than :data:`LONGEST_LINE`.
        """
        parts: list[bytes] = []
        length = 0
        while self._at < len(self._held) or self._more():
            end = self._held.find(b"\n", self._at)
            part = self._take(end - self._at if end >= 0 else len(self._held))
            parts.append(part)
            length += len(part)
            if length > LONGEST_LINE:
                raise InvalidMatrix(f"{self.place}: is longer than {LONGEST_LINE} bytes")
            if end >= 0:
                self._take(1)
                break
        self.number += 1
        return b"".join(parts)

    def pieces(self) -> Iterator[bytes]:
        """Yield the rest of the text in pieces."""
        while self._at < len(self._held) or self._more():
            yield self._take(len(self._held))

    def whole_lines(self, size: int) -> Iterator[bytes]:
        """Yield the rest in pieces of about ``size`` bytes, each of whole lines."""
        cut = self._take(len(self._held) - self._at)
        while piece := self._stream.read(size):
            end = piece.rfind(b"\n") + 1
            if end:
                yield cut + piece[:end]
                cut = piece[end:]
            else:
                cut += piece
            if len(cut) > LONGEST_LINE:
                yield cut  # without a line end: every reader refuses it
                return
        if cut:
            yield cut if cut.endswith(b"\n") else cut + b"\n"

    def numbers_of_line(self, count: int, label: str) -> HostArray:
        """Return the integers in the current line, of any length, and advance to the next line.

        Parameters
        ----------
        count : int
            The required number of integers.
        label : str
            The reason for that number, for messages.

        Raises
        ------
        InvalidMatrix
            If the number is wrong, or if the line contains anything else.
        """
        found: list[HostArray] = []
        total, cut, ends = 0, b"", False
        place = self.place
        while not ends and (self._at < len(self._held) or self._more()):
            end = self._held.find(b"\n", self._at)
            ends = end >= 0
            text = cut + self._take((end if ends else len(self._held)) - self._at)
            cut = b""
            if not ends:  # a number may continue in the next piece
                stripped = text.rstrip(b"+-0123456789")
                text, cut = stripped, text[len(stripped) :]
            numbers = _integers(text, place)
            if len(cut) > LONGEST_LINE:
                raise InvalidMatrix(f"{place}: expected integers, got {cut[:30]!r}...")
            total += numbers.size
            found.append(numbers)
            if total > count:
                break
        numbers = _integers(cut, place)
        total += numbers.size
        if total < count and not ends:
            raise truncated(
                self._name, f"{label} {count} numbers in line {self.number}, found {total}"
            )
        if total != count:
            more = " or more" if total > count else ""
            raise InvalidMatrix(f"{place}: {label} {count} numbers here, found {total}{more}")
        self._take(1)
        self.number += 1
        return np.concatenate([np.empty(0, np.int64), *found, numbers])


def _integers(text: bytes, place: str) -> HostArray:
    strange = text.translate(None, b"-0123456789" + BLANK)
    if strange:  # NumPy would accept 1_0 as 10
        raise InvalidMatrix(f"{place}: expected integers: {strange[:1]!r} is in none")
    try:
        return np.array(text.split(), dtype=np.int64)
    except (ValueError, OverflowError) as error:
        raise InvalidMatrix(f"{place}: expected integers: {error}") from error
