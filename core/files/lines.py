"""Text read in pieces of bounded size, with the number of the line at hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from ..errors import InvalidMatrix
from .source import CHUNK, truncated

HostArray = np.ndarray[Any, Any]

#: The characters between numbers.
BLANK = b" \t\r\n\f\v"

#: No line of entries, and no line with sizes, is longer: a compressed file of a few kilobytes can
#: hold a line of gigabytes.
LONGEST_LINE = 1 << 16


class Lines:
    """A text, read from its start.

    Parameters
    ----------
    stream : file
        In binary mode.
    name : str
        Its name in errors.

    Attributes
    ----------
    number : int
        Of the line at hand, the first is 1.
    taken : int
        Bytes that were taken so far.
    """

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream, self._name = stream, name
        self._held = b""
        self._at = 0
        self.number = 1
        self.taken = 0

    @property
    def place(self) -> str:
        """The file and the line at hand."""
        return f"{self._name}, line {self.number}"

    def _more(self) -> bool:
        """Replace the used-up buffer by the next piece."""
        self._held, self._at = self._stream.read(CHUNK), 0
        return bool(self._held)

    def _take(self, count: int) -> bytes:
        taken = self._held[self._at : self._at + count]
        self._at += len(taken)
        self.taken += len(taken)
        return taken

    def skip_blank(self) -> bool:
        """Go to the next byte that is not blank; return whether there is one."""
        while self._at < len(self._held) or self._more():
            rest = len(self._held) - self._at
            blank = self._take(rest - len(self._held[self._at :].lstrip(BLANK)))
            self.number += blank.count(b"\n")
            if len(blank) < rest:
                return True
        return False

    def skip_line(self) -> None:
        """Go behind the end of this line, however long it is."""
        while self._at < len(self._held) or self._more():
            end = self._held.find(b"\n", self._at)
            if end >= 0:
                self._take(end + 1 - self._at)
                self.number += 1
                return
            self._take(len(self._held))

    def starts_with(self, mark: bytes) -> bool:
        """Return whether this byte is ``mark``."""
        return self._held.startswith(mark, self._at)

    def line(self) -> bytes:
        """Return the rest of this line without its end, and go behind it.

        Raises
        ------
        InvalidMatrix
            If it is longer than any such line.
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
        """Yield the rest in pieces."""
        while self._at < len(self._held) or self._more():
            yield self._take(len(self._held))

    def whole_lines(self, size: int) -> Iterator[bytes]:
        """Yield the rest in pieces of about ``size`` bytes that end with a line."""
        cut = self._take(len(self._held) - self._at)
        while piece := self._stream.read(size):
            end = piece.rfind(b"\n") + 1
            if end:
                yield cut + piece[:end]
                cut = piece[end:]
            else:
                cut += piece
            if len(cut) > LONGEST_LINE:
                yield cut  # without an end: no reader takes it
                return
        if cut:
            yield cut if cut.endswith(b"\n") else cut + b"\n"

    def numbers_of_line(self, count: int, label: str) -> HostArray:
        """Return the integers of this line, which is as long as it takes, and go behind it.

        Parameters
        ----------
        count : int
            How many there must be.
        label : str
            The reason for the number.

        Raises
        ------
        InvalidMatrix
            If there are more or fewer, or something else.
        """
        found: list[HostArray] = []
        total, cut, ends = 0, b"", False
        place = self.place
        while not ends and (self._at < len(self._held) or self._more()):
            end = self._held.find(b"\n", self._at)
            ends = end >= 0
            text = cut + self._take((end if ends else len(self._held)) - self._at)
            cut = b""
            if not ends:  # a number may go on in the next piece
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
    if strange:  # NumPy would read 1_0 as 10
        raise InvalidMatrix(f"{place}: expected integers: {strange[:1]!r} is in none")
    try:
        return np.array(text.split(), dtype=np.int64)
    except (ValueError, OverflowError) as error:
        raise InvalidMatrix(f"{place}: expected integers: {error}") from error
