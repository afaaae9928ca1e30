"""The disk cache of compiled code: private folders, and entries that are checked at every load.

A user who can write a file that is loaded as code controls the process, and a file that a crash
truncated crashes it. Therefore every backend stores compiled code in a :class:`CodeCache`: only the
owner can write its folders and files, and every entry ends with a checksum.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import stat
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from .caller import warn_caller
from .host import open_checked, user, written_by_others

#: The layout of an entry: its content, this mark, and a SHA-256 of key and content. Loaders of
#: shared libraries read only the parts that the file header points to, so they ignore the trailing
#: bytes.
_MARK = b"wollemi1"
_TRAILER = len(_MARK) + hashlib.sha256().digest_size

#: Maximum size of the entries of one cache in bytes; beyond it the least recently used entries are
#: deleted. All kernels of one GPU take about 30 MB.
LIMIT = 512 << 20

#: Age in seconds above which an unfinished file belongs to a process that has died.
_ABANDONED = 3600.0

_ALL_OF_OTHERS = stat.S_IRWXG | stat.S_IRWXO

#: The environment variables that determine the root folder of the caches.
_NAMING = ("WOLLEMI_CACHE_DIR", "XDG_CACHE_HOME", "HOME")

#: Refused folders; each is reported once.
_refused: set[Path] = set()


def root() -> Path:
    """Return the root folder: ``$WOLLEMI_CACHE_DIR``, or ``wollemi`` in the user's cache folder.

    This function neither creates nor checks the folder.
    """
    chosen = os.environ.get("WOLLEMI_CACHE_DIR")
    if chosen:
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(base).absolute() / "wollemi"


def require_private_root() -> Path:
    """Return the folder of :func:`root`, created if needed and checked to be private.

    Raises
    ------
    OSError
        If it is a symbolic link, belongs to another user, is writable by others, or cannot be
        created; the message gives the reason.
    """
    base = root()
    base.parent.mkdir(parents=True, exist_ok=True)
    _make_private(base)
    return base


def private_folder(name: str) -> Path:
    """Return the private folder ``name`` in :func:`root`, created if needed.

    If that folder or its parent is a symbolic link, belongs to another user, is writable by others,
    or cannot be created, the result is a temporary folder of this process instead. A
    ``RuntimeWarning`` gives the reason once.

    Raises
    ------
    OSError
        If no temporary folder can be created either.
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
    """Create a folder if it is missing; raise OSError unless only its owner can write it."""
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
    """Remove the permissions of other users to read, which an earlier version may have set."""
    if user() is not None and folder.lstat().st_mode & _ALL_OF_OTHERS:
        folder.chmod(0o700)


def _refuse(folder: Path, error: Exception) -> None:
    """Stop using a folder, and warn with the reason."""
    _refused.add(folder)
    warn_caller(
        f"compiled code is not kept in {folder}: {error}. It goes to a temporary folder and is "
        "compiled again by the next process; set WOLLEMI_CACHE_DIR to a folder that is yours alone",
        RuntimeWarning,
    )


@cache
def _temporary() -> Path:
    """Return a temporary folder that is removed at the end of this process."""
    folder = Path(tempfile.mkdtemp(prefix="wollemi-"))
    weakref.finalize(_temporary, _remove, folder, os.getpid())
    return folder


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # a forked child must keep it
        shutil.rmtree(folder, ignore_errors=True)


class CodeCache:
    """A disk cache of compiled code by keys.

    Entries are written atomically: another process sees a whole entry or none. An entry is read
    only if this user owns it, no other user can write it, and its checksum matches. All other
    entries are removed and made again.

    Parameters
    ----------
    name : str
        The name of the folder, which is the name of the backend.
    suffix : str
        The suffix of the file names.
    folder : Path, optional
        The folder to use instead of :func:`private_folder`; it is created if needed.
    limit : int
        Maximum size of all entries in bytes; beyond it the least recently used entries are removed.

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
        #: The folder that was checked last, and the values of the environment variables at that
        #: time.
        self._known: tuple[tuple[str | None, ...], Path] | None = None
        #: Descriptors of files that were loaded as libraries. They stay open because the loader
        #: identifies the libraries by these numbers.
        self._loaded: list[int] = []

    def folder(self) -> Path:
        """Return the folder of the entries after creating and checking it.

        Raises
        ------
        OSError
            If the folder cannot be created.
        """
        result = self._folder
        if result is None:
            result = private_folder(self.name)
        else:
            result.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make_private(result)
        self._known = tuple(map(os.environ.get, _NAMING)), result
        return result

    def _known_folder(self) -> Path:
        """Return the folder; skip the check if the same folder was checked before.

        The first solve on a GPU reads about a hundred entries. Each entry is checked itself, and
        only the owner can replace a folder that was private.
        """
        known = self._known
        same = known is not None and known[0] == tuple(map(os.environ.get, _NAMING))
        return known[1] if known is not None and same else self.folder()

    def file_name(self, key: str) -> str:
        """Return the file name of an entry."""
        return hashlib.sha256(key.encode()).hexdigest() + self.suffix

    def get(self, key: str, make: Callable[[], bytes]) -> bytes:
        """Return the entry of a key; make and store it if it is missing.

        Parameters
        ----------
        key : str
            All inputs that determine the content.
        make : callable
            Makes and returns the content.
        """
        content = self.load(key)
        if content is None:
            content = make()
            self.save(key, content)
        return content

    def load(self, key: str) -> bytes | None:
        """Return the entry of a key, or None if there is no trusted entry."""
        try:
            with self._checked(self._known_folder(), key) as (_, content):
                return content
        except OSError:
            return None

    def load_file(self, name: str, expected: str) -> bytes | None:
        """Return the entry with a file name, or None if its content has another checksum.

        Parameters
        ----------
        name : str
            A result of :meth:`file_name`.
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
        """Store an entry; errors of the disk are ignored."""
        with suppress(OSError):
            self._write(self.folder(), key, content)

    def remove(self, key: str) -> None:
        """Remove an entry if it exists."""
        with suppress(OSError):
            (self.folder() / self.file_name(key)).unlink()

    def library(self, key: str, make: Callable[[Path], Path]) -> Path:
        """Return the path of a shared library; build and store it if it is missing.

        Parameters
        ----------
        key : str
            All inputs that determine the library.
        make : callable
            Builds the library in the empty folder that it gets, and returns the path.

        Raises
        ------
        OSError
            If the library cannot be written.
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
        """Return a loaded shared library; the loader reads the same open file that was checked.

        Raises
        ------
        OSError
            If the library cannot be written or loaded.
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
        """Yield the open file and the content of an entry; raise OSError if it is damaged."""
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
        """Yield an open file and its bytes; no bytes if others could have written them."""
        file = open_checked(path)
        try:
            whole = b""
            if _is_private(os.fstat(file)):
                with open(file, "rb", closefd=False) as stream:
                    whole = stream.read()
            if whole:
                with suppress(OSError):
                    os.utime(file)  # marks the entry as recently used
            yield file, whole
        finally:
            os.close(file)

    def _write(self, folder: Path, key: str, content: bytes) -> None:
        # Several processes may write the same entry: the last rename wins, and all contents are
        # correct.
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
        """Remove files of crashed processes, and the oldest entries beyond the size limit."""
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
    """Return whether only this user can write a regular file."""
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
