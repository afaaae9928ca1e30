"""The report of a partition: shares of a matrix, and which messages a product sends."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import wollemi as wl

from .conftest import line, scattered


def test_a_report_has_the_share_of_each_member(kind: str) -> None:
    S = line(30)
    A = wl.distribute(S, [kind] * 3)
    report = A.partition.report()
    assert [share.rows for share in report] == [10, 10, 10]
    assert sum(share.entries for share in report) == S.nnz
    assert [share.ghosts for share in report] == [1, 2, 1]
    assert [share.sent for share in report] == [1, 2, 1]
    assert [share.neighbours for share in report] == [1, 2, 1]
    assert [share.interior for share in report] == [9, 8, 9]
    assert [share.exchanged_bytes for share in report] == [16, 32, 16]
    assert all(share.nbytes > 0 and share.member.startswith(kind) for share in report)
    assert 0.9 < report.balance <= 1
    lines = str(report).splitlines()
    assert len(lines) == 5 and "ghosts" in lines[0] and lines[1].startswith(kind)


def test_a_report_of_rows_that_are_numbered_anew(kind: str) -> None:
    S = scattered(40)
    A = wl.distribute(S, [kind] * 2, partition=np.arange(40) % 2)
    assert [share.rows for share in A.partition.report()] == [20, 20]
    assert A.partition == wl.distributed.Partition.of_owners(np.arange(40) % 2, 2)


def test_a_partition_of_no_matrix_has_no_report() -> None:
    with pytest.raises(wl.errors.InvalidArgument, match=r"A\.partition\.report"):
        wl.distributed.Partition([0, 2, 5]).report()


def test_a_partition_is_kept_in_a_file(tmp_path: Path) -> None:
    S, path = scattered(40), tmp_path / "partition.npz"
    A = wl.distribute(S, ["reference"] * 2, partition=np.arange(40) % 2)
    A.partition.save(path)
    loaded = wl.distributed.Partition.load(path)
    assert loaded == A.partition
    B = wl.distribute(S, ["reference"] * 2, partition=loaded)
    np.testing.assert_array_equal(B @ np.ones(40), A @ np.ones(40))
    wl.distributed.Partition([0, 2, 5]).save(path)
    assert wl.distributed.Partition.load(path) == wl.distributed.Partition([0, 2, 5])


def test_a_partition_that_cannot_be_written_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "partition.npz"
    saved = wl.distributed.Partition([0, 2, 5])
    saved.save(path)

    def full(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="no space"):
        wl.distributed.Partition([0, 1, 5]).save(path)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert wl.distributed.Partition.load(path) == saved


@pytest.mark.parametrize("content", ["text", "another", "whole", "empty"])
def test_a_file_without_a_partition_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "partition.npz"
    if content == "text":
        path.write_text("no partition")
    elif content == "empty":
        path.touch()
    else:
        arrays = {"other": np.ones(2)} if content == "another" else {"offsets": np.array([1, 2])}
        np.savez(path, **arrays)
    with pytest.raises(wl.errors.InvalidArgument, match="partition"):
        wl.distributed.Partition.load(path)
    with pytest.raises(FileNotFoundError):
        wl.distributed.Partition.load(tmp_path / "missing.npz")


def test_a_profile_has_a_timeline_of_each_member(kind: str, tmp_path: Path) -> None:
    S, b = line(30), np.ones(30)
    A = wl.distribute(S, [kind] * 3)
    expected = wl.solvers.Cg(A, rtol=1e-8).solve(b)
    with wl.profile(timeline=True) as seen:
        found = wl.solvers.Cg(A, rtol=1e-8).solve(b)
    assert found.converged and found.iterations == expected.iterations
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-10)
    assert seen.timeline is not None
    for rank in range(3):
        mine = [call for call in seen.timeline if call.member == rank]
        assert sum(call.operation == "cg.curvature" for call in mine) == found.iterations
        assert all(a.start + a.seconds <= b.start for a, b in pairwise(mine))
    seen.save_timeline(tmp_path / "cg.json")
    events = json.loads((tmp_path / "cg.json").read_text())["traceEvents"]
    assert len(events) == len(seen.timeline) and {event["tid"] for event in events} == {0, 1, 2}
    with wl.profile() as without:
        A @ b
    with pytest.raises(wl.errors.InvalidArgument, match="timeline=True"):
        without.save_timeline(tmp_path / "none.json")
