"""Compiled kernels on disk: the SYCL runtime's own cache, in a private folder, checked by us.

The runtime keeps its compiled programs under ``SYCL_CACHE_DIR`` and loads them without a check. So
its folder is one that only the user can write, and the folder of an entry with files that changed
since it was written is removed before the runtime reads it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock

from ...core.cache import LIMIT, CodeCache, private_folder

#: By an entry's folder, the checksum of its files.
_SUMS = CodeCache("dpcpp-sums", ".sum", limit=8 << 20)

#: The files of an entry: images and their source text; the time of the last use changes and does
#: not count.
_PARTS = (".bin", ".src")

_lock = Lock()
_checked: set[Path] = set()
#: Entries with a checksum; others are new.
_noted: set[Path] = set()


def prepare() -> None:
    """Tell the runtime the path and the size limit of its cache; settings of the user stay.

    A cache keeps compiled kernels, so that a program costs its 1.5 s once on a machine.
    """
    os.environ.setdefault("SYCL_CACHE_PERSISTENT", "1")
    if "SYCL_CACHE_DIR" not in os.environ:
        try:
            os.environ["SYCL_CACHE_DIR"] = str(private_folder("dpcpp-programs"))
        except OSError:
            os.environ["SYCL_CACHE_PERSISTENT"] = "0"  # nowhere to keep them
    os.environ.setdefault("SYCL_CACHE_MAX_SIZE", str(LIMIT))


def folder() -> Path | None:
    """Return the runtime's folder, if it is one of ours."""
    path = Path(os.environ.get("SYCL_CACHE_DIR", ""))
    with suppress(OSError):
        if path == private_folder("dpcpp-programs"):
            return path
    return None


def check() -> None:
    """Remove the entries that are not as they were written; once in a process."""
    path = folder()
    if path is None:
        return
    with _lock:
        if path in _checked:
            return
        for entry in _entries(path):
            if _SUMS.load(str(entry)) != _sum(entry):
                shutil.rmtree(entry, ignore_errors=True)
                _SUMS.remove(str(entry))
                _noted.discard(entry)
            else:
                _noted.add(entry)
        _checked.add(path)


def keep() -> None:
    """Note the checksums of entries that the runtime has written since."""
    path = folder()
    if path is None:
        return
    with _lock:
        for entry in _entries(path):
            if entry in _noted:
                continue
            if next(entry.glob("*.lock"), None) is None:  # not being written
                if _SUMS.load(str(entry)) is None:
                    _SUMS.save(str(entry), _sum(entry))
                _noted.add(entry)
            _tighten(path, entry)


def _tighten(path: Path, entry: Path) -> None:
    """Remove the access of other users to the runtime's files of an entry, as for its folder."""
    around = [place for place in entry.parents if place != path and path in place.parents]
    for inside in (*around, entry, *entry.iterdir()):
        with suppress(OSError):
            mode = inside.lstat().st_mode
            if mode & 0o077 and not inside.is_symlink():
                inside.chmod(mode & 0o700)


def _entries(path: Path) -> Iterator[Path]:
    """Yield the folders that have files of the runtime's."""
    for place, _, names in os.walk(path):
        if any(name.endswith(_PARTS) for name in names):
            yield Path(place)


def _sum(entry: Path) -> bytes:
    digest = hashlib.sha256()
    for path in sorted(entry.iterdir()):
        if path.name.endswith(_PARTS):
            content = path.read_bytes() if path.is_file() and not path.is_symlink() else b"\0"
            digest.update(f"{path.name} {len(content)} ".encode() + content)
    return digest.digest()
