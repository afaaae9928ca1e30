"""The SYCL runtime's cache is private, and holds only complete entries."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from wollemi.backends.dpcpp import program_cache
from wollemi.core import cache

from .needs_dpcpp import needs_dpcpp


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
    monkeypatch.setattr(program_cache, "_noted", defaultdict(dict))


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


def test_entries_as_they_were_are_not_read_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = written(folder, "kernels")
    program_cache.keep()
    monkeypatch.setattr(program_cache, "_sum", None)  # a call raises
    program_cache.check()
    program_cache.keep()
    assert entry.exists()


def test_an_altered_file_with_its_old_time_is_found(folder: Path) -> None:
    entry = written(folder, "kernels")
    program_cache.keep()
    image, facts = entry / "0.bin", (entry / "0.bin").stat()
    image.write_bytes(image.read_bytes()[::-1])
    os.utime(image, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    program_cache.check()
    assert not entry.exists()


def test_an_entry_that_the_index_lacks_is_kept_by_its_checksum(folder: Path) -> None:
    first = written(folder, "first")
    program_cache.keep()
    second = written(folder, "second")
    program_cache.keep()
    noted = {"123/first": program_cache._files(first)}
    program_cache._write_index(noted)  # of another process, at the same time
    program_cache.check()
    assert first.exists() and second.exists()
    assert program_cache._read_index().keys() == {"123/first", "123/second"}


PROGRAM = """
import numpy as np, wollemi as wl
wl.Csr(np.eye(3), executor="dpcpp") @ np.ones(3)
"""


@needs_dpcpp
@pytest.mark.rare  # compiles a program: some seconds
def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "WOLLEMI_CACHE_DIR": str(tmp_path)}
    environment.pop("SYCL_CACHE_DIR", None)
    images = []
    for _ in range(2):
        subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True)
        images.append({*(tmp_path / "dpcpp-programs").rglob("*.bin")})
    assert images[0] and images[0] == images[1]


@needs_dpcpp
@pytest.mark.rare  # compiles a program: some seconds
def test_a_second_process_on_opencl_needs_machine_code_alone(tmp_path: Path) -> None:
    environment = {**os.environ, "WOLLEMI_CACHE_DIR": str(tmp_path)}
    environment.pop("SYCL_CACHE_DIR", None)
    program = PROGRAM.replace('"dpcpp"', '"dpcpp:opencl:cpu"')
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    shutil.rmtree(tmp_path / "dpcpp-programs")
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    assert not {*(tmp_path / "dpcpp-programs").rglob("*.bin")}


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


@pytest.mark.parametrize("step", ["_tighten", "_sum"])
def test_an_entry_that_another_process_removes_is_left_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    entry, stays = written(folder, "kernels"), written(folder, "others")
    function = getattr(program_cache, step)

    def removed(*given: Path) -> object:
        if given[-1] == entry:
            shutil.rmtree(entry)
        return function(*given)

    monkeypatch.setattr(program_cache, step, removed)
    program_cache.keep()
    noted = program_cache._noted[folder]
    assert set(noted) == {str(stays.relative_to(folder))}
