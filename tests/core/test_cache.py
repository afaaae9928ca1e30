"""Compiled code on disk: private, checked before it is loaded, bounded."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy.random.mtrand
import pytest

from wollemi.core import cache
from wollemi.core.cache import CodeCache


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    monkeypatch.setenv("WOLLEMI_CACHE_DIR", str(home))
    monkeypatch.setattr(cache, "_refused", set())
    return home


@pytest.fixture
def code() -> CodeCache:
    return CodeCache("backend", ".bin")


def mode(path: Path) -> int:
    return path.lstat().st_mode & 0o777


def entry(code: CodeCache, key: str = "key") -> Path:
    return code.folder() / code.file_name(key)


def refused(code: CodeCache, home: Path) -> str:
    """Keep an entry; return the message about the folder, which must have been left alone."""
    with pytest.warns(RuntimeWarning, match="compiled code is not kept") as said:
        code.save("key", b"code")
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once
        assert code.load("key") == b"code"
        assert home not in code.folder().parents
    assert mode(code.folder()) == mode(code.folder().parent) == 0o700
    return str(said[0].message)


# owners


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_folders_and_files_are_their_owners_alone(code, at_home, umask):
    before = os.umask(umask)
    try:
        code.save("key", b"code")
    finally:
        os.umask(before)
    assert mode(at_home) == mode(at_home / "backend") == 0o700
    assert mode(entry(code)) == 0o600


def test_a_readable_folder_of_ours_is_closed(code, at_home):
    (at_home / "backend").mkdir(parents=True)
    (at_home / "backend").chmod(0o755)
    at_home.chmod(0o755)
    assert code.get("key", lambda: b"code") == b"code"
    assert mode(at_home / "backend") == 0o700


@pytest.mark.parametrize("which", [".", "backend"])
@pytest.mark.parametrize("open_to", [0o770, 0o702, 0o777])
def test_a_folder_that_others_can_write_is_refused(code, at_home, which, open_to):
    (at_home / "backend").mkdir(parents=True)
    at_home.chmod(0o700)
    (at_home / which).chmod(open_to)
    assert "chmod go-w" in refused(code, at_home)
    assert mode(at_home / which) == open_to


@pytest.mark.parametrize("which", [".", "backend"])
def test_a_symbolic_link_is_refused(code, at_home, tmp_path, which):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    if which == "backend":
        at_home.mkdir(mode=0o700)
    (at_home / which).symlink_to(tmp_path / "elsewhere")
    assert "symbolic link" in refused(code, at_home)
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a folder away takes root, as in CI")
@pytest.mark.parametrize("which", [".", "backend"])
def test_a_folder_of_somebody_else_is_refused(code, at_home, which):
    (at_home / "backend").mkdir(parents=True, mode=0o700)
    at_home.chmod(0o700)
    os.chown(at_home / which, 12345, 12345)
    assert "belongs to user 12345" in refused(code, at_home)


def test_a_file_in_the_place_of_the_folder_is_refused(code, at_home):
    at_home.write_text("")
    assert "not a folder" in refused(code, at_home)


def test_a_folder_that_cannot_be_made_is_done_without(code, at_home, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WOLLEMI_CACHE_DIR", str(tmp_path / "file" / "below" / "it"))
    assert "Not a directory" in refused(code, at_home)


def test_the_temporary_folder_goes_with_the_process_and_not_with_its_children(tmp_path):
    program = (
        "import os, sys, warnings; warnings.simplefilter('ignore')\n"
        "from wollemi.core.cache import CodeCache\n"
        "folder = CodeCache('backend', '.bin').folder()\n"
        "child = os.fork()\n"
        "if not child: sys.exit()\n"
        "os.waitpid(child, 0)\n"
        "assert folder.exists()\n"
        "print(folder)\n"
    )
    (tmp_path / "file").write_text("")
    environment = {**os.environ, "WOLLEMI_CACHE_DIR": str(tmp_path / "file")}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert not Path(done.stdout.strip()).exists()


def test_the_users_own_cache_is_where_it_is_without_a_choice(monkeypatch, tmp_path):
    monkeypatch.delenv("WOLLEMI_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.root() == tmp_path / "wollemi"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.root() == tmp_path / ".cache" / "wollemi"


# contents


def test_entries_are_read_from_a_folder_that_was_checked_once(code, at_home, monkeypatch, tmp_path):
    code.save("key", b"content")
    made, check = [], cache._make_private
    monkeypatch.setattr(cache, "_make_private", lambda path: made.append(path) or check(path))
    assert code.load("key") == code.load("key") == b"content" and not made
    monkeypatch.setenv("WOLLEMI_CACHE_DIR", str(tmp_path / "other"))
    assert code.load("key") is None and made


def test_a_folder_that_went_is_made_again(code, at_home):
    code.save("key", b"content")
    shutil.rmtree(at_home)
    assert code.load("key") is None
    assert code.get("key", lambda: b"again") == code.load("key") == b"again"


def test_an_entry_is_made_once(code):
    assert code.get("key", lambda: b"code") == b"code"
    assert code.get("key", lambda: pytest.fail("made again")) == b"code"
    assert code.get("other key", lambda: b"other") == b"other"


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    changed = {
        "empty": b"",
        "cut": content[: len(content) // 2],
        "a bit": bytes([content[0] ^ 1]) + content[1:],
        "the end": content[:-1] + bytes([content[-1] ^ 1]),
        "longer": content + b"more",
        "zeros": b"\0" * len(content),
        "an older version's": content[:-40],
    }
    path.write_bytes(changed[how])


HARM = ["empty", "cut", "a bit", "the end", "longer", "zeros", "an older version's"]


@pytest.mark.parametrize("how", HARM)
def test_a_damaged_entry_is_made_again(code, how):
    code.save("key", b"code" * 100)
    damage(entry(code), how)
    assert code.load("key") is None
    assert code.get("key", lambda: b"new") == b"new"
    assert code.load("key") == b"new"


def test_an_entry_under_another_key_is_not_its(code):
    code.save("key", b"code")
    entry(code).rename(entry(code, "other"))
    assert code.load("other") is None


@pytest.mark.parametrize("kind", ["link", "writable", "foreign", "pipe", "folder"])
def test_an_entry_that_somebody_else_could_have_made_is_made_again(code, tmp_path, kind):
    code.save("key", b"code")
    path = entry(code)
    if kind == "link":
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    elif kind == "writable":
        path.chmod(0o620)
    elif kind == "foreign":
        if os.geteuid() != 0:
            pytest.skip("giving a file away takes root, as in CI")
        os.chown(path, 12345, 12345)
    else:
        path.unlink()
        os.mkfifo(path) if kind == "pipe" else path.mkdir()
    assert code.load("key") is None
    assert code.get("key", lambda: b"new") == b"new"


def test_entries_are_written_at_once(code):
    code.save("key", b"code")
    assert [p.name for p in code.folder().iterdir()] == [code.file_name("key")]


def test_the_least_recently_used_entries_go_beyond_the_limit():
    code = CodeCache("backend", ".bin", limit=1000)
    for number in range(4):
        code.save(str(number), b"x" * 200)
        os.utime(entry(code, str(number)), (number, number))
    assert code.load("0")  # used now
    code.save("4", b"x" * 200)
    assert [code.load(str(n)) is not None for n in range(5)] == [True, False, False, True, True]


def test_what_dead_processes_left_is_removed(code):
    folder = code.folder()
    (folder / "new.part").write_bytes(b"being written")
    (folder / "old.part").write_bytes(b"abandoned")
    (folder / "scratch.part").mkdir()
    (folder / "scratch.part" / "shim.so").write_bytes(b"")
    for name in ("old.part", "scratch.part"):
        os.utime(folder / name, (0, 0))
    code.save("key", b"code")
    assert {p.name for p in folder.iterdir()} == {"new.part", code.file_name("key")}


# ---- shared libraries


#: A small library that is here: one of NumPy's.
LIBRARY = Path(numpy.random.mtrand.__file__)


def test_a_library_is_loaded_from_the_file_that_was_checked(code):
    built = []

    def build(folder: Path) -> Path:
        built.append(folder)
        assert mode(folder) == 0o700
        (folder / "made.so").write_bytes(LIBRARY.read_bytes())
        return folder / "made.so"

    for _ in range(2):
        assert code.load_library("key", build).PyInit_mtrand
    assert len(built) == 1
    assert mode(entry(code)) == 0o600
    damage(entry(code), "cut")
    assert code.load_library("key", build).PyInit_mtrand
    assert len(built) == 2
    assert not any(folder.exists() for folder in built)


def test_a_library_that_cannot_be_built_leaves_nothing(code):
    def fail(folder: Path) -> Path:
        (folder / "half.o").write_bytes(b"half")
        raise ValueError("no compiler")

    with pytest.raises(ValueError, match="no compiler"):
        code.library("key", fail)
    assert not list(code.folder().iterdir())
