"""Words on options that a command does not have, on files that were written, and on ranks."""

from __future__ import annotations

import json

import numpy as np
import pytest

from wollemi.cli.console import BAD_INPUT, SOLVED

from ..backends.needs import package

REFERENCE = ("--on", "reference")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("--M", "--precond"), ("--save", "--out"), ("-o", "--out"), ("--output", "--out"),
        ("--solver", "--method"), ("--tol", "--rtol"), ("--device", "--executor"),
        ("--plto", "--plot"), ("--gpu", "--executor"), ("--threads", "--executor"),
        ("--verbose", "--progress"),
    ],
)  # fmt: skip
def test_an_unknown_option_names_the_one_of_the_same_meaning(wollemi, laplacian, given, meant):
    ended = wollemi("solve", laplacian, given, "x")
    assert ended.status == BAD_INPUT
    assert f"No such option: {given} (Possible options: {meant}" in " ".join(ended.err.split())


def test_a_third_file_is_told_where_solutions_go(wollemi, laplacian):
    ended = wollemi("solve", laplacian, "b.mtx", "x.mtx")
    assert ended.status == BAD_INPUT and "--out x.mtx" in " ".join(ended.err.split())
    assert "extra argument" in wollemi("kernels", "a", "b").err


def test_each_file_that_is_written_has_a_line(wollemi, laplacian, tmp_path):
    package("matplotlib")
    files = {"--out": "x.npy", "--plot": "c.svg", "--report": "r.html"}
    words = [word for option, name in files.items() for word in (option, tmp_path / name)]
    ended = wollemi("solve", laplacian, *words, *REFERENCE)
    assert ended.status == SOLVED
    for name in files.values():
        assert f"wrote {tmp_path / name}: " in ended.out
    quiet = wollemi("solve", laplacian, "--out", tmp_path / "x.npy", "-q", *REFERENCE)
    assert quiet.out == quiet.err == ""
    told = wollemi("solve", laplacian, "--out", tmp_path / "x.npy", "--json", *REFERENCE)
    assert json.loads(told.out)["converged"]
    assert told.err == f"wrote {tmp_path / 'x.npy'}: the solution\n"
    np.testing.assert_allclose(np.load(tmp_path / "x.npy"), np.ones(40), atol=1e-3)


def test_an_x_that_did_not_converge_is_called_so(wollemi, laplacian, tmp_path):
    words = ("--maxiter", "1", "--method", "cg", "--rtol", "1e-12", "--out", tmp_path / "x.npy")
    ended = wollemi("solve", laplacian, *words, *REFERENCE)
    assert "x.npy: the best x, which did not converge" in ended.out


@pytest.mark.parametrize("variable", ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE"])
def test_a_rank_without_mpi_is_told_how_to_share_the_system(
    wollemi, laplacian, monkeypatch, variable
):
    monkeypatch.setenv(variable, "2")
    ended = wollemi("solve", laplacian, *REFERENCE)
    assert ended.status == SOLVED
    assert "has started 2 ranks" in ended.err and "--on mpi shares it" in ended.err
    monkeypatch.setenv(variable, "1")
    assert wollemi("solve", laplacian, *REFERENCE).err == ""


def test_messages_have_options_in_place_of_arguments_of_python(wollemi, laplacian):
    ended = wollemi("solve", laplacian, "--method", "cg", "--precond", "ic", "--on", "omp:1,omp:1")
    assert ended.status == BAD_INPUT
    assert "use --precond schwarz:inner=ic, which is Ic of the rows of each" in ended.complaint
