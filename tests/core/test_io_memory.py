"""Files that would fill the memory, by their content or by their announced sizes."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import InvalidMatrix
from wollemi.core.files import memory

COORDINATE = "%%MatrixMarket matrix coordinate real general\n"
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}
# The announced sizes of an archive that its arrays do not fill.
ANNOUNCED = {
    "format": b"csr",
    "shape": np.array([2, 1 << 31]),
    "data": np.ones(2),
    "indices": np.array([0, 1]),
    "indptr": np.array([0, 1, 2]),
}
MB = 1 << 20


@pytest.fixture(autouse=True)
def on_reference() -> Iterator[None]:
    with wl.default_executor("reference"):
        yield


def text(body: str, layout: str = "coordinate real general") -> io.BytesIO:
    return io.BytesIO(f"%%MatrixMarket matrix {layout}\n{body}".encode())


def peak(call: Callable[[], object]) -> int:
    """Return the most bytes that Python and NumPy held during a call."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


#: Pieces of a megabyte, and for .xz the 8 MB that it looks back.
LIMITS = {".gz": 8 * MB, ".bz2": 8 * MB, ".xz": 14 * MB}


@pytest.mark.parametrize(
    ("compression", "inside"),
    [
        (".gz", "blank header"),
        (".gz", "comment"),
        (".gz", "blank body"),
        (".gz", "line"),
        (".gz", "spaces"),
        (".bz2", "line"),
        (".xz", "line"),
    ],
)
def test_what_a_small_file_holds_never_fills_the_memory(tmp_path, compression, inside):
    head, size = COORDINATE.encode(), 16 * MB
    content = {
        "blank header": head + b"\n" * size,
        "comment": head + b"%" + b"x" * size + b"\n2 2 1\n1 1 1\n",
        "blank body": head + b"2 2 2\n1 1 1\n" + b"\n" * size,
        "line": head + b"2 2 1\n1 1 " + b"0" * size,
        "spaces": head + b"2 2 1\n1 1 1" + b" " * size + b"\n",
    }[inside]
    path = tmp_path / f"a.mtx{compression}"
    path.write_bytes(COMPRESS[compression](content))
    assert path.stat().st_size < size / 400
    del content

    def read() -> None:
        if inside == "comment":
            assert wl.read(path).nnz == 1
            return
        with pytest.raises(InvalidMatrix, match=r"a\.mtx"):
            wl.read(path)

    assert peak(read) < LIMITS[compression]


def test_comments_do_not_copy_what_follows():
    body = "".join(f"% remark {i}\n" for i in range(2000)) + "2 2 1\n1 1 1\n"
    file = text(body + "\n" * (4 * MB))
    assert peak(lambda: wl.read(file)) < 12 * MB


def test_rows_without_entries_take_no_memory_as_coordinates():
    body = "1000000000 1000000000 1\n7 8 2.5\n"
    made = []
    assert peak(lambda: made.append(wl.read(text(body), format="coo"))) < MB * 2
    assert made[0].shape == (10**9, 10**9)
    assert (made[0].row.tolist(), made[0].col.tolist()) == ([6], [7])

    def by_rows() -> None:
        with pytest.raises(InvalidMatrix, match=r'line 2: 1000000000 rows.*format="coo"'):
            wl.read(text(body))

    assert peak(by_rows) < MB * 2
    assert wl.read(text(body.replace("1000000000", "1000000"))).shape == (10**6, 10**6)


def test_what_does_not_fit_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 100 * MB)
    many = 50_000_000
    for body, layout in (
        (f"3 3 {many}\n1 1 1\n", "coordinate real general"),
        (f"{many} 1\n1\n", "array real general"),
    ):
        with pytest.raises(InvalidMatrix, match=r"line 2: .*GiB of memory are available"):
            wl.read(text(body, layout))
    for function, body in (
        (wl.read, f"{many} 3 1\n1 1 1\n"),
        (wl.io.read_vector, f"{many} 3 1\n1 1 1\n"),
    ):
        with pytest.raises(InvalidMatrix, match="of memory are available"):
            function(text(body))
    with pytest.raises(InvalidMatrix, match="of memory are available"):
        wl.read(text(f"{many} 3 1\n1 1 1\n"), format="dense")


def test_pointers_that_fit_once_but_not_while_they_are_made_are_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "available_memory", lambda: 20 << 30)
    np.savez(tmp_path / "a.npz", **ANNOUNCED)
    for file in (tmp_path / "a.npz", text("2 2147483648 1\n1 1 1\n")):
        with pytest.raises(InvalidMatrix, match="need pointers"):
            wl.read(file, format="csc")
    assert wl.read(tmp_path / "a.npz").shape == (2, 1 << 31)


def test_there_is_memory():
    assert 0 < memory.available_memory() < 1 << 50


def test_reading_takes_about_the_memory_of_scipys_reader(tmp_path):
    """Beyond the memory of imports, from processes of their own, for C++ allocates too."""
    rng = np.random.default_rng(0)
    entries = 400_000
    lines = b"".join(
        b"%d %d %.16e\n" % (i, j, v)
        for i, j, v in zip(
            rng.integers(1, 100_001, entries).tolist(),
            rng.integers(1, 100_001, entries).tolist(),
            rng.standard_normal(entries).tolist(),
            strict=True,
        )
    )
    path = tmp_path / "a.mtx"
    path.write_bytes(COORDINATE.encode() + b"100000 100000 %d\n" % entries + lines)
    program = (
        "import resource, sys, wollemi as wl, scipy.io, scipy.sparse\n"
        "wl.Csr([[1.0]], executor='reference')\n"
        "scipy.io.mmread(__import__('io').BytesIO(b'%%MatrixMarket matrix coordinate real general"
        "\\n1 1 1\\n1 1 1\\n')).tocsr()\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10\n"
        "before = peak()\n"
        "A = {}\n"
        "print(peak() - before)\n"
    )
    taken = []
    for call in (
        "scipy.io.mmread(sys.argv[1], spmatrix=False).tocsr()",
        "wl.read(sys.argv[1], executor='reference')",
    ):
        done = subprocess.run(
            [sys.executable, "-c", program.replace("{}", call), str(path)],
            capture_output=True,
            text=True,
            check=True,
        )
        taken.append(int(done.stdout))
    scipys, ours = taken
    # a few pieces of a megabyte are on their way
    assert ours < scipys * 1.2 + 8 * MB
