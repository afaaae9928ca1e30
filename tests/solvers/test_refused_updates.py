"""An update that is refused leaves a preconditioner as it was, whatever it is made of."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wollemi as wl
from wollemi.preconditioners import Additive, Ilu, Sequence

from .conftest import poisson
from .repeated import assert_repeated
from .test_updates import GRID, NAMES

N = GRID**2


def matrix(on: wl.Executor, S: Any) -> wl.Csr:
    return wl.Csr(sp.csr_array(S), executor=on)


def unchanged_by(M: Any, A: Any, *, same: Any = np.testing.assert_array_equal) -> None:
    before, adjoint = M @ np.ones(N), M.H @ np.ones(N)
    with pytest.raises(wl.errors.WollemiError):
        M.update(A)
    same(M @ np.ones(N), before)
    same(M.H @ np.ones(N), adjoint)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("factor", [1e-310, np.nan])
def test_every_preconditioner_stays_as_it_was(on: wl.Executor, name: str, factor: float) -> None:
    S = poisson(GRID)
    M = wl.solvers.Gmres(matrix(on, S), M=name).M
    if name == "isai" and factor == 1e-310:  # its small systems have solutions
        M.update(matrix(on, S * factor))
        assert np.all(np.isfinite(M @ np.ones(N)))
    else:
        unchanged_by(M, matrix(on, S * factor))


@pytest.mark.parametrize("apply", ["exact", "jacobi:3", "isai:1"])
def test_joined_triangles_are_written_back(on: wl.Executor, apply: str) -> None:
    S, A = poisson(GRID), matrix(on, poisson(GRID))
    if apply == "exact" and not on.supports(wl.core.operations.triangular.factorize):
        pytest.skip("factors are made by sweeps here")
    for sweeps in (3, None):
        M = Ilu(A, factor_sweeps=sweeps, apply=apply)
        unchanged_by(M, matrix(on, S * 1e-310))
        M.update(A)
        np.testing.assert_allclose(
            M @ np.ones(N), Ilu(A, factor_sweeps=sweeps, apply=apply) @ np.ones(N)
        )


@pytest.mark.parametrize("kind", [Sequence, Additive])
@pytest.mark.parametrize("last", ["ic", "ssor", "ilu", "blockjacobi:size=4", "fsai"])
def test_steps_before_the_one_that_fails_are_taken_back(
    on: wl.Executor, kind: Any, last: str
) -> None:
    S = poisson(GRID)
    A = matrix(on, S)
    M = kind(A, ["jacobi", "ssor", "polynomial", wl.solvers.Direct(A), last])
    unchanged_by(M, matrix(on, S * 1e-308), same=partial(assert_repeated, on))


def test_a_step_of_the_user_s_own_is_taken_back_too(on: wl.Executor) -> None:
    S = poisson(GRID)
    A = matrix(on, S)
    first = wl.preconditioners.Jacobi(A)
    M = Sequence(A, [first, "ic"])
    before = first @ np.ones(N)
    unchanged_by(M, matrix(on, -S))
    np.testing.assert_array_equal(first @ np.ones(N), before)


def test_blocks_with_an_inner_sequence_stay_as_they_were(on: wl.Executor) -> None:
    S = poisson(GRID)
    inner = wl.Settings(Sequence, {"steps": ["jacobi", "ic"]})
    M = wl.preconditioners.BlockSchwarz(matrix(on, S), blocks=3, local=inner, restricted=False)
    unchanged_by(M, matrix(on, -S))
