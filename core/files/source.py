"""Sources of bytes: a path or an open file, compressed or not."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from ..errors import InvalidArgument, InvalidMatrix, MissingFile

#: Number of bytes that are read at once. Smaller pieces cost more calls, larger ones more cache
#: misses: parsing 40 MB takes the same time with 64 KB and with 4 MB.
CHUNK = 1 << 17

#: The compressions by suffix: the first bytes of a file, the module that opens it, and the maximum
#: size of one compressed byte after decompression (None: unknown).
COMPRESSED: dict[str, tuple[bytes, str, int | None]] = {
    ".gz": (b"\x1f\x8b", "gzip", 1032),
    ".bz2": (b"BZh", "bz2", None),
    ".xz": (b"\xfd7zXZ\0", "lzma", None),
}

#: The suffixes of plain text files.
PLAIN = ("txt", "dat", "csv")
TEXT_KINDS = ("mtx", "smtx", "hb", *PLAIN)
KINDS = (*TEXT_KINDS, "npz", "npy", "mat")

#: Other suffixes of Harwell-Boeing and Rutherford-Boeing files: the type of the matrix, or .rb.
_BOEING = re.compile(r"rb|[rcpi][suhzr][ae]", re.IGNORECASE)

#: The known suffixes, for messages.
KNOWN = (
    ".mtx, .smtx, .hb, .rb, the three letters of a Harwell-Boeing type such as .rua, and .txt, "
    ".dat or .csv with numbers alone (each also followed by .gz, .bz2 or .xz), .npz, .npy and .mat"
)

#: The first bytes of an open file, in lower case, with the kind that they identify. A .smtx file
#: begins with a number instead.
BEGINNINGS = ((b"%%matrixmarket", "mtx"), (b"pk\x03\x04", "npz"), (b"pk\x05\x06", "npz"),
               (b"\x93numpy", "npy"), (b"matlab ", "mat"))  # fmt: skip
LONGEST_MARK = 16


class Source:
    """A file to read.

    Parameters
    ----------
    file : str, Path or open file
        The suffix of a path determines the kind. For an open file the first bytes do; it must be in
        binary mode, is read from its current position, and is left open.

    Attributes
    ----------
    name : str
        Name of the file in errors.
    kind : str
        One of ``KINDS``; for an open file it is known only after reading.
    largest : int or None
        Upper bound of the content in bytes, if it is known.

    Raises
    ------
    InvalidArgument
        If the suffix of a path is unknown, or if ``file`` is neither a path nor a file.
    """

    def __init__(self, file: Any) -> None:
        self.largest: int | None = None
        self.kind, self._compression = "", ""
        self._path: Path | None = None
        if isinstance(file, (str, os.PathLike)):
            self._path = Path(file)
            self.name = str(file)
            self.kind, self._compression = kind_of(self._path)
        elif callable(getattr(file, "read", None)):
            self._file = file
            self.name = _name_of(file)
        else:
            raise InvalidArgument(
                f"expected a path or a file that is open for reading, got {type(file).__name__}"
            )

    @property
    def can_be_read_again(self) -> bool:
        """Whether the content can be opened twice: true for files on disk, false for pipes."""
        return self._path is not None and self._path.is_file()

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Yield the uncompressed content as a stream.

        Raises
        ------
        MissingFile
            If the file does not exist.
        OSError
            If the file cannot be opened; it is the system's own error.
        """
        if self._path is None:
            yield self._told_by_content()
            return
        if not self._path.exists():
            raise MissingFile(f"{self._path}: there is no such file")
        with self._path.open("rb") as raw:
            if self._path.is_file():  # a pipe has no size
                factor = COMPRESSED[self._compression][2] if self._compression else 1
                self.largest = factor and factor * self._path.stat().st_size
            yield _decompressed(raw, self._compression) if self._compression else raw

    def _told_by_content(self) -> IO[bytes]:
        """Return the content of an open file after determining its kind."""
        stream = Pushback(self._file, self.name)
        start = stream.peek(LONGEST_MARK)
        for compression, (mark, _, _) in COMPRESSED.items():
            if start.startswith(mark):
                inside = _decompressed(cast("IO[bytes]", stream), compression)
                stream = Pushback(inside, self.name)
                start = stream.peek(LONGEST_MARK)
                break
        else:
            compression = ""
        known = [(m, kind) for m, kind in BEGINNINGS if kind in TEXT_KINDS or not compression]
        self.kind = next((kind for mark, kind in known if start.lower().startswith(mark)), "")
        if not self.kind and start.lstrip()[:1].isdigit():
            self.kind = "smtx"
        if not self.kind and _boeing(self.name.removesuffix(compression)):
            self.kind = "hb"  # its first line is an arbitrary title
        if not self.kind:
            raise InvalidMatrix(
                f"{self.name}: unknown kind of file, which begins with {start!r}; known are {KNOWN}"
            )
        return cast("IO[bytes]", stream)


