"""``wollemi info A.mtx``: the facts about a matrix."""

from __future__ import annotations

import io
import json
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.cli.console import BAD_INPUT


def told(wollemi, path):
    ended = wollemi("info", path, "--json")
    assert ended.status == 0
    return json.loads(ended.out)


def test_the_facts_are_those_of_the_matrix(wollemi, laplacian):
    found = told(wollemi, laplacian)
    assert (found["rows"], found["columns"], found["entries"]) == (40, 40, 118)
    assert found["dtype"] == "float64" and found["hermitian"] is True
    assert found["diagonal"] == {"positive": 40, "not_invertible": 0, "constant": True}
    assert found["row_lengths"]["longest"] == 3 and found["row_lengths"]["empty"] == 0.0
    assert found["memory"] == wl.read(laplacian).nbytes
    assert (
        found["first_choice"]["method"]
        == wl.solve(wl.read(laplacian), np.ones(40)).attempts[0].method
    )


def test_people_read_them_in_a_table(wollemi, laplacian):
    ended = wollemi("info", laplacian)
    assert ended.status == 0
    for words in ("Csr 40 x 40", "118 (0.074 of all)", "float64", "symmetric", "all positive",
                  "longest 3", "solve tries first", "direct: the matrix is small"):  # fmt: skip
        assert words in ended.out
    assert "executor" not in ended.out


def test_zeros_of_the_diagonal_and_missing_symmetry_are_counted(wollemi, tmp_path):
    S = sp.csr_array(np.array([[0.0, 1.0, 0.0], [0.0, 2.0, 0.0], [3.0, 0.0, -1.0]]))
    wl.write(tmp_path / "A.mtx", S)
    out = " ".join(wollemi("info", tmp_path / "A.mtx").out.split())
    assert "symmetric no" in out and "1 of 3 positive, 1 zero or without an inverse" in out


def test_a_complex_matrix_is_hermitian_or_not(wollemi, tmp_path):
    wl.write(tmp_path / "A.mtx", wl.Csr(np.array([[2.0, 1.0j], [-1.0j, 2.0]])))
    assert "Hermitian" in wollemi("info", tmp_path / "A.mtx").out
    assert told(wollemi, tmp_path / "A.mtx")["hermitian"] is True


@pytest.mark.parametrize("shape", [(6, 4), (4, 6)])
def test_least_squares_come_first_where_it_is_not_square(wollemi, tmp_path, shape):
    np.save(tmp_path / "A.npy", np.ones(shape))
    found = told(wollemi, tmp_path / "A.npy")
    assert found["hermitian"] is None and found["diagonal"] is None
    assert found["first_choice"]["method"] == "lsmr"
    assert "lsmr: the matrix is not square" in wollemi("info", tmp_path / "A.npy").out


def test_a_matrix_without_rows_and_one_with_nan_have_no_method(wollemi, tmp_path):
    np.save(tmp_path / "empty.npy", np.ones((0, 0)))
    wl.write(tmp_path / "nan.mtx", wl.Csr(np.diag([1.0, np.nan])))
    for name, words in [("empty.npy", "nothing to do"), ("nan.mtx", "NaN or Inf")]:
        assert told(wollemi, tmp_path / name)["first_choice"] is None
        assert words in wollemi("info", tmp_path / name).out


def test_standard_input_is_a_file_too(wollemi, laplacian, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(laplacian.read_bytes()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert "standard input: Csr 40 x 40" in wollemi("info", "-").out


def test_a_missing_file_and_a_mixture_are_refused(wollemi, laplacian, tmp_path):
    assert "there is no such file" in wollemi("info", tmp_path / "b.mtx").complaint
    ended = wollemi("info", laplacian, "--links")
    assert ended.status == BAD_INPUT and "--links" in ended.complaint
