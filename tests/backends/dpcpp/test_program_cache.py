"""The SYCL runtime's cache is private, and holds only complete entries."""

from __future__ import annotations

from pathlib import Path

import pytest

from wollemi.backends.dpcpp import program_cache
from wollemi.core import cache


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("SYCL_CACHE_DIR", "SYCL_CACHE_PERSISTENT", "SYCL_CACHE_MAX_SIZE"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("WOLLEMI_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "_refused", set())
    program_cache.prepare()
    found = program_cache.folder()
    assert found is not None
    return found


@pytest.fixture(autouse=True)
def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_cache, "_checked", set())


def written(folder: Path, name: str) -> Path:
    """Write the files that the runtime writes for a program."""
    entry = folder / "123" / name
    entry.mkdir(parents=True)
    (entry / "0.bin").write_bytes(b"image of " + name.encode())
    (entry / "0.src").write_bytes(b"text of " + name.encode())
    (entry / "0_access_time.txt").write_text("now")
    return entry


def test_the_folder_is_its_owners_alone(folder: Path) -> None:
    entry = written(folder, "kernels")
    program_cache.keep()
    closed = (folder, entry, entry / "0.bin", folder.parent / "dpcpp-sums")
    assert all(path.stat().st_mode & 0o077 == 0 for path in closed)


def test_what_was_written_whole_stays(folder: Path) -> None:
    entry = written(folder, "kernels")
    program_cache.keep()
    (entry / "0_access_time.txt").write_text("later")
    program_cache.check()
    assert (entry / "0.bin").exists()


@pytest.mark.parametrize("name", ["0.bin", "0.src"])
@pytest.mark.parametrize("content", [b"", b"image", b"something else"])
def test_what_was_cut_or_altered_is_removed_and_may_come_again(
    folder: Path, name: str, content: bytes
) -> None:
    entry, other = written(folder, "kernels"), written(folder, "others")
    program_cache.keep()
    (entry / name).write_bytes(content)
    program_cache.check()
    assert not entry.exists()
    assert other.exists()
    written(folder, "kernels")
    program_cache.keep()
    program_cache._checked.clear()
    program_cache.check()
    assert entry.exists()


def test_what_nobody_vouches_for_is_removed(folder: Path) -> None:
    entry = written(folder, "kernels")
    program_cache.check()
    assert not entry.exists()


def test_what_is_being_written_is_not_vouched_for(folder: Path) -> None:
    entry = written(folder, "kernels")
    (entry / "0.lock").write_text("")
    program_cache.keep()
    program_cache.check()
    assert not entry.exists()


def test_a_folder_of_the_users_is_left_alone(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "theirs"
    entry = written(theirs, "kernels")
    monkeypatch.setenv("SYCL_CACHE_DIR", str(theirs))
    program_cache.prepare()
    program_cache.check()
    program_cache.keep()
    assert program_cache.folder() is None
    assert entry.exists()
