"""The generators: their matrices have the stated properties, the same in every run."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import wollemi as wl
from wollemi.core.errors import InvalidArgument
from wollemi_bench import CASES, case
from wollemi_bench.cases import GROWTH, cases, grown
from wollemi_bench.drawn import names_of_collection
from wollemi_bench.standins import MODELS

TINY = {
    "stencil5": "7",
    "stencil7": "5",
    "stencil9": "7",
    "stencil27": "5",
    "fem": "3",
    "circuit": "200",
    "rmat": "8,1000",
    "blocks": "300,4,2000",
    "uniform": "40,60,200",
    "pruned": "30,40,90",
    "weights": "40,60,90",
    "hypersparse": "1000,50",
    "dense-blocks": "3,4,1",
    "lognormal": "100,5,1",
    "two-sorts": "100,3,1",
    "flat-rmat": "8,1000,1",
    "tetrahedra": "50,1",
    "shuffled": "4,1",
}
DEFINITE = ("stencil5", "stencil7", "stencil9", "stencil27", "fem", "circuit", "tetrahedra")


def tiny(family):
    return case(f"{family}:{TINY[family]}").matrix()


def test_every_family_is_tested():
    assert TINY.keys() == CASES.keys()
    assert all(generator.summary for generator in CASES.values())


@pytest.mark.parametrize("family", TINY)
def test_two_runs_make_the_same_matrix(family):
    a, b = tiny(family), tiny(family)
    assert (a != b).nnz == 0
    assert np.array_equal(a.indices, b.indices)


@pytest.mark.parametrize("family", TINY)
def test_rows_are_sorted_without_duplicates_and_indices_are_narrow(family):
    S = tiny(family)
    assert S.has_canonical_format
    assert S.indices.dtype == S.indptr.dtype == np.int32
    assert np.all(np.isfinite(S.data))


@pytest.mark.parametrize("family", DEFINITE)
def test_systems_are_symmetric_and_positive_definite(family):
    S = tiny(family).toarray()
    assert np.array_equal(S, S.T)
    assert np.linalg.eigvalsh(S)[0] > 0


@pytest.mark.parametrize(
    ("family", "longest"), [("stencil5", 5), ("stencil7", 7), ("stencil9", 9), ("stencil27", 27)]
)
def test_a_stencil_has_as_many_points_as_its_name(family, longest):
    S = tiny(family)
    assert np.diff(S.indptr).max() == longest


def test_finite_elements_come_in_blocks_of_three():
    S = tiny("fem")
    assert S.shape == (81, 81)
    assert S.tobsr((3, 3)).nnz == S.nnz


@pytest.mark.parametrize("family", ["lognormal", "two-sorts", "flat-rmat", "shuffled"])
def test_another_seed_draws_another_matrix(family):
    sizes = TINY[family].rpartition(",")[0]
    a, b = (case(f"{family}:{sizes},{seed}").matrix() for seed in (1, 2))
    assert a.shape == b.shape
    assert (a != b).nnz > 0


def test_dense_blocks_are_full():
    S = tiny("dense-blocks").toarray()
    assert np.count_nonzero(S) == 3 * 16
    assert np.all(S[4:8, 4:8] != 0)


def test_a_circuit_has_few_long_rows():
    lengths = np.diff(case("circuit:2000").matrix().indptr)
    assert np.median(lengths) < 10
    assert np.sort(lengths)[-4] > 10 * np.median(lengths)


def test_a_power_law_graph_has_exactly_its_edges_and_heavy_rows():
    S = case("rmat:10,8000").matrix()
    lengths = np.diff(S.indptr)
    assert S.shape == (1024, 1024) and S.nnz == 8000
    assert lengths.max() > 8 * lengths.mean()
    assert lengths[:128].sum() > lengths[-128:].sum()


def test_a_graph_cannot_have_more_edges_than_there_are():
    with pytest.raises(InvalidArgument, match="distinct edges"):
        case("rmat:3,100").matrix()


def test_pruning_leaves_its_share():
    S = case("pruned:100,200,90").matrix()
    assert abs(S.nnz / 20_000 - 0.1) < 0.001


def test_hypersparse_rows_are_mostly_empty():
    assert np.mean(np.diff(tiny("hypersparse").indptr) == 0) > 0.9


def test_a_family_alone_means_its_usual_size():
    assert case("stencil5").name == "stencil5:1000"


def test_a_file_is_a_case(tmp_path):
    wl.write(tmp_path / "a.mtx", np.eye(3))
    assert case(str(tmp_path / "a.mtx")).matrix("float32").dtype == np.float32


def test_a_block_graph_has_communities_and_heavy_nodes():
    S = case("blocks:4000,8,60000").matrix().tocoo()
    assert 0.7 < np.mean(S.row // 500 == S.col // 500) < 0.9
    degrees = np.bincount(S.row, minlength=4000)
    assert degrees.max() > 10 * degrees.mean()
    assert 0.85 * 60_000 < S.nnz <= 60_000


# ---- stand-ins


@pytest.fixture(scope="module")
def stood_in():
    return {name: case(f"like:{name}/256").matrix() for name in MODELS}


@pytest.mark.parametrize("name", MODELS)
def test_a_stand_in_has_the_rows_of_its_model(stood_in, name):
    model, S = MODELS[name], stood_in[name]
    assert S.has_canonical_format
    assert S.shape[0] == pytest.approx(model.rows / 256, rel=0.1)
    lengths = np.diff(S.indptr)
    assert lengths.mean() == pytest.approx(model.entries / model.rows, rel=0.15)
    assert lengths.min() >= 1


@pytest.mark.parametrize(
    "name", ["atmosmodj", "nlpkkt160", "CurlCurl_4", "Bump_2911", "StocF-1465", "Cube_Coup_dt0"]
)
def test_a_discretization_has_a_longest_row_like_its_model(stood_in, name):
    longest = np.diff(stood_in[name].indptr).max()
    assert longest == pytest.approx(MODELS[name].longest, rel=0.25)


@pytest.mark.parametrize("name", ["circuit5M", "FullChip"])
def test_a_circuit_has_a_row_that_touches_its_models_share_of_the_nodes(stood_in, name):
    S, model = stood_in[name], MODELS[name]
    assert np.diff(S.indptr).max() / S.shape[0] == pytest.approx(
        model.longest / model.rows, rel=0.1
    )


@pytest.mark.parametrize("name", MODELS)
def test_stand_ins_are_definite_so_that_every_method_can_go_on(stood_in, name):
    S = stood_in[name]
    symmetric = (S + S.T) * 0.5
    rng = np.random.default_rng(0)
    for _ in range(5):
        x = rng.standard_normal(S.shape[0])
        assert x @ (symmetric @ x) > 0
    diagonal = symmetric.diagonal()
    assert np.all(diagonal > 0)
    # without dominance a square is definite too, and so is a Kronecker product of definite ones
    if name not in ("CurlCurl_4", "Bump_2911", "Cube_Coup_dt0"):
        assert np.all(2 * diagonal - abs(symmetric).sum(axis=1) >= -1e-9 * diagonal)


@pytest.mark.parametrize("name", ["like:thermal3", "like:thermal2/x", "like:thermal2/0"])
def test_what_is_no_stand_in_is_explained(name):
    with pytest.raises(InvalidArgument, match=r"stand-in|divisor"):
        case(name)


# ---- files and the collection


def test_a_folder_is_the_files_in_it(tmp_path):
    for name in ("b.mtx", "a.mtx"):
        wl.write(tmp_path / name, np.eye(3))
    (tmp_path / "notes.txt").write_text("no matrix")
    found = cases(["stencil5:3", str(tmp_path)])
    assert [c.name for c in found] == ["stencil5:3", "a", "b"]
    assert found[1].matrix().shape == (3, 3)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidArgument, match="no matrix file there"):
        cases([str(tmp_path / "empty")])


class Collection:
    """Stands in for ssgetpy."""

    def __init__(self, folder):
        self.folder = folder

    def search(self, name, limit):
        short = name.rpartition("/")[2]
        return [self.matrix("G", short), self.matrix("G", short + "_b")] if short != "none" else []

    def matrix(self, group, name):
        def download(format, extract):
            (self.folder / name).mkdir()
            wl.write(self.folder / name / f"{name}.mtx", np.eye(4))

        localpath = lambda format, extract: (str(self.folder / name), "")  # noqa: E731
        return SimpleNamespace(group=group, name=name, download=download, localpath=localpath)


def test_a_matrix_of_the_collection_is_downloaded_when_it_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ssgetpy", Collection(tmp_path))
    one = case("ss:G/thermal2")
    assert list(tmp_path.iterdir()) == []
    assert one.matrix().shape == (4, 4)
    with pytest.raises(InvalidArgument, match="expected one matrix of that name, found none"):
        case("ss:none").matrix()
    with pytest.raises(InvalidArgument, match="found none"):
        case("ss:H/thermal2").matrix()


def test_without_package_or_network_the_collection_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "ssgetpy", None)
    with pytest.raises(InvalidArgument, match="needs ssgetpy"):
        case("ss:thermal2").matrix()
    monkeypatch.delitem(sys.modules, "ssgetpy")
    monkeypatch.setattr("builtins.__import__", offline(__import__))
    with pytest.raises(InvalidArgument, match="is there a network"):
        case("ss:thermal2").matrix()


def offline(imports):
    def imported(name, *more):
        if name == "ssgetpy":
            raise ConnectionError("no route to host")
        return imports(name, *more)

    return imported


# ---- growth


@pytest.mark.parametrize(
    "name", ["stencil7:40", "rmat:14,100000", "circuit:20000", "like:thermal2/64"]
)
def test_a_grown_case_ends_with_itself_and_has_evenly_spaced_sizes(name):
    series = grown(name)
    assert series[-1].name == name
    entries = np.array([c.matrix().nnz for c in series])
    assert len(series) == len(GROWTH)
    assert entries / entries[-1] == pytest.approx(np.array(GROWTH), rel=0.35)


def test_a_file_has_one_size():
    with pytest.raises(InvalidArgument, match="only generated cases"):
        grown("some.mtx")


@pytest.mark.parametrize("name", ["stencil6", "stencil5:", "stencil5:x", "stencil5:3,4", "rmat:3"])
def test_what_is_no_case_is_explained(name):
    if name == "stencil5:":
        assert case(name).name == "stencil5:1000"
        return
    with pytest.raises(InvalidArgument, match=r"known|expected sizes"):
        case(name)


def test_the_collection_has_different_matrices_of_eight_families_the_same_every_time():
    names = names_of_collection(200)
    assert names == names_of_collection(200)
    assert len(set(names)) == 200
    assert len({one.family for one in cases(names)}) == 8
    assert all(one.matrix().nnz > 0 for one in cases(names_of_collection(8, 4096)))
