"""The first choice is the first attempt of a solve, with the same notes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.core.errors import InvalidMatrix
from wollemi.solvers.auto.first_choice import RTOL, first_choice


def tridiagonal(n, below, middle, above):
    return sp.diags_array([below, middle, above], offsets=[-1, 0, 1], shape=(n, n)).tocsr()


def plane(n):
    line = tridiagonal(n, -1.0, 2.0, -1.0)
    return sp.kronsum(line, line).tocsr()


MATRICES = {
    "plane": plane(40),
    "large-plane": plane(150),
    "convection": tridiagonal(600, -1.5, 2.5, -1.0),
    "jumps": sp.diags_array(np.geomspace(1.0, 1e4, 900)).tocsr() @ plane(30),
    "indefinite": plane(30) - 1.3 * sp.eye_array(900),
    "no-diagonal": tridiagonal(400, 1.0, 0.0, -1.0),
    "small": tridiagonal(30, -1.0, 2.0, -1.0),
    "tall": plane(20)[:, :300],
    "wide": plane(20)[:300],
    "complex": plane(30) * (1.0 + 0.1j),
    "single": plane(40).astype(np.float32),
}


@pytest.mark.parametrize("name", MATRICES)
def test_it_is_the_first_attempt_of_a_solve(name):
    S = MATRICES[name]
    found = first_choice(wl.Csr(S))
    result = wl.solve(wl.Csr(S), S @ np.ones(S.shape[1], S.dtype), rtol=RTOL)
    first = result.attempts[0]
    assert found.method == first.method
    assert ("" if first.M in ("none", "dense") else first.M) == found.M
    told = "\n".join(result.notes)  # of several attempts the notes on the first are one note
    assert all(note in told for note in found.notes)
    assert len(result.attempts) > 1 or result.notes[: len(found.notes)] == found.notes


def test_a_dense_matrix_and_another_format_have_one():
    assert first_choice(wl.Dense(np.eye(5))).method == "direct"
    assert first_choice(wl.Csr(plane(40)).asformat("coo")).method == "cg"


def test_a_matrix_that_is_not_finite_has_none():
    S = plane(30)
    S.data[3] = np.nan
    with pytest.raises(InvalidMatrix, match="NaN"):
        first_choice(wl.Csr(S))
