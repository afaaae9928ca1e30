"""Plain lines of Matrix Market files, which threads read, mean the same as by the whole grammar."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.errors import InvalidMatrix
from wollemi.core.files import plain_entries


def write(
    path: Path, field: str, *lines: str, sizes: str = "3 4", symmetry: str = "general"
) -> Path:
    head = f"%%MatrixMarket matrix coordinate {field} {symmetry}\n{sizes} {len(lines)}\n"
    path.write_text(head + "\n".join(lines) + "\n", newline="")
    return path


def both(path: Path) -> list[np.ndarray]:
    """Return what is read with the threads of the host, and by the grammar alone."""
    found = []
    for host in ("omp", "reference"):
        with wl.default_executor(host):
            found.append(wl.read(path).to_dense())
    return found


@pytest.fixture
def plain(monkeypatch):
    """The results of the reader of plain lines."""
    results = []
    read = plain_entries.plain_entries

    def noted(*arguments):
        results.append(read(*arguments))
        return results[-1]

    monkeypatch.setattr("wollemi.core.files.matrix_market.plain_entries", noted)
    return results


@pytest.mark.parametrize(
    ("field", "lines"),
    [
        ("real", ["1 1 1.5", "3 4 -2e-3", "2 2 .5", "1 4 7.", "3 1 1E+22"]),
        ("real", ["  1\t1   0.10000000000000001  ", "3 4 123456789012345678e-30\r"]),
        ("integer", ["1 1 -7", "2 3 123456789012345678"]),
        ("pattern", ["1 1", "3 4 "]),
        ("complex", ["1 1 1 -2", "3 2 0.25 1e-300"]),
    ],
)
def test_plain_lines_are_read_by_threads(tmp_path, plain, field, lines):
    ours, theirs = both(write(tmp_path / "a.mtx", field, *lines))
    assert plain[0] is not None and plain[1] is None
    assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs)


@pytest.mark.parametrize("symmetry", ["symmetric", "skew-symmetric"])
def test_symmetric_files_are_mirrored(tmp_path, plain, symmetry):
    lines = ["2 1 1.5", "3 2 -2"]
    ours, theirs = both(write(tmp_path / "a.mtx", "real", *lines, sizes="3 3", symmetry=symmetry))
    assert plain[0] is not None and np.array_equal(ours, theirs)


@pytest.mark.parametrize(
    "lines",
    [
        ["1 1 1D3", "2 2 1"],  # an exponent of Fortran
        ["1 1 +1", "2 2 inf"],
        ["1 1 1", "", "2 2 2"],  # one line is blank, and the count that of the lines
    ],
)
def test_other_lines_are_left_to_the_grammar(tmp_path, plain, lines):
    path = write(tmp_path / "a.mtx", "real", *lines)
    if "" in lines:
        path.write_text(path.read_text().replace("3 4 3", "3 4 2"))
    ours, theirs = both(path)
    assert plain[0] is None and np.array_equal(ours, theirs)


@pytest.mark.parametrize(
    "lines",
    [
        ["1 1 1", "4 1 2"],  # a row outside of the matrix
        ["1 1 1", "0 1 2"],
        ["1 1 1", "2 2 2x"],
        ["1 1 1", "2 2"],
        ["1 1 1", "2 2 1 1"],
        ["1 1 1", "2 2 1e"],
        ["1 1 1", "2 2 ."],
        ["1 1 1", "22 1"],
    ],
)
def test_wrong_lines_have_the_errors_of_the_grammar(tmp_path, lines):
    path = write(tmp_path / "a.mtx", "real", *lines)
    messages = []
    for host in ("omp", "reference"):
        with wl.default_executor(host), pytest.raises(InvalidMatrix) as caught:
            wl.read(path)
        messages.append(str(caught.value))
    assert messages[0] == messages[1] and "line 4" in messages[0]


@pytest.mark.parametrize("change", ["a line less", "a line more", "no last end"])
def test_the_number_of_lines_must_be_the_announced_one(tmp_path, change):
    path = write(tmp_path / "a.mtx", "real", "1 1 1", "2 2 2")
    text = path.read_text()
    text = {"a line less": text[:-6], "a line more": text + "3 3 3\n", "no last end": text[:-1]}[
        change
    ]
    path.write_text(text)
    if change == "no last end":
        assert wl.read(path).nnz == 2
    else:
        with pytest.raises(InvalidMatrix):
            wl.read(path)


def test_shares_of_threads_meet_at_lines_and_keep_every_digit(tmp_path, monkeypatch, rng, plain):
    monkeypatch.setattr(plain_entries, "TOGETHER", 100_000)
    S = sp.random_array((300, 200), density=0.2, rng=rng).tocsr()
    S.data = rng.standard_normal(S.nnz) * 10.0 ** rng.integers(-300, 300, S.nnz)
    wl.write(tmp_path / "a.mtx", wl.Csr(S))
    with wl.default_executor("omp"):
        read = wl.read(tmp_path / "a.mtx")
    assert plain[0] is not None and np.array_equal(read.to_dense(), S.toarray())
