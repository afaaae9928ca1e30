"""Every promise of SECURITY.md."""

from __future__ import annotations

import gzip
import json
import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import wollemi as wl
from wollemi.core import cache
from wollemi.core.errors import InvalidArgument, InvalidMatrix, WollemiError

ROOT = Path(__file__).parents[1]


class Trap:
    """An object with a pickle that makes a file when it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("ending", [".npy", ".npz"])
def test_a_pickle_inside_a_numpy_file_is_not_executed(tmp_path, ending):
    mark = tmp_path / "executed"
    array = np.array([Trap(mark)], dtype=object)
    file = tmp_path / f"trap{ending}"
    if ending == ".npy":
        np.save(file, array, allow_pickle=True)
    else:
        np.savez(file, data=array, indices=array, indptr=array, format=array, shape=array)
    with pytest.raises(WollemiError):
        wl.read(file)
    with pytest.raises(WollemiError):
        wl.io.read_vector(file)
    assert not mark.exists()


@pytest.mark.parametrize("ending", [".mtx", ".smtx", ".npz", ".npy", ".mtx.gz", ".rua", ".mat"])
def test_a_pickle_under_another_name_is_not_executed(tmp_path, ending):
    import pickle

    mark, file = tmp_path / "executed", tmp_path / f"trap{ending}"
    content = pickle.dumps(Trap(mark))
    file.write_bytes(gzip.compress(content) if ending.endswith(".gz") else content)
    with pytest.raises(WollemiError):
        wl.read(file)
    assert not mark.exists()


def test_a_size_that_a_file_only_claims_takes_no_memory(tmp_path):
    file = tmp_path / "large.mtx"
    file.write_text("%%MatrixMarket matrix coordinate real general\n5 5 1000000000000\n1 1 1.0\n")
    with pytest.raises(InvalidMatrix, match=r"large\.mtx"):
        wl.read(file)


def test_a_member_that_leads_out_of_an_archive_writes_nothing(tmp_path):
    file = tmp_path / "inner" / "away.npz"
    file.parent.mkdir()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("../outside.npy", b"\x93NUMPY")
    with pytest.raises(WollemiError):
        wl.read(file)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["away.npz", "inner"]


def test_the_cache_is_the_users_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("WOLLEMI_CACHE_DIR", str(tmp_path / "cache"))
    kept = cache.CodeCache("test", ".bin")
    kept.get("key", lambda: b"code")
    folder = kept.folder()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (entry,) = folder.iterdir()
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600


def test_an_altered_entry_of_the_cache_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setenv("WOLLEMI_CACHE_DIR", str(tmp_path / "cache"))
    kept = cache.CodeCache("test", ".bin")
    kept.get("key", lambda: b"code")
    (entry,) = kept.folder().iterdir()
    entry.write_bytes(b"evil" + entry.read_bytes()[4:])
    assert kept.get("key", lambda: b"code") == b"code"


def test_a_cache_that_others_can_write_is_not_used(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("WOLLEMI_CACHE_DIR", str(folder))
    with pytest.warns(RuntimeWarning, match="others can write"):
        used = cache.private_folder("test")
    assert folder not in used.parents
    assert not list(folder.iterdir())


def test_a_product_and_a_solve_open_no_connection():
    program = (
        "import socket, sys\n"
        "def refuse(*arguments, **options): raise SystemExit('a connection was opened')\n"
        "socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse\n"
        "import numpy as np, wollemi as wl\n"
        "A = wl.Csr(np.eye(4)); A @ np.ones(4)\n"
        "assert wl.solve(A, np.ones(4)).converged\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["os.system", "trap", "trap:Solver", "builtins.exec"])
def test_settings_import_nothing_that_a_file_names(tmp_path, monkeypatch, name):
    mark = tmp_path / "executed"
    (tmp_path / "trap.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "solver.json"
    for settings in (
        {"solver": name},
        {"solver": "cg", "M": {"preconditioner": name}},
        {"solver": "cg", "stop": {"criterion": name}},
    ):
        file.write_text(json.dumps(settings))
        with pytest.raises(InvalidArgument):
            wl.solvers.read_settings(file)
    assert not mark.exists() and "trap" not in sys.modules


def test_the_page_names_what_tests_it():
    page = (ROOT / "SECURITY.md").read_text()
    assert os.path.relpath(__file__, ROOT) in page
