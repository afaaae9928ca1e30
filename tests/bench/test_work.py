"""Work besides iterations: every part has SciPy's results, and wrong results are found."""

from __future__ import annotations

import numpy as np
import pytest

import wollemi as wl
from wollemi_bench import case, first_call
from wollemi_bench.peers import SciPy
from wollemi_bench.sides import Ours, Side
from wollemi_bench.work import WORK, FirstCall, Piecework, first_calls, tasks


@pytest.mark.parametrize("name", WORK)
@pytest.mark.parametrize("executor", ["reference", "omp"])
def test_every_piece_is_right_here(name, executor):
    problem = Piecework(name, case("stencil5:12").matrix())
    (offer,) = problem.ours(wl.core.registry.executor(executor))
    assert problem.wrong(offer.to_host(offer.make()())) == ""


@pytest.mark.parametrize("name", WORK)
def test_every_piece_has_a_peer(name):
    problem = Piecework(name, case("stencil5:12").matrix())
    (offer,) = problem.theirs(SciPy())
    assert problem.wrong(offer.to_host(offer.make()())) == ""


@pytest.mark.parametrize("name", ["structure/A @ A", "structure/A.T by rows", "product/A.T @ x"])
def test_a_result_of_something_else_is_wrong(name):
    S = case("uniform:40,40,200").matrix()
    problem = Piecework(name, S)
    other = WORK["structure/A + A.T" if "structure" in name else "product/csc"]
    result = other(Side(), problem.given)()
    assert "off by" in problem.wrong(result)


def test_calls_start_from_a_matrix_of_which_nothing_is_known():
    side = Ours(wl.core.registry.executor("reference"))
    A = side.csr(case("stencil5:4").matrix())
    A.T @ np.ones(16)
    fresh = side.fresh(A)
    assert fresh.data is A.data
    assert fresh._copies is not A._copies


def test_a_first_call_tells_the_seconds_of_its_process(tmp_path):
    problem = FirstCall("product", case("stencil5:4").matrix())
    (offer,) = problem.ours(wl.core.registry.executor("reference"))
    assert offer.told
    assert 0 < offer.make()() < 60


def test_a_first_call_that_fails_says_how(tmp_path):
    with pytest.raises(RuntimeError, match="FileNotFoundError"):
        first_call.seconds("product", "scipy", tmp_path / "none.npz")


def test_pieces_are_asked_for_by_name_or_by_the_first_part_of_it():
    some = [case("stencil5:4")]
    assert [t.benchmark for t in tasks(some, pieces=("fixed", "product/ell"))] == [
        "product/ell",
        "fixed/cg, 1 iteration",
        "fixed/solve",
    ]
    assert [t.benchmark for t in first_calls(some)] == ["first/product", "first/solve"]


def test_multigrid_is_put_beside_jacobi_and_pyamg():
    pytest.importorskip("pyamg", reason="PyAMG is not installed; make test runs this where it is")
    from wollemi_bench.elliptic import Problem, boxes
    from wollemi_bench.multigrid_table import measured

    found = measured(Problem(boxes(12, 1e3)), "Cg", 1, "reference", hypre=False)
    assert found["Amg"]["iterations"] < found["Jacobi"]["iterations"]
    assert found["Amg, aggressive"]["complexity"] < found["Amg"]["complexity"]
    assert all(len(row["times"]) == 1 for row in found.values())


def test_the_elliptic_systems_are_what_their_names_say():
    from wollemi_bench.elliptic import SYSTEMS, beam

    for name, system in SYSTEMS.items():
        A = system.problem(4).matrix
        assert A.shape[0] == A.shape[1], name
        symmetric = abs(A - A.T).max() <= 1e-12 * abs(A).max()
        assert symmetric == (system.solver == "Cg"), name
        assert A.indices.dtype.itemsize == 4, name
    body = beam(3)
    assert body.modes is not None
    assert body.modes.shape == (body.matrix.shape[0], 6)
    # rows of free nodes carry rigid motions without force
    free = np.repeat(body.points[:, 0] > 1.5 / 3, 3)
    assert abs(body.matrix @ body.modes)[free].max() < 1e-12
