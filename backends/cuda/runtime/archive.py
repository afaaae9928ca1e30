"""Precompiled kernels of a wheel: one archive per architecture.

A cubin is found by a hash of everything that it depends on: the tokens of its program, the
architecture and the compiler's options. An archive of another version of wollemi therefore still
serves programs that have not changed since. NVRTC is not needed for these programs, and its version
is irrelevant.

An archive is a ZIP file. Each member is a concatenation of some forty cubins, because cubins have
much in common: one member takes a third of the size of separate ones. The member ``index.json``
contains the position of each cubin.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import threading
import zipfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ....core.kernel_text import without_comments
from .availability import driver_version

#: The folder of a wheel's archives. It does not exist in builds without archives.
FOLDER = Path(__file__).parents[1] / "kernels"

#: Uncompressed bytes of cubins per member: a lookup expands one member in 7 milliseconds.
MEMBER = 1 << 20

_INDEX = "index.json"

#: The date of all members, so that the bytes of an archive depend only on its content.
_DATE = (2000, 1, 1, 0, 0, 0)


def key_of(source: str, architecture: str, options: Sequence[str]) -> str:
    """Return the key of a cubin.

    Parameters
    ----------
    source : str
        The whole text of the program. Comments and ``#line`` directives are ignored.
    architecture : str
        The target of the compilation, such as ``sm_90a``.
    options : sequence of str
        The compiler's other options.

    Examples
    --------
    >>> key_of("text", "sm_80", ["-std=c++17"]) == key_of("text", "sm_90a", ["-std=c++17"])
    False
    """
    whole = "\0".join([without_comments(source), architecture, *options])
    return hashlib.sha256(whole.encode()).hexdigest()[:40]


class Archive:
    """The cubins of one architecture.

    Parameters
    ----------
    path : Path
        The file. It is read entirely, so it may be replaced while the process runs.

    Attributes
    ----------
    cuda : int
        The major version of the CUDA that compiled it, which the driver must support.

    Raises
    ------
    OSError, ValueError, KeyError, zipfile.BadZipFile
        If the file does not exist or is not an archive.
    """

    def __init__(self, path: Path) -> None:
        self._file = zipfile.ZipFile(io.BytesIO(path.read_bytes()))
        index: dict[str, Any] = json.loads(self._file.read(_INDEX))
        self.cuda = int(index["cuda"])
        self._places: dict[str, list[int]] = index["places"]
        self._members: dict[int, bytes] = {}
        self._locks = [threading.Lock() for _ in self._file.namelist()]

    def __len__(self) -> int:
        return len(self._places)

    def load(self, key: str) -> bytes | None:
        """Return a cubin, or None if the archive lacks it or is damaged."""
        place = self._places.get(key)
        if place is None:
            return None
        member, begin, end = place
        try:
            return self._member(member)[begin:end]
        except (EOFError, KeyError, lzma.LZMAError, zipfile.BadZipFile):
            return None

    def _member(self, number: int) -> bytes:
        """Return an expanded member; concurrent threads expand it only once."""
        with self._locks[number]:
            if number not in self._members:
                self._members[number] = self._file.read(str(number))
            return self._members[number]


def write(path: Path, cubins: Mapping[str, bytes], cuda: int) -> None:
    """Write an archive.

    Parameters
    ----------
    path : Path
        The file; an existing file is replaced.
    cubins : mapping of str to bytes
        The cubins by key. Adjacent cubins share a member, so list cubins that are used together one
        after the other.
    cuda : int
        The major version of the CUDA that compiled the cubins.
    """
    members: list[list[bytes]] = [[]]
    places: dict[str, list[int]] = {}
    size = 0
    for key, cubin in cubins.items():
        if size + len(cubin) > MEMBER and members[-1]:
            members.append([])
            size = 0
        places[key] = [len(members) - 1, size, size + len(cubin)]
        members[-1].append(cubin)
        size += len(cubin)
    index = json.dumps({"cuda": cuda, "places": places}, separators=(",", ":"))
    with zipfile.ZipFile(path, "w") as file:
        for number, member in enumerate(members):
            file.writestr(zipfile.ZipInfo(str(number), _DATE), b"".join(member), zipfile.ZIP_LZMA)
        file.writestr(zipfile.ZipInfo(_INDEX, _DATE), index, zipfile.ZIP_DEFLATED)


def shipped(source: str, architecture: str, options: Sequence[str]) -> tuple[str, bytes] | None:
    """Return the key and the cubin of a program from this installation's archive, or None.

    The driver must support the CUDA version that compiled the archive. Cubins are for the exact
    architecture: programs for other architectures are compiled on this machine.
    """
    if _of(FOLDER, architecture) is None:
        return None
    key = key_of(source, architecture, options)
    cubin = shipped_as(key, architecture)
    return None if cubin is None else (key, cubin)


def shipped_as(key: str, architecture: str) -> bytes | None:
    """Return the cubin with the given key from this installation's archive, or None."""
    archive = _of(FOLDER, architecture)
    return None if archive is None else archive.load(key)


@cache
def _of(folder: Path, architecture: str) -> Archive | None:
    """Return the archive of an architecture if it exists and the driver can load it, else None."""
    try:
        archive = Archive(folder / f"{architecture}.zip")
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None
    driver = driver_version()
    return archive if driver is None or driver // 1000 >= archive.cuda else None
