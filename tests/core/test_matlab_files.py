"""MATLAB's .mat files are read: the one matrix, or that of the SuiteSparse Matrix Collection."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.errors import InvalidMatrix


@pytest.fixture(autouse=True)
def on_reference():
    with wl.default_executor("reference"):
        yield


@pytest.fixture
def S(rng) -> sp.csc_array:
    return sp.random_array((7, 5), density=0.4, rng=rng).tocsc()


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("version", ["4", "5"])
@pytest.mark.parametrize("is_complex", [False, True])
def test_the_sparse_matrix_of_a_file_is_read(tmp_path, S, compressed, version, is_complex):
    S = S * (1 + 2j) if is_complex else S
    # version 4 has a dense array next to it
    variables = {"S": S, "b": np.ones((7, 1))} if version == "5" else {"S": S}
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, variables, format=version, do_compression=compressed and version == "5")
    read = wl.read(path)
    assert isinstance(read, wl.Csr)
    np.testing.assert_array_equal(read.to_dense(), S.toarray())


def test_the_problem_of_the_suitesparse_collection_is_read(tmp_path, S):
    problem = {"A": S, "name": "HB/some", "b": np.ones((7, 1)), "id": 3}
    scipy.io.savemat(tmp_path / "a.mat", {"Problem": problem}, do_compression=True)
    np.testing.assert_array_equal(wl.read(tmp_path / "a.mat").to_dense(), S.toarray())


def test_a_vector_is_read(tmp_path):
    scipy.io.savemat(tmp_path / "b.mat", {"b": np.arange(4.0)[:, None]})
    assert wl.io.read_vector(tmp_path / "b.mat").tolist() == [0, 1, 2, 3]


def test_an_open_file_is_told_by_its_beginning(tmp_path, S):
    scipy.io.savemat(tmp_path / "a.mat", {"S": S})
    with (tmp_path / "a.mat").open("rb") as file:
        np.testing.assert_array_equal(wl.read(file).to_dense(), S.toarray())


def test_files_without_one_matrix_are_refused(tmp_path, S):
    for variables, words in [
        ({"S": S, "T": S}, "expected one matrix, got S, T"),
        ({"name": "text"}, "expected a matrix, got name"),
        ({"Problem": {"b": 1.0}}, "Problem has no member A, only b"),
    ]:
        scipy.io.savemat(tmp_path / "a.mat", variables)
        with pytest.raises(InvalidMatrix, match=r"a\.mat") as caught:
            wl.read(tmp_path / "a.mat")
        assert words in str(caught.value)


def test_hdf5_is_refused_with_a_remedy(tmp_path):
    (tmp_path / "a.mat").write_bytes(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(512))
    with pytest.raises(InvalidMatrix, match="'-v7'"):
        wl.read(tmp_path / "a.mat")


def test_variables_larger_than_memory_are_refused_before_they_are_read(tmp_path, monkeypatch):
    scipy.io.savemat(tmp_path / "a.mat", {"b": np.zeros((2000, 2000))}, do_compression=True)
    assert (tmp_path / "a.mat").stat().st_size < 1 << 20
    monkeypatch.setattr("wollemi.core.files.memory.available_memory", lambda: 1 << 20)
    with pytest.raises(InvalidMatrix, match="its variables need"):
        wl.read(tmp_path / "a.mat")


@pytest.mark.parametrize("keep", [3, 100, 130, 200])
def test_a_truncated_file_is_named(tmp_path, S, keep):
    scipy.io.savemat(tmp_path / "a.mat", {"S": S})
    (tmp_path / "a.mat").write_bytes((tmp_path / "a.mat").read_bytes()[:keep])
    with pytest.raises(InvalidMatrix, match=r"a\.mat"):
        wl.read(tmp_path / "a.mat")
