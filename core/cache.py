"""Compiled code on disk: private folders, and entries that are checked before they are loaded.

A user who can write a file that is loaded as code decides the actions of the process, and a file
that a crash cut short ends it. So every backend keeps its compiled code through a
:class:`CodeCache`: folders and files that their owner alone can write, and a checksum at the end of
every entry.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import stat
import tempfile
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from .host import open_checked, user, written_by_others

#: An entry is its content, this, and a SHA-256 of key and content. Loaders of shared libraries read
#: the parts that the header of a file points to, so that they ignore bytes at its end.
_MARK = b"wollemi1"
_TRAILER = len(_MARK) + hashlib.sha256().digest_size

#: Bytes that the entries of one cache may take before the least recently used ones go. All kernels
#: of one GPU take some 30 MB.
LIMIT = 512 << 20

#: A file that was being written so long ago belongs to a process that died, in seconds.
_ABANDONED = 3600.0

_ALL_OF_OTHERS = stat.S_IRWXG | stat.S_IRWXO

#: The variables of the environment that name the folder of all caches.
_NAMING = ("WOLLEMI_CACHE_DIR", "XDG_CACHE_HOME", "HOME")

#: Folders that were refused, which is said once.
_refused: set[Path] = set()


def root() -> Path:
    """Return the folder of all caches: ``$WOLLEMI_CACHE_DIR``, or ``wollemi`` in the user's own.

    Nothing is created or checked.
    """
    chosen = os.environ.get("WOLLEMI_CACHE_DIR")
    if chosen:
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(base).absolute() / "wollemi"


def require_private_root() -> Path:
    """Return the folder of :func:`root`, made if need be, that the user alone can write.

    Raises
    ------
    OSError
        If it is a symbolic link, belongs to another user, can be written by others, or cannot be
        made; the message says which.
    """
    base = root()
    base.parent.mkdir(parents=True, exist_ok=True)
    _make_private(base)
    return base


def private_folder(name: str) -> Path:
    """Return the folder ``name`` of :func:`root`, made if need be, that the user alone can write.

    Otherwise it is in a temporary folder of this process, and a ``RuntimeWarning`` says once why:
    the folder or the one above it is a symbolic link, belongs to another user, can be written by
    others, or cannot be made.

    Raises
    ------
    OSError
        If no temporary folder can be made either.
    """
    base = root()
    try:
        if base not in _refused:
            require_private_root()
            _make_private(base / name)
            _tighten(base / name)
            return base / name
    except OSError as error:
        _refuse(base, error)
    folder = _temporary() / name
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _make_private(folder: Path) -> None:
    """Make a folder unless it is there; raise OSError unless its owner alone can write it."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    facts = folder.lstat()
    if stat.S_ISLNK(facts.st_mode):
        raise PermissionError(f"{folder} is a symbolic link; name the folder itself")
    if not stat.S_ISDIR(facts.st_mode):
        raise NotADirectoryError(f"{folder} is not a folder")
    if user() not in (None, facts.st_uid):
        raise PermissionError(
            f"{folder} belongs to user {facts.st_uid}, and this process runs as {user()}"
        )
    if written_by_others(facts):
        raise PermissionError(
            f"others can write to {folder} (mode {stat.S_IMODE(facts.st_mode):o}): "
            f"chmod go-w {folder}"
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{folder} cannot be written")


def _tighten(folder: Path) -> None:
    """Remove the read permission of others, which an earlier version may have granted."""
    if user() is not None and folder.lstat().st_mode & _ALL_OF_OTHERS:
        folder.chmod(0o700)


def _refuse(folder: Path, error: Exception) -> None:
    """Use a folder no more, and say why."""
    _refused.add(folder)
    warnings.warn(
        f"compiled code is not kept in {folder}: {error}. It goes to a temporary folder and is "
        "compiled again by the next process; set WOLLEMI_CACHE_DIR to a folder that is yours alone",
        RuntimeWarning,
        stacklevel=2,
    )


@cache
def _temporary() -> Path:
    """Return a folder that goes when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="wollemi-"))
    weakref.finalize(_temporary, _remove, folder, os.getpid())
    return folder


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # a forked child must not take it from its parent
        shutil.rmtree(folder, ignore_errors=True)


class CodeCache:
    """Compiled code by its key, on disk.

    Entries are written at once (another process sees all of one or nothing), carry a checksum, and
    are read only if this user owns them, no other user can write them, and the checksum fits. Other
    entries are removed and made again.

    Parameters
    ----------
    name : str
        The folder's name, that of the backend.
    suffix : str
        How the files' names end.
    folder : Path, optional
        A folder to use in place of :func:`private_folder`; it is made if need be.
    limit : int
        Bytes that all entries may take; the least recently used ones are removed beyond that.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from wollemi.core.cache import CodeCache
    >>> cache = CodeCache("example", ".bin", folder=pathlib.Path(tempfile.mkdtemp()))
    >>> cache.get("source and options", lambda: b"code")
    b'code'
    >>> cache.load("source and options")
    b'code'
    """

    def __init__(
        self, name: str, suffix: str, *, folder: Path | None = None, limit: int = LIMIT
    ) -> None:
        self.name, self.suffix, self.limit = name, suffix, limit
        self._folder = folder
        #: The folder that was checked last, and the variables of the environment that named it.
        self._known: tuple[tuple[str | None, ...], Path] | None = None
        #: Files that were loaded as libraries stay open: the loader knows them by these numbers.
        self._loaded: list[int] = []

    def folder(self) -> Path:
        """Return where the entries are, after making and checking it.

        Raises
        ------
        OSError
            If there is no such folder.
        """
        found = self._folder
        if found is None:
            found = private_folder(self.name)
        else:
            found.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make_private(found)
        self._known = tuple(map(os.environ.get, _NAMING)), found
        return found

    def _known_folder(self) -> Path:
        """Return the folder without another check, if it was checked under the same name.

        A first solve on a GPU reads some hundred entries. Each is checked itself, and only
        their owner can exchange a folder that was private.
        """
        known = self._known
        same = known is not None and known[0] == tuple(map(os.environ.get, _NAMING))
        return known[1] if known is not None and same else self.folder()

    def file_name(self, key: str) -> str:
        """Return the name of an entry's file."""
        return hashlib.sha256(key.encode()).hexdigest() + self.suffix

    def get(self, key: str, make: Callable[[], bytes]) -> bytes:
        """Return the entry of a key, made and kept if it is not there.

        Parameters
        ----------
        key : str
            All that the content depends on.
        make : callable
            Returns the content.
        """
        content = self.load(key)
        if content is None:
            content = make()
            self.save(key, content)
        return content

    def load(self, key: str) -> bytes | None:
        """Return the entry of a key, or None if there is none that can be trusted."""
        try:
            with self._checked(self._known_folder(), key) as (_, content):
                return content
        except OSError:
            return None

    def load_file(self, name: str, expected: str) -> bytes | None:
        """Return the entry of a file's name, or None if its content has another checksum.

        Parameters
        ----------
        name : str
            As :meth:`file_name` tells it.
        expected : str
            The :func:`checksum` of the content.
        """
        try:
            with self._opened(self._known_folder() / name) as (_, whole):
                content = whole[:-_TRAILER]
                return content if checksum(content) == expected else None
        except OSError:
            return None

    def save(self, key: str, content: bytes) -> None:
        """Keep an entry; if the disk is full, nothing happens."""
        with suppress(OSError):
            self._write(self.folder(), key, content)

    def remove(self, key: str) -> None:
        """Remove an entry, if it is there."""
        with suppress(OSError):
            (self.folder() / self.file_name(key)).unlink()

    def library(self, key: str, make: Callable[[Path], Path]) -> Path:
        """Return the path of a shared library, made and kept if it is not there.

        Parameters
        ----------
        key : str
            All that the library depends on.
        make : callable
            Builds it in an empty folder that it is given, and returns the path.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        folder = self.folder()
        try:
            with self._checked(folder, key):
                return folder / self.file_name(key)
        except OSError:
            pass
        scratch = Path(tempfile.mkdtemp(dir=folder, suffix=".part"))
        try:
            self._write(folder, key, make(scratch).read_bytes())
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        return folder / self.file_name(key)

    def load_library(self, key: str, make: Callable[[Path], Path]) -> ctypes.CDLL:
        """Return a shared library, loaded from the very file that was checked.

        Raises
        ------
        OSError
            If it cannot be written, or does not load.
        """
        path = self.library(key, make)
        with self._checked(path.parent, key) as (file, _):
            same = Path(f"/proc/self/fd/{file}")
            if not same.exists():  # no /proc
                return ctypes.CDLL(str(path))
            self._loaded.append(os.dup(file))
            return ctypes.CDLL(f"/proc/self/fd/{self._loaded[-1]}")

    @contextmanager
    def _checked(self, folder: Path, key: str) -> Iterator[tuple[int, bytes]]:
        """Give the open file and the content of an entry, or raise OSError if it is not right."""
        path = folder / self.file_name(key)
        with self._opened(path) as (file, whole):
            content = whole[:-_TRAILER]
            if whole[-_TRAILER:] != _trailer(key, content):
                with suppress(OSError):
                    path.unlink()
                raise OSError(f"{path} is damaged")
            yield file, content

    @contextmanager
    def _opened(self, path: Path) -> Iterator[tuple[int, bytes]]:
        """Give an open file and its bytes, none if others could write it."""
        file = open_checked(path)
        try:
            whole = b""
            if _is_private(os.fstat(file)):
                with open(file, "rb", closefd=False) as stream:
                    whole = stream.read()
            if whole:
                with suppress(OSError):
                    os.utime(file)  # the least recently used entries go first
            yield file, whole
        finally:
            os.close(file)

    def _write(self, folder: Path, key: str, content: bytes) -> None:
        # Several processes may make the same: the last one to rename wins, and all are right.
        file, unfinished = tempfile.mkstemp(dir=folder, suffix=".part")
        try:
            with open(file, "wb") as stream:
                stream.write(content + _trailer(key, content))
            os.replace(unfinished, folder / self.file_name(key))
        except OSError:
            with suppress(OSError):
                os.unlink(unfinished)
            raise
        self._trim(folder)

    def _trim(self, folder: Path) -> None:
        """Remove leftovers of crashed processes, and old entries beyond the limit."""
        entries = []
        for path in folder.iterdir():
            with suppress(OSError):
                facts = path.lstat()
                if path.name.endswith(".part"):
                    if time.time() - facts.st_mtime > _ABANDONED:
                        shutil.rmtree(path) if path.is_dir() else path.unlink()
                elif path.name.endswith(self.suffix):
                    entries.append((facts.st_mtime, facts.st_size, path))
        total = sum(size for _, size, _ in entries)
        if total <= self.limit:
            return
        for _, size, path in sorted(entries)[:-1]:  # the newest was just written
            with suppress(OSError):
                path.unlink()
            total -= size
            if total <= self.limit // 4 * 3:
                return


def _is_private(facts: os.stat_result) -> bool:
    """Return whether a file is one that this user alone can write."""
    return (
        stat.S_ISREG(facts.st_mode)
        and user() in (None, facts.st_uid)
        and not written_by_others(facts)
    )


def checksum(content: bytes) -> str:
    """Return the SHA-256 of the content of an entry."""
    return hashlib.sha256(content).hexdigest()


def _trailer(key: str, content: bytes) -> bytes:
    digest = hashlib.sha256(len(key.encode()).to_bytes(8, "little") + key.encode())
    digest.update(content)
    return _MARK + digest.digest()
