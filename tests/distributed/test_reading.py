"""Files that members read together, and the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from typer.testing import CliRunner

import wollemi as wl
from wollemi.cli.app import app

from .conftest import SIZES, line


def files(folder: Path, rng: Any) -> list[Path]:
    S = sp.random_array((50, 50), density=0.1, rng=rng)
    scipy.io.mmwrite(folder / "symmetric.mtx", S + S.T, symmetry="symmetric")
    scipy.io.mmwrite(folder / "general.mtx", sp.random_array((40, 30), density=0.2, rng=rng))
    with (folder / "short.mtx").open("w") as file:
        file.write(
            "%%MatrixMarket matrix coordinate pattern general\n% no end\n4 4 3\n1 1\n1 1\n3 2"
        )
    with (folder / "empty.mtx").open("w") as file:
        file.write("%%MatrixMarket matrix coordinate real general\n4 3 0\n")
    scipy.io.mmwrite(folder / "dense.mtx", rng.standard_normal((6, 4)))
    sp.save_npz(folder / "archive.npz", S.tocsr())
    return sorted(folder.iterdir())


@pytest.mark.parametrize("size", SIZES)
def test_members_read_what_one_executor_reads(tmp_path: Path, size: int, rng: Any) -> None:
    group = wl.distributed.Group(["omp:1"] * size)
    for file in files(tmp_path, rng):
        alone = wl.read(file, executor="reference").to_scipy()
        for partition in ("rows", "weights"):
            A = wl.distributed.read(file, group, partition=partition)
            assert A.shape == alone.shape
            assert abs(A.to_local() - sp.csr_array(alone)).max() == 0, file.name
        assert wl.read(file, executor=group).nnz == sp.csr_array(alone).nnz


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("4 4 3\n1 1 2.0\n3 2 1e0\n", "announces 3 entries"),
        ("4 4 2\n1 1 2.0\n3 2 1\n3 3 1\n", "announces 2 entries"),
        ("4 4 3\n1 1 2.0\n3 2 1\n3 x 1\n", "expected a row, a column and a number, got '3 x 1'"),
        ("4 4 2\n1 1 2.0\n5 2 1\n", "."),
    ],
    ids=["truncated", "too-many", "letter", "outside"],
)
def test_a_broken_file_is_refused_by_all(tmp_path: Path, size: int, text: str, told: str) -> None:
    file = tmp_path / "broken.mtx"
    file.write_text("%%MatrixMarket matrix coordinate real general\n" + text)
    group = wl.distributed.Group(["omp:1"] * size)
    with pytest.raises(wl.errors.InvalidMatrix, match=told):
        wl.read(file, executor=group)
    with pytest.raises(FileNotFoundError):
        wl.read(tmp_path / "none.mtx", executor=group)
    assert group.run(lambda member: member.links.all(1)) == [[1] * size] * size


def test_the_command_line_solves_over_a_group(tmp_path: Path) -> None:
    scipy.io.mmwrite(tmp_path / "A.mtx", line(40))
    out = tmp_path / "x.npy"
    command = ["solve", str(tmp_path / "A.mtx"), "--on", "omp:1,omp:1", "--out", str(out)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "omp:1, omp:1" in done.output
    np.testing.assert_allclose(np.load(out), np.ones(40), rtol=1e-3)
