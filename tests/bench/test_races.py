"""The suite races: its systems, contests and records."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

import wollemi as wl

pytest.importorskip("wollemi_bench", reason="pip install ./benchmarks")

from wollemi_bench import race_peers, race_systems, races
from wollemi_bench.commands import bench
from wollemi_bench.generators import stencil5
from wollemi_bench.peers import Absent
from wollemi_bench.report import Record

#: Divides the systems down to some hundred unknowns.
TINY = 16_000

SYSTEMS = list(race_systems.systems(TINY))


@pytest.mark.parametrize("n", [1, 2, 7])
def test_the_plane_is_the_5_point_stencil(n: int) -> None:
    made = race_systems.plane(n)
    made.sort_indices()
    assert made.has_canonical_format
    assert abs(made - stencil5(n)).max() == 0


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
def test_systems_are_as_definite_as_they_say(system: race_systems.RaceSystem) -> None:
    S = system.matrix()
    assert S.indices.dtype == np.int32 and S.has_sorted_indices
    symmetric = abs(S - S.T).max() <= 1e-12 * abs(S).max()
    assert symmetric == system.definite
    if system.definite:
        np.linalg.cholesky(S.toarray())


def test_every_library_reaches_the_true_residual(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(races, "ROUNDS", 1)
    file = tmp_path / "races.jsonl"
    words = [
        "suite",
        "races",
        "--scale",
        str(TINY),
        "--only",
        "Poisson 12^2",
        "--only",
        "convection",
    ]
    for peer in race_peers.race_peers(wl.executor("omp")):
        if peer.name != "jax":  # it compiles for seconds, and has a test of its own
            words += ["--against", peer.name]
    done = CliRunner().invoke(bench, [*words, "--json", str(file)])
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert lines[0]["kind"] == "environment" and "scipy" in lines[0]["peers"]
    records = [Record.from_line(line) for line in lines[1:]]
    assert {r.benchmark for r in records} == {f"race/{method}" for method in race_peers.METHODS}
    for record in records:
        assert record.suite == "races"
        assert not record.trouble or record.trouble.startswith("absent")
        if record.seconds:
            assert record.residual is not None and record.residual <= 1e-5
            assert record.setup_seconds is not None and record.setup_seconds <= record.seconds
    ours = [record for record in records if record.ours]
    assert len(ours) == len({(r.benchmark, r.case) for r in records})
    assert all(record.times_ours == 1.0 for record in ours)


class Idle(race_peers.SciPy):
    """A library that returns zeros."""

    def placed(
        self, method: str, S: sp.csr_array, b: race_peers.HostArray, rtol: float
    ) -> race_peers.SetUp:
        """Return a solver that does nothing."""
        return lambda: lambda: (np.zeros_like(b), 0)


def test_a_solution_that_misses_the_tolerance_has_no_time() -> None:
    system = SYSTEMS[0]
    S = system.matrix()
    ours, theirs = races.contest(system, S, "cg-jacobi", wl.executor("omp"), [Idle()])
    assert not ours.trouble
    assert theirs.seconds is None and theirs.trouble.startswith("missed: the true residual is 1.0")


def test_a_library_that_is_missing_is_absent() -> None:
    class Missing(race_peers.SciPy):
        def version(self) -> str:
            raise Absent("not installed")

    system = SYSTEMS[0]
    found = races.contest(system, system.matrix(), "cg-jacobi", wl.executor("omp"), [Missing()])
    assert found[1].trouble == "absent: not installed"


@pytest.mark.parametrize("name", ["jax", "warp"])
def test_libraries_of_gpus_solve_on_the_cpu_too(name: str) -> None:
    peer = race_peers.Jax() if name == "jax" else race_peers.Warp("cpu")
    try:
        peer.version()
    except Absent as error:
        pytest.skip(f"{error}; this runs where it is")
    for system, method in ((SYSTEMS[0], "cg-jacobi"), (SYSTEMS[-1], "bicgstab-jacobi")):
        S = system.matrix()
        b = system.right_side(S)
        done = peer.entry(method, S, b, system.rtol)()
        assert races.residual(S, b, done.x()) <= 10 * system.rtol


def test_files_of_a_folder_take_part(tmp_path: Path) -> None:
    wl.write(tmp_path / "line.mtx", wl.Csr(stencil5(10)))
    wl.write(tmp_path / "small.mtx", wl.Csr(np.eye(3)))
    found = list(race_systems.files(tmp_path))
    assert [(one.name, one.definite) for one in found] == [("line", True)]
    assert races.methods_of(found[0]) == ("cg-jacobi", "cg-amg", "solve")
    S = found[0].matrix()
    x = np.linalg.solve(S.toarray(), found[0].right_side(S))
    np.testing.assert_allclose(x, np.random.default_rng(race_systems.SEED).standard_normal(100))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([[2.0, 1.0], [1.0, 2.0]], True),
        ([[1.0, 2.0], [2.0, 1.0]], None),
        ([[1.0, 1.0], [1.0, 1.0]], None),
        ([[0.0, 1.0], [1.0, 0.0]], None),
        ([[2.0, 1.0], [0.0, 2.0]], False),
    ],
)
def test_a_file_is_definite_by_the_signs_of_its_pivots(
    values: list[list[float]], expected: bool | None
) -> None:
    assert race_systems.definite(sp.csr_array(values)) is expected


def test_an_unknown_library_is_refused() -> None:
    done = CliRunner().invoke(bench, ["suite", "races", "--against", "nothing"])
    assert done.exit_code != 0 and "no library is called" in str(done.exception)
