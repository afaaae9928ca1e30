"""Graphs and layers that suites know by name are found in a folder; missing ones are reported."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.errors import InvalidArgument
from wollemi_bench import generators, runs, suites
from wollemi_bench.cases import divided
from wollemi_bench.contest import Settings
from wollemi_bench.matrices import FILES, FOLDER, Matrices, NotHere
from wollemi_bench.page import tile_search
from wollemi_bench.results import read, recorded_contests
from wollemi_bench.suites import GRAPHS, Job
from wollemi_bench.worker import Runners

from .made import record, write
from .test_commands import run

QUICK = Settings(batches=3, batch_seconds=1e-4, budget=1.0)
SMTX = "2, 3, 2\n0 1 2\n0 2\n"


def graph() -> sp.csr_array:
    return generators.rmat(6, 200)


def folder_of(path: Path) -> Path:
    (path / "patents").mkdir()
    wl.write(path / "IMDB.mtx", graph())
    wl.write(path / "patents" / "patents.mtx", graph())  # as an archive of SuiteSparse unpacks
    return path


def layers_of(path: Path) -> Path:
    for name in ("rn50/magnitude/0.8/block_1", "rn50/magnitude/0.9/block_1", "dlmc_one"):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / f"{name}.smtx").write_text(SMTX)
    (path / "dlmc_notes.txt").write_text("no layer")
    return path


def test_a_graph_has_a_uniform_matrix_of_its_size_beside_it(tmp_path):
    own, companion = Matrices(folder_of(tmp_path)).graph("IMDB")
    assert (own.name, companion.name) == ("IMDB", "uniform as IMDB")
    S, U = own.matrix("float32"), companion.matrix("float32")
    assert S.shape == U.shape == (64, 64)
    assert S.dtype == U.dtype == np.float32
    assert U.nnz == pytest.approx(S.nnz, rel=0.1)
    assert np.diff(U.indptr).max() < np.diff(S.indptr).max()


def test_a_graph_is_found_in_a_folder_of_its_name_too(tmp_path):
    assert Matrices(folder_of(tmp_path)).find("patents") == tmp_path / "patents" / "patents.mtx"
    assert Matrices(tmp_path).find("patents_main") is None


@pytest.mark.parametrize("folder", [None, "empty"])
def test_a_graph_that_is_not_here_says_where_it_was_looked_for(tmp_path, folder):
    place = tmp_path if folder else None
    (missing,) = Matrices(place).graph("IMDB")
    said = "has no IMDB.mtx" if folder else f"--matrices FOLDER, or {FOLDER}"
    with pytest.raises(NotHere, match=said):
        missing.matrix()


def test_a_rehearsal_takes_something_small_in_the_place_of_a_graph(tmp_path):
    for one in Matrices(folder_of(tmp_path)).graph("IMDB"):
        assert divided(one, 1 / 16).matrix().nnz < 70_000


def test_the_study_has_its_three_graphs_at_its_own_scale_alone():
    whole = suites.suite("sddmm-study").jobs(1, 30)
    assert [name for job in whole for name in job.names if "graph:" in name] == [
        f"graph:{name}" for name in GRAPHS
    ]
    assert whole[-1].options["columns"] == (32, 128, 256)
    divided_by_8 = suites.suite("sddmm-study").jobs(8, 30)
    assert not any("graph:" in name for job in divided_by_8 for name in job.names)


def test_what_is_not_here_is_skipped_and_the_rest_is_measured(tmp_path, monkeypatch):
    folder_of(tmp_path)
    (tmp_path / "IMDB.mtx").unlink()
    job = Job("sddmm", ("graph:IMDB", "graph:patents"), {"columns": (8,)})
    small = suites.Suite("small", lambda scale, iterations: [job])
    monkeypatch.setitem(suites.SUITES, "sddmm-study", small)
    where = wl.ReferenceExecutor(), []
    with closing(Runners(own_process=False)) as runners:
        options = {"matrices": Matrices(tmp_path), "settings": QUICK}
        records = list(runs.run("sddmm-study", *where, runners, **options))
    troubles = {r.case: r.trouble for r in records if r.ours}
    assert troubles.keys() == {"IMDB", "patents", "uniform as patents"}
    assert troubles["IMDB"].startswith("skipped: IMDB: ")
    assert troubles["patents"] == troubles["uniform as patents"] == ""


def test_layers_are_those_that_somebody_picked_or_every_file(tmp_path):
    layers_of(tmp_path)
    assert [one.name for one in Matrices(tmp_path).layers()] == ["dlmc_one"]
    every = Matrices(tmp_path, every_file=True).layers()
    assert [one.name for one in every] == [
        "dlmc_one",
        "rn50/magnitude/0.8/block_1",
        "rn50/magnitude/0.9/block_1",
    ]
    assert every[1].matrix().shape == (2, 3)
    assert every[1] != every[2]
    assert Matrices().layers() == []


def test_the_suite_of_layers_takes_every_file_of_a_folder(tmp_path):
    held = Matrices(layers_of(tmp_path), every_file=True)
    tasks = [task for _, task in runs.planned("tca-dlmc", wl.OmpExecutor(), matrices=held)]
    assert {t.case.name for t in tasks} >= {"dlmc_one", "rn50/magnitude/0.8/block_1"}


def test_the_folder_of_the_environment_is_the_usual_one(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER, str(tmp_path))
    assert Matrices.usual() == Matrices(tmp_path)
    monkeypatch.delenv(FOLDER)
    assert Matrices.usual() == Matrices()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("suite", "tca-dlmc", "--matrices", "/no/such"), "there is no folder"),
        (("suite", "tca-dlmc", "--every-file"), "of which folder?"),
        (("spmm", "--store", "/no/such"), "there is no folder"),
    ],
)
def test_folders_that_are_not_there_are_complained_of(capsys, monkeypatch, words, complaint):
    monkeypatch.delenv(FOLDER, raising=False)
    assert run("bench", *words) == 2
    assert complaint in capsys.readouterr().err


def test_a_name_that_is_no_case_is_one_nowhere():
    with pytest.raises(InvalidArgument, match="no case is called"):
        Matrices().cases(["graphs:IMDB"])


# ---- the search of SM-L2's tiles


def test_the_best_slice_of_each_contest_is_named_with_its_time(tmp_path):
    times = {"": 1.0, "sm-l2-32": 4.0, "sm-l2": 3.0, "sm-l2-128": 2.0}
    records = [
        record(f"wollemi {name}".strip(), seconds, kernel=name or "flat", noise=0.0,
               benchmark="sddmm/128", case="g", suite="sddmm-study")
        for name, seconds in times.items()
    ]  # fmt: skip
    contests = recorded_contests(read(write(tmp_path / "r.jsonl", records)))
    (table,) = tile_search.table_of("sddmm-study", contests)
    assert "Nisa" in table.caption
    (row,) = table.rows
    assert row[0] == "g, sddmm/128"
    assert row[4:] == ("", "128", "2.0")
    assert tile_search.table_of("one", []) == []


def test_all_matrix_files_of_a_folder_are_cases(tmp_path):
    folder = folder_of(tmp_path)
    (folder / "readme.txt").write_text("no matrix")
    assert [one.name for one in Matrices(folder).cases([FILES])] == ["IMDB"]
    assert Matrices().cases([FILES]) == []


def test_the_table_of_the_collection_has_families_files_and_all(tmp_path):
    from wollemi_bench.collection_table import rows

    names = {"rmat:4,20": "rmat", "a.mtx": "", "b.mtx": ""}
    made = []
    for (case, family), ratio in zip(names.items(), (2.0, 0.5, 2.0), strict=True):
        common = {"benchmark": "spmv", "case": case, "family": family, "suite": "collection"}
        made.append(record(**common, contender="wollemi", ours=True, seconds=1.0))
        made.append(record(**common, contender="torch", ours=False, seconds=ratio))
    write(tmp_path / "r.jsonl", made)
    found = rows(recorded_contests(read(tmp_path / "r.jsonl")), "torch")
    assert [row.split(" | ")[:3] for row in found] == [
        ["| rmat", "1", "2.00"],
        ["| files", "2", "1.00"],
        ["| all", "3", "1.26"],
    ]