def kind_of(path: Path) -> tuple[str, str]:
    """Return the kind and the compression that a path's suffix indicates.

    Raises
    ------
    InvalidArgument
        If the suffix is unknown.
    """
    compression = path.suffix if path.suffix in COMPRESSED else ""
    name = path.name.removesuffix(compression)
    kind = "hb" if _boeing(name) else Path(name).suffix[1:]
    if kind not in (TEXT_KINDS if compression else KINDS):
        raise InvalidArgument(f"{path}: unknown kind of file; known are {KNOWN}")
    return kind, compression


def _boeing(name: str) -> bool:
    """Return whether a name has the suffix of a Harwell-Boeing or Rutherford-Boeing file."""
    ending = Path(name).suffix[1:]
    return ending == "hb" or _BOEING.fullmatch(ending) is not None


def _decompressed(raw: IO[bytes], compression: str) -> IO[bytes]:
    if compression == ".gz":
        import gzip

        return cast("IO[bytes]", gzip.GzipFile(fileobj=raw, mode="rb"))
    if compression == ".bz2":
        import bz2

        return cast("IO[bytes]", bz2.BZ2File(raw, "rb"))
    import lzma

    return cast("IO[bytes]", lzma.LZMAFile(raw, "rb"))


def _name_of(file: Any) -> str:
    name = getattr(file, "name", None)
    return str(name) if isinstance(name, (str, os.PathLike)) else f"<{type(file).__name__}>"


class Pushback:
    """Any open file as a stream of bytes whose beginning can be read ahead.

    Files in text mode are accepted; their text is encoded.

    Parameters
    ----------
    file : object with ``read(size)``
        A file that need not support seeking.
    name : str
        Name of the file in errors.
    """

    def __init__(self, file: Any, name: str) -> None:
        self._file, self._name = file, name
        self._ahead = b""

    def readable(self) -> bool:
        """Return True: the stream can be read."""
        return True

    def seekable(self) -> bool:
        """Return False: the stream cannot be repositioned."""
        return False

    def tell(self) -> int:
        """Raise an error: gzip and lzma call this, and work without a position."""
        raise OSError("not seekable")

    def peek(self, size: int) -> bytes:
        """Return the next bytes without consuming them; fewer at the end."""
        while len(self._ahead) < size:
            more = self._take(size - len(self._ahead))
            if not more:
                break
            self._ahead += more
        return self._ahead[:size]

    def read(self, size: int = -1) -> bytes:
        """Return at most ``size`` bytes, or all bytes; empty at the end."""
        if size is None or size < 0:
            whole = [self._ahead]
            self._ahead = b""
            while more := self._take(CHUNK):
                whole.append(more)
            return b"".join(whole)
        if self._ahead:
            given, self._ahead = self._ahead[:size], self._ahead[size:]
            return given
        return self._take(size)

    def _take(self, size: int) -> bytes:
        given = self._file.read(size)
        if isinstance(given, str):
            given = given.encode()
        if given is None:
            raise InvalidArgument(f"{self._name}: is not blocking; open it without O_NONBLOCK")
        if not isinstance(given, (bytes, bytearray, memoryview)):
            raise InvalidArgument(
                f"{self._name}: read() returned {type(given).__name__}, expected bytes"
            )
        given = bytes(given)
        if len(given) > size:  # the file returned more than requested
            given, self._ahead = given[:size], given[size:]
        return given


def truncated(name: str, label: str) -> InvalidMatrix:
    """Return the error for a truncated file."""
    return InvalidMatrix(f"{name}: truncated: {label}")
