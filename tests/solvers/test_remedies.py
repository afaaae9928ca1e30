"""Errors of calls that mix up arguments name the call that was meant."""

from __future__ import annotations

import numpy as np
import pytest

import wollemi as wl


def test_an_option_of_one_method_names_that_method():
    A = wl.Csr(2 * np.eye(3))
    with pytest.raises(TypeError, match=r'damp belongs to Lsmr: write method="lsmr:damp=3.0"'):
        wl.solve(A, np.ones(3), damp=3.0)


def test_a_method_in_the_place_of_the_start_is_named():
    A = wl.Csr(2 * np.eye(3))
    with pytest.raises(wl.errors.InvalidArgument, match="write method='gmres'"):
        wl.solve(A, np.ones(3), "gmres")


def test_a_matrix_of_one_column_for_b_names_its_vector():
    A = wl.Csr(2 * np.eye(3))
    b = wl.Dense(np.ones((3, 1)))
    with pytest.raises(wl.errors.InvalidArgument, match=r"\.toarray\(\)\[:, 0\]"):
        wl.solve(A, b)


def test_a_result_is_written_by_its_solution(tmp_path):
    result = wl.solve(2 * np.eye(3), np.ones(3))
    with pytest.raises(wl.errors.InvalidArgument, match="write its x"):
        wl.write(tmp_path / "x.mtx", result)
