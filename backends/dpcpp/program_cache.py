"""Integrity checks for the SYCL runtime's disk cache of compiled kernels.

The runtime stores compiled programs under ``SYCL_CACHE_DIR`` and loads them without a check.
Therefore, its folder is writable only by the user, and an entry with files that have changed since
they were written is removed before the runtime reads it.

A process checks all entries, of which there may be thousands. Therefore, the *index* records the
sizes and times of the files of each entry. The content of a file is read, and compared with its
checksum, only if it differs from the index.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from threading import Lock

from ...core.cache import LIMIT, CodeCache, private_folder

#: The checksum of an entry's files, by the entry's folder.
_SUMS = CodeCache("dpcpp-sums", ".sum", limit=8 << 20)

#: The checked files of an entry: images and their source text. The file with the time of the last
#: use changes legitimately and is not checked.
_PARTS = (".bin", ".src")

#: The key of the index in the store of checksums.
_INDEX = "index"

#: A file of an entry: its name, size, inode number and the times of its last changes.
_File = tuple[str, int, int, int, int]
#: The files of a cache's entries with a checksum, by their path within the cache.
_Noted = dict[str, tuple[_File, ...]]

_lock = Lock()
_checked: set[Path] = set()
#: The entries with a checksum, by cache folder; all other entries are new.
_noted: defaultdict[Path, _Noted] = defaultdict(dict)


def prepare() -> None:
    """Set the path and the size limit of the runtime's cache; settings of the user are kept.

    With the cache, a program costs its 1.5 s of compilation only once per machine.
    """
    os.environ.setdefault("SYCL_CACHE_PERSISTENT", "1")
    if "SYCL_CACHE_DIR" not in os.environ:
        try:
            os.environ["SYCL_CACHE_DIR"] = str(private_folder("dpcpp-programs"))
        except OSError:
            os.environ["SYCL_CACHE_PERSISTENT"] = "0"  # there is no folder to store programs in
    os.environ.setdefault("SYCL_CACHE_MAX_SIZE", str(LIMIT))


def folder() -> Path | None:
    """Return the runtime's cache folder, if wollemi has set it."""
    path = Path(os.environ.get("SYCL_CACHE_DIR", ""))
    with suppress(OSError):
        if path == private_folder("dpcpp-programs"):
            return path
    return None


def check() -> None:
    """Remove the entries that have changed since they were written; runs once per process."""
    path = folder()
    if path is None:
        return
    with _lock:
        if path in _checked:
            return
        written = _read_index()
        noted = {
            entry: files
            for entry, files in written.items()
            if _files(f"{path}{os.sep}{entry}") == files
        }
        _noted[path] = noted
        for entry in _new_entries(path, written.keys() - noted.keys()):
            content = _sum(entry)
            if content is not None and _SUMS.load(str(entry)) == content:
                noted[str(entry.relative_to(path))] = _files(entry)
            else:
                shutil.rmtree(entry, ignore_errors=True)
                _SUMS.remove(str(entry))
        if noted != written:
            _write_index(noted)
        _checked.add(path)


def keep() -> None:
    """Store checksums of the entries that the runtime has written since the last call."""
    path = folder()
    if path is None:
        return
    with _lock:
        noted, found = _noted[path], False
        for entry in _new_entries(path):
            _tighten(path, entry)
            if next(entry.glob("*.lock"), None) is not None:  # the runtime is writing it
                continue
            if _SUMS.load(str(entry)) is None:
                content = _sum(entry)
                if content is None:
                    continue
                _SUMS.save(str(entry), content)
            noted[str(entry.relative_to(path))], found = _files(entry), True
        if found:
            _write_index(noted)


def _read_index() -> _Noted:
    """Return the files of entries as recorded in the index."""
    try:
        written = json.loads(_SUMS.load(_INDEX) or b"{}")
    except ValueError:
        return {}
    return {entry: tuple(tuple(file) for file in files) for entry, files in written.items()}


def _write_index(noted: _Noted) -> None:
    _SUMS.save(_INDEX, json.dumps(noted).encode())


def _files(entry: Path | str) -> tuple[_File, ...]:
    """Return the metadata of an entry's files; empty if the entry does not exist."""
    found = []
    with suppress(OSError), os.scandir(entry) as files:
        for file in files:
            if file.name.endswith(_PARTS):
                facts = file.stat(follow_symlinks=False)
                times = facts.st_mtime_ns, facts.st_ctime_ns
                found.append((file.name, facts.st_size, facts.st_ino, *times))
    return tuple(sorted(found))


def _tighten(path: Path, entry: Path) -> None:
    """Remove other users' access to the runtime's files of an entry and to its folders."""
    around = [place for place in entry.parents if place != path and path in place.parents]
    files: list[Path] = []
    with suppress(FileNotFoundError):  # another process may remove the entry meanwhile
        files = list(entry.iterdir())
    for inside in (*around, entry, *files):
        with suppress(OSError):
            mode = inside.lstat().st_mode
            if mode & 0o077 and not inside.is_symlink():
                inside.chmod(mode & 0o700)


def _new_entries(path: Path, changed: Iterable[str] = ()) -> list[Path]:
    """Return the folders with runtime files that have changed or have no checksum yet.

    The runtime creates a folder per device with a folder per program. The folder of a program with
    unchanged indexed entries is not read.
    """
    known = {_program(entry) for entry in _noted[path]} - {_program(entry) for entry in changed}
    new = [
        path / device / program
        for device in _folders(path)
        for program in _folders(path / device)
        if (device, program) not in known
    ]
    return [
        Path(place)
        for program in new
        for place, _, names in os.walk(program)
        if any(name.endswith(_PARTS) for name in names)
    ]


def _program(entry: str) -> tuple[str, str]:
    """Return the names of an entry's device folder and program folder."""
    device, program, *_ = entry.split(os.sep, 2)
    return device, program


def _folders(path: Path) -> list[str]:
    """Return the names of the folders in a folder."""
    with suppress(OSError), os.scandir(path) as found:
        return [one.name for one in found if one.is_dir(follow_symlinks=False)]
    return []


def _sum(entry: Path) -> bytes | None:
    """Return the checksum of an entry; None if another process removes the entry meanwhile."""
    digest = hashlib.sha256()
    try:
        for path in sorted(entry.iterdir()):
            if path.name.endswith(_PARTS):
                content = path.read_bytes() if path.is_file() and not path.is_symlink() else b"\0"
                digest.update(f"{path.name} {len(content)} ".encode() + content)
    except FileNotFoundError:
        return None
    return digest.digest()
