"""The generators: what they claim of their matrices is so, and every run makes the same ones."""

from __future__ import annotations

import numpy as np
import pytest

import wollemi as wl
from wollemi.bench import CASES, case
from wollemi.core.errors import InvalidArgument

TINY = {
    "stencil5": "7",
    "stencil7": "5",
    "stencil9": "7",
    "stencil27": "5",
    "fem": "3",
    "circuit": "200",
    "rmat": "8,1000",
    "uniform": "40,60,200",
    "pruned": "30,40,90",
    "weights": "40,60,90",
    "hypersparse": "1000,50",
}
DEFINITE = ("stencil5", "stencil7", "stencil9", "stencil27", "fem", "circuit")


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


@pytest.mark.parametrize("name", ["stencil6", "stencil5:", "stencil5:x", "stencil5:3,4", "rmat:3"])
def test_what_is_no_case_is_explained(name):
    if name == "stencil5:":
        assert case(name).name == "stencil5:1000"
        return
    with pytest.raises(InvalidArgument, match=r"known|expected sizes"):
        case(name)
